"""Whether a Parquet file is one file: of several that were joined, readers see the rows of the last.

The contents stand at the end, behind the columns and their indexes. What they tell of lies in the last of
the files and is looked for in the first: where both have the same layout, nobody notices. Between the end
of the columns and the contents there is then the end of another file.

The contents are written in Thrift's compact protocol. Arrow's own access to the places of columns ends the
process where they are damaged, so they are read here, as far as they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["require_one_file"]

TAIL_BYTES = 8
"""The length of the contents, and the mark of the format."""
JOINED = re.compile(rb"PAR1(?=PAR1)")
"""The mark at the end of a file, before that at the beginning of another."""
VERSION_FIELD = b"\x15"
"""How contents begin."""
LONGEST_CONTENTS = 1 << 20
"""Of which all is read; longer ones, of many thousand columns, are taken on trust."""
PIECE_BYTES = 1 << 20
GROUPS, COLUMNS, ABOUT, SIZE, DATA, DICTIONARY = 4, 1, 3, 7, 9, 11
"""Fields: of the contents, of a group of rows, of a column in it."""
PLACES: Mapping[int, Any] = {GROUPS: {COLUMNS: {ABOUT: dict.fromkeys((SIZE, DATA, DICTIONARY))}}}
BYTE, WHOLE, DOUBLE, TEXT, LISTS, MAP, STRUCT = 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
"""Kinds of values; below these are truth values, which have no bytes of their own in a structure."""


def require_one_file(handle: Any, size: int) -> None:
    """Refuse Parquet files that were joined into one.

    Parameters
    ----------
    handle
        The open file.
    size : int
        Its length.
    """
    handle.seek(size - TAIL_BYTES)
    length = int.from_bytes(handle.read(4), "little")
    end = size - TAIL_BYTES - length
    if length > LONGEST_CONTENTS or end < 0:
        return
    handle.seek(end)
    try:
        start = _end_of_columns(handle.read(length))
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return  # Arrow has the last word on what it can read
    start = max(start, TAIL_BYTES)
    while start < end:
        handle.seek(start - TAIL_BYTES)
        piece = handle.read(min(end - start, PIECE_BYTES) + 2 * TAIL_BYTES)
        marks = (start - TAIL_BYTES + joint.start() for joint in JOINED.finditer(piece))
        if any(_ends_a_file(handle, mark) for mark in marks):
            raise ValueError("several Parquet files were joined into it")
        start += PIECE_BYTES


def _end_of_columns(contents: bytes) -> int:
    places, _ = _structure(contents, 0, PLACES)
    ends = [0]
    for group in places[GROUPS]:
        for column in group[COLUMNS]:
            about = column[ABOUT]
            ends.append(min(about[DATA], about.get(DICTIONARY) or about[DATA]) + about[SIZE])
    return int(max(ends))


def _ends_a_file(handle: Any, mark: int) -> bool:
    """Whether contents stand before a mark: their length, and so far back their first field."""
    handle.seek(max(0, mark - 4))
    first = mark - 4 - int.from_bytes(handle.read(4), "little")
    if first < 4:
        return False
    handle.seek(first)
    return bool(handle.read(1) == VERSION_FIELD)


def _structure(data: bytes, at: int, wanted: Mapping[int, Any]) -> tuple[dict[int, Any], int]:
    """The wanted fields of a structure that begins there, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _whole(data, at)
        value, at = _value(data, at, head & 15, wanted.get(number))
        if number in wanted:
            fields[number] = value
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, wanted: Any) -> tuple[Any, int]:
    if kind in WHOLE:
        return _whole(data, at)
    if kind == STRUCT:
        return _structure(data, at, wanted or {})
    if kind == TEXT:
        length, at = _count(data, at)
        return None, at + length
    if kind in LISTS:
        return _list(data, at, wanted)
    if kind == MAP:
        raise ValueError("there are no maps in the contents")
    return None, at + {BYTE: 1, DOUBLE: 8}.get(kind, 0)


def _list(data: bytes, at: int, wanted: Any) -> tuple[list[Any], int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _count(data, at)
    if size > len(data):
        raise ValueError("a list is longer than all of the contents")
    values = []
    for _ in range(size):
        value, at = _value(data, at, max(kind, BYTE), wanted)
        if wanted is not None:
            values.append(value)
    return values, at


def _count(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _whole(data: bytes, at: int) -> tuple[int, int]:
    """A number that may be negative: the sign stands last."""
    value, at = _count(data, at)
    return (value >> 1) ^ -(value & 1), at
