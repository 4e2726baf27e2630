"""Sums of many batches into one total, and the total into a Sketch or Sketches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import Columns, require_room
from calibrant.data.rows import DROP, REASONS
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches, Stacked
from calibrant.errors import InputError, InvalidRows, Option, TooFewRows
from calibrant.io.group_keys import Key, place_of, sort_key
from calibrant.io.predictions import Outcomes
from calibrant.io.required_columns import no_rows
from calibrant.io.scan_request import Request
from calibrant.io.sums import DenseSums, GroupedSums, Notes

__all__ = ["GroupTotal", "add_part", "as_result", "invalid_rows", "sorted_groups"]

COMPACT_AT = 1 << 22
"""Entries that may wait to be merged; about 130 MB."""


class GroupTotal:
    """Sums by group, added up batch by batch.

    The total is a left fold: it does not depend on when the waiting batches are merged. So a scan that
    is stopped and taken up again ends with the same bits, weights included.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.index: dict[Key, int] = {}
        self._merged = 0
        self._places: list[NDArray[np.int64]] = []
        self._sums: list[tuple[NDArray[Any], ...]] = []
        self.notes = Notes()

    def add(self, part: GroupedSums) -> None:
        """Add the sums of one batch."""
        self.notes.add(part.notes)
        if not part.places.size:
            return
        ids = np.array([place_of(key, self.index) for key in part.keys], dtype=np.int64)
        places = part.places
        if not np.array_equal(ids, np.arange(ids.size)):  # of all parts but the first
            group, slot = np.divmod(places, self.request.slots)
            places = ids[group] * self.request.slots + slot
        self._places.append(places)
        self._sums.append(part.sums)
        waiting = sum(places.size for places in self._places) - self._merged
        if waiting > max(COMPACT_AT, self._merged):
            self.merge()

    def merge(self) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
        """All sums, sorted by group (in order of appearance) and slot."""
        if not self._places:
            return np.empty(0, np.int64), ()
        in_order = len(self._places) == 1 and bool((np.diff(self._places[0]) > 0).all())
        if not in_order:
            places, index = np.unique(np.concatenate(self._places), return_inverse=True)
            columns = [np.concatenate(parts) for parts in zip(*self._sums, strict=True)]
            self._places, self._sums = (
                [places],
                [tuple(_fold(index, c, places.size) for c in columns)],
            )
        self._merged = self._places[0].size
        return self._places[0], self._sums[0]


def add_part(total: DenseSums | GroupTotal, part: DenseSums | GroupedSums) -> None:
    """Add the sums of one batch, with or without groups, to either kind of total."""
    if isinstance(total, GroupTotal):
        total.add(part.grouped(()) if isinstance(part, DenseSums) else part)
    elif isinstance(part, DenseSums):
        total += part
    else:
        total.notes.add(part.notes)
        for column, values in zip(total.columns, part.sums, strict=bool(part.places.size)):
            np.add.at(column, part.places, values)


def _fold(index: NDArray[np.intp], values: NDArray[Any], size: int) -> NDArray[Any]:
    """Sum values by index, one after the other."""
    if values.dtype.kind == "f":
        return np.bincount(index, weights=values, minlength=size)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return total


def as_result(request: Request, total: DenseSums | GroupTotal) -> Sketch | Sketches:
    """The sketch of a total, or the sketches by group, with refused rows counted or raised."""
    if isinstance(total, DenseSums):
        alone = GroupTotal(request)
        alone.add(total.grouped(()))
        total = alone
    places, sums = total.merge()
    if not places.size:
        raise no_rows()
    _refuse_labels(request, places, sums, total.notes)
    _refuse_invalid(request, places, sums, total.notes)
    keys = list(total.index)
    sketches = _split(request, len(keys), places, sums)
    if not sketches.columns.rows:
        refused = refused_rows(request, places, sums[0])
        raise TooFewRows(
            "no valid rows are left: all {rows} were dropped ({reasons})",
            refused,
            seen=int(sums[0].sum()),
            saying="",
            cure="Leave out {drop} to see what is wrong with the first.",
            rows=int(sums[0].sum()),
            reasons=refused,
            drop=Option("on_invalid", "drop"),
        )
    if not request.by:
        return sketches[0]
    single = len(request.by) == 1
    order = {name: place for place, name in enumerate(request.class_names or request.models)}

    def rank(key: Key) -> Any:
        """Models and classes in the order of their columns, then groups by their values."""
        added = key[0] if request.added else None
        return (order.get(added, len(order)), sort_key(key)) if order else sort_key(key)

    names = [key[0] for key in keys] if single else keys
    if single and not order and {type(name) for name in names} == {str}:
        ordered = sorted(range(len(keys)), key=names.__getitem__)  # the same, in less memory
    else:
        ordered = sorted(range(len(keys)), key=lambda place: rank(keys[place]))
    table = sketches.taken(np.array(ordered))
    return Sketches.from_stacked([names[place] for place in ordered], table, by=request.by)


def sorted_groups(groups: Sketches) -> Sketches:
    """The same groups in order: by type, then by value; missing ones last."""
    single = len(groups.by) == 1
    ordered = sorted(groups, key=lambda key: sort_key((key,) if single else key))
    return Sketches({key: groups[key] for key in ordered}, by=groups.by)


def _split(
    request: Request,
    groups: int,
    places: NDArray[np.int64],
    sums: tuple[NDArray[Any], ...],
) -> Stacked:
    """The sketches of so many groups, in the order of their numbers."""
    bounds = np.searchsorted(places, np.arange(groups + 1) * request.slots)
    group = np.repeat(np.arange(groups), np.diff(bounds))
    slot = places - group * request.slots
    is_row = slot < request.cell_slots
    refused: dict[int, dict[str, int]] = {}
    if not is_row.all():
        refused = _refused_by_group(request, group[~is_row], slot[~is_row], sums[0][~is_row])
        places, group, slot = places[is_row], group[is_row], slot[is_row]
        sums = tuple(column[is_row] for column in sums)
    label = slot & 1
    is_first = np.diff(places - label, prepend=-1) != 0
    first = np.flatnonzero(is_first)
    entry = 2 * np.cumsum(is_first) - 2 + label
    wide = []
    for column in sums:
        table = np.zeros((first.size, 2), dtype=column.dtype)
        table.reshape(-1)[entry] = column
        wide.append(table)
    require_room(int(wide[0].max(initial=0)), request.offset_bits)
    cells = slot[first] >> 1
    bounds = np.searchsorted(group[first], np.arange(groups + 1))
    return Stacked(bounds, Columns(cells, *wide), request.nodes, request.scale, refused)


def _refused_by_group(
    request: Request,
    group: NDArray[np.int64],
    slot: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> dict[int, dict[str, int]]:
    refused: dict[int, dict[str, int]] = {}
    for place, code, count in zip(group.tolist(), slot - request.cell_slots, counts, strict=True):
        refused.setdefault(place, {})[REASONS[code]] = int(count)
    return refused


def refused_rows(
    request: Request, places: NDArray[np.int64], counts: NDArray[np.int64]
) -> dict[str, int]:
    """Rows that break a rule, by reason, all groups together."""
    reason = places % request.slots - request.cell_slots
    refused = reason >= 0
    if not refused.any():
        return {}
    found = np.zeros(len(REASONS), dtype=np.int64)
    np.add.at(found, reason[refused], counts[refused])
    return {name: int(n) for name, n in zip(REASONS, found.tolist(), strict=False) if n}


def _refuse_labels(
    request: Request, places: NDArray[np.int64], sums: tuple[NDArray[Any], ...], notes: Notes
) -> None:
    """Refuse labels of more than two classes, which only all rows together show."""
    if request.pos_label is None:
        return
    outcomes = Outcomes(request)
    outcomes.seen.update(notes.labels)
    slot = places % request.slots
    events = (slot < request.cell_slots) & (slot % 2 == 1)
    outcomes.require_two(event_seen=bool(sums[0][events].sum()))


def _refuse_invalid(
    request: Request, places: NDArray[np.int64], sums: tuple[NDArray[Any], ...], notes: Notes
) -> None:
    refused = refused_rows(request, places, sums[0])
    if refused and request.on_invalid == "raise":
        first = next(iter(notes.refusals.values()), None)
        raise invalid_rows(refused, int(sums[0].sum()), first)


def invalid_rows(
    refused: Mapping[str, int], rows: int, first: InputError | None = None
) -> InvalidRows:
    """The error for rows that break a rule, when none may: the first of them, if that is known."""
    if first is None:
        first = InputError(
            "predictions must lie in [0, 1], labels be 0 or 1, weights be finite and not negative, "
            "and nothing be missing",
            cure=DROP,
        )
    return InvalidRows.after(first, refused, rows)
