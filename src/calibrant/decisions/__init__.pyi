from calibrant.decisions.certify import certify as certify
from calibrant.decisions.selective import selective as selective
