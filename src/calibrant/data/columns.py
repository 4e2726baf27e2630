"""Columns of numbers, as arrays or named in a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_column, is_missing
from calibrant.errors import InputError, show_value

__all__ = ["categories", "numbers", "same_length"]


def numbers(value: Any, name: str, data: Any = None, *, ndim: int = 1) -> NDArray[np.float64]:
    """Finite numbers of an argument, which may name a column of `data`.

    Examples
    --------
    >>> numbers("t", "time", {"t": [1, 2]})
    array([1., 2.])
    """
    value = _named(value, name, data)
    try:
        array = np.asarray(value, dtype=np.float64)
    except Exception as error:  # of any object
        raise InputError(f"`{name}` must hold numbers.", argument=name) from error
    if array.ndim != ndim or array.size == 0:
        wanted = "a column of numbers" if ndim == 1 else "a table with a row for each outcome"
        raise InputError(f"`{name}` must be {wanted}; its shape is {array.shape}.", argument=name)
    finite = np.isfinite(array).reshape(array.shape[0], -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(
            f"`{name}` must hold finite numbers; row {row} does not.",
            argument=name,
            row=row,
            hint="Leave such rows out first.",
        )
    return array


def categories(value: Any, name: str, data: Any = None) -> NDArray[Any]:
    """Category of each row, of an argument that may name a column of `data`; objects as their text.

    Missing values stay as None or NaN.

    Examples
    --------
    >>> categories(["u", None, 3], "strata")
    array(['u', None, '3'], dtype=object)
    """
    column = as_column(_named(value, name, data), name, dates=True)
    if column.dtype.kind != "O":
        return column
    try:
        texts = [
            None if gone else str(one) for one, gone in zip(column, is_missing(column), strict=True)
        ]
    except Exception as error:  # of any object
        raise InputError(f"`{name}` must hold numbers or labels.", argument=name) from error
    column = np.empty(len(texts), dtype=object)
    column[:] = texts
    return column


def _named(value: Any, name: str, data: Any) -> Any:
    if not isinstance(value, str):
        return value
    if data is None:
        raise InputError(f"`{name}` is a name, and there is no `data`.", argument=name)
    try:
        return data[value]
    except Exception as error:  # of any table
        raise InputError(
            f"`{name}` must name a column; {show_value(value)} is none.", argument=name
        ) from error


def same_length(**columns: NDArray[Any]) -> None:
    """Refuse columns of unequal length."""
    (first, one), *others = columns.items()
    for name, other in others:
        if other.shape[0] != one.shape[0]:
            raise InputError(
                f"`{name}` must have one entry per row of `{first}`; they have {other.shape[0]} and "
                f"{one.shape[0]}.",
                argument=name,
            )
