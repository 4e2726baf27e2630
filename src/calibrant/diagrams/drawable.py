"""What every diagram can do with its data: draw it, save it, hand it on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import find, require
from calibrant.diagrams.bands import Bounds, read_only
from calibrant.drawing.axes import Axis, AxisScale
from calibrant.drawing.checks import Color, as_color, require_pixels, require_print_size, shortened
from calibrant.drawing.marks import Band, Ink, Line, Mark, Panel
from calibrant.drawing.themes import Theme, as_theme
from calibrant.errors import InputError
from calibrant.measures.record import plain

__all__ = [
    "Diagram",
    "Drawn",
    "calibrated_marks",
    "diagonal_of",
    "laid_out",
    "plain",
    "probability_axes",
    "require_choice",
    "require_count",
    "series_of",
]

Floats = NDArray[np.float64]

_FRAMES = ("pandas", "polars", "pyarrow")
_OTHER_FRAMES = ("modin", "cudf")
# A chart carries its data as text: enough points for a smooth curve, and no more.
CHART_POINTS = 96
# Finer than a printer, and a file of some tens of kilobytes.
SAVED_POINTS = 320


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

    @abstractmethod
    def panel(self, *args: Any, **look: Any) -> Panel:
        """The marks of the picture, for the renderers of `calibrant.drawing`."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """The main table of the diagram: named columns of equal length."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""

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
        except (TypeError, ValueError) as error:
            raise InputError(
                f"`backend` must be one of {', '.join(map(repr, _FRAMES))} or another that makes data "
                f"frames; got {backend!r}."
            ) from error

    def plot(self, ax: Any = None, *, theme: str | Theme | None = None, **look: Any) -> Drawn:
        """Draw with matplotlib, on `ax` or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Only the labels, limits and scales of the axes are set.
        theme : {"light", "dark", "print"}, optional
            By default whichever fits the background of the axes.
        **look
            As in `panel`.

        Returns
        -------
        Drawn
            With `ax`, `figure` and `artists`.
        """
        from calibrant.drawing.figures import new_axes
        from calibrant.drawing.matplotlib import draw

        picture = self.panel(**look)
        if ax is None:
            chosen = None if theme is None else as_theme(theme)
            ax = new_axes(caller=f"{type(self).__name__}.plot", theme=chosen)[0, 0]
        artists = draw(picture, ax, theme=theme)
        return Drawn(ax, ax.figure, artists)

    def chart(
        self, *, theme: str | Theme = "light", width: int = 340, height: int = 340, **look: Any
    ) -> Any:
        """Draw with Altair: hover over the curve to read it. Composes with ``|`` and ``&``."""
        from calibrant.drawing.altair import chart

        require_pixels(width=width, height=height)
        return chart(
            [self.panel(**look).thinned(CHART_POINTS)], theme=theme, width=width, height=height
        )

    def save(
        self,
        path: str | Path,
        *,
        width: float = 4.2,
        theme: str | Theme = "light",
        dpi: int = 200,
        **look: Any,
    ) -> Path:
        """Write the picture as SVG, PDF (both with real text) or PNG.

        Parameters
        ----------
        path : str or Path
            Its ending chooses the format.
        width : float
            In inches: 3.3 for a column of a paper, 6 or more for a slide. Text and lines scale.
        theme : {"light", "dark", "print"}
            Colours.
        dpi : int
            Resolution of a PNG.
        **look
            As in `panel`.
        """
        from calibrant.drawing.figures import new_figure, save
        from calibrant.drawing.matplotlib import draw

        require_print_size(width, dpi)
        colors = as_theme(theme)
        picture = self.panel(**look).thinned(SAVED_POINTS)
        figure, axes = new_figure(theme=colors, width=width, caller=f"{type(self).__name__}.save")
        draw(picture, axes[0, 0], theme=colors)
        return save(figure, path, dpi=dpi)

    def to_svg(self, *, width: int = 340, height: int = 340, **look: Any) -> str:
        """A small SVG, written without any plotting library."""
        from calibrant.drawing.svg import render

        require_pixels(width=width, height=height)
        return render(self.panel(**look).thinned(int(width)), width=width, height=height)

    def _repr_html_(self) -> str:
        return f"<div>{self.to_svg()}</div>"


def laid_out(
    marks: Sequence[Mark],
    axes: tuple[Axis, Axis],
    notes: Sequence[str],
    *,
    name: str,
    color: Color | None,
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
    )


def series_of(name: str) -> str:
    """What the marks of a diagram with this name belong to."""
    return name or "model"


def diagonal_of(grid: Floats, ink: Ink) -> Mark:
    """The diagonal, from end to end also of logit axes."""
    odds = 10.0 ** np.arange(-9.0, 0.0, 0.125)
    x = np.union1d(grid, np.concatenate([[0.0, 1.0], odds, 1.0 - odds]))
    return Line(key="diagonal", ink=ink, x=x, y=x)


def calibrated_marks(reference: str, x: Floats, bounds: Bounds) -> list[Mark]:
    """The diagonal and, unless that is all, the band of what a calibrated model would show."""
    require_choice("reference", reference, ("consistency", "smoothed", "diagonal"))
    diagonal = diagonal_of(np.linspace(0.0, 1.0, 257), "faint")
    if reference == "diagonal":
        return [diagonal]
    return [diagonal, Band(key="consistency", ink="neutral", x=x, low=bounds.low, high=bounds.high)]


def require_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Refuse a look that is not one of those that exist."""
    if value not in choices:
        shown = ", ".join(map(repr, choices))
        raise InputError(f"`{name}` must be one of {shown}; got {value!r}.")


def require_count(name: str, value: int, *, least: int = 0) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"`{name}` must be a whole number, {least} or more; got {value!r}.")


def probability_axes(
    shown: Floats, axes: str, *, x: str = "predicted probability", y: str = "observed frequency"
) -> tuple[Axis, Axis]:
    """Axes for probabilities against probabilities; logit axes span what `shown` holds."""
    require_choice("axes", axes, ("probability", "logit"))
    if axes == "probability":
        return Axis(x, -0.02, 1.02), Axis(y, -0.08, 1.08)
    inside = shown[(shown > 0) & (shown < 1)]
    low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.1, 0.9)
    log_odds = np.log([low / (1 - low), high / (1 - high)])
    middle, half = log_odds.mean(), max((log_odds[1] - log_odds[0]) / 2, 1.0) * 1.12
    ends = 1 / (1 + np.exp(-np.array([middle - half, middle + half])))
    low, high = float(max(ends[0], 1e-9)), float(min(ends[1], 1 - 1e-9))
    scale: AxisScale = "logit"
    return Axis(x, low, high, scale), Axis(y, low, high, scale)
