"""Text for a terminal: what comes from data can neither move the cursor nor fill the screen."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from calibrant._files import replaced_when_whole
from calibrant._format import group_text
from calibrant.errors import InputError

__all__ = [
    "count",
    "in_bytes",
    "listed",
    "note",
    "note_dropped",
    "printable",
    "quoted",
    "require_ending",
    "require_writable",
    "short_path",
    "shown",
    "without_spool",
    "wrapped",
    "written",
]

LONGEST_MESSAGE = 4_000
NAMED = 5
STANDARD_INPUT = "standard input"
SPOOL = "calibrant-"
"""How the folder begins in which standard input is kept while it is read."""
spooled: dict[str, str] = {}
"""Files that stand for standard input, by their path."""


def printable(value: object, limit: int = 60) -> str:
    r"""The value as text without control characters, cut at `limit`.

    Escape sequences, line breaks, and marks that reorder or hide text are spelled out, so that a name
    in a file cannot paint over the table that shows it.

    Examples
    --------
    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    >>> printable("a" * 100, limit=5)
    'aaaa…'
    """
    text = str(value)
    cut = len(text) > limit
    text = text[:limit]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
        cut = cut or len(text) > limit
    return text[: limit - 1] + "…" if cut else text


def quoted(value: object, limit: int = 60) -> str:
    r"""The value as printable text between quotes.

    Examples
    --------
    >>> print(quoted("\x1b[31mred"))
    '\x1b[31mred'
    """
    return f"'{printable(value, limit)}'"


def shown(value: object, limit: int = 60) -> str:
    """The value of a group for people.

    Examples
    --------
    >>> shown(2016.0), shown(""), shown(None), shown("a")
    ('2016', '(empty)', '(missing)', 'a')
    """
    return printable(group_text(value), limit)


def without_spool(message: str) -> str:
    """The message with standard input called so, instead of the file in which it is kept."""
    for path, name in spooled.items():
        message = message.replace(path, name)
    return message


def wrapped(message: str, width: int | None = None) -> str:
    """The message without control characters, its lines broken between words on a terminal."""
    lines = [printable(line, LONGEST_MESSAGE) for line in message.splitlines()[:40]]
    if width is None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
    if width is None:
        return "\n".join(lines)
    return "\n".join(
        textwrap.fill(line, max(width, 20), break_on_hyphens=False, subsequent_indent="  ")
        for line in lines
    )


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return "; ".join(names[:NAMED]) + more


def in_bytes(size: int) -> str:
    """A size for people.

    Examples
    --------
    >>> in_bytes(812), in_bytes(51_234), in_bytes(2_345_678)
    ('812 bytes', '51 kB', '2.3 MB')
    """
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def note(message: str) -> None:
    """Say something on standard error, beside the result and never in it."""
    print(wrapped(message), file=sys.stderr, flush=True)


def note_dropped(dropped: Mapping[str, int]) -> None:
    """Say how many rows were left out, by reason."""
    if dropped:
        note(
            "Dropped: " + "; ".join(f"{count(k, 'row')}, {why}" for why, k in dropped.items()) + "."
        )


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "row"), count(12345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_path(path: str) -> str:
    """The last part of a path, for people."""
    path = without_spool(path)
    return os.path.basename(path.rstrip("/")) or path


def require_ending(
    output: str, endings: tuple[str, ...], what: str, inputs: Sequence[str] = ()
) -> Path:
    """The path, if its ending is one of these and it may be written."""
    target = Path(output)
    if target.suffix.lower() not in endings:
        raise InputError(
            "{what} is written as {endings}",
            seen=printable(output, 200),
            what=what,
            endings=" or ".join(endings),
            cure="Give the file one of these endings.",
        )
    require_writable(output, inputs)
    return target


def require_writable(output: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a file without a folder, one that is read-only or one that is read, before all else."""
    folder = Path(output).parent
    shown_output = quoted(output, 200)
    if not folder.is_dir():
        raise InputError(
            "there is no folder {folder}", folder=quoted(folder, 200), cure="Make it first."
        )
    if not os.path.exists(output):
        return
    if not os.stat(output).st_mode & 0o222:
        raise InputError(
            "{output} is read-only",
            output=shown_output,
            cure="Write to another file, or make it writable.",
        )
    if any(os.path.samefile(output, path) for name in inputs for path in _paths(name)):
        raise InputError(
            "the output must not be one of the files that are read; {output} is",
            output=shown_output,
            cure="Write to another file.",
        )


def _paths(name: str) -> Iterator[str]:
    """The files on this machine that a word of the command names."""
    name = os.path.expanduser(name)
    if os.path.isdir(name):
        from calibrant.io.find_files import FORMAT_OF

        # Anything else in a folder is not read: a report of yesterday may be written again.
        within = glob.iglob(os.path.join(glob.escape(name), "**", "*"), recursive=True)
        yield from (path for path in within if any(e in path.lower() for e in FORMAT_OF))
    elif os.path.exists(name):
        yield name
    else:
        yield from glob.iglob(name, recursive=True)


def written(target: Path, write: Callable[[Path], object]) -> int:
    """Let `write` make the file, whole or not at all; its size."""
    try:
        with replaced_when_whole(target) as path:
            write(path)
    except OSError as error:
        raise InputError(
            "{target} cannot be written: {why}",
            target=printable(target, 200),
            why=error.strerror or str(error),
            cure="Write to another file, or to a folder that is yours.",
        ) from error
    return target.stat().st_size
