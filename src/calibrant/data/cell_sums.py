"""Arithmetic of a sketch: tables of sums per cell of a grid and label, which add up exactly.

A table is a tuple of arrays, `Sums`: the non-empty cells, in increasing order; then for each (cell, label)
the number of rows, and the sum of their distances from the left end of the cell, in units of 2**-36; and
where rows have weights, the sums of the weights, of their squares, and of the weighted distances.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, MergeError, invalid

Integers = NDArray[np.int64]
Sums = tuple[NDArray[Any], ...]
Number = TypeVar("Number", np.float64, np.int64)

DEFAULT_NODES, MOST_NODES = 1 << 16, 1 << 24
"""Cells of a grid: 2⁻¹⁶ is as wide as the noise of a billion rows; 2²⁴ leave 12 bits inside a cell."""
LARGEST_SUM = 1e250
"""Far above any sum of weights or of their squares, far below what sums of floats can hold."""
FRACTION_BITS = 36
"""Bits of a position in [0, 1], which is written in fixed point: exact on every engine."""


def over_outcomes(sums: NDArray[Number]) -> NDArray[Number]:
    """Sums of each cell over both outcomes, from sums per (cell, label).

    NumPy's own sum over an axis of two takes some forty times as long.
    """
    return np.asarray(sums[:, 0] + sums[:, 1], dtype=sums.dtype)


def no_sums() -> Sums:
    """Sums of no rows."""
    return np.empty(0, np.int64), *np.empty((2, 0, 2), np.int64)


def sums_of_dense(*tables: NDArray[Any]) -> Sums:
    """Sums from tables with a row for each cell of the grid; counts come first."""
    cells = np.flatnonzero(tables[0][:, 0] | tables[0][:, 1])
    rows: slice | Integers = cells
    if cells.size and int(cells[-1]) - int(cells[0]) + 1 == cells.size:  # far quicker to index with
        rows = slice(int(cells[0]), int(cells[-1]) + 1)
    return cells, *(table[rows] for table in tables)


def sums_of_long(
    cells: Integers, labels: Integers, *columns: NDArray[Any], offset_bits: int
) -> Sums:
    """Sums from a row for each (cell, label), in any order, repeated rows added; counts come first."""
    distinct, place = np.unique(cells, return_inverse=True)
    slot = 2 * place.ravel() + labels
    rows = np.bincount(slot, weights=columns[0])  # floats are exact up to the limit
    require_room(int(rows.max(initial=0)), offset_bits)
    sums = []
    for values in columns:
        column = np.zeros(2 * distinct.size, dtype=values.dtype)
        np.add.at(column, slot, values)
        sums.append(column.reshape(-1, 2))
    used = np.any([column.any(axis=1) for column in sums], axis=0)
    return distinct[used].astype(np.int64), *(column[used] for column in sums)


def added(parts: Iterable[Sums], *, offset_bits: int) -> Sums:
    """Sum of several tables, refused where an integer could overflow."""
    kept = [part for part in parts if part[0].size]
    if not kept:
        return no_sums()
    if len(kept) == 1:
        return kept[0]
    require_room(sum(int(part[1].max()) for part in kept), offset_bits)
    return summed(joined(kept))


def joined(parts: list[Sums]) -> Sums:
    """Entries of one table after those of the other; where one has weights, all do."""
    if any(len(part) > 3 for part in parts):
        parts = [with_weights(part) for part in parts]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def summed(sums: Sums) -> Sums:
    """Sums in which entries of one cell, wherever they stand, are added up."""
    if not sums[0].size:
        return no_sums()
    order = np.argsort(sums[0], kind="stable")
    cells = sums[0][order]
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    return cells[first], *(np.add.reduceat(column[order], first) for column in sums[1:])


def with_weights(sums: Sums, factor: tuple[float, float] = (1.0, 1.0)) -> Sums:
    """Sums of the same rows with their weights multiplied by a factor for each label."""
    counts, offsets, *floats = sums[1:]
    weights, squared, weighted_offsets = floats or (counts, counts, offsets)
    by_label = np.asarray(factor)
    with np.errstate(over="ignore"):
        more = weights * by_label, squared * by_label**2, weighted_offsets * by_label
    if any(np.max(values, initial=0.0) > LARGEST_SUM for values in more):
        raise InputError(f"Weights, and their squares, must add up to less than {LARGEST_SUM:g}.")
    return *sums[:3], *more


def coarsened(sums: Sums, shift: int, offset_bits: int) -> Sums:
    """Sums of the same rows in cells that are 2**shift times wider; exact for integers."""
    from calibrant.data._fill import coarse_sums  # adding up on a device does without

    cells, counts, offsets, *floats = sums
    wide = cells >> shift
    if counts.sum() > _most_rows(offset_bits + shift):  # as many may be in one cell
        first = np.flatnonzero(np.diff(wide, prepend=-1))
        require_room(int(np.add.reduceat(counts, first).max()), offset_bits + shift)
    coarse = np.empty(cells.size, np.int64), *np.empty((2, cells.size, 2), np.int64)
    held = coarse_sums(cells, shift, offset_bits, counts, offsets, *coarse)
    places, *others = (column[:held].copy() for column in coarse)
    if floats:
        weights, squared, weighted_offsets = floats
        moved = (cells - (wide << shift)) << offset_bits
        moments = weighted_offsets + weights * moved[:, None]
        first = np.searchsorted(wide, places)
        others += [np.add.reduceat(values, first) for values in (weights, squared, moments)]
    return places, *others


def bits_of_offsets(nodes: int) -> int:
    """Bits of a fixed-point position that lie inside a cell of a grid with so many."""
    return FRACTION_BITS - (nodes.bit_length() - 1)


def _most_rows(offset_bits: int) -> int:
    """Most rows of a cell whose sum of offsets 64-bit integers can hold."""
    return (1 << (63 - offset_bits)) - 1


def require_room(rows_in_a_cell: int, offset_bits: int) -> None:
    """Refuse sums of offsets that 64-bit integers could not hold."""
    most = _most_rows(offset_bits)
    if rows_in_a_cell > most:
        message = f"A cell of this grid holds at most {most} rows; this would put {rows_in_a_cell} into one."
        raise MergeError(message, hint="Keep the sketches apart, or use more nodes.")


def require_nodes(nodes: int) -> int:
    """`nodes`, if it is a power of two that a sketch can have."""
    valid = isinstance(nodes, int | np.integer) and not isinstance(nodes, bool)
    if not valid or not 2 <= nodes <= MOST_NODES or nodes & (nodes - 1):
        raise invalid("nodes", f"be a power of two between 2 and {MOST_NODES}", nodes)
    return int(nodes)
