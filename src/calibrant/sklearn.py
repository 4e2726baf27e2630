"""calibrant for scikit-learn: a display, a scorer, and a classifier with calibrated probabilities."""

from calibrant._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
