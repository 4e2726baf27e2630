"""An interval for the population's SmoothECE that covers, also when that is 0."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.hypothesis import RESAMPLES, calibration_p_value, draws_needed
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.resampling import cross_weights
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.wilson import wilson_error

__all__ = [
    "Interval",
    "Spread",
    "bounds",
    "interval",
    "normal_quantile",
    "require_confidence",
    "row_spread",
]

Floats = NDArray[np.float64]

LARGEST_CONFIDENCE = 0.9999


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


def interval(sketch: Sketch, value: float, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """The interval for independent rows (see `bounds`).

    Parameters
    ----------
    sketch : Sketch
        The rows.
    value : float
        Their SmoothECE.
    confidence : float
        How often the interval should hold the population's value.
    seed : int
        Of the draws for the noise floor and the test.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> y = (np.arange(1000) * 0.618034 % 1 < 0.2 + 0.6 * p).astype(int)
    >>> sketch = Sketch.from_arrays(y, p)
    >>> interval(sketch, 0.0945)
    Interval(low=0.06..., high=0.12..., confidence=0.95)
    """
    require_confidence(confidence)
    if not 0.0 < value <= sketch.scale.length:
        raise InputError(
            f"`value` must be the SmoothECE of the rows, above 0; got {value!r}. See `smooth_ece`."
        )
    spread = row_spread(ResidualGrid.of(sketch, value), value)
    floor = noise_floor(sketch, seed=seed).value
    draws = max(RESAMPLES, draws_needed(confidence))
    p_value = calibration_p_value(sketch, value, resamples=draws, seed=seed)
    return bounds(value, spread, floor, p_value, confidence=confidence)


def bounds(
    value: float, spread: Spread, floor: float, p_value: float, *, confidence: float
) -> Interval:
    """The interval from a value, its spread, the noise floor and the p-value of calibration.

    With θ̂ the value, b0 the noise floor, s the standard error, D the steepness, z the normal
    quantile and m the number of units,

        e    = (z² / 2m + z √(s² + z² / 4m²)) / (1 + D)
        low  = √((θ̂ - e)₊² - b0²)₊,   and 0 unless calibration is rejected at (1-confidence)/2
        high = θ̂ + e,   and at most 1

    The plug-in θ̂ is biased upwards, by as much as b0 where the truth is 0, so the lower end is where
    the bias must be removed: noise and signal add up like squares. The error e is Wilson's: with few
    events s may be 0 although other samples would differ, as when no event was seen at all.

    Coverage is simulated in `bench/coverage` and printed in the documentation. The interval is
    conservative where the truth is not far above the noise floor.
    """
    z = normal_quantile(0.5 + 0.5 * confidence, spread.degrees)
    s, shrink, m = spread.standard_error, 1.0 + spread.steepness, spread.units
    error = wilson_error(z, s, m) / shrink
    below, high = max(value - error, 0.0), value + error
    low = float(np.sqrt(max(below**2 - floor**2, 0.0)))
    if p_value > 0.5 * (1.0 - confidence):
        low = 0.0
    return Interval(low, float(min(high, 1.0)), confidence)


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


def require_confidence(confidence: float) -> None:
    """Refuse what is not a number between 0 and 1."""
    valid = is_number(confidence)
    if not valid or not 0.0 < confidence < 1.0:
        cure = " For 95 per cent pass 0.95." if valid and 1.0 < confidence < 100.0 else ""
        raise InputError(f"`confidence` must lie between 0 and 1; got {confidence!r}.{cure}")
    if confidence > LARGEST_CONFIDENCE:
        raise InputError(
            f"`confidence` must be at most {LARGEST_CONFIDENCE}; got {confidence!r}. Beyond, "
            "the test would take more draws than there is time for."
        )


def normal_quantile(level: float, degrees: float = np.inf) -> float:
    """Quantile of the normal, or of Student's t with these degrees of freedom."""
    if np.isinf(degrees):
        return NormalDist().inv_cdf(level)
    from scipy.special import stdtrit

    return float(stdtrit(degrees, level))
