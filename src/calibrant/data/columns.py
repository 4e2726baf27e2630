"""Columns of numbers, as arrays or named in a table, and the checks of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array, as_column, is_missing
from calibrant.errors import InputError, show_value

__all__ = ["categories", "numbers", "require_each", "require_numbers", "same_length"]


def numbers(value: Any, name: str, data: Any = None, *, ndim: int = 1) -> NDArray[np.float64]:
    """Finite numbers of an argument, which may name a column of `data`.

    Examples
    --------
    >>> numbers("t", "time", {"t": [1, 2]})
    array([1., 2.])
    """
    array = as_array(_named(value, name, data), name)
    if array.ndim != ndim or array.size == 0:
        wanted = "a column of numbers" if ndim == 1 else "a table with a row for each outcome"
        raise InputError(f"`{name}` must be {wanted}; its shape is {array.shape}.", argument=name)
    require_numbers(name, array.ravel())
    array = array.astype(np.float64)
    finite = np.asarray(np.isfinite(array).reshape(array.shape[0], -1).all(axis=1))
    require_each(name, array, finite, "hold finite numbers", "Leave such rows out first.")
    return array


def require_numbers(name: str, column: NDArray[Any], *, drop: bool = False) -> None:
    """Refuse a column of text; with `drop`, text among numbers is a row out of range."""
    numbers = [isinstance(v, int | float) for v in column] if column.dtype.kind == "O" else [False]
    if column.dtype.kind in "biuf" or (drop and any(numbers)):
        return
    row = numbers.index(False) if False in numbers else 0
    hint = ""
    if name == "y_prob" and show_value(column[row]).rstrip("' ").endswith("%"):
        hint = "Take off the per cent signs, and pass `percent=True`."
    elif name == "y_prob" and isinstance(column[row], str):
        hint = "Convert it to numbers first. Or are `y_true` and `y_prob` exchanged?"
    message = f"`{name}` must hold numbers; row {row} has {show_value(column[row])}."
    raise InputError(message, argument=name, row=row, hint=hint or None)


def require_each(
    name: str, column: Any, valid: NDArray[np.bool_], rule: str, hint: str | None = None
) -> None:
    """Refuse a column of which an entry breaks a rule; the error names the first that does.

    Examples
    --------
    >>> p = np.array([0.2, 1.5])
    >>> require_each("p", p, p <= 1.0, "be at most 1")
    Traceback (most recent call last):
    calibrant.errors.InputError: `p` must be at most 1; row 1 has 1.5.
    """
    wrong = np.flatnonzero(~valid)
    if wrong.size:
        row = int(wrong[0])
        message = f"`{name}` must {rule}; row {row} has {show_value(column[row])}."
        raise InputError(message, argument=name, row=row, hint=hint)


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
        hint = "Read the file first: `data` is a table here." if isinstance(data, str) else None
        raise InputError(
            f"`{name}` must name a column; {show_value(value)} is none.", argument=name, hint=hint
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
