"""Panels as matplotlib artists.

Every property is set on the artist itself: no style sheet, no `rcParams`, no `plt.show`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._optional import require
from calibrant.drawing.layout import MARKERS, empty_corner, fitted
from calibrant.drawing.marks import Panel
from calibrant.drawing.matplotlib_marks import USUAL_SIDE, Pen, draw_mark
from calibrant.drawing.themes import DARK, LIGHT, Theme, as_theme
from calibrant.errors import InputError

__all__ = ["draw"]


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
    pen = Pen(ax, panel, chosen)
    artists: dict[str, list[Any]] = {}
    for depth, mark in enumerate(panel.marks):
        drawn = draw_mark(mark, pen)
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
        ax.title.set_text(panel.title)


def _text_size(pen: Pen) -> float:
    return 8.6 * float(np.clip(pen.scale, 0.62, 3.0))


def _text_box(pen: Pen, lines: Sequence[str], size: float) -> tuple[float, float]:
    """Width and height that the lines take, in fractions of the panel."""
    inches = USUAL_SIDE * pen.scale
    width = max(map(len, lines)) * 0.55 * size / 72 / inches
    return min(width + 0.05, 0.9), len(lines) * 1.4 * size / 72 / inches


def _write_notes(pen: Pen) -> Any:
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


def _write_legend(pen: Pen) -> Any:
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
