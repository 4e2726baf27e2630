"""Measures of calibration, of arrays, a Sketch or Points."""

from calibrant._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
