"""What every measure's result has in common: a dictionary of plain values, and a line of HTML."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Bounded", "Record"]


class Bounded(NamedTuple):
    """A number, and how far the exact one can lie from it: 0 from arrays, more from a sketch."""

    value: float
    error: float


class Record:
    """A frozen dataclass of numbers, strings and arrays; arrays become read-only."""

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        return {
            item.name: _plain(getattr(self, item.name))
            for item in fields(self)  # type: ignore[arg-type]
        }

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_dict() if isinstance(value, Record) else value
