"""What every diagram can do with its data: draw it, save it, hand it on."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant._optional import find, require
from calibrant.errors import InputError, Option
from calibrant.measures.result_record import plain
from calibrant.plotting.axis import Axis
from calibrant.plotting.bands import read_only
from calibrant.plotting.closer_view import CLOSER
from calibrant.plotting.looks import (
    Color,
    Theme,
    as_color,
    as_name,
    as_theme,
    require_pixels,
    require_print_size,
    shortened,
)
from calibrant.plotting.panel import Mark, Panel, broken
from calibrant.plotting.verdict import UNSAID, Verdict

__all__ = [
    "CHART_POINTS",
    "SAVED_POINTS",
    "Diagram",
    "Drawn",
    "framed",
    "laid_out",
    "plain",
    "require_figsize",
    "require_looks",
    "series_of",
    "who",
]

Floats = NDArray[np.float64]

FRAME = ("title", "subtitle", "legend", "xlim", "ylim")
"""What every picture can be asked for, besides the looks of its own kind."""
_FRAMES = ("pandas", "polars", "pyarrow")
_OTHER_FRAMES = ("modin", "cudf")
# A chart carries its data as text: enough points for a smooth curve, and no more.
CHART_POINTS = 96
# Finer than a printer, and a file of some tens of kilobytes.
SAVED_POINTS = 240
_LARGEST_FIGURE = 100.0
USUAL, WIDE = 4.2, 6.0  # inches of a saved picture, and of one with names along an axis
LONGEST_TITLE = 120
NOTE_LINE = 36  # most characters in a line of a verdict among the notes


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a plot made: the axes, their figure, and the artists by what they show."""

    ax: Any
    figure: Any
    artists: Mapping[str, list[Any]]

    def __repr__(self) -> str:
        return f"Drawn({', '.join(self.artists)})"


class Diagram(ABC):
    """Data of a picture. Looks are chosen when it is drawn, and never change a number."""

    def __post_init__(self) -> None:
        read_only(self)

    @property
    @abstractmethod
    def label(self) -> str:
        """The number as the picture writes it."""

    @property
    def said(self) -> Verdict:
        """What the picture shows, in words; empty ones where nothing is said."""
        return UNSAID

    @property
    def verdict(self) -> str:
        """What the picture shows, in one sentence."""
        return self.said.sentence

    @property
    def short_verdict(self) -> str:
        """The same in the few words that stand beside a name."""
        return self.said.short

    @abstractmethod
    def panel(self, *args: Any, **look: Any) -> Panel:
        """The marks of the picture, for the renderers of `calibrant.plotting`."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """The main table of the diagram: named columns of equal length."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""

    @classmethod
    def looks(cls) -> set[str]:
        """What the panel of this kind of diagram can be asked for."""
        return set(inspect.signature(cls.panel).parameters) - {"self"}

    def picture(self, **look: Any) -> Panel:
        """The panel with its title, legend and limits: all that `plot`, `chart` and `save` draw.

        Parameters
        ----------
        **look
            As in `panel`, and of the frame: `title` and `subtitle` above the axes (a smooth diagram says
            there what it shows, unless you pass a text or False); `legend=False` for a picture without
            one; `xlim` and `ylim`, the ends of the axes. An unknown name is refused, with the one that was
            probably meant.
        """
        require_looks(look, self.looks() | set(FRAME))
        own = {name: value for name, value in look.items() if name not in FRAME}
        return framed(self.panel(**own), look)

    def to_frame(self, backend: Any = None) -> Any:
        """The columns as a data frame.

        Parameters
        ----------
        backend : str or narwhals backend, optional
            "pandas", "polars", "pyarrow" or another that narwhals knows; by default the first of these
            that is installed.
        """
        import narwhals as nw

        caller = f"{type(self).__name__}.to_frame"
        if backend is None:
            backend = next((name for name in _FRAMES if find(name) is not None), _FRAMES[0])
        try:
            if isinstance(backend, str):
                if backend not in _FRAMES + _OTHER_FRAMES:
                    raise ValueError(backend)
                require(backend, caller=caller)
            return nw.from_dict(self.columns(), backend=backend).to_native()
        except (TypeError, ValueError, AssertionError) as error:  # narwhals raises any of these
            raise InputError(
                "must be one of {frames} or another that makes data frames",
                argument="backend",
                seen=backend,
                cure="Leave it out for the one that is installed.",
                frames=", ".join(map(repr, _FRAMES)),
            ) from error

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        **look: Any,
    ) -> Drawn:
        """Draw with matplotlib, on `ax` or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Only the labels, limits and scales of the axes are set.
        theme : {"light", "dark", "print"}, optional
            By default whichever fits the background of the axes.
        figsize : pair of float, optional
            Inches, of a new figure.
        **look
            As in `picture`: `title`, `subtitle`, `legend`, `xlim`, `ylim`, and the looks of `panel`.

        Returns
        -------
        Drawn
            With `ax`, `figure` and `artists`.
        """
        from calibrant.plotting.glyphs import readable
        from calibrant.plotting.matplotlib import draw, lines_below, new_axes

        picture = self.picture(**look)
        made = ax is None
        require_figsize(figsize, ax)
        if made:
            chosen = None if theme is None else as_theme(theme)
            ax = new_axes(
                caller=f"{type(self).__name__}.plot",
                theme=chosen,
                figsize=figsize,
                square=not picture.y.names,
                entries=lines_below(picture),
                titles=picture.titles(),
            )[0, 0]
        artists = draw(readable(picture), ax, theme=theme, legend_outside=made)
        return Drawn(ax, ax.figure, artists)

    def chart(
        self, *, theme: str | Theme = "light", width: int = 340, height: int = 340, **look: Any
    ) -> Any:
        """Draw with Altair: hover over the curve to read it. Composes with ``|`` and ``&``."""
        from calibrant.plotting.altair import chart

        require_pixels(width=width, height=height)
        panel = self.picture(**look).thinned(CHART_POINTS)
        return chart([panel], theme=theme, width=width, height=height)

    def save(
        self,
        path: str | Path,
        *,
        width: float | None = None,
        theme: str | Theme = "light",
        dpi: int = 200,
        **look: Any,
    ) -> Path:
        """Write the picture as SVG, PDF (both with real text) or PNG.

        Parameters
        ----------
        path : str or Path
            Its ending chooses the format.
        width : float, optional
            In inches: 3.3 for a column of a paper, 6 or more for a slide. Text and lines scale. By
            default 4.2, or 6 where names stand along an axis.
        theme : {"light", "dark", "print"}
            Colours.
        dpi : int
            Resolution of a PNG.
        **look
            As in `picture`.
        """
        from calibrant.plotting.matplotlib import draw, lines_below, new_figure, save

        colors = as_theme(theme)
        panel = self.picture(**look).thinned(SAVED_POINTS)
        if width is None:
            width = WIDE if panel.y.names else USUAL
        require_print_size(width, dpi)
        figure, axes = new_figure(
            theme=colors,
            width=width,
            caller=f"{type(self).__name__}.save",
            height=1.5 + sum(0.26 + 0.16 * name.count("\n") for name in panel.y.names)
            if panel.y.names
            else None,
            entries=lines_below(panel),
            titles=panel.titles(),
        )
        draw(panel, axes[0, 0], theme=colors, legend_outside=True)
        return save(figure, path, dpi=dpi)

    def to_svg(
        self,
        *,
        width: int = 340,
        height: int = 390,
        theme: str | Theme | None = None,
        **look: Any,
    ) -> str:
        """A small SVG, written without any plotting library; by default in the colours of its page."""
        from calibrant.plotting.svg import render

        require_pixels(width=width, height=height)
        panel = self.picture(**look).thinned(int(width))
        return render(panel, width=width, height=height, theme=theme)

    def _repr_html_(self) -> str:
        return f"<div>{self.to_svg()}</div>"


def framed(panel: Panel, look: Mapping[str, Any]) -> Panel:
    """The panel under its title, with or without its legend, between the limits asked for."""
    x, y = (_limited(getattr(panel, side), f"{side}lim", look.get(f"{side}lim")) for side in "xy")
    keyed = look.get("legend", True)
    if not isinstance(keyed, bool):
        raise InputError(
            "must be True or False",
            argument="legend",
            seen=keyed,
            cure="Leave it out to show one where it is needed.",
        )
    title = shortened(as_name(look.get("title")), LONGEST_TITLE)
    if look.get("xlim") is not None or look.get("ylim") is not None:
        panel = replace(panel, marks=tuple(mark for mark in panel.marks if mark.key != CLOSER))
    panel = replace(panel, keyed=keyed, title=title, x=x, y=y)
    asked = look.get("subtitle")
    if asked is None or asked is True:
        return panel
    subtitle = "" if asked is False else shortened(as_name(asked), LONGEST_TITLE)
    said = broken(panel.subtitle, NOTE_LINE) if subtitle and panel.judged else []
    return replace(panel, subtitle=subtitle, judged=False, notes=(*said, *panel.notes))


def _limited(axis: Axis, name: str, limits: Any) -> Axis:
    if limits is None:
        return axis
    pair = isinstance(limits, Sequence | np.ndarray) and len(limits) == 2
    if not pair or not all(is_number(end) and np.isfinite(end) for end in limits):
        raise InputError(
            "must be a pair of numbers",
            argument=name,
            seen=limits,
            cure="Pass the ends of the axis, such as (0, 0.2).",
        )
    low, high = (float(end) for end in limits)
    if low >= high or (axis.scale == "logit" and not 0 < low < high < 1):
        raise InputError(
            "must increase, strictly between 0 and 1 on a logit axis"
            if axis.scale == "logit"
            else "must increase",
            argument=name,
            seen=(low, high),
            cure="Pass the lower end first.",
        )
    return replace(axis, low=low, high=high, shown=None)


def require_looks(look: Iterable[str], known: set[str]) -> None:
    """Refuse a keyword that no picture of this kind has, and name the one that was probably meant."""
    for key in look:
        if key in known:
            continue
        close = get_close_matches(key, sorted(known), n=1, cutoff=0.6)
        cures = [f"There are {', '.join(sorted(known))}."]
        if close:
            cures.insert(0, "Did you mean {option}?")
        raise InputError(
            "is nothing that this picture can be asked for",
            argument=key,
            cure=cures,
            option=Option(close[0]) if close else "",
        )


def require_figsize(figsize: Any, ax: Any) -> None:
    """Refuse a size that no figure has, or one for axes that are there."""
    if figsize is None:
        return
    if ax is not None:
        raise InputError(
            "is for a new figure; these axes have one", argument="figsize", cure="Leave it out."
        )
    pair = isinstance(figsize, Sequence | np.ndarray) and len(figsize) == 2
    if not pair or not all(is_number(side) and 1.0 <= side <= _LARGEST_FIGURE for side in figsize):
        raise InputError(
            "must be two numbers of inches",
            argument="figsize",
            seen=figsize,
            cure="Pass width and height, such as (6, 6).",
        )


def laid_out(
    marks: Sequence[Mark],
    axes: tuple[Axis, Axis],
    notes: Sequence[str],
    *,
    name: str,
    color: Color | None,
    finding: str = "",
    verdict: str = "",
) -> Panel:
    """The panel of one diagram: its name above the notes, its series in the colour asked for."""
    colors = {} if color is None else {series_of(name): as_color(color)}
    named = [shortened(name, 48)] if name else []
    return Panel(
        tuple(marks),
        *axes,
        notes=(*named, *notes),
        colors=colors,
        labels={series_of(name): " · ".join([*named, notes[0]])},
        finding=" · ".join([*named, finding]) if finding else "",
        subtitle=verdict,
        judged=bool(verdict),
    )


def who(name: str) -> str:
    """What the legend calls a model."""
    return shortened(name) if name else "this model"


def series_of(name: str) -> str:
    """What the marks of a diagram with this name belong to."""
    return name or "model"
