"""Panels as interactive Altair charts: hover, a slider through alternatives, a legend that toggles.

Data is written into the chart as plain rows of five significant digits, and every parameter is
named after the data, so the same panel gives the same JSON; see `altair_layers` for two side by side.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np

from calibrant._optional import require
from calibrant.drawing.axes import Axis
from calibrant.drawing.layout import empty_corner, fitted
from calibrant.drawing.marks import (
    Band,
    Bundle,
    Hill,
    Line,
    Mark,
    Panel,
    Points,
    Steps,
    Ticks,
    Trail,
)
from calibrant.drawing.rows import Rows, rounded, rows_of
from calibrant.drawing.themes import LIGHT, Theme, as_theme, color_of, series_colors
from calibrant.errors import InputError

__all__ = ["Slider", "chart"]

Kind: TypeAlias = tuple[type, str, str]
_DASHES = {"solid": [1, 0], "dashed": [5, 3], "dotted": [1, 3], "dash-dotted": [7, 2, 1, 2]}


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
    >>> line = Line(key="curve", series="a", x=np.array([0.0, 1.0]), y=np.array([0.0, 1.0]))
    >>> type(chart([Panel((line,), Axis("x", 0, 1), Axis("y", 0, 1))])).__name__
    'LayeredChart'
    """
    if not panels or (len(panels) > 1 and slider is None):
        raise InputError(f"one panel, or several and a slider; got {len(panels)} panels.")
    alt = require("altair", caller="chart")
    # Checking every row against the schema of Vega-Lite takes longer than all else.
    with require("altair.utils.schemapi", caller="chart").debug_mode(False):
        return _composed(alt, panels, slider, as_theme(theme), width, height)


def _composed(
    alt: Any, panels: Sequence[Panel], slider: Slider | None, theme: Theme, width: int, height: int
) -> Any:
    canvas = _Canvas(alt, [fitted(panel) for panel in panels], slider, theme, width, height)
    layers = [layer for kind in canvas.kinds() for layer in canvas.layers(kind)]
    layers += [*canvas.words(), *canvas.hover()]
    # All parameters on one layer: Altair mixes them up between layers when charts are composed.
    named = layers[-1].properties(name=f"view_{canvas.id}")
    layers[-1] = named.add_params(*canvas.parameters())
    from calibrant.drawing.altair_layers import LayeredChart

    drawn = LayeredChart(layer=layers).properties(
        width=width,
        height=height,
        view=alt.ViewBackground(stroke=None),
        description=_in_words(canvas.panel),
    )
    if canvas.theme.name == "dark":
        drawn = drawn.properties(background=canvas.theme.paper)
    return drawn.properties(title=panels[0].title) if panels[0].title else drawn


def _in_words(panel: Panel) -> str:
    """The picture for those who hear it: its axes, and what its legend and notes say."""
    said = [*(panel.legend.get(name, name) for name in panel.series()), *panel.notes]
    axes = f"{panel.y.label} against {panel.x.label}"
    return f"{axes}: {'; '.join(said)}." if said else f"{axes}."


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
        self.colors = series_colors(self.panel, theme)
        self.fixed: set[Kind] = set()
        self.rows = {kind: self._rows_of(kind) for kind in self.kinds()}
        text = json.dumps([list(self.rows.values()), width, height, theme.name])
        from calibrant.drawing.altair_layers import parameter_tag

        self.id = parameter_tag(hashlib.sha256(text.encode()).hexdigest()[:10])
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

    def _binding(self) -> Any:
        if self.slider is None:
            return self.alt.Undefined
        start, last = self.slider.start, len(self.panels) - 1
        return self.alt.binding_range(
            min=-start, max=last - start, step=1, name=f"{self.slider.label} "
        )

    def kinds(self) -> list[Kind]:
        """Marks of one kind become one layer, whatever their series."""
        return list(dict.fromkeys(_kind(mark) for mark in self.panel.marks))

    def _rows_of(self, kind: Kind) -> Rows:
        """Rows of all marks of that kind; only once if they are the same in every panel."""
        frames = [
            [
                {"series": m.series, **row}
                for m in panel.marks
                if _kind(m) == kind
                for row in rows_of(m, panel)
            ]
            for panel in self.panels
        ]
        if self.slider is None or all(rows == frames[0] for rows in frames):
            self.fixed.add(kind)
            return frames[0]
        start = self.slider.start
        return [{"frame": k - start, **row} for k, rows in enumerate(frames) for row in rows]

    def source(self, values: Rows, *, fixed: bool) -> Any:
        chart = self.alt.Chart(self.alt.InlineData(values=values))
        here = f"!isValid(datum.frame) || datum.frame === {self.frame.name}"
        return chart if fixed else chart.transform_filter(here)

    def layers(self, kind: Kind) -> list[Any]:
        mark = next(m for m in self.panel.marks if _kind(m) == kind)
        if not self.rows[kind]:
            return []
        return _layers(mark, self, self.source(self.rows[kind], fixed=kind in self.fixed))

    def x(self, field: str = "x") -> Any:
        return self.alt.X(f"{field}:Q", **self._axis(self.panel.x))

    def y(self, field: str = "y") -> Any:
        return self.alt.Y(f"{field}:Q", **self._axis(self.panel.y))

    def _axis(self, axis: Axis) -> dict[str, Any]:
        alt, (low, high) = self.alt, axis.limits()
        places = axis.forward(np.array([value for value, _ in axis.ticks()]))
        label = alt.Undefined
        if axis.scale == "logit":  # shifted, so that no key has a minus sign
            texts = [text for _, text in axis.ticks()]
            keys = [f"{place + 100:.3f}" for place in places]
            label = f"{json.dumps(dict(zip(keys, texts, strict=True)))}[format(datum.value + 100, '.3f')]"
        return {
            "title": axis.label,
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
        texts = {name: self.panel.legend.get(name, name) for name in names}
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
        )
        scale = alt.Scale(domain=names, range=[self.colors[name] for name in names])
        return alt.Color("series:N", scale=scale, legend=legend)

    def opacity(self, mark: Mark, value: float) -> Any:
        alt = self.alt
        if not mark.series or not self.panel.legend:
            return alt.value(value)
        return alt.condition(self.shown, alt.value(value), alt.value(0))

    def parameters(self) -> list[Any]:
        wanted = (
            (self.frame, self.slider is not None),
            (self.shown, bool(self.panel.legend)),
            (self.near, any(mark.details for mark in self.panel.marks)),
        )
        return [parameter for parameter, needed in wanted if needed]

    def words(self) -> list[Any]:
        """The notes of each panel, in the corner that the first one leaves empty."""
        start = self.slider.start if self.slider else 0
        values = [
            {"series": "", "frame": k - start, "text": "\n".join(panel.notes)}
            for k, panel in enumerate(self.panels)
            if panel.notes
        ]
        if not values:
            return []
        lines = self.panel.notes
        share = min(max(map(len, lines)) * 6.2 / self.width, 0.9)
        corner = empty_corner(self.panel, share, len(lines) * 15 / self.height)
        top = corner.side == "top"
        text = self.source(values, fixed=self.slider is None).mark_text(
            align="left" if corner.left else "right",
            baseline="top" if top else "bottom",
            lineBreak="\n",
            fontSize=12,
            color=self.theme.ink,
        )
        x, up = corner.place(0.03)
        return [
            text.encode(
                x=self.alt.value(x * self.width),
                y=self.alt.value((1 - up + (0.01 if top else -0.01)) * self.height),
                text="text:N",
            )
        ]

    def hover(self) -> list[Any]:
        """Invisible targets along the curves; the nearest one is marked and read out."""
        targets = [mark for mark in self.panel.marks if mark.details]
        if not targets:
            return []
        alt, kinds = self.alt, dict.fromkeys(_kind(mark) for mark in targets)
        rows = [row for kind in kinds for row in self.rows[kind]]
        source = self.source(rows, fixed=all(kind in self.fixed for kind in kinds))
        place = {"x": self.x(), "y": self.y()}
        seen = alt.condition(self.near, alt.value(1), alt.value(0))
        rule = source.mark_rule(clip=True, color=self.theme.faint).encode(x=self.x(), opacity=seen)
        dot = source.mark_point(
            clip=True, filled=True, size=70, color=self.theme.ink, stroke=self.theme.paper
        ).encode(**place, opacity=seen)
        read_out = alt.value(alt.expr(self._read_out(targets[0])))
        target = source.mark_point(clip=True, size=300, opacity=0).encode(**place, tooltip=read_out)
        if self.panel.legend:  # a legend toggles a parameter of a layer that it describes
            target = target.encode(color=self.color(targets[0]))
        return [rule, dot, target]

    def _read_out(self, mark: Mark) -> str:
        """The tooltip, spelled out: of the nearest point Vega-Lite itself would read only the numbers."""
        row = "(datum.datum || datum)"
        said = {"series": f"{row}.series"} if self.panel.legend else {}
        for name in mark.details:
            how = ",d" if name.startswith("rows") else ".4~g"
            said[name] = f"format({row}[{json.dumps(name)}], '{how}')"
        return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in said.items()) + "}"


def _kind(mark: Mark) -> Kind:
    return type(mark), mark.key, mark.ink


@singledispatch
def _layers(mark: Mark, canvas: _Canvas, source: Any) -> list[Any]:
    raise TypeError(f"no chart for {type(mark).__name__}")


@_layers.register
def _(mark: Line, canvas: _Canvas, source: Any) -> list[Any]:
    width = 1.0 if mark.ink in ("faint", "neutral") else 1.8
    drawn = source.mark_line(clip=True, strokeWidth=width, strokeDash=_DASHES[mark.dash])
    return [_encode(drawn, mark, canvas, 1.0)]


@_layers.register
def _(mark: Trail, canvas: _Canvas, source: Any) -> list[Any]:
    alt = canvas.alt
    size = alt.Size("size:Q", scale=None, legend=None)  # a scale would be shared between layers
    return [_encode(source.mark_trail(clip=True), mark, canvas, 1.0).encode(size=size)]


@_layers.register
def _(mark: Bundle, canvas: _Canvas, source: Any) -> list[Any]:
    return [_encode(source.mark_line(clip=True, strokeWidth=0.5), mark, canvas, 0.2)]


@_layers.register
def _(mark: Band, canvas: _Canvas, source: Any) -> list[Any]:
    own = mark.ink in ("series", "accent")
    value = canvas.theme.band_opacity if own else canvas.theme.neutral_opacity
    return [_encode(source.mark_area(clip=True), mark, canvas, value).encode(y2="y2:Q")]


@_layers.register
def _(mark: Hill, canvas: _Canvas, source: Any) -> list[Any]:
    return [_encode(source.mark_area(clip=True), mark, canvas, 0.18).encode(y2="y2:Q")]


@_layers.register
def _(mark: Ticks, canvas: _Canvas, source: Any) -> list[Any]:
    drawn = source.mark_rule(clip=True, strokeWidth=0.6)
    return [_encode(drawn, mark, canvas, 0.4, connected=False).encode(y2="y2:Q")]


@_layers.register
def _(mark: Points, canvas: _Canvas, source: Any) -> list[Any]:
    alt = canvas.alt
    size = alt.Size("size:Q", scale=None, legend=None)
    dots = _encode(source.mark_point(clip=True, filled=True), mark, canvas, 1.0, connected=False)
    whiskers = _encode(source.mark_rule(clip=True), mark, canvas, 0.7, connected=False)
    return [whiskers.encode(y=canvas.y("low_end"), y2="high_end:Q"), dots.encode(size=size)]


@_layers.register
def _(mark: Steps, canvas: _Canvas, source: Any) -> list[Any]:
    drawn = source.mark_rule(clip=True, strokeWidth=1.5)
    return [_encode(drawn, mark, canvas, 0.8, connected=False).encode(x2="x2:Q")]


def _encode(
    drawn: Any, mark: Mark, canvas: _Canvas, opacity: float, *, connected: bool = True
) -> Any:
    channels: dict[str, Any] = {
        "x": canvas.x(),
        "y": canvas.y(),
        "color": canvas.color(mark),
        "opacity": canvas.opacity(mark, opacity),
    }
    if connected:
        channels["detail"] = ["run:N", "series:N"]
    return drawn.encode(**channels)
