"""Several diagrams in one picture: overlaid, as small multiples, or the worst few beside a forest plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from calibrant._arguments import require_choice, require_count
from calibrant._format import group_text
from calibrant._optional import require
from calibrant.data.rows import InputOptions
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, show_value
from calibrant.inference.compare import models_of
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions, sketches_of_classes
from calibrant.plotting.artists import display_name, require_axes, theme_of
from calibrant.plotting.diagram import (
    Diagram,
    Plot,
    Style,
    StyleOptions,
    on_axes,
    require_width,
    split_look,
)
from calibrant.plotting.forest import ForestPlot, forest_plot
from calibrant.plotting.frame import (
    FrameOptions,
    Layout,
    framed,
    svg_of,
    write,
    write_legend,
)
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram
from calibrant.plotting.themes import LIGHT, Theme, as_theme

__all__ = ["Diagrams", "reliability_diagrams"]

MOST_OVERLAID = 4
"""Curves that can be told apart on one pair of axes."""
MOST_MULTIPLES = 9
"""Small multiples that fit a page; of more, the worst are shown beside the forest plot of all."""
WORST = 4
MOST_COLUMNS = 4
LAYOUTS = ("overlay", "grid", "forest", None)
LayoutName = Literal["overlay", "grid", "forest"]


class Diagrams(Mapping[str, Diagram]):
    """Diagrams by name: of models, of groups, or of several constructions for one model.

    Examples
    --------
    >>> from calibrant.plotting.binned import binned_diagram
    >>> y, p = [0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9]
    >>> both = Diagrams({"binned": binned_diagram(y, p), "smooth": reliability_diagram(y, p)})
    >>> sorted(both.plot(layout="grid"))
    ['binned', 'smooth']
    """

    def __init__(self, diagrams: Mapping[Any, Diagram]) -> None:
        if not diagrams:
            raise InputError("`diagrams` must hold at least one diagram.", argument="diagrams")
        self._diagrams: dict[str, Diagram] = {}
        for name, diagram in diagrams.items():
            if not isinstance(diagram, Diagram):
                raise InputError(
                    f"`diagrams` must map names to diagrams; there is a {type(diagram).__name__}.",
                    argument="diagrams",
                    hint="Make each with `reliability_diagram`.",
                )
            text = ", ".join(map(group_text, name if isinstance(name, tuple) else (name,)))
            if text in self._diagrams:
                raise InputError(
                    f"`diagrams` has two names that both read {show_value(text)}.",
                    argument="diagrams",
                )
            self._diagrams[text] = diagram

    def __getitem__(self, name: str) -> Diagram:
        return self._diagrams[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._diagrams)

    def __len__(self) -> int:
        return len(self._diagrams)

    def __repr__(self) -> str:
        return f"<Diagrams: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return f"<div>{self.to_svg()}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Each diagram's data, by name."""
        return {name: diagram.to_dict() for name, diagram in self.items()}

    def plot(
        self,
        ax: Any = None,
        *,
        layout: LayoutName | None = None,
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        columns: int | None = None,
        **look: Any,
    ) -> dict[str, Plot]:
        """Draw with matplotlib, on `ax` or in a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            All diagrams are drawn there, each with its name as label.
        layout : {"overlay", "grid", "forest"}, optional
            On one pair of axes; side by side, the largest error first; or the worst few beside the forest
            plot of all. By default the first for up to 4 diagrams, the second for up to 9.
        theme : {"light", "dark", "print"} or Theme, optional
            By default whichever fits the background.
        figsize : pair of float, optional
            Inches, of a new figure.
        columns : int, optional
            Of a grid.
        **look
            As in a diagram's `plot`; `color` may map names to colours.

        Returns
        -------
        dict of str to Plot
            By name; of a forest plot by "forest".
        """
        if ax is None:
            require("matplotlib.pyplot", caller="Diagrams.plot")
            chosen = LIGHT if theme is None else as_theme(theme)
            return self._drawn(chosen, layout, figsize, columns, look, pyplot=True)
        require_axes(ax)
        chosen = theme_of(ax) if theme is None else as_theme(theme)
        colors, look = _colors(self, look)
        style, _ = split_look(look, new=False)

        def own(name: str) -> StyleOptions:
            color: Any = {"color": colors[name]} if name in colors else {}
            return {"label": display_name(name), **style, **color}

        return {
            name: Plot(ax, ax.figure, on_axes(diagram, ax, chosen, own(name)))
            for name, diagram in self.items()
        }

    def save(
        self,
        path: str | PathLike[str],
        *,
        layout: LayoutName | None = None,
        theme: str | Theme = "light",
        width: float | None = None,
        columns: int | None = None,
        dpi: int = 200,
        **look: Any,
    ) -> Path:
        """Write one picture as SVG, PDF or PNG; parameters as in `plot` and `Diagram.save`."""
        return write(path, lambda: self._figure(theme, layout, width, columns, look), dpi)

    def to_svg(
        self,
        *,
        layout: LayoutName | None = None,
        theme: str | Theme = "light",
        width: float | None = None,
        columns: int | None = None,
        **look: Any,
    ) -> str:
        """The picture as SVG text."""
        return svg_of(self._figure(theme, layout, width, columns, look))

    def _figure(
        self,
        theme: str | Theme,
        layout: LayoutName | None,
        width: float | None,
        columns: int | None,
        look: Mapping[str, Any],
    ) -> Any:
        require("matplotlib.figure", caller="Diagrams.save")
        size = None if width is None else (require_width(width), None)
        plots = self._drawn(as_theme(theme), layout, size, columns, look)
        return next(iter(plots.values())).figure

    def _drawn(
        self,
        theme: Theme,
        layout: LayoutName | None,
        figsize: tuple[float, float | None] | None,
        columns: int | None,
        look: Mapping[str, Any],
        *,
        pyplot: bool = False,
    ) -> dict[str, Plot]:
        require_choice("layout", layout, LAYOUTS)
        if columns is not None:
            require_count("columns", columns)
        assessed = all(isinstance(each, ReliabilityDiagram) for each in self.values())
        if layout is None:
            few = len(self) <= MOST_OVERLAID and assessed
            layout = "overlay" if few else "grid"
            if len(self) > MOST_MULTIPLES and assessed:
                layout = "forest"
        colors, look = _colors(self, look)
        style, frame = split_look(look, new=True)
        settings = (theme, style, frame, colors)
        if layout == "overlay":
            return self._overlay(*settings, figsize, pyplot)
        shown = self._worst_first()
        if layout == "forest":
            return self._with_forest(shown[:WORST], *settings, figsize, pyplot)
        if columns is None:
            columns = min(MOST_COLUMNS, int(np.ceil(np.sqrt(len(self)))))
        return self._grid(shown, *settings, figsize, pyplot, min(columns, len(self)))

    def _worst_first(self) -> list[str]:
        """Names by lower confidence limit, then by estimate, the largest first; as they came for others."""

        def size(name: str) -> tuple[float, float]:
            diagram = self[name]
            if not isinstance(diagram, ReliabilityDiagram) or diagram.assessment is None:
                return 0.0, 0.0
            return -diagram.assessment.interval.low, -diagram.smooth_ece.value

        return sorted(self, key=size)

    def _finding(self) -> tuple[str, bool]:
        """The largest error among the diagrams, and whether none is clear."""
        name = self._worst_first()[0]
        worst = self[name]
        if not isinstance(worst, ReliabilityDiagram) or worst.assessment is None:
            return "", False
        if not worst.verdict.clear:
            return "No miscalibration detected in any", True
        return f"Largest error: {display_name(name, 24)}, {worst.verdict.short}", False

    def _overlay(
        self,
        theme: Theme,
        style: StyleOptions,
        asked: FrameOptions,
        colors: Mapping[str, Any],
        figsize: tuple[float, float | None] | None,
        pyplot: bool,
    ) -> dict[str, Plot]:
        """All diagrams on one pair of axes, with a legend of names and numbers."""
        frames = [diagram.frame() for diagram in self.values()]
        widest = max(frames, key=lambda frame: frame.xlim[1] - frame.xlim[0])
        title, muted = self._finding()
        first = next(iter(self.values()))
        note = ""
        if isinstance(first, ReliabilityDiagram):
            share = f"{100 * first.confidence:g}%"
            note = f"SmoothECE ({share} CI); shaded: {share} confidence bands"
        # The histogram's strip stays away: no histogram is everybody's.
        ylim = widest.xlim if widest.square and len(self) > 1 else widest.ylim
        frame = framed(
            replace(widest, title=title, subtitle=note, legend={}, muted=muted, ylim=ylim), asked
        )
        entries = {} if asked.get("legend") is False else {n: _entry(n, self[n]) for n in self}
        layout = Layout.of(
            [frame], theme, legend_lines=len(entries), figsize=figsize, pyplot=pyplot
        )
        (ax,) = layout.axes
        cycle = [theme.series[k % len(theme.series)] for k in range(len(self))]
        series = {**dict(zip(self, cycle, strict=True)), **colors}
        plots: dict[str, Plot] = {}
        artists: dict[str, list[Any]] = {}
        for k, (name, diagram) in enumerate(self.items()):
            own = Style.of(theme, series[name], style, beside=len(self) > 1)
            drawn = _reference_of(diagram, ax, own) if k == 0 and len(self) > 1 else {}
            drawn |= diagram.artists(ax, own)
            plots[name] = Plot(ax, layout.figure, drawn)
            main = drawn.get("curve", []) or drawn.get("points", [])
            artists[name] = main[:1]
        ax.set_xlim(*frame.xlim)
        ax.set_ylim(*frame.ylim)
        write_legend(layout, artists, entries, theme)
        return plots

    def _grid(
        self,
        shown: Sequence[str],
        theme: Theme,
        style: StyleOptions,
        asked: FrameOptions,
        colors: Mapping[str, Any],
        figsize: tuple[float, float | None] | None,
        pyplot: bool,
        columns: int,
        forest: ForestPlot | None = None,
    ) -> dict[str, Plot]:
        """Each diagram on axes of its own, in one figure with one legend."""
        title = display_name(asked.get("title") or "", 120)
        texts = cast(FrameOptions, {k: v for k, v in asked.items() if k != "title"})
        every: dict[str, Diagram] = {name: self[name] for name in shown}
        frames = []
        for diagram in every.values():
            frame, finding = diagram.frame(), ""
            if isinstance(diagram, ReliabilityDiagram):
                finding = diagram.verdict.short[:1].upper() + diagram.verdict.short[1:]
            frames.append(framed(replace(frame, title=finding, subtitle=diagram.label), texts))
        legend = frames[0].legend
        beside = None
        if forest is not None:
            every["forest"] = forest
            label = "SmoothECE (grey bar: noise floor)"
            beside = framed(forest.frame(), {"legend": False, "xlabel": label})
        layout = Layout.of(
            frames,
            theme,
            names=[display_name(name) for name in shown],
            columns=columns,
            legend_lines=len(legend),
            title=title,
            beside=beside,
            figsize=figsize,
            pyplot=pyplot,
        )
        plots: dict[str, Plot] = {}
        frames += [] if beside is None else [beside]
        for (name, diagram), frame, ax in zip(every.items(), frames, layout.axes, strict=True):
            own = Style.of(theme, colors.get(name, theme.series[0]), style)
            plots[name] = Plot(ax, layout.figure, diagram.artists(ax, own))
            ax.set_xlim(*frame.xlim)
            ax.set_ylim(*frame.ylim)
        write_legend(layout, plots[shown[0]].artists, legend, theme)
        return plots

    def _with_forest(
        self,
        shown: Sequence[str],
        theme: Theme,
        style: StyleOptions,
        asked: FrameOptions,
        colors: Mapping[str, Any],
        figsize: tuple[float, float | None] | None,
        pyplot: bool,
    ) -> dict[str, Plot]:
        """The worst few, and the forest plot of all."""
        found = {}
        for name in self._worst_first():
            diagram = self[name]
            if not isinstance(diagram, ReliabilityDiagram) or diagram.assessment is None:
                raise InputError(
                    f"A forest plot needs the assessment of each diagram; {show_value(name)} has none.",
                    argument="layout",
                )
            found[name] = diagram.assessment
        return self._grid(
            shown, theme, style, asked, colors, figsize, pyplot, 2, forest_plot(found)
        )


def _reference_of(diagram: Diagram, ax: Any, style: Style) -> dict[str, list[Any]]:
    """The diagonal, once for all diagrams."""
    if not isinstance(diagram, ReliabilityDiagram):
        return {}
    from calibrant.plotting.artists import diagonal

    return {"diagonal": [diagonal(ax, style.theme)]}


def _entry(name: str, diagram: Diagram) -> str:
    number = diagram.short_label if isinstance(diagram, ReliabilityDiagram) else diagram.label
    return f"{display_name(name, 28)}: {number}"


def _colors(diagrams: Diagrams, look: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Colours that were asked for by name, and the look without them."""
    asked, rest = look.get("color"), dict(look)
    if not isinstance(asked, Mapping):
        return {}, rest
    del rest["color"]
    for name, color in asked.items():
        if str(name) not in diagrams:
            raise InputError(
                f"`color` names {show_value(name)}, of which there is no diagram.", argument="color"
            )
        split_look({"color": color}, new=True)
    return {str(name): color for name, color in asked.items()}, rest


def reliability_diagrams(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    by: Any = None,
    names: Sequence[str] | None = None,
    **options: Any,
) -> Diagrams:
    """Smooth reliability diagrams of several models, groups or classes.

    Parameters
    ----------
    y_true : array, or mapping
        Outcomes; or, without `y_prob`, name to a Sketch or to a pair `(y_true, y_prob)`, such as `Sketches`
        by group.
    y_prob : mapping of name to array, frame or array
        Each model's predictions; or class probabilities, of which `multiclass` ("classwise" or "top_label")
        makes the groups.
    data : frame, files, Sketches or other source, optional
        What `scan` reads; `y_true` then names a column, `y_prob` one for each model, or one with `by`.
    by : str, optional
        With `data`, the columns whose values make the groups.
    names : sequence of str, optional
        Names of the columns of an array of predictions.
    **options
        As in `reliability_diagram`.

    Examples
    --------
    >>> y = [0, 0, 1, 1, 0, 1]
    >>> models = reliability_diagrams(y, {"a": [0.1, 0.3, 0.4, 0.8, 0.6, 0.9],
    ...                                   "b": [0.4, 0.4, 0.5, 0.6, 0.5, 0.6]})
    >>> models
    <Diagrams: a, b>
    """
    if data is not None:
        reading = {name: options.pop(name) for name in _READING if name in options}
        several = not isinstance(y_prob, str) and reading.get("multiclass") is None and by is None
        y_true, y_prob, _, left = sample_from(
            data,
            y_true,
            y_prob,
            cast(ReadingOptions, reading),
            by=by,
            scale=options.get("scale"),
            rows=several,
            groups=True,
        )
        options |= left
    if isinstance(y_prob, Mapping) or (y_prob is not None and options.get("multiclass") is None):
        models: Any = {name: (y_true, p) for name, p in models_of(y_prob, names).items()}
    elif y_prob is not None:
        models, options = _classes(y_true, y_prob, options)
    else:
        models = y_true
    if not isinstance(models, Mapping):
        raise InputError(
            "`y_true` must map names to sketches or pairs (y_true, y_prob) where there is no `y_prob`; it is "
            f"a {type(models).__name__}.",
            argument="y_true",
            hint='Pass outcomes and a mapping of predictions, such as {"a": p, "b": q}.',
        )
    diagrams: dict[Any, Diagram] = {}
    for name, rows in models.items():
        try:
            diagrams[name] = reliability_diagram(*_rows_of(rows), **options)
        except InputError as error:
            raise error.at(group=repr(name)) from error
    return Diagrams(diagrams)


_READING = ReadingOptions.__annotations__ | InputOptions.__annotations__


def _classes(y_true: Any, y_prob: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Sketches of class probabilities, and the options that are left."""
    reading = {name: options[name] for name in InputOptions.__annotations__ if name in options}
    if reading.get("multiclass") not in ("top_label", "classwise"):
        raise InputError(
            "`multiclass` must say what makes the groups of class probabilities; it is "
            f"{show_value(reading.get('multiclass'))}.",
            argument="multiclass",
            hint='Pass "classwise" or "top_label"; for the confidence alone use `reliability_diagram`.',
        )
    sketches = sketches_of_classes(
        y_true, y_prob, scale=options.get("scale"), **cast(InputOptions, reading)
    )
    return sketches, {name: value for name, value in options.items() if name not in reading}


def _rows_of(rows: Any) -> Sequence[Any]:
    if isinstance(rows, Sketch):
        return (rows,)
    if isinstance(rows, tuple | list) and len(rows) == 2:
        return rows
    raise InputError(
        f"`models` must map names to sketches or pairs; one is {show_value(type(rows).__name__)}.",
        argument="models",
        hint="Pass (y_true, y_prob); weights go into a sketch.",
    )
