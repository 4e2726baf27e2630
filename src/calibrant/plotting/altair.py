"""Panels as interactive Altair charts: hover, a slider through alternatives, a legend that toggles.

Data is written into the chart as plain rows of five significant digits, and every parameter is
named after the data, so the same panel gives the same JSON.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.plotting.altair_marks import (
    Kind,
    Rows,
    encoded,
    kind_of,
    layers_of,
    rounded,
    rows_of,
    swatch_of,
    title_of,
)
from calibrant.plotting.axis import Axis
from calibrant.plotting.layout import Corner, fitted, place_for_notes
from calibrant.plotting.looks import LIGHT, Theme, as_theme, color_of, series_colors
from calibrant.plotting.panel import Entry, Mark, Panel

__all__ = ["Slider", "chart"]

_numbers = itertools.count(1)
_NAMED = re.compile(r'"name": "[a-z]+(_[0-9a-f]{10})(n\d+)"')
# The legend stands so far below the axes; that of several series so far, where nothing is between; a line.
_LEGEND_TOP, _LEGEND_OFFSET, _LINE = 52, 18, 16


@dataclass(frozen=True)
class Slider:
    """How one moves between the panels: what the slider is called, and where it starts."""

    label: str
    start: int


def chart(
    panels: Sequence[Panel],
    *,
    slider: Slider | None = None,
    theme: str | Theme = LIGHT,
    width: int = 340,
    height: int = 340,
) -> Any:
    """Draw panels of one shape as one chart; the slider chooses which of them is shown.

    Parameters
    ----------
    panels : sequence of Panel
        With the same axes and series; several need a slider.
    slider : Slider, optional
        Its positions are numbered from the start, which is 0.
    theme : str or Theme
        Colours; a dark theme also sets the background.
    width, height : int
        Of the panel, in pixels.

    Returns
    -------
    LayeredChart
        An `altair.LayerChart`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.plotting.panel import Line
    >>> line = Line(key="curve", series="a", x=np.array([0.0, 1.0]), y=np.array([0.0, 1.0]))
    >>> type(chart([Panel((line,), Axis("x", 0, 1), Axis("y", 0, 1))])).__name__
    'LayeredChart'
    """
    if not panels or (len(panels) > 1 and slider is None):
        raise InputError(
            "a chart needs one panel, or several and a slider",
            seen=len(panels),
            cure="Draw the panels one by one.",
        )
    alt = require("altair", caller="chart")
    # Checking every row against the schema of Vega-Lite takes longer than all else.
    with require("altair.utils.schemapi", caller="chart").debug_mode(False):
        return _composed(alt, panels, slider, as_theme(theme), width, height)


def _composed(
    alt: Any, panels: Sequence[Panel], slider: Slider | None, theme: Theme, width: int, height: int
) -> Any:
    canvas = _Canvas(alt, [fitted(panel) for panel in panels], slider, theme, width, height)
    layers = [layer for kind in canvas.kinds() for layer in canvas.layers(kind)]
    layers += [*canvas.words(), *canvas.key(), *canvas.hover()]
    # All parameters on one layer: Altair mixes them up between layers when charts are composed.
    named = layers[-1].properties(name=f"view_{canvas.id}")
    layers[-1] = named.add_params(*canvas.parameters())
    drawn = _layered_chart()(layer=layers).properties(
        width=width,
        height=height,
        view=alt.ViewBackground(stroke=None),
        description=canvas.panel.in_words(),
    )
    if canvas.theme.name == "dark":
        drawn = drawn.properties(background=canvas.theme.paper)
    first = panels[0]
    if not first.title and not first.subtitle:
        return drawn
    return drawn.properties(title=title_of(alt, first, canvas.theme, width))


@cache
def _layered_chart() -> Any:
    """A layered chart that can stand beside a copy of itself.

    Altair tells the parameters of composed charts apart by their names. Every chart that is built
    therefore gets names of its own, and a chart that is written alone gives them up again: the same
    picture is the same JSON, and two of the same picture side by side do not share a slider.
    """
    alt = require("altair", caller="chart")

    class LayeredChart(alt.LayerChart):  # type: ignore[misc, name-defined]
        """Layers whose parameters are named after their data alone, unless part of a larger chart."""

        def to_dict(self, *args: Any, context: dict[str, Any] | None = None, **options: Any) -> Any:
            """The specification as a dictionary, as of any Altair chart."""
            spec = super().to_dict(*args, context=context, **options)
            if context is not None and not context.get("top_level", True):
                return spec
            text = json.dumps(spec)
            for digest, number in set(
                _NAMED.findall(text)
            ):  # names in the data may look like these
                text = re.sub(rf"{digest}{number}(?!\d)", digest, text)
            return json.loads(text)

    LayeredChart.__qualname__ = "LayeredChart"
    return LayeredChart


def __getattr__(name: str) -> Any:
    """The class of charts, which exists where Altair does; charts are pickled by its name."""
    if name == "LayeredChart":
        return _layered_chart()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Canvas:
    """Rows and encodings of one chart."""

    def __init__(
        self,
        alt: Any,
        panels: Sequence[Panel],
        slider: Slider | None,
        theme: Theme,
        width: int,
        height: int,
    ) -> None:
        self.alt, self.panels, self.slider, self.theme = alt, panels, slider, theme
        self.width, self.height = width, height
        self.panel = panels[slider.start if slider else 0]
        corner, lines = place_for_notes(self.panel, self._box)
        self.tall, self.pad = len(lines), 0.03 if corner else 0.0
        self.corner = corner or Corner("bottom", True, 1.0, 0)  # on the top edge
        self.broken = "\n(" if len(lines) > len(self.panel.notes) else " ("
        self.colors = series_colors(self.panel, theme)
        self.fixed: set[Kind] = set()
        self.rows = {kind: self._rows_of(kind) for kind in self.kinds()}
        text = json.dumps([list(self.rows.values()), width, height, theme.name])
        self.id = f"{hashlib.sha256(text.encode()).hexdigest()[:10]}n{next(_numbers)}"
        self.frame = alt.param(name=f"frame_{self.id}", value=0, bind=self._binding())
        self.shown = alt.selection_point(
            name=f"shown_{self.id}",
            fields=["series"],
            bind="legend",
            toggle="true",
            value=[{"series": name} for name in self.panel.series()],
            empty=False,
        )

        self.near = alt.selection_point(
            name=f"near_{self.id}",
            on="pointerover",
            clear="pointerout",
            nearest=True,
            fields=["series", "x", "y"],
            empty=False,
        )

    def _box(self, lines: Sequence[str]) -> tuple[float, float]:
        widest = max(map(len, lines), default=0)
        return min(widest * 6.2 / self.width + 0.04, 0.9), len(lines) * 15 / self.height

    def _binding(self) -> Any:
        if self.slider is None:
            return self.alt.Undefined
        start, last = self.slider.start, len(self.panels) - 1
        return self.alt.binding_range(
            min=-start, max=last - start, step=1, name=f"{self.slider.label} "
        )

    def kinds(self) -> list[Kind]:
        """Marks of one kind become one layer, whatever their series."""
        return list(dict.fromkeys(kind_of(mark) for mark in self.panel.marks))

    def _rows_of(self, kind: Kind) -> Rows:
        """Rows of all marks of that kind; only once if they are the same in every panel."""
        frames = []
        for panel in self.panels:
            alike = [mark for mark in panel.marks if kind_of(mark) == kind]
            several = len({mark.series for mark in alike}) < len(alike)  # then stretches are apart
            frames.append(
                [
                    {
                        "series": mark.series,
                        **row,
                        **({"run": f"{k}.{row['run']}"} if several else {}),
                    }
                    for k, mark in enumerate(alike)
                    for row in rows_of(mark, panel)
                ]
            )
        if self.slider is None or all(rows == frames[0] for rows in frames):
            self.fixed.add(kind)
            return frames[0]
        start = self.slider.start
        return [{"frame": k - start, **row} for k, rows in enumerate(frames) for row in rows]

    def source(self, values: Rows, *, fixed: bool) -> Any:
        # A tuple: Altair copies lists, row by row, whenever charts are composed.
        chart = self.alt.Chart(self.alt.InlineData(values=tuple(values)))
        here = f"!isValid(datum.frame) || datum.frame === {self.frame.name}"
        return chart if fixed else chart.transform_filter(here)

    def layers(self, kind: Kind) -> list[Any]:
        mark = next(m for m in self.panel.marks if kind_of(m) == kind)
        if not self.rows[kind]:
            return []
        return layers_of(mark, self, self.source(self.rows[kind], fixed=kind in self.fixed))

    def x(self, field: str = "x") -> Any:
        return self.alt.X(f"{field}:Q", **self._axis(self.panel.x))

    def y(self, field: str = "y") -> Any:
        return self.alt.Y(f"{field}:Q", **self._axis(self.panel.y))

    def _axis(self, axis: Axis) -> dict[str, Any]:
        alt, (low, high) = self.alt, axis.limits()
        places = axis.forward(np.array([value for value, _ in axis.ticks()]))
        label = alt.Undefined
        if axis.names:
            label = (
                f"{json.dumps([name.split(chr(10)) for name in axis.names])}[round(datum.value)]"
            )
        elif axis.scale == "logit":  # shifted, so that no key has a minus sign
            texts = [text for _, text in axis.ticks()]
            keys = [f"{place + 100:.3f}" for place in places]
            label = f"{json.dumps(dict(zip(keys, texts, strict=True)))}[format(datum.value + 100, '.3f')]"
        return {
            "title": axis.caption,
            "scale": alt.Scale(domain=[rounded(low), rounded(high)], nice=False, zero=False),
            "axis": alt.Axis(
                values=[rounded(v) for v in places],
                labelExpr=label,
                grid=False,
                labelColor=self.theme.ink,
                titleColor=self.theme.ink,
                domainColor=self.theme.neutral,
                tickColor=self.theme.neutral,
                titleFontWeight="normal",
            ),
        }

    def color(self, mark: Mark) -> Any:
        alt = self.alt
        if mark.ink != "series" or not self.panel.legend:
            return alt.value(color_of(mark, self.colors, self.theme))
        names = list(self.panel.series())
        texts = {name: self.panel.legend.get(name, name).split("\n")[0] for name in names}
        legend = alt.Legend(
            title=None,
            labelExpr=f"{json.dumps(texts)}[datum.label]",
            labelLimit=400,
            labelColor=self.theme.ink,
            orient="bottom",
            direction="vertical",
            symbolType="stroke",
            symbolStrokeWidth=4,
            symbolOpacity=1,
            offset=_LEGEND_OFFSET + _LINE * len(self.said()),
        )
        scale = alt.Scale(domain=names, range=[self.colors[name] for name in names])
        return alt.Color("series:N", scale=scale, legend=legend)

    def opacity(self, mark: Mark, value: float) -> Any:
        alt = self.alt
        if not mark.series or not self.panel.legend:
            return alt.value(value)
        return alt.condition(self.shown, alt.value(value), alt.value(0))

    def opacity_by(self, field: str, mark: Mark) -> Any:
        """Opacity by a field of the rows; none for a series that the legend hides."""
        shown = self.alt.Opacity(f"{field}:Q", scale=None, legend=None)
        if not mark.series or not self.panel.legend:
            return shown
        return self.alt.condition(self.shown, shown, self.alt.value(0))

    def parameters(self) -> list[Any]:
        wanted = (
            (self.frame, self.slider is not None),
            (self.shown, bool(self.panel.legend)),
            (self.near, any(mark.details for mark in self.panel.marks)),
        )
        return [parameter for parameter, needed in wanted if needed]

    def words(self) -> list[Any]:
        """The notes of each panel: in a corner that the first one leaves empty, or above the axes."""
        start, corner = self.slider.start if self.slider else 0, self.corner
        values = [
            {"series": "", "frame": k - start, "text": text.replace(" (", self.broken)}
            for k, panel in enumerate(self.panels)
            if (text := "\n".join(panel.notes))
        ]
        if not values:
            return []
        top = corner.side == "top"
        text = self.source(values, fixed=self.slider is None).mark_text(
            align="left" if corner.left else "right",
            baseline="top",  # several lines run down from there
            lineHeight=14,
            lineBreak="\n",
            fontSize=12,
            color=self.theme.ink,
        )
        x, up = corner.place(self.pad)
        y = (1 - up + (0.01 if top else -0.01)) * self.height - (0 if top else 14 * self.tall)
        place = {"x": self.alt.value(x * self.width), "y": self.alt.value(y)}
        return [encoded(text, **place, text="text:N")]

    def said(self) -> list[Entry]:
        """What the marks say, but for who they are."""
        texts = set(self.panel.legend.values())
        return [entry for entry in self.panel.entries() if entry.text not in texts]

    def key(self) -> list[Any]:
        """What the marks say, below the axes; below that, several series have a legend that toggles them."""
        layers = []
        for k, entry in enumerate(self.said()):
            y = self.height + _LEGEND_TOP + _LINE * k
            text = self.alt.Chart(self.alt.InlineData(values=[{"text": entry.text}])).mark_text(
                align="left", baseline="middle", fontSize=11, color=self.theme.ink
            )
            place = {"x": self.alt.value(30), "y": self.alt.value(y)}
            layers += [swatch_of(entry, self, y), encoded(text, **place, text="text:N")]
        return layers

    def hover(self) -> list[Any]:
        """Invisible targets along the curves; the nearest one is marked and read out."""
        targets = [mark for mark in self.panel.marks if mark.details]
        if not targets:
            return []
        alt, kinds = self.alt, dict.fromkeys(kind_of(mark) for mark in targets)
        rows = [row for kind in kinds for row in self.rows[kind]]
        source = self.source(rows, fixed=all(kind in self.fixed for kind in kinds))
        place = {"x": self.x(), "y": self.y()}
        seen = alt.condition(self.near, alt.value(1), alt.value(0))
        rule = source.mark_rule(clip=True, color=self.theme.faint)
        dot = source.mark_point(
            clip=True, filled=True, size=70, color=self.theme.ink, stroke=self.theme.paper
        )
        read_out = alt.value(alt.expr(self._read_out(targets[0])))
        target = source.mark_point(clip=True, size=300, opacity=0)
        target = encoded(target, **place, tooltip=read_out)
        if self.panel.legend:  # a legend toggles a parameter of a layer that it describes
            target = encoded(target, color=self.color(targets[0]))
        rule = encoded(rule, x=self.x(), opacity=seen)
        return [rule, encoded(dot, **place, opacity=seen), target]

    def _read_out(self, mark: Mark) -> str:
        """The tooltip, spelled out: of the nearest point Vega-Lite itself would read only the numbers."""
        row = "(datum.datum || datum)"
        said = {"series": f"{row}.series"} if self.panel.legend else {}
        for name in mark.details:
            how = ",d" if name.startswith("rows") else ".4~g"
            said[name] = f"format({row}[{json.dumps(name)}], '{how}')"
        return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in said.items()) + "}"
