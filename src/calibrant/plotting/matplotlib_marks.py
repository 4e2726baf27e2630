"""The marks of a panel as matplotlib artists."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.plotting.layout import MARKERS, hill_span, runs, tick_span
from calibrant.plotting.looks import OUTLINE_OPACITY, Theme, color_of, series_colors
from calibrant.plotting.panel import (
    Band,
    Blank,
    Bundle,
    Dots,
    Hill,
    Line,
    Mark,
    Panel,
    Steps,
    Ticks,
    Trail,
    Words,
    stretches,
)

__all__ = ["DASHES", "HAIRLINE", "USUAL_SIDE", "WIDEST", "Pen", "draw_mark", "width_of"]

# The axes of a picture in a column are about this many inches wide; widths and text are for that.
USUAL_SIDE = 3.2
HAIRLINE, WIDEST = 1.0, 6.0
# Markers stand where there is so much evidence, and about so far apart, as a share of the panel.
SURE, BETWEEN_MARKERS = 0.5, 0.35
DASHES = {"solid": "-", "dashed": (0, (4, 2.2)), "dotted": (0, (1, 1.6)), "dash-dotted": "-."}


class Pen:
    """What a mark needs to know to draw itself: where, in which colour, how large.

    `start` series are on the axes already.
    """

    def __init__(self, ax: Any, panel: Panel, theme: Theme, *, start: int = 0) -> None:
        box = ax.get_position()
        inches = ax.figure.get_size_inches() if hasattr(ax.figure, "get_size_inches") else (5, 5)
        across, up = box.width * float(inches[0]), box.height * float(inches[1])
        # Of a list of names the height says how many there are, not how large they are drawn.
        side = min(across, USUAL_SIDE) if panel.y.names else min(across, up)
        self.ax = ax
        self.panel = panel
        self.theme = theme
        self.start = start
        self.colors = series_colors(panel, theme, start=start)
        self.scale = float(np.clip(side / USUAL_SIDE, 0.4, 3.0))

    def color(self, mark: Mark) -> str:
        return color_of(mark, self.colors, self.theme)

    def faded(self, mark: Mark, strength: float) -> Any:
        """The colour of a mark, moved towards the paper: opaque, so that strokes do not add up."""
        to_rgb = require("matplotlib.colors", caller="plot").to_rgb
        front, back = np.array(to_rgb(self.color(mark))), np.array(to_rgb(self.theme.paper))
        return tuple((strength * front + (1 - strength) * back).tolist())

    def marker(self, series: str) -> str:
        """A shape for each of several series; a dot for the only one."""
        names = self.panel.series()
        place = self.start + names.index(series) if series in names else 0
        return MARKERS[place % len(MARKERS)]

    @property
    def alone(self) -> bool:
        """Whether there is one series, on these axes and in this panel."""
        return self.start + len(self.panel.series()) < 2

    def along(self, mark: Line | Trail) -> dict[str, Any]:
        """Markers here and there on a curve, where colour is not all that tells several apart."""
        if mark.ink != "series" or self.alone or mark.key == "closer":
            return {"marker": ""}
        return {
            "marker": self.marker(mark.series),
            "markersize": 6.2 * self.scale,
            "markeredgecolor": self.theme.paper,
            "markeredgewidth": 0.9 * self.scale,
            "markevery": _marker_places(mark, self.panel),
        }

    def label(self, mark: Mark) -> dict[str, str]:
        """What a legend calls this mark, where it is the one that stands for its series."""
        curves = (m for m in self.panel.marks if isinstance(m, Line | Trail) and m.ink == "series")
        if isinstance(mark, Dots) and any(curve.series == mark.series for curve in curves):
            return {}
        text = self.panel.labels.get(mark.series, "") if mark.ink == "series" else ""
        return {"label": text.replace("$", r"\$")} if text else {}

    def shade(self, mark: Mark) -> dict[str, Any]:
        """The look of an area; a reference has an outline, which tells it from a band without colour."""
        own, color = mark.ink in ("series", "accent"), self.color(mark)
        alpha = self.theme.band_opacity if own else self.theme.neutral_opacity
        if mark.ink != "neutral":
            return {"color": color, "linewidth": 0, "alpha": alpha}
        edge = {"edgecolor": (color, OUTLINE_OPACITY), "linewidth": 0.6 * self.scale}
        return {"facecolor": (color, alpha), **edge}

    def across(self) -> Any:
        """Data along x, fractions of the panel along y."""
        return self.ax.get_xaxis_transform()


@singledispatch
def draw_mark(mark: Mark, pen: Pen) -> list[Any]:
    """Draw one mark, and return its artists."""
    raise TypeError(f"no drawing for {type(mark).__name__}")


@draw_mark.register
def _(mark: Line, pen: Pen) -> list[Any]:
    width = {"faint": 0.9, "neutral": 1.1}.get(mark.ink, 1.6) * pen.scale
    (line,) = pen.ax.plot(
        mark.x,
        mark.y,
        color=pen.color(mark),
        linewidth=width,
        linestyle=DASHES[mark.dash],
        solid_capstyle="round",
        **({**pen.along(mark), **pen.label(mark)} if mark.dash == "solid" else {"marker": ""}),
    )
    return [line]


@draw_mark.register
def _(mark: Trail, pen: Pen) -> list[Any]:
    collections = require("matplotlib.collections", caller="plot")
    markers = pen.along(mark)
    places = markers.get("markevery", [])
    # The line is for a legend made by others, and to be read; of itself one sees the trail alone, so it is
    # cut off but for a pixel in the corner of the figure (an empty box would cut off nothing).
    (core,) = pen.ax.plot(
        mark.x,
        mark.y,
        color=pen.color(mark),
        linewidth=0.6 * HAIRLINE * pen.scale,
        linestyle="-",
        solid_capstyle="round",
        **{**markers, "markevery": []},
        **pen.label(mark),
    )
    core.set_clip_box(require("matplotlib.transforms", caller="plot").Bbox([[0, 0], [1, 1]]))
    whole = np.isfinite(mark.x) & np.isfinite(mark.y) & np.isfinite(mark.weight)
    shades = {s: pen.faded(mark, s) for s in np.unique(mark.strength()[whole]).tolist()}
    trail = collections.LineCollection(
        _around(mark.x, mark.y, whole),
        colors=[shades[s] for s in mark.strength()[whole].tolist()],
        capstyle="round",
        joinstyle="round",
        linewidths=width_of(mark.weight[whole]) * pen.scale,
    )
    pen.ax.add_collection(trail, autolim=False)
    if not places:
        return [core, trail]
    dots = pen.ax.plot(mark.x, mark.y, color=pen.color(mark), linestyle="", **markers)
    return [core, trail, *dots]


def width_of(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Width of a trail in points, at the usual size of a picture."""
    return np.asarray(HAIRLINE + WIDEST * np.clip(weight, 0, 1))


def _around(
    x: NDArray[np.float64], y: NDArray[np.float64], whole: NDArray[np.bool_]
) -> list[NDArray[np.float64]]:
    """Each point with the halves of the line to its neighbours: a stroke of its own width."""
    points = np.column_stack([x, y])
    middles = (points[:-1] + points[1:]) / 2
    before = np.vstack([points[:1], middles])
    after = np.vstack([middles, points[-1:]])
    before = np.where(np.isfinite(before), before, points)
    after = np.where(np.isfinite(after), after, points)
    return list(np.stack([before, points, after], axis=1)[whole])


def _marker_places(mark: Line | Trail, panel: Panel) -> list[int]:
    """A few markers along the part of the curve that rows speak for, at other places for every series."""
    x, y = panel.x.fraction(mark.x), panel.y.fraction(mark.y)
    shown = np.isfinite(x) & np.isfinite(y)
    if isinstance(mark, Trail) and mark.evidence is not None:
        sure = shown & (mark.evidence >= SURE)
        shown = sure if sure.any() else shown
    at = np.flatnonzero(shown)
    if len(at) == 0:
        return []
    steps = np.hypot(np.diff(x[at]), np.diff(y[at])) * (np.diff(at) == 1)
    passed = np.concatenate([[0.0], steps.cumsum()])
    names = panel.series()
    start = (names.index(mark.series) + 0.5) / len(names)
    number = max(round(passed[-1] / BETWEEN_MARKERS), 1)
    places = np.searchsorted(passed, (np.arange(number) + start) / number * passed[-1])
    return sorted({int(at[k]) for k in np.minimum(places, len(at) - 1)})


@draw_mark.register
def _(mark: Bundle, pen: Pen) -> list[Any]:
    collections = require("matplotlib.collections", caller="plot")
    lines = [np.column_stack([mark.x[run], y[run]]) for y in mark.ys for run in runs(mark.x, y)]
    bundle = collections.LineCollection(
        lines,
        colors=pen.color(mark),
        linewidths=0.45 * pen.scale,
        alpha=float(np.clip(6 / max(len(mark.ys), 1), 0.06, 0.4)),
    )
    pen.ax.add_collection(bundle, autolim=False)
    return [bundle]


@draw_mark.register
def _(mark: Band, pen: Pen) -> list[Any]:
    if mark.evidence is None:
        return [pen.ax.fill_between(mark.x, mark.low, mark.high, **pen.shade(mark))]
    look = pen.shade(mark)
    return [
        pen.ax.fill_between(
            mark.x[part],
            mark.low[part],
            mark.high[part],
            **{**look, "alpha": shade * look["alpha"]},
        )
        for part, shade in stretches(mark.strength())
    ]


@draw_mark.register
def _(mark: Blank, pen: Pen) -> list[Any]:
    patches = require("matplotlib.patches", caller="plot")
    (left, right), (bottom, top) = mark.x.tolist(), mark.y.tolist()
    paper = pen.ax.get_facecolor()
    box = patches.Rectangle((left, bottom), right - left, top - bottom, color=paper, linewidth=0)
    return [pen.ax.add_patch(box)]


@draw_mark.register
def _(mark: Hill, pen: Pen) -> list[Any]:
    base, outline = hill_span(mark)
    hill = pen.ax.fill_between(
        mark.x,
        base,
        outline,
        color=pen.color(mark),
        linewidth=0,
        alpha=0.55 if mark.bars else 0.16,
        transform=pen.across(),
    )
    if mark.bars:
        return [hill]
    (crest,) = pen.ax.plot(
        mark.x,
        outline,
        color=pen.color(mark),
        linewidth=0.6 * pen.scale,
        linestyle="-",
        marker="",
        alpha=0.55,
        transform=pen.across(),
    )
    return [hill, crest]


@draw_mark.register
def _(mark: Ticks, pen: Pen) -> list[Any]:
    low, high = tick_span(mark.side)
    # One line with gaps, not a line for each: a saved file is then a tenth of the size.
    (strokes,) = pen.ax.plot(
        np.column_stack([mark.x, mark.x, np.full_like(mark.x, np.nan)]).ravel(),
        np.tile([low, high, np.nan], mark.x.size),
        color=pen.color(mark),
        linewidth=0.5 * pen.scale,
        linestyle="-",
        marker="",
        alpha=float(np.clip(90 / max(len(mark.x), 1), 0.25, 0.8)),
        transform=pen.across(),
    )
    return [strokes]


@draw_mark.register
def _(mark: Dots, pen: Pen) -> list[Any]:
    collections = require("matplotlib.collections", caller="plot")
    color = pen.color(mark)
    ends = zip(mark.x.tolist(), mark.low.tolist(), mark.high.tolist(), strict=True)
    whiskers = collections.LineCollection(
        [[(x, a), (x, b)] for x, a, b in ends if a < b],
        colors=color,
        alpha=0.75,
        linewidths=1.1 * pen.scale,
        capstyle="round",
    )
    pen.ax.add_collection(whiskers, autolim=False)
    dots = pen.ax.scatter(
        mark.x,
        mark.y,
        s=(12 + 55 * np.clip(mark.weight, 0, 1)) * pen.scale**2,
        color=color,
        edgecolors=pen.theme.paper,
        linewidths=0.8 * pen.scale,
        marker=pen.marker(mark.series),
        **pen.label(mark),
    )
    return [dots, whiskers]


@draw_mark.register
def _(mark: Steps, pen: Pen) -> list[Any]:
    ends = np.stack(
        [np.column_stack([mark.left, mark.y]), np.column_stack([mark.right, mark.y])], axis=1
    )
    collections = require("matplotlib.collections", caller="plot")
    steps = collections.LineCollection(
        ends[np.isfinite(ends).all(axis=(1, 2))],
        colors=pen.color(mark),
        capstyle="butt",
        linewidths=(7.0 if mark.thick else 1.6) * pen.scale,
        alpha=pen.theme.neutral_opacity if mark.thick else 0.8,
    )
    pen.ax.add_collection(steps, autolim=False)
    return [steps]


@draw_mark.register
def _(mark: Words, pen: Pen) -> list[Any]:
    size = (6.4 if mark.small else 8.6) * float(np.clip(pen.scale, 0.62, 3.0))
    places = zip(mark.x.tolist(), mark.y.tolist(), mark.texts, strict=True)
    return [
        pen.ax.text(
            x,
            y,
            text,
            color=pen.theme.ink,
            fontsize=size,
            ha="center",
            va="center",
            parse_math=False,
            clip_on=True,
        )
        for x, y, text in places
    ]
