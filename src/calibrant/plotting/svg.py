"""Panels as SVG text, without any plotting library: the small picture in a notebook."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import singledispatch
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from calibrant.plotting.layout import (
    empty_corner,
    fitted,
    hill_span,
    place_for_notes,
    runs,
    tick_span,
)
from calibrant.plotting.looks import (
    LIGHT,
    OUTLINE_OPACITY,
    Theme,
    as_theme,
    color_of,
    series_colors,
)
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
    stretches,
)

__all__ = ["render"]

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 10.0, 10.0, 40.0
_DASHES = {
    "solid": "",
    "dashed": ' stroke-dasharray="5 3"',
    "dotted": ' stroke-dasharray="1 3"',
    "dash-dotted": ' stroke-dasharray="7 2 1 2"',
}


# A line of the legend takes so much room; a picture that has less than this left goes without.
_LINE, _LETTER, _LEAST = 15.0, 5.6, (200.0, 110.0)
_TITLE, _TITLE_LETTER = 17.0, 6.1


class _Sheet:
    """Pixel coordinates of a panel, its colours, and the lines of its legend."""

    def __init__(self, panel: Panel, theme: Theme, width: float, height: float) -> None:
        self.panel, self.theme = panel, theme
        self.colors = series_colors(panel, theme)
        names = max((len(line) for name in panel.y.names for line in name.split("\n")), default=0)
        self.left = _LEFT if not names else min(24.0 + _LETTER * names, 0.5 * width)
        self.width = width - self.left - _RIGHT
        self.above = self._headings(height)
        self.top = _TOP + _TITLE * len(self.above)
        self.height = height - self.top - _BOTTOM
        entries = panel.entries()
        below = _LINE * sum(entry.lines for entry in entries)
        room = self.height - below
        self.entries = entries if width >= _LEAST[0] and room >= _LEAST[1] else []
        self.height -= below if self.entries else 0.0
        self.corner, self.notes = place_for_notes(panel, self._box) if panel.notes else (None, ())
        if self.notes and self.corner is None:
            lifted = _LINE * len(self.notes)
            if self.height - lifted >= _LEAST[1]:
                self.top, self.height = self.top + lifted, self.height - lifted
            else:
                self.corner = empty_corner(panel, *self._box(self.notes))

    def _headings(self, height: float) -> list[tuple[str, str]]:
        """Lines above the axes, each with its weight; a verdict only where there is room."""
        panel, most = self.panel, max(int(self.width / _TITLE_LETTER), 8)
        lines = [(line, ' font-weight="bold"') for line in broken(panel.title, most)]
        said = [(line, "") for line in broken(panel.subtitle, most)]
        room = height - _TOP - _BOTTOM - _TITLE * len(lines + said)
        return lines if panel.judged and room < _LEAST[1] else lines + said

    def _box(self, lines: Sequence[str]) -> tuple[float, float]:
        """Width and height of notes, in fractions of the panel."""
        share = max(map(len, lines)) * 6.0 / self.width
        return min(share + 0.04, 0.9), len(lines) * _LINE / self.height

    def color(self, mark: Mark) -> str:
        return color_of(mark, self.colors, self.theme)

    def x(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.left + self.width * self.panel.x.fraction(values))

    def y(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.up(self.panel.y.fraction(values))

    def up(self, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.top + self.height * (1 - fraction))


def render(
    panel: Panel, *, width: int = 340, height: int = 340, theme: str | Theme | None = None
) -> str:
    """Write a panel as an SVG element.

    By default text and axes take the colour of the page around them, so that the picture reads
    on a light and on a dark page.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.plotting.axis import Axis
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
    body = [*_frame(sheet), *_inside(sheet, marks), *_notes(sheet), *_legend(sheet, width)]
    if theme is not None:
        body.insert(0, f'<rect width="{width}" height="{height}" fill="{chosen.paper}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="11" '
        f'fill="{text}"><title>{escape(panel.in_words())}</title>{"".join(body)}</svg>'
    )


def _inside(sheet: _Sheet, marks: list[str]) -> list[str]:
    """The marks, cut off a little beyond the axes.

    Pictures of one shape share a name for the rectangle, so any number of them can be on one page.
    """
    name = f"panel-{sheet.left:g}-{sheet.top:g}-{sheet.width:g}-{sheet.height:g}"
    box = f'x="{sheet.left - 4:g}" y="{sheet.top - 4:g}" width="{sheet.width + 8:g}"'
    rectangle = f'<rect {box} height="{sheet.height + 8:g}"/>'
    start = f'<clipPath id="{name}">{rectangle}</clipPath><g clip-path="url(#{name})">'
    return [start, *_beneath(sheet, marks, rectangle), "</g>"]


def _beneath(sheet: _Sheet, marks: list[str], everything: str) -> list[str]:
    """The marks; those beneath blank rectangles with holes there, whatever the colour of the page."""
    blanks = {k: mark for k, mark in enumerate(sheet.panel.marks) if isinstance(mark, Blank)}
    if not blanks:
        return marks
    holes = []
    for mark in blanks.values():
        (left, right), (bottom, top) = sheet.x(mark.x).tolist(), sheet.y(mark.y).tolist()
        size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
        holes.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="#000"/>')
    cut = f'{everything[:-2]} fill="#fff"/>{"".join(holes)}'
    name = f"holes-{sha256(cut.encode()).hexdigest()[:10]}"
    first = max(blanks) + 1
    start = f'<mask id="{name}" maskUnits="userSpaceOnUse">{cut}</mask><g mask="url(#{name})">'
    return [start, *marks[:first], "</g>", *marks[first:]]


def _frame(sheet: _Sheet) -> list[str]:
    panel, grey = sheet.panel, sheet.theme.neutral
    floor, right = sheet.top + sheet.height, sheet.left + sheet.width
    out = [
        f'<path d="M{sheet.left:g} {sheet.top:g}V{floor:g}H{right:g}" fill="none" stroke="{grey}"/>',
        f'<text x="{sheet.left + sheet.width / 2:g}" y="{floor + 33:g}" text-anchor="middle">'
        f"{escape(panel.x.caption)}</text>",
    ]
    if panel.y.label:
        out.append(
            f'<text transform="translate(12 {sheet.top + sheet.height / 2:g}) rotate(-90)" '
            f'text-anchor="middle">{escape(panel.y.label)}</text>'
        )
    for k, (text, style) in enumerate(sheet.above):
        at = f'x="{sheet.left:g}" y="{_TOP + 6 + _TITLE * k:g}"'
        out.append(f'<text {at} font-size="12"{style}>{escape(text)}</text>')
    for value, label in panel.x.ticks():
        at = f'x="{float(sheet.x(np.array(value))):.1f}" y="{floor + 15:g}"'
        out.append(f'<text {at} text-anchor="middle">{escape(label)}</text>')
    for value, label in panel.y.ticks():
        lines = label.split("\n")
        first = float(sheet.y(np.array(value))) + 4 - 0.4 * _LINE * (len(lines) - 1)
        for k, line in enumerate(lines):
            at = f'x="{sheet.left - 6:g}" y="{first + 0.8 * _LINE * k:.1f}"'
            out.append(f'<text {at} text-anchor="end">{escape(line)}</text>')
    return out


def _notes(sheet: _Sheet) -> list[str]:
    lines, corner = sheet.notes, sheet.corner
    below = _LINE * (len(lines) - 1)
    if corner is None:
        x, first, anchor = sheet.left, sheet.top - below - 6, "start"
    else:
        x = sheet.left + sheet.width * corner.place(0.03)[0]
        clear = corner.offset * sheet.height
        top = corner.side == "top"
        first = sheet.top + clear + 12 if top else sheet.top + sheet.height - clear - below - 3
        anchor = "start" if corner.left else "end"
    return [
        f'<text x="{x:.1f}" y="{first + _LINE * k:.1f}" text-anchor="{anchor}">{escape(line)}</text>'
        for k, line in enumerate(lines)
    ]


def _legend(sheet: _Sheet, width: float) -> list[str]:
    """Below the axes, one line for each kind of mark."""
    first = sheet.top + sheet.height + _BOTTOM + 8.0
    most = int((width - 44.0) / _LETTER)
    out = []
    y = first
    for entry in sheet.entries:
        out.append(_swatch(sheet, entry, y))
        for line in entry.text.split("\n"):
            text = line if len(line) <= most else line[: most - 1] + "…"
            out.append(f'<text x="38" y="{y:.1f}">{escape(text)}</text>')
            y += _LINE
    return out


def _swatch(sheet: _Sheet, entry: Entry, y: float) -> str:
    mark, color = entry.mark, sheet.color(entry.mark)
    if isinstance(mark, Band | Hill) or (isinstance(mark, Steps) and mark.thick):
        alpha = 0.55 if isinstance(mark, Hill) else _opacity(mark, sheet.theme)
        style = f'fill="{color}" fill-opacity="{alpha}"{_outline(mark, color)}'
        return f'<rect x="8" y="{y - 9:.1f}" width="22" height="10" {style}/>'
    if isinstance(mark, Dots):
        return f'<circle cx="19" cy="{y - 4:.1f}" r="3.5" fill="{color}"/>'
    dash = _DASHES[mark.dash] if isinstance(mark, Line) else ""
    style = f'stroke="{color}" stroke-width="{4 if isinstance(mark, Trail) else 1.4}"{dash}'
    return f'<path d="M8 {y - 4:.1f}H30" {style}/>'


def _outline(mark: Mark, color: str) -> str:
    """A reference has an outline, which tells it from other bands without colour."""
    if not isinstance(mark, Band) or mark.ink != "neutral":
        return ""
    return f' stroke="{color}" stroke-width="0.7" stroke-opacity="{OUTLINE_OPACITY}"'


def _opacity(mark: Mark, theme: Theme) -> float:
    return theme.neutral_opacity if mark.ink in ("neutral", "faint") else theme.band_opacity


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
    # A closed outline for each stretch of one strength: half the width to either side of the curve.
    x, y, strength = sheet.x(mark.x), sheet.y(mark.y), mark.strength()
    out = []
    for run in runs(x, y, mark.weight):
        a, b, shade = x[run], y[run], strength[run]
        if len(a) < 2:
            continue
        dx, dy = np.gradient(a), np.gradient(b)
        half = (0.6 + 2.6 * np.clip(mark.weight[run], 0, 1)) / np.maximum(np.hypot(dx, dy), 1e-9)
        upper, lower = (a - dy * half, b + dx * half), (a + dy * half, b - dx * half)
        for part, strong in stretches(shade):
            back = _path(lower[0][part][::-1], lower[1][part][::-1])
            faint = "" if strong >= 1 else f' fill-opacity="{strong:.2f}"'
            outline = f"{_path(upper[0][part], upper[1][part])}L{back[1:]}Z"
            out.append(f'<path d="{outline}" fill="{sheet.color(mark)}"{faint}/>')
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
    color, alpha = sheet.color(mark), _opacity(mark, sheet.theme)
    out = []
    for run in runs(x, low, high):
        for part, shade in stretches(mark.strength()[run]):
            area = _area(x[run][part], low[run][part], high[run][part])
            style = f'fill="{color}" fill-opacity="{shade * alpha:.3g}"{_outline(mark, color)}'
            out.append(f'<path d="{area}" {style}/>')
    return out


@_draw.register
def _(mark: Blank, sheet: _Sheet) -> list[str]:
    return []  # a hole in what lies beneath, see `_beneath`


@_draw.register
def _(mark: Hill, sheet: _Sheet) -> list[str]:
    base, outline = hill_span(mark)
    x, high = sheet.x(mark.x), sheet.up(outline)
    low = sheet.up(np.full_like(outline, base))
    style = f'fill="{sheet.color(mark)}" fill-opacity="{0.55 if mark.bars else 0.18}"'
    return [f'<path d="{_area(x[r], low[r], high[r])}" {style}/>' for r in runs(x, high)]


@_draw.register
def _(mark: Ticks, sheet: _Sheet) -> list[str]:
    low, high = sheet.up(np.array(tick_span(mark.side))).tolist()
    x = sheet.x(mark.x)
    strokes = "".join(f"M{a:.1f} {low:.1f}V{high:.1f}" for a in x[np.isfinite(x)].tolist())
    style = f'stroke="{sheet.color(mark)}" stroke-width="0.6" stroke-opacity="0.4"'
    return [f'<path d="{strokes}" {style}/>'] if strokes else []


@_draw.register
def _(mark: Dots, sheet: _Sheet) -> list[str]:
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
    style = 'stroke-width="9" stroke-opacity="0.3"' if mark.thick else 'stroke-width="1.6"'
    return [f'<path d="{strokes}" stroke="{sheet.color(mark)}" {style}/>']


@_draw.register
def _(mark: Words, sheet: _Sheet) -> list[str]:
    places = zip(sheet.x(mark.x).tolist(), sheet.y(mark.y).tolist(), mark.texts, strict=True)
    size = ' font-size="9"' if mark.small else ""
    return [
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle"{size}>{escape(text)}</text>'
        for x, y, text in places
    ]


def escape(text: str) -> str:
    """Text as XML can hold it; of a character that it cannot, such as a bell, the mark for such ones."""
    return html.escape(_NOT_IN_XML.sub("\ufffd", text))
