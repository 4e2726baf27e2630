"""How far a mean may be from its estimate where a sample shows little spread."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["wilson_error"]


Floats = NDArray[np.float64]


@overload
def wilson_error(z: float, standard_error: float, units: float) -> float: ...
@overload
def wilson_error(z: Floats, standard_error: Floats, units: float) -> Floats: ...
def wilson_error(z: float | Floats, standard_error: float | Floats, units: float) -> float | Floats:
    """z² / 2m + z √(s² + z² / 4m²), for m units and a standard error s.

    In the manner of Wilson's interval: where outcomes agree s is 0, and the error is z² / m.

    Examples
    --------
    >>> wilson_error(2.0, 0.0, 100.0), round(wilson_error(2.0, 0.1, 1e9), 3)
    (0.04, 0.2)
    """
    error = z**2 / (2 * units) + z * np.sqrt(standard_error**2 + (z / (2 * units)) ** 2)
    return error if isinstance(error, np.ndarray) else float(error)
