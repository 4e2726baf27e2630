"""How a smooth reliability diagram is drawn: its arrays as marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.diagrams.drawable import (
    diagonal_of,
    laid_out,
    probability_axes,
    require_choice,
    series_of,
)
from calibrant.drawing.checks import Color, as_name
from calibrant.drawing.marks import Band, Bundle, Hill, Line, Mark, Panel, Points, Ticks, Trail
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.diagrams.smooth import ReliabilityDiagram

__all__ = ["Truth", "smooth_panel"]

Floats = NDArray[np.float64]
Truth: TypeAlias = Callable[[Floats], Any] | tuple[Any, Any]


def smooth_panel(
    diagram: ReliabilityDiagram,
    *,
    name: str,
    color: Color | None,
    reference: str,
    curve: str,
    band: str | None,
    density: str | None,
    ticks: bool,
    axes: str,
    truth: Truth | None,
) -> Panel:
    """Marks from the bottom up: density, ticks, references, bands, curve, truth, points."""
    require_choice("reference", reference, ("smoothed", "consistency", "diagonal"))
    require_choice("curve", curve, ("trail", "line"))
    require_choice("band", band, ("pointwise", "simultaneous", None))
    require_choice("density", density, ("one", "split", None))
    name = as_name(name)
    series = series_of(name)
    marks = [
        *_densities(diagram, series, density),
        *(_outcomes(diagram) if ticks else []),
        *_references(diagram, reference),
        *_bands(diagram, series, band),
        _curve(diagram, series, curve),
        *_points(diagram, series),
        *([] if truth is None else [_truth(diagram.grid, truth)]),
    ]
    few = diagram.values
    rows = f"n = {diagram.n:,}" + ("" if few is None else f", {few.count}")
    wider = [f"drawn at bandwidth {diagram.bandwidth:.3g}"] if diagram.drawn_wider else []
    both = probability_axes(_extent(diagram), axes)
    return laid_out(marks, both, (diagram.label, rows, *wider), name=name, color=color)


def _extent(diagram: ReliabilityDiagram) -> Floats:
    """What logit axes must have room for: nearly all predictions."""
    weight = diagram.density / diagram.density.sum()
    order = np.cumsum(weight)
    kept = diagram.shown & (order > 0.002) & (order < 0.999)
    kept = kept if kept.any() else diagram.shown
    return diagram.grid[kept]


def _densities(diagram: ReliabilityDiagram, series: str, density: str | None) -> list[Mark]:
    if density is None:
        return []
    if density == "one":
        height = diagram.density / diagram.density.max()
        return [Hill(key="density", ink="neutral", x=diagram.grid, height=height)]
    highest = max(diagram.density_negative.max(), diagram.density_positive.max())
    return [
        Hill(
            key="density",
            ink="neutral",
            x=diagram.grid,
            height=diagram.density_negative / highest,
        ),
        Hill(
            key="density",
            series=series,
            x=diagram.grid,
            height=diagram.density_positive / highest,
            side="top",
        ),
    ]


def _outcomes(diagram: ReliabilityDiagram) -> list[Mark]:
    event = diagram.raw.outcome == 1
    p = diagram.raw.prediction
    return [
        Ticks(key="outcomes", ink="neutral", x=p[~event], side="bottom"),
        Ticks(key="outcomes", ink="neutral", x=p[event], side="top"),
    ]


def _references(diagram: ReliabilityDiagram, reference: str) -> list[Mark]:
    faint = reference != "diagonal"
    diagonal = diagonal_of(diagram.grid, "faint" if faint else "neutral")
    if not faint:
        return [diagonal]
    bounds = diagram.consistency
    return [
        diagonal,
        Band(key="consistency", ink="neutral", x=diagram.grid, low=bounds.low, high=bounds.high),
        Line(
            key="reference",
            ink="neutral",
            x=diagram.grid,
            y=_where_shown(diagram, diagram.smoothed_predictions),
            dash="dashed",
        ),
    ]


def _bands(diagram: ReliabilityDiagram, series: str, band: str | None) -> list[Mark]:
    marks: list[Mark] = []
    if band is not None:
        bounds = diagram.band if band == "pointwise" else diagram.simultaneous
        marks.append(
            Band(key="band", series=series, x=diagram.grid, low=bounds.low, high=bounds.high)
        )
    if len(diagram.resampled):
        marks.append(Bundle(key="resampled", series=series, x=diagram.grid, ys=diagram.resampled))
    return marks


def _curve(diagram: ReliabilityDiagram, series: str, curve: str) -> Mark:
    y = _where_shown(diagram, diagram.regression)
    details = {
        "prediction": diagram.grid,
        "observed": diagram.regression,
        "low": diagram.band.low,
        "high": diagram.band.high,
        "if calibrated": diagram.smoothed_predictions,
        "rows": diagram.rows.astype(np.float64),
    }
    if curve == "line":
        return Line(key="curve", series=series, x=diagram.grid, y=y, details=details)
    weight = diagram.density / diagram.density.max()
    return Trail(key="curve", series=series, x=diagram.grid, y=y, weight=weight, details=details)


def _points(diagram: ReliabilityDiagram, series: str) -> list[Mark]:
    if diagram.values is None:
        return []
    seen = diagram.values
    return [
        Points(
            key="values",
            series=series,
            x=seen.prediction,
            y=seen.rate,
            low=seen.low,
            high=seen.high,
            weight=seen.rows / seen.rows.max(),
            details={
                "prediction": seen.prediction,
                "observed": seen.rate,
                "low": seen.low,
                "high": seen.high,
                "if calibrated": seen.prediction,
                "rows": seen.rows.astype(np.float64),
            },
        )
    ]


def _truth(grid: Floats, truth: Truth) -> Mark:
    try:
        x, y = (grid, truth(grid)) if callable(truth) else truth
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "`truth` must be a function of an array of predictions, or a pair of arrays, predictions and "
            f"chances; got {truth!r}, with which: {error}."
        ) from error
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(
            f"`truth` must give one value for each prediction; got shapes {x.shape} and {y.shape}."
        )
    return Line(key="truth", ink="accent", x=x, y=y, dash="dotted")


def _where_shown(diagram: ReliabilityDiagram, values: Floats) -> Floats:
    return np.where(diagram.shown, values, np.nan)
