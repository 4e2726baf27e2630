"""Rows into sums per slot: the compiled loops for one batch of arrays, with and without groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import fill_counts, fill_weights, sum_words
from calibrant.data.rows import REASONS, Rows, refusal
from calibrant.errors import InputError, Where
from calibrant.io.group_keys import Key
from calibrant.io.predictions import Outcomes, Piece, pieces_of
from calibrant.io.scan_request import Request

__all__ = ["SUM_NAMES", "DenseSums", "GroupedSums", "Notes", "RowBatch", "sums_of_rows"]

Integers = NDArray[np.int64]
SUM_NAMES = ("count", "offset", "weight", "squared_weight", "weighted_offset")
"""Of the columns of sums, where they are a table; without weights, the first two."""


Place = Callable[[int], Where]
"""Where the row of a batch stands in its source."""


@dataclass(frozen=True)
class Notes:
    """What a reader remembers besides sums: the first row that breaks each rule, and labels it saw."""

    refusals: dict[str, InputError] = field(default_factory=dict)
    labels: dict[Any, Where] = field(default_factory=dict)

    def add(self, other: Notes) -> None:
        """Take over what was noted of later rows, where there is no note yet."""
        for reason, error in other.refusals.items():
            self.refusals.setdefault(reason, error)
        for label, where in other.labels.items():
            self.labels.setdefault(label, where)

    def refuse(self, pairs: Rows, codes: NDArray[np.int8], place: Place) -> None:
        """Note the first row that breaks each rule that nothing is noted of."""
        rows = np.flatnonzero(codes >= 0)
        if not rows.size:
            return
        _, first = np.unique(codes[rows], return_index=True)
        for row in sorted(rows[first].tolist()):
            reason = REASONS[codes[row]]
            if reason not in self.refusals:
                error = refusal(pairs, row, reason)
                self.refusals[reason] = error.but(where=place(row))


@dataclass(frozen=True)
class RowBatch:
    """Rows that were read together, as arrays.

    Attributes
    ----------
    probs : list of arrays
        The columns of predictions, as they are written.
    label, weight : array
        Missing values are NaN or None.
    keys, group
        The groups, and each row's place among them; None where there are none.
    place : callable
        Says where a row of the batch stands in its source.
    """

    probs: Sequence[NDArray[Any]]
    label: NDArray[Any]
    weight: NDArray[Any] | None
    keys: Sequence[Key] | None = None
    group: Integers | None = None
    place: Place = lambda row: Where(row=row)


@dataclass(frozen=True)
class GroupedSums:
    """Sums of some rows: sorted by group, then by slot.

    Attributes
    ----------
    keys : sequence of tuple
        The groups, by their values.
    places : int64[m]
        Group index times `Request.slots` plus slot.
    sums : tuple of arrays
        Counts and sums of offsets; with weights, also the sums of weights, of their squares and of
        weight times offset.
    """

    keys: Sequence[Key]
    places: Integers
    sums: tuple[NDArray[Any], ...]
    notes: Notes = field(default_factory=Notes)


class DenseSums:
    """Sums of rows without groups: one entry for every slot. Adding one to another is exact."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.counts = np.zeros(request.slots, dtype=np.int64)
        self.offsets = np.zeros(request.slots, dtype=np.int64)
        self.floats = tuple(np.zeros(request.slots) for _ in range(3 * request.fractional))
        self.notes = Notes()

    def __iadd__(self, other: DenseSums) -> DenseSums:
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            mine += theirs
        self.notes.add(other.notes)
        return self

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """Counts, offsets and, with weights, the three sums of floats."""
        return (self.counts, self.offsets, *self.floats)

    def add_rows(
        self,
        p: NDArray[Any],
        y: NDArray[Any],
        w: NDArray[Any] | None,
        place: Place = lambda row: Where(row=row),
        raw: NDArray[Any] | None = None,
    ) -> None:
        """Add rows; those that break a rule are counted by reason, and the first of each is noted.

        `p` is float32 or float64; missing values are NaN. `raw` are the predictions as they were written.
        """
        start = 0
        if w is None and self.request.on_probability_scale and not self.request.soft:
            start = self._fill_counts(p, y)
            if start < 0:
                return
        pairs = Rows(p[start:], y[start:], w, soft=self.request.soft)
        codes = pairs.reason_codes(slice(None))
        written = _as_written(self.request, p if raw is None else raw, y, w)
        whole = np.concatenate([np.full(start, -1, np.int8), codes]) if start else codes
        self.notes.refuse(written, whole, place)
        kept = pairs.select(codes < 0) if np.any(codes >= 0) else pairs
        refused = np.bincount(codes[codes >= 0], minlength=self.request.slots - self._cells)
        self.counts[self._cells :] += refused
        if kept.n:
            self._fill(kept)

    def grouped(self, key: Key) -> GroupedSums:
        """The non-empty slots, as those of one group."""
        used = self.counts > 0
        if self.request.soft:
            used |= self.floats[0] > 0  # a soft row weighs under both labels
        places = np.flatnonzero(used)
        sums = tuple(column[places] for column in self.columns)
        return GroupedSums([key], places, sums, self.notes)

    @property
    def _cells(self) -> int:
        return self.request.cell_slots

    def _fill(self, kept: Rows) -> None:
        p, y = kept.raw_prob, kept.raw_label
        if not self.request.on_probability_scale:
            p = self.request.scale.locate(p.astype(np.float64, copy=False))
        if not kept.fractional:
            self._fill_counts(np.ascontiguousarray(p), np.ascontiguousarray(y))
            return
        weight = np.ones(kept.n) if kept.raw_weight is None else kept.raw_weight
        p, y, w = (np.ascontiguousarray(x, dtype=np.float64) for x in (p, y, weight))
        fill_weights(p, y, w, self.request.log2_nodes, *map(self._table, self.columns))

    def _fill_counts(self, p: NDArray[Any], y: NDArray[Any]) -> int:
        """Add the rows up to the first that breaks a rule, and say which that is (or -1)."""
        tables = self._table(self.counts), self._table(self.offsets)
        return fill_counts(p, y, self.request.log2_nodes, *tables)

    def _table(self, column: NDArray[Any]) -> NDArray[Any]:
        return column[: self._cells].reshape(-1, 2)


def sums_of_rows(
    request: Request, batch: RowBatch, dense: dict[Key, DenseSums]
) -> list[GroupedSums]:
    """Add a batch of rows to `dense`, or give their sums by group."""
    outcomes = Outcomes(request) if request.pos_label is not None else None
    parts: list[GroupedSums] = []
    try:
        pieces = list(pieces_of(request, batch.probs, batch.label, batch.weight, outcomes))
    except InputError as error:  # of the matrix of classes, which is checked as a whole
        row = error.row
        raise error if row is None else error.at(**asdict(batch.place(row))) from None
    for number, piece in enumerate(pieces):
        raw = batch.probs[number] if request.multiclass is None else None
        if batch.group is None and piece.added_by_row is None:
            if piece.added not in dense:
                dense[piece.added] = DenseSums(request)
            total = dense[piece.added]
            total.add_rows(piece.p, piece.y, piece.w, _within(batch, piece), raw)
        else:
            parts.append(_sums_by_group(request, batch, piece, raw))
    if outcomes is not None:
        noted = next(iter(dense.values())).notes if dense else parts[0].notes
        for label in outcomes.seen:
            noted.labels.setdefault(label, Where())
    return parts


def _within(batch: RowBatch, piece: Piece) -> Place:
    """Where the rows of a piece stand, which may be some of those of its batch."""
    rows = piece.rows
    return batch.place if rows is None else lambda row: batch.place(int(rows[row]))


def _as_written(
    request: Request, raw: NDArray[Any], y: NDArray[Any], w: NDArray[Any] | None
) -> Rows:
    """The rows as an error should show them: predictions in the form in which they came."""
    form = "probability" if request.multiclass else request.form
    return Rows(raw, y, w, form=form, soft=request.soft)


def _sums_by_group(
    request: Request, batch: RowBatch, piece: Piece, raw: NDArray[Any] | None
) -> GroupedSums:
    """Sums of rows in groups: those of the batch, after what the columns of predictions add."""
    p, y, w = piece.p, piece.y, piece.w
    keys: Sequence[Key] = batch.keys if batch.keys is not None else [()]
    group = batch.group if batch.group is not None else np.zeros(p.size, np.int64)
    if piece.rows is not None and batch.group is not None:
        group = group[piece.rows]
    if piece.added_by_row is not None:
        group = piece.added_by_row * len(keys) + group
        keys = [(name, *key) for name in piece.added for key in keys]
        used, group = np.unique(group, return_inverse=True)
        keys = [keys[place] for place in used.tolist()]
    elif piece.added:
        keys = [(*piece.added, *key) for key in keys]
    notes = Notes()
    slot, offset, codes = _slots(request, p, y, w)
    if np.any(codes >= 0):
        written = _as_written(request, p if raw is None else raw, y, w)
        notes.refuse(written, codes, _within(batch, piece))
    summed = _summed_slots(request, keys, group, slot, offset, y, w)
    return GroupedSums(summed.keys, summed.places, summed.sums, notes)


def _summed_slots(
    request: Request,
    keys: Sequence[Key],
    group: Integers,
    slot: Integers,
    offset: Integers,
    y: NDArray[Any],
    w: NDArray[Any] | None,
) -> GroupedSums:
    if request.soft:
        return _soft_sums(request, keys, group, slot, offset, y, w)
    place = group * request.slots + slot
    bits = request.offset_bits
    high = (len(keys) * request.slots).bit_length() + bits
    if w is None and high <= 64 and place.size:
        place <<= bits
        place |= offset
        spare, sums = np.empty(place.size, np.uint64), np.empty((3, place.size), np.int64)
        found = sum_words(place.view(np.uint64), spare, bits, high, *sums)
        places, counts, offsets = (column[:found].copy() for column in sums)
        return GroupedSums(keys, places, (counts, offsets))
    places, index = np.unique(place, return_inverse=True)
    counts = np.bincount(index, minlength=places.size)
    columns: list[NDArray[Any]] = [counts, _summed(index, offset, places.size)]
    if w is not None:
        weight = np.where(slot < request.cell_slots, w, 0.0)
        for values in (weight, weight * weight, weight * offset):
            columns.append(np.bincount(index, weights=values, minlength=places.size))
    return GroupedSums(keys, places, tuple(columns))


def _soft_sums(
    request: Request,
    keys: Sequence[Key],
    group: Integers,
    slot: Integers,
    offset: Integers,
    y: NDArray[Any],
    w: NDArray[Any] | None,
) -> GroupedSums:
    """Each row weighs under both labels; it is counted once, under the likelier."""
    is_row = slot < request.cell_slots
    share = np.where(is_row, y, 0.0).astype(np.float64)
    weight = np.where(is_row, 1.0 if w is None else w, 0.0)
    under = (weight * (1.0 - share), weight * share)  # the label 0, the label 1
    first = slot - np.where(is_row, slot & 1, 0)
    places, index = np.unique(
        np.concatenate([group * request.slots + first + side * is_row for side in (0, 1)]),
        return_inverse=True,
    )
    counted = np.concatenate([slot == first, slot != first])
    offsets = np.concatenate([offset, offset])
    shares = np.concatenate(under)
    columns: list[NDArray[Any]] = [
        _summed(index, counted.astype(np.int64), places.size),
        _summed(index, np.where(counted, offsets, 0), places.size),
    ]
    for values in (shares, shares * shares, shares * offsets):
        columns.append(np.bincount(index, weights=values, minlength=places.size))
    used = (columns[0] > 0) | (columns[2] > 0)
    return GroupedSums(keys, places[used], tuple(column[used] for column in columns))


def _slots(
    request: Request, p: NDArray[Any], y: NDArray[Any], w: NDArray[Any] | None
) -> tuple[Integers, Integers, NDArray[np.int8]]:
    """Each row's slot and offset, and the rule it breaks; refused rows stand in the slot of that rule."""
    codes = Rows(p, y, w, soft=request.soft).reason_codes(slice(None))
    refused = codes >= 0
    position = np.where(refused, 0.0, p).astype(np.float64, copy=False)
    if not request.on_probability_scale:
        position = request.scale.locate(position)
    fixed = (position * float(1 << request.offset_bits + request.log2_nodes)).astype(np.int64)
    slot = 2 * (fixed >> request.offset_bits) + (np.where(refused, 0, y) >= 0.5)
    slot = np.where(refused, request.cell_slots + codes.astype(np.int64), slot)
    offset = np.where(refused, 0, fixed & ((1 << request.offset_bits) - 1))
    return slot, offset, codes


def _summed(index: Integers, values: Integers, size: int) -> Integers:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return total
