"""How a smooth reliability diagram is drawn: its arrays as marks.

Against the mean prediction f̂(t) the curve is (f̂(t), μ̂(t)): the diagonal is the exact reference, and the
distance to it, weighted by the share of rows along the curve (its width), is the SmoothECE. f̂ increases,
as the reflected Gaussian kernel is totally positive. Against the position t it is the figure of the paper,
where the reference f̂ bends at the ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.cell_sums import over_outcomes
from calibrant.errors import InputError
from calibrant.inference.profile import Profiled
from calibrant.inference.resampling import cell_predictions
from calibrant.plotting.axes import probability_axes
from calibrant.plotting.axis import Axis
from calibrant.plotting.bands import Bounds
from calibrant.plotting.closer_view import closer_marks
from calibrant.plotting.diagram import laid_out, series_of, who
from calibrant.plotting.histogram import histogram
from calibrant.plotting.legend_words import PREDICTIONS, UNCERTAIN, if_calibrated
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Band, Bundle, Dots, Hill, Line, Mark, Panel, Ticks, Trail
from calibrant.plotting.reference import attributes_of, calibrated_marks, diagonal

if TYPE_CHECKING:
    from calibrant.plotting.smooth import ReliabilityDiagram

__all__ = ["Truth", "rows_at", "smooth_panel", "traced"]

Floats = NDArray[np.float64]
Truth: TypeAlias = Callable[[Floats], Any] | tuple[Any, Any]

# With so many effective rows the curve is drawn in full colour; with fewer it fades.
FULL_EVIDENCE = 30


@dataclass(frozen=True, eq=False)
class Traced:
    """The points of the curve, in order: where they lie across, and which of the grid's they are."""

    x: Floats
    at: NDArray[np.int64]

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the grid at the points of the curve."""
        return values[..., self.at]

    def bounds(self, band: Bounds) -> Bounds:
        """A band along the curve."""
        return Bounds(self(band.low).copy(), self(band.high).copy())


def traced(diagram: ReliabilityDiagram, against: str) -> Traced:
    """Where the points of the curve lie.

    Against the prediction, points without rows are left out: between two groups of rows far apart, the
    curve runs straight from the one's mean to the other's, as any mixture of both does.
    """
    if against == "position":
        return Traced(diagram.grid, np.arange(diagram.grid.size))
    at = np.flatnonzero(np.isfinite(diagram.regression))
    # Increasing but for rounding errors.
    return Traced(np.maximum.accumulate(diagram.smoothed_predictions[at]), at)


def smooth_panel(
    diagram: ReliabilityDiagram,
    *,
    against: str,
    name: str,
    color: Color | None,
    reference: str | None,
    curve: str,
    band: str | None,
    density: str | None,
    ticks: bool,
    axes: str,
    rare: float,
    attributes: bool | Profiled,
    truth: Truth | None,
) -> Panel:
    """Marks from the bottom up: predictions, ticks, references, bands, curve, points, truth."""
    require_choice("against", against, ("prediction", "position"))
    require_choice("curve", curve, ("trail", "line"))
    require_choice("band", band, ("pointwise", "simultaneous", None))
    require_choice("density", density, ("one", "split", None))
    name = as_name(name)
    series, trace = series_of(name), traced(diagram, against)
    limits = probability_axes(
        axes, rare, trace.x, trace(diagram.regression), trace(diagram.density)
    )
    skill, said = attributes_of(attributes, diagram.event_rate)
    marks = [
        *_predictions(diagram, series, density, limits[0], against),
        *(_outcomes(diagram) if ticks else []),
        *skill,
        *_references(diagram, reference, trace, against),
        *_bands(diagram, series, band, trace),
        _curve(diagram, series, curve, trace, name, against),
        *_points(diagram, series),
        *([] if truth is None else [_truth(diagram.grid, truth)]),
    ]
    if axes == "auto" and against == "prediction" and not attributes and limits[0].shown is None:
        marks += closer_marks(marks, [rows_at(diagram)])
    few, verdict = diagram.values, diagram.verdict
    rows = f"SmoothECE, n = {diagram.n:,}" + ("" if few is None else f", {few.count}")
    wider = [f"drawn at bandwidth {diagram.bandwidth:.3g}"] if diagram.drawn_wider else []
    return laid_out(
        marks,
        limits,
        (diagram.label, rows, *wider, *said),
        name=name,
        color=color,
        finding=_finding(diagram, verdict),
        verdict=verdict,
    )


def _finding(diagram: ReliabilityDiagram, verdict: str) -> str:
    """What the picture shows, for those who hear it: where it errs only where that is clear."""
    where = "; ".join(str(region) for region in diagram.regions[:2])
    if verdict.startswith("Predictions from "):
        where = ""  # it has said where, and closer
    elif diagram.interval is not None and diagram.interval.low <= 0.0:
        where = ""
    elif not where:
        where = "the curve follows the diagonal"
    said = [text[:1].upper() + text[1:] for text in (verdict, where) if text]
    return (
        f"Reliability diagram of {diagram.n:,} rows, {diagram.label}: how often it happened against the "
        f"predicted probability. {'. '.join(said)}."
    )


def _predictions(
    diagram: ReliabilityDiagram, series: str, density: str | None, axis: Axis, against: str
) -> list[Mark]:
    if density is None:
        return []
    if against == "position":
        return _hills(diagram, series, density)
    used = over_outcomes(diagram.sketch.weights) > 0.0
    p, weights = cell_predictions(diagram.sketch)[used], diagram.sketch.weights[used]
    masses = [over_outcomes(weights)] if density == "one" else list(weights.T)
    return histogram(axis, p, masses, says=PREDICTIONS, series=series)


def rows_at(diagram: ReliabilityDiagram) -> tuple[Floats, Floats]:
    """Its predictions, and how many rows have each."""
    return cell_predictions(diagram.sketch), over_outcomes(diagram.sketch.weights)


def _hills(diagram: ReliabilityDiagram, series: str, density: str) -> list[Mark]:
    parts = (
        [diagram.density]
        if density == "one"
        else [
            diagram.density_negative,
            diagram.density_positive,
        ]
    )
    highest = max(part.max() for part in parts)
    return [
        Hill(
            key="density",
            ink="series" if k else "neutral",
            series=series if k else "",
            x=diagram.grid,
            height=part / highest,
            side="top" if k else "bottom",
            says="" if k else PREDICTIONS,
        )
        for k, part in enumerate(parts)
    ]


def _outcomes(diagram: ReliabilityDiagram) -> list[Mark]:
    event, p = diagram.raw.outcome == 1, diagram.raw.prediction
    says = "rows: above with the event, below without"
    return [
        Ticks(key="outcomes", ink="neutral", x=p[~event], side="bottom", says=says),
        Ticks(key="outcomes", ink="neutral", x=p[event], side="top"),
    ]


def _references(
    diagram: ReliabilityDiagram, reference: str | None, trace: Traced, against: str
) -> list[Mark]:
    bounds = trace.bounds(diagram.consistency)
    if against == "prediction":
        return calibrated_marks(reference, trace.x, bounds, diagram.confidence)
    require_choice("reference", reference, ("band", "diagonal", None))
    if reference != "band":
        return [] if reference is None else [diagonal()]
    line = Line(
        key="reference",
        ink="neutral",
        x=diagram.grid,
        y=diagram.smoothed_predictions,
        dash="dashed",
        says="if it were calibrated (below it: predicted too high)",
    )
    if not diagram.resamples:
        return [diagonal("faint", ""), line]
    says = if_calibrated(diagram.confidence)
    band = Band(
        key="consistency", ink="neutral", x=trace.x, low=bounds.low, high=bounds.high, says=says
    )
    return [diagonal("faint", ""), band, line]


def _bands(diagram: ReliabilityDiagram, series: str, band: str | None, trace: Traced) -> list[Mark]:
    marks: list[Mark] = []
    if band is not None and diagram.resamples:
        bounds = trace.bounds(diagram.band if band == "pointwise" else diagram.simultaneous)
        marks.append(
            Band(
                key="band",
                series=series,
                x=trace.x,
                low=bounds.low,
                high=bounds.high,
                says=UNCERTAIN,
            )
        )
    if len(diagram.resampled):
        ys = trace(diagram.resampled)
        says = "the curve of other samples"
        marks.append(Bundle(key="resampled", series=series, x=trace.x, ys=ys, says=says))
    return marks


def _curve(
    diagram: ReliabilityDiagram, series: str, curve: str, trace: Traced, name: str, against: str
) -> Mark:
    details = {
        "prediction": trace.x,
        "observed": trace(diagram.regression),
        "low": trace(diagram.band.low),
        "high": trace(diagram.band.high),
        "rows": trace(diagram.rows).astype(np.float64),
    }
    if against == "position":
        details["if calibrated"] = diagram.smoothed_predictions
    common: dict[str, Any] = {
        "key": "curve",
        "series": series,
        "x": trace.x,
        "y": trace(diagram.regression),
        "details": details,
    }
    model = who(name)
    if curve == "line":
        return Line(**common, says=model)
    return Trail(
        **common,
        weight=trace(diagram.density) / diagram.density.max(),
        evidence=np.minimum(trace(diagram.effective_rows) / FULL_EVIDENCE, 1.0),
        says=f"{model} (thick where many predictions are)",
    )


def _points(diagram: ReliabilityDiagram, series: str) -> list[Mark]:
    if diagram.values is None:
        return []
    points = diagram.values
    return [
        Dots(
            key="values",
            series=series,
            x=points.prediction,
            y=points.rate,
            low=points.low,
            high=points.high,
            weight=points.rows / points.rows.max(),
            details={
                "prediction": points.prediction,
                "observed": points.rate,
                "low": points.low,
                "high": points.high,
                "rows": points.rows.astype(np.float64),
            },
            says="rows that share one prediction",
        )
    ]


def _truth(grid: Floats, truth: Truth) -> Mark:
    try:
        x, y = (grid, truth(grid)) if callable(truth) else truth
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "must be a function of an array of predictions, or a pair of arrays, predictions and "
            "chances",
            argument="truth",
            seen=truth,
            cure="Leave it out where the truth is not known.",
        ) from error
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(
            "must give one value for each prediction",
            argument="truth",
            seen=(x.shape, y.shape),
            cure="Return an array of the same shape.",
        )
    return Line(key="truth", ink="accent", x=x, y=y, dash="dotted", says="the truth")
