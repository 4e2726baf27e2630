"""Selective prediction: how often answers are wrong when only the most confident ones are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, is_number
from calibrant._format import decimals
from calibrant.data.rows import Dropped, InputOptions
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.decisions.ranking import Ranking, rank, rank_pairs, require_abstained, require_risk
from calibrant.decisions.risk_areas import (
    area,
    best_sum,
    limits_where_all_agree,
    order_error,
    standard_errors,
    sum_of_risks,
)
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import read_clustered
from calibrant.inference.dependence import warn_of_repeated_cells, warn_of_repeated_rows
from calibrant.inference.interval import Interval, normal_quantile, require_confidence
from calibrant.inference.quantiles import exact_binomial
from calibrant.measures.result_record import plain, rows_text

__all__ = ["RiskCurve", "Selective", "selective", "selective_of"]

Floats = NDArray[np.float64]

CURVE_POINTS = 1024


class RiskCurve(NamedTuple):
    """The risk-coverage curve: at each threshold, what is answered and how much of it is wrong.

    Attributes
    ----------
    threshold : float64[k]
        Answer at or above it; decreasing.
    coverage : float64[k]
        Share of the cases that are answered.
    risk : float64[k]
        Share of these that is wrong.
    low, high : float64[k]
        Exact (Clopper-Pearson) limits for the risk beyond this threshold, for each point by itself.
    """

    threshold: Floats
    coverage: Floats
    risk: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Selective:
    """How well confidence tells right answers from wrong ones.

    Attributes
    ----------
    aurc : float
        Area under the risk-coverage curve: the mean over k of the risk among the k most confident.
    aurc_trapezoid : float
        The same area by the trapezoid rule from the first row to the last, stretched to [0, 1]: the
        convention of torch-uncertainty.
    excess_aurc : float
        `aurc` less that of an order that puts all right answers first.
    augrc : float
        Area under the generalised risk (wrong and answered, of all) over coverage, from 0 to 1.
    augrc_trapezoid : float
        The same in torch-uncertainty's convention.
    aurc_interval, augrc_interval : Interval
        For the population.
    order_error : float
        How far `aurc` could be off because a sketch does not know the order inside its cells; 0 from
        arrays.
    risk : float
        Share of all answers that is wrong.
    curve : RiskCurve
        At most 1,024 points of the curve.
    n, abstained : int
        Answers, and cases that were declined: they lower the coverage.
    clusters : int or None
        Clusters, if rows depend on each other.
    confidence : float
        Confidence of the intervals.
    dropped : mapping
        Rows that were left out, by reason.
    """

    aurc: float
    aurc_trapezoid: float
    excess_aurc: float
    augrc: float
    augrc_trapezoid: float
    aurc_interval: Interval
    augrc_interval: Interval
    order_error: float
    risk: float
    curve: RiskCurve
    n: int
    abstained: int
    clusters: int | None
    confidence: float
    dropped: Mapping[str, int] = field(default_factory=Dropped)
    _rows: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    _errors: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    def __post_init__(self) -> None:
        for array in (*self.curve, self._rows, self._errors):
            array.flags.writeable = False

    @property
    def coverage(self) -> float:
        """Share of the cases that were answered at all: neither declined nor dropped."""
        return float(self._rows[-1]) / self._cases

    @property
    def _cases(self) -> float:
        return float(self._rows[-1]) + self.abstained + sum(self.dropped.values())

    def risk_at(self, coverage: float) -> float:
        """Share of wrong answers among the most confident ones that make up this coverage.

        The number of answers is rounded up; among equal confidences, the order is an average one.

        Examples
        --------
        >>> selective([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]).risk_at(0.6)
        0.3333333333333333
        """
        if not is_number(coverage) or not 0.0 < coverage <= 1.0:
            raise InputError(
                "must lie between 0 and 1",
                argument="coverage",
                seen=coverage,
                cure="Pass a share of the cases, such as 0.8.",
            )
        if coverage > self.coverage + 1e-12:
            raise InputError(
                "must be at most the share of the cases that were answered, {share}",
                argument="coverage",
                seen=coverage,
                share=self.coverage,
                cure="Pass a smaller share.",
            )
        total = float(self._rows[-1])
        wanted = coverage * self._cases
        wanted = float(np.clip(np.ceil(wanted * (1.0 - 1e-12)), min(1.0, total), total))
        rows = np.append(0.0, self._rows)
        return float(np.interp(wanted, rows, np.append(0.0, self._errors)) / wanted)

    def coverage_at(self, risk: float) -> float:
        """The largest coverage that a threshold reaches with at most this risk among the rows here.

        It is an estimate, and an optimistic one, since the threshold is the best of many. What can be
        promised of new cases is `certify`'s.

        Examples
        --------
        >>> selective([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]).coverage_at(0.3)
        0.8
        """
        require_risk(risk)
        enough = np.flatnonzero(self._errors <= risk * self._rows * (1.0 + 1e-12))
        return float(self._rows[enough[-1]] / self._cases) if enough.size else 0.0

    def rows(self) -> list[tuple[str, str]]:
        """What the text table and the HTML table show, line by line."""
        share = f"{100 * self.confidence:g}%"

        def ends(interval: Interval) -> str:
            return f"{decimals(interval.low)} to {decimals(interval.high)}"

        lines = [
            ("AURC (mean of risks)", decimals(self.aurc)),
            (f"  {share} interval", ends(self.aurc_interval)),
            ("  excess over the best order", decimals(self.excess_aurc)),
            ("AURC (trapezoid)", decimals(self.aurc_trapezoid)),
            ("AUGRC", decimals(self.augrc)),
            (f"  {share} interval", ends(self.augrc_interval)),
            ("risk of all answers", decimals(self.risk)),
        ]
        lines += [
            (f"  at {100 * wanted:g}% coverage", decimals(self.risk_at(wanted)))
            for wanted in (0.8, 0.5, 0.2)
            if wanted <= self.coverage
        ]
        size = f"{self.n:,}"
        if self.clusters is not None:
            size += f" in {self.clusters:,} clusters"
        lines.append(("rows", size))
        if self.abstained:
            lines.append(("  abstained", f"{self.abstained:,}"))
        lines += [("  dropped", f"{k:,}: {reason}") for reason, k in self.dropped.items()]
        return lines

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:<{width}}  {text}" for name, text in self.rows())

    def __repr__(self) -> str:
        return (
            f"Selective(AURC {decimals(self.aurc)}, excess {decimals(self.excess_aurc)}, AUGRC "
            f"{decimals(self.augrc)}, risk {decimals(self.risk)}, {rows_text(self.n, self.dropped)})"
        )

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name.strip())}</th><td>{escape(text)}</td></tr>"
            for name, text in self.rows()
        )
        return f"<table>{body}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        names = (
            "aurc",
            "aurc_trapezoid",
            "excess_aurc",
            "augrc",
            "augrc_trapezoid",
            "aurc_interval",
            "augrc_interval",
            "order_error",
            "risk",
            "coverage",
            "n",
            "abstained",
            "clusters",
            "confidence",
            "dropped",
        )
        curve = {name: plain(column) for name, column in self.curve._asdict().items()}
        return {**{name: plain(getattr(self, name)) for name in names}, "curve": curve}


def selective(
    y_true: Any,
    y_prob: Any = None,
    *,
    cluster: Any = None,
    abstained: int = 0,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> Selective:
    """The risk-coverage curve of answers and their confidences, and the areas under it.

    Parameters
    ----------
    y_true : array, Sketch or Sketches
        1 for a right answer, 0 for a wrong one; or a Sketch, and no `y_prob`; or sketches by cluster.
    y_prob : array
        Confidence in each answer. For a classifier, `calibrant.confidence(labels, probabilities)` gives
        both columns.
    cluster : array, optional
        What makes rows dependent, such as the question: intervals are then those of clusters.
    abstained : int
        Cases that were declined: they lower the coverage, and nothing is known of their risk.
    confidence : float
        Confidence of the intervals.
    **options
        How to read the arrays (see `InputOptions`).

    Returns
    -------
    Selective
        Print it for a table; `.risk_at(0.8)`, `.coverage_at(0.05)`, `.curve`.

    Notes
    -----
    Confidences that are equal have no order of their own: every number is the mean over all orders of
    the rows that tie. AURC and its relatives measure the order alone. A model can have a small AURC and
    be badly calibrated, and the other way round: read it beside `assess`.

    References
    ----------
    Geifman and El-Yaniv, "Selective classification for deep neural networks", 2017. Geifman, Uziel and
    El-Yaniv, "Bias-reduced uncertainty estimation", 2019 (excess AURC). Traub et al., "Overcoming
    common flaws in the evaluation of selective classification systems", 2024 (AUGRC).

    Examples
    --------
    >>> found = selective([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> found
    Selective(AURC 0.1967, excess 0.0667, AUGRC 0.1200, risk 0.4000, n=5)
    """
    require_confidence(confidence)
    require_abstained(abstained)
    if isinstance(y_true, Sketch | Sketches):
        ranking = rank(y_true, y_prob, cluster=cluster, **options)
        if isinstance(y_true, Sketch) and ranking.whole:
            warn_of_repeated_cells(y_true, stacklevel=3)
    else:
        pairs, codes = read_clustered(y_true, y_prob, cluster, **options)
        if codes is None and pairs.raw_weight is None:
            warn_of_repeated_rows(pairs, stacklevel=3)
        ranking = rank_pairs(pairs, codes, side="above")
    return selective_of(ranking, abstained=abstained, confidence=confidence)


def selective_of(ranking: Ranking, *, abstained: int = 0, confidence: float) -> Selective:
    """The same of rows that are ranked already."""
    if ranking.n < 2:
        raise TooFewRows(
            "A risk-coverage curve needs at least two rows", seen=ranking.n, cure="Pass more rows."
        )
    total, wrong = float(ranking.rows[-1]), float(ranking.errors[-1])
    risks, first = sum_of_risks(ranking)
    degrees = np.inf if ranking.clusters is None else ranking.clusters.clusters - 1.0
    generalised = area(ranking) / total**2
    z = normal_quantile(0.5 + 0.5 * confidence, degrees)
    aurc_error, augrc_error = standard_errors(ranking)
    aurc = risks / total
    intervals = (
        _interval(aurc, z * aurc_error, confidence),
        _interval(generalised, z * augrc_error, confidence),
    )
    if wrong in (0.0, total):
        ends = limits_where_all_agree(ranking, confidence)
        intervals = (Interval(*ends[0], confidence), Interval(*ends[1], confidence))
    return Selective(
        aurc=aurc,
        aurc_trapezoid=(risks - 0.5 * (first + wrong / total)) / (total - 1.0),
        excess_aurc=max(aurc - best_sum(total, wrong) / total, 0.0),
        augrc=generalised,
        augrc_trapezoid=(generalised * total - 0.5 * first / total) / (total - 1.0),
        aurc_interval=intervals[0],
        augrc_interval=intervals[1],
        order_error=0.0 if ranking.exact else order_error(ranking) / total,
        risk=wrong / total,
        curve=_curve(ranking, abstained, confidence),
        n=ranking.n,
        abstained=int(abstained) + ranking.declined,
        clusters=None if ranking.clusters is None else ranking.clusters.clusters,
        confidence=float(confidence),
        dropped=ranking.dropped,
        _rows=ranking.rows,
        _errors=ranking.errors,
    )


def _interval(value: float, error: float, confidence: float) -> Interval:
    return Interval(max(value - error, 0.0), min(value + error, 1.0), confidence)


def _curve(ranking: Ranking, abstained: int, confidence: float) -> RiskCurve:
    places = _shown(ranking)
    rows, errors = ranking.rows[places], ranking.errors[places]
    risk = errors / rows
    units = rows**2 / ranking.squared[places]
    if ranking.clusters is not None:
        units = _effective_rows(ranking, places, risk, units)
    low, high = exact_binomial(risk * units, units, confidence)
    coverage = rows / ranking.cases(abstained)
    return RiskCurve(ranking.threshold[places], coverage, risk, low, high)


def _shown(ranking: Ranking) -> NDArray[np.int64]:
    """Thresholds to show: all, or evenly many in the share of rows and, near 0, in its logarithm."""
    size = ranking.rows.size
    if size <= CURVE_POINTS:
        return np.arange(size)
    total = ranking.rows[-1]
    even = np.linspace(0.0, total, CURVE_POINTS * 3 // 4)
    early = np.geomspace(ranking.rows[0], total, CURVE_POINTS // 4)
    targets = np.concatenate([even, early]) * (1.0 - 1e-12)
    return np.unique(np.minimum(np.searchsorted(ranking.rows, targets), size - 1))


def _effective_rows(
    ranking: Ranking, places: NDArray[np.int64], risk: Floats, rows: Floats
) -> Floats:
    """Independent rows that would make the risk at each threshold as uncertain as clusters do."""
    clusters = ranking.clusters
    assert clusters is not None
    held, wrong = np.zeros(clusters.clusters), np.zeros(clusters.clusters)
    ends = np.searchsorted(clusters.place, places, side="right")
    effective, start = rows.copy(), 0
    for k, end in enumerate(ends):
        piece = slice(start, int(end))
        held += np.bincount(clusters.code[piece], clusters.rows[piece], held.size)
        wrong += np.bincount(clusters.code[piece], clusters.errors[piece], held.size)
        start = int(end)
        together = float(((wrong - risk[k] * held) ** 2).sum())
        alone = float(held.sum() * risk[k] * (1.0 - risk[k]))
        # No error yet, or errors only: as if rows of a cluster always agreed.
        agree = float((held**2).sum() / held.sum())
        inflation = together / alone if alone > 0 else agree
        effective[k] = rows[k] / max(inflation, 1.0)
    return effective
