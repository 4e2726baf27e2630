"""Bands around a curve: of the smoothed population curve, and of what a calibrated model would show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.inference.null_noise import cross_weights, design_effects
from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    consistency_events,
)
from calibrant.plotting.kernel import KernelMatrix

__all__ = [
    "Bounds",
    "CurveBands",
    "ResampledCurves",
    "curve_bands",
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


@dataclass(frozen=True, eq=False)
class CurveBands:
    """Bands for the smoothed population curve: at each point, and for the whole curve."""

    pointwise: Bounds
    simultaneous: Bounds


def curve_bands(
    sketch: Sketch, regression: Floats, points: Floats, bandwidth: float, *, confidence: float
) -> CurveBands:
    """Bands around the regression μ̂ at `points`, for the population's curve at the same bandwidth.

    At a point, μ̂ is a weighted mean of outcomes. Its interval is the exact one of a binomial with the
    effective number of rows: (Σk)² / Σk² for weights k, or as many as have the variance that was seen,
    whichever is less (Korn and Graubard, 1998). So it does not shrink to nothing where no event fell. The
    simultaneous band widens each interval to the tail at which the largest of all deviations leaves it
    with probability 1 - `confidence`, by the length of the path of the weights on the sphere (Sun and
    Loader, 1994). Nothing is drawn at random.

    Rows of one outcome may weigh more, as where only one in twenty of them was kept, here or everywhere.
    Then the events and the others are two sums of their own; see `_bounds_of_odds`.
    """
    cells = _resampled_cells(sketch, bandwidth)
    kernel = KernelMatrix(cells, points, bandwidth, labels=2)
    mass = kernel(cells.weights[None])[0].sum(axis=0)
    squares, length = _squared_weights(kernel, cells.squared_weights.T)
    rate = np.clip(regression, 0.0, 1.0)
    tails = (
        0.5 * (1.0 - confidence),
        NormalDist().cdf(-_tube_critical_value(1.0 - confidence, length)),
    )
    if (worth := _unlike(cells)) is not None:
        sums, most = mass * np.stack([1.0 - rate, rate]), _heaviest(cells, worth, kernel)
        return CurveBands(*(_bounds_of_odds(sums, squares, most, tail) for tail in tails))
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = mass**2 / squares.sum(axis=0)
        variance = (squares[1] * (1.0 - rate) ** 2 + squares[0] * rate**2) / mass**2
        seen = rate * (1.0 - rate) / variance
    rows = np.minimum(rows, np.where(seen > 0.0, seen, np.inf))
    return CurveBands(*(_binomial_bounds(rate, rows, tail) for tail in tails))


def _unlike(sketch: Sketch) -> Floats | None:
    """What a row of each cell and outcome is worth [m, 2], where that depends on the outcome."""
    if not sketch.weighted or cross_weights(sketch).any():
        return None
    worth = design_effects(
        sketch.weights,
        sketch.squared_weights,
        cell_predictions(sketch).clip(0.0, 1.0),
    )
    return None if np.allclose(worth[:, 0], worth[:, 1]) else worth


def _heaviest(sketch: Sketch, worth: Floats, kernel: KernelMatrix) -> Floats:
    """What one more row of each outcome may add at each point [2, k]: as much as any that is near.

    A heavy row two bandwidths away hardly counts here, but shows that there are such rows: so its kernel is
    taken to the fourth root.
    """
    weights, squared = sketch.weights, sketch.squared_weights
    own = np.divide(squared, weights, out=worth.copy(), where=weights > 0)
    one, most = np.maximum(worth, own).T, np.zeros((2, kernel.points))
    for block in kernel.blocks:
        near = one[:, block.cells, None] * np.sqrt(np.sqrt(block.kernel))
        most[:, block.points] = near.max(axis=1, initial=0.0)
    return most


def _bounds_of_odds(sums: Floats, squares: Floats, most: Floats, tail: float) -> Bounds:
    """Bounds of a rate from weighted sums of the others and of the events [2, k], NaN where both are 0.

    Each is a sum over as many rows as a Poisson number says. With Σw and Σw² the lower end of such a sum is
    ω Γ, ω = Σw² / Σw and Γ the gamma quantile of (Σw)² / Σw²; and its upper end the same with one row more,
    as heavy as any may be (Fay and Feuer, 1997). Of two such sums the share of one has a beta quantile,
    whose odds are multiplied by the ratio of their ω. For rows of one weight that is Clopper and Pearson's.
    """
    from scipy.special import betaincinv

    low, high = np.full((2, sums.shape[1]), np.nan)
    known = np.isfinite(sums).all(axis=0) & (sums.sum(axis=0) > 0.0) & (most > 0.0).all(axis=0)
    sums, squares, most = sums[:, known], squares[:, known], most[:, known]

    def least_share(of: int) -> Floats:
        """The lower end of the share that one of the sums has of both."""
        one, other = sums[of], sums[1 - of] + most[1 - of]
        square, others = np.maximum(squares[of], 1e-300), squares[1 - of] + most[1 - of] ** 2
        some = one**2 / square > 1e-9
        rows = np.where(some, one**2 / square, 1.0)
        share = betaincinv(rows, other**2 / others, tail)
        odds = share * (square / np.maximum(one, 1e-300))
        return np.where(some, odds / (odds + (1.0 - share) * (others / other)), 0.0)

    low[known], high[known] = least_share(1), 1.0 - least_share(0)
    return Bounds(low, high)


def _squared_weights(kernel: KernelMatrix, of_rows: Floats) -> tuple[Floats, float]:
    """Σ (w k)² of each outcome at each point, and how far the unit vector of these weights travels."""
    squares = np.empty((2, kernel.points))
    turn = 0.0
    for block in kernel.blocks:
        weighted = of_rows[:, block.cells, None] * block.kernel
        squares[:, block.points] = (weighted * block.kernel).sum(axis=1)
        here = squares[:, block.points].sum(axis=0)
        near = (weighted[..., 1:] * block.kernel[..., :-1]).sum(axis=(0, 1))
        norm = np.sqrt(here[1:] * here[:-1])
        cosine = np.divide(near, norm, out=np.ones_like(near), where=norm > 0)
        angles = np.arccos(np.clip(cosine, 0.0, 1.0))
        # From a block to the next one it is as far as between the points inside.
        turn += float(angles.sum()) * (1.0 + 1.0 / max(angles.size, 1))
    return squares, turn


def _binomial_bounds(rate: Floats, rows: Floats, tail: float) -> Bounds:
    """Clopper and Pearson's interval for a rate of so many rows, NaN where the rate is unknown."""
    from scipy.special import betaincinv

    known = np.isfinite(rate) & np.isfinite(rows)
    events, number = rate[known] * rows[known], rows[known]
    least = 1e-9
    low, high = np.full_like(rate, np.nan), np.full_like(rate, np.nan)
    others = np.maximum(number - events, least)
    low[known] = np.where(
        events <= least, 0.0, betaincinv(np.maximum(events, least), others + 1.0, tail)
    )
    high[known] = np.where(
        number - events <= least, 1.0, betaincinv(events + 1.0, others, 1.0 - tail)
    )
    return Bounds(low, high)


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
) -> Floats:
    """Regressions [resamples, k] of bootstrapped rows at `points`, around the regression `center` there.

    Drawn on a coarser grid; what that grid does to the curve of the data itself is taken off every
    resampled curve.
    """
    coarse = _resampled_cells(sketch, bandwidth)
    smooth = KernelMatrix(coarse, points, bandwidth, labels=2)
    own = _regression(smooth(coarse.weights[None]))
    drawn = bootstrap_weights(coarse, resamples, seed=seed)
    curves = np.concatenate([_regression(smooth(block)) for block in drawn])
    return np.asarray(curves + (center - own))


def resampled_calibrated(
    sketch: Sketch, center: Floats, points: Floats, bandwidth: float, resamples: int, *, seed: int
) -> ResampledCurves:
    """Regressions that a calibrated model with these predictions would show, around f̂ = `center`."""
    coarse = _resampled_cells(sketch, bandwidth)
    smooth = KernelMatrix(coarse, points, bandwidth, labels=1)
    weights = over_outcomes(coarse.weights)[None, :, None]
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


def _tube_critical_value(level: float, length: float) -> float:
    """The c that the largest |Z| of a curve of normal deviations exceeds with this probability, at most.

    Sun and Loader's bound 2Φ(-c) + length / π · exp(-c²/2), with the length of the path of the weights.
    """
    from scipy.optimize import brentq

    def excess(c: float) -> float:
        return 2.0 * NormalDist().cdf(-c) + length / math.pi * math.exp(-0.5 * c * c) - level

    return float(brentq(excess, 0.0, 40.0, xtol=1e-12)) if excess(0.0) > 0.0 else 0.0
