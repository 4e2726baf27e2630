"""Certified operating point: the threshold beyond which at most a given share of decisions is wrong.

Thresholds are tested in a fixed sequence, from the most confident answers down: Learn-then-Test
(Angelopoulos and others 2021) with several starts. Each test is exact, and passes its level on to the next
only if it rejects "too many are wrong" (the fallback procedure, Wiens 2003). The chance that any threshold
that passes is a false one is then at most the level, however many are tried and however they depend on each
other. Where testing starts depends on the number of rows alone: at the fewest rows that can certify
anything, and at every doubling of them, each start with an equal share of the level. (A single start fails
where the first few dozen answers have one error more than chance allows, however good the model is.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    require_choice,
    require_confidence,
    require_count,
    require_share,
)
from calibrant._format import percent
from calibrant.data.rows import InputOptions, require_one_sample
from calibrant.decisions.ranking import Ranking, Side, rank
from calibrant.errors import InputError
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import Record, plain, rows_text

Floats = NDArray[np.float64]
Asked = Literal["above", "below", "both"]
_VERBS: Mapping[Side, str] = {"above": "Accept", "below": "Reject"}
_WRONG: Mapping[Side, str] = {"above": "wrong", "below": "right"}
LARGEST_STAKE = 0.95
"""Share of the largest stake that keeps every factor of a bet positive."""
ROUNDED = 1.0 - 1e-12


@dataclass(frozen=True)
class OperatingPoint(Record):
    """One side of a decision: a threshold, its coverage and its risk.

    Attributes
    ----------
    side : {"above", "below"}
        Whether predictions at or above the threshold are acted on, or those at or below it.
    threshold : float
        The threshold.
    coverage : float
        Share of the cases that it decides.
    rows, errors : float
        Rows that it decides here, and how many of them are wrong.
    risk_bound : float
        Upper confidence bound on the share that is wrong, at the level that was spent on this
        threshold: never above the risk that was asked for.
    next_prediction : float
        Nearest prediction here that it does not decide; infinite where it decides all.
    """

    side: Side
    threshold: float
    coverage: float
    rows: float
    errors: float
    risk_bound: float
    next_prediction: float

    @property
    def text(self) -> str:
        """The threshold in as few decimals, four or more, as decide the same of the rows here."""
        away = min(self.threshold, 1.0 - self.threshold)  # and as many as tell it from 0 and 1
        fewest = max(4, 3 - math.floor(math.log10(away))) if away > 0.0 else 4
        exact, above = Decimal(repr(self.threshold)), self.side == "above"
        for places in range(fewest, 30):
            rounding = ROUND_FLOOR if above else ROUND_CEILING
            short = float(exact.quantize(Decimal(1).scaleb(-places), rounding))
            if self.next_prediction < short if above else short < self.next_prediction:
                return np.format_float_positional(short, trim="-")
        return repr(self.threshold)

    @property
    def risk(self) -> float:
        """Share of the decided rows that is wrong."""
        return self.errors / self.rows


@dataclass(frozen=True, repr=False)
class Certified(Record):
    """Certified thresholds of one side or both, with the guarantee that they have.

    Attributes
    ----------
    above, below : OperatingPoint or None
        The two sides; None where it was not asked for, or where nothing can be certified.
    risk, confidence : float
        The guarantee: at most this share is wrong on each side, with this confidence.
    side : {"above", "below", "both"}
        What was asked for.
    n, abstained : int
        Rows, and cases that were declined: these count as cases that are not decided, as do those that
        were dropped.
    clusters : int or None
        Clusters, if rows depend on each other.
    rows_needed : int
        Rows beyond a threshold that it takes to certify anything, all of them right.
    nearest : OperatingPoint or None
        Where nothing can be certified, the threshold that came nearest to passing its test.
    dropped : mapping
        Rows that were left out, by reason.
    """

    above: OperatingPoint | None
    below: OperatingPoint | None
    risk: float
    confidence: float
    side: Asked
    n: int
    abstained: int
    clusters: int | None
    rows_needed: int
    nearest: OperatingPoint | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def points(self) -> tuple[OperatingPoint, ...]:
        """The sides that are certified."""
        return tuple(point for point in (self.above, self.below) if point is not None)

    @property
    def certified(self) -> bool:
        """True where every side that was asked for has a threshold."""
        return len(self.points) == (2 if self.side == "both" else 1)

    @property
    def threshold(self) -> float | None:
        """The threshold of the side that was asked for, of both the upper one; None without one."""
        point = self.below if self.side == "below" else self.above
        return None if point is None else point.threshold

    @property
    def coverage(self) -> float:
        """Share of the cases that are decided."""
        return float(sum(point.coverage for point in self.points))

    @property
    def risk_bound(self) -> float | None:
        """The largest upper bound on the share that is wrong, of the sides that are certified."""
        return max((point.risk_bound for point in self.points), default=None)

    @property
    def sentence(self) -> str:
        """The result in words."""
        lines = [
            f"{_VERBS[point.side]} without review at {point.text} or {point.side}: this covers "
            f"{percent(point.coverage)} of the cases, and at most {percent(self.risk)} of those are "
            f"{_WRONG[point.side]} ({percent(self.confidence)} confidence)."
            for point in self.points
        ]
        if self.side == "both" and lines:
            lines.append(f"Leave the other {percent(max(1.0 - self.coverage, 0.0))} to a human.")
        return " ".join(lines if self.certified else [*lines, self._why_not()])

    def _why_not(self) -> str:
        side: Side = "below" if self.above else "above"
        which = f" to {_VERBS[side].lower()} {side} it" if self.points else ""
        start = f"No threshold{which} can be certified"
        units, size = ("rows", self.n) if self.clusters is None else ("clusters", self.clusters)
        if size < self.rows_needed:
            return (
                f"{start}. It takes at least {self.rows_needed} {units}, even if all are right; there "
                f"are {size}."
            )
        near = self.nearest
        if near is None:
            return f"{start}."
        return (
            f"{start}. The nearest is {near.text}: {near.errors:g} of {near.rows:g} cases there are "
            f"{_WRONG[near.side]}, and the upper bound is {100.0 * near.risk_bound:.2f}%."
        )

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        ends = ", ".join(f"{one.side} {one.text}: {percent(one.coverage)}" for one in self.points)
        size = rows_text(self.n, self.dropped)
        return f"Certified({ends or 'nothing'}, risk ≤ {self.risk:g}, {size})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        names = ("sentence", "certified", "threshold", "coverage", "risk_bound")
        return {name: plain(getattr(self, name)) for name in names} | super().to_dict()


def certify(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    risk: float = 0.1,
    confidence: float = CONFIDENCE,
    side: Asked = "above",
    cluster: Any = None,
    abstained: int = 0,
    **options: Unpack[ReadingOptions],
) -> Certified:
    """Threshold beyond which at most the share `risk` of decisions is wrong, with a guarantee.

    The guarantee holds for the threshold that is returned, although it was chosen on the same rows:
    the risk beyond it is above `risk` in at most 1 - `confidence` of all samples. No distribution is
    assumed, and the predictions need not be calibrated.

    Parameters
    ----------
    y_true : array, Sketch or Sketches
        1 where the answer was right (or the event came), else 0; or a Sketch, and no `y_prob`; or
        sketches by cluster with `cluster="question"`.
    y_prob : array
        Confidence in the answer (or probability of the event).
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns.
    risk : float
        The largest share of wrong decisions that is acceptable.
    confidence : float
        Confidence of the guarantee; with both sides, of both at once.
    side : {"above", "below", "both"}
        Answer above a threshold, where at least 1 - `risk` must be right (precision); decline below
        one, where at most `risk` may be right (negative predictive value); or both, and leave the band
        between to a human.
    cluster : array, optional
        What makes rows dependent, such as the question. The guarantee is then for new questions.
    abstained : int
        Cases that were declined from the start: they count in the coverage.
    **options
        How to read the arrays: see `calibrant.data.InputOptions`. Weights are refused.

    Returns
    -------
    Certified
        `.threshold` (None where nothing can be certified), `.coverage`, `.risk_bound`, `.sentence`.

    Notes
    -----
    Thresholds are tested from the most confident answers down, with exact binomial tests for independent
    rows; a test that succeeds passes its level on (`calibrant.decisions.certify` has the procedure). For
    clusters and for partial credit the test is a bet on their sums, which takes clusters to be no larger
    than the largest of them here. The bound of a single threshold that is fixed in advance is tighter; that
    of the threshold that looks best holds in far fewer samples than it claims. A model that is barely good
    enough, or only among its surest few, can be left with a higher threshold than it deserves, or without
    one.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then test: calibrating predictive algorithms to
    achieve risk control", 2021. Wiens, "A fixed sequence Bonferroni procedure for testing multiple
    endpoints", 2003. Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
    2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = certify(rng.random(2000) < p, p, risk=0.1)
    >>> print(found)
    Accept without review at 0.8223 or above: this covers 18% of the cases, and at most 10% of those are
    wrong (95% confidence).
    >>> certify([1] * 20, [0.9] * 20).threshold is None
    True
    """
    reading: InputOptions = options
    if data is not None:
        y_true, y_prob, cluster, reading = sample_from(
            data, y_true, y_prob, options, cluster=cluster
        )
    require_share("risk", risk)
    require_confidence(confidence)
    require_count("abstained", abstained, least=0)
    require_choice("side", side, get_args(Asked))
    require_one_sample(reading.get("multiclass"))
    level = (1.0 - confidence) / (2.0 if side == "both" else 1.0)
    sides: tuple[Side, ...] = ("above", "below") if side == "both" else (side,)
    rankings = [_testable(y_true, y_prob, one, cluster, reading) for one in sides]
    tests = [_tests(ranking, risk, level) for ranking in rankings]
    points: dict[Side, OperatingPoint | None] = {
        ranking.side: None if test is None else _point(ranking, made, test, level, abstained)
        for ranking, made, test in zip(rankings, tests, _widest(rankings, tests), strict=True)
    }
    nearest = [
        _point(ranking, made, int(np.argmin(made.p_value / made.level)), level, abstained)
        for ranking, made in zip(rankings, tests, strict=True)
        if made.place.size and not made.passed.size
    ]
    first = rankings[0]
    return Certified(
        above=points.get("above"),
        below=points.get("below"),
        risk=float(risk),
        confidence=float(confidence),
        side=side,
        n=first.n,
        abstained=int(abstained) + first.declined,
        clusters=None if cluster is None or first.clusters is None else first.clusters.clusters,
        rows_needed=_least_units(first, risk, level),
        nearest=nearest[0] if nearest else None,
        dropped=first.dropped,
    )


def _testable(y_true: Any, y_prob: Any, side: Side, cluster: Any, reading: InputOptions) -> Ranking:
    """Ranking with what its tests need: no weights; partial credit as clusters of one row."""
    ranking = rank(y_true, y_prob, side=side, cluster=cluster, partial_credit=True, **reading)
    clusters = ranking.clusters
    weighted = reading.get("sample_weight") is not None
    if weighted or (clusters is None and not ranking.whole):
        raise InputError(
            "`sample_weight` must be left out: with weights the number of errors has no distribution that "
            "a guarantee could rest on.",
            hint="Partial credit needs the rows: pass `labels='soft'` with them.",
        )
    if clusters is not None and ranking.whole and clusters.sizes.max() <= 1.0:
        return replace(ranking, clusters=None)  # independent rows, for which there are exact tests
    return ranking


# -- the sequence of tests -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Tests:
    """Tests that were made of "more than the risk is wrong beyond the threshold", from few rows to many.

    The risk, and arrays of the places in the ranking, of the levels of the tests and of their p-values.
    """

    risk: float
    place: NDArray[np.int64]
    level: Floats
    p_value: Floats

    @property
    def passed(self) -> NDArray[np.int64]:
        """Indices of the tests that reject; all of them are right at once with the confidence."""
        return np.flatnonzero(self.p_value <= self.level)


def _tests(ranking: Ranking, risk: float, level: float) -> _Tests:
    """Fallback procedure over the thresholds, with starts at doublings of the fewest rows."""
    total = float(ranking.rows[-1])
    size = 1.0 if ranking.clusters is None else total / ranking.clusters.clusters
    starts = 1
    while _least_units(ranking, risk, level / (starts + 1)) * size * 2.0**starts <= total:
        starts += 1
    first = _least_units(ranking, risk, level / starts) * size
    rows = np.minimum(first * 2.0 ** np.arange(starts), total)
    begin = np.searchsorted(ranking.rows, rows * ROUNDED)
    p_values = _p_values(ranking, risk, level)
    made, levels, carried = [], [], 0.0
    for start, end in zip(begin, [*begin[1:], p_values.size], strict=True):
        carried += level / starts  # of ties: starts at one threshold, which has the level of all
        failed = np.flatnonzero(p_values[start:end] > carried)
        stop = start + int(failed[0]) + 1 if failed.size else end
        made.append(np.arange(start, stop))
        levels.append(np.full(stop - start, carried))
        carried = 0.0 if failed.size else carried
    at = np.concatenate(made)
    return _Tests(risk, at, np.concatenate(levels), p_values[at])


def least_rows(risk: float, level: float) -> int:
    """Independent rows that it takes to certify anything, all of them right.

    Examples
    --------
    >>> least_rows(0.10, 0.05), least_rows(0.01, 0.05)
    (29, 299)
    """
    return int(np.ceil(np.log(level) / np.log1p(-risk) * (1.0 - 1e-12)))


def _least_units(ranking: Ranking, risk: float, level: float) -> int:
    """Rows, or clusters, that it takes to certify anything, all of them right."""
    clusters = ranking.clusters
    if clusters is None:
        return least_rows(risk, level)
    # The largest gain of a bet on a cluster of mean size.
    largest = LARGEST_STAKE / (1.0 - risk) * float(clusters.sizes.mean() / clusters.sizes.max())
    return int(np.ceil(-np.log(level) / np.log1p(largest * risk)))


def _p_values(ranking: Ranking, risk: float, level: float) -> Floats:
    """P-value of "more than `risk` are wrong" beyond each threshold.

    Of independent rows: the binomial chance of so few errors. Of clusters: 1 over what bets on "at most
    `risk`" make of 1, on average over stakes. If more are wrong, Σ errors - risk · rows of a cluster has a
    mean above 0, so that the product of 1 - λ (errors - risk · rows) over clusters has a mean below 1 for
    every stake λ > 0 that keeps it positive, and Markov's inequality holds. With V the variance of the sum, a
    stake of √(2 log(1/level) / V) wins soonest; stakes are halves of the largest, down to that of all rows.
    """
    clusters, rows, errors = ranking.clusters, ranking.rows, ranking.errors
    if clusters is None:
        from scipy.special import betaincc

        right = np.maximum(rows - errors, 0.5)  # where none is, the chance is 1
        return np.where(errors >= rows, 1.0, betaincc(errors + 1.0, right, risk))
    variance = float(rows[-1]) * risk * (1.0 - risk) * clusters.design_effect
    largest = LARGEST_STAKE / ((1.0 - risk) * float(clusters.sizes.max()))
    halves = max(math.floor(math.log2(largest * math.sqrt(-0.5 * variance / math.log(level)))), 0)
    order = np.argsort(clusters.code, kind="stable")  # a cluster's entries keep their order
    place, surplus = clusters.place[order], (clusters.errors - risk * clusters.rows)[order]
    first = np.flatnonzero(np.diff(clusters.code[order], prepend=-1))
    sums = np.cumsum(surplus)
    sums -= np.repeat(sums[first] - surplus[first], np.diff(first, append=sums.size))
    wealth = np.empty((halves + 1, rows.size))
    for k in range(halves + 1):
        logs = np.log1p(-largest * 0.5**k * sums)
        change = np.diff(logs, prepend=0.0)
        change[first] = logs[first]
        wealth[k] = np.cumsum(np.bincount(place, change, rows.size))
    mean = np.logaddexp.reduce(wealth, axis=0) - math.log(halves + 1.0)
    return np.asarray(np.exp(-np.maximum(mean, 0.0)))


def _point(
    ranking: Ranking, tests: _Tests, test: int, level: float, abstained: int
) -> OperatingPoint:
    """Operating point of a test; its bound is the largest share of wrong rows that is not rejected."""
    place, own = int(tests.place[test]), float(tests.level[test])
    rows, errors = float(ranking.rows[place]), float(ranking.errors[place])
    bound = 1.0
    if errors < rows and ranking.clusters is None:
        from scipy.special import betaincinv

        bound = float(betaincinv(errors + 1.0, rows - errors, 1.0 - own))
    elif errors < rows:
        from scipy.optimize import brentq

        def excess(share: float) -> float:
            p_value = float(_p_values(ranking, share, level)[place])
            return math.log(max(p_value, 1e-300) / own)

        least = max(errors / rows, 1e-9)
        low, high = (least, tests.risk) if excess(tests.risk) <= 0.0 else (tests.risk, 1.0 - 1e-9)
        if excess(low) * excess(high) <= 0.0:
            bound = float(brentq(excess, low, high))
    return OperatingPoint(
        side=ranking.side,
        threshold=float(ranking.threshold[place]),
        coverage=rows / ranking.cases(abstained),
        rows=rows,
        errors=errors,
        risk_bound=bound,
        next_prediction=float(ranking.next_prediction[place]),
    )


def _widest(rankings: list[Ranking], tests: list[_Tests]) -> list[int | None]:
    """Tests of each side that decide most cases together, and none of them twice."""
    best: list[int | None] = [int(t.passed[-1]) if t.passed.size else None for t in tests]
    if None in best or len(best) == 1:
        return best
    (above, below), (upper, lower) = rankings, tests
    ends = above.threshold[upper.place[upper.passed]], below.threshold[lower.place[lower.passed]]
    # The last lower threshold beneath each upper one: a pair decides most where the two meet.
    beneath = np.searchsorted(ends[1], ends[0]) - 1
    fits = np.flatnonzero(beneath >= 0)
    if not fits.size:
        return [best[0], None]
    first, second = upper.passed[fits], lower.passed[beneath[fits]]
    decided = above.rows[upper.place[first]] + below.rows[lower.place[second]]
    # Where both sides could decide everything, they meet where both are safest.
    p_value = np.maximum(upper.p_value[first], lower.p_value[second])
    k = int(np.lexsort((p_value, -decided))[0])
    return [int(first[k]), int(second[k])]
