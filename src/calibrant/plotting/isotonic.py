"""The isotonic (CORP) reliability diagram: monotone, without bins or bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_count
from calibrant._format import decimals
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import as_points
from calibrant.data.rows import Dropped, InputOptions
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.inference.interval import require_confidence
from calibrant.inference.profile import Profiled
from calibrant.inference.resampling import cell_predictions, consistency_events
from calibrant.measures._chains import pooled
from calibrant.measures.isotonic import corp_decomposition
from calibrant.measures.result_record import rows_text
from calibrant.plotting.axes import probability_axes
from calibrant.plotting.bands import Bounds, ResampledCurves
from calibrant.plotting.diagram import Diagram, laid_out, plain, series_of, who
from calibrant.plotting.histogram import histogram
from calibrant.plotting.legend_words import PREDICTIONS
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Panel, Trail
from calibrant.plotting.reference import attributes_of, calibrated_marks
from calibrant.plotting.verdict import UNSAID, Verdict, verdict_on_rows

__all__ = ["IsotonicDiagram", "isotonic_diagram"]

Floats = NDArray[np.float64]

# Resampled outcomes are fitted on the coarsest grid on which rows lie in so many cells, and on no coarser
# one than this; the fit itself keeps the sketch's own.
_BAND_CELLS, _BAND_CELLS_IN_USE = 512, 256


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
    consistency_at : float64[k]
        Predictions at which the consistency band is given.
    consistency : Bounds
        What a calibrated model with these predictions would show.
    miscalibration, discrimination, uncertainty : float
        The parts of the Brier score: score = miscalibration - discrimination + uncertainty.
    n : int
        Rows; `dropped` counts by reason those that were left out.
    said : Verdict
        What the smooth diagram of the same rows says; empty for Points.

    Examples
    --------
    >>> diagram = isotonic_diagram([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> diagram.regression.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """

    prediction: Floats
    regression: Floats
    rows: Floats
    consistency_at: Floats
    consistency: Bounds
    miscalibration: float
    discrimination: float
    uncertainty: float
    confidence: float
    resamples: int
    seed: int
    n: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)
    said: Verdict = UNSAID

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        return f"miscalibration {decimals(self.miscalibration)} (MCB, of squared error)"

    def __repr__(self) -> str:
        rows = rows_text(self.n, self.dropped)
        parts = decimals(self.miscalibration), decimals(self.discrimination)
        return f"IsotonicDiagram(MCB {parts[0]}, DSC {parts[1]}, {rows})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The fit, by name."""
        return {"prediction": self.prediction, "regression": self.regression, "rows": self.rows}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        out: dict[str, Any] = plain(
            {
                "kind": "isotonic",
                "miscalibration": self.miscalibration,
                "discrimination": self.discrimination,
                "uncertainty": self.uncertainty,
                "confidence": self.confidence,
                "resamples": self.resamples,
                "seed": self.seed,
                "n": self.n,
                "dropped": self.dropped,
                "curve": self.columns(),
                "consistency": {
                    "prediction": self.consistency_at,
                    "low": self.consistency.low,
                    "high": self.consistency.high,
                },
            }
        )
        return out

    def panel(
        self,
        *,
        name: str = "",
        color: Color | None = None,
        reference: str | None = "band",
        axes: str = "auto",
        rare: float = 0.2,
        attributes: bool | Profiled = False,
    ) -> Panel:
        """The marks of the picture.

        Parameters
        ----------
        name : str
            Name of the model.
        color : str or three numbers, optional
            Colour of the curve.
        reference : {"band", "diagonal", None}
            With the band that a calibrated model would stay in, the diagonal alone, or neither.
        axes : {"auto", "probability", "fit", "logit"}
            From 0 to 1; only as far as the rows go; or in log-odds. "auto" fits the axes where nearly
            all rows lie within `rare` of 0 or of 1.
        rare : float
            How close to an end predictions must be to get an axis of their own.
        attributes : bool or Profiled
            Add the weather forecasters' overlay: climatology, the line of no skill, the area with skill.
            What `assess(..., profile="weather").profile` found adds its skill to the notes.
        """
        name = as_name(name)
        series = series_of(name)
        x, y, rows = self._corners()
        limits = probability_axes(axes, rare, self.prediction, self.regression, self.rows)
        marks = histogram(limits[0], self.prediction, [self.rows], says=PREDICTIONS)
        rate = float(np.average(self.regression, weights=self.rows))
        skill, said = attributes_of(attributes, rate)
        marks += skill
        marks += calibrated_marks(reference, self.consistency_at, self.consistency, self.confidence)
        marks.append(
            Trail(
                key="curve",
                series=series,
                x=x,
                y=y,
                weight=np.full(x.size, 0.25),
                details={"prediction": x, "observed": y, "rows at this level": rows},
                says=f"{who(name)}, best fit that rises",
            )
        )
        notes = (self.label, f"n = {self.n:,}", *said)
        return laid_out(marks, limits, notes, name=name, color=color, verdict=self.verdict)

    def _corners(self) -> tuple[Floats, Floats, Floats]:
        """First and last prediction of each level: the fit is a line between neighbours."""
        first = np.flatnonzero(np.diff(self.regression, prepend=-1.0) > 0)
        last = np.append(first[1:], self.regression.size) - 1
        at = np.unique(np.concatenate([first, last]))
        level = np.searchsorted(first, at, side="right") - 1
        rows = np.add.reduceat(self.rows, first)[level]
        return self.prediction[at], self.regression[at], rows


def isotonic_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = 1000,
    seed: int = 0,
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
    seed : int
        The same input and seed give the same bytes.
    **options
        How to read the arrays (see `InputOptions`).

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
    sketch = as_sketch(y_true, y_prob, **options)
    atoms = as_points(y_true, y_prob, **options)
    weight = over_outcomes(atoms.mass)
    fitted = _isotonic(atoms.mass[:, 1] / weight, weight)
    parts = corp_decomposition(atoms)
    at, band = _consistency(sketch, confidence, resamples, seed)
    return IsotonicDiagram(
        prediction=atoms.p,
        regression=fitted,
        rows=weight,
        consistency_at=at,
        consistency=band,
        miscalibration=parts.miscalibration,
        discrimination=parts.discrimination,
        uncertainty=parts.uncertainty,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        n=sketch.n,
        dropped=sketch.dropped,
        said=verdict_on_rows(sketch, None, confidence, {}),
    )


def _isotonic(rate: Floats, weight: Floats) -> Floats:
    return np.clip(pooled(rate, weight), 0.0, 1.0)


def _band_cells(sketch: Sketch) -> int:
    """Cells of a grid that is fine enough where the rows are, be it a thousandth of the scale."""
    cells = min(_BAND_CELLS, sketch.nodes)
    while cells < sketch.nodes:
        in_use = 1 + np.count_nonzero(np.diff(sketch.cells // (sketch.nodes // cells)))
        if in_use >= min(_BAND_CELLS_IN_USE, sketch.cells.size):
            break
        cells *= 2
    return cells


def _consistency(
    sketch: Sketch, confidence: float, resamples: int, seed: int
) -> tuple[Floats, Bounds]:
    coarse = sketch.rebin(_band_cells(sketch))
    weight = over_outcomes(coarse.weights)
    used = weight > 0.0
    at, weight = cell_predictions(coarse)[used], weight[used]
    curves = [
        _isotonic(events[used, 0] / weight, weight)
        for block in consistency_events(coarse, resamples, seed=seed)
        for events in block
    ]
    return at, ResampledCurves(at, np.array(curves)).pointwise(confidence)
