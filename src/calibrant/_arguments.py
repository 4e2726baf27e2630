"""Checks of arguments: a choice, a number, a flag, a seed; any other value is an InputError.

They take any value at all: arrays, objects whose comparison or text fails, integers beyond floats.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from calibrant.errors import CalibrantWarning, InputError, invalid, show_value

if TYPE_CHECKING:
    import numpy as np

CONFIDENCE = 0.95
"""Confidence of intervals and bands, unless another is asked for."""
MEANT = {"equal": "uniform", "equal_width": "uniform", "equal_mass": "quantile"}
"""Words of other packages, and those of ours that mean the same."""
LARGEST_CONFIDENCE = 0.9999
"""Beyond it nothing is known of the size of the tests, whose simulations end there."""


def is_number(value: Any) -> bool:
    """True of one real number that is no truth value and has a float.

    Examples
    --------
    >>> is_number(0.5), is_number(True), is_number("0.5"), is_number(10**400)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except Exception:
        return False
    return True


def is_integer(value: Any) -> bool:
    """True of one whole number that is no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def nearest(value: object, words: Iterable[str]) -> str | None:
    """Question after the word that was meant, if one is near.

    Examples
    --------
    >>> nearest("isotnic", ["platt", "isotonic"])
    'Did you mean "isotonic"?'
    """
    value = MEANT.get(value, value) if isinstance(value, str) else value
    near = difflib.get_close_matches(value[:80], words, n=1) if isinstance(value, str) else []
    return f'Did you mean "{near[0]}"?' if near else None


def require_choice(
    argument: str, value: object, choices: Sequence[str | None], hint: str | None = None
) -> None:
    """Refuse a value that is none of these words, with the nearest that is, or a hint."""
    if (value is None or isinstance(value, str)) and value in choices:
        return
    words = [choice for choice in choices if choice is not None]
    listed = [f'"{choice}"' if choice is not None else "None" for choice in choices]
    rule = f"be {' or '.join(filter(None, [', '.join(listed[:-1]), listed[-1]]))}"
    raise invalid(argument, rule, value, nearest(value, words) or hint)


def require_number(
    argument: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    hint: str | None = None,
) -> float:
    """`value` as a float, if it is a finite number above `low` and at most `high`.

    Examples
    --------
    >>> require_number("level", 0.05, 0, 1)
    0.05
    """
    if is_number(value) and low < float(value) <= high and math.isfinite(value):
        return float(value)
    ends = f" above {low:g}" if math.isfinite(low) else ""
    ends += f"{' and' if ends else ''} at most {high:g}" if math.isfinite(high) else ""
    raise invalid(argument, f"be a number{ends}", value, hint=hint)


def require_share(argument: str, value: Any) -> float:
    """`value` as a float, if it is a number between 0 and 1, neither of them.

    Examples
    --------
    >>> require_share("threshold", 0.5)
    0.5
    """
    if is_number(value) and 0.0 < float(value) < 1.0:
        return float(value)
    raise invalid(argument, "be a number above 0 and below 1", value, hint=_of_percent(value))


def require_confidence(confidence: Any) -> float:
    """`confidence` as a float, if it lies between .0001 and .9999."""
    least, most, hint = 1.0 - LARGEST_CONFIDENCE, LARGEST_CONFIDENCE, _of_percent(confidence)
    level = require_number("confidence", confidence, least, most, hint=hint)
    if level < 0.5:
        message = f"`confidence` is {level:g}: intervals are wrong more often than right. "
        message += f"For alpha = {level:g}, pass `confidence={1.0 - level:g}`."
        warnings.warn(CalibrantWarning(message), stacklevel=3)
    return level


def _of_percent(value: Any) -> str | None:
    """Hint for a percentage in place of a share."""
    percent = is_number(value) and 1.0 < value < 100.0
    return f"Pass {value / 100:g} for {value:g}%." if percent else None


def require_count(argument: str, value: Any, *, least: int = 1, most: float = 1 << 31) -> int:
    """`value` as an int, if it is a whole number from `least` to `most`.

    Examples
    --------
    >>> require_count("n_bins", 15)
    15
    """
    if is_integer(value) and least <= value <= most:
        return int(value)
    large = is_integer(value) and value > most
    rule = f"be at most {most}" if large else f"be a whole number, {least} or more"
    raise InputError(f"`{argument}` must {rule}; got {show_value(value)}.")


def require_flag(argument: str, value: Any) -> bool:
    """`value` as a bool, if it is True or False."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise invalid(argument, "be True or False", value)


def require_seed(seed: Any, argument: str = "seed") -> int:
    """`seed` as an int, if it is a whole number that is not negative.

    Nothing else would do: the same input and seed must give the same bytes.
    """
    return require_count(argument, seed, least=0, most=math.inf)


def generator(seed: Any, *stream: int) -> np.random.Generator:
    """Random number generator; each use of a seed has a stream of its own.

    Examples
    --------
    >>> generator(0, 1).random() == generator(0, 1).random() != generator(0, 2).random()
    True
    """
    import numpy as np

    checked = require_seed(seed, "random_state")
    return np.random.default_rng([checked, *stream] if stream else checked)
