"""Panels as matplotlib artists, in figures of our own or on the axes of others.

Every property is set on the artist itself: no style sheet, no `rcParams`, no `plt.show`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from calibrant._files import replaced_when_whole
from calibrant._optional import require
from calibrant.errors import InputError, TypeName
from calibrant.plotting.layout import fitted
from calibrant.plotting.looks import DARK, LIGHT, Theme, as_theme, shortened
from calibrant.plotting.matplotlib_marks import Pen, draw_mark
from calibrant.plotting.matplotlib_text import (
    earlier_panels,
    lines_below,
    remember,
    write_figure_legend,
    write_words,
)
from calibrant.plotting.panel import TITLE_LINE, Panel, Trail

__all__ = ["draw", "draw_grid", "lines_below", "new_axes", "new_figure", "save"]

_FORMATS = ("svg", "pdf", "png")


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
        Whether a legend may stand below the axes: not where others have drawn beside them.

    Notes
    -----
    What is drawn on axes that hold a panel already takes the next colours and markers, and its notes
    stand beside the earlier ones, each in its colour.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from calibrant.plotting.axis import Axis
    >>> from calibrant.plotting.panel import Line, Panel
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
    earlier = earlier_panels(ax)
    pen = Pen(ax, panel, chosen, start=sum(each.series for each in earlier))
    artists: dict[str, list[Any]] = {}
    for depth, mark in enumerate(panel.marks):
        drawn = draw_mark(mark, pen)
        # The first lies on top of its fellows, but under a trail that fades.
        beneath = isinstance(mark, Trail)
        for place, artist in enumerate(drawn if beneath else reversed(drawn)):
            artist.set_zorder(2 + depth / 100 + place / 100_000)
        artists.setdefault(mark.key, []).extend(drawn)
    artists |= write_words(pen, earlier, outside=legend_outside)
    remember(pen, artists)
    return artists


def _check_axes(ax: Any) -> None:
    axes = require("matplotlib.axes", caller="plot")
    if not isinstance(ax, axes.Axes):
        several = isinstance(ax, np.ndarray | list)
        raise InputError(
            "must be a matplotlib Axes",
            argument="ax",
            seen=TypeName.of(ax),
            cure="Take one of them, such as ax[0]." if several else (),
        )
    if ax.name != "rectilinear":
        raise InputError(
            "must have rectangular axes",
            argument="ax",
            seen=ax.name,
            cure="Make one with plt.subplots().",
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
        elif getattr(ax, f"get_{name}scale")() != "linear":
            getattr(ax, f"set_{name}scale")("linear")
        values, labels = zip(*axis.ticks(), strict=True)
        getattr(ax, f"set_{name}ticks")(values, labels=labels)
        getattr(ax, f"set_{name}ticks")([], minor=True)
        for label in getattr(ax, f"get_{name}ticklabels")() if axis.names else ():
            label.set_parse_math(False)
        getattr(ax, f"set_{name}lim")(axis.low, axis.high)
        getattr(ax, f"set_{name}label")(axis.caption)


def new_axes(
    rows: int = 1,
    columns: int = 1,
    *,
    caller: str,
    theme: Theme | None = None,
    figsize: tuple[float, float] | None = None,
    square: bool = True,
    entries: int = 0,
    titles: int = 0,
) -> Any:
    """Axes in a new pyplot figure, so that notebooks and scripts show it as any other.

    Without a theme they look as the user's own settings have it. There is room for a legend with so
    many entries below, and for so many lines of titles above.
    """
    pyplot = require("matplotlib.pyplot", caller=caller)
    across = 1.0 + 3.4 * columns + (0.0 if square else 1.8)
    size = figsize or (across, 0.9 + 3.4 * rows + 0.2 * entries + 0.25 * titles)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="compressed")
    for ax in axes.flat:
        if square:
            ax.set_box_aspect(1)
        if theme is not None:
            _dress(ax, theme, 10.0)
    if theme is not None:
        figure.set_facecolor(theme.paper)
    return axes


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    theme: Theme,
    width: float,
    caller: str,
    height: float | None = None,
    entries: int = 0,
    titles: int = 0,
) -> tuple[Any, Any]:
    """Build a figure outside pyplot, dressed in a theme, `width` inches wide.

    Panels are square, unless a `height` is given; there is room for a legend with so many entries below,
    and for so many lines of titles above.
    """
    figures = require("matplotlib.figure", caller=caller)
    panel = width / columns
    words = (0.048 * entries + 0.03 * (entries > 0)) * panel + 0.06 * panel * titles
    tall = rows * panel + words if height is None else height + 0.2 * titles
    figure = figures.Figure(figsize=(width, tall), layout="compressed", facecolor=theme.paper)
    axes = figure.subplots(rows, columns, squeeze=False)
    size = float(np.clip(2.55 * panel, 6.0, 26.0 if height is None else 11.0))
    for ax in axes.flat:
        if height is None:
            ax.set_box_aspect(1)
        _dress(ax, theme, size)
    return figure, axes


def _dress(ax: Any, theme: Theme, size: float) -> None:
    ax.set_facecolor(theme.paper)
    ax.tick_params(
        colors=theme.ink,
        labelsize=size * 0.9,
        length=size * 0.3,
        width=size * 0.07,
        color=theme.neutral,
    )
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(theme.neutral)
        spine.set_linewidth(size * 0.07)
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(theme.ink)
        label.set_fontsize(size)


@contextmanager
def _reproducible() -> Iterator[None]:
    """Text stays text, and nothing in the file depends on the clock or on chance."""
    matplotlib = require("matplotlib", caller="save")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "calibrant", "pdf.fonttype": 42}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Text stays in the file, for whoever has a font with these characters.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def save(figure: Any, path: str | Path, *, dpi: int = 200) -> Path:
    """Write a figure as SVG, PDF or PNG: the same figure gives the same bytes."""
    if not isinstance(path, str | PathLike):
        raise InputError(
            "must be the name of a file",
            argument="path",
            seen=path,
            cure="Pass a path that ends in .png, .svg or .pdf.",
        )
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in _FORMATS:
        raise InputError(
            "must end in .svg, .pdf or .png",
            argument="path",
            seen=target.name,
            cure="Give the file one of these endings.",
        )
    metadata: Any = {
        "svg": {"Date": None, "Creator": "calibrant"},
        "pdf": {"CreationDate": None, "Creator": "calibrant", "Producer": "calibrant"},
        "png": {"Software": "calibrant"},
    }[kind]
    with _reproducible(), replaced_when_whole(target) as file:
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return target


def draw_grid(
    panels: Sequence[Panel], axes: Any, *, theme: Theme | None, shared: bool, title: str | None
) -> list[dict[str, list[Any]]]:
    """Draw panels side by side with one legend for all, and return the artists of each.

    Where the axes are shared, ticks and labels stand at the outer panels only: at the lowest of each
    column, also where the last row is not full.
    """
    flat = list(axes.flat)
    across = axes.shape[1]
    drawn = []
    for k, (ax, panel) in enumerate(zip(flat, panels, strict=False)):
        drawn.append(draw(replace(panel, keyed=False), ax, theme=theme))
        if not shared:
            continue
        if k:
            ax.sharex(flat[0])
            ax.sharey(flat[0])
        lowest = k + across >= len(panels)
        ax.tick_params(labelbottom=lowest, labelleft=k % across == 0)
        if not lowest:
            ax.set_xlabel("")
        if k % across:
            ax.set_ylabel("")
    for ax in flat[len(panels) :]:
        ax.set_visible(False)
    figure = flat[0].figure
    if title:
        lines = wrap(shortened(str(title), TITLE_LINE * across), TITLE_LINE * across)
        above = figure.suptitle("\n".join(lines), color=flat[0].title.get_color())
        above.set_parse_math(False)
    said = {mark.says or id(mark): mark for panel in panels for mark in panel.marks}
    every = replace(panels[0], marks=tuple(said.values()))  # some have marks that others have not
    pen = Pen(flat[0], every, theme or _theme_of(flat[0]))
    write_figure_legend(pen, figure, columns=min(across, 2))
    return drawn
