"""Tables for a terminal of 80 columns, or for a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calibrant._format import common_start
from calibrant._optional import require
from calibrant.cli.output import printable

__all__ = ["LONGEST_NAME", "Column", "shortened", "show_table"]

CALLER = "the calibrant command"
GAP = 2
NARROWEST_NAME, LONGEST_NAME = 8, 200


@dataclass(frozen=True)
class Column:
    """A heading and the cells under it.

    When the terminal is narrow, names and prose are shortened, then columns that can be spared are left
    out; numbers are never cut, and names that differ stay different. In a pipe everything stays.
    """

    heading: str
    cells: Sequence[str]
    is_name: bool = False
    is_prose: bool = False
    is_spare: bool = False
    styles: Sequence[str] | None = None

    @property
    def is_text(self) -> bool:
        """Whether it comes from data, and may be cut."""
        return self.is_name or self.is_prose

    @property
    def is_left(self) -> bool:
        """Whether it is set to the left: words, not numbers."""
        return self.is_text or self.styles is not None

    @property
    def width(self) -> int:
        """Of the longest cell."""
        return max(map(len, (self.heading, *self.cells)))

    def printable(self) -> Column:
        """The column without control characters."""
        if not self.is_text:
            return self
        cells = [printable(cell, LONGEST_NAME) for cell in self.cells]
        return replace(self, heading=printable(self.heading, LONGEST_NAME), cells=cells)

    def fitted(self, room: int) -> Column:
        """The column in so many cells: names lose what they share and their middle, prose its end."""
        if not self.is_text:
            return self
        cells = (
            [printable(cell, room) for cell in self.cells]
            if self.is_prose
            else shortened(self.cells, room)
        )
        return replace(self, heading=printable(self.heading, room), cells=cells)


def show_table(columns: Sequence[Column], *, caption: str = "") -> None:
    """Print the columns side by side on standard output."""
    columns = [column.printable() for column in columns]
    if sys.stdout.isatty():
        width = shutil.get_terminal_size((80, 24)).columns
        _show_on_terminal(_fitting(columns, width), caption)
        return
    for row in zip(*((column.heading, *column.cells) for column in columns), strict=True):
        padded = (
            f"{cell:<{column.width}}" if column.is_left else f"{cell:>{column.width}}"
            for cell, column in zip(row, columns, strict=True)
        )
        print((" " * GAP).join(padded).rstrip())


def _show_on_terminal(columns: Sequence[Column], caption: str) -> None:
    whole = sum(column.width + GAP for column in columns)
    terminal = shutil.get_terminal_size((80, 24)).columns
    console = require("rich.console", caller=CALLER).Console(
        highlight=False, markup=False, emoji=False, width=max(whole, terminal)
    )
    text = require("rich.text", caller=CALLER).Text
    table = require("rich.table", caller=CALLER).Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold"
    )
    for column in columns:
        justify = "left" if column.is_left else "right"
        table.add_column(text(column.heading), justify=justify, no_wrap=True)
    for place, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        styles = [column.styles[place] if column.styles else "" for column in columns]
        table.add_row(*(text(cell, style=style) for cell, style in zip(row, styles, strict=True)))
    console.print(table)
    if caption:
        console.print(text(caption, style="dim"), width=terminal)


def _fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns in so many cells: numbers get what they need, names and prose share the rest."""
    columns = _spared(columns, width)
    gaps = GAP * (len(columns) - 1)
    rooms = [column.width for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    while texts and sum(rooms) + gaps > width:
        longest = max(texts, key=lambda place: rooms[place])
        if rooms[longest] <= NARROWEST_NAME:
            break
        rooms[longest] -= 1
    return [column.fitted(room) for column, room in zip(columns, rooms, strict=True)]


def _spared(columns: Sequence[Column], width: int) -> list[Column]:
    """Without columns that can be spared, the last first, as far as there is no room for them."""
    kept = list(columns)
    for column in [column for column in reversed(kept) if column.is_spare]:
        least = (min(c.width, NARROWEST_NAME) if c.is_text else c.width for c in kept)
        if sum(least) + GAP * (len(kept) - 1) > width:
            kept.remove(column)
    return kept


def shortened(cells: Sequence[str], room: int) -> list[str]:
    """Names in so many characters: first what all have is cut, then their middles; none become alike.

    Examples
    --------
    >>> shortened(["model-8B-chat", "model-70B-chat"], 8)
    ['…el-8B…', '…el-70B…']
    >>> shortened(["model-8B-chat", "model-70B-chat"], 12)
    ['model-8B-c…', 'model-70B-c…']
    >>> shortened(["abcdefgh1xyz", "abcdefgh2xyz"], 6)
    ['a…1xyz', 'a…2xyz']
    """
    excess = max(map(len, cells), default=0) - room
    if excess <= 0:
        return list(cells)
    trimmed, different = _without_common(cells, excess), len(set(cells))
    for head in sorted(range(room), key=lambda size: abs(size - room // 2)):
        cut = [_without_middle(cell, room, head) for cell in trimmed]
        if len(set(cut)) == different:
            return cut
    order = {cell: f"…~{k}" for k, cell in enumerate(dict.fromkeys(cells), start=1)}
    return [cell[: max(room - len(order[cell]), 0)] + order[cell] for cell in cells]


def _without_common(cells: Sequence[str], excess: int) -> list[str]:
    """Names without so much of what all end and begin with, and a mark in its place.

    What is in brackets, or empty, is no name: it stands for other rows.
    """
    names = {cell for cell in cells if cell and not cell.startswith("(")}
    if len(names) < 2:
        return list(cells)
    start = common_start(list(names))
    end = min(common_start([name[start:][::-1] for name in names]), excess + 1)
    excess -= max(end - 1, 0)
    start = min(start, excess + 1) if excess > 0 else 0
    before, after = "…" if start else "", "…" if end else ""
    return [
        f"{before}{cell[start : len(cell) - end]}{after}" if cell in names else cell
        for cell in cells
    ]


def _without_middle(name: str, room: int, head: int) -> str:
    return name if len(name) <= room else f"{name[:head]}…{name[len(name) - (room - 1 - head) :]}"
