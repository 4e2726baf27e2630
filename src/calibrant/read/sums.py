"""Rows into sums per slot: the compiled loops for one batch of arrays, with and without groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import fill_counts, fill_weights
from calibrant.data.pairs import Pairs
from calibrant.read.group_keys import Key
from calibrant.read.request import Request

__all__ = ["SUM_NAMES", "DenseSums", "GroupedSums", "sums_by_group"]

Integers = NDArray[np.int64]
SUM_NAMES = ("count", "offset", "weight", "squared_weight", "weighted_offset")
"""Of the columns of sums, where they are a table; without weights, the first two."""


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


class DenseSums:
    """Sums of rows without groups: one entry for every slot. Adding one to another is exact."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.counts = np.zeros(request.slots, dtype=np.int64)
        self.offsets = np.zeros(request.slots, dtype=np.int64)
        self.floats = tuple(np.zeros(request.slots) for _ in range(3 * request.fractional))

    def __iadd__(self, other: DenseSums) -> DenseSums:
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            mine += theirs
        return self

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """Counts, offsets and, with weights, the three sums of floats."""
        return (self.counts, self.offsets, *self.floats)

    def add_rows(self, p: NDArray[Any], y: NDArray[Any], w: NDArray[Any] | None) -> None:
        """Add rows; those that break a rule are counted by reason.

        `p` is float32 or float64; missing values are NaN.
        """
        if w is None and self.request.portable:
            first_refused = self._fill_counts(p, y)
            if first_refused < 0:
                return
            p, y = p[first_refused:], y[first_refused:]
        pairs = Pairs(p, y, w, soft=self.request.soft)
        codes = pairs.reason_codes(slice(None))
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
        return GroupedSums([key], places, tuple(column[places] for column in self.columns))

    @property
    def _cells(self) -> int:
        return self.request.cell_slots

    def _fill(self, kept: Pairs) -> None:
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


def sums_by_group(
    request: Request,
    keys: Sequence[Key],
    group: Integers,
    p: NDArray[Any],
    y: NDArray[Any],
    w: NDArray[Any] | None,
) -> GroupedSums:
    """Sums of rows of which `group` says the index into `keys`."""
    slot, offset = _slots(request, p, y, w)
    if request.soft:
        return _soft_sums(request, keys, group, slot, offset, y, w)
    place = group * request.slots + slot
    bits = request.offset_bits
    if w is None and (len(keys) * request.slots).bit_length() + bits < 64:
        # One sort of plain integers, which is several times faster than sorting indices.
        packed = np.sort((place << bits) | offset)
        place, offset = packed >> bits, packed & ((1 << bits) - 1)
        first = np.flatnonzero(np.diff(place, prepend=-1))
        counts = np.diff(first, append=place.size)
        return GroupedSums(keys, place[first], (counts, np.add.reduceat(offset, first)))
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
) -> tuple[Integers, Integers]:
    """Each row's slot and offset; refused rows stand in the slot of their reason."""
    codes = Pairs(p, y, w, soft=request.soft).reason_codes(slice(None))
    refused = codes >= 0
    position = np.where(refused, 0.0, p).astype(np.float64, copy=False)
    if not request.on_probability_scale:
        position = request.scale.locate(position)
    fixed = (position * float(1 << request.offset_bits + request.log2_nodes)).astype(np.int64)
    slot = 2 * (fixed >> request.offset_bits) + (np.where(refused, 0, y) >= 0.5)
    slot = np.where(refused, request.cell_slots + codes.astype(np.int64), slot)
    offset = np.where(refused, 0, fixed & ((1 << request.offset_bits) - 1))
    return slot, offset


def _summed(index: Integers, values: Integers, size: int) -> Integers:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return total
