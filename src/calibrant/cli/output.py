"""Text and tables for a terminal or a pipe, and files that a verb writes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant._format import group_text
from calibrant.errors import InputError

__all__ = [
    "LONGEST_PATH",
    "STANDARD_INPUT",
    "count",
    "listed",
    "note",
    "note_dropped",
    "open_in_browser",
    "printable",
    "show_json",
    "show_result",
    "show_table",
    "show_text",
    "shown",
    "target",
    "write",
]

LONGEST_NAME, LONGEST_PATH, LONGEST_LINE = 60, 200, 4_000
LISTED = 5
STANDARD_INPUT: dict[str, str] = {}
"""Name for people of the file in which standard input is kept, by its path."""


def printable(value: object, limit: int = LONGEST_NAME) -> str:
    r"""Text of a value without control characters, cut at `limit`: data cannot paint over a terminal.

    Examples
    --------
    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    >>> printable("a" * 100, limit=5)
    'aaaa…'
    """
    text = str(value)[: limit + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown(value: object) -> str:
    """Printable text of a group's value, or of its values.

    Examples
    --------
    >>> shown(2016.0), shown(("", None)), shown("a")
    ('2016', '(empty), (missing)', 'a')
    """
    values = value if isinstance(value, tuple) else (value,)
    return ", ".join(printable(group_text(one)) for one in values)


def listed(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return "; ".join(names[:LISTED]) + more


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "row"), count(12345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def note(message: str) -> None:
    """Print a line on standard error, beside the result and never in it."""
    text = "\n".join(printable(line, LONGEST_LINE) for line in message.splitlines())
    if sys.stderr.isatty():
        width = max(shutil.get_terminal_size().columns, 20)
        lines = (textwrap.fill(line, width, break_on_hyphens=False) for line in text.splitlines())
        text = "\n".join(lines)
    print(text, file=sys.stderr, flush=True)


def note_dropped(dropped: Mapping[str, int]) -> None:
    """Print the number of rows that were left out, by reason."""
    if dropped:
        reasons = "; ".join(f"{count(n, 'row')}, {why}" for why, n in dropped.items())
        note(f"Dropped: {reasons}.")


def show_text(text: object) -> None:
    """Print a result's text on standard output, without control characters."""
    print("\n".join(printable(line, LONGEST_LINE) for line in str(text).splitlines()))


def show_json(document: Any) -> None:
    """Print plain values as JSON on standard output."""
    from calibrant.measures.result_record import plain

    print(json.dumps(plain(document), indent=2, allow_nan=False))


def show_result(result: Any, *, json: bool) -> None:
    """Print a result: its `to_dict()` as JSON, or its text."""
    if json:
        show_json(result.to_dict())
    else:
        show_text(result)


def show_table(
    columns: Mapping[str, Sequence[str]],
    *,
    text: Sequence[str] = (),
    styles: Sequence[str] | None = None,
    caption: str = "",
) -> None:
    """Print columns by heading; those of `text` to the left, which a narrow terminal breaks into lines.

    `styles` colours the rows' last cells on a terminal, below which the caption stands.
    """
    from calibrant._optional import require

    on_terminal = sys.stdout.isatty()
    caller = "the calibrant command"
    widths = {name: max(map(len, (name, *cells))) for name, cells in columns.items()}
    least = sum(min(width, 8) if name in text else width for name, width in widths.items())
    width = max(shutil.get_terminal_size().columns, least + 2 * len(columns))  # numbers stay whole
    console = require("rich.console", caller=caller).Console(
        highlight=False, markup=False, emoji=False, width=width if on_terminal else 100_000
    )
    table = require("rich.table", caller=caller).Table(
        box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold"
    )
    as_text = require("rich.text", caller=caller).Text
    for name, width in widths.items():
        heading = as_text(printable(name, LONGEST_PATH))
        if name in text:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for place, row in enumerate(zip(*columns.values(), strict=True)):
        cells = [as_text(printable(cell, LONGEST_PATH)) for cell in row]
        if styles is not None:
            cells[-1].stylize(styles[place])
        table.add_row(*cells)
    with console.capture() as captured:
        console.print(table)
        if caption and on_terminal:
            console.print(as_text(caption, style="dim"))
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def target(
    output: str, endings: Sequence[str], what: str, sources: Sequence[str | Path] = ()
) -> Path:
    """Path of a file to write: with one of the endings, in a folder, and none of the files read."""
    path = Path(output)
    if endings and path.suffix.lower() not in endings:
        raise InputError(
            f"{what} is written as {' or '.join(endings)}; got {printable(output, LONGEST_PATH)!r}."
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {printable(path.parent, LONGEST_PATH)!r}.")
    if path.exists():
        if not os.access(path, os.W_OK) or not path.stat().st_mode & 0o222:
            raise InputError(f"{printable(output, LONGEST_PATH)!r} is read-only.")
        if any(os.path.exists(source) and path.samefile(source) for source in sources):
            raise InputError(
                f"{printable(output, LONGEST_PATH)!r} is one of the files that are read.",
                hint="Write to another file.",
            )
    return path


def write(path: Path, save: Callable[[Path], object], about: str = "") -> None:
    """Let `save` make the file, whole or not at all, and print that it is there."""
    from calibrant._files import replaced_when_whole

    with replaced_when_whole(path) as temporary:
        save(temporary)
    size = path.stat().st_size
    text = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
    note(f"Wrote {printable(path, LONGEST_PATH)} ({text}){about or '.'}")


def open_in_browser(path: Path) -> None:
    """Show a file as a click on it would."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        note("There is no browser to open it with.")
