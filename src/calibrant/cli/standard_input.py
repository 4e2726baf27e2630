"""Files as they are named, and standard input as a file of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence

from calibrant.cli.output import SPOOL, STANDARD_INPUT, quoted, spooled
from calibrant.errors import InputError

__all__ = ["SKETCH_MARK", "opened"]

SKETCH_MARK = b'"calibrant.sketch"'


def opened(names: Sequence[str]) -> list[str]:
    """The paths, with standard input in a file of its own that is removed at the end."""
    if list(names).count("-") > 1:
        raise InputError(
            "standard input can be read once; - stands twice in the command", cure="Name it once."
        )
    places: set[str] = set()
    for name in names:
        place = name if "://" in name else os.path.normcase(os.path.abspath(name))
        if place in places:
            raise InputError(
                "a file is read once; {file} stands twice in the command",
                file=quoted(name, 200),
                cure="Name it once.",
            )
        places.add(place)
    return [_spooled() if name == "-" else name for name in names]


def _spooled() -> str:
    if sys.stdin.isatty():
        raise InputError(
            "- stands for standard input, and nothing is piped into it",
            cure="Pipe a file into the command, or name a file.",
        )
    folder = tempfile.mkdtemp(prefix=SPOOL)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, STANDARD_INPUT)
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    named = path + _ending(path)
    os.rename(path, named)
    spooled[named] = STANDARD_INPUT
    return named


def _ending(path: str) -> str:
    """The ending that says what the bytes are."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head:
        raise InputError(
            "standard input must not be empty; nothing came",
            cure="Check the command before the pipe.",
        )
    if head.startswith(b"PAR1"):
        return ".parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file, or a stream
        return ".arrow"
    if SKETCH_MARK in head:
        return ".json"
    if head.startswith(b"\x1f\x8b"):
        raise InputError(
            "standard input is compressed", cure="Unpack it first, as with `gzip -dc`."
        )
    if head.lstrip().startswith(b"{"):
        return ".jsonl"
    first = head.split(b"\n", 1)[0]
    return ".tsv" if b"\t" in first and b"," not in first else ".csv"
