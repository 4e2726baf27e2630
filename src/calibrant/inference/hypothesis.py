"""Tests of calibration: could a calibrated predictor have done this?"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.sketch import Sketch
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.wilson import wilson_error

__all__ = ["calibration_p_value", "draws_needed", "honest_lower_bound", "resampled_p_value"]

FOLDS = 5

RESAMPLES = 1000
ENOUGH = 50
"""Resamples beyond the observed value after which the p-value is known well enough."""


def draws_needed(confidence: float, tests: int = 1) -> int:
    """So many draws that p-values can be well below the level of as many tests, and of one side."""
    return int(np.ceil(5.0 * tests / (1.0 - confidence)))


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
        Of the draws.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> calibration_p_value(Sketch.from_arrays(p > 0.5, p), 0.2)
    0.000999...
    """
    grid = ResidualGrid.of(sketch, value)
    observed = float(grid.errors(grid.observed, value))
    blocks = (grid.errors(block, value) for block in grid.consistency(resamples, seed=seed))
    return resampled_p_value(observed, blocks, resamples)


def resampled_p_value(
    observed: float, blocks: Iterable[NDArray[np.float64]], resamples: int
) -> float:
    """The share of resampled values, which come in blocks, that are no less than the observed one.

    Values that are equal, up to rounding, count in full: where outcomes are few, so are the values that
    the statistic can take, and what calibrated predictions do often is no evidence against them.
    """
    least = observed - 1e-9 * abs(observed)
    beyond, drawn = 0, 0
    for block in blocks:
        above = block >= least
        reached = np.flatnonzero(beyond + np.cumsum(above) >= ENOUGH)
        if reached.size:
            return ENOUGH / (drawn + int(reached[0]) + 1)
        beyond, drawn = beyond + int(above.sum()), drawn + block.size
    return (beyond + 1) / (resamples + 1)


def honest_lower_bound(
    sketch: Sketch, value: float, *, confidence: float = 0.95, seed: int = 0
) -> float | None:
    """A lower bound of the population's SmoothECE that owes nothing to a noise floor.

    smECE_σ is the largest mean of (f - y) g(f) over the functions g = K_σ ∗ s with |s| ≤ 1. The rows
    are dealt into five parts. From the second on, g_k and σ_k are learnt from the parts before, and
    the mean is taken in the part itself, where it is an unbiased estimate of something below
    smECE_σ_k. Given the parts before, each is independent of what was learnt, so what the sum misses
    is a martingale, whose variance is the sum of the parts'. The average of the parts, less its
    one-sided error, is therefore below smECE at σ = min σ_k, and since smECE_σ falls with σ, the
    fixed point is at least the smaller of that bound and σ. The variance of a part is taken to be no
    less than calibrated outcomes would have, and the error is Wilson's: where no event was seen, or
    nothing but events, the rows show no variance.

    Returns
    -------
    float or None
        At least 0; None for weighted sketches, which cannot be split into rows.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> y = np.arange(1000) * 0.618034 % 1 < 0.2 + 0.6 * p
    >>> 0.04 < honest_lower_bound(Sketch.from_arrays(y, p), 0.0945) < 0.08
    True
    """
    if sketch.weighted or sketch.n < 2 * FOLDS:
        return None if sketch.weighted else 0.0
    grid = ResidualGrid.of(sketch, 0.7 * value)
    first, *others = _split_rows(grid.sketch.counts, seed)
    f = np.clip(grid.predictions, 0.0, 1.0)
    residual = np.stack([grid.predictions, grid.predictions - 1.0], axis=1)
    before, total = first, float(sketch.n - first.sum())
    mean, variance, narrowest = 0.0, 0.0, np.inf
    for part in others:
        learnt = grid.on_nodes((before * residual).sum(axis=1) / before.sum())
        sigma = float(grid.fixed_points(learnt[None], start=value)[0])
        witness = grid.at_cells(grid.witness(learnt, sigma))
        gain = residual * witness[:, None]
        here = float((part * gain).sum())
        seen = float((part * (gain - here / part.sum()) ** 2).sum())
        calibrated = float((part.sum(axis=1) * f * (1.0 - f) * witness**2).sum())
        mean += here / total
        variance += max(seen, calibrated) / total**2
        narrowest = min(narrowest, sigma)
        before = before + part
    z = NormalDist().inv_cdf(confidence)
    low = mean - wilson_error(z, float(np.sqrt(variance)), total)
    return float(max(min(low, narrowest), 0.0))


def _split_rows(counts: NDArray[np.int64], seed: int) -> list[NDArray[np.int64]]:
    """Rows of each (cell, label) dealt at random into folds of nearly equal size."""
    rng = generator(seed, 4)
    left, folds = counts.ravel().copy(), []
    rows = int(left.sum())
    for remaining in range(FOLDS, 1, -1):
        taken = rng.multivariate_hypergeometric(left, rows // remaining, method="marginals")
        folds.append(taken.reshape(counts.shape))
        left, rows = left - taken, rows - rows // remaining
    return [*folds, left.reshape(counts.shape)]
