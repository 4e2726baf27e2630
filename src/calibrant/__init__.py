"""Can I trust these probabilities? Calibration of predictions: measured, shown, recalibrated.

The names of a first week are here; the rest lives one level down. `__init__.pyi` lists them.
"""

from calibrant._lazy import attach_stub

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
