"""Residuals that calibrated predictions would have: the draws behind every p-value."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.witnesses import MOST_CELLS, Cells

__all__ = ["DRAWS", "FEW_DRAWS", "FEW_EVENTS", "null_residuals", "tail_of"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

DRAWS, FEW_DRAWS = 4000, 500
_SEED = 0
"""The draws are always the same, so that no p-value depends on a seed."""
FEW_EVENTS = 100.0
"""With fewer surprises to expect outcomes are drawn; with more, normal numbers do."""
_TAIL_DRAWS = 40


@cache
def _normal_draws(size: int) -> Singles:
    """Fixed normal numbers [DRAWS, size]: the same data give the same p-value, whatever the seed."""
    return np.random.default_rng(_SEED).standard_normal((DRAWS, size)).astype(np.float32)


@cache
def _uniform_draws(size: int) -> Singles:
    """Fixed uniform numbers [size, DRAWS]."""
    return np.random.default_rng(_SEED).random((DRAWS, size), dtype=np.float32).T.copy()


def null_residuals(cells: Cells, draws: int = DRAWS) -> Singles:
    """Residuals of the cells [draws, m] if the predictions are calibrated.

    Where surprises are few, outcomes are drawn: binomial ones for rows, and for weights events and the
    others apart, each as many as its weight is worth. Blocks of dependent rows keep or change their
    sign together; where there are many, their sum is normal.
    """
    normal = _normal_draws(MOST_CELLS)[:draws]
    if cells.blocks is not None:
        few = len(cells.blocks) <= MOST_CELLS
        factor = cells.blocks if few else _square_root(cells.blocks)
        normal = normal[:, : len(factor)]
        return np.asarray((np.sign(normal) if few else normal) @ factor.astype(np.float32))
    if cells.events >= FEW_EVENTS:
        return np.asarray(normal[:, : cells.null.size] * np.sqrt(cells.null).astype(np.float32))
    f = cells.prediction
    if cells.rows is not None:
        surprises = _binomial(cells.rows, np.minimum(f, 1.0 - f), draws)
        surprises *= (np.where(f > 0.5, 1.0, -1.0) * cells.shares[:, 1]).astype(np.float32)
        return surprises
    weight, event, other = cells.shares.T
    rng = np.random.default_rng(_SEED)
    events = rng.poisson(weight * f / event, size=(draws, f.size)) * event
    others = rng.poisson(weight * (1.0 - f) / other, size=(draws, f.size)) * other
    return np.asarray(f * others - (1.0 - f) * events, dtype=np.float32)


def _square_root(blocks: Floats) -> Floats:
    """The symmetric root of the covariance of the sums: the same in whatever order the blocks come."""
    values, vectors = np.linalg.eigh(blocks.T @ blocks)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _binomial(rows: NDArray[np.int64], chance: Floats, draws: int) -> Singles:
    """Fixed binomial draws [draws, m], less their means, by inversion of the distribution.

    They lie cell by cell: most cells have one row or two, and are done with after as many comparisons.
    """
    uniform = _uniform_draws(MOST_CELLS)[: rows.size, :draws]
    odds = chance / (1.0 - chance)
    share = np.exp(rows * np.log1p(-chance))
    below = share.copy()
    drawn = (uniform > below[:, None].astype(np.float32)).astype(np.float32)
    for k in range(int(rows.max()) - 1):
        share = share * odds * (np.maximum(rows - k, 0) / (k + 1.0))
        below = below + share
        unfinished = np.flatnonzero(below <= 1.0 - 1e-7)
        if not unfinished.size:
            break
        least = below[unfinished, None].astype(np.float32)
        drawn[unfinished] += uniform[unfinished] > least
    drawn -= (rows * chance).astype(np.float32)[:, None]
    return drawn.T


def tail_of(null: Floats, value: float, slope: float) -> float:
    """P(statistic ≥ value), by the draws, and one standard error more, lest chance make it too small.

    Values that are equal up to rounding count in full. Beyond the last draws, P falls like
    exp(-slope · value).
    """
    beyond = int(np.searchsorted(-null, 1e-4 * (1.0 + abs(value)) - value, side="right"))
    counted, all_draws = max(beyond, _TAIL_DRAWS), null.size + 1.0
    share = (counted + math.sqrt(counted) + 1.0) / all_draws
    if beyond >= _TAIL_DRAWS:
        return share
    share *= math.exp(slope * min(float(null[_TAIL_DRAWS - 1]) - value, 0.0))
    return max(share, (beyond + math.sqrt(beyond)) / all_draws)
