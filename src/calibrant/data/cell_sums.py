"""The arithmetic of a sketch: sorted, sparse columns of sums per (cell, label)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, MergeError, invalid

__all__ = [
    "DEFAULT_NODES",
    "FRACTION_BITS",
    "LARGEST_SUM",
    "Columns",
    "as_slice",
    "bits_of_offsets",
    "most_rows",
    "over_outcomes",
    "require_nodes",
    "require_room",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)

DEFAULT_NODES, MOST_NODES = 1 << 16, 1 << 24
"""Cells of a grid."""
LARGEST_SUM = 1e250
"""Far above any sum of weights or of their squares, far below what sums of floats can hold."""
FRACTION_BITS = 36
"""Bits of a position in [0, 1], which is written in fixed point: exact on every engine."""


def over_outcomes(sums: NDArray[Number]) -> NDArray[Number]:
    """Sums of each cell over both outcomes, from sums per (cell, label).

    NumPy's own sum over an axis of two takes some forty times as long.
    """
    return np.asarray(sums[:, 0] + sums[:, 1], dtype=sums.dtype)


@dataclass(frozen=True, eq=False)
class Columns:
    """Sums per non-empty cell; the second axis is the label, 0 or 1.

    Attributes
    ----------
    cells : int64[m]
        Strictly increasing.
    counts : int64[m, 2]
        Rows.
    offsets : int64[m, 2]
        Sum of the rows' distances from the left end of their cell, in units of 2**-36.
    weights, squared_weights, weighted_offsets : float64[m, 2] or None
        The same sums with each row's weight; None where every weight is 1.
    """

    cells: Integers
    counts: Integers
    offsets: Integers
    weights: Floats | None = None
    squared_weights: Floats | None = None
    weighted_offsets: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("cells", *self.sum_names()):
            self.column(name).flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Through the constructor, which makes the arrays read-only again."""
        return Columns, tuple(map(self.column, [column.name for column in fields(self)]))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def weighted(self) -> bool:
        """True where rows have weights."""
        return self.weights is not None

    def sum_names(self) -> list[str]:
        """Names of the columns of sums that this table has."""
        names = [column.name for column in fields(self)][1:]
        return names if self.weighted else names[:2]

    def column(self, name: str) -> NDArray[Any]:
        """Column of that name."""
        values: NDArray[Any] = getattr(self, name)
        return values

    def floats(self, name: str) -> Floats:
        """Column of sums with weights, where rows without weight count for one."""
        values: Floats | None = getattr(self, name)
        if values is None:
            whole = self.offsets if name == "weighted_offsets" else self.counts
            values = whole.astype(np.float64)
        return values

    def part(self, entries: slice | Integers) -> Columns:
        """Columns of these entries."""
        names = ["cells", *self.sum_names()]
        return Columns(*(self.column(name)[entries] for name in names))

    @classmethod
    def empty(cls) -> Columns:
        """Columns of no rows."""
        return cls(np.empty(0, np.int64), np.empty((0, 2), np.int64), np.empty((0, 2), np.int64))

    @classmethod
    def from_dense(cls, *tables: NDArray[Any]) -> Columns:
        """Columns of tables with one row per cell of the grid, in the order of the attributes."""
        cells = np.flatnonzero(tables[0][:, 0] | tables[0][:, 1])
        rows = as_slice(cells)
        return cls(cells, *(table[rows] for table in tables))

    @classmethod
    def from_long(
        cls, cells: Integers, labels: Integers, *sums: NDArray[Any], offset_bits: int
    ) -> Columns:
        """Columns of one row per (cell, label), in any order, repeated rows summed; counts come first."""
        distinct, place = np.unique(cells, return_inverse=True)
        slot = 2 * place.ravel() + labels
        rows = np.bincount(slot, weights=sums[0])  # floats are exact up to the limit
        require_room(int(rows.max(initial=0)), offset_bits)
        columns = []
        for values in sums:
            column = np.zeros(2 * distinct.size, dtype=values.dtype)
            np.add.at(column, slot, values)
            columns.append(column.reshape(-1, 2))
        used = np.any([column.any(axis=1) for column in columns], axis=0)
        return cls(distinct[used].astype(np.int64), *(column[used] for column in columns))

    @classmethod
    def total(cls, parts: Iterable[Columns], *, offset_bits: int) -> Columns:
        """Sum of several tables, refused where an integer could overflow."""
        kept = [part for part in parts if part.cells.size]
        if not kept:
            return cls.empty()
        if len(kept) == 1:
            return kept[0]
        require_room(sum(int(part.counts.max()) for part in kept), offset_bits)
        if any(part.weighted for part in kept):
            kept = [part.with_weights() for part in kept]
        names = ["cells", *kept[0].sum_names()]
        return cls(*(np.concatenate([one.column(name) for one in kept]) for name in names)).summed()

    def summed(self) -> Columns:
        """Columns in which entries of one cell, wherever they stand, are added up."""
        if not self.cells.size:
            return Columns.empty()
        order = np.argsort(self.cells, kind="stable")
        cells = self.cells[order]
        first = np.flatnonzero(np.diff(cells, prepend=-1))
        sums = (np.add.reduceat(self.column(name)[order], first) for name in self.sum_names())
        return Columns(cells[first], *sums)

    def with_weights(self, factor: tuple[float, float] = (1.0, 1.0)) -> Columns:
        """Columns of the same rows with their weights multiplied by a factor for each label."""
        by_label = np.asarray(factor)
        with np.errstate(over="ignore"):
            sums = (
                self.floats("weights") * by_label,
                self.floats("squared_weights") * by_label**2,
                self.floats("weighted_offsets") * by_label,
            )
        if any(np.max(values, initial=0.0) > LARGEST_SUM for values in sums):
            message = f"Weights, and their squares, must add up to less than {LARGEST_SUM:g}."
            raise InputError(message)
        return Columns(self.cells, self.counts, self.offsets, *sums)

    def coarsened(self, shift: int, offset_bits: int) -> Columns:
        """Columns of the same rows in cells that are 2**shift times wider; exact for integers."""
        from calibrant.data._fill import coarse_sums  # adding up on a device does without

        m, wide = self.cells.size, self.cells >> shift
        if self.rows > most_rows(offset_bits + shift):  # as many may be in one cell
            first = np.flatnonzero(np.diff(wide, prepend=-1))
            require_room(int(np.add.reduceat(self.counts, first).max()), offset_bits + shift)
        cells, (counts, offsets) = np.empty(m, np.int64), np.empty((2, m, 2), np.int64)
        held = coarse_sums(
            self.cells, shift, offset_bits, self.counts, self.offsets, cells, counts, offsets
        )
        sums: list[NDArray[Any]] = [counts[:held].copy(), offsets[:held].copy()]
        if self.weights is not None:
            first = np.searchsorted(wide, cells[:held])
            moved = (self.cells - (wide << shift)) << offset_bits
            moments = self.column("weighted_offsets") + self.weights * moved[:, None]
            floats = (self.weights, self.column("squared_weights"), moments)
            sums += [np.add.reduceat(values, first) for values in floats]
        return Columns(cells[:held].copy(), *sums)

    def equals(self, other: Columns) -> bool:
        """True where both hold the same bits."""
        names = ["cells", *self.sum_names()]
        return self.weighted == other.weighted and all(
            np.array_equal(self.column(name), other.column(name)) for name in names
        )


def as_slice(places: Integers) -> slice | Integers:
    """Increasing places as a slice where there is no gap, which is far quicker to index with."""
    if places.size and int(places[-1]) - int(places[0]) + 1 == places.size:
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def bits_of_offsets(nodes: int) -> int:
    """Bits of a fixed-point position that lie inside a cell of a grid with so many."""
    return FRACTION_BITS - (nodes.bit_length() - 1)


def most_rows(offset_bits: int) -> int:
    """Most rows of a cell whose sum of offsets 64-bit integers can hold."""
    return (1 << (63 - offset_bits)) - 1


def require_room(rows_in_a_cell: int, offset_bits: int) -> None:
    """Refuse sums of offsets that 64-bit integers could not hold."""
    most = most_rows(offset_bits)
    if rows_in_a_cell > most:
        message = f"A cell of this grid holds at most {most} rows; this would put {rows_in_a_cell} into one."
        raise MergeError(message, hint="Keep the sketches apart, or use more nodes.")


def require_nodes(nodes: int) -> int:
    """`nodes`, if it is a power of two that a sketch can have."""
    valid = isinstance(nodes, int | np.integer) and not isinstance(nodes, bool)
    if not valid or not 2 <= nodes <= MOST_NODES or nodes & (nodes - 1):
        raise invalid("nodes", f"be a power of two between 2 and {MOST_NODES}", nodes)
    return int(nodes)
