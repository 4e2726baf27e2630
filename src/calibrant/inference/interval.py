"""An interval for the population's SmoothECE that covers, also when that is 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence
from calibrant.data.sketch import Sketch
from calibrant.errors import Function, InputError
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.quantiles import crossing, normal_quantile
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.row_worth import cross_weights
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

PRECISION = 1e-3
"""Of the upper end, in units of the error e."""


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


@dataclass(frozen=True, eq=False)
class Spread:
    """How far the sample's SmoothECE strays from the population's.

    Attributes
    ----------
    grid : ResidualGrid
        The rows, which tell smECE at every bandwidth.
    standard_error : float
        The largest that the mean of (f - y) g(f) can have, with any |g| ≤ 1.
    units : float
        The effective number of independent rows, or of clusters.
    degrees : float
        Degrees of freedom of the standard error; infinite for rows.
    """

    grid: ResidualGrid
    standard_error: float
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
    """Where the interval ends: at the largest θ with θ - smECE_θ ≤ e, and at most at 1.

    If the population's SmoothECE is θ, then θ = E[(f - y) g(f)] for some g = K_θ ∗ s with |s| ≤ 1. The
    sample's smECE_θ is the largest mean of (f - y) g(f) over all such g, so it is at least the mean with
    this one, which is below θ by more than e in at most (1 - confidence) / 2 of samples, wherever the
    error lies. smECE_θ falls with θ, so the sizes that pass are those up to the end.

    With s the standard error, z the quantile of the normal, or of Student's t for clusters, and m the
    number of units, e = z² / 2m + z √(s² + z² / 4m²). That is Wilson's: with few events s may be 0
    although other samples would differ, as when no event was seen at all.

    Examples
    --------
    It is the upper end of the interval of `assess`:

    >>> import calibrant as cal
    >>> assessment = cal.assess([0, 1, 0, 1, 1, 0], [0.1, 0.9, 0.4, 0.6, 0.8, 0.7])
    >>> assessment.smooth_ece < assessment.interval.high <= 1
    True
    """
    z = normal_quantile(0.5 + 0.5 * confidence, spread.degrees)
    error = float(wilson_error(z, spread.standard_error, spread.units))
    grid, precision = spread.grid, PRECISION * error

    def excess(size: float) -> float:
        return size - grid.error(size) - error

    end = crossing(excess, (value, -error), (value + error, excess(value + error)), precision)
    return float(min(end + precision, 1.0))


def row_spread(grid: ResidualGrid, value: float) -> Spread:
    """The spread of smECE over independent rows: Σ w² (f - y)² / (Σw)², less what the mean takes.

    A soft row's residual is that of both labels, in its shares.
    """
    sums, f = grid.strayed, grid.predictions
    units = min(sums.units, float(grid.sketch.n))
    second = sums.second
    if grid.sketch.weighted:
        second -= 2.0 * float(cross_weights(grid.sketch) @ (f * (1.0 - f)))
    return Spread(grid, math.sqrt(max(second / sums.total**2 - value**2 / units, 0.0)), units)
