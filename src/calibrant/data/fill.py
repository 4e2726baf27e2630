"""Rows into columns: the compiled loops, on all cores, a block at a time."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import add_moments, fill_counts, fill_weights, outline, sum_cells
from calibrant.data.cell_sums import Columns, bits_of_offsets, require_room
from calibrant.data.pairs import BLOCK_ROWS, LEAST_TOTAL_WEIGHT, Pairs
from calibrant.data.scales import PROBABILITY, Scale

__all__ = ["Outline", "fill", "outline_of", "residual_moments", "sums_of_cells"]

ROWS_PER_THREAD = 1 << 18
ROWS_WORTH_THREADS = 1 << 19
PIECES = 4
MOST_BYTES = 17 << 20
_NO_WEIGHTS = np.empty(0)


class Outline(NamedTuple):
    """Rows in a few numbers: means of p - y and |p - y|, and the range of p."""

    bias: float
    absolute: float
    low: float
    high: float


def fill(pairs: Pairs, nodes: int, scale: Scale) -> Columns:
    """One pass over the rows; the first row that breaks a rule is refused."""
    filling = _fill_weights if pairs.fractional else _fill_counts
    columns = filling(pairs, nodes, scale)
    require_room(int(columns.counts.max(initial=0)), bits_of_offsets(nodes))
    pairs.mark_valid()
    return columns


def _fill_counts(pairs: Pairs, nodes: int, scale: Scale) -> Columns:
    log2_nodes = nodes.bit_length() - 1
    threads = _threads(pairs, nodes)

    def fill_range(rows: range) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        counts, offsets = np.zeros((2, nodes + 1, 2), dtype=np.int64)
        for start, p, y, _ in pairs.blocks(rows):
            invalid = fill_counts(_located(pairs, start, p, scale), y, log2_nodes, counts, offsets)
            if invalid >= 0:
                return counts, offsets, start + invalid
        return counts, offsets, -1

    filled = _map_ranges(fill_range, pairs.n, threads)
    invalid = [row for _, _, row in filled if row >= 0]
    if invalid:
        pairs.refuse(min(invalid))
    counts, offsets, _ = filled[0]
    for more_counts, more_offsets, _ in filled[1:]:
        counts += more_counts
        offsets += more_offsets
    return Columns.from_dense(counts, offsets)


def _threads(pairs: Pairs, nodes: int) -> int:
    """As many as there are cores and rows for, and no more than memory beyond the inputs allows."""
    bytes_each = 48 * (nodes + 1) + (0 if pairs.needs_no_conversion else 20 * BLOCK_ROWS)
    most = min(os.cpu_count() or 1, pairs.n // ROWS_PER_THREAD, MOST_BYTES // bytes_each)
    return max(1, most)


def _fill_weights(pairs: Pairs, nodes: int, scale: Scale) -> Columns:
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


def outline_of(pairs: Pairs, step: int = 1) -> Outline:
    """Every `step`-th row in a few numbers. Nothing is checked: a row that breaks a rule is not refused."""
    sums = [
        outline(p, y, _NO_WEIGHTS if weight is None else weight, step)
        for _, p, y, weight in pairs.blocks()
    ]
    total, bias, absolute, lows, highs = zip(*sums, strict=True)
    mass = sum(total) or float("nan")  # the loop that reads the rows refuses them
    return Outline(sum(bias) / mass, sum(absolute) / mass, min(lows), max(highs))


def residual_moments(
    pairs: Pairs, cells: int, start: float, length: float
) -> tuple[NDArray[np.float64], float, float]:
    """Moments 0 ... 7 of the residuals p - y about the middles of cells that cover [start, start + length].

    Returns them with the sums of the weights and of |p - y| times the weight. One pass over the rows;
    the first row that breaks a rule is refused. Many rows are cut into a fixed number of pieces, so that
    the result does not depend on the number of cores.
    """

    def add_range(rows: range) -> tuple[NDArray[np.float64], float, float, int]:
        moments, total, absolute = np.zeros((cells, 8)), 0.0, 0.0
        for first, p, y, weight in pairs.blocks(rows):
            weights = _NO_WEIGHTS if weight is None else weight
            invalid, mass, size = add_moments(
                p, y, weights, pairs.soft, start, cells / length, moments
            )
            if invalid >= 0:
                return moments, total, absolute, first + invalid
            total, absolute = total + mass, absolute + size
        return moments, total, absolute, -1

    pieces = _map_ranges(add_range, pairs.n, PIECES if pairs.n > ROWS_WORTH_THREADS else 1)
    invalid = [row for *_, row in pieces if row >= 0]
    if invalid:
        pairs.refuse(min(invalid))
    moments, total, absolute, _ = pieces[0]
    for more, mass, size, _ in pieces[1:]:
        moments += more
        total, absolute = total + mass, absolute + size
    if not total >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    pairs.mark_valid()
    return moments, total, absolute


def sums_of_cells(pairs: Pairs, cells: int) -> NDArray[np.float64]:
    """Weight, weight of events, weighted prediction and squared weight in each cell; p = 1 is the last.

    In floats, not in fixed point, so that nothing of a prediction is cut off; and in a fixed number of
    pieces, so that the sums do not depend on the number of cores.
    """

    def sum_range(rows: range) -> tuple[NDArray[np.float64], int]:
        sums = np.zeros((cells + 1, 4))
        for start, p, y, weight in pairs.blocks(rows):
            invalid = sum_cells(p, y, _NO_WEIGHTS if weight is None else weight, pairs.soft, sums)
            if invalid >= 0:
                return sums, start + invalid
        return sums, -1

    pieces = _map_ranges(sum_range, pairs.n, PIECES)
    invalid = [row for _, row in pieces if row >= 0]
    if invalid:
        pairs.refuse(min(invalid))
    sums: NDArray[np.float64] = np.sum([piece for piece, _ in pieces], axis=0)
    if not sums[:, 0].sum() >= LEAST_TOTAL_WEIGHT:
        pairs.refuse_zero_weights()
    pairs.mark_valid()
    return sums


def _map_ranges(work: Any, n: int, parts: int) -> list[Any]:
    bounds = [n * part // parts for part in range(parts + 1)]
    ranges = [range(low, high) for low, high in pairwise(bounds)]
    if parts == 1:
        return [work(ranges[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(parts, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, ranges))


def _located(pairs: Pairs, start: int, p: NDArray[Any], scale: Scale) -> NDArray[Any]:
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
