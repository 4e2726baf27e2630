"""Numbers that a text shows, and those that a result holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)")


def leaves(value: Any) -> Iterator[float]:
    """Every number of a document, and those in its texts."""
    if isinstance(value, dict):
        value = [*value.values(), *value]
    if isinstance(value, list | tuple):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, str):
        yield from (float(text.replace(",", "")) for text in NUMBER.findall(value))
    elif value is not None:
        yield float(value)


def unknown_numbers(text: str, document: Any, constants: Iterable[float] = ()) -> list[str]:
    """Numbers of a text that are none of the document's, rounded to the digits that are shown."""
    known = np.array([*leaves(document), *constants])
    known = np.concatenate([known, 100.0 * known])
    found = []
    for shown in NUMBER.findall(text):
        digits = len(shown.partition(".")[2].split("e")[0]) - int(shown.partition("e")[2] or 0)
        near = np.abs(np.abs(known) - abs(float(shown.replace(",", ""))))
        if not np.nanmin(near) <= 0.5001 * 10.0**-digits:
            found.append(shown)
    return found
