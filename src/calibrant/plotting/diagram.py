"""Base of all diagrams: drawing on axes of others or in a figure of their own, files, and their data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number, require_choice
from calibrant._optional import find, require
from calibrant.errors import InputError, show_value
from calibrant.plotting.artists import display_name, next_color, require_axes, theme_of
from calibrant.plotting.frame import (
    Frame,
    FrameOptions,
    Layout,
    framed,
    set_names,
    svg_of,
    write,
    write_legend,
)
from calibrant.plotting.themes import LIGHT, Theme, as_theme

__all__ = ["Diagram", "Plot", "Style", "StyleOptions", "require_width", "shared", "split_look"]

FRAMES = ("pandas", "polars", "pyarrow")
SHARED = "calibrant-shared"
"""Mark of artists that diagrams on the same axes share: the diagonal and the histogram."""


class StyleOptions(TypedDict, total=False):
    """Looks of the main artist, as matplotlib has them."""

    color: Any
    label: str | None
    linewidth: float | None
    linestyle: Any
    alpha: float | None


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

    @classmethod
    def of(cls, theme: Theme, color: Any, look: StyleOptions, *, beside: bool = False) -> Style:
        """The look that was asked for, in this colour where none was."""
        return cls(
            theme,
            look.get("color", color),
            label=look.get("label"),
            linewidth=look.get("linewidth"),
            linestyle=look.get("linestyle"),
            alpha=look.get("alpha"),
            beside_others=beside,
        )

    @property
    def of_line(self) -> dict[str, Any]:
        """Keywords of a line artist."""
        given = {"label": self.label, "linestyle": self.linestyle, "alpha": self.alpha}
        return {"color": self.color, **{k: v for k, v in given.items() if v is not None}}

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


class Diagram(ABC):
    """Statistics that draw themselves; the looks never change a number."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    @abstractmethod
    def label(self) -> str:
        """The number as text."""

    @abstractmethod
    def frame(self) -> Frame:
        """Title, labels, limits and legend of a picture of its own."""

    @abstractmethod
    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Draw on axes; the artists by what they show."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """The main table of the diagram: named columns of equal length."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""

    def to_frame(self, backend: str | None = None) -> Any:
        """The columns as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of these that is installed.
        """
        import narwhals as nw

        if backend is None:
            backend = next((name for name in FRAMES if find(name) is not None), FRAMES[0])
        require_choice("backend", backend, FRAMES)
        require(backend, caller=f"{type(self).__name__}.to_frame")
        return nw.from_dict(self.columns(), backend=cast(Any, backend)).to_native()

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        **look: Any,
    ) -> Plot:
        """Draw with matplotlib, on `ax` or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Its title, legend and layout stay as they are; axis labels are set where there are
            none, and limits take in what was drawn.
        theme : {"light", "dark", "print"} or Theme, optional
            By default whichever fits the background.
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
        style, frame = split_look(look, new=ax is None)
        if ax is None:
            require("matplotlib.pyplot", caller=f"{type(self).__name__}.plot")
            chosen = LIGHT if theme is None else as_theme(theme)
            return in_figure(self, chosen, style, frame, figsize, pyplot=True)
        require_axes(ax)
        if figsize is not None:
            raise InputError(
                "`figsize` is for a new figure; these axes have one.", argument="figsize"
            )
        chosen = theme_of(ax) if theme is None else as_theme(theme)
        return Plot(ax, ax.figure, on_axes(self, ax, chosen, style))

    def save(
        self,
        path: str | PathLike[str],
        *,
        theme: str | Theme = "light",
        width: float | None = None,
        dpi: int = 200,
        **look: Any,
    ) -> Path:
        """Write the picture as SVG, PDF (both with real text) or PNG.

        Parameters
        ----------
        path : str or Path
            Its ending chooses the format. The file appears whole or not at all.
        theme : {"light", "dark", "print"} or Theme
            Colours.
        width : float, optional
            Inches; the height follows.
        dpi : int
            Resolution of a PNG.
        **look
            As in `plot`.
        """
        return write(path, lambda: self._figure(theme, width, look), dpi)

    def to_svg(
        self, *, theme: str | Theme = "light", width: float | None = None, **look: Any
    ) -> str:
        """The picture as SVG text."""
        return svg_of(self._figure(theme, width, look))

    def _figure(self, theme: str | Theme, width: float | None, look: Mapping[str, Any]) -> Any:
        style, frame = split_look(look, new=True)
        size = None if width is None else (require_width(width), None)
        return in_figure(self, as_theme(theme), style, frame, size).figure

    def _repr_html_(self) -> str:
        return f"<div>{self.to_svg()}</div>"


def shared(artist: Any) -> Any:
    """The artist, marked as one that other diagrams on the axes need not draw again."""
    artist.set_gid(SHARED)
    return artist


def split_look(look: Mapping[str, Any], *, new: bool) -> tuple[StyleOptions, FrameOptions]:
    """Keywords of the artist and of the frame; unknown ones are refused, with the nearest that exists."""
    styles, frames = StyleOptions.__annotations__, FrameOptions.__annotations__
    for key, value in look.items():
        if key not in styles and key not in frames:
            close = get_close_matches(key, [*styles, *frames, "theme", "figsize", "ax"], n=1)
            near = f"Did you mean `{close[0]}`? " if close else ""
            raise InputError(
                f"`{key}` is no keyword of this picture.",
                argument=key,
                hint=f"{near}There are {', '.join([*styles, *frames])}.",
            )
        if key in frames and not new and value is not None:
            raise InputError(
                f"`{key}` is for a new figure; on axes of your own, set it there.", argument=key
            )
    _require_values(look)
    style: Any = {key: look[key] for key in styles if look.get(key) is not None}
    if "label" in style:
        style["label"] = display_name(style["label"])
    frame: Any = {key: look[key] for key in frames if key in look}
    return style, frame


def _require_values(look: Mapping[str, Any]) -> None:
    def refuse(key: str, rule: str) -> None:
        raise InputError(f"`{key}` must be {rule}; it is {show_value(look[key])}.", argument=key)

    def within(key: str, most: float) -> bool:
        value = look.get(key)
        return value is None or (is_number(value) and 0.0 <= value <= most)

    if look.get("color") is not None:
        from matplotlib.colors import is_color_like

        if not is_color_like(look["color"]):
            refuse("color", "a matplotlib colour")
    if not within("alpha", 1.0):
        refuse("alpha", "between 0 and 1")
    if not within("linewidth", 1000.0):
        refuse("linewidth", "a number of points")
    if not isinstance(look.get("legend", True), bool):
        refuse("legend", "True or False")
    for key in ("xlim", "ylim"):
        limits = look.get(key)
        if limits is None:
            continue
        pair = isinstance(limits, Sequence | np.ndarray) and len(limits) == 2
        if not pair or not all(is_number(end) and np.isfinite(end) for end in limits):
            refuse(key, "a pair of numbers")
        if limits[0] >= limits[1]:
            refuse(key, "increasing")


def require_width(width: Any) -> float:
    """`width` as a float, if a figure can be as wide."""
    if not is_number(width) or not 1.0 <= width <= 100.0:
        raise InputError(
            f"`width` must be 1 to 100 inches; it is {show_value(width)}.", argument="width"
        )
    return float(width)


def on_axes(diagram: Diagram, ax: Any, theme: Theme, look: StyleOptions) -> dict[str, list[Any]]:
    """Draw on axes of others: no title, no legend, and nothing twice that diagrams share."""
    beside = any(artist.get_gid() == SHARED for artist in ax.get_children())
    empty = not ax.has_data()
    color = None if "color" in look else next_color(ax)
    style = Style.of(theme, color, look, beside=beside)
    frame = diagram.frame()
    drawn = diagram.artists(ax, style)
    for axis, ends in (("x", frame.xlim), ("y", frame.ylim)):
        low, high = getattr(ax, f"get_{axis}lim")()
        if not empty:
            ends = (min(low, ends[0]), max(high, ends[1]))
        getattr(ax, f"set_{axis}lim")(*ends)
        if not getattr(ax, f"get_{axis}label")():
            getattr(ax, f"set_{axis}label")(getattr(frame, f"{axis}label"))
    if frame.names:
        set_names(ax, frame.names)
    return drawn


def in_figure(
    diagram: Diagram,
    theme: Theme,
    look: StyleOptions,
    asked: FrameOptions,
    figsize: tuple[float, float | None] | None = None,
    *,
    pyplot: bool = False,
) -> Plot:
    """Draw in a new figure, with title and legend."""
    frame = framed(diagram.frame(), asked)
    layout = Layout.of(
        [frame], theme, legend_lines=len(frame.legend), figsize=figsize, pyplot=pyplot
    )
    (ax,) = layout.axes
    style = Style.of(theme, theme.series[0], look)
    drawn = diagram.artists(ax, style)
    ax.set_xlim(*frame.xlim)
    ax.set_ylim(*frame.ylim)
    texts = {
        key: text.replace("This model", style.label) if style.label else text
        for key, text in frame.legend.items()
    }
    write_legend(layout, drawn, texts, theme)
    return Plot(ax, layout.figure, drawn)
