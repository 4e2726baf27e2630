"""Sketches by group: a mapping that adds, selects and rolls up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.data.cell_sums import (
    Columns,
    bits_of_offsets,
    over_outcomes,
    require_nodes,
    require_room,
)
from calibrant.data.rows import LEFT_OUT
from calibrant.data.scales import Scale, as_scale
from calibrant.data.sketch import Sketch, checked_long_table, wrong_type
from calibrant.errors import Code, InputError, MergeError, Option, Where

__all__ = [
    "FLOAT_COLUMNS",
    "INTEGER_COLUMNS",
    "PackedGroups",
    "Sketches",
    "Stacked",
    "Table",
    "from_table",
    "plain_values",
    "to_table",
]

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


class Sketches(Mapping[Any, Sketch]):
    """One sketch for each group, keyed by its value, or by a tuple where several columns group.

    Parameters
    ----------
    groups : mapping
        Sketches on one grid and one scale.
    by : sequence of str
        Names of the grouping columns.

    Examples
    --------
    >>> a = Sketch.from_arrays([0, 1], [0.2, 0.7])
    >>> b = Sketch.from_arrays([1], [0.9])
    >>> days = Sketches({("vit", 1): a, ("vit", 2): b}, by=["model", "day"])
    >>> days.roll_up("model")
    <Sketches of 1 group by model: 'vit'>
    >>> days.roll_up("model")["vit"].n
    3
    """

    def __init__(self, groups: Mapping[Any, Sketch], *, by: str | list[str] | tuple[str, ...]):
        self.by = (by,) if isinstance(by, str) else tuple(by)
        packed = isinstance(groups, PackedGroups)
        self._groups: Mapping[Any, Sketch] = groups if packed else dict(groups)
        parts = () if packed else self._groups.values()  # of one grid
        grids = {(part.nodes, part.scale.name) for part in parts}
        if len(grids) > 1:
            raise MergeError(
                "sketches by group must be on one grid and one scale",
                seen=sorted(grids),
                saying="these have {grids}",
                cure="Coarsen the finer ones with {rebin}.",
                grids=" and ".join(f"{n} nodes ({s})" for n, s in sorted(grids)),
                rebin=Code(".rebin(...)"),
            )
        width = len(self.by)
        for key in self._groups:
            if width > 1 and not (isinstance(key, tuple) and len(key) == width):
                raise InputError(
                    "must have keys of {width} values, for {by}",
                    argument="groups",
                    seen=key,
                    cure="Give one value for each column, as a tuple.",
                    by=", ".join(self.by),
                    width=width,
                )

    def __getitem__(self, key: Any) -> Sketch:
        try:
            return self._groups[key]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, list(self._groups)[:5]))
            raise KeyError(f"no group {key!r}; there are {len(self)}: {shown}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketches):
            return NotImplemented
        return self.by == other.by and self._groups == other._groups

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Sketches) -> Sketches:
        if not isinstance(other, Sketches):
            return NotImplemented
        if self.by != other.by:
            raise MergeError(
                "groups add only where they group by the same columns",
                seen=(self.by, other.by),
                saying="these go by {own} and by {other}",
                cure="Bring both to the same columns with {roll_up}.",
                own=", ".join(self.by),
                other=", ".join(other.by),
                roll_up=Code(".roll_up(...)"),
            )
        merged = dict(self._copy())
        for key, sketch in other.items():
            merged[key] = merged.get(key, 0) + sketch
        return Sketches(merged, by=self.by)

    def __radd__(self, other: object) -> Sketches:
        if other == 0 and isinstance(other, int):  # the start value of sum()
            return self._copy()
        return NotImplemented

    def _copy(self) -> Sketches:
        """With sketches of its own: an update of a sum must not reach its parts."""
        if isinstance(self._groups, PackedGroups):
            return Sketches(self._groups.copy(), by=self.by)
        return Sketches({key: 0 + sketch for key, sketch in self.items()}, by=self.by)

    def total(self) -> Sketch:
        """The sketch of all groups together, in one step however many there are."""
        if not self._groups:
            raise InputError(
                "there are no groups to add up",
                seen=0,
                saying="there are {}",
                cure="Scan rows, or load a sketch, first.",
            )
        if isinstance(self._groups, PackedGroups):
            return self._groups.stacked().total()
        first, *others = self._groups.values()
        dropped = Counter(first.dropped)
        for other in others:
            first.require_same_grid(other)
            dropped.update(other.dropped)
        parts = (sketch.columns for sketch in self._groups.values())
        columns = Columns.total(parts, offset_bits=first.offset_bits)
        return Sketch(columns, nodes=first.nodes, scale=first.scale, dropped=dropped)

    def stacked(self) -> Stacked:
        """The sketches in one table; of many groups far smaller than so many objects."""
        if isinstance(self._groups, PackedGroups):
            return self._groups.stacked()
        return Stacked.of(self._groups.values())

    def select(self, keep: Callable[[Any], bool]) -> Sketches:
        """The groups whose key passes the test."""
        return Sketches({key: s for key, s in self.items() if keep(key)}, by=self.by)

    def roll_up(self, *by: str) -> Sketches:
        """Groups by fewer columns: those that differ only in the others are added up."""
        unknown = [name for name in by if name not in self.by]
        if unknown or not by:
            raise InputError(
                "must name some of the grouping columns, {own}",
                argument="by",
                seen=by,
                cure="Name one or more of them.",
                own=", ".join(self.by),
            )
        if len(self.by) == 1:
            return self._copy()
        places = [self.by.index(name) for name in by]
        rolled: dict[Any, Sketch] = {}
        for key, sketch in self.items():
            short = tuple(key[place] for place in places)
            name = short if len(short) > 1 else short[0]
            rolled[name] = rolled.get(name, 0) + sketch
        return Sketches(rolled, by=by)

    def __repr__(self) -> str:
        shown = ", ".join(repr(key) for key in list(self._groups)[:3])
        more = ", ..." if len(self) > 3 else ""
        plural = "group" if len(self) == 1 else "groups"
        return f"<Sketches of {len(self)} {plural} by {', '.join(self.by)}: {shown}{more}>"


INTEGER_COLUMNS = ("cell", "label", "count", "offset")
FLOAT_COLUMNS = ("weight", "squared_weight", "weighted_offset")

Table = Mapping[str, Any]
_NAN = float("nan")
"""One NaN for all: a mapping takes two of them for different keys."""


def to_table(sketch: Sketch | Sketches) -> dict[str, NDArray[Any] | list[Any]]:
    """The long table as columns: group by group, as they come, each sorted by cell and label."""
    groups = sketch if isinstance(sketch, Sketches) else Sketches({(): sketch}, by=())
    _require_group_names(groups.by)
    weighted = any(part.weighted for part in groups.values())
    names = INTEGER_COLUMNS + (FLOAT_COLUMNS if weighted else ())
    parts = [_long_columns(part, names) for part in groups.values()]
    lengths = [part["cell"].size for part in parts]
    table: dict[str, NDArray[Any] | list[Any]] = {}
    for place, name in enumerate(groups.by):
        values = [key[place] if len(groups.by) > 1 else key for key in groups]
        if any(isinstance(value, tuple) for value in values):
            raise InputError(
                "a group in a file must be a plain value",
                seen=next(value for value in values if isinstance(value, tuple)),
                where=Where(column=name),
                cure="Name the columns of its parts in {by}.",
                by=Option("by", ...),
            )
        table[name] = [v for v, k in zip(values, lengths, strict=True) for _ in range(k)]
    for name in names:
        dtype = np.int64 if name in INTEGER_COLUMNS else np.float64
        table[name] = np.concatenate([np.empty(0, dtype), *(part[name] for part in parts)])
    return table


def from_table(
    table: Table, *, by: Iterable[str] = (), nodes: int, scale: str | Scale = "probability"
) -> Sketch | Sketches:
    """Sketches out of a long table, as `to_table` or a group-by on any engine gives it.

    Parameters
    ----------
    table : mapping of str to sequence
        The columns; repeated rows are summed.
    by : iterable of str
        Names of the group columns; none gives one Sketch.
    nodes : int
        Nodes of the grid on which the cells were counted.
    scale : str or Scale
        Of that grid.
    """
    by = tuple(by)
    _require_group_names(by)
    names = INTEGER_COLUMNS + (
        FLOAT_COLUMNS if any(name in table for name in FLOAT_COLUMNS) else ()
    )
    missing = [name for name in (*by, *names) if name not in table]
    if missing:
        raise InputError(
            "the table must have the columns {columns}",
            columns=", ".join((*by, *names)),
            where=Where(column=missing[0]),
            saying="{where} is missing",
        )
    dropped_rows, sums = _checked(table, names, require_nodes(nodes))
    resolved = as_scale(scale)

    def build(rows: NDArray[np.int64]) -> Sketch:
        kept = rows[~dropped_rows[rows]]
        gone = rows[dropped_rows[rows]]
        dropped: dict[str, int] = {}
        for cell, count in zip(sums[0][gone], sums[2][gone], strict=True):
            reason = LEFT_OUT[-1 - int(cell)]
            dropped[reason] = dropped.get(reason, 0) + int(count)
        parts = (values[kept] for values in sums)
        columns = (
            Columns.from_long(*parts, offset_bits=bits_of_offsets(nodes))
            if kept.size
            else Columns.empty()
        )
        return Sketch(columns, nodes=nodes, scale=resolved, dropped=dropped)

    everything = np.arange(sums[0].size)
    if not by:
        return build(everything)
    members: dict[Any, list[int]] = {}
    columns = [list(plain_values(table[name])) for name in by]
    if any(len(column) != everything.size for column in columns):
        raise InputError(
            "the columns of groups must be as long as the others",
            seen={name: len(column) for name, column in zip(by, columns, strict=True)},
            saying="they have {}, the others {rows} rows",
            rows=everything.size,
        )
    for row, values in enumerate(zip(*columns, strict=True)):
        key = tuple(_NAN if value != value else value for value in values)
        try:
            members.setdefault(key if len(by) > 1 else key[0], []).append(row)
        except TypeError as error:
            raise InputError(
                "a group must be a plain value", seen=key, where=Where(row=row)
            ) from error
    return Sketches({key: build(np.asarray(rows)) for key, rows in members.items()}, by=by)


def _require_group_names(by: tuple[str, ...]) -> None:
    for place, name in enumerate(by):
        if name in (*INTEGER_COLUMNS, *FLOAT_COLUMNS, *by[:place]):
            raise InputError(
                "a column of groups must have a name of its own, which no other column of the table has",
                seen=name,
                cure="Rename it first.",
            )


def _checked(
    table: Table, names: tuple[str, ...], nodes: int
) -> tuple[NDArray[np.bool_], tuple[NDArray[Any], ...]]:
    """The columns, checked; negative cells apart, since they are reasons and not places."""
    plural = {"cell": "cells", "label": "labels", "count": "counts", "offset": "offsets"}
    plural |= {"weight": "weights", "squared_weight": "squared_weights"}
    plural |= {"weighted_offset": "weighted_offsets"}
    columns = {plural[name]: as_array(table[name], name) for name in names}
    cells = columns["cells"]
    if cells.ndim != 1 or cells.dtype.kind not in "iuf":
        if cells.size:
            raise wrong_type("cell", cells, "whole numbers")
        cells = columns["cells"] = np.empty(0, np.int64)
    dropped = np.asarray((cells < 0) & (cells >= -len(LEFT_OUT)))
    columns["cells"] = np.where(dropped, 0, cells)
    sums = checked_long_table(nodes=nodes, **columns)
    sums[0][dropped] = cells[dropped]
    return dropped, sums


def _long_columns(sketch: Sketch, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    codes = sorted((LEFT_OUT.index(reason), count) for reason, count in sketch.dropped.items())
    used = sketch.counts.ravel() > 0
    values: dict[str, NDArray[Any]] = {"cell": np.repeat(sketch.cells, 2)}
    values["label"] = np.tile(np.array([0, 1]), sketch.cells.size)
    values["count"], values["offset"] = sketch.counts.ravel(), sketch.offsets.ravel()
    if "weight" in names:
        values["weight"] = sketch.weights.ravel()
        values["squared_weight"] = sketch.squared_weights.ravel()
        values["weighted_offset"] = sketch.weighted_offsets.ravel()
        used = used | (values["weight"] > 0)  # a soft row weighs under both labels
    before = {"cell": [-1 - code for code, _ in codes], "count": [count for _, count in codes]}
    return {
        name: np.concatenate(
            [np.asarray(before.get(name, [0] * len(codes)), column.dtype), column[used]]
        )
        for name, column in values.items()
    }


def plain_values(values: Any) -> list[Any]:
    """A column as Python's own values."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in plain]
