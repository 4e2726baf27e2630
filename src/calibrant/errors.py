"""The errors that calibrant raises, each one a kind of trouble that a caller can act on."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CalibrationError", "InputError", "MergeError", "MissingDependency", "TooFewRows"]


class CalibrationError(Exception):
    """The root of everything that calibrant raises on purpose."""


class InputError(CalibrationError, ValueError):
    """A value that the caller gave breaks a rule; the message says which, where, and the cure."""


class TooFewRows(InputError):
    """There are fewer rows, or clusters of rows, than the answer needs; other groups may have enough.

    `dropped` counts by reason the rows that were left out, where that is why.
    """

    def __init__(self, message: str, dropped: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.dropped = dict(dropped or {})


class MergeError(CalibrationError, ValueError):
    """Two sketches cannot be added because they do not describe the same grid."""


class MissingDependency(CalibrationError, ImportError):
    """An optional package is needed and is not installed; the message names the command."""
