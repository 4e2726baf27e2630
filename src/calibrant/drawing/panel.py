"""What can be drawn: marks of plain arrays, the axes they lie on, and the panel that holds both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from textwrap import wrap
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.drawing.tick_texts import linear_ticks, odds_text
from calibrant.errors import InputError

__all__ = [
    "TITLE_LINE",
    "Axis",
    "AxisScale",
    "Band",
    "Bundle",
    "Dash",
    "Entry",
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
    "Words",
    "broken",
]

Array: TypeAlias = NDArray[np.float64]
AxisScale: TypeAlias = Literal["linear", "logit"]
Ink: TypeAlias = Literal["series", "neutral", "faint", "accent"]
Side: TypeAlias = Literal["bottom", "top"]
Dash: TypeAlias = Literal["solid", "dashed", "dotted", "dash-dotted"]

TITLE_LINE = 44  # most characters in a line above the axes
_MOST_TICKS = 6
_DECADES = tuple(10.0**-k for k in range(9, 0, -1))
_LOGIT_TICKS = (*_DECADES, 0.5, *(1 - tick for tick in reversed(_DECADES)))
# Between the decades where these are few: the first ones that leave room for their labels.
_THIRDS = (0.003, 0.03, 0.3, 0.7, 0.97, 0.997)
_LOGIT_FINER = (*_THIRDS, 0.002, 0.005, 0.02, 0.05, 0.2, 0.8, 0.95, 0.98, 0.995)
_ROOM_FOR_A_LABEL = 0.15


@dataclass(frozen=True)
class Axis:
    """Limits and scale of one axis.

    `names` stand at 0, 1, 2, ... in place of numbers. `shown` is the part of the whole range that an axis
    shows, where it does not show all: the caption says so.

    Examples
    --------
    >>> Axis("prediction", 0.0, 1.0).ticks()
    ((0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1'))
    >>> Axis("prediction", 0.001, 0.5, "logit").ticks()
    ((0.001, '0.001'), (0.01, '0.01'), (0.1, '0.1'), (0.5, '0.5'))
    """

    label: str
    low: float
    high: float
    scale: AxisScale = "linear"
    names: tuple[str, ...] = ()
    shown: tuple[float, float] | None = None

    @property
    def caption(self) -> str:
        """The label, and which part of the range the axis shows."""
        if self.shown is None:
            return self.label
        low, high = self.shown
        if low <= 0.0:
            return f"{self.label} (axis ends at {high:g})"
        ends = f"starts at {low:g}" if high >= 1.0 else f"runs from {low:g} to {high:g}"
        return f"{self.label} (axis {ends})"

    def __post_init__(self) -> None:
        if self.scale not in ("linear", "logit"):
            raise InputError(
                'an axis must be "linear" or "logit"', seen=self.scale, cure="Pass one of the two."
            )
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(
                "axis limits must be finite and increasing",
                seen=(self.low, self.high),
                cure="Pass the lower end first.",
            )
        if self.scale == "logit" and not 0 < self.low < self.high < 1:
            raise InputError(
                "limits of a logit axis must lie strictly between 0 and 1",
                seen=(self.low, self.high),
                cure="Pass limits such as 0.01 and 0.99.",
            )

    def forward(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates along the axis; NaN for what a logit axis cannot show."""
        values = np.asarray(values, dtype=np.float64)
        if self.scale == "linear":
            return values
        inside = np.where((values > 0) & (values < 1), values, np.nan)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def limits(self) -> tuple[float, float]:
        """The limits in the coordinates of `forward`."""
        low, high = self.forward(np.array([self.low, self.high]))
        return float(low), float(high)

    def fraction(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Position between the limits: 0 at the low end and 1 at the high end."""
        low, high = self.limits()
        return np.asarray((self.forward(values) - low) / (high - low))

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Round values inside the limits, with their labels."""
        if self.names:
            return tuple((float(k), name) for k, name in enumerate(self.names))
        if self.scale == "linear":
            return linear_ticks(self.low, self.high)
        slack = 1 + 1e-9
        ticks = [t for t in _LOGIT_TICKS if self.low <= t * slack and t <= self.high * slack]
        if len(ticks) < 4:
            ticks = self._filled(ticks)
        every = -(-len(ticks) // _MOST_TICKS)
        return tuple((t, odds_text(t)) for t in ticks[(len(ticks) - 1) % every :: every])

    def _filled(self, ticks: list[float]) -> list[float]:
        """The ticks, with finer ones wherever there is room."""
        kept = list(ticks)
        for tick in (t for t in _LOGIT_FINER if self.low <= t <= self.high):
            gaps = np.abs(self.fraction(np.array(kept)) - self.fraction(np.array(tick)))
            if np.min(gaps, initial=1.0) >= _ROOM_FOR_A_LABEL:
                kept.append(tick)
        return sorted(kept)


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


FAINTEST, SHADES = 0.62, 7


@dataclass(frozen=True, kw_only=True)
class Trail(Mark):
    """A line whose width is data, and which fades where there is little evidence for it.

    `weight` runs from 0 (hairline) to 1 (full width), `evidence` from 0 (faint) to 1 (full colour).
    """

    x: Array
    y: Array
    weight: Array
    evidence: Array | None = None

    def strength(self) -> Array:
        """How strong the colour is at each point, from `FAINTEST` to 1, in `SHADES` steps."""
        evidence = np.ones(self.x.size) if self.evidence is None else np.clip(self.evidence, 0, 1)
        steps = np.rint(np.nan_to_num(evidence) * (SHADES - 1)) / (SHADES - 1)
        return np.asarray(FAINTEST + (1 - FAINTEST) * steps)


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
class Points(Mark):
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
            if mark.series in self.legend and isinstance(mark, Line | Trail | Points):
                curves.setdefault(mark.series, mark)
        named = [Entry(text, curves[name]) for name, text in self.legend.items() if name in curves]
        said = {mark.says: mark for mark in self.marks if mark.says}
        return named + [Entry(text, mark) for text, mark in sorted(said.items(), key=_rank)]

    def in_words(self) -> str:
        """The picture for those who hear it: its title and finding, or its axes, legend and notes."""
        finding_has_it = self.judged and self.finding
        named = [text for text in (self.title, "" if finding_has_it else self.subtitle) if text]
        said = [
            *(self.legend.get(name, name) for name in self.series() if self.legend),
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
