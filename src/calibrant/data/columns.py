"""Columns of numbers, as arrays or named in a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, show_value

__all__ = ["numbers", "same_length"]


def numbers(value: Any, name: str, data: Any = None, *, ndim: int = 1) -> NDArray[np.float64]:
    """Finite numbers of an argument, which may name a column of `data`.

    Examples
    --------
    >>> numbers("t", "time", {"t": [1, 2]})
    array([1., 2.])
    """
    if isinstance(value, str):
        if data is None:
            raise InputError(f"`{name}` is a name, and there is no `data`.", argument=name)
        try:
            value = data[value]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InputError(
                f"`{name}` must name a column; {show_value(value)} is none.", argument=name
            ) from error
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must hold numbers.", argument=name) from error
    if array.ndim != ndim or array.shape[0] == 0:
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
