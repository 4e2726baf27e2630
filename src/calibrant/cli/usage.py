"""Wrong options, as typer finds them, in the words of every other message."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["is_usage_error", "usage_message"]

_VALUE = re.compile(r"Invalid value for (?:'-\w' / )?'([^']+)'(?: / '[^']+')?: (.*)", re.DOTALL)
_RULES = (
    (
        re.compile(r"(?:Value error, )?('.*') is not one of (.*?)\.?$", re.DOTALL),
        r"one of \2; got \1",
    ),
    (re.compile(r"Input should be greater than or equal to (\d+)"), r"\1 or more"),
    (re.compile(r"Input should be a valid integer.*"), "a whole number"),
    (re.compile(r"Input should be a valid number.*"), "a number"),
)


def is_usage_error(error: BaseException) -> bool:
    """Whether typer raised it, over the words of the command."""
    return hasattr(error, "format_message")


def usage_message(error: Any) -> str:
    """What is wrong with the command, and where to read on.

    Examples
    --------
    >>> class Wrong(Exception):
    ...     def format_message(self):
    ...         return "Invalid value for '--kind': Value error, 'x' is not one of 'smooth', 'binned'."
    >>> usage_message(Wrong())
    "`--kind` must be one of smooth, binned; got 'x'."
    """
    said = error.format_message().strip().rstrip(".")
    said += "" if said.endswith("?") else "."
    match = _VALUE.fullmatch(said.rstrip("."))
    if match:
        rule = match[2]
        for pattern, words in _RULES:
            if pattern.search(rule):
                values = pattern.sub(words, rule).rpartition("; got ")
                rule = values[0].replace("'", "") + "".join(values[1:]) if values[1] else values[2]
                said = f"`{match[1]}` must be {rule}."
                break
    context = getattr(error, "ctx", None)
    return f"{said} See `{context.command_path} --help`." if context is not None else said
