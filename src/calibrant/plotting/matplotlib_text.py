"""The words of a panel on matplotlib axes: titles, notes and the legend, out of the way of the curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np

from calibrant._optional import require
from calibrant.plotting.layout import Corner, empty_corner, place_for_notes
from calibrant.plotting.matplotlib_marks import DASHES, USUAL_SIDE, Pen
from calibrant.plotting.panel import (
    Band,
    Dots,
    Entry,
    Hill,
    Line,
    Panel,
    Steps,
    Ticks,
    Trail,
    broken,
)

__all__ = ["earlier_panels", "lines_below", "remember", "write_figure_legend", "write_words"]

# Under this name an artist carries what the next panel on its axes must know of its own.
_MEMORY = "_calibrant_panel"
_LONGEST_LINE = 30
_NOTE = 8.6  # points, in a panel of the usual size


@dataclass(frozen=True, eq=False)
class Earlier:
    """A panel that was drawn on axes: how many series, and its note with the colour of the first."""

    series: int
    color: str
    note: Any
    above: Any = None  # the text with its verdict, which is of this panel alone
    title: str = ""


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
    above = artists.pop("verdict", [None])[0]
    note = note if getattr(note, "axes", None) is pen.ax else None  # not one in a legend
    memory = Earlier(len(names), _first_color(pen), note, above, pen.panel.title)
    setattr(last if note is None else note, _MEMORY, memory)


def write_words(pen: Pen, earlier: Sequence[Earlier], *, outside: bool) -> dict[str, list[Any]]:
    """Titles, notes and legend; a second panel on the same axes adds its notes to the first's."""
    artists: dict[str, list[Any]] = {}
    _make_way(pen, earlier)
    above = _write_titles(pen)
    if above is not None and pen.panel.judged:
        artists["verdict"] = [above]
    corner: Corner | None = None
    below: Sequence[str] = ()
    if pen.panel.notes:
        corner, lines = place_for_notes(pen.panel, _note_box)
        if corner is None and outside:
            below = lines
        else:
            corner = corner or empty_corner(pen.panel, *_text_box(pen, lines, _text_size(pen)))
            artists["note"] = [_write_notes(pen, corner, lines, earlier)]
    entries = pen.panel.entries()
    if (entries or below) and outside:
        legend = write_figure_legend(pen, pen.ax.figure, columns=1, notes=below)
        if below:
            artists["note"] = [legend.get_title()]
        if entries:
            artists["legend"] = [legend]
    elif entries and not earlier:
        artists["legend"] = [_write_legend(pen, entries, corner)]
    return artists


def lines_below(panel: Panel) -> int:
    """Lines below the axes of a figure of our own: the legend, and notes that have no room inside."""
    corner, lines = place_for_notes(panel, _note_box) if panel.notes else (None, ())
    return sum(entry.lines for entry in panel.entries()) + (0 if corner else len(lines))


def _make_way(pen: Pen, earlier: Sequence[Earlier]) -> None:
    """Leave no verdict above the curves of several panels, nor in place of a title of the caller's."""
    for each in earlier:
        if each.above is not None:
            each.above.set_text("\n".join(broken(each.title)))
    panel = pen.panel
    if not panel.judged:
        return
    if earlier:
        pen.panel = replace(panel, subtitle="", judged=False)
    elif not panel.title and any(pen.ax.get_title(loc) for loc in ("left", "center", "right")):
        notes = (*broken(panel.subtitle, _LONGEST_LINE), *panel.notes)
        pen.panel = replace(panel, subtitle="", judged=False, notes=notes)


def _write_titles(pen: Pen) -> Any:
    panel, ax = pen.panel, pen.ax
    lines = [line for text in (panel.title, panel.subtitle) for line in broken(text)]
    above = "\n".join(lines)
    if not above:
        return None
    size = ax.title.get_fontsize()
    alone = panel.judged and not panel.title
    if alone:
        size = min(size, 1.1 * _text_size(pen))
    style = {"color": ax.title.get_color(), "fontsize": size, "parse_math": False}
    # A verdict alone stands where a title would, and goes when the caller sets one.
    loc = "left" if panel.subtitle and not alone else "center"
    return ax.set_title(above, loc=loc, **style)


def _text_size(pen: Pen) -> float:
    return _NOTE * float(np.clip(pen.scale, 0.62, 3.0))


def _text_box(pen: Pen, lines: Sequence[str], size: float) -> tuple[float, float]:
    """Width and height that the lines take, in fractions of the panel."""
    return _box(lines, size / (72 * USUAL_SIDE * pen.scale))


def _note_box(lines: Sequence[str]) -> tuple[float, float]:
    """The same of notes in a panel of the usual size, or of any size that scales with its text."""
    return _box(lines, _NOTE / (72 * USUAL_SIDE))


def _box(lines: Sequence[str], letter: float) -> tuple[float, float]:
    width = max(map(len, lines)) * 0.55 * letter
    return min(width + 0.05, 0.9), len(lines) * 1.4 * letter


def _write_notes(pen: Pen, corner: Corner, lines: Sequence[str], earlier: Sequence[Earlier]) -> Any:
    """In the emptiest corner, or beside earlier notes; then each has the colour of its curve."""
    size = _text_size(pen)
    x, y = corner.place(0.04)
    place = {
        "x": x,
        "y": y - 0.015 if corner.side == "top" else y + 0.015,
        "ha": "left" if corner.left else "right",
        "va": "top" if corner.side == "top" else "bottom",
        "color": _first_color(pen) if earlier else pen.theme.ink,
    }
    notes = [each.note for each in earlier if each.note is not None]
    if notes:
        first = notes[0]
        x, y = first.get_position()
        texts = [note.get_text().split("\n") for note in notes]
        taken = sum(_text_box(pen, lines, size)[1] + 0.02 for lines in texts)
        above = first.get_va() == "top"
        place = {"x": x, "y": y - taken if above else y + taken}
        place |= {"ha": first.get_ha(), "va": first.get_va(), "color": _first_color(pen)}
        for each in earlier:
            if each.note is not None:
                each.note.set_color(each.color)
    return pen.ax.text(
        s="\n".join(lines),
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
    lines = [
        "\n".join(part for line in entry.text.split("\n") for part in wrap(line, _LONGEST_LINE))
        or entry.text
        for entry in entries
    ]
    size = _legend_size(pen, lines, USUAL_SIDE * pen.scale)
    width, height = _text_box(pen, [line for text in lines for line in text.split("\n")], size)
    corner = empty_corner(pen.panel, min(width + 0.14, 0.95), height * 1.12, taken=taken)
    across, up = "left" if corner.left else "right", "upper" if corner.side == "top" else "lower"
    place = {"loc": f"{up} {across}", "bbox_to_anchor": corner.place(0.02)}
    return _legend(pen, pen.ax, entries, lines, size, **place)


def write_figure_legend(pen: Pen, figure: Any, *, columns: int, notes: Sequence[str] = ()) -> Any:
    """Below all panels of a figure of our own, which makes room for it; first what found none inside."""
    entries = pen.panel.entries()
    if not entries and not notes:
        return None
    lines = [entry.text for entry in entries]
    width = float(figure.get_size_inches()[0]) / columns
    size = max(_legend_size(pen, lines, width), 6.5) if lines else _text_size(pen)
    place = {"loc": "outside lower left", "ncols": columns, "alignment": "left"}
    legend = _legend(pen, figure, entries, lines, size, **place)
    if notes:
        legend.set_title("\n".join(notes), prop={"size": _text_size(pen)})
        legend.get_title().set(color=pen.theme.ink, parse_math=False, linespacing=1.35)
    return legend


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
        if isinstance(mark, Band):
            return patches.Patch(**pen.shade(mark))
        alpha = 0.55 if isinstance(mark, Hill) else pen.theme.neutral_opacity
        return patches.Patch(facecolor=color, edgecolor="none", alpha=alpha)
    lines = require("matplotlib.lines", caller="plot")
    dots = isinstance(mark, Dots)
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


def _legend_size(pen: Pen, texts: Sequence[str], inches: float) -> float:
    """As the notes, or as small as the longest line and its swatch need to fit into so many inches."""
    longest = max(len(line) for text in texts for line in text.split("\n"))
    most = inches * 72 / (0.55 * longest + 3.5)
    usual = _text_size(pen)
    return max(min(usual, most), 0.6 * usual)
