"""Uncertainty: intervals and tests, groups, comparisons, sequential monitoring, sample sizes."""

from calibrant._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
