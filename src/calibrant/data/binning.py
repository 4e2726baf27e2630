"""Points for measures over bins, from many rows without sorting them.

Two passes: sums in narrow cells, then the rows of those few cells in which a bin may end. All other rows
of a cell share a bin, so that one atom can stand for them: sums over bins are those of all the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.data.fill import sums_of_cells
from calibrant.data.points import Points
from calibrant.data.rows import BLOCK_ROWS, Rows

__all__ = ["atoms_around_edges", "atoms_around_shares"]

Floats = NDArray[np.float64]

CELLS = 1 << 16
ROWS_WORTH_TWO_PASSES = 1 << 18


def atoms_around_edges(pairs: Rows, edges: Floats) -> Points:
    """Points that are exact where predictions are cut at `edges`, on either side of each."""
    if pairs.n < ROWS_WORTH_TWO_PASSES:
        return Points.from_pairs(pairs)
    cut = np.zeros(CELLS + 1, dtype=bool)
    cut[(np.asarray(edges) * CELLS).astype(np.int64)] = True
    return _gathered(pairs, sums_of_cells(pairs, CELLS), cut)


def atoms_around_shares(pairs: Rows, numbers: Sequence[int]) -> Points:
    """Points that are exact where the rows are cut into so many parts of equal mass, for each number."""
    if pairs.n < ROWS_WORTH_TWO_PASSES:
        return Points.from_pairs(pairs)
    sums = sums_of_cells(pairs, CELLS)
    after = np.cumsum(sums[:, 0])
    targets = np.concatenate([np.arange(1, k) * (after[-1] / k) for k in numbers])
    slack = 1e-12 * after[-1]
    low, high = np.searchsorted(after, targets - slack), np.searchsorted(after, targets + slack)
    cut = np.zeros(CELLS + 2, dtype=np.int64)
    np.add.at(cut, low, 1)
    np.add.at(cut, np.minimum(high, CELLS) + 1, -1)
    return _gathered(pairs, sums, np.cumsum(cut[:-1]) > 0)


def _gathered(pairs: Rows, sums: Floats, cut: NDArray[np.bool_]) -> Points:
    """The rows of the cells that are cut as they are, those of any other cell at their mean."""
    inside = Points.from_pairs(_rows_in(pairs, cut)) if np.any(sums[cut, 0] > 0) else None
    whole = np.flatnonzero(~cut & (sums[:, 0] > 0))
    weight, events, predictions, squared = sums[whole].T
    p, mass = predictions / weight, np.column_stack([weight - events, events])
    if inside is not None:
        p, mass = np.append(p, inside.p), np.append(mass, inside.mass, axis=0)
    order = np.argsort(p, kind="stable")
    if not pairs.fractional:
        return Points(p[order], mass[order], pairs.n, dropped=pairs.dropped)
    if inside is not None and inside.squared is not None:
        squared = np.append(squared, inside.squared)
    return Points(
        p[order],
        mass[order],
        pairs.n,
        squared=squared[order],
        soft=pairs.soft,
        dropped=pairs.dropped,
    )


def _rows_in(pairs: Rows, cut: NDArray[np.bool_]) -> Rows:
    """The rows whose cell is one of these."""
    kept = []
    for start in range(0, pairs.n, BLOCK_ROWS):
        for first, p, _, _ in pairs.blocks(range(start, min(start + BLOCK_ROWS, pairs.n))):
            cell = (p.astype(np.float64, copy=False) * CELLS).astype(np.int64)
            kept.append(first + np.flatnonzero(cut[cell]))
    return pairs.select(np.concatenate(kept))
