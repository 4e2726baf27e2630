"""Bands from resampled curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    sketch: Sketch, center: Floats, bandwidth: float, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions of bootstrapped rows, around the regression `center` of the sketch.

    Drawn on a coarser grid; what that grid does to the curve of the data itself is taken off every
    resampled curve.
    """
    points = center.size - 1
    coarse = coarse_sketch(sketch, bandwidth)
    own = _regression(smoothed_weights(coarse, coarse.weights, bandwidth, points))
    curves = np.empty((resamples, points + 1))
    first = 0
    for weights in bootstrap_weights(coarse, resamples, seed=seed):
        block = _regression(smoothed_weights(coarse, weights, bandwidth, points))
        curves[first : first + len(block)] = block
        first += len(block)
    curves += center - own
    return ResampledCurves(center, curves)


def _regression(by_label: Floats) -> Floats:
    density = by_label[..., 0, :] + by_label[..., 1, :]
    least = _NEGLIGIBLE * density.max(axis=-1, keepdims=True)
    known = (density > least) & (density > 0)
    empty = np.full_like(density, np.nan)
    ratio: Floats = np.divide(by_label[..., 1, :], density, out=empty, where=known)
    return ratio


def resampled_calibrated(
    sketch: Sketch, center: Floats, bandwidth: float, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions that a calibrated model with these predictions would show, around f̂ = `center`."""
    points = center.size - 1
    coarse = coarse_sketch(sketch, bandwidth)
    everything = coarse.weights.sum(axis=1, keepdims=True)
    density = smoothed_weights(coarse, everything, bandwidth, points)[0]
    least = _NEGLIGIBLE * float(density.max())
    curves = np.full((resamples, points + 1), np.nan)
    first = 0
    for events in consistency_events(coarse, resamples, seed=seed):
        smooth = smoothed_weights(coarse, events, bandwidth, points)[:, 0]
        block = curves[first : first + len(smooth)]
        np.divide(smooth, density, out=block, where=density > least)
        first += len(smooth)
    own = _expected(coarse, density, least, bandwidth, points)
    curves += center - own
    return ResampledCurves(center, curves)


def _expected(
    coarse: Sketch, density: Floats, least: float, bandwidth: float, points: int
) -> Floats:
    mean = coarse.weights.sum(axis=1, keepdims=True) * cell_predictions(coarse)[:, None]
    smooth = smoothed_weights(coarse, mean, bandwidth, points)[0]
    empty = np.full_like(density, np.nan)
    ratio: Floats = np.divide(smooth, density, out=empty, where=density > least)
    return ratio
