"""Several diagrams in one picture: overlaid, as small multiples, or the worst few beside a forest plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Unpack, cast

import numpy as np

from calibrant._arguments import require_choice, require_count
from calibrant._format import group_text
from calibrant.data.rows import InputOptions
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, show_value
from calibrant.inference.compare import models_of, require_arrays
from calibrant.inference.correction import adjusted_p_values
from calibrant.io.from_data import refuse_groups, sample_from
from calibrant.io.scan import ReadingOptions, sketches_of_classes
from calibrant.measures.result_record import frame_of
from calibrant.plotting.artists import STRIP, THIN_STRIP, display_name, histogram, straight
from calibrant.plotting.diagram import (
    Diagram,
    Look,
    Picture,
    Plot,
    Size,
    Style,
    draw,
    on_axes,
    split_look,
)
from calibrant.plotting.forest import forest_plot
from calibrant.plotting.frame import DISTRIBUTION, PREDICTED, Frame, framed, lay_out, write_legend
from calibrant.plotting.reliability import (
    DiagramOptions,
    ReliabilityDiagram,
    legend_of_several,
    reliability_diagram,
)
from calibrant.plotting.themes import LIGHT, Theme, as_theme

MOST_OVERLAID = 4
"""Curves that can be told apart on one pair of axes."""
MOST_MULTIPLES = 9
"""Small multiples that fit a page; of more, the worst is shown beside the forest plot of all."""
ONE_ROW = 3
"""Small multiples that stand side by side; of more, as many as there are rows of them."""
RELIABILITY = ReliabilityDiagram.kind
LAYOUTS = ("overlay", "grid", "forest", None)
LayoutName = Literal["overlay", "grid", "forest"]


class Diagrams(Picture, Mapping[str, Diagram]):
    """Diagrams by name: of models, of groups, or of several constructions for one model.

    Examples
    --------
    >>> from calibrant.plotting.binned import binned_diagram
    >>> y, p = [0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9]
    >>> both = Diagrams({"binned": binned_diagram(y, p), "smooth": reliability_diagram(y, p)})
    >>> sorted(both.plot(layout="grid"))
    ['binned', 'smooth']
    """

    def __init__(self, diagrams: Mapping[Any, Diagram], *, of_classes: bool = False) -> None:
        if not diagrams:
            raise InputError("`diagrams` must hold at least one diagram.", argument="diagrams")
        self._noun = "class" if of_classes else ""
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

    def to_dict(self) -> dict[str, Any]:
        """Each diagram's data, by name."""
        return {name: diagram.to_dict() for name, diagram in self.items()}

    def to_frame(self, backend: str | None = None) -> Any:
        """Data frame of what is drawn, the diagrams one below the other, with their names; see `frame_of`."""
        parts = {name: diagram.columns() for name, diagram in self.items()}
        shared = [
            k for k in next(iter(parts.values())) if all(k in part for part in parts.values())
        ]
        columns = {
            k: np.concatenate([np.asarray(part[k]) for part in parts.values()]) for k in shared
        }
        sizes = [len(part[shared[0]]) for part in parts.values()]
        return frame_of({"name": np.repeat(list(parts), sizes), **columns}, backend)

    def plot(
        self,
        ax: Any = None,
        *,
        layout: LayoutName | None = None,
        theme: str | Theme | None = None,
        figsize: tuple[float, float] | None = None,
        columns: int | None = None,
        **look: Unpack[Look],
    ) -> dict[str, Plot]:
        """Draw with matplotlib, on `ax` or in a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            All diagrams are drawn there, each with its name as label.
        layout : {"overlay", "grid", "forest"}, optional
            On one pair of axes; side by side, the largest error first; or the worst few beside the forest
            plot of all. By default the first for up to 4 curves, the second for up to 9 diagrams.
        theme : str or Theme, optional
            As in `save`; by default whichever fits the background.
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
            asked = {**look, "layout": layout, "columns": columns}
            return self._drawn(LIGHT if theme is None else theme, figsize, asked, pyplot=True)
        colors, others = _colors(self, look)
        style, _ = split_look(others, new=False)
        return {
            name: on_axes(
                diagram, ax, theme, {"label": display_name(name), **style, **colors.get(name, {})}
            )
            for name, diagram in self.items()
        }

    def _figure(self, theme: Theme, figsize: Size | None, look: dict[str, Any]) -> Any:
        return next(iter(self._drawn(theme, figsize, look).values())).figure

    def _drawn(
        self,
        theme: str | Theme,
        figsize: Size | None,
        look: dict[str, Any],
        *,
        pyplot: bool = False,
    ) -> dict[str, Plot]:
        """In a new figure, with titles and one legend."""
        layout, columns = look.pop("layout", None), look.pop("columns", None)
        require_choice("layout", layout, LAYOUTS)
        if columns is not None:
            require_count("columns", columns)
        layout = layout or self._usual_layout()
        colors, look = _colors(self, look)
        style, asked = split_look(look, new=True)
        chosen = as_theme(theme)
        if layout == "overlay":
            shown, settings = self._overlay(asked)
        else:
            shown, settings = self._panels(asked, columns, forest=layout == "forest")
        if asked.get("legend") is False:
            settings["legend"] = {}
        arranged = lay_out(theme=chosen, figsize=figsize, pyplot=pyplot, **settings)
        overlaid = layout == "overlay" and len(self) > 1
        members = []
        for k, (name, diagram) in enumerate(shown.items()):
            color = chosen.series[k % len(chosen.series)] if overlaid else chosen.series[0]
            keywords = {"color": color, **style, **colors.get(name, {})}
            members.append((diagram, Style(chosen, **keywords, beside_others=overlaid)))
        panels = [members] if layout == "overlay" else [[one] for one in members]
        plots = dict(zip(shown, draw(arranged, panels), strict=True))
        artists: Mapping[str, list[Any]] = {name: [plot.main] for name, plot in plots.items()}
        if layout != "overlay":
            artists = {k: drawn for plot in plots.values() for k, drawn in plot.artists.items()}
        if overlaid:
            (ax, frame), *_ = arranged.panels
            if frame.square:
                straight(ax, chosen)
            for k, (diagram, own) in enumerate(members if self._assessed else []):
                one = cast(ReliabilityDiagram, diagram)
                strip = (STRIP[1] - THIN_STRIP * (k + 0.85), STRIP[1] - THIN_STRIP * k)
                histogram(ax, one.rows.p, one.weight, frame.ends, chosen, own.color, strip)
        write_legend(arranged, artists, chosen)
        return plots

    @property
    def _assessed(self) -> bool:
        return all(one.kind == RELIABILITY for one in self.values())

    def _usual_layout(self) -> LayoutName:
        """Overlaid if they are few and have curves, else side by side, or the forest of many."""
        if self._assessed and len(self) > MOST_MULTIPLES:
            return "forest"
        if len(self) == 1:
            return "overlay"
        curves = self._assessed and all(
            cast(ReliabilityDiagram, one).curve.drawn.any() for one in self.values()
        )
        return "overlay" if curves and len(self) <= MOST_OVERLAID else "grid"

    def _overlay(self, asked: dict[str, Any]) -> tuple[dict[str, Diagram], dict[str, Any]]:
        """Diagrams on one pair of axes, and their layout."""
        legend = {
            name: f"{display_name(self._heading(name), 28)}: {one.short_label}"
            for name, one in self._judged.items()
        }
        title = ""
        if all(one.assessment for one in self._judged.values()):
            confidence = next(iter(self._judged.values())).assessment.confidence
            title = f"SmoothECE ({100 * confidence:g}% interval)"
        frames = [framed(self._common_frame(), asked)]
        return dict(self._judged), {"frames": frames, "legend": legend, "legend_title": title}

    def _panels(
        self, asked: dict[str, Any], columns: int | None, *, forest: bool
    ) -> tuple[dict[str, Diagram], dict[str, Any]]:
        """Diagrams side by side, the largest error first, and their layout."""
        of, names = self._judged, self._worst_first()
        if columns is None:
            columns = len(self) if len(self) <= ONE_ROW else int(np.ceil(len(self) ** 0.5))
        judged = all(each.assessment for each in of.values())
        title, every = asked.pop("title", None), None
        if forest or (judged and columns > 1 and len(self) > ONE_ROW):
            every = forest_plot({self._heading(name): of[name].assessment for name in names})
            found = every.label.replace("mis", "classes mis") if self._noun else every.label
            order = "; the worst in detail" if forest else ", largest error first"
            title = found + order if title is None else title
        names = names[:1] if forest else names
        shown: dict[str, Diagram] = {name: of[name] for name in names}
        frames = [framed(_small_frame(one), asked) for one in shown.values()]
        headings = [display_name(self._heading(name)) for name in names]
        legend = dict(frames[0].legend)
        if self._assessed and legend:
            several = [cast(ReliabilityDiagram, one) for one in shown.values()]
            legend |= legend_of_several(several) if several[0].bands else {}
            legend["histogram"] = f"{DISTRIBUTION} (n = {self._rows()})"
        if self._noun:
            legend = {k: text.replace("This model", "This class") for k, text in legend.items()}
        if forest and every is not None:
            label = "SmoothECE, with interval (grey: by chance)"
            shown, columns = {"forest": every, **shown}, 2
            frames = [replace(every.frame(), title="", xlabel=label), *frames]
            headings = [f"all {self._noun}".strip() + "es" * bool(self._noun), *headings]
        return shown, {
            "frames": frames,
            "names": headings,
            "columns": min(columns, len(shown)),
            "title": display_name(title, 120),
            "legend": legend,
        }

    @cached_property
    def _judged(self) -> dict[str, Diagram]:
        """The diagrams with findings corrected for their number (Holm), as those of `assess_by` are."""
        found = {name: one.assessment for name, one in self.items()}
        own = {k: one for k, one in found.items() if one and one.p_value_adjusted is None}
        adjusted = adjusted_p_values([one.p_value for one in own.values()], "holm")
        return dict(self) | {
            name: replace(cast(ReliabilityDiagram, self[name]), given=one.corrected(p))
            for (name, one), p in zip(own.items(), adjusted, strict=True)
        }

    def _rows(self) -> str:
        """Number of rows, or the least and the most."""
        rows = [cast(ReliabilityDiagram, one).n for one in self.values()]
        return " to ".join(f"{n:,}" for n in sorted({min(rows), max(rows)}))

    def _heading(self, name: str) -> str:
        return f"{self._noun} {name}".strip()

    def _worst_first(self) -> list[str]:
        """Names of those that are miscalibrated, then of others, the largest error first."""

        def size(name: str) -> tuple[bool, float]:
            found = self._judged[name].assessment
            return (True, 0.0) if found is None else (not found.miscalibrated, -found.smooth_ece)

        return sorted(self, key=size)

    def _common_frame(self) -> Frame:
        """Axes for all diagrams, with their findings, or how many are miscalibrated, for a title."""
        frames = [diagram.frame() for diagram in self.values()]
        frame = max(frames, key=lambda frame: frame.xlim[1] - frame.xlim[0])
        low, high = (end([one.xlim[k] for one in frames]) for k, end in enumerate((min, max)))
        if (low, high) != frame.xlim:  # no frame holds all others
            frame = replace(frame, xlim=(low, high), ylim=(low, high), xlabel=PREDICTED)
        of, worst = self._judged, self._worst_first()[0]
        title, note = "", ""
        if frame.square and len(self) > 1:
            ends, strips = frame.ends, 0.0
            if of[worst].kind == RELIABILITY:
                share = f"{100 * cast(ReliabilityDiagram, of[worst]).confidence:g}%"
                note = f"n = {self._rows()}; shaded: pointwise {share} confidence bands"
                strips = THIN_STRIP * len(self) - STRIP[1]
            frame = replace(frame, ylim=(ends[0] - (strips + 0.01) * (ends[1] - ends[0]), high))
        if of[worst].assessment is not None:
            clear = [name for name, one in of.items() if one.verdict.clear]
            title = f"{len(clear)} of {len(self)} miscalibrated"
            if len(self) <= 2:
                title = "\n".join(
                    f"{display_name(name, 24)}: {one.verdict.short}" for name, one in of.items()
                )
            elif clear:
                title += f"; largest error: {display_name(worst, 24)}"
        return replace(frame, title=title, subtitle=note, muted=not of[worst].verdict.clear)


def _small_frame(diagram: Diagram) -> Frame:
    """The frame of one of several, in few words."""
    finding = diagram.verdict.short
    return replace(diagram.frame(), title=finding[:1].upper() + finding[1:], subtitle=diagram.label)


def _colors(diagrams: Diagrams, look: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Colours that were asked for by name, and the look without them."""
    asked, rest = look.get("color"), dict(look)
    if not isinstance(asked, Mapping):
        return {}, rest
    del rest["color"]
    for name in asked:
        if str(name) not in diagrams:
            raise InputError(
                f"`color` names {show_value(name)}, of which there is no diagram.", argument="color"
            )
    looks = {str(k): split_look({"color": color}, new=True)[0] for k, color in asked.items()}
    return looks, rest


def reliability_diagrams(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    by: Any = None,
    names: Sequence[str] | None = None,
    **options: Unpack[DiagramOptions],
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
    look: dict[str, Any] = dict(options)
    require_arrays(data, names)
    if data is not None:
        reading = {name: look.pop(name) for name in _READING if name in look}
        several = not isinstance(y_prob, str) and reading.get("multiclass") is None and by is None
        y_true, y_prob, _, left = sample_from(
            data,
            y_true,
            y_prob,
            cast(ReadingOptions, reading),
            by=by,
            scale=look.get("scale"),
            rows=several,
            groups=True,
        )
        look |= left
    else:
        refuse_groups(by)
    if isinstance(y_prob, Mapping) or (y_prob is not None and look.get("multiclass") is None):
        models: Any = {name: (y_true, p) for name, p in models_of(y_prob, names).items()}
    elif y_prob is not None:
        reading = {k: look.pop(k) for k in InputOptions.__annotations__ if k in look}
        scale = look.get("scale")
        models = sketches_of_classes(y_true, y_prob, scale=scale, **cast(InputOptions, reading))
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
            diagrams[name] = reliability_diagram(*_rows_of(rows), **look)
        except InputError as error:
            raise error.at(group=repr(name)) from error
    return Diagrams(diagrams, of_classes=options.get("multiclass") is not None)


_READING = ReadingOptions.__annotations__ | InputOptions.__annotations__


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
