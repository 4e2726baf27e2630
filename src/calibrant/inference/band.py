"""A simultaneous band for the difference of two calibration curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inference.interval import require_confidence
from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    smoothed_weights,
)
from calibrant.inputs.seeds import require_seed
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.sketch.table import Sketch

__all__ = ["DifferenceBand", "difference_band"]

Floats = NDArray[np.float64]

POINTS = 128
RESAMPLES = 500
FEWEST = 0.05
NARROWEST = 0.01


@dataclass(frozen=True, eq=False)
class DifferenceBand:
    """Outcome rate above prediction in one group, minus the same in another, by prediction.

    Attributes
    ----------
    prediction : float64[m]
        Where both groups have rows enough.
    difference, low, high : float64[m]
        μ̂ - f̂ of the first group minus that of the second, with a band that holds the whole smoothed
        curve with the given confidence.
    p_value : float
        Of "the two curves are the same".
    bandwidth, confidence : float
        At which the curves are smoothed, and of the band.
    """

    prediction: Floats
    difference: Floats
    low: Floats
    high: Floats
    p_value: float
    bandwidth: float
    confidence: float

    def __repr__(self) -> str:
        apart = np.mean((self.low > 0) | (self.high < 0))
        return (
            f"DifferenceBand({self.prediction.size} points from {self.prediction[0]:.2f} to "
            f"{self.prediction[-1]:.2f}, apart at {100 * apart:.0f}% of them, p = {self.p_value:.3g})"
        )


def difference_band(
    first: Sketch, second: Sketch, *, confidence: float = 0.95, seed: int = 0
) -> DifferenceBand:
    """Compare the calibration curves of two groups, everywhere at once.

    Both curves are smoothed at one bandwidth, the larger of the groups' own; rows of each group are
    resampled, and the band is as many standard errors wide as the largest deviation of a resample has
    in all but 1 - `confidence` of them. It is a band for the smoothed curves: what the kernel blurs it
    blurs in both.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> a = Sketch.from_arrays(rng.random(2000) < p, p)
    >>> b = Sketch.from_arrays(rng.random(2000) < p**2, p)
    >>> difference_band(a, b).p_value < 0.01
    True
    """
    require_confidence(confidence)
    require_seed(seed)
    if first.scale != second.scale:
        raise InputError(
            f"both groups must be on one scale; these are on {first.scale.name!r} and "
            f"{second.scale.name!r}."
        )
    bandwidth = max(smooth_ece(first), smooth_ece(second), NARROWEST * first.scale.length)
    (gap_a, density_a, drawn_a), (gap_b, density_b, drawn_b) = (
        _curves(sketch, bandwidth, seed + place) for place, sketch in enumerate((first, second))
    )
    enough = (density_a >= FEWEST * density_a.max()) & (density_b >= FEWEST * density_b.max())
    if not enough.any():
        raise InputError(
            "the two groups have no predictions in common, so their curves cannot be compared."
        )
    difference = (gap_a - gap_b)[enough]
    deviation = (drawn_a - drawn_b)[:, enough] - difference
    error = np.maximum(deviation.std(axis=0), 1e-12)
    largest = np.abs(deviation / error).max(axis=1)
    reach = float(np.quantile(largest, confidence)) * error
    beyond = int((largest >= np.abs(difference / error).max()).sum())
    return DifferenceBand(
        prediction=np.asarray(first.scale.prediction(np.arange(POINTS + 1) / POINTS))[enough],
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p_value=(beyond + 1) / (RESAMPLES + 1),
        bandwidth=bandwidth,
        confidence=confidence,
    )


def _curves(sketch: Sketch, bandwidth: float, seed: int) -> tuple[Floats, Floats, Floats]:
    """μ̂ - f̂ and the density on the mesh, and μ̂ - f̂ of every resample."""
    coarse = coarse_sketch(sketch, bandwidth)
    f = cell_predictions(coarse)[:, None]

    def curves(weights: Floats) -> tuple[Floats, Floats]:
        mass = smoothed_weights(coarse, weights, bandwidth, POINTS)
        predicted = smoothed_weights(coarse, weights * f, bandwidth, POINTS).sum(axis=-2)
        density = mass.sum(axis=-2)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(density > 1e-12, (mass[..., 1, :] - predicted) / density, 0.0)
        return gap, density

    gap, density = curves(coarse.weights)
    drawn = [curves(block)[0] for block in bootstrap_weights(coarse, RESAMPLES, seed=seed)]
    return gap, density, np.concatenate(drawn)
