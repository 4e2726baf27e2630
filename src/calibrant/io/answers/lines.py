"""The objects of a file of JSON lines, one at a time."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from typing import Any

from calibrant._files import json_of
from calibrant.errors import InputError, Option, Where

__all__ = ["json_lines", "opened"]

Lines = Iterator[tuple[int, dict[str, Any]]]


def json_lines(path: str | os.PathLike[str]) -> Lines:
    """The objects of a file of JSON lines, each with the number of its line."""
    name = os.fspath(path)
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json_of(line)
            except UnicodeDecodeError as error:
                raise InputError(
                    "{file} must be a log in JSON; it is not text",
                    file=name,
                    cure="A table of rows, such as Parquet, is read without {format}.",
                    format=Option("format"),
                ) from error
            except (ValueError, RecursionError) as error:
                raise InputError(
                    "a line of a log must be JSON",
                    where=Where(line=number, file=name),
                    seen=str(error),
                    saying="{}",
                    cure="Check the line: the log may be damaged or incomplete.",
                ) from error
            if not isinstance(row, dict):
                raise InputError(
                    "a line of a log must be an object",
                    where=Where(line=number, file=name),
                    seen=str(row)[:60],
                    cure="Check the line: the log may be damaged or incomplete.",
                )
            yield number, row


def opened(path: str | os.PathLike[str]) -> Any:
    """The file, unpacked where its name ends in .gz."""
    return gzip.open(path) if os.fspath(path).endswith(".gz") else open(path, "rb")
