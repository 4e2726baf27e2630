"""Selective prediction: the risk-coverage curve and the areas under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import log
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    is_number,
    require_confidence,
    require_count,
    require_share,
)
from calibrant._format import aligned, decimals, html_table
from calibrant.data.rows import InputOptions
from calibrant.decisions.ranking import Ranking, rank
from calibrant.errors import TooFewRows, invalid
from calibrant.inference.calibration_test import Interval
from calibrant.inference.quantiles import exact_binomial, normal_quantile
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import frame_of, plain, rows_text

Floats = NDArray[np.float64]

CURVE_POINTS = 1024


class RiskCurve(NamedTuple):
    """Risk-coverage curve: the share of cases answered and the share of them that is wrong, by threshold.

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
    """Areas under the risk-coverage curve, with intervals, and the curve.

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
    risk: float
    curve: RiskCurve
    n: int
    abstained: int
    clusters: int | None
    confidence: float
    dropped: Mapping[str, int] = field(default_factory=dict)
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
        if not is_number(coverage) or not 0.0 < coverage <= self.coverage + 1e-12:
            raise invalid(
                "coverage",
                f"lie between 0 and the share of the cases that were answered, {self.coverage:g}",
                coverage,
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
        require_share("risk", risk)
        enough = np.flatnonzero(self._errors <= risk * self._rows * (1.0 + 1e-12))
        return float(self._rows[enough[-1]] / self._cases) if enough.size else 0.0

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame of the risk-coverage curve; see `frame_of` for the backend."""
        return frame_of(self.curve._asdict(), backend)

    def rows(self) -> list[tuple[str, str]]:
        """Lines of the table: name and text."""
        share = f"  {100 * self.confidence:g}% interval"

        def ends(interval: Interval) -> str:
            return f"{decimals(interval.low)} to {decimals(interval.high)}"

        return [
            ("AURC (mean of risks)", decimals(self.aurc)),
            (share, ends(self.aurc_interval)),
            ("  excess over the best order", decimals(self.excess_aurc)),
            ("AURC (trapezoid)", decimals(self.aurc_trapezoid)),
            ("AUGRC", decimals(self.augrc)),
            (share, ends(self.augrc_interval)),
            ("risk of all answers", decimals(self.risk)),
            *(
                (f"  at {100 * wanted:g}% coverage", decimals(self.risk_at(wanted)))
                for wanted in (0.8, 0.5, 0.2)
                if wanted <= self.coverage
            ),
            ("predictions read as", "confidence in an answer; outcome 1: it was right"),
            ("rows", f"{self.n:,}"),
            *([] if self.clusters is None else [("  clusters", f"{self.clusters:,}")]),
            *([("  abstained", f"{self.abstained:,}")] if self.abstained else []),
            *(("  dropped", f"{k:,}: {reason}") for reason, k in self.dropped.items()),
        ]

    def __str__(self) -> str:
        return aligned(self.rows(), left=(0, 1))

    def __repr__(self) -> str:
        return (
            f"Selective(AURC {decimals(self.aurc)}, excess {decimals(self.excess_aurc)}, AUGRC "
            f"{decimals(self.augrc)}, risk {decimals(self.risk)}, {rows_text(self.n, self.dropped)})"
        )

    def _repr_html_(self) -> str:
        return html_table([("quantity", "value"), *self.rows()])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        names = [item.name for item in fields(self) if not item.name.startswith("_")]
        numbers = {name: plain(getattr(self, name)) for name in [*names, "coverage"]}
        return numbers | {"curve": plain(self.curve._asdict())}


def selective(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    cluster: Any = None,
    abstained: int = 0,
    confidence: float = CONFIDENCE,
    **options: Unpack[ReadingOptions],
) -> Selective:
    """Risk-coverage curve of answers and their confidences, and the areas under it.

    Parameters
    ----------
    y_true : array, Sketch or Sketches
        1 for a right answer, 0 for a wrong one; or a Sketch, and no `y_prob`; or sketches by cluster.
    y_prob : array
        Confidence in each answer, which the probability of an event is not. For a classifier,
        `calibrant.confidence(labels, probabilities)` gives both columns, also of two classes.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns.
    cluster : array, optional
        What makes rows dependent, such as the question: intervals are then those of clusters.
    abstained : int
        Cases that were declined: they lower the coverage, and nothing is known of their risk.
    confidence : float
        Confidence of the intervals.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

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
    reading: InputOptions = options
    if data is not None:
        y_true, y_prob, cluster, reading = sample_from(
            data, y_true, y_prob, options, cluster=cluster
        )
    require_confidence(confidence)
    require_count("abstained", abstained, least=0)
    ranking = rank(y_true, y_prob, cluster=cluster, **reading)
    return selective_of(ranking, abstained=abstained, confidence=confidence)


def selective_of(ranking: Ranking, *, abstained: int = 0, confidence: float) -> Selective:
    """Risk-coverage curve and areas of rows that are ranked already."""
    if ranking.n < 2:
        raise TooFewRows(f"A risk-coverage curve needs at least two rows; there are {ranking.n}.")
    ties = _Ties(ranking)
    total, wrong = float(ranking.rows[-1]), float(ranking.errors[-1])
    right, risks = total - wrong, ties.sum_of_risks
    aurc, augrc = risks / total, ties.generalised_area / total**2
    best = wrong - right * (_harmonic(total) - _harmonic(right))  # all right answers first
    if wrong in (0.0, total):
        limits = _limits_where_all_agree(ranking, confidence)
    else:
        degrees = np.inf if ranking.clusters is None else ranking.clusters.clusters - 1.0
        z = normal_quantile(0.5 + 0.5 * confidence, degrees)
        limits = [
            (max(value - z * error, 0.0), min(value + z * error, 1.0))
            for value, error in zip((aurc, augrc), ties.standard_errors(), strict=True)
        ]
    first = float(ties.wrong[0] / ties.rows[0])
    return Selective(
        aurc=aurc,
        aurc_trapezoid=(risks - 0.5 * (first + wrong / total)) / (total - 1.0),
        excess_aurc=max(aurc - float(best) / total, 0.0),
        augrc=augrc,
        augrc_trapezoid=(augrc * total - 0.5 * first / total) / (total - 1.0),
        aurc_interval=Interval(*limits[0], confidence),
        augrc_interval=Interval(*limits[1], confidence),
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


# -- areas -----------------------------------------------------------------------------------------


def _harmonic(count: Floats | float) -> Any:
    """Harmonic number H(n) = 1 + 1/2 + ... + 1/n, and between whole numbers ψ(n + 1) + γ."""
    from scipy.special import digamma

    return digamma(np.asarray(count) + 1.0)


class _Ties:
    """Ties of a ranking: rows and errors before each, and in it. Areas are means over the orders within."""

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        self.before = np.append(0.0, ranking.rows[:-1])
        self.wrong_before = np.append(0.0, ranking.errors[:-1])
        self.rows = ranking.rows - self.before
        self.wrong = ranking.errors - self.wrong_before
        self.steps = _harmonic(ranking.rows) - _harmonic(self.before)

    @property
    def sum_of_risks(self) -> float:
        """Sum over k of the expected risk among the first k rows.

        In a tie of m rows with e errors, after a rows with E errors, the k-th row has
        (E + (k-a) e/m) / k errors expected, so that its rows add e + (E - a e/m) (H(a+m) - H(a)).
        """
        surplus = self.wrong_before - self.before * self.wrong / self.rows
        return float((self.wrong + surplus * self.steps).sum())

    @property
    def generalised_area(self) -> float:
        """Area under the cumulative errors over the rows, straight within ties."""
        return float((self.rows * (self.wrong_before + 0.5 * self.wrong)).sum())

    def standard_errors(self) -> tuple[float, float]:
        """Standard errors of AURC and AUGRC, by the influence of each row.

        With c the share of rows that are at least as confident, AURC is E[-e log c] and AUGRC E[e (1-c)];
        a row adds its own term, and moves every row below it down by one.
        """
        total = self.ranking.rows[-1]
        middle = (self.before + 0.5 * self.rows) / total
        from_below = np.cumsum((self.wrong / middle)[::-1])[::-1] / total
        count_below = np.cumsum(self.wrong[::-1])[::-1] / total
        errors = []
        for own, moved in ((-np.log(middle), from_below), (1.0 - middle, count_below)):
            centre = float((self.wrong * own - self.rows * moved).sum() / total)
            errors.append(self._standard_error(own - moved - centre, -moved - centre))
        return errors[0], errors[1]

    def _standard_error(self, if_wrong: Floats, if_right: Floats) -> float:
        """Standard error of a mean of these influences, by threshold and outcome."""
        total, entries = float(self.ranking.rows[-1]), self.ranking.clusters
        if entries is None:
            squared = np.diff(self.ranking.squared, prepend=0.0)
            share = self.wrong / self.rows
            each = share * if_wrong**2 + (1.0 - share) * if_right**2
            return float(np.sqrt(squared @ each)) / total
        right = entries.rows - entries.errors
        influence = entries.errors * if_wrong[entries.place] + right * if_right[entries.place]
        sums = np.bincount(entries.code, influence, entries.clusters)
        factor = entries.clusters / (entries.clusters - 1.0)
        return float(np.sqrt((sums @ sums) * factor)) / total


def _limits_where_all_agree(ranking: Ranking, confidence: float) -> list[tuple[float, float]]:
    """Limits of AURC and AUGRC where all answers are right, or all are wrong.

    The other kind may be as frequent as an exact bound on its share u, and lie where it matters most:
    among the surest answers, where errors are ∫ -log c dc and ∫ (1 - c) dc, c from 0 to u.
    """
    units = float(ranking.rows[-1] ** 2 / ranking.squared[-1])
    if ranking.clusters is not None:
        units /= ranking.clusters.design_effect
    u = float(exact_binomial(0.0, units, confidence)[1])
    aurc, augrc = u * (1.0 - log(u)), u - 0.5 * u**2
    if ranking.errors[-1] > 0:
        return [(1.0 - aurc, 1.0), (0.5 - augrc, 0.5)]
    return [(0.0, aurc), (0.0, augrc)]


# -- the curve -------------------------------------------------------------------------------------


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
