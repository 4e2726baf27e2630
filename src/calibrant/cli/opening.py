"""What was named on the command line: standard input, sketches, logs, or files of rows."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Literal

from calibrant.cli.text import quoted
from calibrant.errors import InputError

__all__ = ["Kind", "kind_of", "opened"]

Kind = Literal["rows", "sketch", "log"]
STANDARD_INPUT = "standard input"
SKETCH_MARK = b'"calibrant.sketch"'


def opened(names: Sequence[str]) -> list[str]:
    """The paths, with standard input in a file of its own that is removed at the end."""
    if list(names).count("-") > 1:
        raise InputError("standard input can be read once; - stands twice in the command.")
    seen: set[str] = set()
    for name in names:
        place = name if "://" in name else os.path.normcase(os.path.abspath(name))
        if place in seen:
            raise InputError(
                f"a file is read once; {quoted(name, 200)} stands twice in the command."
            )
        seen.add(place)
    return [_spooled() if name == "-" else name for name in names]


def kind_of(path: str, *, log: str | None) -> Kind:
    """Whether a path is a sketch, a log of an evaluation, or anything that holds rows."""
    if log is not None:
        return "log"
    if not os.path.isfile(path):
        return "rows"
    if path.endswith(".json"):
        with open(path, "rb") as file:
            if SKETCH_MARK in file.read(4096):
                return "sketch"
    elif path.endswith(".parquet"):
        with open(path, "rb") as file:
            file.seek(-min(os.path.getsize(path), 1 << 16), os.SEEK_END)
            return "sketch" if SKETCH_MARK in file.read() else "rows"
    if path.removesuffix(".gz").endswith((".json", ".jsonl", ".ndjson", ".eval")):
        from calibrant.read.answers.reading import log_format

        return "log" if log_format(path) else "rows"
    return "rows"


def _spooled() -> str:
    if sys.stdin.isatty():
        raise InputError("- stands for standard input, and nothing is piped into it.")
    folder = tempfile.mkdtemp(prefix="calibrant-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, STANDARD_INPUT)
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    named = path + _ending(path)
    os.rename(path, named)
    return named


def _ending(path: str) -> str:
    """The ending that says what the bytes are."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head:
        raise InputError("standard input must not be empty; nothing came.")
    if head.startswith(b"PAR1"):
        return ".parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file, or a stream
        return ".arrow"
    if SKETCH_MARK in head:
        return ".json"
    if head.startswith(b"\x1f\x8b"):
        raise InputError("standard input is compressed; unpack it first, as with `gzip -dc`.")
    if head.lstrip().startswith(b"{"):
        return ".jsonl"
    first = head.split(b"\n", 1)[0]
    return ".tsv" if b"\t" in first and b"," not in first else ".csv"
