"""`python -m calibrant` is the `calibrant` command."""

from calibrant.cli import main

if __name__ == "__main__":
    main()
