"""Tests of calibration: could a calibrated predictor have done this?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.residuals import ResidualGrid
from calibrant.sketch.table import Sketch

__all__ = ["calibration_p_value", "resampled_p_value"]

RESAMPLES = 1999
ENOUGH = 50
"""Resamples beyond the observed value after which the p-value is known well enough."""


def calibration_p_value(
    sketch: Sketch, value: float, *, resamples: int = RESAMPLES, seed: int = 0
) -> float:
    """P-value of "the predictions are calibrated", by drawing outcomes y ~ Bernoulli(f).

    The statistic is SmoothECE. No fixed point need be solved per draw: smECE_σ falls with σ, so a
    draw's σ* is at least the observed value θ̂ exactly when its smECE at bandwidth θ̂ is.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    value : float
        Their SmoothECE.
    resamples : int
        At most this many draws. They end early once 50 were beyond the observed value
        (Besag and Clifford, 1991), so a p-value is accurate to about a seventh of itself.
    seed : int
        Of the draws, and of the order among equal values: where outcomes are few, so are the values
        that the statistic can take, and ties are broken at random to keep the test's size.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> calibration_p_value(Sketch.from_arrays(p > 0.5, p), 0.2)
    0.0005
    """
    grid = ResidualGrid.of(sketch, value)
    observed = float(grid.errors(grid.observed, value))
    blocks = (grid.errors(block, value) for block in grid.consistency(resamples, seed=seed))
    return resampled_p_value(observed, blocks, resamples, seed=seed)


def resampled_p_value(
    observed: float, blocks: Iterable[NDArray[np.float64]], resamples: int, *, seed: int
) -> float:
    """The rank of the observed value among resampled ones, which come in blocks.

    Ties, up to rounding, are put in a random order.
    """
    rng = np.random.default_rng([seed, 3])
    slack = 1e-9 * abs(observed)
    beyond, drawn = 0, 0
    for block in blocks:
        tied = np.abs(block - observed) <= slack
        above = np.where(tied, rng.random(block.shape) < 0.5, block > observed)
        reached = np.flatnonzero(beyond + np.cumsum(above) >= ENOUGH)
        if reached.size:
            return ENOUGH / (drawn + int(reached[0]) + 1)
        beyond, drawn = beyond + int(above.sum()), drawn + block.size
    return (beyond + 1) / (resamples + 1)
