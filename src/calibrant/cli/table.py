"""Tables for a terminal of 80 columns, or for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant._optional import require
from calibrant.cli.text import printable

__all__ = ["Column", "decimal", "p_text", "show_table"]

CALLER = "the calibrant command"
GAP = 2
NARROWEST_NAME, WIDEST_NAME, LONGEST_NAME = 8, 60, 200


@dataclass(frozen=True)
class Column:
    """A heading and the cells under it; names give way when the terminal is narrow."""

    heading: str
    cells: Sequence[str]
    is_name: bool = False
    styles: Sequence[str] | None = None


def show_table(columns: Sequence[Column], *, caption: str = "") -> None:
    """Print the columns side by side on standard output."""
    if sys.stdout.isatty():
        _show_on_terminal(columns, caption)
        return
    cells = [[column.heading, *_fitted_cells(column, WIDEST_NAME)] for column in columns]
    widths = [max(map(len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        padded = (
            f"{cell:<{width}}" if column.is_name or column is columns[-1] else f"{cell:>{width}}"
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        print((" " * GAP).join(padded).rstrip())


def _show_on_terminal(columns: Sequence[Column], caption: str) -> None:
    console = require("rich.console", caller=CALLER).Console(
        highlight=False, markup=False, emoji=False
    )
    text = require("rich.text", caller=CALLER).Text
    table = require("rich.table", caller=CALLER).Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold"
    )
    names = sum(column.is_name for column in columns)
    used = sum(_width(column) + GAP for column in columns if not column.is_name) - GAP
    room = (console.width - used) // max(names, 1) - GAP
    room = min(max(room, NARROWEST_NAME), WIDEST_NAME)
    rows = []
    for column in columns:
        table.add_column(
            text(_fitted(column.heading, room) if column.is_name else column.heading),
            justify="left" if column.is_name or column is columns[-1] else "right",
            no_wrap=True,
        )
        shown = _fitted_cells(column, room)
        styles = column.styles or [""] * len(shown)
        rows.append([text(cell, style=style) for cell, style in zip(shown, styles, strict=True)])
    for row in zip(*rows, strict=True):
        table.add_row(*row)
    console.print(table)
    if caption:
        console.print(text(caption, style="dim"))


def decimal(value: float) -> str:
    """Three decimals, or two digits where that is more.

    Examples
    --------
    >>> decimal(0.07787), decimal(0.0047), decimal(0.0)
    ('0.078', '0.0047', '0')
    """
    if value == 0:
        return "0"
    return f"{value:.3f}" if abs(value) >= 0.005 else f"{value:.2g}"


def p_text(p: float) -> str:
    """A p-value for people.

    Examples
    --------
    >>> p_text(0.0004), p_text(0.034), p_text(0.4), p_text(1.0)
    ('<.001', '.034', '.40', '1')
    """
    if p >= 0.995:
        return "1"
    return "<.001" if p < 0.001 else f"{p:.3f}"[1:] if p < 0.1 else f"{p:.2f}"[1:]


def _fitted_cells(column: Column, room: int) -> list[str]:
    return [_fitted(cell, room) if column.is_name else cell for cell in column.cells]


def _fitted(name: str, room: int) -> str:
    """The name without its middle, where names differ least."""
    name = printable(name, LONGEST_NAME)
    if len(name) <= room:
        return name
    head = (room - 1) // 2
    return f"{name[:head]}…{name[head + 1 - room :]}"


def _width(column: Column) -> int:
    return max(map(len, (column.heading, *column.cells)))
