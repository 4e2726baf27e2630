"""Rows recalibrated by maps that have not seen them: two random halves, each mapped by the other's map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.points import Points
from calibrant.data.rows import Rows
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.learned_map import Recalibrator, make_map

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NODES = 1 << 13
"""Enough for three digits of every score, at an eighth of the cost of the default grid."""


def recalibrated_halves(
    sketch: Sketch, parts: tuple[Sketch, Sketch] | None = None, *, seed: int = 0
) -> tuple[Sketch, bool] | None:
    """Sketch of the rows of either half, mapped by the default map of the other; True if that is no change.

    The halves are `parts`, or made by throwing coins, as if the rows were independent. None where a half of
    the rows holds one outcome only.

    Examples
    --------
    >>> p = np.linspace(0.01, 0.99, 99)
    >>> sketch = Sketch.from_counts(p, np.full(99, 1000), np.round(1000 * p**2))
    >>> found = recalibrated_halves(sketch)
    >>> found[0].n, found[1]
    (99000, False)
    """
    nodes = min(sketch.nodes, NODES)
    if parts is None:  # with weights, rows that share a cell are told apart less well
        parts = halves(sketch if sketch.weighted else sketch.rebin(nodes), seed=seed)
    first, second = (part.rebin(nodes) for part in parts)
    maps: Any = maps_of_others((first, second))
    if not maps:
        return None
    mapped = _applied(maps[0], first) + _applied(maps[1], second)
    return mapped, all(one.is_identity for one in maps)


def maps_of_others(
    parts: Sequence[Sketch], recalibrator: Recalibrator | None = None
) -> list[Recalibrator]:
    """Map for each part of the rows, learned from the other parts; none where these lack an outcome."""
    maps = []
    for k in range(len(parts)):
        first, *rest = (part for place, part in enumerate(parts) if place != k)
        others = sum(rest, start=first)
        if not others.weights.sum(axis=0).all():
            return []
        maps.append(make_map("adaptive" if recalibrator is None else recalibrator).fit(others))
    return maps


def halves(sketch: Sketch, *, seed: int) -> tuple[Sketch, Sketch]:
    """Random halves of the rows.

    Rows of one cell and outcome are alike, so that dealing them is a binomial draw of their number;
    their offsets are shared out in proportion, which moves no row out of its cell. So are weights, as
    if all rows of a cell and outcome had the same.
    """
    counts, offsets = sketch.counts, sketch.offsets
    first = generator(seed).binomial(counts, 0.5)
    moved = offsets // np.maximum(counts, 1) * first
    part = _share_of_weights(first, counts)
    sums = (sketch.weights, sketch.squared_weights, sketch.weighted_offsets)

    def half(kept: Integers, moved: Integers, part: Floats) -> Sketch:
        columns: list[NDArray[Any]] = [kept, moved]
        columns += [column * part for column in sums] if sketch.weighted else []
        return _sketch_of(sketch, sketch.cells, columns)

    return half(first, moved, part), half(counts - first, offsets - moved, 1.0 - part)


def _sketch_of(like: Sketch, cells: Integers, columns: list[NDArray[Any]]) -> Sketch:
    """Sketch of sums by cell and label, on the grid of another."""
    used = np.any([column.any(axis=1) for column in columns[::2]], axis=0)  # counts, or weights
    sums = cells[used], *(column[used] for column in columns)
    return Sketch(sums, nodes=like.nodes, scale=like.scale)


def cluster_halves(
    pairs: Rows, codes: Integers, scale: Scale, *, seed: int
) -> tuple[Sketch, Sketch]:
    """Random halves of the clusters, as many in either, give or take one.

    Examples
    --------
    >>> from calibrant.data.rows import as_rows
    >>> from calibrant.data.scales import PROBABILITY
    >>> rows = as_rows([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8])
    >>> [part.n for part in cluster_halves(rows, np.array([0, 0, 1, 1]), PROBABILITY, seed=0)]
    [2, 2]
    """
    first = (generator(seed).permutation(int(codes.max()) + 1) % 2 == 0)[codes]
    one, other = (Sketch.from_rows(pairs.select(kept), scale=scale) for kept in (first, ~first))
    return one, other


def _share_of_weights(first: Integers, counts: Integers) -> Floats:
    """The share of each cell and outcome that goes to the first half.

    A soft row is counted under one outcome and weighs under both; the other follows the cell.
    """
    of_cell = over_outcomes(first) / np.maximum(over_outcomes(counts), 1)
    return np.where(counts > 0, first / np.maximum(counts, 1), of_cell[:, None])


def _applied(recalibrator: AdaptiveRecalibrator, held_out: Sketch) -> Sketch:
    """The rows of a sketch where the map puts them."""
    position = held_out.scale.locate(recalibrator.transform(Points.of(held_out).p))
    fixed = np.floor(position * 2.0**FRACTION_BITS).astype(np.int64)
    cells, offset = np.divmod(fixed, 1 << held_out.offset_bits)
    rows = over_outcomes(held_out.weights) > 0
    counts, weights = held_out.counts[rows], held_out.weights[rows]
    columns: list[NDArray[Any]] = [counts, counts * offset[:, None]]
    if held_out.weighted:
        columns += [weights, held_out.squared_weights[rows], weights * offset[:, None]]
    return _sketch_of(held_out, cells, columns)
