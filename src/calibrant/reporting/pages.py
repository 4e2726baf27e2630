"""The report in its two readable forms: one self-contained page of HTML, and Markdown without pictures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from calibrant._optional import require
from calibrant.io.progress import Progress
from calibrant.plotting.reliability import ReliabilityDiagram
from calibrant.reporting.charts import (
    DARK_OF_LIGHT,
    color_variable,
    forest_svg,
    overview_svg,
    picture_svg,
)
from calibrant.reporting.contents import contents_of
from calibrant.reporting.outcomes import outcome_diagram
from calibrant.reporting.summary import GroupSummary, Summary, shown_names

__all__ = ["escaped", "render_html", "render_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")


@cache
def _template() -> Any:
    """The page, compiled once."""
    jinja2 = require("jinja2", caller="report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("page.html"))


def render_html(summary: Summary) -> str:
    """One self-contained page, as text: it opens from disk and sends no request."""
    jinja2 = require("jinja2", caller="report")
    markup = jinja2.filters.Markup
    diagrams = {group.name: group.diagram for group in summary.groups}  # the worst first
    drawing = Progress(len(diagrams) + 2, doing="drawing")
    picture = overview_svg(diagrams) if diagrams else ""
    drawing.advance(1)
    pictures = []
    for group in summary.groups:
        pictures.append(_pictures(group, len(diagrams) > 1, markup))
        drawing.advance(1)
    script = _text("page.js")
    html: str = _template().render(
        page=contents_of(summary),
        picture=markup(_labelled(picture, _title(", ".join(diagrams)))),
        forest=markup("" if summary.finding is None else forest_svg(summary)),
        multiples=[
            markup(_labelled(picture_svg(diagram), _title(name)))
            for name, diagram in _multiples(summary).items()
        ],
        outcomes=[
            markup("" if one is None else _labelled(picture_svg(one), one.label))
            for one in map(outcome_diagram, summary.outcomes)
        ],
        pictures=pictures,
        policy=_policy([script]),
        style=markup(_text("page.css") + _colors()),
        scripts=[markup(script)],
    )
    drawing.advance(1)
    drawing.close()
    return html


def _multiples(summary: Summary) -> dict[str, ReliabilityDiagram]:
    """The diagrams of the worst classes, by name."""
    diagrams = {} if summary.classes is None else summary.classes.diagrams
    return dict(zip(shown_names(diagrams), diagrams.values(), strict=True))


def _pictures(group: GroupSummary, several: bool, markup: Any) -> dict[str, Any]:
    """Pictures of one group: its diagram, before and after recalibration, its profile and its decisions."""
    own = markup(_labelled(picture_svg(group.diagram), _title(group.name)))
    after = profile = decisions = ""
    if group.repair is not None and not group.repair.left_alone:
        title = _title(f"{group.name}, recalibrated")
        after = markup(_labelled(picture_svg(group.repair.diagram), title))
    if group.profile_diagram is not None:
        label = f"{group.name}: {group.profile_diagram.label}"
        profile = markup(_labelled(picture_svg(group.profile_diagram), label))
    if group.decisions is not None:
        label = f"Decision curve of {group.name}: {group.decisions.label}"
        decisions = markup(_labelled(picture_svg(group.decisions), label))
    return {
        "marked": own if several else "",
        "before": "" if several else own,
        "after": after,
        "profile": profile,
        "decisions": decisions,
    }


def _labelled(svg: str, label: str) -> str:
    """SVG that screen readers announce by a label."""
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label, quote=True)}" ', 1)


def _title(name: str) -> str:
    return f"Reliability diagram of {name}"


def _policy(scripts: list[str]) -> str:
    """Only these scripts may run, and nothing may be fetched: the browser enforces it."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in scripts
    )
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"img-src data:; script-src {hashes}"
    )


def _colors() -> str:
    """Variables for the colours of the pictures; print is always light."""
    light = "".join(f"{color_variable(color)}:{color};" for color in DARK_OF_LIGHT)
    dark = "".join(f"{color_variable(color)}:{other};" for color, other in DARK_OF_LIGHT.items())
    return (
        f":root{{{light}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    )


def _text(name: str) -> str:
    return (files("calibrant.reporting") / name).read_text(encoding="utf-8")


def render_markdown(summary: Summary) -> str:
    """The report as Markdown; equal summaries give equal bytes."""
    view = contents_of(summary)
    lines = [f"# {escaped(view['title'])}", "", f"**{escaped(view['headline'])}**", ""]
    lines += [line for sentence in view["sentences"] for line in (escaped(sentence), "")]
    if view["figures"]:
        figures = [(f["label"], f["value"], f["detail"]) for f in view["figures"]]
        lines += [*_table(("", "", ""), figures), ""]
    if view["table"]:
        heads = [column["name"] for column in view["table"]["columns"]]
        rows = [[cell["text"] for cell in row] for row in view["table"]["rows"]]
        lines += [f"## {view['table']['title']}", "", *_table(heads, rows), ""]
        lines += [line for note in view["table"]["notes"] for line in (escaped(note), "")]
    if view["comparison"]:
        paired = view["comparison"]
        lines += ["## Comparison in pairs", "", escaped(paired["sentence"]), ""]
        lines += [*_table(paired["columns"], paired["rows"]), "", escaped(paired["note"]), ""]
    for one in view["outcomes"]:
        lines += [f"## {one['title']}", "", escaped(one["sentence"]), ""]
        lines += [*_table(one["columns"], one["rows"]), ""]
    if view["classes"]:
        lines += _classes(view["classes"])
    several = len(view["groups"]) > 1
    for group in view["groups"]:
        if several:
            lines += [f"## {escaped(group['name'])}", "", escaped(group["line"]) + ".", ""]
        lines += _particulars(group, "###" if several else "##")
    lines += ["## How this was made", ""]
    lines += [f"- {escaped(line)}" for line in view["provenance"][:2]]
    if view["command"]:
        lines.append(f"- Command: {escaped(view['command'])}")
    lines += ["", escaped(view["citation"])]
    return "\n".join(lines) + "\n"


def _classes(classes: dict[str, Any]) -> list[str]:
    worst, errors = classes["worst"], classes["errors"]
    lines = ["## Classes", ""]
    lines += [line for text in classes["sentences"] for line in (escaped(text), "")]
    lines += ["### The worst classes, each against the rest", ""]
    lines += [*_table(worst["columns"], worst["rows"]), ""]
    lines += ["### Wrong with confidence", "", escaped(errors["sentence"]), ""]
    return [*lines, *_table(errors["columns"], errors["rows"]), ""] if errors["rows"] else lines


def _particulars(group: dict[str, Any], level: str) -> list[str]:
    regions = [f"1. {escaped(text)}" for text in group["regions"]] or [group["no_regions"]]
    repair = group["repair"]
    lines = [f"{level} Where the error is", "", *regions, ""]
    lines += [f"{level} What recalibration would gain", "", escaped(repair["sentence"]), ""]
    if repair["rows"]:
        rows = [(row["name"], row["before"], row["after"]) for row in repair["rows"]]
        heads = ("On rows left out of the fit", "as it is", "recalibrated")
        lines += [*_table(heads, rows), ""]
    if group["decisions"]:
        acting = group["decisions"]
        lines += [f"{level} If you act on these predictions", "", escaped(acting["sentence"]), ""]
        if acting["rows"]:
            lines += [*_table(acting["columns"], acting["rows"]), ""]
    if group["profile"]:
        lines += [f"{level} {escaped(group['profile']['title'])}", ""]
        for table in group["profile"]["tables"]:
            lines += [*_table(table["columns"], table["rows"]), ""]
        said = [*group["profile"]["notes"], group["profile"]["sources"]]
        lines += [line for text in said if text for line in (escaped(text), "")]
    if group["measures"]:
        rows = [(row["name"], row["value"], row["misses"]) for row in group["measures"]]
        heads = ("Measure", "Value", "What it misses")
        lines += [f"{level} Other measures, side by side", "", *_table(heads, rows), ""]
    notes = [f"- {escaped(note)}" for note in group["notes"]]
    return [*lines, f"{level} Notes on the data", "", *notes, ""]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(escaped(cell) for cell in cells) + " |"

    return [line(heads), "|" + "---|" * len(heads), *(line(row) for row in rows)]


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is.

    Examples
    --------
    >>> escaped("a|b <script> *c*")
    'a\\|b &lt;script&gt; \\*c\\*'
    """
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)
