"""Diagrams: statistics of curves, and the artists that draw them."""

from calibrant._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
