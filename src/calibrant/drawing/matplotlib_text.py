"""The words of a panel on matplotlib axes: titles, notes and the legend, out of the way of the curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from calibrant._optional import require
from calibrant.drawing.layout import Corner, empty_corner
from calibrant.drawing.matplotlib_marks import DASHES, USUAL_SIDE, Pen
from calibrant.drawing.panel import TITLE_LINE, Band, Entry, Hill, Line, Points, Steps, Ticks, Trail

__all__ = ["earlier_panels", "remember", "write_figure_legend", "write_words"]

# Under this name an artist carries what the next panel on its axes must know of its own.
_MEMORY = "_calibrant_panel"
_LONGEST_LINE = 30


@dataclass(frozen=True, eq=False)
class Earlier:
    """A panel that was drawn on axes: how many series, and its note with the colour of the first."""

    series: int
    color: str
    note: Any


def earlier_panels(ax: Any) -> list[Earlier]:
    """The panels on these axes; each is known by one of its artists, and forgotten with it."""
    found = (getattr(artist, _MEMORY, None) for artist in ax.get_children())
    return [each for each in found if each is not None]


def remember(pen: Pen, artists: dict[str, list[Any]]) -> None:
    """Leave on the axes what a later panel must know."""
    names = pen.panel.series()
    if not names:
        return
    note = artists.get("note", [None])[0]
    last = artists[pen.panel.marks[-1].key][-1]
    setattr(last if note is None else note, _MEMORY, Earlier(len(names), _first_color(pen), note))


def write_words(pen: Pen, earlier: Sequence[Earlier], *, outside: bool) -> dict[str, list[Any]]:
    """Titles, notes and legend; a second panel on the same axes adds its notes to the first's."""
    artists: dict[str, list[Any]] = {}
    _write_titles(pen)
    corner: Corner | None = None
    if pen.panel.notes:
        width, height = _text_box(pen, pen.panel.notes, _text_size(pen))
        corner = empty_corner(pen.panel, width, height)
        notes = [each.note for each in earlier if each.note]
        artists["note"] = [_write_notes(pen, corner, notes)]
    entries = pen.panel.entries()
    if entries and outside:
        artists["legend"] = [write_figure_legend(pen, pen.ax.figure, columns=1)]
    elif entries and not earlier:
        artists["legend"] = [_write_legend(pen, entries, corner)]
    return artists


def _write_titles(pen: Pen) -> None:
    panel, ax = pen.panel, pen.ax
    lines = [line for text in (panel.title, panel.subtitle) for line in wrap(text, TITLE_LINE)]
    above = "\n".join(lines)
    if not above:
        return
    style = {"color": ax.title.get_color(), "fontsize": ax.title.get_fontsize()}
    loc = "left" if panel.subtitle else "center"
    ax.set_title(above, loc=loc, parse_math=False, **style)


def _text_size(pen: Pen) -> float:
    return 8.6 * float(np.clip(pen.scale, 0.62, 3.0))


def _text_box(pen: Pen, lines: Sequence[str], size: float) -> tuple[float, float]:
    """Width and height that the lines take, in fractions of the panel."""
    inches = USUAL_SIDE * pen.scale
    width = max(map(len, lines)) * 0.55 * size / 72 / inches
    return min(width + 0.05, 0.9), len(lines) * 1.4 * size / 72 / inches


def _write_notes(pen: Pen, corner: Corner, earlier: Sequence[Any]) -> Any:
    """In the emptiest corner, or beside earlier notes; then each has the colour of its curve."""
    size = _text_size(pen)
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
        bbox={"facecolor": pen.theme.paper, "edgecolor": "none", "alpha": 0.6, "pad": 1.0},
        **place,
    )


def _first_color(pen: Pen) -> str:
    names = pen.panel.series()
    return pen.colors[names[0]] if names else pen.theme.ink


def _write_legend(pen: Pen, entries: Sequence[Entry], taken: Corner | None) -> Any:
    """In the emptiest corner that is left, on axes that others have laid out."""
    lines = ["\n".join(wrap(entry.text, _LONGEST_LINE)) or entry.text for entry in entries]
    size = _legend_size(pen, lines)
    width, height = _text_box(pen, [line for text in lines for line in text.split("\n")], size)
    corner = empty_corner(pen.panel, min(width + 0.14, 0.95), height * 1.12, taken=taken)
    across, up = "left" if corner.left else "right", "upper" if corner.side == "top" else "lower"
    place = {"loc": f"{up} {across}", "bbox_to_anchor": corner.place(0.02)}
    return _legend(pen, pen.ax, entries, lines, size, **place)


def write_figure_legend(pen: Pen, figure: Any, *, columns: int) -> Any:
    """Below all panels of a figure of our own, which makes room for it."""
    entries = pen.panel.entries()
    if not entries:
        return None
    lines = [entry.text for entry in entries]
    size = max(_legend_size(pen, lines), 6.5)
    return _legend(pen, figure, entries, lines, size, loc="outside lower left", ncols=columns)


def _legend(
    pen: Pen, holder: Any, entries: Sequence[Entry], lines: Sequence[str], size: float, **place: Any
) -> Any:
    legend = holder.legend(
        handles=[_swatch(pen, entry) for entry in entries],
        labels=[str(k) for k in range(len(entries))],
        fontsize=size,
        labelcolor=pen.theme.ink,
        borderaxespad=0.5,
        borderpad=0.2,
        labelspacing=0.4,
        handlelength=1.9,
        handletextpad=0.7,
        facecolor=pen.theme.paper,
        edgecolor="none",
        framealpha=0.7,
        **place,
    )
    # As plain text: matplotlib reads $ as mathematics and leaves out what starts with "_".
    for written, text in zip(legend.get_texts(), lines, strict=True):
        written.set_parse_math(False)
        written.set_text(text)
    legend.set_zorder(6)
    return legend


def _swatch(pen: Pen, entry: Entry) -> Any:
    """A small example of the mark that a line of the legend stands for."""
    mark, color = entry.mark, pen.color(entry.mark)
    if isinstance(mark, Band | Hill) or (isinstance(mark, Steps) and mark.thick):
        patches = require("matplotlib.patches", caller="plot")
        own = mark.ink in ("series", "accent")
        alpha = pen.theme.band_opacity if own else pen.theme.neutral_opacity
        alpha = 0.55 if isinstance(mark, Hill) else alpha
        return patches.Patch(facecolor=color, edgecolor="none", alpha=alpha)
    lines = require("matplotlib.lines", caller="plot")
    dots = isinstance(mark, Points)
    marked = dots or (mark.ink == "series" and not pen.alone)
    width = {Trail: 4.0, Line: 1.4, Ticks: 0.6}.get(type(mark), 1.6)
    return lines.Line2D(
        [],
        [],
        color=color,
        linewidth=(1.1 if dots else width) * pen.scale,
        linestyle=DASHES[mark.dash] if isinstance(mark, Line) else "-",
        marker=pen.marker(mark.series) if marked else "",
        markersize=6.2 * pen.scale,
        markeredgecolor=pen.theme.paper,
        markeredgewidth=0.9 * pen.scale,
        solid_capstyle="round",
    )


def _legend_size(pen: Pen, texts: Sequence[str]) -> float:
    """As the notes, or as small as the longest entry and its line need to fit along the axes."""
    longest = max(len(line) for text in texts for line in text.split("\n"))
    most = USUAL_SIDE * pen.scale * 72 / (0.55 * longest + 3.5)
    usual = 0.92 * _text_size(pen)
    return max(min(usual, most), 0.6 * usual)
