"""Panels as matplotlib artists.

Every property is set on the artist itself: no style sheet, no `rcParams`, no `plt.show`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._optional import require
from calibrant.drawing.layout import empty_corner, fitted
from calibrant.drawing.marks import Panel
from calibrant.drawing.matplotlib_marks import USUAL_SIDE, Pen, draw_mark
from calibrant.drawing.themes import DARK, LIGHT, Theme, as_theme
from calibrant.errors import InputError

__all__ = ["draw"]

# Under this name an artist carries what the next panel on its axes must know of its own.
_MEMORY = "_calibrant_panel"


def draw(
    panel: Panel, ax: Any, *, theme: str | Theme | None = None, legend_outside: bool = False
) -> dict[str, list[Any]]:
    """Draw a panel on `ax`, and return the artists by the keys of their marks.

    Parameters
    ----------
    panel : Panel
        Its marks are drawn in order, the first at the bottom.
    ax : matplotlib.axes.Axes
        Rectangular axes; a polar or three-dimensional one is refused.
    theme : str or Theme, optional
        By default dark where the axes' background is dark, and light elsewhere.
    legend_outside : bool
        Whether a legend may stand above the axes: not where others have drawn beside them.

    Notes
    -----
    What is drawn on axes that hold a panel already takes the next colours and markers, and its notes
    stand beside the earlier ones, each in its colour.

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
    earlier = _earlier(ax)
    pen = Pen(ax, panel, chosen, start=sum(each.series for each in earlier))
    artists: dict[str, list[Any]] = {}
    for depth, mark in enumerate(panel.marks):
        drawn = draw_mark(mark, pen)
        for place, artist in enumerate(reversed(drawn)):  # the first lies on top of its fellows
            artist.set_zorder(2 + depth / 100 + place / 1000)
        artists.setdefault(mark.key, []).extend(drawn)
    if panel.notes:
        artists["note"] = [_write_notes(pen, [each.note for each in earlier if each.note])]
    if panel.legend:
        artists["legend"] = [_write_legend(pen, outside=legend_outside)]
    _remember(pen, artists)
    return artists


@dataclass(frozen=True, eq=False)
class _Earlier:
    """A panel that was drawn on axes: how many series, and its note with the colour of the first."""

    series: int
    color: str
    note: Any


def _earlier(ax: Any) -> list[_Earlier]:
    """The panels on these axes; each is known by one of its artists, and forgotten with it."""
    found = (getattr(artist, _MEMORY, None) for artist in ax.get_children())
    return [each for each in found if each is not None]


def _remember(pen: Pen, artists: dict[str, list[Any]]) -> None:
    names = pen.panel.series()
    if not names:
        return
    note = artists.get("note", [None])[0]
    last = artists[pen.panel.marks[-1].key][-1]
    setattr(last if note is None else note, _MEMORY, _Earlier(len(names), _first_color(pen), note))


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
        elif getattr(ax, f"get_{name}scale")() != "linear":
            getattr(ax, f"set_{name}scale")("linear")
        getattr(ax, f"set_{name}lim")(axis.low, axis.high)
        getattr(ax, f"set_{name}label")(axis.label)
    if panel.title:
        ax.title.set_text(panel.title)
        ax.title.set_parse_math(False)  # a name may hold a $


def _text_size(pen: Pen) -> float:
    return 8.6 * float(np.clip(pen.scale, 0.62, 3.0))


def _text_box(pen: Pen, lines: Sequence[str], size: float) -> tuple[float, float]:
    """Width and height that the lines take, in fractions of the panel."""
    inches = USUAL_SIDE * pen.scale
    width = max(map(len, lines)) * 0.55 * size / 72 / inches
    return min(width + 0.05, 0.9), len(lines) * 1.4 * size / 72 / inches


def _write_notes(pen: Pen, earlier: Sequence[Any]) -> Any:
    """In the emptiest corner, or beside earlier notes; then each has the colour of its curve."""
    size = _text_size(pen)
    width, height = _text_box(pen, pen.panel.notes, size)
    corner = empty_corner(pen.panel, width, height)
    x, y = corner.place(0.04)
    place = {
        "x": x,
        "y": y - 0.015 if corner.side == "top" else y + 0.015,
        "ha": "left" if corner.left else "right",
        "va": "top" if corner.side == "top" else "bottom",
        "color": pen.theme.ink,
    }
    if earlier:
        first = earlier[0]
        x, y = first.get_position()
        texts = [note.get_text().split("\n") for note in earlier]
        taken = sum(_text_box(pen, lines, size)[1] + 0.02 for lines in texts)
        above = first.get_va() == "top"
        place = {"x": x, "y": y - taken if above else y + taken}
        place |= {"ha": first.get_ha(), "va": first.get_va(), "color": _first_color(pen)}
        for note in earlier:
            note.set_color(getattr(note, _MEMORY).color)
    return pen.ax.text(
        s="\n".join(pen.panel.notes),
        transform=pen.ax.transAxes,
        fontsize=size,
        zorder=6,
        linespacing=1.35,
        parse_math=False,
        **place,
    )


def _first_color(pen: Pen) -> str:
    names = pen.panel.series()
    return pen.colors[names[0]] if names else pen.theme.ink


def _write_legend(pen: Pen, *, outside: bool) -> Any:
    lines = require("matplotlib.lines", caller="plot")
    entries = {name: text for name, text in pen.panel.legend.items() if name in pen.colors}
    handles = [
        lines.Line2D(
            [],
            [],
            color=pen.colors[name],
            linewidth=2.4 * pen.scale,
            marker=pen.marker(name),
            markersize=6.2 * pen.scale,
            markeredgecolor=pen.theme.paper,
            markeredgewidth=0.9 * pen.scale,
        )
        for name in entries
    ]
    size = _legend_size(pen, list(entries.values()))
    legend = pen.ax.legend(
        handles=handles,
        labels=[str(k) for k in range(len(handles))],
        fontsize=size,
        labelcolor=pen.theme.ink,
        borderaxespad=0.2,
        borderpad=0.2,
        labelspacing=0.35,
        handlelength=2.2,
        facecolor=pen.theme.paper,
        edgecolor="none",
        framealpha=0.7,
        **_legend_place(pen, list(entries.values()), size, outside=outside),
    )
    # As plain text: matplotlib reads $ as mathematics and leaves out what starts with "_".
    for written, text in zip(legend.get_texts(), entries.values(), strict=True):
        written.set_parse_math(False)
        written.set_text(text)
    legend.set_zorder(6)
    return legend


def _legend_size(pen: Pen, texts: Sequence[str]) -> float:
    """As the notes, or as small as the longest entry and its line need to fit along the axes."""
    most = USUAL_SIDE * pen.scale * 72 / (0.55 * max(map(len, texts)) + 3.5)
    usual = 0.92 * _text_size(pen)
    return max(min(usual, most), 0.6 * usual)


def _legend_place(pen: Pen, texts: Sequence[str], size: float, *, outside: bool) -> dict[str, Any]:
    """In the emptiest corner; above the axes, if it may, where every corner has a curve."""
    width, height = _text_box(pen, texts, size)
    corner = empty_corner(pen.panel, min(width + 0.14, 0.95), height)
    inches = (1.55 * len(texts) + 0.6) * size / 72
    above = outside and not pen.ax.get_title()
    if corner.covered and above and _room_above(pen, inches):
        return {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    across, up = "left" if corner.left else "right", "upper" if corner.side == "top" else "lower"
    return {"loc": f"{up} {across}", "bbox_to_anchor": corner.place(0.02)}


def _room_above(pen: Pen, inches: float) -> bool:
    """Whether the figure makes room for what stands above the axes, or has it."""
    figure = pen.ax.figure
    if figure.get_layout_engine() is not None:
        return True
    above = (1.0 - pen.ax.get_position().y1) * figure.get_figure(root=True).get_size_inches()[1]
    return bool(above >= inches)
