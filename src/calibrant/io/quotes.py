"""Quotes of a CSV: where the last whole line of a piece ends, and which quote is never closed.

A quote opens a field only at its beginning; anywhere else it is a character like any other. Inside a
quoted field two quotes stand for one, and a line break is part of the field.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Quotes"]

QUOTE = 0x22
LINE_ENDS = (0x0A, 0x0D)


class Quotes:
    r"""The quoted stretches of a piece of CSV that begins with a line.

    Attributes
    ----------
    opened, closed : int64 arrays
        Places of the quotes that begin and end each stretch. A doubled quote ends one and begins the
        next; where the last one is not closed, `opened` is longer by one.

    Examples
    --------
    >>> Quotes(b'a,"b\nc"\nd,"e\n', ",").last_line_end()
    8
    """

    def __init__(self, piece: bytes, delimiter: str) -> None:
        self.piece = piece
        self._bytes = np.frombuffer(piece, np.uint8)
        self._borders = np.zeros(256, np.bool_)
        self._borders[[QUOTE, ord(delimiter), *LINE_ENDS]] = True
        marks = np.flatnonzero(self._bytes == QUOTE)
        self.opened, self.closed = marks[::2], marks[1::2]
        starts = self._borders[self._bytes[self.opened - 1]] | (self.opened == 0)
        if not starts.all():
            self.opened, self.closed = _walked(piece, delimiter)

    def never_closed(self) -> int:
        """Where the field begins whose quote is still open at the end, or -1."""
        is_open = len(self.opened) > len(self.closed)
        return self._field(len(self.opened) - 1) if is_open else -1

    def goes_on(self) -> int:
        """Where the first field begins that goes on after its closing quote, or -1.

        So does a field whose quote was forgotten, at the opening quote of another, lines later.
        """
        ends = self.closed[self.closed + 1 < len(self.piece)]
        stray = ~self._borders[self._bytes[ends + 1]]
        return self._field(int(np.argmax(stray))) if stray.any() else -1

    def last_line_end(self) -> int:
        """Where the last line ends that is whole; 0 if none is."""
        end = self.piece.rfind(b"\n")
        while end >= 0:
            place = int(np.searchsorted(self.opened, end, side="right")) - 1
            if place < 0 or (place < len(self.closed) and self.closed[place] < end):
                break
            end = self.piece.rfind(b"\n", 0, int(self.opened[place]))
        return end + 1

    def _field(self, place: int) -> int:
        """Where the field of a stretch begins."""
        while place and self.opened[place] == self.closed[place - 1] + 1:  # a doubled quote
            place -= 1
        return int(self.opened[place])


def _walked(piece: bytes, delimiter: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    return np.array(opened, dtype=np.int64), np.array(closed, dtype=np.int64)
