"""Scores split into miscalibration, discrimination and uncertainty by isotonic regression (CORP), or bins.

The Murphy curve splits the Brier score by decision thresholds as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.io.from_data import points_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures._chains import pooled
from calibrant.measures.binned import DEFAULT_BINS, Strategy, bins_of
from calibrant.measures.result_record import Record, frame_of, rows_text

Floats = NDArray[np.float64]
Score = Literal["brier", "log"]


@dataclass(frozen=True, repr=False)
class Decomposition(Record):
    """Decomposition of a mean score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    mean_score : float
        Score of the predictions as they are.
    miscalibration : float
        What recalibration would gain (MCB, reliability).
    discrimination : float
        What the recalibrated predictions gain over the base rate (DSC, resolution).
    uncertainty : float
        Score of always predicting the base rate (UNC).
    within_bins : float
        What bins lose of the predictions: 0 for CORP. Infinite where the mean score is, even if that
        of the bins is, too.
    error : float
        Bound on what a sketch may be off in `miscalibration`: 0 from arrays. NaN where the width of the
        cells, 2⁻¹⁶, is all that is known: of CORP, and of the log score.
    score : str
        "brier" or "log".
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> parts = corp_decomposition([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> total = parts.miscalibration - parts.discrimination + parts.uncertainty
    >>> round(parts.mean_score, 3), round(total, 3)
    (0.085, 0.085)
    """

    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    within_bins: float
    error: float
    score: str
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Decomposition({self.score} {self.mean_score:.6f} = MCB {self.miscalibration:.6f} "
            f"- DSC {self.discrimination:.6f} + UNC {self.uncertainty:.6f}"
            + (f" + within bins {self.within_bins:.6f}" if self.within_bins else "")
            + f", {rows_text(self.n, self.dropped)})"
        )


def corp_decomposition(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    score: Score = "brier",
    **options: Unpack[ReadingOptions],
) -> Decomposition:
    """CORP decomposition of the mean Brier or log score, by isotonic regression.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns.
    score : {"brier", "log"}
        (p - y)², or minus the logarithm of the probability of what happened.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Notes
    -----
    The recalibrated predictions fit their own noise: MCB of calibrated predictions is above 0 on a
    finite sample. A map that is not increasing is not found.

    References
    ----------
    Dimitriadis, Gneiting and Jordan, *Stable reliability diagrams for probabilistic classifiers*,
    2021.

    Examples
    --------
    >>> corp_decomposition([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    Decomposition(brier 0.185000 = MCB 0.060000 - DSC 0.125000 + UNC 0.250000, n=4)
    """
    require_choice("score", score, ("brier", "log"))
    points = points_from(y_true, y_prob, data, options)
    weight = over_outcomes(points.mass)
    fitted = pooled(points.mass[:, 1] / weight, weight)
    return _decomposition(points, points, fitted, score)


def _decomposition(
    points: Points, grouped: Points, rates: Floats, score: Score, reach: float = math.nan
) -> Decomposition:
    """Decomposition of the score of points, in groups or alone, by the rates of their events.

    From a sketch, its error is at most `reach`.
    """
    now = _mean_score(points.p, points, score)
    coarse, best, least = (
        _mean_score(p, grouped, score)
        for p in (grouped.p, rates, np.full(rates.shape, points.base_rate))
    )
    within = 0.0 if grouped is points else now - coarse if np.isfinite(now) else now
    parts = (now, coarse - best, least - best, least, within)
    error = 0.0 if points.position_error == 0.0 else reach
    return Decomposition(*parts, error, score, points.n, points.dropped)


def binned_decomposition(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: Score = "brier",
    n_bins: int | Literal["cube_root"] = DEFAULT_BINS,
    strategy: Strategy = "uniform",
    **options: Unpack[InputOptions],
) -> Decomposition:
    """Murphy's decomposition of the mean score by bins: reliability - resolution + uncertainty + within bins.

    The last term is what the score changes when every prediction is replaced by the mean of its bin;
    without it the three do not add up.

    Parameters
    ----------
    y_true, y_prob, score, **options
        As for `corp_decomposition`.
    n_bins, strategy
        As for `expected_calibration_error`.

    References
    ----------
    Murphy, *A new vector partition of the probability score*, 1973; Bröcker, *Reliability,
    sufficiency, and the decomposition of proper scores*, 2009; Stephenson, Coelho and Jolliffe, 2008.

    Examples
    --------
    >>> binned_decomposition([0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8])
    Decomposition(brier 0.040000 = MCB 0.040000 - DSC 0.250000 + UNC 0.250000, n=4)
    """
    require_choice("score", score, ("brier", "log"))
    points = as_points(y_true, y_prob, **options)
    table = bins_of(points, n_bins, strategy)
    grouped = Points(
        table.prediction.copy(),
        np.stack([1.0 - table.outcome, table.outcome], axis=1) * table.weight[:, None],
        points.n,
    )
    # A share that changes bins changes the sum of weight · gap² by at most six times as much.
    reach = 6.0 * float(table.doubtful.sum()) if score == "brier" else math.nan
    return _decomposition(points, grouped, table.outcome, score, reach)


def miscalibration(
    y_true: Any, y_prob: Any = None, *, score: Score = "brier", **options: Unpack[InputOptions]
) -> float:
    """CORP's MCB: what the best increasing map would gain on these rows, in the score's units.

    Examples
    --------
    >>> round(miscalibration([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9]), 6)
    0.06
    """
    return corp_decomposition(y_true, y_prob, score=score, **options).miscalibration


@dataclass(frozen=True, repr=False)
class MurphyCurve(Record):
    """Mean elementary scores over decision thresholds, of predictions, recalibrated ones and the base rate.

    S_t is the loss of who acts where the prediction exceeds t, at a cost of t for a false alarm and 1 - t
    for a miss. Twice the area under `score` is the Brier score, and twice that between `score` and
    `recalibrated` is CORP's miscalibration. Between two thresholds the curves are straight lines; each
    threshold stands twice, with the limits from its left and from its right.

    Attributes
    ----------
    threshold : float64[k]
        In increasing order, from 0 to 1.
    score, recalibrated, base_rate : float64[k]
        Of the predictions, of those after isotonic regression, and of always predicting the base rate.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> curve = murphy([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    >>> round(curve.brier, 6), round(curve.mcb, 6), round(curve.dsc, 6)
    (0.185, 0.06, 0.125)
    """

    threshold: Floats
    score: Floats
    recalibrated: Floats
    base_rate: Floats
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def miscalibration(self) -> Floats:
        """Loss at each threshold that an increasing map of the predictions would save."""
        return self.score - self.recalibrated

    @property
    def brier(self) -> float:
        """Brier score: twice the area under `score`."""
        return self._twice_area(self.score)

    @property
    def mcb(self) -> float:
        """Miscalibration of CORP: twice the area under `miscalibration`."""
        return self._twice_area(self.miscalibration)

    @property
    def dsc(self) -> float:
        """Discrimination of CORP: twice the area between `base_rate` and `recalibrated`."""
        return self._twice_area(self.base_rate - self.recalibrated)

    @property
    def largest_miscalibration(self) -> tuple[float, float]:
        """Largest loss that an increasing map would save, and the threshold at which it does."""
        at = int(np.argmax(self.miscalibration))
        return float(self.miscalibration[at]), float(self.threshold[at])

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with a row for each side of each threshold; see `frame_of` for the backend."""
        names = ("threshold", "score", "recalibrated", "base_rate", "miscalibration")
        return frame_of({name: getattr(self, name) for name in names}, backend)

    def _twice_area(self, values: Floats) -> float:
        return float(np.diff(self.threshold) @ (values[1:] + values[:-1]))

    def __repr__(self) -> str:
        most, at = self.largest_miscalibration
        return (
            f"MurphyCurve(brier {self.brier:.6f}, MCB {self.mcb:.6f}, DSC {self.dsc:.6f}, largest "
            f"miscalibration {most:.6f} at {at:.4f}, {rows_text(self.n, self.dropped)})"
        )


def murphy(
    y_true: Any = None, y_prob: Any = None, *, data: Any = None, **options: Unpack[ReadingOptions]
) -> MurphyCurve:
    """Murphy curve: the mean elementary score at each decision threshold, and its miscalibration part.

    Parameters
    ----------
    y_true, y_prob, data, **options
        As for `corp_decomposition`.

    References
    ----------
    Ehm, Gneiting, Jordan and Krüger, *Of quantiles and expectiles*, 2016; Dimitriadis, Gneiting, Jordan
    and Vogel, *Evaluating probabilistic classifiers: the triptych*, 2024.

    Examples
    --------
    >>> murphy([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    MurphyCurve(brier 0.185000, MCB 0.060000, DSC 0.125000, largest miscalibration 0.150000 at 0.4000, n=4)
    """
    points = points_from(y_true, y_prob, data, options)
    weight = over_outcomes(points.mass)
    fitted = pooled(points.mass[:, 1] / weight, weight)
    level = np.full(weight.shape, points.base_rate)
    knots = np.unique(np.concatenate([[0.0, 1.0], points.p, fitted, level[:1]]))
    score, recalibrated, base_rate = (
        _elementary_scores(p, points, knots) for p in (points.p, fitted, level)
    )
    threshold = np.repeat(knots, 2)
    return MurphyCurve(threshold, score, recalibrated, base_rate, points.n, points.dropped)


def _elementary_scores(p: Floats, points: Points, knots: Floats) -> Floats:
    """Mean of t 1(p > t, y = 0) + (1 - t) 1(p ≤ t, y = 1), with limits from the left and from the right."""
    upto = np.vstack([[0.0, 0.0], np.cumsum(points.mass, axis=0)]) / points.total
    sides = [upto[np.searchsorted(p, knots, side=side)] for side in ("left", "right")]
    scores = [knots * (upto[-1, 0] - below[:, 0]) + (1.0 - knots) * below[:, 1] for below in sides]
    return np.stack(scores, axis=1).ravel()


def _mean_score(p: Floats, points: Points, score: Score) -> float:
    negative, positive = points.mass.T / points.total
    if score == "brier":
        return float((negative * p**2 + positive * (1.0 - p) ** 2).sum())
    from scipy.special import xlog1py, xlogy

    return -float(np.sum(xlog1py(negative, -p)) + np.sum(xlogy(positive, p)))
