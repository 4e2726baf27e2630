"""The report as Markdown: the same words and tables, without the pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from calibrant.reporting.summary import Summary
from calibrant.reporting.view import view_of

__all__ = ["escaped", "render"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")


def render(summary: Summary) -> str:
    """The report as Markdown; equal summaries give equal bytes."""
    view = view_of(summary)
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


def _particulars(group: dict[str, Any], level: str) -> list[str]:
    regions = [f"1. {escaped(text)}" for text in group["regions"]] or [group["no_regions"]]
    repair = group["repair"]
    lines = [f"{level} Where the error is", "", *regions, ""]
    lines += [f"{level} What recalibration would gain", "", escaped(repair["sentence"]), ""]
    if repair["rows"]:
        rows = [(row["name"], row["before"], row["after"]) for row in repair["rows"]]
        heads = ("On rows left out of the fit", "as it is", "recalibrated")
        lines += [*_table(heads, rows), ""]
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
