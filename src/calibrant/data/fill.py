"""Rows into columns: the compiled loops, on all cores, a block at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import (
    add_moments,
    add_squares,
    fill_counts,
    fill_weights,
    mark,
    marked,
    outline,
    pack,
    rows_of_a_word,
    sum_cells,
    sum_log_losses,
    unpack,
)
from calibrant.data.cell_sums import Columns, bits_of_offsets, most_rows, require_room
from calibrant.data.rows import BLOCK_ROWS, LEAST_TOTAL_WEIGHT, Rows
from calibrant.data.scales import PROBABILITY, Scale

__all__ = [
    "SQUARE_BITS",
    "Outline",
    "fill",
    "mean_log_loss",
    "outline_of",
    "residual_moments",
    "sums_of_cells",
    "sums_of_squares",
]

CACHED_ROWS = 1 << 13
ROWS_PER_THREAD = 1 << 18
ROWS_WORTH_THREADS = 1 << 19
PIECES = 4
MOST_BYTES = 17 << 20
USUAL_NODES = 1 << 16
SQUARE_BITS = 22
"""Bits of a position inside a cell whose squares are summed."""
_NO_WEIGHTS = np.empty(0)
_NO_WORDS = np.empty(0, np.uint64)
Add = Callable[[int, Any, Any, Any, Any], int]
"""Loop over a block (first row, p, y, weights) into a table; the first invalid row, or -1."""


class Outline(NamedTuple):
    """Rows in a few numbers: means of p - y and |p - y|, the range of p, and an error in eight bins."""

    bias: float
    absolute: float
    low: float
    high: float
    coarse: float


def fill(pairs: Rows, nodes: int, scale: Scale) -> Columns:
    """One pass over the rows; the first row that breaks a rule is refused."""
    filling = _fill_weights if pairs.fractional else _fill_counts
    columns = filling(pairs, nodes, scale)
    if pairs.n > most_rows(bits_of_offsets(nodes)):  # as many may be in one cell
        require_room(int(columns.counts.max(initial=0)), bits_of_offsets(nodes))
    pairs.mark_valid()
    return columns


def _fill_counts(pairs: Rows, nodes: int, scale: Scale) -> Columns:
    """Packed words for as many rows as they hold; beyond, tables of whole numbers."""
    log2_nodes = nodes.bit_length() - 1
    if pairs.n > rows_of_a_word(log2_nodes):
        return _fill_dense(pairs, nodes, scale)
    threads = _threads(pairs, nodes)
    marking = threads == 1 and pairs.n < nodes  # then fewer bits are set than words would be read

    def pack_range(rows: range) -> tuple[_Table, int]:
        table = _TABLES.take(nodes)
        occupied = table.occupied if marking else _NO_WORDS
        for start, p, y, _ in pairs.blocks(rows):
            places = _located(pairs, start, p, scale)
            invalid = pack(places, y, log2_nodes, table.packed, occupied)
            if invalid >= 0:
                return table, start + invalid
        return table, -1

    filled = _map_ranges(pack_range, pairs.n, threads)
    _refuse_first(pairs, [row for _, row in filled])
    table = filled[0][0]
    for more, _ in filled[1:]:
        np.add(table.packed, more.packed, out=table.packed)
    size = (marked if marking else partial(mark, table.packed))(table.occupied)
    columns = np.empty(size, np.int64), *np.empty((2, size, 2), np.int64)
    unpack(table.packed, table.occupied, log2_nodes, *columns)
    _TABLES.give_back(table)
    return Columns(*columns)


def _fill_dense(pairs: Rows, nodes: int, scale: Scale) -> Columns:
    def add(start: int, p: Any, y: Any, _: Any, tables: NDArray[np.int64]) -> int:
        places = _located(pairs, start, p, scale)
        return fill_counts(places, y, nodes.bit_length() - 1, *tables)

    def room() -> NDArray[np.int64]:
        return np.zeros((2, nodes + 1, 2), dtype=np.int64)

    return Columns.from_dense(*_summed(pairs, add, room, _threads(pairs, nodes)))


class _Table(NamedTuple):
    """Room for packed words and the bits of occupied cells, all zero when not in use."""

    packed: NDArray[np.uint64]
    occupied: NDArray[np.uint64]


class _Tables:
    """Tables of the usual size that wait to be used again: making a new one costs more than few rows do."""

    def __init__(self) -> None:
        self._free: list[_Table] = []

    def take(self, nodes: int) -> _Table:
        """A table of zeros, for one user at a time."""
        if nodes == USUAL_NODES:
            with suppress(IndexError):
                return self._free.pop()
        return _Table(np.zeros(2 * (nodes + 1), np.uint64), np.zeros((nodes >> 6) + 1, np.uint64))

    def give_back(self, table: _Table) -> None:
        """Keep a table, which must be zero again, for the next user."""
        if table.packed.size == 2 * (USUAL_NODES + 1) and not self._free:
            self._free.append(table)


_TABLES = _Tables()


def _refuse_first(pairs: Rows, rows: list[int]) -> None:
    """Refuse the first row at which a loop stopped, if one did; others have -1."""
    invalid = [row for row in rows if row >= 0]
    if invalid:
        pairs.refuse(min(invalid))


def _summed(pairs: Rows, add: Add, room: Callable[[], NDArray[Any]], parts: int) -> NDArray[Any]:
    """Table to which a loop adds every row, some ranges of rows at a time, each in a table of its own.

    Many rows are cut into a fixed number of ranges, so that sums of floats do not depend on the number of
    cores. The first row that breaks a rule is refused.
    """
    tables = [room() for _ in range(parts)]

    def add_range(rows: range) -> tuple[NDArray[Any], int]:
        table = tables.pop()
        for start, p, y, weight in pairs.blocks(rows):
            invalid = add(start, p, y, _NO_WEIGHTS if weight is None else weight, table)
            if invalid >= 0:
                return table, start + invalid
        return table, -1

    pieces = _map_ranges(add_range, pairs.n, parts)
    _refuse_first(pairs, [row for _, row in pieces])
    total: NDArray[Any] = pieces[0][0]
    for more, _ in pieces[1:]:
        total += more
    pairs.mark_valid()
    return total


def _threads(pairs: Rows, nodes: int) -> int:
    """Number of threads: as many as there are cores and rows for, and as memory allows."""
    bytes_each = 48 * (nodes + 1) + (0 if pairs.needs_no_conversion else 20 * BLOCK_ROWS)
    most = min(pairs.n // ROWS_PER_THREAD, MOST_BYTES // bytes_each)
    return 1 if most < 2 else min(most, os.cpu_count() or 1)


def _fill_weights(pairs: Rows, nodes: int, scale: Scale) -> Columns:
    """One thread, so that float sums do not depend on how many cores there are."""
    counts, offsets = np.zeros((2, nodes + 1, 2), dtype=np.int64)
    sums = np.zeros((3, nodes + 1, 2))
    for start, p, y, weight in pairs.blocks():
        outcome = y.astype(np.float64, copy=False)
        invalid = fill_weights(
            _located(pairs, start, p, scale).astype(np.float64, copy=False),
            outcome if pairs.soft else _binary_or_nan(outcome),
            np.ones(p.size) if weight is None else weight,
            nodes.bit_length() - 1,
            counts,
            offsets,
            *sums,
        )
        if invalid >= 0:
            pairs.refuse(start + invalid)
    if not sums[0].sum() >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    return Columns.from_dense(counts, offsets, *sums)


def outline_of(pairs: Rows, step: int = 1) -> Outline:
    """One row in `step`, in a few numbers. Nothing is checked: a row that breaks a rule is not refused."""
    mass, bias, absolute, low, high, coarse = 0.0, 0.0, 0.0, math.inf, -math.inf, 0.0
    for _, p, y, weight in pairs.blocks():
        more = outline(p, y, _NO_WEIGHTS if weight is None else weight, step)
        mass, bias, absolute = mass + more[0], bias + more[1], absolute + more[2]
        low, high, coarse = min(low, more[3]), max(high, more[4]), coarse + more[5]
    mass = abs(mass) or math.nan  # the loop that reads the rows refuses bad weights
    return Outline(bias / mass, absolute / mass, low, high, coarse / mass)


def residual_moments(
    pairs: Rows, cells: int, start: float, length: float
) -> tuple[NDArray[np.float64], float, float]:
    """Moments 0 ... 7 of the residuals p - y about the middles of cells that cover [start, start + length].

    Returns them with the sums of the weights and of |p - y| times the weight. One pass over the rows;
    the first row that breaks a rule is refused.
    """
    sums: dict[int, list[float]] = {}  # by block, to be added up in their order

    def add(first: int, p: Any, y: Any, weights: Any, moments: NDArray[np.float64]) -> int:
        per_unit = cells / length
        invalid, *sums[first] = add_moments(p, y, weights, pairs.soft, start, per_unit, moments)
        return invalid

    moments = _summed(pairs, add, lambda: np.zeros((cells, 8)), _pieces(pairs.n))
    total, absolute = (sum(sums[first][k] for first in sorted(sums)) for k in range(2))
    if not total >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    return moments, total, absolute


def sums_of_squares(pairs: Rows, log2_cells: int) -> NDArray[np.float64]:
    """Rows, their offsets and squared offsets, summed for each (cell, label), in units of 2**-22 of a cell.

    For rows of weight 1. One pass over the rows; the first that breaks a rule is refused.
    """
    slots, parts = 2 * ((1 << log2_cells) + 1), _pieces(pairs.n)
    rooms = [np.zeros((slots, 2), np.uint64) for _ in range(parts)]

    def add(_: int, p: Any, y: Any, __: Any, sums: NDArray[np.float64]) -> int:
        packed = rooms.pop()
        invalid = add_squares(p, y, log2_cells, packed, sums)
        rooms.append(packed)
        return invalid

    return _summed(pairs, add, lambda: np.zeros((slots, 3)), parts)


def sums_of_cells(pairs: Rows, cells: int) -> NDArray[np.float64]:
    """Weight, weight of events, weighted prediction and squared weight in each cell; p = 1 is the last.

    In floats, not in fixed point, so that nothing of a prediction is cut off.
    """

    def add(_: int, p: Any, y: Any, weights: Any, sums: NDArray[np.float64]) -> int:
        for first in range(0, p.size, CACHED_ROWS):
            few = slice(first, first + CACHED_ROWS)
            doubles = p[few].astype(np.float64), y[few].astype(np.float64)
            invalid = sum_cells(*doubles, weights[few], pairs.soft, sums)
            if invalid >= 0:
                return first + invalid
        return -1

    sums = _summed(pairs, add, lambda: np.zeros((cells + 1, 4)), PIECES)
    if not sums[:, 0].sum() >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    return sums


def mean_log_loss(pairs: Rows) -> float:
    """Mean of -log of the probability that valid rows give to what came; infinite where that is 0."""

    def sum_range(rows: range) -> list[tuple[float, float]]:
        sums = []
        for _, p, y, weight in pairs.blocks(rows):
            for start in range(0, p.size, CACHED_ROWS):
                few = slice(start, start + CACHED_ROWS)
                weights = _NO_WEIGHTS if weight is None else weight[few]
                doubles = p[few].astype(np.float64), y[few].astype(np.float64)
                sums.append(sum_log_losses(*doubles, weights, pairs.soft))
        return sums

    pieces = _map_ranges(sum_range, pairs.n, _pieces(pairs.n))
    losses, mass = zip(*chain.from_iterable(pieces), strict=True)
    return math.fsum(losses) / math.fsum(mass)


def _pieces(n: int) -> int:
    """Number of ranges for n rows: whatever the number of cores, so that sums do not depend on it."""
    return min(PIECES, -(-n // ROWS_WORTH_THREADS))


def _map_ranges(work: Any, n: int, parts: int) -> list[Any]:
    if parts == 1:
        return [work(range(n))]
    from concurrent.futures import ThreadPoolExecutor

    bounds = [n * part // parts for part in range(parts + 1)]
    ranges = [range(low, high) for low, high in pairwise(bounds)]
    with ThreadPoolExecutor(max_workers=min(parts, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, ranges))


def _located(pairs: Rows, start: int, p: NDArray[Any], scale: Scale) -> NDArray[Any]:
    """Places on the grid; log-odds that came as such do not pass through probabilities."""
    if scale == PROBABILITY:
        return p
    if pairs.form == "logit":
        logits = pairs.raw_prob[start : start + p.size]
        return scale.locate_logits(np.asarray(logits, dtype=np.float64))
    return scale.locate(p.astype(np.float64, copy=False))


def _binary_or_nan(outcome: NDArray[np.float64]) -> NDArray[np.float64]:
    """NaN, at which the loop stops, in place of what only a soft label may be."""
    return np.where((outcome == 0) | (outcome == 1), outcome, np.nan)
