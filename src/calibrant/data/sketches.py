"""Sketches by group: a mapping that adds, selects and rolls up, kept as one table where there are many.

The long table of sketches, on any engine, has a row for each (group, cell, label) with its sums:

    <group columns>, cell, label, count, offset [, weight, squared_weight, weighted_offset]

Rows that were left out are counted under negative cells: -1 for the first of
`calibrant.data.rows.LEFT_OUT`, -2 for the second, and so on, with label and offset 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array, require_each
from calibrant.data.cell_sums import (
    LARGEST_SUM,
    bits_of_offsets,
    joined,
    no_sums,
    over_outcomes,
    require_nodes,
    require_room,
    summed,
    sums_of_long,
)
from calibrant.data.rows import LEAST_TOTAL_WEIGHT, LEFT_OUT
from calibrant.data.scales import Scale, as_scale
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, MergeError, invalid, show_value

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Table = Mapping[str, Any]
INTEGER_COLUMNS = ("cell", "label", "count", "offset")
FLOAT_COLUMNS = ("weight", "squared_weight", "weighted_offset")
"""Columns of the long table."""
_NAN = float("nan")
"""One NaN for all: a mapping takes two of them for different keys."""


@dataclass(frozen=True, eq=False)
class Stacked(Sequence[Sketch]):
    """Table of sketches on one grid and one scale, the cells of one after those of the other.

    Attributes
    ----------
    bounds : int64[k + 1]
        Where the cells of each begin, and where those of the last end.
    entries : Sketch
        The cells of all of them; they increase within each.
    dropped : mapping of int to mapping
        Rows that were left out, by place of the sketch and by reason.
    """

    bounds: Integers
    entries: Sketch
    dropped: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, sketches: Iterable[Sketch]) -> Stacked:
        """Stack sketches, of which there is at least one, on one grid and one scale."""
        if isinstance(sketches, Stacked):
            return sketches
        parts = list(sketches)
        entries = Sketch(
            joined([part.sums for part in parts]), nodes=parts[0].nodes, scale=parts[0].scale
        )
        bounds = np.cumsum([0, *(part.cells.size for part in parts)]).astype(np.int64)
        dropped = {place: part.dropped for place, part in enumerate(parts) if part.dropped}
        return cls(bounds, entries, dropped)

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
        own = slice(int(self.bounds[place]), int(self.bounds[place + 1]))
        return self._taken(own, self.dropped.get(place))

    def _taken(self, own: slice | Integers, dropped: Mapping[str, int] | None = None) -> Sketch:
        sums = tuple(column[own] for column in self.entries.sums)
        return Sketch(sums, nodes=self.entries.nodes, scale=self.entries.scale, dropped=dropped)

    @property
    def code(self) -> Integers:
        """Sketch that each entry belongs to, as 0, 1, ..."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    def total(self) -> Sketch:
        """Sketch of all together."""
        nodes, sums = self.entries.nodes, summed(self.entries.sums)
        require_room(int(sums[1].max(initial=0)), bits_of_offsets(nodes))
        dropped = sum(map(Counter, self.dropped.values()), Counter())
        return Sketch(sums, nodes=nodes, scale=self.entries.scale, dropped=dropped)

    def with_weight(self) -> Stacked:
        """Sketches that have weight."""
        upto = np.concatenate([[0.0], np.cumsum(over_outcomes(self.entries.weights))])
        weighs = np.diff(upto[self.bounds]) >= LEAST_TOTAL_WEIGHT
        if weighs.all():
            return self
        places = np.flatnonzero(weighs)
        bounds = np.concatenate([[0], np.cumsum(np.diff(self.bounds)[places])]).astype(np.int64)
        dropped = {
            k: self.dropped[old] for k, old in enumerate(places.tolist()) if old in self.dropped
        }
        return Stacked(bounds, self._taken(np.flatnonzero(weighs[self.code])), dropped)


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

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, groups: Mapping[Any, Sketch], *, by: str | list[str] | tuple[str, ...]):
        self.by = (by,) if isinstance(by, str) else tuple(by)
        self._table: Stacked | None = None
        # A sketch that is still in the table alone is known by its place there.
        self._groups: dict[Any, Sketch | int] = dict(groups)
        grids = {(part.nodes, part.scale.name) for part in groups.values()}
        if len(grids) > 1:
            listed = " and ".join(f"{n} nodes ({s})" for n, s in sorted(grids))
            message = f"Sketches by group must be on one grid and one scale; these have {listed}."
            raise MergeError(message, hint="Coarsen the finer ones with `.rebin(...)`.")
        width = len(self.by)
        for key in self._groups:
            if width > 1 and not (isinstance(key, tuple) and len(key) == width):
                columns = ", ".join(self.by)
                raise invalid("groups", f"have keys of {width} values, for {columns}", key)

    @classmethod
    def from_stacked(
        cls, keys: Iterable[Any], table: Stacked, *, by: str | list[str] | tuple[str, ...]
    ) -> Sketches:
        """Sketches of a table, of which an object is made only when it is asked for."""
        sketches = cls({}, by=by)
        sketches._table = table
        sketches._groups = {key: place for place, key in enumerate(keys)}
        return sketches

    def __getitem__(self, key: Any) -> Sketch:
        try:
            found = self._groups[key]
        except (KeyError, TypeError):
            shown = ", ".join(map(show_value, list(self._groups)[:5]))
            raise KeyError(f"no group {show_value(key)}; there are {len(self)}: {shown}") from None
        if isinstance(found, int):
            assert self._table is not None
            found = self._groups[key] = self._table[found]  # it stays, so that it can be updated
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketches):
            return NotImplemented
        return self.by == other.by and dict(self) == dict(other)

    @property
    def groups(self) -> dict[tuple[Any, ...], Sketch]:
        """Sketch of each group by the tuple of its values."""
        single = len(self.by) == 1
        return {(key,) if single else key: sketch for key, sketch in self.items()}

    def __add__(self, other: Sketches) -> Sketches:
        if not isinstance(other, Sketches):
            return NotImplemented
        if self.by != other.by:
            own, others = ", ".join(self.by), ", ".join(other.by)
            message = f"Groups add only by the same columns; these go by {own} and by {others}."
            raise MergeError(message, hint="Bring both to the same columns with `.roll_up(...)`.")
        merged = dict(self._copy())
        for key, sketch in other.items():
            merged[key] = merged.get(key, 0) + sketch
        return Sketches(merged, by=self.by)

    def __radd__(self, other: object) -> Sketches:
        if other == 0 and isinstance(other, int):  # the start value of sum()
            return self._copy()
        return NotImplemented

    def _copy(self) -> Sketches:
        """Copy with sketches of its own: an update of a sum must not reach its parts."""
        if self._table is not None:
            return Sketches.from_stacked(self, self.stacked(), by=self.by)
        return Sketches({key: 0 + sketch for key, sketch in self.items()}, by=self.by)

    def stacked(self) -> Stacked:
        """Table of the sketches; of many groups far smaller than so many objects."""
        if self._table is not None and all(isinstance(one, int) for one in self._groups.values()):
            return self._table
        return Stacked.of(self.values())

    def total(self) -> Sketch:
        """Sketch of all groups together, in one step however many there are."""
        if not self._groups:
            raise InputError("There are no groups to add up.")
        return self.stacked().total()

    def select(self, keep: Callable[[Any], bool]) -> Sketches:
        """Groups whose key passes the test."""
        return Sketches({key: s for key, s in self.items() if keep(key)}, by=self.by)

    def roll_up(self, *by: str) -> Sketches:
        """Groups by fewer columns: those that differ only in the others are added up."""
        if not by or any(name not in self.by for name in by):
            message = (
                f"`by` must name some of the grouping columns, {', '.join(self.by)}; got {by}."
            )
            raise InputError(message)
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


def is_summed(value: Any) -> TypeGuard[Sketch | Sketches]:
    """True of rows that were summed up before: a Sketch, or Sketches by group.

    Examples
    --------
    >>> is_summed(Sketch.empty()), is_summed([0, 1])
    (True, False)
    """
    return isinstance(value, Sketch | Sketches)


# -- the long table ----------------------------------------------------------------------------


def to_table(sketch: Sketch | Sketches) -> dict[str, NDArray[Any] | list[Any]]:
    """Long table as columns: group by group, as they come, each sorted by cell and label."""
    groups = sketch.groups
    _require_group_names(sketch.by)
    weighted = any(part.weighted for part in groups.values())
    names = INTEGER_COLUMNS + (FLOAT_COLUMNS if weighted else ())
    parts = [_long_columns(part, names) for part in groups.values()]
    lengths = [part["cell"].size for part in parts]
    table: dict[str, NDArray[Any] | list[Any]] = {}
    for place, name in enumerate(sketch.by):
        values = [key[place] for key in groups]
        if any(isinstance(value, tuple) for value in values):
            message = f"A group in a file must be a plain value; the column {name!r} has tuples."
            raise InputError(message, hint="Name the columns of its parts in `by=`.")
        table[name] = [v for v, k in zip(values, lengths, strict=True) for _ in range(k)]
    for name in names:
        dtype = np.int64 if name in INTEGER_COLUMNS else np.float64
        table[name] = np.concatenate([np.empty(0, dtype), *(part[name] for part in parts)])
    return table


def _long_columns(sketch: Sketch, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    values: dict[str, NDArray[Any]] = {
        "cell": np.repeat(sketch.cells, 2),
        "label": np.tile(np.array([0, 1]), sketch.cells.size),
        "count": sketch.counts.ravel(),
        "offset": sketch.offsets.ravel(),
        "weight": sketch.weights.ravel(),
        "squared_weight": sketch.squared_weights.ravel(),
        "weighted_offset": sketch.weighted_offsets.ravel(),
    }
    used = (values["count"] > 0) | (values["weight"] > 0)  # a soft row weighs under both labels
    codes = sorted((LEFT_OUT.index(reason), count) for reason, count in sketch.dropped.items())
    before = {"cell": [-1 - code for code, _ in codes], "count": [count for _, count in codes]}
    zeros = [0] * len(codes)
    return {
        name: np.concatenate(
            [np.asarray(before.get(name, zeros), values[name].dtype), values[name][used]]
        )
        for name in names
    }


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
    missing = [name for name in by if name not in table]
    if missing:
        raise InputError(f"The table must have the columns of groups; {missing[0]!r} is missing.")
    given = {name: table[name] for name in INTEGER_COLUMNS + FLOAT_COLUMNS if name in table}
    cells = as_array(given.get("cell", ()), "cell")
    left_out = np.zeros(cells.shape, dtype=bool)
    if cells.ndim == 1 and cells.dtype.kind in "iuf":  # negative cells are reasons and not places
        left_out = (cells < 0) & (cells >= -len(LEFT_OUT))
        given |= {"cell": np.where(left_out, 0, cells)} if "cell" in given else {}
    columns = _checked_columns(given, nodes)
    resolved = as_scale(scale)

    def build(rows: Integers) -> Sketch:
        dropped: Counter[str] = Counter()
        for row in rows[left_out[rows]]:
            dropped[LEFT_OUT[-1 - int(cells[row])]] += int(columns[2][row])
        kept = rows[~left_out[rows]]
        own = (values[kept] for values in columns)
        sums = sums_of_long(*own, offset_bits=bits_of_offsets(nodes)) if kept.size else no_sums()
        return Sketch(sums, nodes=nodes, scale=resolved, dropped=dropped)

    if not by:
        return build(np.arange(columns[0].size))
    groups = [plain_values(table[name]) for name in by]
    if any(len(column) != columns[0].size for column in groups):
        raise InputError("The columns of groups must be as long as the others.")
    members: dict[Any, list[int]] = {}
    for row, values in enumerate(zip(*groups, strict=True)):
        key = tuple(_NAN if value != value else value for value in values)
        try:
            members.setdefault(key if len(by) > 1 else key[0], []).append(row)
        except TypeError as error:
            message = f"A group must be a plain value; row {row} has {show_value(key)}."
            raise InputError(message, row=row) from error
    return Sketches({key: build(np.asarray(rows)) for key, rows in members.items()}, by=by)


def _require_group_names(by: tuple[str, ...]) -> None:
    for place, name in enumerate(by):
        if name in (*INTEGER_COLUMNS, *FLOAT_COLUMNS, *by[:place]):
            message = (
                f"A column of groups must have a name of its own; the table has another {name!r}."
            )
            raise InputError(message, hint="Rename it first.")


def plain_values(values: Any) -> list[Any]:
    """Column as Python's own values."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in plain]


def _checked_columns(table: Mapping[str, Any], nodes: int) -> tuple[NDArray[Any], ...]:
    """Columns of a long table as int64 and float64, or the InputError that names the column and the row."""
    bits = bits_of_offsets(require_nodes(nodes))
    names = [*INTEGER_COLUMNS, *(FLOAT_COLUMNS if set(FLOAT_COLUMNS) & set(table) else ())]
    missing = [name for name in names if name not in table]
    if missing:
        raise InputError(
            f"The table must have the columns {', '.join(names)}; {missing[0]!r} is missing."
        )
    columns = {name: _numbers(table[name], name) for name in names}
    lengths = {name: values.size for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"The columns must have equal lengths; they have {lengths}.")
    cell, label, count, offset, *floats = columns.values()
    require_each("cell", cell, (cell >= 0) & (cell <= nodes), f"lie between 0 and {nodes}")
    require_each("label", label, (label == 0) | (label == 1), "be 0 or 1")
    require_each("count", count, count >= 0, "not be negative")
    if count.sum(dtype=np.float64) >= 2.0**63:
        raise InputError("The column 'count' must add up to fewer than 2**63 rows.")
    least = -(-offset // ((1 << bits) - 1))  # rows that it takes to come so far
    # Rows with p = 1 have a cell of their own, in which the only offset is 0.
    inside = (offset >= 0) & (least <= count) & ~((cell == nodes) & (offset > 0))
    require_each("offset", offset, inside, "fit into its cell")
    if floats:
        weight, squared, weighted_offset = floats
        widest = np.where(cell == nodes, 0.0, 2.0**bits)
        # Sums of floats are rounded, so a mean offset may come out a little wider than the cell.
        inside = weighted_offset <= 1.000001 * weight * widest
        require_each("weighted_offset", weighted_offset, inside, "fit into its cell")
        with_weight = (squared == 0) | (weight > 0)
        require_each("squared_weight", squared, with_weight, "go with a weight")
    return tuple(columns.values())


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Column of whole numbers, or of sums of weights."""
    column = as_array(values, name)
    whole = name in INTEGER_COLUMNS
    if column.ndim == 1 and column.size == 0:
        return np.empty(0, np.int64 if whole else np.float64)
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise InputError(f"The column {name!r} must hold numbers; its type is {column.dtype}.")
    if not whole:
        column = column.astype(np.float64)
        valid = (column >= 0) & (column <= LARGEST_SUM)
        require_each(name, column, valid, f"lie between 0 and {LARGEST_SUM:g}")
        return column
    if column.dtype.kind == "f":
        valid = (np.abs(column) < 2.0**53) & (column == np.round(column))
        require_each(name, column, valid, "hold whole numbers")
    if column.dtype == np.uint64:
        require_each(name, column, column < 1 << 63, "fit into 64 bits with a sign")
    return column.astype(np.int64)
