"""The isotonic (CORP) reliability diagram: monotone, without bins or bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    require_confidence,
    require_count,
    require_seed,
)
from calibrant._format import decimals
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.measures._chains import pooled
from calibrant.measures.isotonic import corp_decomposition
from calibrant.measures.result_record import rows_text
from calibrant.plotting.artists import band, line
from calibrant.plotting.diagram import Diagram, Style, reference
from calibrant.plotting.frame import Frame, legend_of, probability_frame, probability_limits

Floats = NDArray[np.float64]

BAND_CELLS = 512
"""Groups of neighbouring predictions in which outcomes are drawn for the band."""


@dataclass(frozen=True, eq=False, repr=False)
class IsotonicDiagram(Diagram):
    """The monotone regression of the outcome on the prediction.

    Attributes
    ----------
    prediction : float64[m]
        Distinct predictions, in increasing order.
    regression : float64[m]
        Isotonic regression of the outcome: the recalibrated prediction.
    rows : float64[m]
        Weight of the rows at each.
    consistency_at, consistency_low, consistency_high : float64[k]
        Consistency band: central share of the regressions of calibrated outcomes.
    miscalibration, discrimination, uncertainty : float
        The parts of the Brier score: score = miscalibration - discrimination + uncertainty.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> diagram = isotonic_diagram([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> diagram.regression.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """

    kind = "isotonic"
    table = ("prediction", "regression", "rows")
    scalars = (
        *("miscalibration", "discrimination", "uncertainty"),
        *("confidence", "resamples", "seed", "n", "dropped"),
    )

    prediction: Floats
    regression: Floats
    rows: Floats
    consistency_at: Floats
    consistency_low: Floats
    consistency_high: Floats
    miscalibration: float
    discrimination: float
    uncertainty: float
    confidence: float
    resamples: int
    seed: int
    n: int
    attributes: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The number as text."""
        return f"Miscalibration {decimals(self.miscalibration)} of the Brier score"

    def __repr__(self) -> str:
        rows = rows_text(self.n, self.dropped)
        parts = decimals(self.miscalibration), decimals(self.discrimination)
        return f"IsotonicDiagram(MCB {parts[0]}, DSC {parts[1]}, {rows})"

    def numbers(self) -> dict[str, Any]:
        """The parts of the Brier score, and the consistency band."""
        low, high = self.consistency_low, self.consistency_high
        band = {"prediction": self.consistency_at, "low": low, "high": high}
        return {**super().numbers(), "consistency": band}

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of both axes."""
        error = np.abs(self.prediction - self.regression) * self.rows
        return probability_limits(
            self.prediction, self.rows, self.prediction, self.regression, error
        )

    def frame(self) -> Frame:
        """Axes of probabilities."""
        legend = legend_of("curve", self.confidence, text="This model: isotonic regression")
        return probability_frame(self.limits, legend, title=self.label, subtitle=f"n = {self.n:,}")

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """The fit through the first and last prediction of each level, and the consistency band."""
        drawn: dict[str, list[Any]] = {}
        if not style.beside_others:
            low, high = self.consistency_low, self.consistency_high
            grey = band(ax, self.consistency_at, low, high, **style.of_reference)
            drawn["consistency_band"] = [grey]
            rate = (
                float(np.average(self.regression, weights=self.rows)) if self.attributes else None
            )
            drawn |= reference(ax, style, (self.prediction, self.rows), self.limits, rate)
        first = np.flatnonzero(np.diff(self.regression, prepend=-1.0) > 0)
        at = np.unique(np.concatenate([first, np.append(first[1:], self.regression.size) - 1]))
        x, y = self.prediction[at], self.regression[at]
        return {**drawn, "curve": [line(ax, x, y, **style.of_line(1.8))]}


def isotonic_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = 1000,
    attributes: bool = False,
    random_state: int = 0,
    **options: Unpack[InputOptions],
) -> IsotonicDiagram:
    """Isotonic (CORP) reliability diagram, with its consistency band.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    confidence : float
        Confidence of the band.
    resamples : int
        How many sets of outcomes are drawn for the band.
    attributes : bool
        Add climatology, the line of no skill and the area with skill (the attributes diagram).
    random_state : int
        The same input and number give the same bytes.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    References
    ----------
    Dimitriadis, Gneiting and Jordan, *Stable reliability diagrams for probabilistic classifiers*.

    Examples
    --------
    >>> isotonic_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9])
    IsotonicDiagram(MCB 0.0721, DSC 0.1667, n=6)
    """
    require_confidence(confidence)
    require_count("resamples", resamples)
    rows = as_points(y_true, y_prob, **options)
    weight = rows.mass.sum(axis=1)
    parts = corp_decomposition(rows)
    seed = require_seed(random_state, "random_state")
    at, low, high = _consistency(rows, confidence, resamples, seed)
    return IsotonicDiagram(
        prediction=rows.p,
        regression=np.clip(pooled(rows.mass[:, 1] / weight, weight), 0.0, 1.0),
        rows=weight,
        consistency_at=at,
        consistency_low=low,
        consistency_high=high,
        miscalibration=parts.miscalibration,
        discrimination=parts.discrimination,
        uncertainty=parts.uncertainty,
        confidence=float(confidence),
        resamples=resamples,
        seed=seed,
        n=rows.n,
        attributes=attributes,
        dropped=rows.dropped,
    )


def _consistency(
    rows: Points, confidence: float, resamples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Pointwise band of the regressions of outcomes drawn from the predictions.

    In each group of neighbouring predictions, as many independent rows are drawn as its effective number.
    """
    weight = rows.mass.sum(axis=1)
    squared = weight if rows.squared is None else rows.squared
    middle = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    key = np.floor(middle * BAND_CELLS) + BAND_CELLS * np.floor(rows.p * BAND_CELLS)
    first = np.flatnonzero(np.diff(key, prepend=-1.0))
    total = np.add.reduceat(weight, first)
    at = np.clip(np.add.reduceat(weight * rows.p, first) / total, 0.0, 1.0)
    effective = np.maximum(np.round(total**2 / np.add.reduceat(squared, first)), 1.0)
    draws = generator(seed).binomial(effective.astype(np.int64), at, (resamples, at.size))
    curves = np.array([pooled(events / effective, total) for events in draws])
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(np.clip(curves, 0.0, 1.0), [tail, 1.0 - tail], axis=0)
    return at, low, high
