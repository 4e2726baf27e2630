"""A certified operating point: the threshold beyond which at most so many decisions are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import Any, Literal, Unpack, get_args

import numpy as np

from calibrant._arguments import CONFIDENCE, require_choice
from calibrant._format import percent
from calibrant.data.rows import Dropped, InputOptions, require_one_sample
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.decisions.ranking import (
    Ranking,
    Side,
    rank,
    rank_pairs,
    require_abstained,
    require_risk,
    shortest,
)
from calibrant.decisions.risk_tests import ThresholdTest, threshold_tests, upper_bound
from calibrant.decisions.testing_order import least_units
from calibrant.errors import InputError, Option
from calibrant.inference.assess import read_clustered
from calibrant.inference.dependence import warn_of_repeated_cells, warn_of_repeated_rows
from calibrant.inference.interval import require_confidence
from calibrant.measures.result_record import Record, plain, rows_text

__all__ = ["Certified", "OperatingPoint", "certify"]

Asked = Literal["above", "below", "both"]
NEARLY = 0.99
_VERBS: Mapping[Side, str] = {"above": "Accept", "below": "Reject"}
_WRONG: Mapping[Side, str] = {"above": "wrong", "below": "right"}


@dataclass(frozen=True)
class OperatingPoint(Record):
    """One side of a decision: what is decided, and how often that is wrong.

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
        The nearest prediction here that it does not decide; infinite where it decides all.
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
        return shortest(self.threshold, self.next_prediction, self.side)

    @property
    def risk(self) -> float:
        """Share of the decided rows that is wrong."""
        return self.errors / self.rows


@dataclass(frozen=True)
class Certified:
    """Where one may act alone, with a guarantee on how often that is wrong.

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
    dropped: Mapping[str, int] = field(default_factory=Dropped)

    @property
    def points(self) -> tuple[OperatingPoint, ...]:
        """The sides that are certified."""
        return tuple(point for point in (self.above, self.below) if point is not None)

    @property
    def certified(self) -> bool:
        """Whether every side that was asked for has a threshold."""
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
        """The result for people."""
        said = [
            f"{_VERBS[point.side]} without review at {point.text} or {point.side}: this covers "
            f"{percent(point.coverage)} of the cases, and at most {percent(self.risk)} of those are "
            f"{_WRONG[point.side]} ({percent(self.confidence)} confidence)."
            for point in self.points
        ]
        if self.side == "both" and said:
            said.append(f"Leave the other {percent(max(1.0 - self.coverage, 0.0))} to a human.")
        if not self.certified:
            said.append(self._why_not())
        return " ".join(said)

    def _why_not(self) -> str:
        both: tuple[Side, ...] = ("above", "below")
        sides = [s for s in both if self.side in (s, "both")]
        missing = [s for s in sides if getattr(self, s) is None]
        units = "rows" if self.clusters is None else "clusters"
        size = self.n if self.clusters is None else self.clusters
        which = "" if missing == sides else f" to {_VERBS[missing[0]].lower()} {missing[0]} it"
        start = f"No threshold{which} can be certified"
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
            f"{_WRONG[near.side]}, and the upper bound is {self._above_risk(near.risk_bound)}."
        )

    def _above_risk(self, bound: float) -> str:
        """The bound with as many decimals as tell it from the risk that was asked for."""
        text = percent(bound)
        return f"{100.0 * bound:.2f}%" if text == percent(self.risk) else text

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        ends = ", ".join(
            f"{point.side} {point.text}: {percent(point.coverage)}" for point in self.points
        )
        size = rows_text(self.n, self.dropped)
        return f"Certified({ends or 'nothing'}, risk ≤ {self.risk:g}, {size})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        own = {
            "sentence": self.sentence,
            "certified": self.certified,
            "threshold": self.threshold,
            "coverage": self.coverage,
            "risk_bound": self.risk_bound,
        }
        return {**own, **{item.name: plain(getattr(self, item.name)) for item in fields(self)}}


def certify(
    y_true: Any,
    y_prob: Any = None,
    *,
    risk: float = 0.1,
    confidence: float = CONFIDENCE,
    side: Asked = "above",
    cluster: Any = None,
    abstained: int = 0,
    **options: Unpack[InputOptions],
) -> Certified:
    """The threshold beyond which at most the share `risk` of decisions is wrong, with a guarantee.

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
        How to read the arrays: see `InputOptions`. Weights are refused.

    Returns
    -------
    Certified
        `.threshold` (None where nothing can be certified), `.coverage`, `.risk_bound`, `.sentence`.

    Notes
    -----
    Thresholds are tested one after the other, in an order that is fixed before any outcome that their
    tests use is looked at, and a test that succeeds passes its level on: exact binomial tests for
    independent rows; for clusters (and for partial credit) a bet on their sums, which takes clusters to
    be no larger than the largest of them here. With independent rows, the least confident say where to
    start: the more of them is wrong, the fewer rows. Some of the level is kept for thresholds among those
    that were looked at, for starts before and after, and for a fallback where the surest answers are bad.
    With clusters, few rows or few distinct predictions, testing starts at a twentieth, a fifth and half of
    the rows, with .6, .3 and .1 of the level. The bound of a single threshold that is fixed in advance is
    tighter; that of the threshold that looks best holds in far fewer samples than it says. What is given
    up is coverage: a model that is barely good enough, everywhere or only among its surest few, can be
    left with a higher threshold than it deserves, or without one.

    References
    ----------
    Wiens, "A fixed sequence Bonferroni procedure for testing multiple endpoints", 2003. Angelopoulos,
    Bates, Candès, Jordan and Lei, "Learn then test: calibrating predictive algorithms to achieve risk
    control", 2021.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = certify(rng.random(2000) < p, p, risk=0.1)
    >>> print(found)  # doctest: +ELLIPSIS
    Accept without review at 0.8... or above: this covers 2..., and at most 10... are wrong (95...).
    >>> certify([1] * 20, [0.9] * 20).threshold is None
    True
    """
    require_risk(risk)
    require_confidence(confidence)
    require_abstained(abstained)
    require_choice("side", side, get_args(Asked))
    require_one_sample(options.get("multiclass"), "certify")
    level = (1.0 - confidence) / (2.0 if side == "both" else 1.0)
    rankings = _rankings(y_true, y_prob, side, cluster, options)
    tests = [threshold_tests(ranking, risk, level) for ranking in rankings]
    chosen = _widest(rankings, tests)
    points = {
        ranking.side: None if test is None else _point(ranking, test, abstained)
        for ranking, test in zip(rankings, chosen, strict=True)
    }
    failed = [
        _point(ranking, min(made, key=lambda test: test.p_value / test.level), abstained)
        for ranking, made in zip(rankings, tests, strict=True)
        if not any(test.passed for test in made)
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
        rows_needed=least_units(first, risk, level),
        nearest=failed[0] if failed else None,
        dropped=first.dropped,
    )


def _rankings(
    y_true: Any, y_prob: Any, side: Asked, cluster: Any, options: InputOptions
) -> list[Ranking]:
    """The rows in order, once for each side that is asked for."""
    sides: tuple[Side, ...] = ("above", "below") if side == "both" else (side,)
    weighted = options.get("sample_weight") is not None
    if isinstance(y_true, Sketches | Sketch):
        rankings = [rank(y_true, y_prob, side=one, cluster=cluster, **options) for one in sides]
        weighted = not rankings[0].whole
        if isinstance(y_true, Sketch) and not weighted:
            warn_of_repeated_cells(y_true, stacklevel=4)
    else:
        pairs, codes = read_clustered(y_true, y_prob, cluster, **options)
        weighted = pairs.raw_weight is not None
        if codes is None and not weighted:
            warn_of_repeated_rows(pairs, stacklevel=4)
        if codes is None and pairs.soft:  # partial credit is no binomial count
            codes = (np.arange(pairs.n), pairs.n)
        rankings = [rank_pairs(pairs, codes, side=one) for one in sides]
    if weighted:
        raise InputError(
            "must be left out: with weights the number of errors has no distribution that a guarantee "
            "could rest on",
            argument="sample_weight",
            cure="Partial credit needs the rows: pass {labels} with them."
            if isinstance(y_true, Sketch | Sketches)
            else (),
            labels=Option("labels", "soft"),
        )
    return [_independent(ranking) for ranking in rankings]


def _independent(ranking: Ranking) -> Ranking:
    """Clusters of one row each are independent rows, for which there are exact tests."""
    clusters = ranking.clusters
    if clusters is None or not ranking.whole or clusters.largest > 1.0:
        return ranking
    return replace(ranking, clusters=None)


def _point(ranking: Ranking, test: ThresholdTest, abstained: int) -> OperatingPoint:
    rows = float(ranking.rows[test.place])
    return OperatingPoint(
        side=ranking.side,
        threshold=float(ranking.threshold[test.place]),
        coverage=rows / ranking.cases(abstained),
        rows=rows,
        errors=float(ranking.errors[test.place]),
        risk_bound=upper_bound(ranking, test.place, test.level),
        next_prediction=float(ranking.next_prediction[test.place]),
    )


def _widest(
    rankings: list[Ranking], tests: list[list[ThresholdTest]]
) -> list[ThresholdTest | None]:
    """Of the thresholds that passed, those that decide most cases, and none of them twice."""
    passed = [[test for test in made if test.passed] for made in tests]
    best: list[ThresholdTest | None] = [made[-1] if made else None for made in passed]
    if len(best) == 1 or best[0] is None or best[1] is None:
        return best
    above, below = rankings
    if above.threshold[best[0].place] > below.threshold[best[1].place]:
        return best
    lower = np.array([below.threshold[test.place] for test in passed[1]])
    pairs: list[tuple[float, float, ThresholdTest, ThresholdTest]] = []
    for test in passed[0]:
        beneath = int(np.searchsorted(lower, above.threshold[test.place])) - 1
        if (
            beneath >= 0
        ):  # the last lower threshold beneath it: a pair decides most where the two meet
            other = passed[1][beneath]
            decided = float(above.rows[test.place] + below.rows[other.place])
            pairs.append((decided, max(test.p_value, other.p_value), test, other))
    if not pairs:
        return [best[0], None]
    most = max(pair[0] for pair in pairs)
    # Where both sides could decide everything, meet where both are safest.
    chosen = min((pair for pair in pairs if pair[0] >= NEARLY * most), key=lambda pair: pair[1])
    return [*chosen[2:]]
