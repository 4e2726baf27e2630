"""What MkDocs does beyond Markdown: figures drawn by the pages' own code, and formulas as MathML.

Both keep the built site free of requests to other hosts.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
import tempfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from notebook_rendering import render
from runner import needs_of, run_page

SOURCE = Path(__file__).parents[1] / "src"
PUBLIC = re.compile(r"^from (\S+) import \(?\s*\w+ as (\w+)", re.MULTILINE)
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.S
)
SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')
FRAME_WORKER = (Path(__file__).parent / "frame-worker.js").read_text(encoding="utf-8")
TAG = re.compile(r"\\tag\{(?P<name>\w+)\}")
TABLE = re.compile(r"\n\n(?:\|[^\n]*\n)+")
LONG, LONG_BELOW_THE_FIRST = 17, 7
"""Rows from which a table of the evidence is folded."""
FIGURE = re.compile(r"!\[[^\]]*\]\((?P<path>figures/[^)#]+)(?:#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the examples of every page: the site shows what they print and the figures that they save.

    What a page saved as x.svg becomes figures/x.svg of the site; two pages cannot save the same name.
    """
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        _add_notebook(notebook, files, config)
    homes: dict[str, str] = {}
    for page in list(files.documentation_pages()):
        text = page.content_string
        if page.generated_by or not all(find_spec(name) for name in needs_of(text)):
            continue
        folder = Path(tempfile.mkdtemp(prefix="calibrant-docs-"))
        shown = run_page(Path(str(page.abs_src_path)), folder)
        for path in sorted(set(FIGURE.findall(text))):
            if homes.setdefault(path, page.src_uri) != page.src_uri:
                raise PluginError(f"{page.src_uri} and {homes[path]} both save {path}")
            drawn = (folder / Path(path).name).read_bytes()
            files.append(File.generated(config, path, content=drawn))
        if shown != text:
            files.remove(page)
            files.append(File.generated(config, page.src_uri, content=shown))
        shutil.rmtree(folder)
    return files


def _add_notebook(notebook: File, files: Files, config: MkDocsConfig) -> None:
    """Add the notebook as a page with its output; the notebook itself stays, to be downloaded."""
    folder = Path(tempfile.mkdtemp(prefix="calibrant-docs-"))
    rendered = render(Path(str(notebook.abs_src_path)), folder)
    page = notebook.src_uri.replace(".ipynb", ".md")
    files.append(File.generated(config, page, content=rendered.markdown))
    for name, picture in rendered.pictures.items():
        files.append(File.generated(config, f"notebooks/{name}", content=picture))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fold the tables of the evidence, but for the first of a page, which is the one that matters."""
    if not page.file.src_uri.startswith("evidence/"):
        return markdown
    tables = iter(range(1_000))
    return TABLE.sub(lambda table: _folded(table[0], is_first=next(tables) == 0), markdown)


def _folded(table: str, is_first: bool) -> str:
    rows = table.count("\n|") - 2
    if rows < (LONG if is_first else LONG_BELOW_THE_FIRST):
        return table
    summary = f"<summary>{rows} rows</summary>"
    return f'\n\n<details markdown="1">{summary}\n\n{table.strip()}\n\n</details>\n'


def on_page_content(content: str, **_: Any) -> str:
    """Replace the TeX that the Markdown extension marks by MathML, which browsers show themselves."""
    return FORMULA.sub(_as_mathml, content)


def _as_mathml(found: re.Match[str]) -> str:
    tex = html.unescape(found["tex"]).strip()
    if found["tag"] == "span":
        return str(convert(tex))
    number = TAG.search(tex)
    formula = str(convert(TAG.sub("", tex), display="block"))
    if not number:
        return f'<div class="equation">{formula}</div>'
    name = number["name"]
    return f'<div class="equation" id="{name}">{formula}<span>({name})</span></div>'


@event_priority(-100)  # after mkdocstrings, which writes the inventory
def on_post_build(config: MkDocsConfig) -> None:
    """Leave out the stemmers of other languages, which the search of an English site never loads.

    The inventory gets the names that users type, such as calibrant.smooth_ece, beside those of their homes.
    """
    site = Path(config.site_dir)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    inventory = site / "objects.inv"
    if inventory.exists():
        inventory.write_bytes(with_public_names(inventory.read_bytes()))


def with_public_names(inventory: bytes) -> bytes:
    """Inventory of objects with a line for each public name of a package that stands for one of them."""
    end = inventory.index(b"zlib.\n") + len(b"zlib.\n")
    lines = zlib.decompress(inventory[end:]).decode().splitlines()
    known = {line.split()[0]: line.split() for line in lines}
    for stub in sorted((SOURCE / "calibrant").rglob("__init__.pyi")):
        package = ".".join(stub.parent.relative_to(SOURCE).parts)
        for home, name in PUBLIC.findall(stub.read_text(encoding="utf-8")):
            public, own = f"{package}.{name}", f"{home}.{name}"
            if own in known and public not in known:
                _, role, _, address, shown = known[own]
                lines.append(f"{public} {role} 2 {address.replace('$', own)} {shown}")
    return inventory[:end] + zlib.compress("\n".join(lines).encode())


def on_post_page(output: str, **_: Any) -> str:
    """Give the search its worker from our own file instead of another host's."""
    return SHIM.sub(lambda _: f"<script>{FRAME_WORKER}</script>", output)
