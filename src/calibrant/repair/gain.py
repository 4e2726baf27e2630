"""The mean of what a map saves, its interval, and the verdict by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["interval_of_gain", "verdict_of"]

Floats = NDArray[np.float64]


def interval_of_gain(
    saved: Floats, weight: Floats, unit: NDArray[np.int64], confidence: float
) -> tuple[float, float, float]:
    """The mean of what every row saves, and Student's interval for it over units of rows.

    Examples
    --------
    >>> gain, low, high = interval_of_gain(np.array([1.0, 2.0, 3.0]), np.ones(3), np.arange(3), 0.95)
    >>> round(gain, 6), round(high - gain, 3)
    (2.0, 2.484)
    """
    from scipy.special import stdtrit

    share = weight / weight.sum()
    gain = float(share @ saved)
    sums = np.bincount(unit, share * (saved - gain))
    size = np.bincount(unit, share)
    units = 1.0 / float(size @ size)  # as many of equal weight
    error = float(np.linalg.norm(sums) * np.sqrt(units / max(units - 1.0, 1e-9)))
    reach = float(stdtrit(max(units - 1.0, 1e-9), 0.5 + 0.5 * confidence)) * error
    return gain, gain - reach, gain + reach


def verdict_of(low: float, high: float) -> str:
    """Is it "better", "worse" or "no clear difference", by the interval of the gain."""
    if low > 0.0:
        return "better"
    return "worse" if high < 0.0 else "no clear difference"
