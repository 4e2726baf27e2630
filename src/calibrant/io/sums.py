"""Sums per cell and label: rows into sums, sums of batches into a total, the total into sketches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.data._fill import fill_counts, fill_weights, sum_words
from calibrant.data.cell_sums import require_room
from calibrant.data.rows import LEAST_TOTAL_WEIGHT, REASONS, Rows, refusal
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches, Stacked
from calibrant.errors import InputError, InvalidRows, TooFewRows, show_value
from calibrant.io.arrow import as_numpy, coded_column
from calibrant.io.batches import Batch
from calibrant.io.group_keys import Key, crossed, place_of, sort_key
from calibrant.io.predictions import Piece, labels_of, pieces_of, require_two_labels
from calibrant.io.request import Request, no_rows

Integers = NDArray[np.int64]
SUM_NAMES = ("count", "offset", "weight", "squared_weight", "weighted_offset")
"""Names of the sums, where they are a table; without weights, the first two."""
TABLE_ROWS = 1 << 14
"""Rows of one group for which a table of all cells, 2 MB, is quicker than sorting them."""
MOST_TABLES = 32
"""Tables that are filled side by side, 64 MB."""
FEWEST_WAITING = 1 << 21
"""Entries that may wait to be merged, about 50 MB."""


@dataclass
class Notes:
    """Remarks of a reader besides sums: the first row that breaks a rule, and labels it saw."""

    refused: InputError | None = None
    labels: dict[Any, None] = field(default_factory=dict)

    def add(self, other: Notes) -> None:
        """Take over the notes of later rows, where there is none yet."""
        self.refused = self.refused or other.refused
        self.labels.update(other.labels)


@dataclass(frozen=True)
class Sums:
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


class _Table:
    """Sums of the rows of one group, with an entry for every slot."""

    def __init__(self, request: Request) -> None:
        self.request = request
        kinds = (np.int64, np.int64, *(np.float64,) * (3 * request.fractional))
        self.columns = tuple(np.zeros(request.slots, kind) for kind in kinds)
        self.notes = Notes()

    def add(self, batch: Batch, piece: Piece) -> None:
        """Add rows; those that break a rule are counted by reason, and the first of them is noted."""
        p, y, w, request = piece.p, piece.y, piece.w, self.request
        start = 0
        if request.on_probability_scale and not request.fractional:
            start = self._fill_counts(p, y)
            if start < 0:
                return
        rows = Rows(p[start:], y[start:], w, soft=request.soft)
        codes = rows.reason_codes()
        kept = rows
        if np.any(codes >= 0):
            _note(self.notes, request, batch, piece, start + int(np.argmax(codes >= 0)))
            kept = rows.select(codes < 0)
            reasons = np.bincount(codes[codes >= 0], minlength=len(REASONS))
            self.columns[0][request.cell_slots :] += reasons
        if not kept.n:
            return
        p, y = kept.raw_prob, kept.raw_label
        if not request.on_probability_scale:
            p = request.scale.locate(p.astype(np.float64, copy=False))
        if not request.fractional:
            self._fill_counts(np.ascontiguousarray(p), np.ascontiguousarray(y))
            return
        weight = np.ones(kept.n) if kept.raw_weight is None else kept.raw_weight
        p, y, w = (np.ascontiguousarray(x, dtype=np.float64) for x in (p, y, weight))
        fill_weights(p, y, w, request.log2_nodes, *map(self._cells, self.columns))

    def _fill_counts(self, p: NDArray[Any], y: NDArray[Any]) -> int:
        """Add the rows up to the first that breaks a rule; its index, or -1."""
        counts, offsets = map(self._cells, self.columns[:2])
        return fill_counts(p, y, self.request.log2_nodes, counts, offsets)

    def _cells(self, column: NDArray[Any]) -> NDArray[Any]:
        return column[: self.request.cell_slots].reshape(-1, 2)

    def sums(self, key: Key) -> Sums:
        """Sums of the slots that are not empty."""
        used = self.columns[0] > 0
        if self.request.soft:
            used |= self.columns[2] > 0  # a soft row weighs under both labels
        places = np.flatnonzero(used)
        return Sums([key], places, tuple(column[places] for column in self.columns), self.notes)


# -- rows into sums ----------------------------------------------------------------------------


def sums_of(batches: Iterable[Batch], request: Request) -> Iterator[Sums]:
    """Sums of batches of rows, in order; many rows of one group are summed over all batches."""
    tables: dict[Key, _Table] = {}

    def filled() -> Iterator[Sums]:
        while tables:
            key = next(iter(tables))
            yield tables.pop(key).sums(key)

    for batch in batches:
        if not batch.label.size:
            continue
        keys, group = crossed(batch.groups, batch.label.size)
        try:
            for piece in pieces_of(request, batch):
                key = (*piece.added, *keys[0])
                if len(keys) > 1 or piece.added_by_row is not None or piece.p.size < TABLE_ROWS:
                    yield from filled()
                    yield _sums_by_group(request, batch, piece, keys, group)
                    continue
                if key not in tables and len(tables) == MOST_TABLES:
                    yield from filled()
                tables.setdefault(key, _Table(request)).add(batch, piece)
        except InputError as error:  # of the matrix of classes, which is checked as a whole
            raise error if error.row is None else batch.placed(error) from None
        if request.pos_label is not None:
            labels = dict.fromkeys(labels_of(batch.label))
            yield Sums([], np.empty(0, np.int64), (), Notes(labels=labels))
    yield from filled()


def _note(notes: Notes, request: Request, batch: Batch, piece: Piece, row: int) -> None:
    """Note a row that breaks a rule, unless an earlier one is noted, with predictions as they came."""
    if notes.refused is None:
        form = "probability" if piece.raw is None else request.form
        raw = piece.p if piece.raw is None else piece.raw
        rows = Rows(raw, piece.y, piece.w, form=form, soft=request.soft)
        checked = Rows(piece.p, piece.y, piece.w, soft=request.soft)
        code = checked.reason_codes(slice(row, row + 1))[0]
        error = refusal(rows, row, REASONS[code])
        number = row if piece.rows is None else int(piece.rows[row])
        notes.refused = batch.placed(error.at(row=number))


def _sums_by_group(
    request: Request, batch: Batch, piece: Piece, keys: Sequence[Key], group: Integers
) -> Sums:
    """Sums of rows in groups: those of the batch, after those that the columns of predictions add."""
    p, y, w = piece.p, piece.y, piece.w
    if piece.rows is not None:
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
        _note(notes, request, batch, piece, int(np.argmax(codes >= 0)))
    places, sums = _summed_slots(request, len(keys), group, slot, offset, y, w)
    return Sums(keys, places, sums, notes)


def _slots(
    request: Request, p: NDArray[Any], y: NDArray[Any], w: NDArray[Any] | None
) -> tuple[Integers, Integers, NDArray[np.int8]]:
    """Slot and offset of each row, and the rule it breaks; refused rows stand in the slot of that rule."""
    codes = Rows(p, y, w, soft=request.soft).reason_codes()
    refused = codes >= 0
    position = np.where(refused, 0.0, p).astype(np.float64, copy=False)
    if not request.on_probability_scale:
        position = request.scale.locate(position)
    fixed = (position * float(1 << request.offset_bits + request.log2_nodes)).astype(np.int64)
    slot = 2 * (fixed >> request.offset_bits) + (np.where(refused, 0, y) >= 0.5)
    slot = np.where(refused, request.cell_slots + codes.astype(np.int64), slot)
    offset = np.where(refused, 0, fixed & ((1 << request.offset_bits) - 1))
    return slot, offset, codes


def _summed_slots(
    request: Request,
    groups: int,
    group: Integers,
    slot: Integers,
    offset: Integers,
    y: NDArray[Any],
    w: NDArray[Any] | None,
) -> tuple[Integers, tuple[NDArray[Any], ...]]:
    """Distinct places of rows, and the sums there.

    A row of a soft label weighs under both labels, and is counted once, under the likelier.
    """
    counted = np.ones(slot.size, np.int64)
    is_row = slot < request.cell_slots
    if request.fractional:
        w = np.where(is_row, 1.0 if w is None else w, 0.0)
    if request.soft and w is not None:
        share, first = np.where(is_row, y, 0.0).astype(np.float64), slot - (is_row & slot)
        counted = np.concatenate([slot == first, slot != first]).astype(np.int64)
        w = np.concatenate([w * (1.0 - share), w * share])  # the label 0, the label 1
        slot = np.concatenate([first, first + is_row])
        group, offset = np.tile(group, 2), np.tile(offset, 2)
    place = group * request.slots + slot
    bits = request.offset_bits
    high = (groups * request.slots).bit_length() + bits
    if w is None and high <= 64 and place.size:
        place <<= bits
        place |= offset
        spare, sums = np.empty(place.size, np.uint64), np.empty((3, place.size), np.int64)
        found = sum_words(place.view(np.uint64), spare, bits, high, *sums)
        places, counts, offsets = (column[:found].copy() for column in sums)
        return places, (counts, offsets)
    places, index = np.unique(place, return_inverse=True)
    weighted = () if w is None else (w, w * w, w * offset)
    columns = [
        _summed(index, values, places.size) for values in (counted, counted * offset, *weighted)
    ]
    used = np.any([column > 0 for column in columns[:3:2]], axis=0)  # of soft labels, not all are
    return places[used], tuple(column[used] for column in columns)


def _summed(index: Integers, values: NDArray[Any], size: int) -> NDArray[Any]:
    """Values summed by index, one after the other."""
    if values.dtype.kind == "f":
        return np.bincount(index, weights=values, minlength=size)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return total


# -- sums into a total -------------------------------------------------------------------------


class Total:
    """Sums by group, added up batch by batch.

    Sums at places that are known are added there; new places wait until there are many. So the total is a
    left fold, which does not depend on when the waiting ones are merged: a scan that is stopped and taken
    up again ends with the same bits, weights included.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.index: dict[Key, int] = {}
        self.notes = Notes()
        self._places = np.empty(0, np.int64)
        self._sums: list[NDArray[Any]] = []
        self._waiting: list[tuple[Integers, tuple[NDArray[Any], ...]]] = []
        self._waits = 0
        if not request.by:  # of one group, all places are known
            self.index[()] = 0
            self._places, self._sums = np.arange(request.slots), list(_Table(request).columns)

    def add(self, part: Sums) -> None:
        """Add the sums of one batch."""
        self.notes.add(part.notes)
        if not part.places.size:
            return
        ids = np.array([place_of(key, self.index) for key in part.keys], dtype=np.int64)
        places, sums = part.places, part.sums
        if not np.array_equal(ids, np.arange(ids.size)):  # of all parts but the first
            group, slot = np.divmod(places, self.request.slots)
            places = ids[group] * self.request.slots + slot
        if self._places.size:
            at = places
            if self.request.by:
                at = np.minimum(np.searchsorted(self._places, places), self._places.size - 1)
            known = self._places[at] == places
            for column, values in zip(self._sums, sums, strict=True):
                column[at[known]] += values[known]
            places, sums = places[~known], tuple(values[~known] for values in sums)
        self._waiting.append((places, sums))
        self._waits += places.size
        if self._waits > max(FEWEST_WAITING, self._places.size // 4):
            self._merge()

    def _merge(self) -> None:
        """Insert the waiting places where they belong."""
        waiting, self._waiting, self._waits = self._waiting, [], 0
        if waiting:
            places = np.concatenate([self._places, *(places for places, _ in waiting)])
            columns = zip(*(sums for _, sums in waiting), strict=True)
            joined = [list(column) for column in columns]
            for column, before in zip(joined, self._sums, strict=bool(self._sums)):
                column.insert(0, before)
            self._places, index = np.unique(places, return_inverse=True)
            size = self._places.size
            self._sums = [_summed(index, np.concatenate(column), size) for column in joined]

    def require_one_type(self) -> None:
        """Refuse groups of several types in one column, such as 1 in one file and "1" in another."""
        for name, values in zip(self.request.by, zip(*self.index, strict=True), strict=False):
            kinds: dict[str, Any] = {}
            for value in values:
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                kinds.setdefault("number" if is_number else type(value).__name__, value)
            kinds.pop("NoneType", None)
            if len(kinds) > 1:
                raise InputError(
                    f"Column {name!r} must hold values of one type; it has "
                    f"{' and '.join(map(show_value, kinds.values()))}.",
                    argument="by",
                )

    def merge(self) -> tuple[Integers, list[NDArray[Any]]]:
        """All sums, sorted by group (in order of appearance) and slot."""
        self._merge()
        if self.request.by:
            return self._places, self._sums
        used = np.any([column != 0 for column in self._sums], axis=0)
        return self._places[used], [column[used] for column in self._sums]


def merged(parts: Iterable[Sums], request: Request) -> Sums:
    """Several sums as one."""
    total = Total(request)
    for part in parts:
        total.add(part)
    places, sums = total.merge()
    return Sums(list(total.index), places, tuple(sums), total.notes)


# -- sums as tables ----------------------------------------------------------------------------


def table_names(request: Request) -> list[str]:
    """Columns of sums as a table: the groups, the slot, and the sums."""
    groups = [f"group_{place}" for place in range(len(request.by))]
    return [*groups, "slot", *SUM_NAMES[: 2 + 3 * request.fractional]]


def as_table(part: Sums, request: Request) -> Any:
    """Sums as an Arrow table."""
    pyarrow = require("pyarrow", caller="a table of sums")
    group, slot = np.divmod(part.places, request.slots)
    keys = list(zip(*part.keys, strict=True)) or [()] * len(request.by)
    groups = [pyarrow.array(list(values)).take(pyarrow.array(group)) for values in keys]
    sums = part.sums or [np.empty(0, np.int64)] * (2 + 3 * request.fractional)
    return pyarrow.table([*groups, slot, *sums], names=table_names(request))


def from_table(table: Any, request: Request) -> Sums:
    """Sums in an Arrow table, checked to point to where they may."""
    table.validate(full=True)
    *groups, slot = (table[name] for name in table_names(request)[: len(request.by) + 1])
    keys, group = crossed(map(coded_column, groups), table.num_rows)
    sums = (as_numpy(table[name]).copy() for name in table_names(request)[len(request.by) + 1 :])
    return Sums(keys, group * request.slots + as_numpy(slot), tuple(sums))


# -- the total into sketches -------------------------------------------------------------------


def as_result(total: Total) -> Sketch | Sketches:
    """Sketch of a total, or the sketches by group, with refused rows counted or raised."""
    request = total.request
    places, sums = total.merge()
    if not places.size:
        raise no_rows()
    if request.pos_label is not None:
        slot = places % request.slots
        events = (slot < request.cell_slots) & (slot % 2 == 1)
        event_seen = bool(sums[0][events].sum())
        require_two_labels(total.notes.labels, request.pos_label, event_seen=event_seen)
    rows = int(sums[0].sum())
    reason = places % request.slots - request.cell_slots
    tally = _summed(reason[reason >= 0], sums[0][reason >= 0], len(REASONS))
    refused = {name: int(n) for name, n in zip(REASONS, tally.tolist(), strict=True) if n}
    if refused and request.on_invalid == "raise":
        raise invalid_rows(refused, rows, total.notes.refused)
    if sum(refused.values()) == rows:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in refused.items())
        raise TooFewRows(
            f"No valid rows are left: all {rows} were dropped ({reasons}).",
            refused,
            hint='Leave out `on_invalid="drop"` to see what is wrong with the first.',
        )
    keys = list(total.index)
    if request.fractional:
        group = places // request.slots
        weights = np.bincount(group, weights=sums[2], minlength=len(keys)).astype(np.float64)
        require_weight(weights, rows - sum(refused.values()))
    ordered = _order(request, keys)
    keys = [keys[k] for k in ordered]
    sketches = _stacked(request, np.array(ordered, np.int64), places, sums)
    if not request.by:
        return sketches[0]
    names = [key[0] for key in keys] if len(request.by) == 1 else keys
    return Sketches.from_stacked(names, sketches, by=request.by)


def _order(request: Request, keys: Sequence[Key]) -> list[int]:
    """Models and classes in the order of their columns, then groups by their values."""
    order = {name: place for place, name in enumerate(request.class_names or request.models)}

    def rank(key: Key) -> Any:
        added = key[0] if request.added else None
        return (order.get(added, len(order)), sort_key(key)) if order else sort_key(key)

    if not order and all(len(key) == 1 and type(key[0]) is str for key in keys):
        return sorted(range(len(keys)), key=keys.__getitem__)  # the same, in less memory
    return sorted(range(len(keys)), key=lambda place: rank(keys[place]))


def require_weight(weights: NDArray[np.float64], rows: int) -> None:
    """Refuse weights of groups that leave nothing to measure: the same rule as for arrays.

    A group of which all weights are 0 may stand beside others.
    """
    tiny = (weights > 0.0) & (weights < LEAST_TOTAL_WEIGHT)
    if tiny.any() or not weights.sum() >= LEAST_TOTAL_WEIGHT:
        least = weights[tiny][0] if tiny.any() else weights.sum()
        raise InputError(
            f"`sample_weight` must add up to {LEAST_TOTAL_WEIGHT:g} or more"
            f"{' in every group' if weights.size > 1 else ''}; the {rows} weights add up to {least:g}.",
            hint="Leave it out to give every row weight 1.",
        )


def sorted_groups(groups: Sketches) -> Sketches:
    """Groups in order: by type, then by value; missing ones last."""
    single = len(groups.by) == 1
    ordered = sorted(groups, key=lambda key: sort_key((key,) if single else key))
    return Sketches({key: groups[key] for key in ordered}, by=groups.by)


def _stacked(
    request: Request, ordered: Integers, places: Integers, sums: Sequence[NDArray[Any]]
) -> Stacked:
    """Sketches of groups in this order, from places and their sums."""
    bounds = np.searchsorted(places, np.arange(ordered.size + 1) * request.slots)
    sizes = np.diff(bounds)[ordered]
    entry = np.arange(sizes.sum())
    entry += np.repeat(bounds[ordered] - (np.cumsum(sizes) - sizes), sizes)
    slot = places[entry] % request.slots
    owner = np.repeat(np.arange(ordered.size, dtype=np.int32), sizes)
    refused: dict[int, dict[str, int]] = {}
    is_row = slot < request.cell_slots
    for broken in np.flatnonzero(~is_row).tolist():
        reason = REASONS[int(slot[broken]) - request.cell_slots]
        refused.setdefault(int(owner[broken]), {})[reason] = int(sums[0][entry[broken]])
    if refused:
        entry, slot, owner = entry[is_row], slot[is_row], owner[is_row]
    is_new = np.ones(slot.size, np.bool_)
    is_new[1:] = (slot[1:] >> 1 != slot[:-1] >> 1) | (owner[1:] != owner[:-1])
    cells, starts = slot[is_new] >> 1, np.zeros(ordered.size + 1, np.int64)
    np.cumsum(np.bincount(owner[is_new], minlength=ordered.size), out=starts[1:])
    row = np.cumsum(is_new)
    row += row + (slot & 1) - 2
    del slot, owner
    tables = []
    for column in sums:
        table = np.zeros((cells.size, 2), column.dtype)
        table.reshape(-1)[row] = column[entry]
        tables.append(table)
    require_room(int(tables[0].max(initial=0)), request.offset_bits)
    entries = Sketch((cells, *tables), nodes=request.nodes, scale=request.scale)
    return Stacked(starts, entries, refused)


def invalid_rows(
    refused: Mapping[str, int], rows: int, first: InputError | None = None
) -> InvalidRows:
    """Error for rows that break a rule, when none may: the first of them, if that is known."""
    if first is None:
        first = InputError(
            "Predictions must lie in [0, 1], labels be 0 or 1, weights be finite and not negative, "
            "and nothing be missing.",
            hint='To leave such rows out and count them, pass `on_invalid="drop"`.',
        )
    return InvalidRows.after(first, refused, rows)
