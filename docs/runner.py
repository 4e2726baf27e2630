"""Run the examples of a page in order, as a reader who types them one after the other would.

Three kinds of fenced block run: ``python`` (executed), ``pycon`` (a session, whose output is compared;
``...`` matches anything) and ``console`` (lines after ``$`` run in a shell and must succeed; the output is
compared where the page shows one). All blocks of a page share one namespace and one empty folder.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]+)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.M | re.S
)
NEEDS = re.compile(r"\A---\n.*?^needs: *\[(?P<modules>[^\]]*)\].*?^---\n", re.M | re.S)
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text without indentation, and the line it begins on."""

    language: str
    source: str
    line: int


class ExampleFailed(AssertionError):
    """An example of a page did not do what the page says."""


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text, in order."""
    for found in FENCE.finditer(text):
        indent = len(found["indent"])
        source = "".join(line[indent:] or "\n" for line in found["body"].splitlines(keepends=True))
        yield Block(found["language"], source, text.count("\n", 0, found.start("body")) + 1)


def needs_of(text: str) -> list[str]:
    """Modules that the page's front matter asks for, beyond what `dev` installs."""
    found = NEEDS.match(text)
    return [name.strip() for name in found["modules"].split(",")] if found else []


def run_page(page: Path, folder: Path) -> None:
    """Run every example of a page with `folder` as the working directory."""
    names: dict[str, Any] = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")
    with contextlib.chdir(folder):
        for block in blocks_of(text):
            if block.language == "python":
                source = "\n" * (block.line - 1) + block.source
                exec(compile(source, str(page), "exec"), names)
            elif block.language == "pycon":
                _run_session(page, block, names)
            elif block.language == "console":
                _run_commands(page, block)


def _run_session(page: Path, block: Block, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.source, names, page.name, str(page), block.line - 1
    )
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=LENIENT, verbose=False)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise ExampleFailed("".join(said))


def _run_commands(page: Path, block: Block) -> None:
    checker = doctest.OutputChecker()
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in re.split(r"^\$ ", block.source, flags=re.M)[1:]:
        typed, _, expected = re.sub(r"\\\n", "", command).partition("\n")
        done = subprocess.run(
            typed,
            shell=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **plain, "PATH": path},
            check=False,
        )
        shown = expected.strip() == "" or checker.check_output(expected, done.stdout, LENIENT)
        if done.returncode != 0 or not shown:
            raise ExampleFailed(
                f"{page.name}:{block.line}: $ {typed}\nexit {done.returncode}\n"
                f"expected:\n{expected}\ngot:\n{done.stdout}"
            )
