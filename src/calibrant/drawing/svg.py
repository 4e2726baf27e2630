"""Panels as SVG text, without any plotting library: the small picture in a notebook."""

from __future__ import annotations

from functools import singledispatch
from html import escape

import numpy as np
from numpy.typing import NDArray

from calibrant.drawing.layout import empty_corner, fitted, hill_span, runs, tick_span
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
from calibrant.drawing.themes import LIGHT, Theme, as_theme, color_of, series_colors

__all__ = ["render"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 10.0, 10.0, 40.0
_DASHES = {
    "solid": "",
    "dashed": ' stroke-dasharray="5 3"',
    "dotted": ' stroke-dasharray="1 3"',
    "dash-dotted": ' stroke-dasharray="7 2 1 2"',
}


class _Sheet:
    """Pixel coordinates of a panel, and its colours."""

    def __init__(self, panel: Panel, theme: Theme, width: float, height: float) -> None:
        self.panel, self.theme = panel, theme
        self.colors = series_colors(panel, theme)
        self.width, self.height = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def color(self, mark: Mark) -> str:
        return color_of(mark, self.colors, self.theme)

    def x(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_LEFT + self.width * self.panel.x.fraction(values))

    def y(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.up(self.panel.y.fraction(values))

    def up(self, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_TOP + self.height * (1 - fraction))


def render(
    panel: Panel, *, width: int = 340, height: int = 340, theme: str | Theme | None = None
) -> str:
    """Write a panel as an SVG element.

    By default text and axes take the colour of the page around them, so that the picture reads
    on a light and on a dark page.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.drawing.axes import Axis
    >>> line = Line(key="curve", x=np.array([0.0, 1.0]), y=np.array([0.0, 1.0]))
    >>> render(Panel((line,), Axis("x", 0, 1), Axis("y", 0, 1)))[:39]
    '<svg xmlns="http://www.w3.org/2000/svg"'
    """
    panel = fitted(panel)
    chosen = LIGHT if theme is None else as_theme(theme)
    text = "currentColor" if theme is None else chosen.ink
    sheet = _Sheet(panel, chosen, width, height)
    marks = [
        f'<g class="{escape(mark.key)}">{"".join(_draw(mark, sheet))}</g>' for mark in panel.marks
    ]
    body = [*_frame(sheet), *_inside(sheet, marks), *_words(sheet)]
    title = escape(" · ".join([panel.title or "diagram", *panel.notes]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="11" '
        f'fill="{text}"><title>{title}</title>{"".join(body)}</svg>'
    )


def _inside(sheet: _Sheet, marks: list[str]) -> list[str]:
    """The marks; those that run off a logit axis are cut off a little beyond it.

    Pictures of one size share a name for the rectangle, so any number of them can be on one page.
    """
    if sheet.panel.x.scale == sheet.panel.y.scale == "linear":
        return marks
    name = f"panel-{sheet.width:g}-{sheet.height:g}"
    box = f'x="{_LEFT - 4:g}" y="{_TOP - 4:g}" width="{sheet.width + 8:g}"'
    rectangle = f'<rect {box} height="{sheet.height + 8:g}"/>'
    start = f'<clipPath id="{name}">{rectangle}</clipPath><g clip-path="url(#{name})">'
    return [start, *marks, "</g>"]


def _frame(sheet: _Sheet) -> list[str]:
    panel, grey = sheet.panel, sheet.theme.neutral
    floor, right = _TOP + sheet.height, _LEFT + sheet.width
    out = [
        f'<path d="M{_LEFT:g} {_TOP:g}V{floor:g}H{right:g}" fill="none" stroke="{grey}"/>',
        f'<text x="{_LEFT + sheet.width / 2:g}" y="{floor + 33:g}" text-anchor="middle">'
        f"{escape(panel.x.label)}</text>",
        f'<text transform="translate(12 {_TOP + sheet.height / 2:g}) rotate(-90)" '
        f'text-anchor="middle">{escape(panel.y.label)}</text>',
    ]
    for value, label in panel.x.ticks():
        at = float(sheet.x(np.array(value)))
        out.append(f'<text x="{at:.1f}" y="{floor + 15:g}" text-anchor="middle">{label}</text>')
    for value, label in panel.y.ticks():
        at = float(sheet.y(np.array(value)))
        out.append(f'<text x="{_LEFT - 6:g}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    return out


def _words(sheet: _Sheet) -> list[str]:
    panel = sheet.panel
    lines = [*panel.notes, *panel.legend.values()]
    if not lines:
        return []
    shares = (max(map(len, lines)) * 6.0 / sheet.width, len(lines) * 15.0 / sheet.height)
    corner = empty_corner(panel, min(shares[0], 0.9), shares[1])
    x = _LEFT + sheet.width * corner.place(0.03)[0]
    clear, lines_below = corner.offset * sheet.height, 15 * (len(lines) - 1)
    top = corner.side == "top"
    first = _TOP + clear + 12 if top else _TOP + sheet.height - clear - lines_below - 3
    fills = [""] * len(panel.notes)
    fills += [f' fill="{sheet.colors[n]}"' if n in sheet.colors else "" for n in panel.legend]
    return [
        f'<text x="{x:.1f}" y="{first + 15 * k:.1f}" text-anchor="{"start" if corner.left else "end"}"'
        f"{fill}>{escape(line)}</text>"
        for k, (line, fill) in enumerate(zip(lines, fills, strict=True))
    ]


def _path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


@singledispatch
def _draw(mark: Mark, sheet: _Sheet) -> list[str]:
    raise TypeError(f"no drawing for {type(mark).__name__}")


@_draw.register
def _(mark: Line, sheet: _Sheet) -> list[str]:
    x, y = sheet.x(mark.x), sheet.y(mark.y)
    style = f'fill="none" stroke="{sheet.color(mark)}"{_DASHES[mark.dash]}'
    width = 1.0 if mark.ink in ("faint", "neutral") else 1.6
    return [f'<path d="{_path(x[r], y[r])}" stroke-width="{width}" {style}/>' for r in runs(x, y)]


@_draw.register
def _(mark: Trail, sheet: _Sheet) -> list[str]:
    # One closed outline for each stretch: half the width to either side of the curve.
    x, y = sheet.x(mark.x), sheet.y(mark.y)
    out = []
    for run in runs(x, y, mark.weight):
        a, b = x[run], y[run]
        if len(a) < 2:
            continue
        dx, dy = np.gradient(a), np.gradient(b)
        half = (0.6 + 2.6 * np.clip(mark.weight[run], 0, 1)) / np.maximum(np.hypot(dx, dy), 1e-9)
        top = _path(a - dy * half, b + dx * half)
        back = _path((a + dy * half)[::-1], (b - dx * half)[::-1])
        out.append(f'<path d="{top}L{back[1:]}Z" fill="{sheet.color(mark)}"/>')
    return out


@_draw.register
def _(mark: Bundle, sheet: _Sheet) -> list[str]:
    x = sheet.x(mark.x)
    style = f'fill="none" stroke="{sheet.color(mark)}" stroke-width="0.5" stroke-opacity="0.2"'
    lines = [(x[run], sheet.y(y)[run]) for y in mark.ys for run in runs(x, sheet.y(y))]
    return [f'<path d="{_path(a, b)}" {style}/>' for a, b in lines]


def _area(x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    return f"{_path(x, low)}L{_path(x[::-1], high[::-1])[1:]}Z"


@_draw.register
def _(mark: Band, sheet: _Sheet) -> list[str]:
    x, low, high = sheet.x(mark.x), sheet.y(mark.low), sheet.y(mark.high)
    grey = mark.ink in ("neutral", "faint")
    alpha = sheet.theme.neutral_opacity if grey else sheet.theme.band_opacity
    style = f'fill="{sheet.color(mark)}" fill-opacity="{alpha}"'
    return [f'<path d="{_area(x[r], low[r], high[r])}" {style}/>' for r in runs(x, low, high)]


@_draw.register
def _(mark: Hill, sheet: _Sheet) -> list[str]:
    base, outline = hill_span(mark)
    x, high = sheet.x(mark.x), sheet.up(outline)
    low = sheet.up(np.full_like(outline, base))
    style = f'fill="{sheet.color(mark)}" fill-opacity="0.18"'
    return [f'<path d="{_area(x[r], low[r], high[r])}" {style}/>' for r in runs(x, high)]


@_draw.register
def _(mark: Ticks, sheet: _Sheet) -> list[str]:
    low, high = sheet.up(np.array(tick_span(mark.side))).tolist()
    x = sheet.x(mark.x)
    strokes = "".join(f"M{a:.1f} {low:.1f}V{high:.1f}" for a in x[np.isfinite(x)].tolist())
    style = f'stroke="{sheet.color(mark)}" stroke-width="0.6" stroke-opacity="0.4"'
    return [f'<path d="{strokes}" {style}/>'] if strokes else []


@_draw.register
def _(mark: Points, sheet: _Sheet) -> list[str]:
    x, y, color = sheet.x(mark.x), sheet.y(mark.y), sheet.color(mark)
    low, high = sheet.y(mark.low), sheet.y(mark.high)
    radius = np.sqrt(4 + 16 * np.clip(mark.weight, 0, 1))
    out = [
        f'<path d="M{x[k]:.1f} {low[k]:.1f}V{high[k]:.1f}" stroke="{color}" stroke-opacity="0.7"/>'
        for k in np.flatnonzero(np.isfinite(x) & np.isfinite(low) & np.isfinite(high))
    ]
    out += [
        f'<circle cx="{x[k]:.1f}" cy="{y[k]:.1f}" r="{radius[k]:.1f}" fill="{color}"/>'
        for k in np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    ]
    return out


@_draw.register
def _(mark: Steps, sheet: _Sheet) -> list[str]:
    left, right, y = sheet.x(mark.left), sheet.x(mark.right), sheet.y(mark.y)
    whole = np.isfinite(left) & np.isfinite(right) & np.isfinite(y)
    strokes = "".join(f"M{left[k]:.1f} {y[k]:.1f}H{right[k]:.1f}" for k in np.flatnonzero(whole))
    return [f'<path d="{strokes}" stroke="{sheet.color(mark)}" stroke-width="1.4"/>']
