"""Answers that say nothing, and fields that hold nothing."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["is_empty", "is_refusal"]

_REFUSALS = re.compile(
    r"\W*(?:i (?:do not|don't|don’t) know|(?:(?:i am|i'm|i’m) )?(?:not |un)sure|i (?:cannot|can't) "
    r"(?:answer|say)|unknown|no answer|refused|n/?a|abstain(?:ed|s)?|idk)?\W*",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\s*(?:none|null|nan)\s*", re.IGNORECASE)
"""How a program writes that a field is empty; as an answer it may be meant."""


def is_refusal(text: Any) -> bool:
    """Whether an answer says nothing: empty, "I don't know", "N/A".

    Examples
    --------
    >>> is_refusal("I don't know."), is_refusal(None), is_refusal("42")
    (True, True, False)
    """
    return text is None or (isinstance(text, str) and _REFUSALS.fullmatch(text[:200]) is not None)


def is_empty(value: Any) -> bool:
    """Whether a confidence or a score says nothing: a refusal, or None as text.

    Examples
    --------
    >>> is_empty("None"), is_refusal("None"), is_empty("0.3")
    (True, False, False)
    """
    return is_refusal(value) or (isinstance(value, str) and _NOTHING.fullmatch(value) is not None)
