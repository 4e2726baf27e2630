"""Rows into columns: the compiled loops, on all cores, a block at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import (
    add_moments,
    add_squares,
    fill_weights,
    mark,
    marked,
    outline,
    pack,
    rows_of_a_word,
    sum_log_losses,
    unpack,
)
from calibrant.data.cell_sums import (
    Sums,
    added,
    bits_of_offsets,
    no_sums,
    require_room,
    sums_of_dense,
)
from calibrant.data.rows import LEAST_TOTAL_WEIGHT, Rows
from calibrant.data.scales import PROBABILITY, Scale

ROWS_PER_THREAD = 1 << 18
"""Enough to be worth a thread, which takes some tenths of a millisecond to start."""
BLOCK_ROWS = 1 << 17
"""Rows whose logarithms are taken at a time: a megabyte a column."""
PIECES = 4
"""Ranges of rows whose sums of floats are added up, on any number of cores."""
MOST_BYTES = 17 << 20
"""Of the tables of all threads, which should stay in the cache."""
SQUARE_BITS = 22
"""Bits of a position inside a cell whose squares are summed."""
_NO_WEIGHTS = np.empty(0)
_NO_WORDS = np.empty(0, np.uint64)
Floats = NDArray[np.float64]
Add = Callable[..., int]
"""Loop over a block (p, y, weights, moments=table); the first invalid row, or -1."""


class Outline(NamedTuple):
    """Rows in a few numbers: means of p - y and |p - y|, the range of p, and an error in eight bins."""

    bias: float
    absolute: float
    low: float
    high: float
    coarse: float


def fill(pairs: Rows, nodes: int, scale: Scale) -> Sums:
    """One pass over the rows; the first row that breaks a rule is refused."""
    filling = _fill_weights if pairs.fractional else _fill_counts
    sums = filling(pairs, nodes, scale)
    require_room(int(sums[1].max(initial=0)), bits_of_offsets(nodes))
    pairs.mark_valid()
    return sums


def _fill_counts(pairs: Rows, nodes: int, scale: Scale) -> Sums:
    """Packed words, a table for as many rows as they hold, and the sum of these tables."""
    log2_nodes = nodes.bit_length() - 1
    bytes_each = 16 * (nodes + 1) + (0 if scale == PROBABILITY else 20 * BLOCK_ROWS)
    threads = min(pairs.n // ROWS_PER_THREAD, MOST_BYTES // bytes_each, os.cpu_count() or 1)
    parts = max(threads, -(-pairs.n // rows_of_a_word(log2_nodes)))
    marking = parts == 1 and pairs.n < nodes  # then fewer bits are set than words would be read

    def pack_range(rows: range) -> tuple[Sums, int]:
        packed = np.zeros(2 * (nodes + 1), np.uint64)
        occupied = np.zeros((nodes >> 6) + 1, np.uint64)
        for start, places, y, _ in _blocks(pairs, rows, scale):
            invalid = pack(places, y, log2_nodes, packed, occupied if marking else _NO_WORDS)
            if invalid >= 0:
                return no_sums(), start + invalid
        size = marked(occupied) if marking else mark(packed, occupied)
        sums = np.empty(size, np.int64), *np.empty((2, size, 2), np.int64)
        unpack(packed, occupied, log2_nodes, *sums)
        return sums, -1

    return added(_by_ranges(pairs, pack_range, parts), offset_bits=bits_of_offsets(nodes))


def _by_ranges(
    pairs: Rows, work: Callable[[range], tuple[Any, int]], parts: int | None = None
) -> list[Any]:
    """Results of work on ranges of rows, side by side; the first row at which it stopped is refused.

    Work gives a result and that row, or -1. Many rows are cut into a fixed number of ranges, so that sums
    of floats do not depend on the number of cores.
    """
    n = pairs.n
    parts = min(PIECES, -(-n // (2 * ROWS_PER_THREAD))) if parts is None else parts
    if parts == 1:
        done = iter([work(range(n))])
    else:
        from concurrent.futures import ThreadPoolExecutor

        bounds = [n * part // parts for part in range(parts + 1)]
        with ThreadPoolExecutor(max_workers=min(parts, os.cpu_count() or 1)) as pool:
            done = pool.map(work, map(range, bounds[:-1], bounds[1:]))
    results = []
    for result, invalid in done:
        if invalid >= 0:
            pairs.refuse(invalid)
        results.append(result)
    return results


def _summed(pairs: Rows, add: Add, shape: tuple[int, int]) -> Floats:
    """Table to which a loop adds every row, some ranges of rows at a time, each in a table of its own.

    The first row that breaks a rule is refused.
    """

    def add_range(rows: range) -> tuple[Floats, int]:
        table = np.zeros(shape)
        ((start, p, y, weight),) = _blocks(pairs, rows)
        invalid = add(p, y, weight, moments=table)
        return table, invalid if invalid < 0 else start + invalid

    total, *others = _by_ranges(pairs, add_range)
    for more in others:
        total += more
    pairs.mark_valid()
    return np.asarray(total)


def _fill_weights(pairs: Rows, nodes: int, scale: Scale) -> Sums:
    """One thread, so that float sums do not depend on how many cores there are."""
    counts, offsets = np.zeros((2, nodes + 1, 2), dtype=np.int64)
    sums = np.zeros((3, nodes + 1, 2))
    for start, places, y, weight in _blocks(pairs, range(pairs.n), scale):
        outcome = y.astype(np.float64, copy=False)
        invalid = fill_weights(
            places.astype(np.float64, copy=False),
            outcome if pairs.soft else _binary_or_nan(outcome),
            weight if weight.size else np.ones(places.size),
            nodes.bit_length() - 1,
            counts,
            offsets,
            *sums,
        )
        if invalid >= 0:
            pairs.refuse(start + invalid)
    if not sums[0].sum() >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    return sums_of_dense(counts, offsets, *sums)


def outline_of(pairs: Rows, step: int = 1) -> Outline:
    """One row in `step`, in a few numbers. Nothing is checked: a row that breaks a rule is not refused."""
    ((_, p, y, weight),) = _blocks(pairs, range(pairs.n))
    mass, bias, absolute, low, high, coarse = outline(p, y, weight, step)
    mass = abs(mass) or math.nan  # the loop that reads the rows refuses bad weights
    return Outline(bias / mass, absolute / mass, low, high, coarse / mass)


def residual_moments(
    pairs: Rows, cells: int, start: float, length: float
) -> tuple[Floats, float, float]:
    """Moments 0 ... 7 of the residuals p - y about the middles of cells that cover [start, start + length].

    Returns them with the sums of the weights and of |p - y| times the weight. One pass over the rows;
    the first row that breaks a rule is refused.
    """
    add = partial(add_moments, soft=pairs.soft, start=start, cells_per_unit=cells / length)
    sums = _summed(pairs, add, (cells + 1, 8))
    total, absolute = sums[cells, :2].tolist()
    if not total >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    return sums[:cells], total, absolute


def sums_of_squares(pairs: Rows, log2_cells: int) -> Floats:
    """Rows, their offsets and squared offsets, summed for each (cell, label), in units of 2**-22 of a cell.

    For rows of weight 1. One pass over the rows; the first that breaks a rule is refused.
    """
    slots = 2 * ((1 << log2_cells) + 1)

    def add(p: Any, y: Any, _: Any, moments: Floats) -> int:
        return add_squares(p, y, log2_cells, np.zeros((slots, 2), np.uint64), moments)

    return _summed(pairs, add, (slots, 3))


def mean_log_loss(pairs: Rows) -> float:
    """Mean of -log of the probability that valid rows give to what came; infinite where that is 0."""

    def add(p: Any, y: Any, weights: Floats, moments: Floats) -> int:
        for start in range(0, p.size, BLOCK_ROWS):
            few = slice(start, start + BLOCK_ROWS)
            doubles = p[few].astype(np.float64), y[few].astype(np.float64)
            moments += sum_log_losses(*doubles, weights[few], pairs.soft)
        return -1

    losses, mass = _summed(pairs, add, (1, 2))[0].tolist()
    return float(losses / mass)


def _blocks(
    pairs: Rows, rows: range, scale: Scale = PROBABILITY
) -> Iterator[tuple[int, NDArray[Any], NDArray[Any], Floats]]:
    """First row, places on the grid, outcomes and weights, if there are any, of these rows.

    On another scale, some rows at a time, whose logarithms stay in the cache. Log-odds that came as such do
    not pass through probabilities.
    """
    p, y, weight = pairs.columns
    step = max(len(rows), 1) if scale == PROBABILITY else BLOCK_ROWS
    for start in rows[::step] or (rows.start,):
        own = slice(start, min(start + step, rows.stop))
        places = p[own]
        if scale != PROBABILITY and pairs.form == "logit":
            places = scale.locate_logits(np.asarray(pairs.raw_prob[own], dtype=np.float64))
        elif scale != PROBABILITY:
            places = scale.locate(places.astype(np.float64, copy=False))
        yield start, places, y[own], _NO_WEIGHTS if weight is None else weight[own]


def _binary_or_nan(outcome: NDArray[np.float64]) -> NDArray[np.float64]:
    """NaN, at which the loop stops, in place of what only a soft label may be."""
    return np.where((outcome == 0) | (outcome == 1), outcome, np.nan)
