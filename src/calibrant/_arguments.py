"""Checks on arguments that more than one function takes, and where every random draw comes from."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError, show_value

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "CONFIDENCE",
    "generator",
    "is_integer",
    "is_number",
    "require_choice",
    "require_confidence",
    "require_count",
    "require_flag",
    "require_positive",
    "require_seed",
]

CONFIDENCE = 0.95
"""Of intervals and bands, unless another is asked for."""
LARGEST_CONFIDENCE = 0.9999


def is_number(value: Any) -> bool:
    """Whether it is one real number, and no truth value.

    Examples
    --------
    >>> is_number(0.5), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Whether it is one whole number, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def require_choice(name: str, value: object, choices: Sequence[str | None]) -> None:
    """Refuse a value that is not one of these words, with the nearest that is."""
    if (value is None or isinstance(value, str)) and value in choices:
        return
    words = [choice for choice in choices if choice is not None]
    near = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else []
    listed = [f'"{choice}"' if choice is not None else "None" for choice in choices]
    one_of = " or ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    message = f"`{name}` must be {one_of}; got {show_value(value)}."
    raise InputError(message, argument=name, hint=f"Did you mean {near[0]!r}?" if near else None)


def require_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False: an array, a word, a number."""
    if not (isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")):
        message = f"`{name}` must be True or False; got {show_value(value)}."
        raise InputError(message, argument=name)


def require_confidence(confidence: float) -> None:
    """Refuse what is not a number between 0 and 1."""
    valid = is_number(confidence)
    if not valid or not 0.0 < confidence < 1.0:
        raise InputError(
            "must lie between 0 and 1",
            argument="confidence",
            seen=confidence,
            cure="For 95 per cent pass 0.95."
            if valid and 1.0 < confidence < 100.0
            else "Leave it out for 0.95.",
        )
    if confidence > LARGEST_CONFIDENCE:
        raise InputError(
            "must be at most {most}, as nothing is known of the test so far out in the tails",
            argument="confidence",
            seen=confidence,
            cure="Leave it out for 0.95.",
            most=LARGEST_CONFIDENCE,
        )


def require_count(name: str, value: Any, *, least: int = 1, most: int = 1 << 31) -> int:
    """`value` as an int, if it is a whole number from `least` to `most`.

    Examples
    --------
    >>> require_count("n_bins", 15)
    15
    """
    if not is_integer(value) or value < least:
        message = f"`{name}` must be a whole number, {least} or more; got {show_value(value)}."
        raise InputError(message, argument=name)
    if value > most:
        message = f"`{name}` must be at most {most}; got {show_value(value)}."
        raise InputError(message, argument=name)
    return int(value)


def require_positive(name: str, value: Any, most: float = math.inf) -> float:
    """`value` as a float, if it is a positive number, finite and at most `most`."""
    try:
        number = float(value) if is_number(value) else math.nan
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not 0.0 < number <= most or number == math.inf:
        limit = "" if most == math.inf else f", at most {most}"
        message = f"`{name}` must be a positive number{limit}; got {show_value(value)}."
        raise InputError(message, argument=name)
    return number


def require_seed(seed: int) -> int:
    """`seed`, if it is a whole number that is not negative.

    Nothing else would do: the same input and seed must give the same bytes.
    """
    if not is_integer(seed) or seed < 0:
        raise InputError(
            "must be a whole number, 0 or more",
            argument="seed",
            seen=seed,
            cure="The same seed gives the same result: leave it out, or pass another number for "
            "other draws.",
        )
    return int(seed)


def generator(seed: int, *stream: int) -> np.random.Generator:
    """A source of random numbers; each use of a seed has a stream of its own.

    Examples
    --------
    >>> generator(0, 1).random() == generator(0, 1).random() != generator(0, 2).random()
    True
    """
    import numpy as np

    checked = require_seed(seed)
    return np.random.default_rng([checked, *stream] if stream else checked)
