"""Sketches by group: a mapping that adds, selects and rolls up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calibrant.data.cell_sums import Columns
from calibrant.data.sketch import Sketch
from calibrant.data.stacked import PackedGroups, Stacked
from calibrant.errors import Code, InputError, MergeError

__all__ = ["Sketches"]


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
