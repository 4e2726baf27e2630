"""Tests of "at most this share is wrong beyond the threshold".

One test at a threshold that was fixed in advance is an exact binomial test. A threshold that was chosen
after looking at the outcomes needs more: here thresholds are put in order before any outcome that their
tests use is looked at, and a test passes its level on to the next only if it succeeds (the fallback
procedure, of which fixed-sequence testing is the case of a single start). The chance that any of the
thresholds that pass is a false one is at most the level, however many are tried and however they depend
on each other.

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
from calibrant.decisions.testing_order import INSIDE, order_of_tests

__all__ = ["ThresholdTest", "threshold_tests", "upper_bound"]

Floats = NDArray[np.float64]

BISECTIONS = 60
MOST_PAIRS = 1 << 20
"""Of (rows, errors) in a cluster that are counted rather than kept one by one."""


@dataclass(frozen=True)
class ThresholdTest:
    """The test of one threshold.

    Attributes
    ----------
    place : int
        Its index in the ranking.
    level : float
        The level at which it was tested: its own, and what the test before it passed on.
    p_value : float
        P-value of "more are wrong than is acceptable".
    """

    place: int
    level: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether at most the acceptable share is wrong, with the confidence that was asked for."""
        return self.p_value <= self.level


def threshold_tests(ranking: Ranking, risk: float, level: float) -> list[ThresholdTest]:
    """The tests that were made; all that pass hold at once at this level.

    Their order depends on the predictions, the sizes of the clusters, and on outcomes of rows that the
    tests it is for do not use.
    """
    order = order_of_tests(ranking, risk, level)
    sums = None if ranking.clusters is None else _ClusterSums(ranking)
    tests: list[ThresholdTest] = []
    carried = 0.0
    for place, share in zip(order.places.tolist(), order.shares.tolist(), strict=True):
        if place in order.afresh:
            carried = 0.0
        available = carried + level * share
        carried = 0.0
        if available > 0.0:
            if sums is None:
                p_value = _binomial_p_value(ranking, place, risk)
            else:
                p_value = sums.upto(place).p_value(risk, level)
            tests.append(ThresholdTest(place, available, p_value))
            carried = available if p_value <= available else 0.0
    return tests


# -- the tests themselves ------------------------------------------------------------------------------


def _binomial_p_value(ranking: Ranking, place: int, risk: float) -> float:
    """P-value of "more than `risk` are wrong beyond it": the chance of so few errors."""
    from scipy.special import betaincc

    rows, errors = ranking.rows[place], ranking.errors[place]
    return 1.0 if errors >= rows else float(betaincc(errors + 1.0, rows - errors, risk))


def upper_bound(ranking: Ranking, place: int, level: float) -> float:
    """The largest share of wrong rows beyond a threshold that its test at this level does not reject."""
    if ranking.clusters is None:
        from scipy.special import betaincinv

        rows, errors = ranking.rows[place], ranking.errors[place]
        return (
            1.0 if errors >= rows else float(betaincinv(errors + 1.0, rows - errors, 1.0 - level))
        )
    sums = _ClusterSums(ranking).upto(place)
    low, high = float(ranking.errors[place] / ranking.rows[place]), 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if low < middle < 1.0 and sums.p_value(middle, level) > level:
            low = middle
        else:
            high = middle
    return high


class _ClusterSums:
    """Rows and errors of each cluster beyond a threshold that moves along the ranking."""

    def __init__(self, ranking: Ranking) -> None:
        assert ranking.clusters is not None
        self._clusters = ranking.clusters
        self._whole = ranking.whole
        self._rows = np.zeros(ranking.clusters.clusters)
        self._errors = np.zeros(ranking.clusters.clusters)
        self._added = 0
        least, most = 1.0 if self._whole else 1 / 16, max(ranking.clusters.design_effect, 1.0)
        self._effects = np.geomspace(least, most, 1 + int(np.ceil(np.log2(most / least))))

    def upto(self, place: int) -> _ClusterSums:
        """Add the rows up to this place of the ranking."""
        entries = self._clusters
        end = int(np.searchsorted(entries.place, place, side="right"))
        piece = slice(self._added, end)
        self._rows += np.bincount(entries.code[piece], entries.rows[piece], self._rows.size)
        self._errors += np.bincount(entries.code[piece], entries.errors[piece], self._rows.size)
        self._added = end
        return self

    def p_value(self, risk: float, level: float) -> float:
        """1 over what bets on "at most `risk`" make of 1, on average over the stakes.

        If more than `risk` are wrong, Σ errors - risk · rows of a cluster has a mean above 0, and the
        product of 1 - λ (errors - risk · rows) over clusters has a mean below 1 for every λ > 0 that
        keeps it positive: by Markov's inequality it exceeds 1 / level with a chance of at most the
        level.
        """
        rows, errors, times = self._counted()
        excess = errors - risk * rows
        logs = times @ np.log1p(-np.multiply.outer(excess, self._stakes(risk, level)))
        top = float(logs.max())
        return float(np.exp(-max(top + float(np.log(np.mean(np.exp(logs - top)))), 0.0)))

    def _stakes(self, risk: float, level: float) -> Floats:
        """Stakes that are best for errors that are independent, alike within clusters, or in between.

        With V the variance of the sum, a stake √(2 log(1/level) / V) wins soonest. Between the two
        extremes V grows by the design effect; partial credit varies less than right or wrong.
        """
        variance = max(float(self._rows.sum()), 1.0) * risk * (1.0 - risk) * self._effects
        largest = INSIDE / ((1.0 - risk) * self._clusters.largest)
        return np.asarray(np.minimum(np.sqrt(-2.0 * np.log(level) / variance), largest))

    def _counted(self) -> tuple[Floats, Floats, Floats]:
        """The distinct (rows, errors) of clusters, and how many clusters have them."""
        width = int(self._rows.max()) + 1
        if not self._whole or width * width > MOST_PAIRS:
            return self._rows, self._errors, np.ones(self._rows.size)
        times = np.bincount((self._rows * width + self._errors).astype(np.int64))
        code = np.flatnonzero(times)
        return (
            (code // width).astype(float),
            (code % width).astype(float),
            times[code].astype(float),
        )
