"""Errors and warnings: the message in words, and what a program may want of it as data.

A message says what is wrong and where; `hint` says what to do. The command line shows the same text
with the names of its own options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

__all__ = [
    "CalibrantError",
    "CalibrantWarning",
    "InputError",
    "InvalidRows",
    "MergeError",
    "MissingDependency",
    "TooFewRows",
    "invalid",
    "show_value",
]

LONGEST_VALUE = 80
"""Characters of a value in a message: what fits on a line."""


def show_value(value: Any) -> str:
    """Short text of a value for a message: never fails, at most 80 characters.

    Examples
    --------
    >>> show_value(0.1 + 0.2), show_value(1.0000000000000002), show_value("yes")
    ('0.3', '1.0000000000000002', "'yes'")
    """
    try:
        if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
            value = value.item()
        text = repr(value)
        if isinstance(value, float):
            short = f"{value:.10g}"
            # Not so short that what is wrong with it cannot be seen: 1.0000000000000002 is not 1.
            if not float(short).is_integer() or value.is_integer():
                text = short
    except Exception:
        text = f"<{type(value).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


class CalibrantError(Exception):
    """Parent of every error that calibrant raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong and where, with the argument in backticks: "`y_prob` must be between 0 and 1; row 812 is
        1.0003."
    argument, row, file : str, int, str, optional
        The argument that is wrong, the row (from 0) and the file, as data. A message that begins with the
        argument in backticks need not have it named again.
    hint : str, optional
        What to do, as whole sentences; shown after the message.

    Examples
    --------
    >>> error = InputError(
    ...     "`y_prob` must be between 0 and 1; row 812 is 1.0003.",
    ...     row=812, hint="If these are logits, pass `from_logits=True`.",
    ... )
    >>> print(error)
    `y_prob` must be between 0 and 1; row 812 is 1.0003. If these are logits, pass `from_logits=True`.
    >>> error.argument, error.row
    ('y_prob', 812)
    """

    def __init__(
        self,
        message: str,
        *,
        argument: str | None = None,
        row: int | None = None,
        file: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        first = re.match(r"`(\w+)`", message) if argument is None else None
        self.argument = argument if first is None else first[1]
        self.row = row
        self.file = file
        self.hint = hint

    def at(
        self, *, row: int | None = None, file: str | None = None, group: str | None = None
    ) -> Self:
        """Error at a row, in a file or in a group that is known by now."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        if row is not None and self.row is not None:  # of a batch, say, and now of the whole file
            other.message = re.sub(rf"\brow {self.row}\b", f"row {row}", self.message)
        places = [
            f"row {row}" if row is not None and self.row is None else "",
            f"group {group}" if group is not None else "",
            file if file is not None and self.file is None else "",
        ]
        place = " of ".join(filter(None, places))
        if place and place not in self.message:
            other.message = f"{other.message.rstrip('.')} ({place})."
        other.row = self.row if row is None else row
        other.file = self.file if file is None else file
        return other

    def __str__(self) -> str:
        return self.message if not self.hint else f"{self.message} {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


class InputError(CalibrantError, ValueError):
    """A value that the caller gave breaks a rule.

    Examples
    --------
    >>> import calibrant as cal
    >>> try:
    ...     cal.smooth_ece([0, 1], [0.2, 1.5])
    ... except cal.CalibrantError as error:  # an InputError
    ...     print(error.argument, error.row)
    y_prob 1
    """


def invalid(argument: str, rule: str, value: Any, hint: str | None = None) -> InputError:
    """InputError for a value of an argument that breaks a rule.

    Examples
    --------
    >>> print(invalid("power", "be between 0 and 1", 1.5))
    `power` must be between 0 and 1; got 1.5.
    """
    message = f"`{argument}` must {rule}; got {show_value(value)}."
    return InputError(message, hint=hint)


class TooFewRows(InputError):
    """Fewer rows, or clusters of rows, than the answer needs; `dropped` counts rows left out by reason."""

    def __init__(
        self, message: str, dropped: Mapping[str, int] | None = None, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.dropped = dict(dropped or {})


class InvalidRows(InputError):
    """Rows of a source break rules: the message is of the first, `counts` has all by reason."""

    counts: Mapping[str, int]
    rows: int

    @classmethod
    def after(cls, first: CalibrantError, counts: Mapping[str, int], rows: int) -> InvalidRows:
        """The error of the first such row, with how many there are among how many."""
        error = cls.__new__(cls, *first.args)
        error.__dict__.update(first.__dict__, counts=dict(counts), rows=rows)
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in counts.items())
        total = f"In all, {sum(counts.values()):,} of {rows:,} rows break a rule ({reasons})."
        error.hint = f"{first.hint} {total}" if first.hint else total
        return error


class MergeError(CalibrantError, ValueError):
    """Two sketches cannot be added because they do not describe the same grid."""


class MissingDependency(CalibrantError, ImportError):
    """An optional package is needed and is not installed; the hint names the command."""


class CalibrantWarning(UserWarning):
    """Something is probably not what the caller meant, though it can be computed."""


def _rebuilt(kind: type[Any], arguments: tuple[Any, ...], state: Mapping[str, Any]) -> Any:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error
