"""All messages in other words, with the same data in them: what still passes does not read the words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from calibrant import errors

OTHER = "other words"
_PLACEHOLDER = re.compile(r"(\{\w*\})")


def reworded(text: str) -> str:
    """The text with other words around the same placeholders."""
    parts = _PLACEHOLDER.split(text)
    return " ".join(
        part if _PLACEHOLDER.fullmatch(part) else OTHER for part in parts if part.strip()
    )


def reword(setattr: Callable[[Any, str, Any], None] = setattr) -> None:
    """From now on, let every message use other words for its rule, what it says was seen, and its cures."""
    fill, construct = errors._filled, errors.Message.__init__

    def filled(text: str, values: Mapping[str, Any], audience: errors.Audience) -> str:
        return fill(reworded(text), values, audience)

    def constructed(message: errors.Message, rule: str, **fields: Any) -> None:
        construct(message, reworded(rule), **fields)

    setattr(errors, "_filled", filled)
    setattr(errors.Message, "__init__", constructed)
