"""An interval for the population's SmoothECE that covers, also when that is 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence
from calibrant.data.sketch import Sketch
from calibrant.errors import Function, InputError
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.quantiles import normal_quantile
from calibrant.inference.resampling import cross_weights
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.wilson import wilson_error

__all__ = [
    "Interval",
    "Spread",
    "interval",
    "normal_quantile",
    "require_confidence",
    "row_spread",
    "upper_end",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A range that holds the population's SmoothECE with the given confidence."""

    low: float
    high: float
    confidence: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    @property
    def width(self) -> float:
        """High minus low."""
        return self.high - self.low


@dataclass(frozen=True)
class Spread:
    """How far the sample's SmoothECE strays from the population's.

    Attributes
    ----------
    standard_error : float
        Of smECE at the bandwidth σ*.
    steepness : float
        -d smECE_σ / dσ there: the fixed point moves by only 1 / (1 + steepness) of it.
    units : float
        The effective number of independent rows, or of clusters.
    degrees : float
        Degrees of freedom of the standard error; infinite for rows.
    """

    standard_error: float
    steepness: float
    units: float
    degrees: float = np.inf


def interval(sketch: Sketch, value: float, *, confidence: float = CONFIDENCE) -> Interval:
    """The interval for independent rows.

    Its lower end is the smallest SmoothECE that a test does not reject, which at 0 is the test of
    calibration (see `Rejection`); its upper end is that of `upper_end`. It misses the population's value
    with probability at most 1 - `confidence`.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    value : float
        Their SmoothECE.
    confidence : float
        How often the interval should hold the population's value.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> y = (np.arange(1000) * 0.618034 % 1 < 0.2 + 0.6 * p).astype(int)
    >>> sketch = Sketch.from_arrays(y, p)
    >>> interval(sketch, 0.0945)
    Interval(low=0.05..., high=0.12..., confidence=0.95)
    """
    require_confidence(confidence)
    if not 0.0 < value <= sketch.scale.length:
        raise InputError(
            "must be the SmoothECE of the rows, above 0",
            argument="value",
            seen=value,
            cure="Compute it with {function}.",
            function=Function("smooth_ece"),
        )
    spread = row_spread(ResidualGrid.of(sketch, value), value)
    high = upper_end(value, spread, confidence)
    low = Rejection.of(sketch, noise_floor(sketch).value).lower_end(confidence)
    return Interval(min(low, high), high, confidence)


def upper_end(value: float, spread: Spread, confidence: float) -> float:
    """Where the interval ends: at most 1.

    With θ̂ the value, s its standard error, D its steepness, z the quantile of the normal, or of Student's
    t for clusters, and m the number of units, it is

        θ̂ + (z² / 2m + z √(s² + z² / 4m²)) / (1 + D).

    The plug-in θ̂ is biased upwards, which does no harm here. The error is Wilson's: with few events s may
    be 0 although other samples would differ, as when no event was seen at all.
    """
    z = normal_quantile(0.5 + 0.5 * confidence, spread.degrees)
    error = wilson_error(z, spread.standard_error, spread.units) / (1.0 + spread.steepness)
    return float(min(value + error, 1.0))


def row_spread(grid: ResidualGrid, value: float) -> Spread:
    """The spread of smECE over independent rows, by its influence function.

    IF = (f - y) g(f) - smECE_σ with g = K_σ ∗ sign(r̂_σ); with weights, the variance is
    Σ w² IF² / (Σw)². A soft row's influence is that of both labels, in its shares.
    """
    sketch, weights = grid.sketch, grid.sketch.weights
    residual = np.stack([grid.predictions, grid.predictions - 1.0], axis=1)
    influence = residual * grid.at_cells(grid.witness(grid.observed, value))[:, None]
    total = weights.sum()
    influence -= (weights * influence).sum() / total
    squared = sketch.squared_weights
    variance = float((squared * influence**2).sum() / total**2)
    variance += 2.0 * float(cross_weights(sketch) @ influence.prod(axis=1)) / total**2
    units = min(float(total**2 / squared.sum()), float(sketch.n))
    return Spread(float(np.sqrt(max(variance, 0.0))), grid.steepness(value), units)
