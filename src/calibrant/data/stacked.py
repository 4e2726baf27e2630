"""Many sketches in one table: a few numbers for each, and an object only for those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import Columns, bits_of_offsets, over_outcomes, require_room
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch

__all__ = ["PackedGroups", "Stacked"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stacked(Sequence[Sketch]):
    """Sketches on one grid and one scale, the cells of one after those of the other.

    Attributes
    ----------
    bounds : int64[k + 1]
        Where the cells of each begin, and where those of the last end.
    columns : Columns
        The cells of all of them; they increase within each.
    nodes, scale
        Of their grid.
    surprises : float64[k, 2] or None
        Of each (see `Columns`); None where any has none.
    dropped : mapping of int to mapping
        Rows that were left out, by place of the sketch and by reason.
    """

    bounds: Integers
    columns: Columns
    nodes: int
    scale: Scale
    surprises: Floats | None = None
    dropped: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, sketches: Iterable[Sketch]) -> Stacked:
        """Stack sketches, of which there is at least one, on one grid and one scale."""
        if isinstance(sketches, Stacked):
            return sketches
        parts = list(sketches)
        columns = [part.columns for part in parts]
        if any(one.weighted for one in columns):
            columns = [one.with_weights() for one in columns]
        stacked = Columns(
            np.concatenate([one.cells for one in columns]),
            *(
                np.concatenate([one.column(name) for one in columns])
                for name in columns[0].sum_names()
            ),
        )
        noted = [one.surprises for one in columns if one.surprises is not None]
        sizes = [one.cells.size for one in columns]
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            stacked,
            parts[0].nodes,
            parts[0].scale,
            np.array(noted) if len(noted) == len(parts) else None,
            {place: part.dropped for place, part in enumerate(parts) if part.dropped},
        )

    def __len__(self) -> int:
        return self.bounds.size - 1

    @overload
    def __getitem__(self, place: int) -> Sketch: ...
    @overload
    def __getitem__(self, place: slice) -> list[Sketch]: ...
    def __getitem__(self, place: int | slice) -> Sketch | list[Sketch]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        piece = slice(int(self.bounds[place]), int(self.bounds[place + 1]))
        own = self.columns
        columns = Columns(
            own.cells[piece],
            *(own.column(name)[piece] for name in own.sum_names()),
        )
        if self.surprises is not None:
            columns = columns.with_surprises(self.surprises[place])
        dropped = self.dropped.get(place)
        return Sketch(columns, nodes=self.nodes, scale=self.scale, dropped=dropped)

    @property
    def cells(self) -> Integers:
        """The cell of each entry."""
        return self.columns.cells

    @property
    def code(self) -> Integers:
        """The sketch that each entry belongs to, as 0, 1, ..."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    @property
    def rows(self) -> Integers:
        """Rows of each sketch."""
        return self._sums(over_outcomes(self.columns.counts))

    @property
    def weights(self) -> Floats:
        """Sum of weights per (entry, label)."""
        weights = self.columns.weights
        return self.columns.counts.astype(np.float64) if weights is None else weights

    @property
    def weighted_offsets(self) -> Floats:
        """Sum of weight times offset per (entry, label), in units of 2**-36."""
        offsets = self.columns.weighted_offsets
        return self.columns.offsets.astype(np.float64) if offsets is None else offsets

    def total(self) -> Sketch:
        """The sketch of all together."""
        own = self.columns
        sums = (own.column(name) for name in own.sum_names())
        order = np.argsort(own.cells, kind="stable")
        cells = own.cells[order]
        first = np.flatnonzero(np.diff(cells, prepend=-1))
        together = (np.add.reduceat(column[order], first) for column in sums)
        columns = Columns(cells[first], *together) if cells.size else Columns.empty()
        require_room(int(columns.counts.max(initial=0)), bits_of_offsets(self.nodes))
        if self.surprises is not None:
            columns = columns.with_surprises(self.surprises.sum(axis=0))
        dropped: dict[str, int] = {}
        for reasons in self.dropped.values():
            for reason, rows in reasons.items():
                dropped[reason] = dropped.get(reason, 0) + rows
        return Sketch(columns, nodes=self.nodes, scale=self.scale, dropped=dropped)

    def with_weight(self) -> Stacked:
        """Those that have weight."""
        weighs = self._sums(over_outcomes(self.weights)) > 0
        return self if weighs.all() else self.taken(np.flatnonzero(weighs))

    def taken(self, places: Integers) -> Stacked:
        """The sketches at these places, in this order."""
        sizes = np.diff(self.bounds)[places]
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entry = np.arange(bounds[-1]) + np.repeat(self.bounds[places] - bounds[:-1], sizes)
        own = self.columns
        columns = Columns(own.cells[entry], *(own.column(name)[entry] for name in own.sum_names()))
        surprises = None if self.surprises is None else self.surprises[places]
        dropped = {}
        if self.dropped:
            kept = enumerate(places.tolist())
            dropped = {new: self.dropped[old] for new, old in kept if old in self.dropped}
        return replace(self, bounds=bounds, columns=columns, surprises=surprises, dropped=dropped)

    def _sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of each sketch, the sum over its entries; some have none."""
        upto = np.concatenate([[0], np.cumsum(values)])
        return np.asarray(np.diff(upto[self.bounds]))


class PackedGroups(Mapping[Any, Sketch]):
    """Sketches by key that are stacked; one that was asked for stays, so that it can be updated."""

    def __init__(self, keys: Sequence[Any], stacked: Stacked) -> None:
        self._place = {key: place for place, key in enumerate(keys)}
        self._stacked = stacked
        self._made: dict[Any, Sketch] = {}

    def __getitem__(self, key: Any) -> Sketch:
        if key not in self._made:
            self._made[key] = self._stacked[self._place[key]]
        return self._made[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)

    def copy(self) -> PackedGroups:
        """The same sketches, of which an update does not reach these."""
        if self._made:
            return PackedGroups(list(self._place), Stacked.of([0 + one for one in self.values()]))
        other = PackedGroups([], self._stacked)
        other._place = self._place
        return other

    def stacked(self) -> Stacked:
        """The sketches in order, with all that was added to them."""
        return Stacked.of(self.values()) if self._made else self._stacked
