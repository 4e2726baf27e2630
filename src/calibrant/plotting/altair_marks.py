"""Marks for charts made of tables: their rows, in the coordinates of their axes, and their layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.plotting.layout import hill_span, runs, tick_span
from calibrant.plotting.looks import OUTLINE_OPACITY, Theme, color_of
from calibrant.plotting.panel import (
    Band,
    Blank,
    Bundle,
    Dots,
    Entry,
    Hill,
    Line,
    Mark,
    Panel,
    Steps,
    Ticks,
    Trail,
    Words,
    broken,
)

__all__ = [
    "Kind",
    "Rows",
    "encoded",
    "kind_of",
    "layers_of",
    "rounded",
    "rows_of",
    "swatch_of",
    "title_of",
]

Rows: TypeAlias = list[dict[str, Any]]
Kind: TypeAlias = tuple[type, str, str]
_DASHES = {"solid": [1, 0], "dashed": [5, 3], "dotted": [1, 3], "dash-dotted": [7, 2, 1, 2]}


def rounded(value: float) -> float:
    """Five significant digits, more than a screen can show and short in a file; numbers of rows whole."""
    return (
        float(round(value)) if abs(value) >= 1e5 and np.isfinite(value) else float(f"{value:.5g}")
    )


def _table(columns: Mapping[str, NDArray[Any]], run: slice, name: int | str) -> Rows:
    kept = {key: [rounded(v) for v in column[run].tolist()] for key, column in columns.items()}
    return [
        {"run": name, **dict(zip(kept, row, strict=True))}
        for row in zip(*kept.values(), strict=True)
    ]


def _stretches(columns: Mapping[str, NDArray[Any]], required: Sequence[str]) -> Rows:
    found = runs(*(columns[name] for name in required))
    return [row for k, run in enumerate(found) for row in _table(columns, run, k)]


def _height(panel: Panel, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = panel.y.limits()
    return np.asarray(low + (high - low) * fraction)


@singledispatch
def rows_of(mark: Mark, panel: Panel) -> Rows:
    """The rows of one mark; `run` numbers its unbroken stretches."""
    raise TypeError(f"no chart for {type(mark).__name__}")


@rows_of.register
def _(mark: Line, panel: Panel) -> Rows:
    place = {"x": panel.x.forward(mark.x), "y": panel.y.forward(mark.y)}
    return _stretches({**place, **mark.details}, list(place))


@rows_of.register
def _(mark: Trail, panel: Panel) -> Rows:
    place = {"x": panel.x.forward(mark.x), "y": panel.y.forward(mark.y)}
    place["size"] = 1.4 + 5.6 * np.clip(mark.weight, 0, 1)
    if mark.evidence is None:
        return _stretches({**place, **mark.details}, list(place))
    strength = mark.strength()
    rows = _stretches({**place, "strength": strength, **mark.details}, list(place))
    return _by_strength(rows)


def _by_strength(rows: Rows) -> Rows:
    """Stretches of one strength; each starts where the one before it ends."""
    out: Rows = []
    number = -1
    for before, row in zip([None, *rows[:-1]], rows, strict=True):
        joined = before is not None and before["run"] == row["run"]
        if joined and before["strength"] == row["strength"]:  # type: ignore[index]
            out.append({**row, "run": number})
            continue
        if joined:
            out.append({**row, "strength": before["strength"], "run": number})  # type: ignore[index]
        number += 1
        out.append({**row, "run": number})
    return out


@rows_of.register
def _(mark: Bundle, panel: Panel) -> Rows:
    x, ys = panel.x.forward(mark.x), panel.y.forward(mark.ys)
    found = [(y, run) for y in ys for run in runs(x, y)]
    return [row for k, (y, run) in enumerate(found) for row in _table({"x": x, "y": y}, run, k)]


@rows_of.register
def _(mark: Band, panel: Panel) -> Rows:
    low, high = panel.y.forward(mark.low), panel.y.forward(mark.high)
    place = {"x": panel.x.forward(mark.x), "y": low, "y2": high}
    if mark.evidence is None:
        return _stretches(place, list(place))
    return _by_strength(_stretches({**place, "strength": mark.strength()}, list(place)))


@rows_of.register
def _(mark: Blank, panel: Panel) -> Rows:
    (left, right), (bottom, top) = panel.x.forward(mark.x), panel.y.forward(mark.y)
    place = {"x": left, "x2": right, "y": bottom, "y2": top}
    return [{"run": 0, **{name: rounded(float(value)) for name, value in place.items()}}]


@rows_of.register
def _(mark: Hill, panel: Panel) -> Rows:
    base, outline = hill_span(mark)
    y, y2 = _height(panel, np.full_like(outline, base)), _height(panel, outline)
    return _stretches({"x": panel.x.forward(mark.x), "y": y, "y2": y2}, ["x", "y", "y2"])


@rows_of.register
def _(mark: Ticks, panel: Panel) -> Rows:
    x = panel.x.forward(mark.x)
    low, high = _height(panel, np.array(tick_span(mark.side)))
    columns = {"x": x, "y": np.full_like(x, low), "y2": np.full_like(x, high)}
    return _stretches(columns, ["x"])


@rows_of.register
def _(mark: Dots, panel: Panel) -> Rows:
    place = {"x": panel.x.forward(mark.x), "y": panel.y.forward(mark.y)}
    place["size"] = 30 + 120 * np.clip(mark.weight, 0, 1)
    ends = {"low_end": panel.y.forward(mark.low), "high_end": panel.y.forward(mark.high)}
    return _stretches({**place, **ends, **mark.details}, [*place, *ends])


@rows_of.register
def _(mark: Steps, panel: Panel) -> Rows:
    columns = {"x": panel.x.forward(mark.left), "x2": panel.x.forward(mark.right)}
    return _stretches({**columns, "y": panel.y.forward(mark.y)}, ["x", "x2", "y"])


@rows_of.register
def _(mark: Words, panel: Panel) -> Rows:
    x, y = panel.x.forward(mark.x), panel.y.forward(mark.y)
    places = zip(x.tolist(), y.tolist(), mark.texts, strict=True)
    return [
        {"run": 0, "x": rounded(across), "y": rounded(up), "text": text}
        for across, up, text in places
    ]


def swatch_of(entry: Entry, canvas: Any, y: float) -> Any:
    """A small example of the mark that a line of the legend stands for."""
    alt, mark, theme = canvas.alt, entry.mark, canvas.theme
    color = color_of(mark, canvas.colors, theme)
    source = alt.Chart(alt.InlineData(values=[{}]))
    if isinstance(mark, Dots):
        dot = source.mark_point(filled=True, size=60, color=color, opacity=1)
        return encoded(dot, x=alt.value(11), y=alt.value(y))
    if isinstance(mark, Band | Hill) or (isinstance(mark, Steps) and mark.thick):
        own = mark.ink in ("series", "accent")
        alpha = theme.band_opacity if own else theme.neutral_opacity
        look = {"fillOpacity": 0.55 if isinstance(mark, Hill) else alpha, "opacity": 1}
        if isinstance(mark, Band) and mark.ink == "neutral":
            look |= {"stroke": color, "strokeWidth": 0.7, "strokeOpacity": OUTLINE_OPACITY}
        box = source.mark_rect(color=color, **look)
        return encoded(
            box, x=alt.value(0), x2=alt.value(22), y=alt.value(y - 5), y2=alt.value(y + 5)
        )
    dashed = isinstance(mark, Line) and mark.dash != "solid"
    rule = source.mark_rule(
        color=color,
        strokeWidth=4 if isinstance(mark, Trail) else 1.4,
        strokeDash=[5, 3] if dashed else [1, 0],
    )
    return encoded(rule, x=alt.value(0), x2=alt.value(22), y=alt.value(y))


def title_of(alt: Any, panel: Panel, theme: Theme, width: int) -> Any:
    """What stands above the axes, and above notes that found no room in them."""
    lines = broken(panel.subtitle, max(int(width / 5.8), 8))
    colors = {"color": theme.ink, "subtitleColor": theme.ink}
    common = {"anchor": "start", **colors}
    if not panel.title:
        return alt.TitleParams(lines, fontWeight="normal", fontSize=12, **common)
    return alt.TitleParams(panel.title, subtitle=lines or alt.Undefined, **common)


def kind_of(mark: Mark) -> Kind:
    """Marks of one kind become one layer, whatever their series."""
    fades = getattr(mark, "evidence", None) is not None
    return type(mark), f"{mark.key} that fades" if fades else mark.key, mark.ink


@singledispatch
def layers_of(mark: Mark, canvas: Any, source: Any) -> list[Any]:
    """The layers that draw the rows of marks of one kind; `canvas` knows axes, colours and opacity."""
    raise TypeError(f"no chart for {type(mark).__name__}")


@layers_of.register
def _(mark: Line, canvas: Any, source: Any) -> list[Any]:
    width = 1.0 if mark.ink in ("faint", "neutral") else 1.8
    drawn = source.mark_line(clip=True, strokeWidth=width, strokeDash=_DASHES[mark.dash])
    return [_encode(drawn, mark, canvas, 1.0)]


@layers_of.register
def _(mark: Trail, canvas: Any, source: Any) -> list[Any]:
    alt = canvas.alt
    size = alt.Size("size:Q", scale=None, legend=None)  # a scale would be shared between layers
    drawn = encoded(_encode(source.mark_trail(clip=True), mark, canvas, 1.0), size=size)
    return [_faded(drawn, mark, canvas, 1.0)]


def _faded(drawn: Any, mark: Trail | Band, canvas: Any, full: float) -> Any:
    """The layer with less opacity where there is little evidence; a legend may hide it altogether."""
    if mark.evidence is None:
        return drawn
    drawn = drawn.transform_calculate(faded=f"datum.strength * {full:g}")
    return encoded(drawn, opacity=canvas.opacity_by("faded", mark))


@layers_of.register
def _(mark: Bundle, canvas: Any, source: Any) -> list[Any]:
    return [_encode(source.mark_line(clip=True, strokeWidth=0.5), mark, canvas, 0.2)]


@layers_of.register
def _(mark: Band, canvas: Any, source: Any) -> list[Any]:
    own = mark.ink in ("series", "accent")
    value = canvas.theme.band_opacity if own else canvas.theme.neutral_opacity
    area = encoded(_encode(source.mark_area(clip=True), mark, canvas, value), y2="y2:Q")
    area = _faded(area, mark, canvas, value)
    if mark.ink != "neutral":
        return [area]
    # A reference has an outline, which tells it from other bands without colour.
    edge = _encode(source.mark_line(clip=True, strokeWidth=0.7), mark, canvas, OUTLINE_OPACITY)
    return [area, edge, encoded(edge, y=canvas.y("y2"))]


@layers_of.register
def _(mark: Blank, canvas: Any, source: Any) -> list[Any]:
    box = source.mark_rect(color=canvas.theme.paper, opacity=1)
    return [encoded(box, x=canvas.x(), y=canvas.y(), x2="x2:Q", y2="y2:Q")]


@layers_of.register
def _(mark: Hill, canvas: Any, source: Any) -> list[Any]:
    alpha = 0.55 if mark.bars else 0.18
    return [encoded(_encode(source.mark_area(clip=True), mark, canvas, alpha), y2="y2:Q")]


@layers_of.register
def _(mark: Ticks, canvas: Any, source: Any) -> list[Any]:
    drawn = source.mark_rule(clip=True, strokeWidth=0.6)
    return [encoded(_encode(drawn, mark, canvas, 0.4, connected=False), y2="y2:Q")]


@layers_of.register
def _(mark: Dots, canvas: Any, source: Any) -> list[Any]:
    alt = canvas.alt
    size = alt.Size("size:Q", scale=None, legend=None)
    dots = _encode(source.mark_point(clip=True, filled=True), mark, canvas, 1.0, connected=False)
    whiskers = _encode(source.mark_rule(clip=True), mark, canvas, 0.7, connected=False)
    return [encoded(whiskers, y=canvas.y("low_end"), y2="high_end:Q"), encoded(dots, size=size)]


@layers_of.register
def _(mark: Steps, canvas: Any, source: Any) -> list[Any]:
    drawn = source.mark_rule(clip=True, strokeWidth=9 if mark.thick else 1.6)
    alpha = canvas.theme.neutral_opacity if mark.thick else 0.8
    return [encoded(_encode(drawn, mark, canvas, alpha, connected=False), x2="x2:Q")]


@layers_of.register
def _(mark: Words, canvas: Any, source: Any) -> list[Any]:
    words = source.mark_text(clip=True, fontSize=9 if mark.small else 12, color=canvas.theme.ink)
    return [
        encoded(words, x=canvas.x(), y=canvas.y(), text="text:N", opacity=canvas.opacity(mark, 1.0))
    ]


def encoded(drawn: Any, **channels: Any) -> Any:
    """What its method `encode` gives, which looks every text and value up among all of Altair's classes."""
    return drawn.encode(**{name: _channel(name, given) for name, given in channels.items()})


def _channel(name: str, given: Any) -> Any:
    if isinstance(given, list):
        return [_channel(name, one) for one in given]
    if not isinstance(given, str | dict):
        return given
    altair, kind = require("altair", caller="chart"), name.title()
    if isinstance(given, str):
        return getattr(altair, kind)(given)
    return getattr(altair, f"{kind}Value" if "value" in given else kind)(**given)


def _encode(drawn: Any, mark: Mark, canvas: Any, opacity: float, *, connected: bool = True) -> Any:
    channels: dict[str, Any] = {
        "x": canvas.x(),
        "y": canvas.y(),
        "color": canvas.color(mark),
        "opacity": canvas.opacity(mark, opacity),
    }
    if connected:
        channels["detail"] = ["run:N", "series:N"]
    return encoded(drawn, **channels)
