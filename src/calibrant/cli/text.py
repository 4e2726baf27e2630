"""Text for a terminal: what comes from data can neither move the cursor nor fill the screen."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence

from calibrant.data.naming import group_text

__all__ = [
    "count",
    "in_bytes",
    "in_command_words",
    "in_file",
    "listed",
    "note",
    "printable",
    "quoted",
    "shown",
    "wrapped",
]

LONGEST_MESSAGE = 4_000
NAMED = 5
_OPTION = re.compile(
    r"`(from_logits|percent|pos_label|labels|on_invalid|scale|sample_weight|cluster|by|confidence"
    r"|margin|seed|nodes|level|probability|correct|question|filter|format)"
    r'(?:=(?:True|"?([^"`]*)"?))?`'
)
_SPOOLED = re.compile(r"[^\s'\"]*calibrant-\w+/standard input(?:\.\w+)?")
_PHRASES = (
    (
        "pass arrays, `relative_scale(base_rate)`, or the rate in the name,",
        "give the rate in the name,",
    ),
    (", or a Scale(forward, inverse)", ""),
    ("datasets.names() lists them", "`calibrant datasets` lists them."),
    ("`name` must be", "NAME must be"),
    ("exclude each other; both are True.", "exclude each other; leave out one."),
    ("use `calibrant.confidence`", "use `--multiclass`, a column per class,"),
    ("clip the column with `numpy.clip(y_prob, 0, 1)`", "clip the column to [0, 1] first"),
    ("a recalibrator's `save` wrote", "`calibrant recalibrate` wrote"),
    ("The order is (y_true, y_prob).", "Exchange `--prob` and `--label`."),
    ("the order is (y_true, y_prob)", "exchange `--prob` and `--label`"),
    ("The order is (y_prob, y_true).", "Exchange `--prob` and `--label`."),
    ("the order is (y_prob, y_true)", "exchange `--prob` and `--label`"),
    ("the arguments look swapped", "the columns look exchanged"),
    (
        "fit a SmoothRecalibrator, which has one",
        "learn one with `calibrant recalibrate --method smooth`",
    ),
    (", for example with `numpy.asarray(y_prob, dtype=float)`", ""),
    (", for example with `numpy.asarray(sample_weight, dtype=float)`", ""),
)
"""What the library says of its own names, and what is meant on the command line."""
_OPTION_NAME = {
    "sample_weight": "--weight",
    "probability": "--prob",
    "correct": "--label",
    "question": "--cluster",
    "format": "--log",
}


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


def in_command_words(message: str, columns: Mapping[str, str | None]) -> str:
    """A message of the library in the words of the command line: its options, the file's columns.

    Examples
    --------
    >>> in_command_words("`y_prob` is wrong: pass `percent=True`.", {"y_prob": "p"})
    "column 'p' is wrong: pass `--percent`."
    """

    def spoken(match: re.Match[str]) -> str:
        name = _OPTION_NAME.get(match[1], "--" + match[1].replace("_", "-"))
        return f"`{name} {match[2]}`" if match[2] else f"`{name}`"

    message = _SPOOLED.sub("standard input", message)
    for words, spoken_words in _PHRASES:
        message = message.replace(words, spoken_words)
    for argument, column in columns.items():
        if column is not None:
            message = message.replace(f"`{argument}`", f"column {quoted(column)}")
    return _OPTION.sub(spoken, message.replace("`source`", "`FILES`"))


def in_file(message: str, files: Mapping[str, int]) -> str:
    """The message with the number of its row in the file that holds it, of several with so many rows.

    Examples
    --------
    >>> in_file("row 5 has 7", {"a.csv": 4, "b.csv": 2})
    'row 1 of b.csv has 7'
    """
    match = re.search(r"\brow (\d+)", message)
    if match is None or len(files) == 1:
        return message
    row = int(match[1])
    for name, size in files.items():
        if row < size:
            place = f"row {row} of {printable(name, 200)}"
            return message[: match.start()] + place + message[match.end() :]
        row -= size
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


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "row"), count(12345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
