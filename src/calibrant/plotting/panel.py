"""What can be drawn: marks of plain arrays, the axes they lie on, and the panel that holds both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from textwrap import wrap
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.plotting.axis import Axis

__all__ = [
    "TITLE_LINE",
    "Band",
    "Blank",
    "Bundle",
    "Dash",
    "Dots",
    "Entry",
    "Hill",
    "Ink",
    "Line",
    "Mark",
    "Panel",
    "Side",
    "Steps",
    "Ticks",
    "Trail",
    "Words",
    "broken",
    "shades_of",
    "stretches",
]

Array: TypeAlias = NDArray[np.float64]
Ink: TypeAlias = Literal["series", "neutral", "faint", "accent"]
Side: TypeAlias = Literal["bottom", "top"]
Dash: TypeAlias = Literal["solid", "dashed", "dotted", "dash-dotted"]

TITLE_LINE = 44  # most characters in a line above the axes


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
    says : str
        What the legend says of it, in plain words; "" for nothing.
    """

    key: str
    series: str = ""
    ink: Ink = "series"
    details: Mapping[str, Array] = field(default_factory=dict)
    says: str = ""


@dataclass(frozen=True, kw_only=True)
class Line(Mark):
    """A line of constant width; NaN breaks it."""

    x: Array
    y: Array
    dash: Dash = "solid"


SHADES, BAND_SHADES = 7, 13
FAINTEST, FAINTEST_OF_SEVERAL, FAINTEST_BAND = 0.6, 0.35, 0.15
"""The least strength of a curve, where there is no evidence for it; of one among several; of a band."""


def shades_of(evidence: Array, faintest: float, shades: int) -> Array:
    """How strong a colour is at each point: from `faintest` without evidence to 1, in so many steps."""
    steps = np.rint(np.nan_to_num(np.clip(evidence, 0, 1)) * (shades - 1)) / (shades - 1)
    return np.asarray(faintest + (1 - faintest) * steps)


def stretches(shades: Array) -> list[tuple[slice, float]]:
    """Stretches of one shade; each ends where the next one starts, so that no gap is left between them."""
    cuts = [0, *(np.flatnonzero(np.diff(shades)) + 1).tolist(), max(len(shades) - 1, 1)]
    return [(slice(a, b + 1), float(shades[a])) for a, b in pairwise(cuts) if a < b]


@dataclass(frozen=True, kw_only=True)
class Trail(Mark):
    """A line whose width is data, and which fades where there is little evidence for it.

    `weight` runs from 0 (hairline) to 1 (full width), `evidence` from 0 (faint) to 1 (full colour).
    """

    x: Array
    y: Array
    weight: Array
    evidence: Array | None = None
    faintest: float = FAINTEST

    def strength(self) -> Array:
        """How strong the colour is at each point."""
        if self.evidence is None:
            return np.ones(self.x.size)
        return shades_of(self.evidence, self.faintest, SHADES)


@dataclass(frozen=True, kw_only=True)
class Bundle(Mark):
    """Many faint lines over one `x`; `ys` has a row for each."""

    x: Array
    ys: Array


@dataclass(frozen=True, kw_only=True)
class Band(Mark):
    """The area between `low` and `high`; NaN breaks it. With `evidence`, it fades as a trail does."""

    x: Array
    low: Array
    high: Array
    evidence: Array | None = None

    def strength(self) -> Array:
        """How strong the colour is at each point, of its full strength."""
        if self.evidence is None:
            return np.ones(self.x.size)
        return shades_of(self.evidence, FAINTEST_BAND, BAND_SHADES)


@dataclass(frozen=True, kw_only=True)
class Hill(Mark):
    """A density that grows from the bottom, or hangs from the top; `height` in [0, 1].

    Of `bars`, every point is a corner of the outline.
    """

    x: Array
    height: Array
    side: Side = "bottom"
    bars: bool = False


@dataclass(frozen=True, kw_only=True)
class Ticks(Mark):
    """Short strokes along the bottom or the top edge, one for each `x`."""

    x: Array
    side: Side = "bottom"


@dataclass(frozen=True, kw_only=True)
class Dots(Mark):
    """Dots whose area is `weight` in [0, 1], with a whisker from `low` to `high`."""

    x: Array
    y: Array
    low: Array
    high: Array
    weight: Array


@dataclass(frozen=True, kw_only=True)
class Steps(Mark):
    """A level stroke at `y` from `left` to `right`, one for each bin; a `thick` one is a bar."""

    left: Array
    right: Array
    y: Array
    thick: bool = False


@dataclass(frozen=True, kw_only=True)
class Blank(Mark):
    """A rectangle from (x, y) at its lower left to its upper right: what lies beneath is not seen."""

    x: Array
    y: Array


@dataclass(frozen=True, kw_only=True)
class Words(Mark):
    """Short texts, centred on points of the panel; in the colour of all text, so that they can be read."""

    x: Array
    y: Array
    texts: tuple[str, ...]
    small: bool = False


@dataclass(frozen=True)
class Entry:
    """A line of the legend: what it says, and the mark that it stands for."""

    text: str
    mark: Mark

    @property
    def lines(self) -> int:
        """How many lines it takes."""
        return self.text.count("\n") + 1


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
        Series to the text that stands for it; empty where the marks say who they are.
    colors : mapping of str to str
        Series to a colour that was asked for; the others take the theme's in turn.
    title, subtitle : str
        Above the axes.
    labels : mapping of str to str
        Series to what a legend that is made by others calls it.
    finding : str
        What the picture shows, for those who hear it.
    keyed : bool
        Whether the legend is drawn.
    judged : bool
        Whether the subtitle is the verdict of the diagram itself, which gives way to other words.
    turn : int
        How many of the theme's colours belong to others, in panels beside this one.
    """

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    notes: tuple[str, ...] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    colors: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    subtitle: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    finding: str = ""
    keyed: bool = True
    judged: bool = False
    turn: int = 0

    def series(self) -> tuple[str, ...]:
        """Names of the series, in the order in which they first appear."""
        return tuple(dict.fromkeys(mark.series for mark in self.marks if mark.series))

    def titles(self) -> int:
        """Lines above the axes, as narrow as a column of a paper."""
        return sum(len(broken(text)) for text in (self.title, self.subtitle))

    def entries(self) -> list[Entry]:
        """The lines of the legend: each series by its curve, then every other mark that says something."""
        if not self.keyed:
            return []
        curves: dict[str, Mark] = {}
        for mark in self.marks:
            if mark.series in self.legend and isinstance(mark, Line | Trail | Dots):
                curves.setdefault(mark.series, mark)
        named = [Entry(text, curves[name]) for name, text in self.legend.items() if name in curves]
        said = {mark.says: mark for mark in self.marks if mark.says}
        return named + [Entry(text, mark) for text, mark in sorted(said.items(), key=_rank)]

    def in_words(self) -> str:
        """The picture for those who hear it: its title and finding, or its axes, legend and notes."""
        finding_has_it = self.judged and self.finding
        named = [text for text in (self.title, "" if finding_has_it else self.subtitle) if text]
        said = [
            *(
                self.legend.get(name, name).replace("\n", ", ")
                for name in self.series()
                if self.legend
            ),
            *self.notes,
        ]
        axes = f"{self.y.label} against {self.x.label}"
        words = self.finding or (f"{axes}: {'; '.join(said)}." if said else f"{axes}.")
        return ". ".join([*named, words])

    def thinned(self, most: int) -> Panel:
        """The panel with at most about `most` points to a curve."""
        return replace(self, marks=tuple(_thinned(mark, most, self.x) for mark in self.marks))


def broken(text: str, most: int = TITLE_LINE) -> list[str]:
    """The lines of a text, none of which ends within a word such as "over-confident"."""
    return wrap(text, most, break_on_hyphens=False)


def _rank(entry: tuple[str, Mark]) -> int:
    """A legend starts with the curve and ends with what lies at the bottom."""
    order = ("curve", "values", "steps", "truth", "band", "consistency", "reference")
    key = entry[1].key
    return order.index(key) if key in order else len(order)


def _thinned(mark: Mark, most: int, axis: Axis) -> Mark:
    """A curve or an area with about `most` points, both ends included.

    Half of them are even along the axis and half along the curve: where many predictions are nearly
    equal, a smooth curve takes many steps and little room.
    """
    if not isinstance(mark, Line | Trail | Bundle | Band | Hill) or mark.x.size <= most + 1:
        return mark
    if isinstance(mark, Hill) and mark.bars:
        return mark
    place = np.flatnonzero(np.isfinite(axis.fraction(mark.x)))
    if place.size == 0:
        return mark
    at = axis.fraction(mark.x[place])
    half = -(-most // 2)
    even = np.searchsorted(at, np.linspace(at[0], at[-1], half + 1) - 1e-9)
    along = np.linspace(0, place.size - 1, half).astype(np.int64)
    chosen = np.concatenate([np.minimum(even, place.size - 1), along])
    keep = np.unique(np.concatenate([[0], place[chosen], [mark.x.size - 1]]))
    changes: dict[str, Any] = {}
    for item in fields(mark):
        value = getattr(mark, item.name)
        if isinstance(value, np.ndarray):
            changes[item.name] = value[..., keep]
        elif item.name == "details":
            changes[item.name] = {name: column[keep] for name, column in value.items()}
    return replace(mark, **changes)
