"""Checks on arguments that more than one function takes, and where every random draw comes from."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError

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
    near = difflib.get_close_matches(str(value), words, n=1)
    listed = [f'"{choice}"' if choice is not None else "None" for choice in choices]
    raise InputError(
        "must be {choices}",
        argument=name,
        seen=value,
        choices=" or ".join(filter(None, [", ".join(listed[:-1]), listed[-1]])),
        cure="Did you mean {near}?" if near else (),
        near=repr(near[0]) if near else "",
    )


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


def require_count(name: str, value: Any, *, least: int = 1) -> int:
    """`value` as an int, if it is a whole number of at least `least`.

    Examples
    --------
    >>> require_count("bins", 15)
    15
    """
    if not is_integer(value) or value < least:
        raise InputError(
            "must be a whole number, {least} or more",
            argument=name,
            seen=value,
            cure="Pass a number such as {example}, or leave it out for the default.",
            least=least,
            example=max(least, 10),
        )
    return int(value)


def require_positive(name: str, value: Any, most: float = math.inf) -> float:
    """`value` as a float, if it is a positive number, finite and at most `most`."""
    if not is_number(value) or not 0.0 < value <= most or value == math.inf:
        raise InputError(
            "must be a positive number"
            if most == math.inf
            else "must be a positive number, at most {most}",
            argument=name,
            seen=value,
            cure="Pass a number such as {example}, or leave it out for the default.",
            most=most,
            example=min(0.1, most),
        )
    return float(value)


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
