"""Tests of "at most this share is wrong beyond the threshold", and the order in which to make them.

One test at a threshold that was fixed in advance is an exact binomial test. A threshold that was chosen
after looking at the outcomes needs more: here all thresholds are put in order before any outcome is
looked at, and a test passes its level on to the next only if it succeeds (the fallback procedure, of
which fixed-sequence testing is the case of a single start). The chance that any of the thresholds that
pass is a false one is at most the level, however many are tried and however they depend on each other.

Where to start decides what can be had: a model that is right only where it is surest needs a start among
few rows, one that is never far below the limit needs one among many, and every further start takes from
the level. For independent rows the least confident tenth, which no test before it uses, says which it is.

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

__all__ = ["ThresholdTest", "least_rows", "least_units", "threshold_tests", "upper_bound"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 1.01
"""From one threshold to the next, the rows beyond it grow by at least this factor."""
STARTS = ((1 / 20, 0.6), (1 / 5, 0.3), (1 / 2, 0.1))
"""Without scouts, shares of the rows at which testing starts, and the share of the level that each gets.

Early enough for a model that is right only where it is surest; a chance fluke among few rows is made up
for by the later ones. Chosen by simulation over eleven shapes of risk.
"""
SCOUTS = 0.1
"""Share of the rows, the least confident ones, that say where to start among the others."""
MOST_SCOUTS = 0.2
"""Ties may make them more, but no more than this."""
AHEAD = 0.42
"""The start, as a share of the rows: this times the risk over the share of the scouts that is wrong.

Were risk to fall in a straight line to 0, a single test would have most power at 0.63; a start before it
leaves room for bad luck. Chosen, with the three below, by simulation over ten shapes of risk.
"""
ROOM = 2.1
"""The start has at least this many times the rows that it takes without an error."""
MIDDLE = (0.4, 0.06)
"""Where testing starts once more, should the most confident answers be bad; and its share of the level."""
EARLY = (0.02, 0.06)
"""Where testing starts first, should risk fall only among the very surest; and its share of the level."""
LAST = 0.02
"""Share of the level that is kept for thresholds that take in scouts."""
INSIDE = 0.95
"""The share of its bound that a stake may use."""
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
    order = _scouted(ranking, risk, level) or _unscouted(ranking, risk, level)
    sums = None if ranking.clusters is None else _ClusterSums(ranking)
    tests: list[ThresholdTest] = []
    carried = 0.0
    for place, share in zip(order.places.tolist(), order.shares.tolist(), strict=True):
        if place == order.afresh:
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


@dataclass(frozen=True)
class _Order:
    """Thresholds in the order of testing, and the share of the level that starts at each.

    No level is passed on to the place `afresh`.
    """

    places: Integers
    shares: Floats
    afresh: int | None = None


def _unscouted(ranking: Ranking, risk: float, level: float) -> _Order:
    """The order without a look at any outcome."""
    total, size = float(ranking.rows[-1]), _mean_size(ranking)
    starts = [
        (min(max(part * total, least_units(ranking, risk, level * share) * size), total), share)
        for part, share in STARTS
    ]
    return _Order(*_sequence(ranking.rows, starts))


def _scouted(ranking: Ranking, risk: float, level: float) -> _Order | None:
    """The order with a start that the least confident rows choose; None with clusters or too few rows.

    Rows are independent, so given the choice the tests of the other rows are as exact as without it.
    What the scouts chose must not be rewarded by them: thresholds that take them in start afresh, from
    the first of them on and with a share of the level of their own.
    """
    rows, errors = ranking.rows, ranking.errors
    total = float(rows[-1])
    last = int(np.searchsorted(rows, (1.0 - SCOUTS) * total, side="right")) - 1
    if ranking.clusters is not None or last < 0 or rows[last] < (1.0 - MOST_SCOUTS) * total:
        return None
    top = float(rows[last])
    part, middle = MIDDLE
    few, early = EARLY
    first = 1.0 - early - middle - LAST
    enough, enough_last = least_rows(risk, level * first), least_rows(risk, level * LAST)
    if top < enough or total < enough_last:
        return None
    wrong = (errors[-1] - errors[last] + 1.0) / (total - top + 2.0)
    start = min(max(AHEAD * risk / wrong * total, ROOM * enough), top)
    again = min(max(part * total, start), top)
    soon = min(max(few * total, ROOM * least_rows(risk, level * early)), start)
    starts = [(soon, early), (start, first), (again, middle)]
    places, shares = _sequence(rows[: last + 1], starts)
    later = max(float(rows[last + 1]), enough_last)
    after, after_shares = _sequence(rows, [(later, LAST)])
    return _Order(np.append(places, after), np.append(shares, after_shares), int(after[0]))


def _sequence(rows: Floats, starts: list[tuple[float, float]]) -> tuple[Integers, Floats]:
    """Places from the first start on, and the share of the level that starts at each."""
    total = float(rows[-1])
    targets = [min(start for start, _ in starts)]
    while targets[-1] < total:
        targets.append(min(max(targets[-1] * STEP, targets[-1] + 1.0), total))
    slack = 1.0 - 1e-12
    places = np.unique(np.searchsorted(rows, np.array(targets) * slack))
    shares = np.zeros(places.size)
    for start, share in starts:
        shares[np.searchsorted(rows[places], start * slack)] += share
    return places, shares


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
