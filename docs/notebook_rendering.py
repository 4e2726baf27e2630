"""Run a notebook and write it as Markdown with what its cells showed.

Notebooks are committed without output. Their cells run in this process, as those of one session. What a
cell prints and the value of its last line are shown below it, diagrams as pictures. The metadata of a
cell holds the description of its picture under `alt`.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDTH = 80
"""Characters of a line that fit beside the navigation."""
WAY = "[Download this notebook]({name}){{ .md-button download={name} }}\n"


@dataclass(frozen=True)
class Rendered:
    """A notebook as Markdown, with the pictures that it links to."""

    markdown: str
    pictures: dict[str, str]


def render(notebook: Path, folder: Path) -> Rendered:
    """Run every cell of a notebook with `folder` as the working directory."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    parts: list[str] = []
    pictures: dict[str, str] = {}
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, cell in enumerate(cells):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
                continue
            parts.append(f"```python\n{source}\n```")
            printed, value = run_cell(source, names, f"{notebook.name}[{number}]")
            if printed:
                parts.append(f"```text\n{_wrapped(printed.rstrip())}\n```")
            if value is not None:
                parts.append(_shown(value, cell, f"{notebook.stem}-{number}.svg", pictures))
    parts.insert(1, WAY.format(name=notebook.name))
    return Rendered("\n\n".join(parts) + "\n", pictures)


def run_cell(source: str, names: dict[str, Any], where: str) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        value = None if last is None else eval(compile(_expression(last), where, "eval"), names)
    return printed.getvalue(), value


def _expression(last: ast.Expr) -> ast.Expression:
    return ast.Expression(last.value)


def _shown(value: Any, cell: dict[str, Any], name: str, pictures: dict[str, str]) -> str:
    if hasattr(value, "to_svg"):
        pictures[name] = value.to_svg()
        return f"![{html.escape(cell['metadata']['alt'], quote=True)}]({name})"
    if hasattr(value, "_repr_html_"):
        return f'<div class="notebook-output" markdown="0">\n{value._repr_html_()}\n</div>'
    return f"```text\n{_wrapped(repr(value))}\n```"


def _wrapped(text: str) -> str:
    """The text with long lines broken, so that the whole of a sentence can be seen without scrolling."""
    lines = text.splitlines()
    return "\n".join(line if len(line) <= WIDTH else textwrap.fill(line, WIDTH) for line in lines)
