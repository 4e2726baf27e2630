"""Panels as matplotlib artists.

Every property is set on the artist itself: no style sheet, no `rcParams`, no `plt.show`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.drawing.layout import MARKERS, empty_corner, fitted, hill_span, runs, tick_span
from calibrant.drawing.marks import (
    Band,
    Bundle,
    Hill,
    Line,
    Mark,
    Panel,
    Points,
    Steps,
    Ticks,
    Trail,
)
from calibrant.drawing.themes import DARK, LIGHT, Theme, as_theme, color_of, series_colors
from calibrant.errors import InputError

__all__ = ["draw"]

# The axes of a picture in a column are about this many inches wide; widths and text are for that.
_USUAL_SIDE = 3.2
_WIDTHS = 32
_DASHES = {"solid": "-", "dashed": (0, (4, 2.2)), "dotted": (0, (1, 1.6))}


class _Pen:
    """What a mark needs to know to draw itself: where, in which colour, how large."""

    def __init__(self, ax: Any, panel: Panel, theme: Theme) -> None:
        box = ax.get_position()
        inches = ax.figure.get_size_inches() if hasattr(ax.figure, "get_size_inches") else (5, 5)
        side = min(box.width * float(inches[0]), box.height * float(inches[1]))
        self.ax = ax
        self.panel = panel
        self.theme = theme
        self.colors = series_colors(panel, theme)
        self.scale = float(np.clip(side / _USUAL_SIDE, 0.4, 3.0))

    def color(self, mark: Mark) -> str:
        return color_of(mark, self.colors, self.theme)

    def across(self) -> Any:
        """Data along x, fractions of the panel along y."""
        return self.ax.get_xaxis_transform()


def draw(panel: Panel, ax: Any, *, theme: str | Theme | None = None) -> dict[str, list[Any]]:
    """Draw a panel on `ax`, and return the artists by the keys of their marks.

    Parameters
    ----------
    panel : Panel
        Its marks are drawn in order, the first at the bottom.
    ax : matplotlib.axes.Axes
        Rectangular axes; a polar or three-dimensional one is refused.
    theme : str or Theme, optional
        By default dark where the axes' background is dark, and light elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from calibrant.drawing.axes import Axis
    >>> from calibrant.drawing.marks import Line, Panel
    >>> ax = Figure().subplots()
    >>> line = Line(key="curve", series="a", x=np.array([0.0, 1.0]), y=np.array([0.0, 1.0]))
    >>> artists = draw(Panel((line,), Axis("x", 0, 1), Axis("y", 0, 1)), ax)
    >>> artists["curve"][0].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    _check_axes(ax)
    panel = fitted(panel)
    chosen = _theme_of(ax) if theme is None else as_theme(theme)
    _set_axes(panel, ax)
    pen = _Pen(ax, panel, chosen)
    artists: dict[str, list[Any]] = {}
    for depth, mark in enumerate(panel.marks):
        drawn = _draw(mark, pen)
        for artist in drawn:
            artist.set_zorder(2 + depth / 100)
        artists.setdefault(mark.key, []).extend(drawn)
    if panel.notes:
        artists["note"] = [_write_notes(pen)]
    if panel.legend:
        artists["legend"] = [_write_legend(pen)]
    return artists


def _check_axes(ax: Any) -> None:
    axes = require("matplotlib.axes", caller="plot")
    if not isinstance(ax, axes.Axes):
        hint = " Take one of them, such as ax[0]." if isinstance(ax, np.ndarray | list) else ""
        raise InputError(f"ax must be a matplotlib Axes; got {type(ax).__name__}.{hint}")
    if ax.name != "rectilinear":
        raise InputError(
            f"ax must have rectangular axes; got a {ax.name} projection. "
            "Make one with plt.subplots()."
        )


def _theme_of(ax: Any) -> Theme:
    colors = require("matplotlib.colors", caller="plot")
    red, green, blue, alpha = colors.to_rgba(ax.get_facecolor())
    if alpha == 0:
        red, green, blue, alpha = colors.to_rgba(ax.figure.get_facecolor())
    dark = alpha > 0 and 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4
    return DARK if dark else LIGHT


def _set_axes(panel: Panel, ax: Any) -> None:
    for name, axis in (("x", panel.x), ("y", panel.y)):
        if axis.scale == "logit":
            getattr(ax, f"set_{name}scale")("logit", nonpositive="mask")
            values, labels = zip(*axis.ticks(), strict=True)
            getattr(ax, f"set_{name}ticks")(values, labels=labels)
            getattr(ax, f"set_{name}ticks")([], minor=True)
        getattr(ax, f"set_{name}lim")(axis.low, axis.high)
        getattr(ax, f"set_{name}label")(axis.label)
    if panel.title:
        ax.set_title(panel.title)


@singledispatch
def _draw(mark: Mark, pen: _Pen) -> list[Any]:
    raise TypeError(f"no drawing for {type(mark).__name__}")


@_draw.register
def _(mark: Line, pen: _Pen) -> list[Any]:
    width = {"faint": 0.9, "neutral": 1.1}.get(mark.ink, 1.6) * pen.scale
    (line,) = pen.ax.plot(
        mark.x,
        mark.y,
        color=pen.color(mark),
        linewidth=width,
        linestyle=_DASHES[mark.dash],
        marker="",
        solid_capstyle="round",
    )
    return [line]


@_draw.register
def _(mark: Trail, pen: _Pen) -> list[Any]:
    collections = require("matplotlib.collections", caller="plot")
    names = pen.panel.series()
    several = len(names) > 1
    (core,) = pen.ax.plot(
        mark.x,
        mark.y,
        color=pen.color(mark),
        linewidth=1.0 * pen.scale,
        linestyle="-",
        solid_capstyle="round",
        marker=MARKERS[names.index(mark.series) % 6] if several else "",
        markersize=4.2 * pen.scale,
        markeredgewidth=0,
        markevery=_marker_places(mark, names),
    )
    pieces, weights = _pieces(mark)
    trail = collections.LineCollection(
        pieces,
        colors=pen.color(mark),
        capstyle="round",
        joinstyle="round",
        linewidths=(1.0 + 4.6 * weights) * pen.scale,
    )
    pen.ax.add_collection(trail, autolim=False)
    return [core, trail]


def _pieces(mark: Trail) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Stretches of one width: as many widths as the eye can tell apart, and few paths in a file."""
    points = np.column_stack([mark.x, mark.y])
    weight = np.clip((mark.weight[:-1] + mark.weight[1:]) / 2, 0, 1)
    whole = np.isfinite(points[:-1] + points[1:]).all(axis=1) & np.isfinite(weight)
    level = np.where(whole, np.rint(weight * _WIDTHS), -1)
    starts = np.flatnonzero(np.diff(level, prepend=-2))
    ends = np.append(starts[1:], level.size)
    kept = [(a, b) for a, b in zip(starts, ends, strict=True) if level[a] >= 0]
    return [points[a : b + 1] for a, b in kept], np.array([level[a] / _WIDTHS for a, _ in kept])


def _marker_places(mark: Trail, names: Sequence[str]) -> list[int]:
    """A few markers along the curve, at other places for every series."""
    shown = np.flatnonzero(np.isfinite(mark.y))
    if len(names) < 2 or len(shown) == 0:
        return []
    start = (names.index(mark.series) + 0.5) / len(names) * 0.2
    places = (np.arange(start, 1, 0.2) * (len(shown) - 1)).round().astype(int)
    return [int(shown[k]) for k in places]


@_draw.register
def _(mark: Bundle, pen: _Pen) -> list[Any]:
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


@_draw.register
def _(mark: Band, pen: _Pen) -> list[Any]:
    own = mark.ink in ("series", "accent")
    band = pen.ax.fill_between(
        mark.x,
        mark.low,
        mark.high,
        color=pen.color(mark),
        linewidth=0,
        alpha=pen.theme.band_opacity if own else pen.theme.neutral_opacity,
    )
    return [band]


@_draw.register
def _(mark: Hill, pen: _Pen) -> list[Any]:
    base, outline = hill_span(mark)
    hill = pen.ax.fill_between(
        mark.x,
        base,
        outline,
        color=pen.color(mark),
        linewidth=0,
        alpha=0.16,
        transform=pen.across(),
    )
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


@_draw.register
def _(mark: Ticks, pen: _Pen) -> list[Any]:
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


@_draw.register
def _(mark: Points, pen: _Pen) -> list[Any]:
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
        marker="o",
    )
    return [dots, whiskers]


@_draw.register
def _(mark: Steps, pen: _Pen) -> list[Any]:
    ends = np.stack(
        [np.column_stack([mark.left, mark.y]), np.column_stack([mark.right, mark.y])], axis=1
    )
    collections = require("matplotlib.collections", caller="plot")
    steps = collections.LineCollection(
        ends[np.isfinite(ends).all(axis=(1, 2))],
        colors=pen.color(mark),
        capstyle="butt",
        linewidths=1.3 * pen.scale,
        alpha=0.8,
    )
    pen.ax.add_collection(steps, autolim=False)
    return [steps]


def _text_size(pen: _Pen) -> float:
    return 8.6 * float(np.clip(pen.scale, 0.62, 3.0))


def _text_box(pen: _Pen, lines: Sequence[str], size: float) -> tuple[float, float]:
    """Width and height that the lines take, in fractions of the panel."""
    inches = _USUAL_SIDE * pen.scale
    width = max(map(len, lines)) * 0.55 * size / 72 / inches
    return min(width + 0.05, 0.9), len(lines) * 1.4 * size / 72 / inches


def _write_notes(pen: _Pen) -> Any:
    size = _text_size(pen)
    side, offset = empty_corner(pen.panel, *_text_box(pen, pen.panel.notes, size))
    left = side == "top"
    return pen.ax.text(
        0.04 if left else 0.96,
        1 - offset - 0.015 if left else offset + 0.015,
        "\n".join(pen.panel.notes),
        transform=pen.ax.transAxes,
        color=pen.theme.ink,
        fontsize=size,
        ha="left" if left else "right",
        va="top" if left else "bottom",
        zorder=6,
        linespacing=1.35,
    )


def _write_legend(pen: _Pen) -> Any:
    lines = require("matplotlib.lines", caller="plot")
    names = pen.panel.series()
    handles = [
        lines.Line2D(
            [],
            [],
            color=pen.colors[name],
            linewidth=2.4 * pen.scale,
            label=text,
            marker=MARKERS[names.index(name) % 6],
            markersize=5 * pen.scale,
            markeredgewidth=0,
        )
        for name, text in pen.panel.legend.items()
        if name in pen.colors
    ]
    size = _text_size(pen) * 0.92
    width, height = _text_box(pen, [handle.get_label() for handle in handles], size)
    side, offset = empty_corner(pen.panel, min(width + 0.14, 0.95), height)
    legend = pen.ax.legend(
        handles=handles,
        fontsize=size,
        labelcolor=pen.theme.ink,
        loc="upper left" if side == "top" else "lower right",
        borderaxespad=0.2,
        borderpad=0.2,
        labelspacing=0.35,
        handlelength=1.6,
        bbox_to_anchor=(0.02, 1 - offset) if side == "top" else (0.98, offset),
        facecolor=pen.theme.paper,
        edgecolor="none",
        framealpha=0.7,
    )
    legend.set_zorder(6)
    return legend
