"""Groups by their values: the same plain Python values, whichever engine hands them over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import invalid

Key = tuple[Any, ...]


def normal_key(key: Key) -> Key:
    """Group as plain Python values; a missing value of any kind is None.

    Examples
    --------
    >>> normal_key((np.int64(3), float("nan"), np.datetime64("2026-01-31")))
    (3, None, datetime.date(2026, 1, 31))
    """
    return tuple(_normal_value(value) for value in key)


def indexed(keys: Iterable[Key]) -> tuple[NDArray[np.int64], list[Key]]:
    """Each key's place among the distinct ones, and these, as plain values, in order of appearance.

    Examples
    --------
    >>> indexed([("b",), (float("nan"),), ("b",), (None,)])
    (array([0, 1, 0, 1]), [('b',), (None,)])
    """
    index: dict[Key, int] = {}
    known: dict[Key, int] = {}

    def place(key: Key) -> int:
        try:
            return known[key]
        except KeyError:
            return known.setdefault(key, place_of(key, index))
        except TypeError:  # not hashable as it is
            return place_of(key, index)

    return np.fromiter(map(place, keys), np.int64), list(index)


class Coded(NamedTuple):
    """Grouping column: each row's index among its distinct values, and these."""

    codes: NDArray[np.int64]
    values: list[Any]


def coded(values: Iterable[Any]) -> Coded:
    """Grouping column of any values."""
    codes, keys = indexed((value,) for value in values)
    return Coded(codes, [key[0] for key in keys])


def crossed(columns: Iterable[Coded], rows: int) -> tuple[list[Key], NDArray[np.int64]]:
    """Groups that columns make together, and each row's index among them.

    Examples
    --------
    >>> crossed([coded("abb"), coded([1, 1, 2])], 3)
    ([('a', 1), ('b', 1), ('b', 2)], array([0, 1, 2]))
    """
    keys: list[Key] = [()]
    group = np.zeros(rows, np.int64)
    for codes, values in columns:
        if len(keys) == 1:
            keys, group = [(*keys[0], value) for value in values], codes
        elif len(values) == 1:
            keys = [(*key, values[0]) for key in keys]
        else:
            pairs, group = np.unique(group * len(values) + codes, return_inverse=True)
            keys = [
                (*keys[pair // len(values)], values[pair % len(values)]) for pair in pairs.tolist()
            ]
    return keys, group


def place_of(key: Key, index: dict[Key, int]) -> int:
    """Place of a key in the index of plain values, which grows by those that are new."""
    try:
        return index[key]
    except (KeyError, TypeError):  # new, or not hashable as it is
        return index.setdefault(normal_key(key), len(index))


def as_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Vector of any values, as they are.

    Examples
    --------
    >>> as_objects([[1, 2], None])
    array([list([1, 2]), None], dtype=object)
    """
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def sort_key(key: Key) -> tuple[Any, ...]:
    """Sort key for plain keys of mixed types: by type, then by value; missing ones last.

    Examples
    --------
    >>> sorted([(None,), ("a",), (10,), (2,)], key=sort_key)
    [(2,), (10,), ('a',), (None,)]
    """
    return tuple(
        (value is None, type(value).__name__, value if value is not None else 0) for value in key
    )


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
        raise invalid("by", f"name plain values, and a {kind} is none", value)
    return None if value != value else value
