"""Base of all diagrams: drawing on axes of others or in a figure of their own, files, and their data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, Unpack

from numpy.typing import NDArray

from calibrant._arguments import is_number, require_number
from calibrant._optional import require
from calibrant.errors import InputError, invalid
from calibrant.measures.result_record import Record, frame_of, plain, rows_text
from calibrant.plotting.artists import (
    SHARED,
    attributes,
    display_name,
    histogram,
    next_color,
    require_axes,
    straight,
    theme_of,
)
from calibrant.plotting.frame import (
    FRAMES,
    LARGEST_FIGURE,
    PREDICTED,
    Frame,
    Layout,
    framed,
    lay_out,
    set_names,
    svg_of,
    write,
    write_legend,
)
from calibrant.plotting.themes import LIGHT, Theme, as_theme
from calibrant.plotting.verdict import Verdict

Size = tuple[float, float | None]
STYLES = ("color", "label", "linewidth", "linestyle", "alpha")
PICTURE_OPTIONS = ("theme", "figsize")


class Look(TypedDict, total=False):
    """Keywords of the main artist, as in matplotlib, and of texts, limits and legend of a new figure."""

    color: Any
    c: Any
    label: str | None
    linewidth: float | None
    lw: float | None
    linestyle: Any
    ls: Any
    alpha: float | None
    title: str | None
    subtitle: str | None
    xlabel: str | None
    ylabel: str | None
    xlim: tuple[float, float] | None
    ylim: tuple[float, float] | None
    legend: bool | None


class PictureLook(Look, total=False):
    """Keywords of a picture in a file; the arrangement is of several diagrams."""

    layout: Literal["overlay", "grid", "forest"] | None
    columns: int | None


@dataclass(frozen=True)
class Style:
    """Looks of a diagram on axes; None is the default of the diagram."""

    theme: Theme
    color: Any
    label: str | None = None
    linewidth: float | None = None
    linestyle: Any = None
    alpha: float | None = None
    beside_others: bool = False
    """What diagrams share is on the axes already, and bands must not hide each other."""

    @property
    def of_point(self) -> dict[str, Any]:
        """Keywords of dots."""
        given = {"label": self.label, "alpha": self.alpha}
        return {"color": self.color, **{k: v for k, v in given.items() if v is not None}}

    def of_line(self, width: float | None = None) -> dict[str, Any]:
        """Keywords of a line, as wide as this unless another width was asked for."""
        dashes = {} if self.linestyle is None else {"linestyle": self.linestyle}
        width = width if self.linewidth is None else self.linewidth
        return {**self.of_point, **dashes, "linewidth": width, "zorder": 3}

    @property
    def of_band(self) -> dict[str, Any]:
        """Keywords of the confidence band."""
        alpha = self.theme.band_alpha * (1.0 if self.alpha is None else self.alpha)
        return {
            "color": self.color,
            "alpha": alpha * (0.5 if self.beside_others else 1.0),
            "zorder": 2.5,
        }

    @property
    def of_reference(self) -> dict[str, Any]:
        """Keywords of the consistency band."""
        return {"color": self.theme.reference, "alpha": self.theme.reference_alpha, "zorder": 1.0}


@dataclass(frozen=True, eq=False)
class Plot:
    """Product of a plot: the axes, their figure, and the artists by what they show.

    Change them as any artist: ``plot.artists["curve"][0].set_color("C3")``.
    """

    ax: Any
    figure: Any
    artists: Mapping[str, list[Any]]

    def __repr__(self) -> str:
        return f"Plot({', '.join(self.artists)})"

    @property
    def main(self) -> Any:
        """The artist that has the label."""
        found = (self.artists[key] for key in ("curve", "points") if key in self.artists)
        return next(found, next(iter(self.artists.values())))[0]


class Picture(ABC):
    """A drawing for files and notebooks; the looks never change a number."""

    @abstractmethod
    def _figure(self, theme: Theme, figsize: Size | None, look: dict[str, Any]) -> Any:
        """The picture, in a figure that pyplot does not know."""

    def save(
        self,
        path: str | PathLike[str],
        *,
        theme: str | Theme = "light",
        width: float | None = None,
        dpi: int = 200,
        **look: Unpack[PictureLook],
    ) -> Path:
        """Write the picture as SVG, PDF (both with real text) or PNG.

        Parameters
        ----------
        path : str or Path
            Its ending chooses the format. The file appears whole or not at all.
        theme : str or Theme
            Colours: a name in `calibrant.plotting.THEMES`, such as "dark" or "print", or a theme of your own.
        width : float, optional
            Inches; the height follows.
        dpi : int
            Resolution of a PNG.
        **look
            As in `plot`.
        """
        return write(path, lambda: self._sized(theme, width, look), dpi)

    def to_svg(
        self,
        *,
        theme: str | Theme = "light",
        width: float | None = None,
        **look: Unpack[PictureLook],
    ) -> str:
        """The picture as SVG text; parameters as in `save`."""
        return svg_of(self._sized(theme, width, look))

    def _sized(self, theme: str | Theme, width: float | None, look: Mapping[str, Any]) -> Any:
        require("matplotlib.figure", caller=f"{type(self).__name__}.save")
        if width is not None:
            width = require_number("width", width, 0.99, LARGEST_FIGURE)
        size = None if width is None else (width, None)
        return self._figure(as_theme(theme), size, dict(look))

    def _repr_html_(self) -> str:
        return f"<div>{self.to_svg()}</div>"


class Diagram(Picture, Record):
    """Statistics that draw themselves."""

    kind: ClassVar[str] = ""
    table: ClassVar[tuple[str, ...]] = ()
    """Attributes that are the columns."""
    assessment: Any = None
    verdict: Any = Verdict("", "", True)
    """What was found, where the diagram has a test."""
    scalars: ClassVar[tuple[str, ...]] = ()
    """Attributes that are no columns."""
    source: ClassVar[str] = ""
    """Attribute with the result that is drawn, where that knows all numbers."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The number as text."""

    @property
    def short_label(self) -> str:
        """The number without its name, to stand beside others."""
        return self.label

    @abstractmethod
    def frame(self) -> Frame:
        """Title, labels, limits and legend of a picture of its own."""

    @abstractmethod
    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Draw on axes; the artists by what they show."""

    def __repr__(self) -> str:
        counted: Any = getattr(self, self.source) if self.source else self
        rows = rows_text(counted.n, counted.dropped)
        return f"{type(self).__name__}({self.label}, {rows})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The main table of the diagram: named columns of equal length."""
        return {name: getattr(self, name) for name in self.table}

    def numbers(self) -> dict[str, Any]:
        """All that is not a column."""
        return {name: getattr(self, name) for name in self.scalars}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON; NaN becomes None."""
        all_of_it = {"curve": self.columns()}
        if self.source:
            all_of_it = getattr(self, self.source).to_dict()
        return dict(plain({"kind": self.kind, **self.numbers(), **all_of_it}))

    def to_frame(self, backend: str | None = None) -> Any:
        """The columns as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the library of the last column or frame that came in, or the first that is installed.
        """
        return frame_of(self.columns(), backend)

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        **look: Unpack[Look],
    ) -> Plot:
        """Draw with matplotlib, on `ax` or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Its title, legend and layout stay as they are; axis labels are set where there are
            none, and limits take in what was drawn, also on axes that share them.
        theme : str or Theme, optional
            As in `save`; by default whichever fits the background.
        figsize : pair of float, optional
            Inches, of a new figure.
        **look
            `color`, `label`, `linewidth`, `linestyle` and `alpha` of the main artist, as in matplotlib;
            `ax.legend()` knows the label. Of a new figure, also `title`, `subtitle`, `xlabel`, `ylabel`
            ("" for none), `xlim`, `ylim` and `legend` (False for none).

        Returns
        -------
        Plot
            With `ax`, `figure` and `artists`.
        """
        if ax is None:
            return self._alone(LIGHT if theme is None else theme, figsize, look, pyplot=True)
        style, _ = split_look(look, new=False)
        if figsize is not None:
            raise InputError(
                "`figsize` is for a new figure; these axes have one.", argument="figsize"
            )
        return on_axes(self, ax, theme, style)

    def _figure(self, theme: Theme, figsize: Size | None, look: dict[str, Any]) -> Any:
        return self._alone(theme, figsize, look).figure

    def _alone(
        self,
        theme: str | Theme,
        figsize: Size | None,
        look: Mapping[str, Any],
        *,
        pyplot: bool = False,
    ) -> Plot:
        """In a new figure, with title and legend."""
        colors = as_theme(theme)
        style, asked = split_look(look, new=True)
        frame = framed(self.frame(), asked)
        of = Style(colors, **{"color": colors.series[0], **style})
        texts = {
            key: text.replace("This model", of.label) if of.label else text
            for key, text in frame.legend.items()
        }
        layout = lay_out([frame], colors, legend=texts, figsize=figsize, pyplot=pyplot)
        (plot,) = draw(layout, [[(self, of)]])
        write_legend(layout, plot.artists, colors)
        return plot


def split_look(
    look: Mapping[str, Any], *, new: bool, beside: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keywords of the artist and of the frame; unknown ones are refused, with the nearest that exists.

    `beside` names further keywords of the function that was called.
    """
    lines = require("matplotlib.lines", caller="plot")
    look = require("matplotlib.cbook", caller="plot").normalize_kwargs(look, lines.Line2D)
    for key, value in look.items():
        if key not in (*STYLES, *FRAMES):
            known = [*beside, *PICTURE_OPTIONS, *STYLES, *FRAMES]
            close = get_close_matches(key, [*known, "ax"], n=1)
            near = f"Did you mean `{close[0]}`? " if close else ""
            raise InputError(
                f"`{key}` is no keyword of this picture.",
                argument=key,
                hint=f"{near}There are {', '.join(known)}.",
            )
        if key in FRAMES and not new and value is not None:
            raise InputError(
                f"`{key}` is for a new figure; on axes of your own, set it there.", argument=key
            )
        _require_look(key, value)
    style = {key: look[key] for key in STYLES if look.get(key) is not None}
    if "label" in style:
        style["label"] = display_name(style["label"])
    return style, {key: look[key] for key in FRAMES if look.get(key) is not None}


def _require_look(key: str, value: Any) -> None:
    """Refuse values of which matplotlib's errors, much later, do not name the keyword."""
    if value is None:
        return
    if key == "color" and not require("matplotlib.colors", caller="plot").is_color_like(value):
        raise invalid(key, 'be a colour of matplotlib, such as "C0" or "#0b62ad"', value)
    if key in ("title", "subtitle", "xlabel", "ylabel") and not isinstance(value, str):
        raise invalid(key, 'be text ("" for none)', value)
    if key in ("xlim", "ylim"):
        ends = list(value) if isinstance(value, Iterable) else []
        numbers = all(is_number(end) and isfinite(end) for end in ends)
        if len(ends) != 2 or not numbers or ends[0] == ends[1]:
            raise invalid(key, "be two different numbers, the ends of the axis", value)


def on_axes(diagram: Diagram, ax: Any, theme: str | Theme | None, look: Mapping[str, Any]) -> Plot:
    """Draw on axes of others: no title, no legend, and nothing twice that diagrams share."""
    require_axes(ax)
    chosen = theme_of(ax) if theme is None else as_theme(theme)
    beside = any(artist.get_gid() == SHARED for artist in ax.get_children())
    shared = {axis: getattr(ax, f"get_shared_{axis}_axes")().get_siblings(ax) for axis in "xy"}
    empty = {axis: not any(one.has_data() for one in shared[axis]) for axis in "xy"}
    color = look["color"] if "color" in look else next_color(ax)
    style = Style(chosen, **{**look, "color": color}, beside_others=beside)
    frame = diagram.frame()
    drawn = diagram.artists(ax, style)
    for axis, own, label in (("x", frame.xlim, frame.xlabel), ("y", frame.ylim, frame.ylabel)):
        low, high = getattr(ax, f"get_{axis}lim")()
        if empty[axis]:
            low, high = own
        ends = (min(low, own[0]), max(high, own[1]))
        getattr(ax, f"set_{axis}lim")(*ends)
        if not getattr(ax, f"get_{axis}label")():
            getattr(ax, f"set_{axis}label")(label)
        for one in shared[axis] if ends != own or ends != (low, high) else []:
            if getattr(one, f"get_{axis}label")().startswith(f"{PREDICTED} (axis "):
                getattr(one, f"set_{axis}label")(PREDICTED)  # it named ends that are no longer
    if frame.names:
        set_names(ax, frame.names)
    return Plot(ax, ax.figure, drawn)


def draw(layout: Layout, panels: Sequence[Sequence[tuple[Diagram, Style]]]) -> list[Plot]:
    """The diagrams of each of the layout's axes, whose limits they leave alone."""
    plots = []
    for (ax, frame), members in zip(layout.panels, panels, strict=True):
        plots += [Plot(ax, layout.figure, one.artists(ax, style)) for one, style in members]
        ax.set_xlim(*frame.xlim)
        ax.set_ylim(*frame.ylim)
    return plots


def reference(
    ax: Any, style: Style, rows: tuple[Any, Any], limits: tuple[float, float], rate: float | None
) -> dict[str, list[Any]]:
    """Diagonal, histogram and, given an event rate, the lines of skill: what diagrams share."""
    drawn = {"diagonal": [straight(ax, style.theme)]}
    if rate is not None:
        drawn |= attributes(ax, style.theme, rate)
    if rows[0].size:
        drawn["histogram"] = histogram(ax, *rows, limits, style.theme)
    return drawn
