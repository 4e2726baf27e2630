"""What can be drawn: marks of plain arrays, and the panel that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.drawing.axes import Axis

__all__ = [
    "Band",
    "Bundle",
    "Dash",
    "Hill",
    "Ink",
    "Line",
    "Mark",
    "Panel",
    "Points",
    "Side",
    "Steps",
    "Ticks",
    "Trail",
    "thinned",
]

Array: TypeAlias = NDArray[np.float64]
Ink: TypeAlias = Literal["series", "neutral", "faint", "accent"]
Side: TypeAlias = Literal["bottom", "top"]
Dash: TypeAlias = Literal["solid", "dashed", "dotted", "dash-dotted"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What every mark has: a key to find it again, its series, and the ink it is drawn with.

    Attributes
    ----------
    key : str
        Under this name the renderers return what they drew.
    series : str
        Marks of one series share a colour and a legend entry; "" belongs to no series.
    ink : {"series", "neutral", "faint", "accent"}
        The series' own colour, or one of the theme's greys and its accent.
    details : mapping of str to array
        Named columns, as long as the mark, that an interactive picture shows on hover.
    """

    key: str
    series: str = ""
    ink: Ink = "series"
    details: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Line(Mark):
    """A line of constant width; NaN breaks it."""

    x: Array
    y: Array
    dash: Dash = "solid"


@dataclass(frozen=True, kw_only=True)
class Trail(Mark):
    """A line whose width is data: `weight` runs from 0 (hairline) to 1 (full width)."""

    x: Array
    y: Array
    weight: Array


@dataclass(frozen=True, kw_only=True)
class Bundle(Mark):
    """Many faint lines over one `x`; `ys` has a row for each."""

    x: Array
    ys: Array


@dataclass(frozen=True, kw_only=True)
class Band(Mark):
    """The area between `low` and `high`; NaN breaks it."""

    x: Array
    low: Array
    high: Array


@dataclass(frozen=True, kw_only=True)
class Hill(Mark):
    """A density that grows from the bottom, or hangs from the top; `height` in [0, 1]."""

    x: Array
    height: Array
    side: Side = "bottom"


@dataclass(frozen=True, kw_only=True)
class Ticks(Mark):
    """Short strokes along the bottom or the top edge, one for each `x`."""

    x: Array
    side: Side = "bottom"


@dataclass(frozen=True, kw_only=True)
class Points(Mark):
    """Dots whose area is `weight` in [0, 1], with a whisker from `low` to `high`."""

    x: Array
    y: Array
    low: Array
    high: Array
    weight: Array


@dataclass(frozen=True, kw_only=True)
class Steps(Mark):
    """A level stroke at `y` from `left` to `right`, one for each bin."""

    left: Array
    right: Array
    y: Array


@dataclass(frozen=True)
class Panel:
    """One picture: its marks in drawing order (the first lies at the bottom) and its axes.

    Attributes
    ----------
    marks : tuple of Mark
    x, y : Axis
    notes : tuple of str
        Short lines of text, set in the emptiest corner.
    legend : mapping of str to str
        Series to the text that stands for it; empty for no legend.
    colors : mapping of str to str
        Series to a colour that was asked for; the others take the theme's in turn.
    title : str
    labels : mapping of str to str
        Series to what a legend that is made by others calls it.
    """

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    notes: tuple[str, ...] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    colors: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def series(self) -> tuple[str, ...]:
        """Names of the series, in the order in which they first appear."""
        return tuple(dict.fromkeys(mark.series for mark in self.marks if mark.series))

    def thinned(self, most: int) -> Panel:
        """The panel with at most about `most` points to a curve."""
        return replace(self, marks=tuple(thinned(mark, most, self.x) for mark in self.marks))


def thinned(mark: Mark, most: int, axis: Axis) -> Mark:
    """A curve or an area with about `most` points, even along the axis, both ends included."""
    if not isinstance(mark, Line | Trail | Bundle | Band | Hill) or mark.x.size <= most + 1:
        return mark
    place = np.flatnonzero(np.isfinite(axis.fraction(mark.x)))
    if place.size == 0:
        return mark
    at = axis.fraction(mark.x[place])
    even = np.searchsorted(at, np.linspace(at[0], at[-1], most + 1) - 1e-9)
    keep = np.unique(
        np.concatenate([[0], place[np.minimum(even, place.size - 1)], [mark.x.size - 1]])
    )
    changes: dict[str, Any] = {}
    for item in fields(mark):
        value = getattr(mark, item.name)
        if isinstance(value, np.ndarray):
            changes[item.name] = value[..., keep]
        elif item.name == "details":
            changes[item.name] = {name: column[keep] for name, column in value.items()}
    return replace(mark, **changes)
