"""Tests of "at most this share is wrong beyond the threshold", and the order in which to make them.

One test at a threshold that was fixed in advance is an exact binomial test. A threshold that was chosen
after looking at the outcomes needs more: here all thresholds are put in order before any outcome is
looked at, and a test passes its level on to the next only if it succeeds (the fallback procedure, of
which fixed-sequence testing is the case of a single start). The chance that any of the thresholds that
pass is a false one is at most the level, however many are tried and however they depend on each other.

References
----------
Wiens, "A fixed sequence Bonferroni procedure for testing multiple endpoints", Pharmaceutical Statistics
2, 2003. Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then test", 2021. Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.decisions.ranking import Ranking

__all__ = ["Test", "least_rows", "least_units", "tested", "upper_bound"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 1.01
"""From one threshold to the next, the rows beyond it grow by at least this factor."""
STARTS = ((1 / 8, 0.25), (1 / 2, 0.25))
"""Shares of the rows at which testing starts, and the share of the level that each gets."""
MOST_LIKELY = 0.5
"""The share of the level for the start at which calibrated predictions would succeed most easily."""
INSIDE = 0.95
"""The share of its bound that a stake may use."""
BISECTIONS = 60
MOST_PAIRS = 1 << 20
"""Of (rows, errors) in a cluster that are counted rather than kept one by one."""


@dataclass(frozen=True)
class Test:
    """The test of one threshold.

    Attributes
    ----------
    place : int
        Its index in the ranking.
    level : float
        The level at which it was tested: its own, and what the test before it passed on.
    p_value : float
        Of "more are wrong than is acceptable".
    """

    place: int
    level: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether at most the acceptable share is wrong, with the confidence that was asked for."""
        return self.p_value <= self.level


def tested(ranking: Ranking, risk: float, level: float) -> list[Test]:
    """The tests that were made; all that pass hold at once at this level.

    Their order depends on the predictions and the sizes of the clusters alone.
    """
    places, shares = _sequence(ranking, risk, level)
    p_values = _p_values(ranking, places, risk, level)
    tests: list[Test] = []
    carried = 0.0
    for place, share, p_value in zip(places, shares, p_values, strict=True):
        available = carried + level * share
        if available > 0.0:
            tests.append(Test(int(place), float(available), float(p_value)))
        carried = available if p_value <= available else 0.0
    return tests


def _sequence(ranking: Ranking, risk: float, level: float) -> tuple[Integers, Floats]:
    """Thresholds in the order of testing, and the share of the level that starts at each."""
    rows = ranking.rows
    total = rows[-1]
    least = least_units(ranking, risk, level) * _mean_size(ranking)
    split = min(share for _, share in STARTS)
    if total < least_units(ranking, risk, level * split) * _mean_size(ranking):
        return np.array([rows.size - 1]), np.ones(1)
    targets = [min(least, total)]
    while targets[-1] < total:
        targets.append(min(max(targets[-1] * STEP, targets[-1] + 1.0), total))
    places = np.unique(np.searchsorted(rows, np.array(targets) * (1.0 - 1e-12)))
    tried = rows[places]
    with np.errstate(divide="ignore", invalid="ignore"):
        ease = (risk - ranking.expected[places] / tried) * np.sqrt(tried)
    weights = np.zeros(places.size)
    weights[int(np.argmax(ease))] += MOST_LIKELY
    for share, weight in STARTS:
        weights[np.searchsorted(tried, share * total * (1.0 - 1e-12))] += weight
    first = int(np.flatnonzero(weights)[0])
    return places[first:], weights[first:]


def least_rows(risk: float, level: float) -> int:
    """Independent rows that it takes to certify anything, all of them right.

    Examples
    --------
    >>> least_rows(0.10, 0.05), least_rows(0.01, 0.05)
    (29, 299)
    """
    return int(np.ceil(np.log(level) / np.log1p(-risk) * (1.0 - 1e-12)))


def least_units(ranking: Ranking, risk: float, level: float) -> int:
    """Rows, or clusters, that it takes to certify anything."""
    if ranking.clusters is None:
        return least_rows(risk, level)
    # The largest gain of a bet on a cluster without errors of mean size.
    largest = INSIDE / (1.0 - risk) * _mean_size(ranking) / ranking.clusters.largest
    return int(np.ceil(-np.log(level) / np.log1p(largest * risk)))


def _mean_size(ranking: Ranking) -> float:
    clusters = ranking.clusters
    return 1.0 if clusters is None else float(ranking.rows[-1] / clusters.clusters)


# -- the tests themselves ------------------------------------------------------------------------------


def _p_values(ranking: Ranking, places: Integers, risk: float, level: float) -> Floats:
    """P-values of "more than `risk` are wrong beyond it", for each threshold."""
    if ranking.clusters is None:
        from scipy.special import bdtr

        rows, errors = ranking.rows[places], ranking.errors[places]
        return np.asarray(bdtr(errors, rows, risk))
    sums = _cluster_sums(ranking, places)
    p_values = [
        float(np.exp(-max(_log_capital(*counted, risk, stakes), 0.0)))
        for counted, stakes in (
            (counted, _stakes(ranking, float(counted[0] @ counted[2]), risk, level))
            for counted in sums
        )
    ]
    return np.array(p_values)


def upper_bound(ranking: Ranking, place: int, level: float) -> float:
    """The largest share of wrong rows beyond a threshold that its test at this level does not reject."""
    if ranking.clusters is None:
        from scipy.special import betaincinv

        rows, errors = ranking.rows[place], ranking.errors[place]
        return (
            1.0 if errors >= rows else float(betaincinv(errors + 1.0, rows - errors, 1.0 - level))
        )
    counted = next(iter(_cluster_sums(ranking, np.array([place]))))
    rows = float(counted[0] @ counted[2])
    low, high = float(counted[1] @ counted[2]) / rows, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if middle >= 1.0:
            break
        stakes = _stakes(ranking, rows, middle, level)
        if _log_capital(*counted, middle, stakes) >= -np.log(level):
            high = middle
        else:
            low = middle
    return high


def _cluster_sums(ranking: Ranking, places: Integers) -> list[tuple[Floats, Floats, Floats]]:
    """For each threshold, the distinct (rows, errors) of a cluster beyond it, and how many have them."""
    clusters = ranking.clusters
    assert clusters is not None
    ends = np.searchsorted(clusters.place, places, side="right")
    rows, errors = np.zeros(clusters.clusters), np.zeros(clusters.clusters)
    found, start = [], 0
    for end in ends:
        piece = slice(start, int(end))
        code = clusters.code[piece]
        rows += np.bincount(code, weights=clusters.rows[piece], minlength=rows.size)
        errors += np.bincount(code, weights=clusters.errors[piece], minlength=rows.size)
        found.append(_counted(rows, errors, ranking.whole))
        start = int(end)
    return found


def _counted(rows: Floats, errors: Floats, whole: bool) -> tuple[Floats, Floats, Floats]:
    width = int(rows.max()) + 1
    if not whole or width * width > MOST_PAIRS:
        return rows.copy(), errors.copy(), np.ones(rows.size)
    times = np.bincount((rows * width + errors).astype(np.int64), minlength=width)
    code = np.flatnonzero(times)
    return (code // width).astype(float), (code % width).astype(float), times[code].astype(float)


def _stakes(ranking: Ranking, rows: float, risk: float, level: float) -> Floats:
    """Stakes that are best for errors that are independent, alike within clusters, or in between.

    With V the variance of the sum, a stake √(2 log(1/level) / V) wins soonest. Between the two extremes
    V grows by the design effect; partial credit varies less than right or wrong.
    """
    assert ranking.clusters is not None
    least, most = 1.0 if ranking.whole else 1 / 16, max(ranking.clusters.design_effect, 1.0)
    effects = np.geomspace(least, most, 1 + int(np.ceil(np.log2(most / least))))
    best = np.sqrt(-2.0 * np.log(level) / (max(rows, 1.0) * risk * (1.0 - risk) * effects))
    return np.asarray(np.minimum(best, INSIDE / ((1.0 - risk) * ranking.clusters.largest)))


def _log_capital(rows: Floats, errors: Floats, times: Floats, risk: float, stakes: Floats) -> float:
    """Logarithm of what bets on "at most `risk`" make of 1, on average over the stakes.

    If more than `risk` are wrong, Σ errors - risk · rows of a cluster has a mean above 0, and the
    product of 1 - λ (errors - risk · rows) over clusters has a mean below 1 for every λ > 0 that keeps
    it positive: by Markov's inequality it exceeds 1 / level with a chance of at most the level.
    """
    excess = errors - risk * rows
    logs = np.array([float(times @ np.log1p(-stake * excess)) for stake in stakes])
    top = float(logs.max())
    return top + float(np.log(np.mean(np.exp(logs - top))))
