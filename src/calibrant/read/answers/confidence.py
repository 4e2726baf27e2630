"""Confidence as people and models write it: 0.85, "85%", "I am 85% confident"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal

from calibrant.errors import InputError

__all__ = ["as_credit", "as_probability", "is_refusal", "reader", "stated_confidence"]

Reader = Callable[[Any, str], float | None]

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
_WRITTEN = re.compile(rf"\s*{_NUMBER}\s*(%)?\s*")
_STATED = re.compile(
    rf"(?:confidence|probability|certainty)[^\d.%\n]{{0,40}}{_NUMBER}\s*(%|/\s*100)?"
    rf"|{_NUMBER}\s*(%)\s*(?:confident|certain|sure)",
    re.IGNORECASE,
)
_REFUSALS = re.compile(
    r"\W*(?:i (?:do not|don't|don’t) know|(?:(?:i am|i'm|i’m) )?(?:not |un)sure|i (?:cannot|can't) "
    r"(?:answer|say)|unknown|no answer|refused|n/?a|abstain(?:ed|s)?|idk|none|null)?\W*",
    re.IGNORECASE,
)
_CREDIT = {"c": 1.0, "i": 0.0, "p": 0.5, "correct": 1.0, "incorrect": 0.0, "partial": 0.5}
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


def as_probability(value: Any, where: str) -> float | None:
    """A stated confidence as a number in [0, 1]; None where there is none.

    A number above 1 without a per cent sign is refused: 85 could be 85% or a mistake.

    Examples
    --------
    >>> as_probability("85%", "line 1"), as_probability(0.85, "line 1"), as_probability("", "line 1")
    (0.85, 0.85, None)
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(
            f"{where}: a confidence must be a number or text such as '85%'; got {value!r}."
        )
    if isinstance(value, str):
        match = _WRITTEN.fullmatch(value)
        if match is None:
            raise InputError(
                f"{where}: a confidence must be a number or text such as '85%'; got {value[:80]!r}."
            )
        value = _scaled(match[1], match[2])
    if value != value:
        return None
    if not 0 <= value <= 1:
        raise InputError(
            f"{where}: a confidence must lie in [0, 1] or carry a per cent sign, as in '85%'; "
            f"got {value:.10g}."
        )
    return float(value)


def reader(read: Reader, on_invalid: Literal["raise", "drop"]) -> Reader:
    """The same reader, for which what cannot be read is out of range where such rows are dropped.

    Examples
    --------
    >>> reader(as_probability, "drop")("high", "line 1")
    inf
    """
    if on_invalid == "raise":
        return read

    def lenient(value: Any, where: str) -> float | None:
        try:
            return read(value, where)
        except InputError:
            return math.inf

    return lenient


def stated_confidence(text: str) -> float | None:
    """The last confidence that a text states, or None.

    Examples
    --------
    >>> stated_confidence("Answer: B. Confidence: 85%")
    0.85
    >>> stated_confidence("I am 90% sure that it is 12.")
    0.9
    >>> stated_confidence("It rose by 40%.") is None
    True
    """
    found = None
    for match in _STATED.finditer(text):
        number, sign = (match[1], match[2]) if match[1] else (match[3], match[4])
        value = _scaled(number, sign)
        if 0 <= value <= 1:
            found = value
    return found


def as_credit(value: Any, where: str) -> float | None:
    """A score as a share of the credit: booleans, numbers, "C", "I", "P", "yes"; None where missing."""
    if value is None:
        return None
    if isinstance(value, bool | int | float):
        if value != value:
            return None
        if 0 <= value <= 1:
            return float(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _CREDIT or word in _TRUTH:
            return _CREDIT.get(word, _TRUTH.get(word))
        try:
            return as_credit(float(word), where)
        except ValueError:
            pass
    raise InputError(
        f"{where}: an answer is right (true, 1, 'C'), wrong (false, 0, 'I') or partly right (a number "
        f"between 0 and 1); got {str(value)[:80]!r}."
    )


def is_refusal(text: Any) -> bool:
    """Whether an answer says nothing: empty, "I don't know", "N/A".

    Examples
    --------
    >>> is_refusal("I don't know."), is_refusal(None), is_refusal("42")
    (True, True, False)
    """
    return text is None or (isinstance(text, str) and _REFUSALS.fullmatch(text[:200]) is not None)


def _scaled(number: str, sign: str | None) -> float:
    """A written number; per cent are divided in decimal, so that "29%" is the float 0.29."""
    from decimal import Decimal

    return float(Decimal(number) / 100 if sign else Decimal(number))
