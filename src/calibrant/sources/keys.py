"""Groups by their values: the same plain Python values, whichever engine hands them over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["Key", "indexed", "normal_key"]

Key = tuple[Any, ...]


def normal_key(key: Key) -> Key:
    """The group as plain Python values; a missing value of any kind is None.

    Examples
    --------
    >>> normal_key((np.int64(3), float("nan"), np.datetime64("2026-01-31")))
    (3, None, datetime.date(2026, 1, 31))
    """
    return tuple(_normal_value(value) for value in key)


def indexed(keys: Iterable[Key]) -> tuple[NDArray[np.int64], list[Key]]:
    """Each key's place among the distinct ones, and these in order of appearance."""
    keys = list(keys)
    index: dict[Key, int] = {}
    try:
        group = [index.setdefault(key, len(index)) for key in keys]
    except TypeError:  # bytearrays and such cannot be hashed as they are
        index = {}
        group = [index.setdefault(normal_key(key), len(index)) for key in keys]
    return np.array(group, dtype=np.int64), list(index)


def _normal_value(value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64) and str(value.dtype).endswith("[ns]"):
        value = value.astype(value.dtype.str[:3] + "[us]")  # NumPy gives nanoseconds as integers
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value).__name__
    if value is None or kind in ("NAType", "NaTType"):
        return None
    if kind == "Timestamp":
        return value.to_pydatetime(warn=False)
    if kind == "Timedelta":
        return value.to_pytimedelta()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if getattr(value, "__hash__", None) is None:
        raise InputError(
            f"a group must be a plain value; got a {kind}, {value!r}. Group by a part of it."
        )
    return None if value != value else value
