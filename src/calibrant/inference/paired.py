"""Resamples of each model's rows, the same rows for all, and how uncertain a difference is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.pairs import Pairs
from calibrant.data.sketch import Sketch
from calibrant.inference.assessment import Assessment
from calibrant.inference.clusters import random_blocks, rows_on_nodes
from calibrant.inference.interval import row_spread
from calibrant.inference.residuals import ResidualGrid

__all__ = ["Blocks", "Draws", "resampled", "resketched", "standard_error"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESAMPLES = 400
ABOVE_FLOOR = 1.5
FINEST_OF_FLOOR, FINEST = 0.25, 5e-4
"""No bandwidth is taken narrower than this share of the noise floor, nor than this of the scale."""


@dataclass(frozen=True, eq=False)
class Draws:
    """What resamples and influence say of one model.

    Attributes
    ----------
    values : float64[draws] or None
        SmoothECE of each resample; None for a model close to its noise floor, where it says nothing.
    influence : float64[blocks]
        Of the blocks of rows on the observed SmoothECE; their squares add up to its variance.
    units : float
        How many independent rows, or clusters, the rows are worth.
    """

    values: Floats | None
    influence: Floats
    units: float


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sets of rows that are drawn together, and how often each is in every resample.

    Rows without weight are in none: a resample of them alone would have no SmoothECE.

    Attributes
    ----------
    kept : bool[n]
        Rows with weight.
    of_row : int64[rows kept]
        The block of each of them.
    counts : int64[draws, blocks]
        How often each block is drawn.
    units : float
        The effective number of rows, or of clusters: (Σ weight)² / Σ weight².
    """

    kept: NDArray[np.bool_]
    of_row: Integers
    counts: Integers
    units: float

    @classmethod
    def of(cls, pairs: Pairs, codes: tuple[Integers, int] | None, *, seed: int) -> Blocks:
        """Draw rows, or the clusters that `cluster_codes` numbers."""
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        kept = weight > 0
        rows = int(kept.sum())
        units, number = (np.arange(rows), rows) if codes is None else (codes[0][kept], codes[1])
        share = np.bincount(units, weights=weight[kept] / weight.sum(), minlength=number)
        of_row, blocks = random_blocks(units, number, seed=seed)
        even = np.full(blocks, 1.0 / blocks)
        counts = generator(seed, 7).multinomial(blocks, even, size=RESAMPLES)
        return cls(kept, of_row, counts, float(1.0 / (share**2).sum()))

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.counts.shape[1])


def _clear(found: Assessment, sketch: Sketch) -> bool:
    least = max(ABOVE_FLOOR * found.noise_floor.value, FINEST * sketch.scale.length)
    return found.debiased > least


def _looked_at(found: Assessment, sketch: Sketch) -> float:
    """Where differences are looked at: at SmoothECE, but not far below what noise alone would give.

    Nor below a two-thousandth of the scale: hundreds of draws on so fine a grid would take minutes.
    """
    finest = max(FINEST_OF_FLOOR * found.noise_floor.value, FINEST * sketch.scale.length)
    return max(found.smooth_ece, finest)


def resampled(sketch: Sketch, pairs: Pairs, found: Assessment, blocks: Blocks) -> Draws:
    """SmoothECE of every resample of blocks of rows, and the influence of each block."""
    value = _looked_at(found, sketch)
    grid = ResidualGrid.of(sketch, 0.7 * value)
    pairs = pairs if blocks.kept.all() else pairs.select(blocks.kept)
    weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight / pairs.weight.mean()
    number = blocks.number
    residuals = rows_on_nodes(grid, pairs.p, weight * (pairs.p - pairs.y), blocks.of_row, number)
    total = np.bincount(blocks.of_row, weights=weight, minlength=number)
    values = None
    if _clear(found, sketch):
        again = blocks.counts @ residuals / (blocks.counts @ total)[:, None]
        values = grid.fixed_points(again, start=value)
    error = float(grid.errors(grid.observed, value))
    influence = residuals @ grid.witness(grid.observed, value) - total * error
    return Draws(
        values,
        influence / pairs.n * np.sqrt(number / (number - 1.0)),
        blocks.units,
    )


def resketched(sketch: Sketch, found: Assessment, seed: int) -> Draws:
    """SmoothECE of resampled rows of a sketch, and the influence of its rows as one number."""
    value = _looked_at(found, sketch)
    grid = ResidualGrid.of(sketch, 0.7 * value)
    spread = row_spread(grid, value)
    influence = np.array([spread.standard_error])
    if not _clear(found, sketch):
        return Draws(None, influence, spread.units)
    values = []
    with np.errstate(invalid="ignore"):
        for block in grid.bootstrap(RESAMPLES, seed=seed):
            some = block[np.isfinite(block).all(axis=1)]  # a draw of no rows at all is none
            values.append(grid.fixed_points(some, start=value) if len(some) else np.empty(0))
    return Draws(np.concatenate(values), influence, spread.units)


def standard_error(one: Draws, other: Draws, *, paired: bool) -> float:
    """Of the difference of two SmoothECEs.

    Near the noise floor a resample's SmoothECE hardly moves with the signal, and the signs of the
    smoothed residual, on which influence rests, are chance. So the bootstrap's standard error is used
    only where the influence of the rows does not give a larger one, and where a model is close to its
    floor nothing is assumed of how the two depend on each other: their errors are added.
    """
    first, second = (float(np.sqrt((draws.influence**2).sum())) for draws in (one, other))
    if one.values is None or other.values is None:
        return first + second
    together = (
        float(np.sqrt(((one.influence - other.influence) ** 2).sum()))
        if paired
        else float(np.hypot(first, second))
    )
    if paired:
        return max(together, float(np.std(one.values - other.values, ddof=1)))
    return max(together, float(np.hypot(np.std(one.values, ddof=1), np.std(other.values, ddof=1))))
