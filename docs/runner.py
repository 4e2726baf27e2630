"""Run the examples of a page in order, as a reader who types them one after the other would.

Three kinds of fenced block run: ``python`` (executed), ``pycon`` (a session) and ``console`` (lines after
``$`` run in a shell and must succeed). Where the page has an output it is compared; ``...`` matches anything.
The built page shows what was printed. All blocks of a page share one namespace and one folder, in which are
the files of `data/`.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]+)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.M | re.S
)
NEEDS = re.compile(r"\A---\n.*?^needs: *\[(?P<modules>[^\]]*)\].*?^---\n", re.M | re.S)
DATA = Path(__file__).with_name("data")
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text without indentation, and the line it begins on."""

    language: str
    source: str
    line: int


class ExampleFailed(AssertionError):
    """An example of a page did not do what the page says."""


def _block(text: str, found: re.Match[str]) -> Block:
    indent = len(found["indent"])
    source = "".join(line[indent:] or "\n" for line in found["body"].splitlines(keepends=True))
    return Block(found["language"], source, text.count("\n", 0, found.start("body")) + 1)


def needs_of(text: str) -> list[str]:
    """Modules that the page's front matter asks for, beyond what `dev` installs."""
    found = NEEDS.match(text)
    return [name.strip() for name in found["modules"].split(",")] if found else []


def run_page(page: Path, folder: Path) -> str:
    """The text of a page with what its examples printed, run with `folder` as the working directory."""
    names: dict[str, Any] = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")
    pieces, end = [], 0
    shutil.copytree(DATA, folder, dirs_exist_ok=True)
    with contextlib.chdir(folder):
        for found in FENCE.finditer(text):
            block = _block(text, found)
            shown = block.source
            if block.language == "python":
                exec(compile("\n" * (block.line - 1) + block.source, str(page), "exec"), names)
            elif block.language == "pycon":
                shown = _run_session(page, block, names)
            elif block.language == "console":
                shown = _run_commands(page, block)
            indented = "".join(found["indent"] + line for line in shown.splitlines(keepends=True))
            pieces += [text[end : found.start("body")], indented]
            end = found.end("body")
    return "".join([*pieces, text[end:]])


def _run_session(page: Path, block: Block, names: dict[str, Any]) -> str:
    """The session with what it printed."""
    shown: list[str] = []
    for example in doctest.DocTestParser().get_examples(block.source, str(page)):
        lines = example.source.splitlines()
        shown += [f">>> {lines[0]}", *(f"... {line}".rstrip() for line in lines[1:])]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(example.source, str(page), "single"), names)
            except Exception as error:
                if example.exc_msg is None:
                    raise ExampleFailed(f"{page.name}:{block.line}: {example.source}") from error
                printed.write(traceback.format_exception_only(error)[-1])
        _compare(page, block, example.source, example.exc_msg or example.want, printed.getvalue())
        shown += printed.getvalue().splitlines()
    return "\n".join(shown) + "\n"


def _run_commands(page: Path, block: Block) -> str:
    """The commands with what they printed, if the page shows an output."""
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shown = ""
    for command in re.split(r"^\$ ", block.source, flags=re.M)[1:]:
        lines = command.split("\n")
        ends = next(k for k, line in enumerate(lines) if not line.endswith("\\"))
        typed, expected = "\n".join(lines[: ends + 1]), "\n".join(lines[ends + 1 :])
        done = subprocess.run(
            typed,
            shell=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **plain, "PATH": path},
            check=False,
        )
        if done.returncode != 0:
            raise ExampleFailed(f"{page.name}:{block.line}: $ {typed}\n{done.stdout}")
        shown += f"$ {typed}\n"
        if expected.strip():
            _compare(page, block, typed, expected, done.stdout)
            shown += done.stdout
    return shown


def _compare(page: Path, block: Block, typed: str, expected: str, printed: str) -> None:
    checker = doctest.OutputChecker()
    if expected.strip() and not checker.check_output(expected, printed, LENIENT):
        raise ExampleFailed(
            f"{page.name}:{block.line}: {typed}\nexpected:\n{expected}\nprinted:\n{printed}"
        )
