"""The report in its two readable forms: one self-contained page of HTML, and Markdown without pictures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.inference.assessment import FINDINGS
from calibrant.plotting.themes import DARK, LIGHT, Theme
from calibrant.reporting.contents import LEVELS, Block, Picture, Section, Table, contents_of
from calibrant.reporting.summary import Summary

__all__ = ["escaped", "render_html", "render_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")
_OUTLINE = re.compile(r' d="([^"]*)"')
_NEEDLESS = re.compile(r" font-family: [^;]*;| transform=\"rotate\(-0 [^\"]*\"|(?<=>)\s+(?=<)")
"""Fonts, which the style sheet names, rotations by nothing, and indentation."""
STRAIGHT, HALVINGS = 0.05, 4
"""Points off a line that nobody sees, and how often half of an outline's points may go."""
WIDTH = 4.4
"""Inches of a picture: wide enough for its legend, and two fit beside each other."""


def _colors(theme: Theme) -> list[str]:
    named = [getattr(theme, f.name) for f in fields(theme) if f.type == "str" and f.name != "name"]
    return [*named, *theme.series]


DARK_OF_LIGHT = dict(zip(_colors(LIGHT), _colors(DARK), strict=True))
"""Each colour of a light picture, and its counterpart in the dark."""


@cache
def _template() -> Any:
    """The page, compiled once."""
    jinja2 = require("jinja2", caller="report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["svg"] = lambda picture: jinja2.filters.Markup(_svg(picture))
    return environment.from_string(_text("page.html"))


def render_html(summary: Summary) -> str:
    """One self-contained page, as text: it opens from disk and sends no request."""
    script = _text("page.js")
    html: str = _template().render(
        page=contents_of(summary),
        made=summary,
        levels=LEVELS,
        findings=FINDINGS,
        policy=_policy(script),
        style=_text("page.css") + _variables(),
        script=script,
    )
    return html


def _svg(picture: Picture) -> str:
    """The picture, in colours that follow the theme of the page, with its label for screen readers."""
    svg = picture.diagram.to_svg(width=WIDTH)
    svg = _NEEDLESS.sub("", _OUTLINE.sub(_short_outline, svg))
    for color in DARK_OF_LIGHT:
        svg = svg.replace(color, f"var({_variable(color)})")
    label = escape(picture.label, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _short_outline(outline: re.Match[str]) -> str:
    """Path to a tenth of a point, without points that lie on the line between their neighbours."""
    if {"C", "Q"} & set(outline[1]):  # circles are short as they are
        return outline[0]
    parts = []
    for part in outline[1].split("M")[1:]:
        points = np.array(re.findall(r"-?[\d.]+", part), dtype=np.float64).reshape(-1, 2)
        for _ in range(HALVINGS):
            points = points[_bends(points)]
        places = " ".join(f"{place:.1f}".removesuffix(".0") for place in points.ravel())
        parts.append(f"M{places}{'z' * ('z' in part)}")
    return f' d="{"".join(parts)}"'


def _bends(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Every second point, and of the others those that are off the line between their neighbours."""
    kept = np.ones(len(points), dtype=bool)
    before, between, after = points[:-2:2], points[1:-1:2], points[2::2]
    (dx, dy), (x, y) = (after - before).T, (between - before).T
    kept[1:-1:2] = np.abs(dx * y - dy * x) > STRAIGHT * np.hypot(dx, dy)
    return kept


def _policy(script: str) -> str:
    """Only this script may run, and nothing may be fetched: the browser enforces it."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"img-src data:; script-src 'sha256-{digest}'"
    )


def _variable(color: str) -> str:
    """Name of the style sheet's variable that holds a colour of the light theme."""
    return f"--c-{color[1:]}"


def _variables() -> str:
    """Variables for the colours of the pictures; print is always light."""
    light = "".join(f"{_variable(color)}:{color};" for color in DARK_OF_LIGHT)
    dark = "".join(f"{_variable(color)}:{other};" for color, other in DARK_OF_LIGHT.items())
    return (
        f":root{{{light}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    )


def _text(name: str) -> str:
    return (files("calibrant.reporting") / name).read_text(encoding="utf-8")


def render_markdown(summary: Summary) -> str:
    """The report as Markdown; equal summaries give equal bytes."""
    page = contents_of(summary)
    parts = [f"# {escaped(summary.title)}", f"**{escaped(page.headline)}**"]
    parts += map(escaped, page.sentences)
    if page.figures:
        parts.append(_table(("", ""), page.figures))
    for section in page.sections:
        parts += _block(section, 2)
    if summary.command:
        parts.append(f"Command: {escaped(summary.command)}")
    return "\n\n".join(parts) + "\n"


def _block(block: Block, level: int) -> Iterator[str]:
    """Paragraphs of a block, without the pictures."""
    if isinstance(block, str):
        yield escaped(block)
    elif isinstance(block, list):
        lines = [f"- {escaped(line)}" for line in block if isinstance(line, str)]
        yield from ["\n".join(lines)] if lines else []
    elif isinstance(block, Table):
        yield from [f"{block.fold}:"] if block.fold else []
        yield _table(block.columns, block.rows)
    elif isinstance(block, Section):
        yield f"{'#' * level} {escaped(block.title)}"
        if block.line:
            yield f"{escaped(block.line)}."
        for one in block.blocks:
            yield from _block(one, level + 1)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(escaped(cell) for cell in cells) + " |"

    return "\n".join([line(heads), "|" + "---|" * len(heads), *map(line, rows)])


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is.

    Examples
    --------
    >>> escaped("a|b <script> *c*")
    'a\\|b &lt;script&gt; \\*c\\*'
    """
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)
