"""Bands from resampled curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.diagrams.curve import Mesh
from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    consistency_events,
    smoothed_weights,
)
from calibrant.sketch.table import Sketch

__all__ = ["Bounds", "ResampledCurves", "resampled_calibrated", "resampled_regression"]

Floats = NDArray[np.float64]

# Under this share of the largest density a ratio of densities is rounding noise.
_NEGLIGIBLE = 1e-9
_POINTS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper end of a band, NaN where there is none."""

    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        self.low.flags.writeable = False
        self.high.flags.writeable = False


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
        reach = float(np.quantile(steps.max(axis=1), confidence)) * spread
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


def resampled_regression(
    sketch: Sketch, center: Floats, mesh: Mesh, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions of bootstrapped rows, around the regression `center` of the sketch.

    Drawn on a coarser grid; what that grid does to the curve of the data itself is taken off every
    resampled curve.
    """
    coarse = coarse_sketch(sketch, mesh.bandwidth)
    own = _regression(_smoothed(coarse, coarse.weights, mesh))
    drawn = bootstrap_weights(coarse, resamples, seed=seed)
    curves = _filled(
        drawn, resamples, mesh, lambda block: _regression(_smoothed(coarse, block, mesh))
    )
    curves += center - own
    return ResampledCurves(center, curves)


def resampled_calibrated(
    sketch: Sketch, center: Floats, mesh: Mesh, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions that a calibrated model with these predictions would show, around f̂ = `center`."""
    coarse = coarse_sketch(sketch, mesh.bandwidth)
    weights = coarse.weights.sum(axis=1, keepdims=True)
    density = _smoothed(coarse, weights, mesh)[0]

    def ratio(events: Floats) -> Floats:
        return _ratio(_smoothed(coarse, events, mesh)[..., 0, :], density)

    own = ratio(weights * cell_predictions(coarse)[:, None])
    drawn = consistency_events(coarse, resamples, seed=seed)
    curves = _filled(drawn, resamples, mesh, ratio)
    curves += center - own
    return ResampledCurves(center, curves)


def _smoothed(sketch: Sketch, weights: Floats, mesh: Mesh) -> Floats:
    return smoothed_weights(sketch, weights, mesh.bandwidth, mesh.steps)[..., mesh.kept]


def _filled(
    blocks: Iterable[Floats], resamples: int, mesh: Mesh, curves_of: Callable[[Floats], Floats]
) -> Floats:
    """A row of curves for each resample, a few at a time: the mesh may be far longer than its part."""
    curves = np.empty((resamples, mesh.last - mesh.first + 1))
    at_once = max(1, _POINTS_AT_ONCE // mesh.steps)
    first = 0
    for block in blocks:
        for start in range(0, len(block), at_once):
            part = block[start : start + at_once]
            curves[first : first + len(part)] = curves_of(part)
            first += len(part)
    return curves


def _regression(by_label: Floats) -> Floats:
    return _ratio(by_label[..., 1, :], by_label[..., 0, :] + by_label[..., 1, :])


def _ratio(numerator: Floats, density: Floats) -> Floats:
    known = density > _NEGLIGIBLE * np.maximum(density.max(axis=-1, keepdims=True), 0.0)
    empty = np.full_like(numerator, np.nan)
    ratio: Floats = np.divide(numerator, density, out=empty, where=known)
    return ratio
