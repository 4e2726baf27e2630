"""Bands from resampled curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.diagrams.kernel import KernelMatrix
from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    consistency_events,
)

__all__ = [
    "Bounds",
    "ResampledCurves",
    "read_only",
    "resampled_calibrated",
    "resampled_regression",
    "spread_out",
]

Floats = NDArray[np.float64]

# A resample with less than this share of its largest density near a point has no rows there.
_NEGLIGIBLE = 1e-9
_MOST_CELLS = 1 << 14


def read_only(data: object) -> None:
    """Make the arrays among the fields of a frozen record read-only, too."""
    for value in vars(data).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper end of a band, NaN where there is none."""

    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        read_only(self)

    def at(self, places: NDArray[np.bool_]) -> Bounds:
        """The band among more points: at these places, and NaN elsewhere."""
        return Bounds(spread_out(self.low, places), spread_out(self.high, places))


def spread_out(values: Floats, places: NDArray[np.bool_]) -> Floats:
    """Values [..., k] at k true places among all, NaN elsewhere."""
    wide = np.full((*values.shape[:-1], places.size), np.nan)
    wide[..., places] = values
    return wide


@dataclass(frozen=True, eq=False)
class ResampledCurves:
    """Curves of resamples around the curve of the data, one row for each.

    A resample that leaves no rows near a point has NaN there.
    """

    center: Floats
    curves: Floats

    def pointwise(self, confidence: float) -> Bounds:
        """At each point, the central share `confidence` of the curves."""
        ordered = np.sort(self.curves, axis=0)  # NaN last
        known = np.sum(np.isfinite(ordered), axis=0)
        tail = (1 - confidence) / 2
        low, high = (_at_rank(ordered, q * (known - 1), known) for q in (tail, 1 - tail))
        return Bounds(*_clipped(low, high))

    def simultaneous(self, confidence: float) -> Bounds:
        """The band, in standard deviations around the centre, that holds a share of whole curves."""
        known = np.isfinite(self.curves)
        number = np.maximum(known.sum(axis=0), 1)
        away = np.where(known, self.curves - self.center, 0.0)
        spread = np.sqrt(np.square(away).sum(axis=0) / number)
        steps = np.divide(np.abs(away), spread, out=np.zeros_like(away), where=spread > 0)
        reach = float(np.quantile(steps.max(axis=1, initial=0.0), confidence)) * spread
        reach = np.where(np.isfinite(self.center), reach, np.nan)
        return Bounds(*_clipped(self.center - reach, self.center + reach))


def _at_rank(ordered: Floats, rank: Floats, known: NDArray[np.int64]) -> Floats:
    """Interpolated order statistics, one for each column."""
    below = np.clip(np.floor(rank), 0, None).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(known - 1, 0))
    columns = np.arange(ordered.shape[1])
    left, right = ordered[below, columns], ordered[above, columns]
    value = left + (rank - below) * (right - left)
    return np.where(known > 0, value, np.nan)


def _clipped(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _resampled_cells(sketch: Sketch, bandwidth: float) -> Sketch:
    """Cells that the bandwidth does not notice, or as many as resamples can be drawn of in a second.

    Rows sit at the mean of their cell, so that a cell as wide as the bandwidth smooths by a few per cent
    more.
    """
    coarse = coarse_sketch(sketch, bandwidth)
    while coarse.cells.size > _MOST_CELLS:
        coarse = coarse.rebin(coarse.nodes // 2)
    return coarse


def resampled_regression(
    sketch: Sketch, center: Floats, points: Floats, bandwidth: float, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions of bootstrapped rows at `points` of the grid, around the regression `center` there.

    Drawn on a coarser grid; what that grid does to the curve of the data itself is taken off every
    resampled curve.
    """
    coarse = _resampled_cells(sketch, bandwidth)
    smooth = KernelMatrix(coarse, points, bandwidth, labels=2)
    own = _regression(smooth(coarse.weights[None]))
    drawn = bootstrap_weights(coarse, resamples, seed=seed)
    curves = np.concatenate([_regression(smooth(block)) for block in drawn])
    return ResampledCurves(center, curves + (center - own))


def resampled_calibrated(
    sketch: Sketch, center: Floats, points: Floats, bandwidth: float, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions that a calibrated model with these predictions would show, around f̂ = `center`."""
    coarse = _resampled_cells(sketch, bandwidth)
    smooth = KernelMatrix(coarse, points, bandwidth, labels=1)
    weights = coarse.weights.sum(axis=1)[None, :, None]
    density = smooth(weights)[:, 0]
    own = _ratio(smooth(weights * cell_predictions(coarse)[:, None])[:, 0], density)
    drawn = consistency_events(coarse, resamples, seed=seed)
    curves = np.concatenate([_ratio(smooth(block)[:, 0], density) for block in drawn])
    return ResampledCurves(center, curves + (center - own))


def _regression(by_label: Floats) -> Floats:
    return _ratio(by_label[..., 1, :], by_label[..., 0, :] + by_label[..., 1, :])


def _ratio(numerator: Floats, density: Floats) -> Floats:
    known = density > _NEGLIGIBLE * density.max(axis=-1, keepdims=True, initial=0.0)
    empty = np.full_like(numerator, np.nan)
    ratio: Floats = np.divide(numerator, density, out=empty, where=known)
    return ratio
