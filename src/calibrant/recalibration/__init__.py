"""Recalibration: maps from predictions to better calibrated ones, their choice and their effect."""

from calibrant._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
