"""Tails and quantiles of the normal, χ and Student's t; p-values together; where a p-value crosses."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inference._draws import between_entries, evidence, strayed_logs

__all__ = [
    "crossing",
    "evidence_of",
    "exact_binomial",
    "harmonic_mean",
    "log_tail",
    "log_tails_of_draws",
    "normal_quantile",
    "skewed_quantiles",
    "skewness",
]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_PER_UNIT = 64
_LARGEST = 40.0
_MOST_STEPS = 60


def normal_quantile(level: float, degrees: float = math.inf) -> float:
    """Quantile of the normal, or of Student's t with these degrees of freedom."""
    if math.isinf(degrees):
        return NormalDist().inv_cdf(level)
    from scipy.special import stdtrit

    return float(stdtrit(degrees, level))


def skewness(deviations: Floats) -> float:
    """Of the sum of independent parts with these deviations: Σd³ / (Σd²)^(3/2), at most 1.

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


def log_tail(x: Floats, degrees: NDArray[np.int64]) -> Floats:
    """log P(χ_m > x), the length of m independent normal numbers, for rows x of so many degrees each.

    For m = 1 these are the two tails of the normal. Interpolated in a table to 1e-4; beyond 40 standard
    errors it is a straight line.

    Examples
    --------
    >>> np.round(np.exp(log_tail(np.array([[0.0, 1.96], [0.0, 2.45]]), np.array([1, 2]))), 3)
    array([[1.  , 0.05],
           [1.  , 0.05]])
    """
    values = np.empty_like(x)
    most = int(degrees.max())
    between_entries(x, degrees - 1, _tables(most, "d"), _PER_UNIT, values)
    return values


def log_tails_of_draws(means: Singles, first: NDArray[np.int64], chain: int, parts: int) -> Singles:
    """log_tail of the largest of each family in size, and of the lengths of chains: [parts, draws].

    Families of means [rows, draws] begin at the rows `first`; the rows from `chain` on make chains of one,
    two and more.
    """
    logs = np.empty((parts, means.shape[1]), dtype=np.float32)
    tables = _tables(max(parts - first.size, 1), "f")
    strayed_logs(means, first, chain, tables, _PER_UNIT, logs)
    return logs


@cache
def _tables(most: int, kind: str) -> Any:
    """Of one degree of freedom and more, up to so many, a row each."""
    return np.stack([_table(m) for m in range(1, most + 1)]).astype(kind)


@cache
def _table(m: int) -> Floats:
    x = np.arange(int(_LARGEST * _PER_UNIT) + 1) / _PER_UNIT
    half = 0.5 * x**2
    if m == 1:
        tail = [0.5 * math.erfc(value / math.sqrt(2.0)) for value in x]
        far = x > 30.0  # where erfc is about to vanish: Mills' ratio
        with np.errstate(divide="ignore"):
            logs = np.log(2.0 * np.array(tail))
            mills = -half - np.log(np.maximum(x, 1.0) * math.sqrt(0.5 * math.pi))
        return np.where(far, mills, logs)
    if m == 2:
        return -half
    with np.errstate(divide="ignore"):
        term = (0.5 * m - 1.0) * np.log(half) - half - math.lgamma(0.5 * m)
    return np.asarray(np.logaddexp(_table(m - 2), term))


def harmonic_mean(sums: Singles, whole: Floats, share: float) -> Singles:
    """Minus the logarithm of the harmonic mean of p-values: those of `inverse_sums`, and one more of draws.

    The logarithms of that one are `whole` [draws].
    """
    smallest = np.minimum(sums[0], whole, dtype=np.float32)
    inverse = sums[1] * np.exp(smallest - sums[0])
    inverse += np.float32(share) * np.exp(smallest - whole.astype(np.float32))
    return np.asarray(np.log(inverse) - smallest)


def evidence_of(strayed: Floats, degrees: NDArray[np.int64], shares: Floats) -> float:
    """The same of one sample, whose parts stray so far: p is that of `log_tail`."""
    return evidence(strayed, degrees, shares, _tables(max(degrees.tolist()), "d"), _PER_UNIT)


def crossing(
    rises: Callable[[float], float],
    start: tuple[float, float],
    end: tuple[float, float],
    precision: float,
) -> float:
    """Where a rising function, known at start and end, passes 0: at most 0 there, and above soon after.

    The line between both ends, of which one that stays is given half its value (the Illinois method).
    """
    low, high = start[0], end[0]
    below, above = min(start[1], -1e-12), max(end[1], 1e-12)
    for step in range(_MOST_STEPS):
        if high - low <= precision:
            break
        share = 0.5 if step % 4 == 3 else min(max(below / (below - above), 0.02), 0.98)
        middle = low + share * (high - low)
        value = rises(middle)
        if value <= 0.0:
            low, below, above = middle, min(value, -1e-12), 0.5 * above
        else:
            high, above, below = middle, value, 0.5 * below
    return low


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
