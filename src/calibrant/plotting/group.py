"""Several diagrams in one picture: overlaid on one axis, or side by side on shared axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from calibrant._arguments import require_choice, require_count
from calibrant._format import group_text
from calibrant.data.rows import InputOptions
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import Code, Function, InputError, TypeName
from calibrant.io.scan import sketches_of_classes
from calibrant.plotting.diagram import CHART_POINTS, SAVED_POINTS, Diagram, Drawn, require_figsize
from calibrant.plotting.looks import Theme, as_theme, require_pixels, require_print_size
from calibrant.plotting.panel import Panel
from calibrant.plotting.panels import (
    comparable,
    overlaid,
    side_by_side,
    with_bandwidth,
    worst_first,
)
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram

__all__ = ["Diagrams", "reliability_diagrams"]


class Diagrams(Mapping[str, Diagram]):
    """Diagrams by name: of models, of groups, or of several constructions for one model.

    Parameters
    ----------
    diagrams : mapping of name to diagram
    whole : ReliabilityDiagram, optional
        The diagram of all rows together, if the others show groups of them: a grey line in small multiples.

    Examples
    --------
    >>> from calibrant.plotting.binned import binned_diagram
    >>> y, p = [0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9]
    >>> both = Diagrams({"binned": binned_diagram(y, p), "smooth": reliability_diagram(y, p)})
    >>> [drawn.ax.get_title("left").splitlines() for drawn in both.plot_grid().values()]
    [['binned', 'May be chance (too few rows)'], ['smooth', 'May be chance (too few rows)']]
    """

    def __init__(
        self, diagrams: Mapping[Any, Diagram], *, whole: ReliabilityDiagram | None = None
    ) -> None:
        if not diagrams:
            raise InputError(
                "must hold at least one diagram",
                argument="diagrams",
                seen={},
                cure="Pass a mapping from names to diagrams.",
            )
        self._diagrams: dict[str, Diagram] = {}
        for name, diagram in diagrams.items():
            if not isinstance(diagram, Diagram):
                raise InputError(
                    "must map names to diagrams",
                    argument="diagrams",
                    seen=TypeName.of(diagram),
                    cure="Make each with {draw}.",
                    draw=Function("reliability_diagram"),
                )
            written = ", ".join(map(group_text, name if isinstance(name, tuple) else (name,)))
            if written in self._diagrams:
                raise InputError(
                    "must have names that differ when they are written",
                    argument="diagrams",
                    seen=written,
                    cure="Give one of the two another name.",
                )
            self._diagrams[written] = diagram
        self.whole = whole

    def __getitem__(self, name: str) -> Diagram:
        return self._diagrams[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._diagrams)

    def __len__(self) -> int:
        return len(self._diagrams)

    def __repr__(self) -> str:
        return f"<Diagrams: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        from calibrant.plotting.svg import render

        panels = (
            diagram.picture(name=name, legend=False, subtitle=False)
            for name, diagram in self.items()
        )
        pictures = (render(panel.thinned(300), width=300, height=300) for panel in panels)
        return f"<div>{''.join(pictures)}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Each diagram's data, by name."""
        return {name: diagram.to_dict() for name, diagram in self.items()}

    def panel(self, **look: Any) -> Panel:
        """All diagrams on one axis, told apart by colour and marker.

        Parameters
        ----------
        **look
            As in each diagram's `picture`; a look that a kind of diagram does not have leaves it as it
            is. `color` maps names to colours. The diagonal is the exact reference of every model.
        """
        return overlaid(self._diagrams, look)

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        **look: Any,
    ) -> Drawn:
        """Draw all diagrams on one axis with matplotlib; see `panel` for the looks."""
        from calibrant.plotting.glyphs import readable
        from calibrant.plotting.matplotlib import draw, lines_below, new_axes

        picture, made = self.panel(**look), ax is None
        require_figsize(figsize, ax)
        if made:
            chosen = None if theme is None else as_theme(theme)
            ax = new_axes(
                caller="Diagrams.plot",
                theme=chosen,
                figsize=figsize,
                entries=lines_below(picture),
                titles=picture.titles(),
            )[0, 0]
        artists = draw(readable(picture), ax, theme=theme, legend_outside=made)
        return Drawn(ax, ax.figure, artists)

    def plot_grid(
        self,
        *,
        columns: int | None = None,
        order: str | None = "error",
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        **look: Any,
    ) -> dict[str, Drawn]:
        """Draw the diagrams side by side on shared axes, in a new figure.

        Parameters
        ----------
        columns : int, optional
            Panels in a row; by default as many as make the grid nearly square, and at most four.
        order : {"error", None}
            The largest error first, or as they came.
        theme : {"light", "dark", "print"}, optional
            By default whichever fits the background.
        figsize : pair of float, optional
            Inches.
        **look
            As in `panel`; one `color` may serve all. The `title` stands above all panels.
        """
        from calibrant.plotting.glyphs import on_screen, readable
        from calibrant.plotting.matplotlib import new_axes

        require_figsize(figsize, None)
        chosen = None if theme is None else as_theme(theme)
        panels = self._panels(order, look)
        across, down = self._shape(columns)
        axes = new_axes(
            down,
            across,
            caller="Diagrams.plot_grid",
            theme=chosen,
            figsize=figsize,
            entries=_legend_rows(panels.values(), across),
            titles=_title_rows(list(panels.values()), across) + bool(look.get("title")),
        )
        shown = {name: readable(panel) for name, panel in panels.items()}
        title = look.get("title")
        return _draw_grid(axes, chosen, shown, on_screen(str(title)) if title else None)

    def save(
        self,
        path: str | Path,
        *,
        layout: str = "overlay",
        columns: int | None = None,
        order: str | None = "error",
        width: float | None = None,
        theme: str | Theme = "light",
        dpi: int = 200,
        **look: Any,
    ) -> Path:
        """Write one picture as SVG, PDF or PNG; `layout` is "overlay" or "grid"."""
        from calibrant.plotting.matplotlib import draw, lines_below, new_figure, save

        require_choice("layout", layout, ("overlay", "grid"))
        colors = as_theme(theme)
        across, down = self._shape(columns) if layout == "grid" else (1, 1)
        inches = 4.2 * across**0.75 if width is None else width
        require_print_size(inches, dpi, columns=across)
        panels = self._panels(order, look) if layout == "grid" else {"": self.panel(**look)}
        panels = {name: panel.thinned(SAVED_POINTS) for name, panel in panels.items()}
        first = next(iter(panels.values()))
        figure, axes = new_figure(
            down,
            across,
            theme=colors,
            width=inches,
            caller="Diagrams.save",
            entries=_legend_rows(panels.values(), across)
            if layout == "grid"
            else lines_below(first),
            titles=first.titles()
            if layout == "overlay"
            else _title_rows(list(panels.values()), across) + bool(look.get("title")),
        )
        if layout == "grid":
            _draw_grid(axes, colors, panels, look.get("title"))
        else:
            draw(first, axes[0, 0], theme=colors, legend_outside=True)
        return save(figure, path, dpi=dpi)

    def chart(
        self,
        *,
        slider: bool = True,
        theme: str | Theme = "light",
        width: int = 340,
        height: int = 340,
        **look: Any,
    ) -> Any:
        """Draw all diagrams with Altair; click in the legend to hide or show one.

        With smooth diagrams alone, a slider moves all of them through bandwidths around their own.
        """
        from calibrant.plotting.altair import Slider, chart

        require_pixels(width=width, height=height)
        smooth = [d for d in self.values() if isinstance(d, ReliabilityDiagram)]
        if not slider or len(smooth) < len(self):
            panel = _chart_panel(self._diagrams, look)
            return chart([panel], theme=theme, width=width, height=height)
        sets = zip(*(diagram.around() for diagram in smooth), strict=True)
        panels = [
            with_bandwidth(_chart_panel(dict(zip(self, each, strict=True)), look), each, smooth)
            for each in sets
        ]
        chosen = Slider("bandwidth, by powers of √2 (0 is the diagram's own)", len(panels) // 2)
        above = panels[chosen.start].subtitle  # said of the number, so at its own bandwidth
        panels = [replace(panel, subtitle=above) for panel in panels]
        return chart(panels, slider=chosen, theme=theme, width=width, height=height)

    def _panels(self, order: str | None, look: Mapping[str, Any]) -> dict[str, Panel]:
        """A panel for each diagram, in the order in which they are drawn."""
        require_choice("order", order, ("error", None))
        ordered = worst_first(self._diagrams) if order == "error" else self._diagrams
        turns = {name: k for k, name in enumerate(self)}
        return dict(zip(ordered, side_by_side(ordered, look, self.whole, turns), strict=True))

    def _shape(self, columns: int | None) -> tuple[int, int]:
        if columns is None:
            columns = min(4, int(np.ceil(np.sqrt(len(self)))) if len(self) > 3 else len(self))
        require_count("columns", columns)
        across = min(int(columns), len(self))
        return across, -(-len(self) // across)


def _chart_panel(diagrams: Mapping[str, Diagram], look: Mapping[str, Any]) -> Panel:
    if len(diagrams) > 1:
        return overlaid(diagrams, look).thinned(CHART_POINTS)
    ((name, diagram),) = diagrams.items()
    return diagram.picture(**{"name": name, **look}).thinned(CHART_POINTS)


def _legend_rows(panels: Iterable[Panel], across: int) -> int:
    """Lines of the legend below so many panels in a row; one more where these leave none for the axis."""
    texts = {entry.text for panel in panels for entry in panel.entries()}
    columns = min(across, 2)
    return -(-len(texts) // columns) + (columns > 1)


def _title_rows(panels: Sequence[Panel], across: int) -> int:
    """Lines above the panels of all rows."""
    rows = (panels[k : k + across] for k in range(0, len(panels), across))
    return sum(max(panel.titles() for panel in row) for row in rows)


def _draw_grid(
    axes: Any, theme: Theme | None, panels: Mapping[str, Panel], title: str | None
) -> dict[str, Drawn]:
    """Draw a panel on each of the axes, with one legend; ticks at every outer panel."""
    from calibrant.plotting.matplotlib import draw_grid

    shared = comparable(list(panels.values()))
    artists = draw_grid(list(panels.values()), axes, theme=theme, shared=shared, title=title)
    drawn = zip(axes.flat, artists, strict=False)
    return {
        name: Drawn(ax, ax.figure, artist) for name, (ax, artist) in zip(panels, drawn, strict=True)
    }


def reliability_diagrams(models: Any, y_prob: Any = None, **options: Any) -> Diagrams:
    """Smooth reliability diagrams of several models or groups.

    Parameters
    ----------
    models : mapping, or array
        Name to a Sketch, or to a pair `(y_true, y_prob)`; `Sketches` by group will do. Or the classes of
        rows, with `y_prob`.
    y_prob : array, optional
        Class probabilities, of which `multiclass` ("classwise" or "top_label") makes the groups.
    **options
        As in `reliability_diagram`.

    Examples
    --------
    >>> y = [0, 0, 1, 1, 0, 1]
    >>> models = reliability_diagrams({"a": (y, [0.1, 0.3, 0.4, 0.8, 0.6, 0.9]),
    ...                                "b": (y, [0.4, 0.4, 0.5, 0.6, 0.5, 0.6])})
    >>> models["b"].label
    'average error 0.140 (0.000 to 0.786)'
    """
    if y_prob is not None:
        models, options = _classes(models, y_prob, options)
    if not isinstance(models, Mapping):
        raise InputError(
            "must map names to sketches or (y_true, y_prob)",
            argument="models",
            seen=TypeName.of(models),
            cure="Pass a mapping such as {example}.",
            example=Code('{"a": (y_true, y_prob)}'),
        )
    diagrams: dict[Any, Diagram] = {}
    for name, rows in models.items():
        try:
            diagrams[name] = reliability_diagram(*_rows_of(rows), **options)
        except InputError as error:
            raise error.at(group=repr(name)) from error
    whole = None
    if isinstance(models, Sketches) and len(diagrams) > 1:
        whole = reliability_diagram(models.total(), resamples=0)
    return Diagrams(diagrams, whole=whole)


def _classes(y_true: Any, y_prob: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Sketches of class probabilities, and the options that are left."""
    reading = {name: options[name] for name in InputOptions.__annotations__ if name in options}
    if reading.get("multiclass") not in ("top_label", "classwise"):
        raise InputError(
            "must say what makes the groups of class probabilities",
            argument="multiclass",
            seen=reading.get("multiclass"),
            cure='Pass "classwise" or "top_label"; for the confidence alone use {one}.',
            one=Function("reliability_diagram"),
        )
    sketches = sketches_of_classes(
        y_true, y_prob, scale=options.get("scale"), **cast(InputOptions, reading)
    )
    return sketches, {name: value for name, value in options.items() if name not in reading}


def _rows_of(rows: Any) -> Sequence[Any]:
    if isinstance(rows, Sketch):
        return (rows,)
    if isinstance(rows, tuple | list) and len(rows) == 2:
        return tuple(rows)
    raise InputError(
        "must be a Sketch or a pair (y_true, y_prob)",
        argument="data",
        seen=f"{len(rows)} values" if isinstance(rows, tuple | list) else type(rows).__name__,
        cure="Weights go into a sketch: see {sketch}.",
        sketch=Function("Sketch.from_arrays"),
    )
