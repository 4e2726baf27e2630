"""Quantiles of the normal, of Student's t and of skewed sums; Wilson's and exact binomial intervals."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, NDArray[np.float64])


def normal_quantile(level: float, degrees: float = math.inf) -> float:
    """Quantile of the normal, or of Student's t with these degrees of freedom."""
    if math.isinf(degrees):
        return NormalDist().inv_cdf(level)
    from scipy.special import stdtrit

    return float(stdtrit(degrees, level))


def wilson_error(variance: Number, z: float, units: float) -> Number:
    """Error z² / 2m + z √(v + z² / 4m²) of a mean over m rows, as in Wilson's interval.

    The observed variance v may be 0 although other samples would differ, as when no event was seen at all.

    Examples
    --------
    >>> wilson_error(0.0, 2.0, 100.0)
    0.04
    """
    lean = 0.5 * z / units
    error: Number = z * (lean + (variance + lean**2) ** 0.5)
    return error


def skewness(deviations: Floats) -> float:
    """Skewness of the sum of independent parts with these deviations: Σd³ / (Σd²)^(3/2), at most 1.

    Examples
    --------
    >>> skewness(np.array([1.0, -1.0])), skewness(np.array([1.0, 0.0, 0.0]))
    (0.0, 1.0)
    """
    squares = deviations**2
    total = float(squares.sum())
    return float(squares @ deviations) / total**1.5 if total > 0.0 else 0.0


def skewed_quantiles(confidence: float, degrees: float, skew: float) -> tuple[float, float]:
    """Between what a studentized sum lies with this confidence, where its parts have a skewness.

    A sum with skewness γ strays as a count of about 1/γ² events does, and takes the exact ends of that
    count's mean (Garwood 1936; Fay and Feuer 1997, for weighted sums). To the order of γ they are those
    of any studentized sum (Hall 1992), half an event wider. Without skewness they are Student's.

    Examples
    --------
    >>> low, high = skewed_quantiles(0.95, math.inf, 0.5)  # four events: from 1.09 to 10.24
    >>> round(4 - high / 0.5, 2), round(4 - low / 0.5, 2)
    (1.09, 10.24)
    >>> [round(end, 2) for end in skewed_quantiles(0.95, math.inf, 0.0)]
    [-1.96, 1.96]
    """
    reach = normal_quantile(0.5 + 0.5 * confidence, degrees)
    if abs(skew) < 1e-6 or not math.isfinite(reach):
        return -reach, reach
    from scipy.special import gammainccinv, gammaincinv, ndtr

    events, tail = skew**-2, float(ndtr(-reach))
    fewest, most = float(gammaincinv(events, tail)), float(gammainccinv(events + 1.0, tail))
    ends = skew * (events - most), skew * (events - fewest)
    return min(ends), max(ends)


def exact_binomial(
    successes: float | Floats, trials: float | Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Clopper and Pearson's interval: it has width also where all trials succeed, or none does.

    Examples
    --------
    >>> low, high = exact_binomial(5.0, 5.0, 0.95)
    >>> round(float(low), 4), float(high)
    (0.4782, 1.0)
    """
    from scipy.special import betaincinv

    won, tail = np.asarray(successes, dtype=np.float64), 0.5 * (1.0 - confidence)
    with np.errstate(all="ignore"):
        low = np.where(won > 0, betaincinv(won, trials - won + 1.0, tail), 0.0)
        high = np.where(won < trials, betaincinv(won + 1.0, trials - won, 1.0 - tail), 1.0)
    return low, high
