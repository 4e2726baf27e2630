"""Several diagrams in one picture: overlaid on one axis, or side by side on shared axes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.data.naming import group_text
from calibrant.data.sketch import Sketch
from calibrant.diagrams.drawable import (
    CHART_POINTS,
    SAVED_POINTS,
    Diagram,
    Drawn,
    require_choice,
    require_count,
)
from calibrant.diagrams.smooth import ReliabilityDiagram, reliability_diagram
from calibrant.drawing.checks import require_pixels, require_print_size, shortened
from calibrant.drawing.marks import Mark, Panel
from calibrant.drawing.themes import Theme, as_theme
from calibrant.errors import InputError

__all__ = ["Diagrams", "reliability_diagrams"]


class Diagrams(Mapping[str, Diagram]):
    """Diagrams by name: of models, of groups, or of several constructions for one model.

    Examples
    --------
    >>> from calibrant.diagrams.binned import binned_diagram
    >>> y, p = [0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9]
    >>> both = Diagrams({"binned": binned_diagram(y, p), "smooth": reliability_diagram(y, p)})
    >>> [drawn.ax.get_title() for drawn in both.plot_grid().values()]
    ['binned', 'smooth']
    """

    def __init__(self, diagrams: Mapping[Any, Diagram]) -> None:
        if not diagrams:
            raise InputError("there must be at least one diagram; got none.")
        for name, diagram in diagrams.items():
            if not isinstance(diagram, Diagram):
                raise InputError(f"diagram {name!r} is a {type(diagram).__name__}, not a diagram.")
        self._diagrams: dict[str, Diagram] = {}
        for name, diagram in diagrams.items():
            written = ", ".join(map(group_text, name if isinstance(name, tuple) else (name,)))
            if written in self._diagrams:
                raise InputError(
                    f"names must differ when they are written: two of these read {written!r}. "
                    "Give one of them another name."
                )
            self._diagrams[written] = diagram

    def __getitem__(self, name: str) -> Diagram:
        return self._diagrams[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._diagrams)

    def __len__(self) -> int:
        return len(self._diagrams)

    def __repr__(self) -> str:
        return f"<Diagrams: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        from calibrant.drawing.svg import render

        panels = (diagram.panel(name=name) for name, diagram in self.items())
        pictures = (render(panel.thinned(300), width=300, height=300) for panel in panels)
        return f"<div>{''.join(pictures)}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Each diagram's data, by name."""
        return {name: diagram.to_dict() for name, diagram in self.items()}

    def panel(self, *, reference: str = "diagonal", **look: Any) -> Panel:
        """All diagrams on one axis, told apart by colour and marker.

        Parameters
        ----------
        reference : {"diagonal", "smoothed"}
            "smoothed" draws every model's own f̂, where its curve would run if it were calibrated:
            near the ends, smoothing alone bends a curve away from the diagonal, inwards, by up to 0.8
            bandwidths.
        **look
            As in each diagram's `panel`; a look that a kind of diagram does not have leaves it as it is.
            `color` maps names to colours.
        """
        require_choice("reference", reference, ("diagonal", "smoothed"))
        return _overlaid(self._diagrams, reference, look)

    def plot(self, ax: Any = None, *, theme: str | Theme | None = None, **look: Any) -> Drawn:
        """Draw all diagrams on one axis with matplotlib; see `panel` for the looks."""
        from calibrant.drawing.figures import new_axes
        from calibrant.drawing.matplotlib import draw

        picture, made = self.panel(**look), ax is None
        if made:
            chosen = None if theme is None else as_theme(theme)
            ax = new_axes(caller="Diagrams.plot", theme=chosen)[0, 0]
        artists = draw(picture, ax, theme=theme, legend_outside=made)
        return Drawn(ax, ax.figure, artists)

    def plot_grid(
        self, *, columns: int | None = None, theme: str | Theme | None = None, **look: Any
    ) -> dict[str, Drawn]:
        """Draw the diagrams side by side on shared axes, in a new figure.

        Parameters
        ----------
        columns : int, optional
            Panels in a row; by default as many as make the grid nearly square, and at most three.
        theme : {"light", "dark", "print"}, optional
            By default whichever fits the background.
        **look
            As in `panel`; one `color` may serve all.
        """
        from calibrant.drawing.figures import new_axes

        chosen = None if theme is None else as_theme(theme)
        across, down = self._shape(columns)
        axes = new_axes(down, across, caller="Diagrams.plot_grid", theme=chosen)
        return self._draw_grid(axes, chosen, self._panels(look))

    def save(
        self,
        path: str | Path,
        *,
        layout: str = "overlay",
        columns: int | None = None,
        width: float | None = None,
        theme: str | Theme = "light",
        dpi: int = 200,
        **look: Any,
    ) -> Path:
        """Write one picture as SVG, PDF or PNG; `layout` is "overlay" or "grid"."""
        from calibrant.drawing.figures import new_figure, save
        from calibrant.drawing.matplotlib import draw

        require_choice("layout", layout, ("overlay", "grid"))
        colors = as_theme(theme)
        across, down = self._shape(columns) if layout == "grid" else (1, 1)
        inches = 4.2 * across**0.75 if width is None else width
        require_print_size(inches, dpi, columns=across)
        figure, axes = new_figure(down, across, theme=colors, width=inches, caller="Diagrams.save")
        if layout == "grid":
            panels = [panel.thinned(SAVED_POINTS) for panel in self._panels(look)]
            self._draw_grid(axes, colors, panels)
        else:
            picture = self.panel(**look).thinned(SAVED_POINTS)
            draw(picture, axes[0, 0], theme=colors, legend_outside=True)
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
        from calibrant.drawing.altair import Slider, chart

        require_pixels(width=width, height=height)
        smooth = [d for d in self.values() if isinstance(d, ReliabilityDiagram)]
        if not slider or len(smooth) < len(self):
            panel = self._chart_panel(self._diagrams, look)
            return chart([panel], theme=theme, width=width, height=height)
        sets = zip(*(diagram.around() for diagram in smooth), strict=True)
        panels = [
            _with_bandwidth(
                self._chart_panel(dict(zip(self, each, strict=True)), look), each, smooth
            )
            for each in sets
        ]
        chosen = Slider("bandwidth, by powers of √2 (0 is the diagram's own)", len(panels) // 2)
        return chart(panels, slider=chosen, theme=theme, width=width, height=height)

    def _chart_panel(self, diagrams: Mapping[str, Diagram], look: dict[str, Any]) -> Panel:
        if len(diagrams) > 1:
            return _overlaid(diagrams, look.get("reference", "diagonal"), look).thinned(
                CHART_POINTS
            )
        ((name, diagram),) = diagrams.items()
        own = {"name": name, **_looks_of(diagram, name, look)}
        return diagram.panel(**own).thinned(CHART_POINTS)

    def _panels(self, look: Mapping[str, Any]) -> list[Panel]:
        """One panel for each diagram, on the same axes where these mean the same."""
        _require_looks(self.values(), look)
        panels = [
            replace(diagram.panel(**_looks_of(diagram, name, look)), title=shortened(name))
            for name, diagram in self.items()
        ]
        return _on_common_axes(panels) if _comparable(panels) else panels

    def _shape(self, columns: int | None) -> tuple[int, int]:
        if columns is None:
            columns = min(3, int(np.ceil(np.sqrt(len(self)))) if len(self) > 3 else len(self))
        require_count("columns", columns, least=1)
        across = min(int(columns), len(self))
        return across, -(-len(self) // across)

    def _draw_grid(
        self, axes: Any, theme: Theme | None, panels: Sequence[Panel]
    ) -> dict[str, Drawn]:
        from calibrant.drawing.matplotlib import draw

        drawn = {}
        flat, shared = list(axes.flat), _comparable(panels)
        for ax, name, panel in zip(flat, self, panels, strict=False):
            drawn[name] = Drawn(ax, ax.figure, draw(panel, ax, theme=theme))
            if shared and ax is not flat[0]:
                ax.sharex(flat[0])
                ax.sharey(flat[0])
            if shared:
                ax.label_outer()
        for ax in flat[len(self) :]:
            ax.set_visible(False)
        return drawn


def _overlaid(diagrams: Mapping[str, Diagram], reference: str, look: Mapping[str, Any]) -> Panel:
    """One panel: each diagram's bands and curve, and one diagonal beneath them."""
    _require_looks(diagrams.values(), look)
    if look.get("color") is not None and not isinstance(look["color"], Mapping):
        raise InputError(
            "one `color` would not tell several diagrams apart; map names to colours, as in "
            f"color={{{next(iter(diagrams))!r}: {look['color']!r}}}."
        )
    plainer = {"ticks": False, "density": None, **look, "reference": reference}
    panels = {
        name: diagram.panel(**{**_looks_of(diagram, name, plainer), "name": name})
        for name, diagram in diagrams.items()
    }
    if not _comparable(list(panels.values())):
        raise InputError(
            "diagrams on one axis must show the same quantities; these do not. Draw them side by side "
            'with `plot_grid()` or `save(..., layout="grid")`.'
        )
    first = _on_common_axes(list(panels.values()))[0]
    beneath: dict[str, Mark] = {}
    above: list[Mark] = []
    for name, panel in panels.items():
        for mark in panel.marks:
            if mark.key == "diagonal":
                beneath.setdefault("diagonal", mark)
            elif mark.key == "reference":
                above.append(replace(mark, series=name, ink="series"))
            elif mark.key != "consistency":
                above.append(mark)
    order = ("band", "resampled", "steps", "reference", "curve", "values")
    above.sort(key=lambda mark: order.index(mark.key) if mark.key in order else len(order))
    names = {
        name: " · ".join([shortened(name), *panel.notes[1:2], *panel.notes[3:]])
        for name, panel in panels.items()
    }
    colors = {k: v for panel in panels.values() for k, v in panel.colors.items()}
    return Panel(
        (*beneath.values(), *above),
        first.x,
        first.y,
        legend=names,
        labels=names,
        colors=colors,
    )


def _looks(diagram: Diagram) -> set[str]:
    """What the panel of this kind of diagram can be asked for."""
    return set(inspect.signature(diagram.panel).parameters)


def _looks_of(diagram: Diagram, name: str, look: Mapping[str, Any]) -> dict[str, Any]:
    """The looks that this kind of diagram has; of colours by name, its own."""
    own = {key: value for key, value in look.items() if key in _looks(diagram)}
    if isinstance(own.get("color"), Mapping):
        own["color"] = own["color"].get(name)
    return own


def _require_looks(diagrams: Iterable[Diagram], look: Mapping[str, Any]) -> None:
    known = set[str]().union(*map(_looks, diagrams))
    for key in look:
        if key not in known:
            raise TypeError(
                f"unexpected keyword argument {key!r}; these diagrams have {', '.join(sorted(known))}."
            )


def _comparable(panels: Sequence[Panel]) -> bool:
    """Whether the axes of all panels mean the same."""
    return len({(p.x.label, p.x.scale, p.y.label, p.y.scale) for p in panels}) == 1


def _on_common_axes(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with limits that hold all of them."""
    x, y = ([getattr(panel, side) for panel in panels] for side in "xy")
    wide, tall = (
        replace(axes[0], low=min(a.low for a in axes), high=max(a.high for a in axes))
        for axes in (x, y)
    )
    return [replace(panel, x=wide, y=tall) for panel in panels]


def _with_bandwidth(
    panel: Panel, here: Sequence[ReliabilityDiagram], own: Sequence[ReliabilityDiagram]
) -> Panel:
    """Say at which bandwidth this position of the slider is, in terms of the numbers' own."""
    solved = all(diagram.at_fixed_point and diagram.smooth_ece.bandwidth > 0.0 for diagram in own)
    factors = [
        f"{new.bandwidth / (old.smooth_ece.bandwidth or old.bandwidth):.2g}"
        for new, old in zip(here, own, strict=True)
    ]
    sigma = "σ*" if solved else "own"
    if len(set(factors)) > 1:  # some are too narrow to be drawn
        note = f"bandwidth: {sigma} × {', '.join(factors)}"
    else:
        each = "" if len(own) == 1 else "each "
        note = f"bandwidth: {each}{sigma}" + ("" if factors[0] == "1" else f" × {factors[0]}")
    if len(own) == 1:
        note += f" = {here[0].bandwidth:.3g}"
    return replace(panel, notes=(*panel.notes, note))


def reliability_diagrams(data: Mapping[Any, Any], **options: Any) -> Diagrams:
    """Smooth reliability diagrams of several models or groups.

    Parameters
    ----------
    data : mapping
        Name to a Sketch, or to a pair `(y_true, y_prob)`; `Sketches` by group will do.
    **options
        As in `reliability_diagram`.

    Examples
    --------
    >>> y = [0, 0, 1, 1, 0, 1]
    >>> models = reliability_diagrams({"a": (y, [0.1, 0.3, 0.4, 0.8, 0.6, 0.9]),
    ...                                "b": (y, [0.4, 0.4, 0.5, 0.6, 0.5, 0.6])})
    >>> models["b"].label
    'smECE 0.140 [0.000, 0.494]'
    """
    if not isinstance(data, Mapping):
        raise InputError(
            f"`data` must map names to sketches or (y_true, y_prob); got {type(data).__name__}."
        )
    diagrams: dict[Any, Diagram] = {}
    for name, rows in data.items():
        try:
            diagrams[name] = reliability_diagram(*_arguments(rows), **options)
        except InputError as error:
            raise InputError(f"in group {name!r}: {error}") from error
    return Diagrams(diagrams)


def _arguments(rows: Any) -> tuple[Any, ...]:
    if isinstance(rows, Sketch):
        return (rows,)
    if isinstance(rows, tuple | list) and len(rows) == 2:
        return tuple(rows)
    seen = f"{len(rows)} values" if isinstance(rows, tuple | list) else f"a {type(rows).__name__}"
    raise InputError(
        f"rows must be a Sketch or a pair (y_true, y_prob); got {seen}. Weights go into a sketch: "
        "`Sketch.from_arrays(y_true, y_prob, sample_weight=...)`."
    )
