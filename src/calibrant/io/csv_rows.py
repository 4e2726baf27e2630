"""The separator and the rows of a CSV, as Python reads them, without its limit on the length of a field."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice

__all__ = ["has_decimal_commas", "rows_of", "separator_of"]

WITH_COMMA, WITH_POINT = (
    re.compile(rf"\s*[-+]?\d*{mark}\d+(e[-+]?\d+)?%?\s*", re.I) for mark in (",", r"\.")
)
LINE_END = re.compile(r"\r\n|[\r\n]")
Rows = Iterator[tuple[list[str], int]]


def separator_of(first_line: str) -> str:
    r"""What separates the fields of a CSV: a comma, unless its first line has none and another that could be.

    Examples
    --------
    >>> separator_of("y,p;q"), separator_of("y;p"), separator_of("y\tp"), separator_of("p")
    (',', ';', '\t', ',')
    """
    if "," in first_line:
        return ","
    counts = {other: first_line.count(other) for other in (";", "\t", "|")}
    most = max(counts, key=lambda other: counts[other])
    return most if counts[most] else ","


def rows_of(text: str, delimiter: str) -> Rows:
    r"""The rows, each with the number of the line on which it begins; that of a blank line is empty.

    Python's reader refuses a field of more than 131,072 characters, as answers of language models may
    be, and the limit is one for the whole process: where it is met, the rest is read without that reader.

    Examples
    --------
    >>> list(rows_of('p,note\n.5,"two\nlines"\n.7,', ","))
    [(['p', 'note'], 1), (['.5', 'two\nlines'], 2), (['.7', ''], 4)]
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    count, line = 0, 1
    try:
        for row in reader:
            yield row, line
            count, line = count + 1, reader.line_num + 1
    except csv.Error:
        yield from islice(_any_length(text, delimiter), count, None)


def _any_length(text: str, delimiter: str) -> Rows:
    """The same, cell by cell: what is quoted, what follows it, and what ends it."""
    border = re.escape(delimiter) + r"\r\n"
    cell = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)(?:"|\Z))?([^{border}]*)(\r\n|[{border}]|\Z)')
    row: list[str] = []
    line, start, at, end = 1, 0, 0, ""
    while at < len(text) or end == delimiter:
        match = cell.match(text, at)
        assert match is not None  # every part of it may be empty
        quoted, rest, end = match.groups()
        row.append((quoted or "").replace('""', '"') + rest)
        at = match.end()
        if end != delimiter:
            whole = text[start:at]
            yield row if whole.strip("\r\n") else [], line
            row, line, start = [], line + len(LINE_END.findall(whole)), at


def has_decimal_commas(cells: Sequence[str], delimiter: str) -> bool:
    """Whether numbers are written as 0,85: only where a comma does not end a field.

    Examples
    --------
    >>> has_decimal_commas(["0,85", "a,b"], ";"), has_decimal_commas(["0,85", "0.9"], ";")
    (True, False)
    """
    return (
        delimiter != ","
        and any(WITH_COMMA.fullmatch(cell) for cell in cells)
        and not any(WITH_POINT.fullmatch(cell) for cell in cells)
    )
