"""Rows dealt to folds, so that no row is judged by a map that has seen it.

Rows and the sketch of these rows are dealt alike: so many rows of each cell and outcome go to each fold,
and their maps are learned from the same sums. What is made of rows and what is made of their sketch then
differ by no more than rows inside a cell can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches

__all__ = ["FOLDS", "Dealt", "Entries", "deal_clusters", "deal_pairs", "deal_sketch"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOLDS = 5
UNIT = 2.0**-FRACTION_BITS


@dataclass(frozen=True, eq=False)
class Entries:
    """Rows, or the outcomes in the cells of a sketch, each with a fold and what depends on what."""

    p: Floats
    label: Integers
    share: Floats
    squared: Floats
    fold: Integers
    unit: Integers | None
    units: int
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True, eq=False)
class Dealt:
    """The entries, the sketch of each fold, and that of all; how many clusters, where there are any."""

    entries: Entries
    parts: Sequence[Sketch]
    sketch: Sketch
    clusters: int | None = None


def deal_pairs(pairs: Rows, codes: tuple[Integers, int] | None, seed: int) -> Dealt:
    """Rows; those of one cluster go to one fold."""
    sketch = Sketch.from_rows(pairs)
    share = np.ones(pairs.n) if pairs.weight is None else pairs.weight
    share = share / share.sum()
    if codes is None and not pairs.fractional:
        label = pairs.y.astype(np.int64)
        fold = _folds_of_rows(pairs.p, label, sketch, seed)
        entries = Entries(pairs.p, label, share, share**2, fold, None, pairs.n)
        return Dealt(entries, _split(sketch, seed), sketch)
    if codes is None:
        fold = generator(seed, 20).permutation(pairs.n) % FOLDS
    else:
        fold = _folds_of_clusters(codes[1], seed)[codes[0]]
    parts = [_fold_of(pairs, fold == k) for k in range(FOLDS)]
    unit, units = (None, pairs.n) if codes is None else codes
    if pairs.soft:  # a soft outcome is a row of either outcome, and both depend on each other
        unit = np.arange(pairs.n) if unit is None else unit
        both = np.concatenate([share * (1.0 - pairs.y), share * pairs.y])
        label = np.repeat(np.array([0, 1]), pairs.n)
        p, folds, pairs_of = np.tile(pairs.p, 2), np.tile(fold, 2), np.tile(unit, 2)
        entries = Entries(p, label, both, both**2, folds, pairs_of, units)
    else:
        entries = Entries(pairs.p, pairs.y.astype(np.int64), share, share**2, fold, unit, units)
    return Dealt(entries, parts, sketch, None if codes is None else codes[1])


def _fold_of(pairs: Rows, rows: NDArray[np.bool_]) -> Sketch:
    """The rows of a fold, which may be none, or none that count."""
    counted = rows if pairs.weight is None else pairs.weight[rows] > 0
    return Sketch.from_rows(pairs.select(rows)) if counted.any() else Sketch.empty()


def deal_sketch(sketch: Sketch, seed: int) -> Dealt:
    """The rows of a sketch; those of a cell and an outcome share their mean."""
    parts = _split(sketch, seed)
    columns = [_columns(part, float(sketch.n)) for part in parts]
    fold = np.repeat(np.arange(len(parts)), [column[0].size for column in columns])
    return Dealt(_entries(columns, fold, None, sketch.n), parts, sketch)


def deal_clusters(clusters: Sequence[Sketch], seed: int) -> Dealt:
    """Sketches of clusters, each of which goes to one fold."""
    fold = _folds_of_clusters(len(clusters), seed)
    sketch = Sketches(dict(enumerate(clusters)), by="cluster").total()
    parts = [
        Sketches(own, by="cluster").total()
        for k in range(FOLDS)
        if (own := {at: one for at, one in enumerate(clusters) if fold[at] == k})
    ]
    parts += [Sketch.empty(nodes=sketch.nodes, scale=sketch.scale)] * (FOLDS - len(parts))
    columns = [_columns(one, float(sketch.n)) for one in clusters]
    unit = np.repeat(np.arange(len(clusters)), [column[0].size for column in columns])
    entries = _entries(columns, fold[unit], unit, len(clusters))
    return Dealt(entries, parts, sketch, len(clusters))


def _folds_of_clusters(clusters: int, seed: int) -> Integers:
    return generator(seed, 20).permutation(clusters) % FOLDS


def _rows_of_folds(counts: Integers, seed: int) -> Integers:
    """Of so many rows in each cell and outcome, how many go to each fold."""
    return generator(seed, 20).multinomial(counts, np.full(FOLDS, 1.0 / FOLDS))


def _folds_of_rows(p: Floats, label: Integers, sketch: Sketch, seed: int) -> Integers:
    """The fold of each row: of a cell and an outcome, as many as `_split` deals to it, at random."""
    cell = (np.asarray(sketch.scale.locate(p)) / UNIT).astype(np.int64) >> sketch.offset_bits
    place = 2 * np.minimum(cell, sketch.nodes - 1) + label
    shuffled = generator(seed, 22).permutation(p.size)
    order = shuffled[np.argsort(place[shuffled], kind="stable")]
    dealt = _rows_of_folds(np.unique(place, return_counts=True)[1], seed)
    fold = np.empty(p.size, dtype=np.int64)
    fold[order] = np.repeat(np.tile(np.arange(FOLDS), len(dealt)), dealt.ravel())
    return fold


def _split(sketch: Sketch, seed: int) -> list[Sketch]:
    """The rows of a sketch dealt at random; those of a cell share its mean."""
    used = sketch.counts > 0
    counts, offsets = sketch.counts[used], sketch.offsets[used]
    cells = np.repeat(sketch.cells[:, None], 2, axis=1)[used]
    labels = np.repeat(np.array([[0, 1]]), sketch.cells.size, axis=0)[used]
    parts = []
    for own in _rows_of_folds(counts, seed).T:
        some = own > 0
        mean = offsets[some] // counts[some]
        parts.append(
            Sketch.from_columns(
                cells[some],
                labels[some],
                own[some],
                own[some] * mean,
                nodes=sketch.nodes,
                scale=sketch.scale,
            )
        )
    return parts


def _columns(part: Sketch, total: float) -> tuple[NDArray[np.generic], ...]:
    """Prediction, outcome, share, squared share, and between what the rows of each entry lie."""
    used = part.counts > 0
    left = np.repeat(part.cells[:, None], 2, axis=1)[used] / part.nodes
    offset = part.offsets[used] / part.counts[used] * UNIT
    # A unit up: what was cut to fixed point must still reach its own threshold.
    ends = [left + offset + UNIT, left, np.minimum(left + 1.0 / part.nodes, 1.0)]
    p, low, high = (np.clip(part.scale.prediction(end), 0.0, 1.0) for end in ends)
    label = np.repeat(np.array([[0, 1]]), part.cells.size, axis=0)[used]
    share = part.counts[used] / total
    alone = part.counts[used] == 1
    return p, label, share, share / total, np.where(alone, p, low), np.where(alone, p, high)


def _entries(
    columns: Sequence[tuple[NDArray[np.generic], ...]],
    fold: Integers,
    unit: Integers | None,
    units: int,
) -> Entries:
    p, label, share, squared, low, high = (
        np.concatenate([column[k] for column in columns]) for k in range(6)
    )
    return Entries(p, label, share, squared, fold, unit, units, low, high)
