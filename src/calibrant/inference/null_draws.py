"""Residuals that calibrated predictions would have: the draws behind every p-value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant.inference._draws import binomial_surprises, product
from calibrant.inference.witnesses import MOST_CELLS, Cells

__all__ = [
    "DRAWS",
    "FEW_DRAWS",
    "FEW_EVENTS",
    "are_fixed",
    "null_means",
    "null_residuals",
    "tail_of",
    "tail_of_failures",
    "value_of_tail",
]

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
    """Fixed normal numbers [size, DRAWS]: the same data give the same p-value, whatever the seed."""
    return np.random.default_rng(_SEED).standard_normal((DRAWS, size)).astype(np.float32).T.copy()


@cache
def _uniform_draws(size: int) -> Singles:
    """Fixed uniform numbers [size, DRAWS]."""
    return np.random.default_rng(_SEED).random((DRAWS, size), dtype=np.float32).T.copy()


def null_residuals(cells: Cells, start: int = 0, stop: int = DRAWS) -> Singles:
    """Residuals of the cells [draws, m] if the predictions are calibrated, in the draws from start to stop.

    Where surprises are few, outcomes are drawn: binomial ones for rows, and for weights events and the
    others apart, each as many as its weight is worth. Blocks of dependent rows keep or change their
    sign together; where there are many, their sum is normal.
    """
    normal = _normal_draws(MOST_CELLS)[:, start:stop]
    if cells.blocks is not None:
        few = len(cells.blocks) <= MOST_CELLS
        factor = cells.blocks if few else _square_root(cells.blocks)
        normal = normal[: len(factor)].T
        return np.asarray((np.sign(normal) if few else normal) @ factor.astype(np.float32))
    if cells.events >= FEW_EVENTS:
        return (normal[: cells.null.size] * np.sqrt(cells.null).astype(np.float32)[:, None]).T
    f = cells.prediction
    if cells.rows is not None:
        surprises = np.empty((f.size, stop - start), dtype=np.float32)
        worth = np.where(f > 0.5, cells.shares[:, 1], -cells.shares[:, 1])
        chance = np.minimum(f, 1.0 - f)
        binomial_surprises(_uniform_draws(MOST_CELLS), start, cells.rows, chance, worth, surprises)
        return surprises.T
    heavy = cells.heavy
    weight, event, other = (
        cells.shares if heavy is None else heavy.shares_of_others(cells.shares)
    ).T
    rng = np.random.default_rng(_SEED)
    events = rng.poisson(weight * f / event, size=(stop, f.size)) * event
    others = rng.poisson(weight * (1.0 - f) / other, size=(stop, f.size)) * other
    residuals = f * others - (1.0 - f) * events
    if heavy is not None:
        for cell, own in zip(heavy.cell, heavy.residuals(rng, stop).T, strict=True):
            residuals[:, cell] += own
    return np.asarray(residuals, dtype=np.float32)[start:]


def null_means(cells: Cells, functions: Singles, parts: Iterable[slice]) -> Iterator[Singles]:
    """Means of functions [k, m] times such residuals, of each part of the draws: [k, draws]."""
    if cells.blocks is None and cells.events >= FEW_EVENTS:  # numbers, scaled with the functions
        scaled = functions * np.sqrt(cells.null).astype(np.float32)
        normal = _normal_draws(MOST_CELLS)[: cells.null.size]
        yield from (product(scaled, normal[:, part]) for part in parts)
        return
    for part in parts:
        residuals = null_residuals(cells, part.start, part.stop)
        yield product(functions, np.ascontiguousarray(residuals.T))


def _square_root(blocks: Floats) -> Floats:
    """The symmetric root of the covariance of the sums: the same in whatever order the blocks come."""
    values, vectors = np.linalg.eigh(blocks.T @ blocks)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def are_fixed(cells: Cells) -> bool:
    """Whether the first draws are the same however many follow; those for weights are not."""
    return cells.blocks is not None or cells.events >= FEW_EVENTS or cells.rows is not None


def tail_of(null: NDArray[np.floating], value: float, events: float) -> float:
    """P(statistic ≥ value), by the draws, and one standard error more, lest chance make it too small.

    Values that are equal up to rounding count in full. Beyond the last draws, P falls like exp(-value), or
    half as fast where few events are to be: their tail is that of a count, and longer than the normal's.
    """
    beyond = int(np.searchsorted(-null, 1e-4 * (1.0 + abs(value)) - value, side="right"))
    counted, all_draws = max(beyond, _TAIL_DRAWS), null.size + 1.0
    share = (counted + math.sqrt(counted) + 1.0) / all_draws
    if beyond >= _TAIL_DRAWS:
        return share
    share *= math.exp(_slope(events) * min(float(null[_TAIL_DRAWS - 1]) - value, 0.0))
    return max(share, (beyond + math.sqrt(beyond)) / all_draws)


def value_of_tail(null: NDArray[np.floating], level: float, events: float) -> float:
    """The statistic at which `tail_of` is this level, had all been drawn, judged by those that were."""
    last = (_TAIL_DRAWS + math.sqrt(_TAIL_DRAWS) + 1.0) / (DRAWS + 1.0)
    inside = max(level, last)
    counted = (math.sqrt(inside * (DRAWS + 1.0) - 0.75) - 0.5) ** 2
    place = counted / DRAWS * null.size - 0.5
    value = float(np.interp(place, np.arange(null.size), null))
    return value + math.log(inside / level) / _slope(events)


def _slope(events: float) -> float:
    return 1.0 if events >= FEW_EVENTS else 0.5


def tail_of_failures(cells: Cells, size: float) -> float:
    """P-value of predictions of 0 and 1 alone: as many failures, in as many rows, at this rate.

    A failure counts by what such a row is worth: ten times as much is not ten times as many.
    """
    weight = float(np.abs(cells.residual).sum())
    if weight == 0.0 or size == 0.0:
        return float(weight == 0.0)
    one = float(cells.seen.sum()) / weight
    failures, expected = max(round(weight / one), 1), size / one
    k = np.arange(failures)
    logs = k * math.log(expected) - np.array([math.lgamma(x + 1.0) for x in k]) - expected
    return max(1.0 - float(np.exp(logs).sum()), 0.0)
