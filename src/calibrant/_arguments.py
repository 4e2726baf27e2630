"""Checks on arguments that more than one function takes, and where every random draw comes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InputError

__all__ = ["generator", "is_number", "require_seed"]


def is_number(value: Any) -> bool:
    """Whether it is one real number, and no truth value.

    Examples
    --------
    >>> is_number(0.5), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def require_seed(seed: int) -> int:
    """`seed`, if it is a whole number that is not negative.

    Nothing else would do: the same input and seed must give the same bytes.
    """
    valid = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not valid or seed < 0:
        raise InputError(
            f"`seed` must be a whole number, 0 or more; got {seed!r}. The same seed gives the same "
            "result: leave it out for the default, or pass another number for other draws."
        )
    return int(seed)


def generator(seed: int, *stream: int) -> np.random.Generator:
    """A source of random numbers; each use of a seed has a stream of its own.

    Examples
    --------
    >>> generator(0, 1).random() == generator(0, 1).random() != generator(0, 2).random()
    True
    """
    checked = require_seed(seed)
    return np.random.default_rng([checked, *stream] if stream else checked)
