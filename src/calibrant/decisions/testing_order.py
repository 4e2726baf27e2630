"""The order in which thresholds are tested, and the share of the level that starts at each.

Where to start decides what can be had: a model that is right only where it is surest needs a start among
few rows, one that is never far below the limit needs one among many, and every further start takes from
the level. For independent rows the least confident ones, which no test before them uses, say which it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.decisions.ranking import Ranking

__all__ = ["INSIDE", "Order", "least_rows", "least_units", "order_of_tests"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 1.01
"""From one threshold to the next, the rows beyond it grow by at least this factor."""
STARTS = ((1 / 20, 0.6), (1 / 5, 0.3), (1 / 2, 0.1))
"""Without scouts, shares of the rows at which testing starts, and the share of the level that each gets.

Early enough for a model that is right only where it is surest; a chance fluke among few rows is made up
for by the later ones. Chosen by simulation over eleven shapes of risk.
"""
SCOUTS, MOST_SCOUTS, MOST_TIED = 10.0, 0.1, 0.2
"""The least confident rows that are looked at first: so many over the risk, but no more than a tenth of
all; ties may make them a fifth. These and the numbers below were chosen by simulation over sixteen shapes
of risk.
"""
LAST = 0.02
"""Share of the level that is kept for thresholds that take in these rows."""
ONCE_MORE, MOST_TIMES = 0.01, 12
"""Share of the level that is kept for the thresholds among more rows that are looked at, each time."""
SLOWLY, WORTH_IT = 0.6, 0.9
"""Looking at more rows leaves at least the first share of those before it, and at most the second."""
WIDE = 1.1
"""It leaves this times the rows at which the risk beyond the threshold seems to reach the limit."""
NEAREST, FEWEST_NEAREST = 0.45, 6.0
"""Of the rows that were looked at, those that tell the risk next to the others: this share of the number
of the others, or so many over the risk."""
FEWEST_LEFT = 20
"""Times the rows that it takes without an error: never are fewer left."""
AHEAD, POWER, LARGEST = 0.73, 1.5, 0.62
"""The start, as a share of the rows that are left: the first times a power of the risk over the share that
is wrong next to them, and no more than the last."""
ROOM = 2.1
"""The start has at least this many times the rows that it takes without an error."""
EARLIER = ((2.0, 0.06), (8.0, 0.02))
"""Fractions of the start at which testing starts before, should risk fall only among the surer ones; and
their shares of the level."""
MIDDLE = (0.4, 0.02)
"""Where testing starts once more, should the most confident answers be bad; and its share of the level."""

INSIDE = 0.95
"""The share of its bound that a stake on a cluster may use."""


@dataclass(frozen=True)
class Order:
    """Thresholds in the order of testing, and the share of the level that starts at each.

    No level is passed on to the places in `afresh`.
    """

    places: Integers
    shares: Floats
    afresh: frozenset[int] = frozenset()


def order_of_tests(ranking: Ranking, risk: float, level: float) -> Order:
    """The order of the tests; it depends on outcomes only of rows that the tests it is for do not use."""
    return _scouted(ranking, risk, level) or _unscouted(ranking, risk, level)


def _unscouted(ranking: Ranking, risk: float, level: float) -> Order:
    """The order without a look at any outcome."""
    total, size = float(ranking.rows[-1]), _mean_size(ranking)
    starts = [
        (min(max(part * total, least_units(ranking, risk, level * share) * size), total), share)
        for part, share in STARTS
    ]
    exact = (risk, level) if ranking.clusters is None else None
    return Order(*_sequence(ranking.rows, starts, exact))


def _scouted(ranking: Ranking, risk: float, level: float) -> Order | None:
    """The order with a start that the least confident rows choose; None with clusters or too few rows.

    Rows are independent, so given the choice the tests of the other rows are as exact as without it.
    What the rows that were looked at chose must not be rewarded by them: thresholds that take them in
    start afresh, with a share of the level of their own. Whether to look at more rows is itself chosen by
    those before, so each such step has its own share, and all of them together stay within the level.
    """
    rows = ranking.rows
    total = float(rows[-1])
    first = _last_within(rows, total - min(SCOUTS / risk, MOST_SCOUTS * total))
    if ranking.clusters is not None or first < 0 or rows[first] < (1.0 - MOST_TIED) * total:
        return None
    if rows[first] < least_rows(risk, level * 0.8) or total < least_rows(risk, level * LAST):
        return None
    ends, near, wrong = _looked_at(rows, ranking.errors, risk, level, first)
    top = float(rows[ends[-1]])
    main = 1.0 - LAST - ONCE_MORE * (len(ends) - 1) - MIDDLE[1] - sum(part for _, part in EARLIER)
    start = near * min(AHEAD * (risk / wrong) ** POWER, LARGEST)
    start = min(max(start, ROOM * least_rows(risk, level * main)), top)
    starts = [(start, main), (min(max(MIDDLE[0] * top, start), top), MIDDLE[1])]
    for fraction, share in EARLIER:
        starts.append(
            (min(max(start / fraction, ROOM * least_rows(risk, level * share)), start), share)
        )
    pieces = [_sequence(rows[: ends[-1] + 1], starts, (risk, level))]
    afresh = []
    for end, after in zip([*ends[-2::-1], rows.size - 1], ends[::-1], strict=True):
        share = LAST if end == rows.size - 1 else ONCE_MORE
        later = min(max(rows[after + 1], least_rows(risk, level * share)), rows[end])
        pieces.append(_sequence(rows[: end + 1], [(float(later), share)], (risk, level)))
        afresh.append(int(pieces[-1][0][0]))
    places, shares = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return Order(places, shares, frozenset(afresh))


def _looked_at(
    rows: Floats, errors: Floats, risk: float, level: float, first: int
) -> tuple[list[int], float, float]:
    """The last places of those that are left, time after time; where rows next to them lie, and their risk.

    More are looked at for as long as the risk beyond a threshold seems to reach the limit far among those
    that are left: were the risk at a threshold to fall in a straight line to 0, or along the last two
    shares that were seen, whichever is more cautious.
    """
    fewest = FEWEST_LEFT * least_rows(risk, 0.9 * level)
    ends, upto = [first], rows.size - 1
    before: tuple[float, float] | None = None
    while True:
        end = ends[-1]
        left = float(rows[end])
        near = 0.5 * (left + float(rows[upto]))
        wrong = float((errors[upto] - errors[end] + 1.0) / (rows[upto] - left + 2.0))
        crossing = _crossing(near, wrong, before, risk)
        place = int(np.searchsorted(rows, max(WIDE * crossing, SLOWLY * left, fewest)))
        if len(ends) > MOST_TIMES or place >= end or rows[place] > WORTH_IT * left:
            return ends, near, wrong
        before = near, wrong
        width = max(NEAREST * float(rows[place]), FEWEST_NEAREST / risk)
        upto = min(int(np.searchsorted(rows, rows[place] + width)), end)
        ends.append(place)


def _crossing(near: float, wrong: float, before: tuple[float, float] | None, risk: float) -> float:
    """Rows at which the risk beyond the threshold reaches the limit, going by the risk at `near` rows."""
    straight = 2.0 * near * risk / wrong
    if before is None or wrong >= before[1]:
        return straight
    slope = (before[1] - wrong) / (before[0] - near)
    none = near - wrong / slope  # rows that have no error, if it goes on like this
    if none <= 0.0:
        return straight
    middle = none + risk / slope  # slope (x - none)² / 2 = risk x
    return max(straight, middle + float(np.sqrt(middle**2 - none**2)))


def _last_within(rows: Floats, limit: float) -> int:
    return int(np.searchsorted(rows, limit, side="right")) - 1


def _sequence(
    rows: Floats, starts: list[tuple[float, float]], exact: tuple[float, float] | None
) -> tuple[Integers, Floats]:
    """Places from the first start on, and the share of the level that starts at each.

    With `exact`, the risk and the level of binomial tests, places are those where a test loses least to
    its whole numbers: the fewest rows that allow so many errors.
    """
    total, slack = float(rows[-1]), 1.0 - 1e-12
    starts = sorted(starts)
    targets, reached = [np.array([total])], 0.0
    for (start, share), (stop, _) in zip(starts, [*starts[1:], (total, 0.0)], strict=True):
        reached += share
        grid = [start]
        while grid[-1] < stop:
            grid.append(min(max(grid[-1] * STEP, grid[-1] + 1.0), stop))
        points = np.array(grid)
        if exact is not None:
            points = _tightest(points, exact[0], exact[1] * reached)
        targets.append(points[(points >= start * slack) & (points <= total)])
    places = np.unique(np.searchsorted(rows, np.concatenate(targets) * slack))
    shares = np.zeros(places.size)
    for start, share in starts:
        shares[np.searchsorted(rows[places], start * slack)] += share
    return places, shares


def _tightest(rows: Floats, risk: float, level: float) -> Floats:
    """The fewest rows that allow as many errors as these numbers of rows do.

    Examples
    --------
    >>> _tightest(np.array([29.0, 40.0, 50.0]), 0.1, 0.05)
    array([29., 46.])
    """
    from scipy.special import bdtrik, bdtrin

    allowed = np.unique(np.floor(bdtrik(level, rows, risk)))
    allowed = allowed[allowed >= 0.0]
    return np.asarray(np.ceil(bdtrin(allowed, level, risk)))


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
    """Rows of a cluster, on average."""
    clusters = ranking.clusters
    return 1.0 if clusters is None else float(ranking.rows[-1] / clusters.clusters)
