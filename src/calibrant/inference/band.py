"""A simultaneous band for the difference of two calibration curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_seed
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.interval import require_confidence
from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    consistency_events,
    smoothed_weights,
)
from calibrant.measures.smooth_ece import smooth_ece

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
    blurs in both. Neither the errors nor the deviations are taken to be smaller than those of calibrated
    outcomes: where no event was seen, every resample is alike and shows none.

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
    a, b = (
        _curves(sketch, bandwidth, seed + place) for place, sketch in enumerate((first, second))
    )
    enough = (a.density >= FEWEST * a.density.max()) & (b.density >= FEWEST * b.density.max())
    if not enough.any():
        raise InputError(
            "the two groups have no predictions in common, so their curves cannot be compared."
        )
    difference = (a.gap - b.gap)[enough]
    resampled = (a.resampled - b.resampled)[:, enough] - difference
    calibrated = (a.calibrated - b.calibrated)[:, enough]
    error = np.maximum(np.maximum(resampled.std(axis=0), calibrated.std(axis=0)), 1e-12)
    largest = [np.abs(deviation / error).max(axis=1) for deviation in (resampled, calibrated)]
    reach = max(float(np.quantile(each, confidence)) for each in largest) * error
    observed = np.abs(difference / error).max()
    beyond = max(int((each >= observed).sum()) for each in largest)
    return DifferenceBand(
        prediction=np.asarray(first.scale.prediction(np.arange(POINTS + 1) / POINTS))[enough],
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p_value=(beyond + 1) / (RESAMPLES + 1),
        bandwidth=bandwidth,
        confidence=confidence,
    )


@dataclass(frozen=True, eq=False)
class _Curves:
    """μ̂ - f̂ and the density on the mesh; μ̂ - f̂ of resampled rows, and of calibrated outcomes."""

    gap: Floats
    density: Floats
    resampled: Floats
    calibrated: Floats


def _curves(sketch: Sketch, bandwidth: float, seed: int) -> _Curves:
    coarse = coarse_sketch(sketch, bandwidth)
    f = cell_predictions(coarse)[:, None]

    def rate(excess: Floats, density: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(density > 1e-12, excess / density, 0.0)

    def curves(weights: Floats) -> tuple[Floats, Floats]:
        mass = smoothed_weights(coarse, weights, bandwidth, POINTS)
        predicted = smoothed_weights(coarse, weights * f, bandwidth, POINTS).sum(axis=-2)
        density = mass.sum(axis=-2)
        return rate(mass[..., 1, :] - predicted, density), density

    gap, density = curves(coarse.weights)
    expected = coarse.weights.sum(axis=1, keepdims=True) * f
    resampled = [curves(block)[0] for block in bootstrap_weights(coarse, RESAMPLES, seed=seed)]
    calibrated = [
        rate(smoothed_weights(coarse, block - expected, bandwidth, POINTS)[..., 0, :], density)
        for block in consistency_events(coarse, RESAMPLES, seed=seed)
    ]
    return _Curves(gap, density, np.concatenate(resampled), np.concatenate(calibrated))
