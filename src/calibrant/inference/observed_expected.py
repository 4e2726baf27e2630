"""Events that came over events that were predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant._format import decimals
from calibrant.data.cell_sums import over_outcomes
from calibrant.inference.null_noise import cross_weights, design_effects, expected_weights
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.result_record import plain

__all__ = ["Ratio", "observed_expected"]


@dataclass(frozen=True)
class Ratio:
    """Observed events over expected ones.

    Attributes
    ----------
    value : float
        The ratio; 1 for predictions that are right on average.
    low, high : float
        Ends of the interval for the population's ratio.
    confidence : float
        Confidence of the interval.
    """

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        if math.isfinite(self.value):
            value, low, high = (decimals(x, places=3) for x in (self.value, self.low, self.high))
            return f"{value} ({low} to {high})"
        none = math.isnan(self.value)
        return "no event seen, none expected" if none else "events seen, none expected"

    def to_dict(self) -> dict[str, float | None]:
        """The ratio and its interval; None where they are not finite."""
        return {name: plain(getattr(self, name)) for name in ("value", "low", "high")}


def observed_expected(
    grid: ResidualGrid, z: float, confidence: float, *, trials: float, inflation: float = 1.0
) -> Ratio:
    """The ratio ρ of the rows on a grid, with the interval of its residuals y - ρ f.

    Predictions explain outcomes, so the ratio varies as far as y - ρ f does, not as y does. With s the
    standard error of their mean, κ = E(y - ρf)³ / E(y - ρf)² how skewed they are, and no more than calibrated
    ones would be, and m the number of trials, the ends are

        ρ + (κ z² / 2m ± z √(s² + κ² z² / 4m²)) / E[f].

    For rare events κ is 1 and this is the score interval of a Poisson count; for predictions of ½ it is
    0, and the interval symmetric. Of confident predictions a small sample may show hardly a surprise: s is
    no less than outcomes vary that happen ρ times as often as predicted, at least ρ f (1 - f) where ρ ≤ 1.
    Fewer than two trials, as where one row has nearly all of the weight, say nothing.

    Parameters
    ----------
    grid : ResidualGrid
        The rows.
    z : float
        Quantile of the interval's ends.
    confidence : float
        The same, as it was asked for.
    trials : float
        The effective number of rows.
    inflation : float
        Factor by which clusters make the standard error larger than for independent rows.
    """
    sums = grid.strayed
    rate, expected = sums.events / sums.total, sums.expected
    if expected <= 0.0:
        return Ratio(math.nan if rate == 0.0 else math.inf, 0.0, math.inf, confidence)
    ratio, variance = rate / expected, sums.variance
    third, calibrated, limit = sums.third, *_if_calibrated(grid)
    if grid.sketch.weighted:
        third = _weighted_third(grid, ratio) * sums.units / sums.total
        limit *= sums.units / sums.total
    skew = third / variance if variance > 0.0 else 1.0 if rate < 0.5 else -1.0
    skew = max(min(limit, 0.0), min(skew, max(limit, 0.0)))
    variance = max(variance, calibrated * max(min(ratio, 2.0 - ratio), 0.0))
    if trials < 2.0:
        return Ratio(ratio, 0.0, 1.0 / expected, confidence)
    error = math.sqrt(variance) / sums.total * inflation
    lean = skew * z / (2.0 * trials)
    half = math.sqrt(error**2 + lean**2)
    low, high = (ratio + z * (lean + side * half) / expected for side in (-1.0, 1.0))
    return Ratio(ratio, max(low, 0.0), min(high, 1.0 / expected), confidence)


def _if_calibrated(grid: ResidualGrid) -> tuple[float, float]:
    """Σw² (y - f)² and Σw³ (y - f)³ / Σw² (y - f)² of calibrated predictions, as rows are worth.

    A few surprises of one kind say little of either.
    """
    f, sketch = grid.predictions, grid.sketch
    expected, worth = over_outcomes(sketch.squared_weights), np.ones((f.size, 2))
    if sketch.weighted and not cross_weights(sketch).any():
        f = f.clip(0.0, 1.0)
        worth = design_effects(sketch.weights, sketch.squared_weights, f)
        expected = expected_weights(sketch.weights, worth, f)
    chance, (other, event) = expected * f * (1.0 - f), (worth * np.stack([f, 1.0 - f], axis=1)).T
    variance = float(chance @ (other + event))
    if variance <= 0.0:
        return 0.0, 1.0 if float(f.mean()) < 0.5 else -1.0
    return variance, float(chance @ (event**2 - other**2)) / variance


def _weighted_third(grid: ResidualGrid, ratio: float) -> float:
    """Σw³ (y - ρf)³, were the rows of a cell and outcome of one weight."""
    weights, squared = grid.sketch.weights, grid.sketch.squared_weights
    cubes = np.divide(squared**2, weights, out=np.zeros_like(weights), where=weights > 0)
    strayed = np.arange(2.0) - ratio * grid.predictions[:, None]
    return float((cubes * strayed**3).sum())
