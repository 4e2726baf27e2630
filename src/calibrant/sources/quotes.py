"""Quotes of a CSV: where the last whole line of a piece ends, and which quote is never closed.

A quote opens a field only at its beginning; anywhere else it is a character like any other. Inside a
quoted field two quotes stand for one, and a line break is part of the field.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np

__all__ = ["Quotes"]

QUOTE = 0x22
LINE_ENDS = (0x0A, 0x0D)


class Quotes:
    r"""The quoted stretches of a piece of CSV that begins with a line.

    Attributes
    ----------
    opened, closed : sequences of int
        Places of the quotes that begin and end each stretch. A doubled quote ends one and begins the
        next; where the last one is not closed, `opened` is longer by one.

    Examples
    --------
    >>> Quotes(b'a,"b\nc"\nd,"e\n', ",").last_line_end()
    8
    """

    def __init__(self, piece: bytes, delimiter: str) -> None:
        self.piece = piece
        self.delimiter = delimiter
        marks = np.flatnonzero(np.frombuffer(piece, np.uint8) == QUOTE)
        before = np.frombuffer(piece, np.uint8)[marks[::2] - 1]
        starts = np.isin(before, (QUOTE, ord(delimiter), *LINE_ENDS)) | (marks[::2] == 0)
        self.opened: Sequence[int]
        self.closed: Sequence[int]
        if starts.all():
            self.opened, self.closed = marks[::2].tolist(), marks[1::2].tolist()
        else:
            self.opened, self.closed = _walked(piece, delimiter)

    def never_closed(self) -> int:
        """Where the field begins whose quote is still open at the end, or -1."""
        is_open = len(self.opened) > len(self.closed)
        return self._field(len(self.opened) - 1) if is_open else -1

    def goes_on(self) -> int:
        """Where the first field begins that goes on after its closing quote, or -1.

        So does a field whose quote was forgotten, at the opening quote of another, lines later.
        """
        ends = np.array(self.closed, dtype=np.int64)
        ends = ends[ends + 1 < len(self.piece)]
        after = np.frombuffer(self.piece, np.uint8)[ends + 1]
        stray = ~np.isin(after, (QUOTE, ord(self.delimiter), *LINE_ENDS))
        return self._field(int(np.argmax(stray))) if stray.any() else -1

    def last_line_end(self) -> int:
        """Where the last line ends that is whole; 0 if none is."""
        end = self.piece.rfind(b"\n")
        while end >= 0:
            place = bisect.bisect(self.opened, end) - 1
            if place < 0 or (place < len(self.closed) and self.closed[place] < end):
                break
            end = self.piece.rfind(b"\n", 0, self.opened[place])
        return end + 1

    def _field(self, place: int) -> int:
        """Where the field of a stretch begins."""
        while place and self.opened[place] == self.closed[place - 1] + 1:  # a doubled quote
            place -= 1
        return self.opened[place]


def _walked(piece: bytes, delimiter: str) -> tuple[list[int], list[int]]:
    """The stretches where some quotes are characters like any other: one quote after the other."""
    opened: list[int] = []
    closed: list[int] = []
    starts = (ord(delimiter), *LINE_ENDS)
    mark = piece.find(b'"')
    while mark >= 0:
        doubled = bool(closed) and closed[-1] == mark - 1
        if doubled or mark == 0 or piece[mark - 1] in starts:
            opened.append(mark)
            mark = piece.find(b'"', mark + 1)
            if mark >= 0:
                closed.append(mark)
        mark = piece.find(b'"', mark + 1) if mark >= 0 else -1
    return opened, closed
