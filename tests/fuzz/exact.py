"""The sketch of some rows in rational arithmetic: slow, obvious, and without a line of calibrant's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor, isinf, isnan
from typing import Any

__all__ = ["Sums", "exact_sums"]

FRACTION_BITS = 36
Sums = tuple[dict[tuple[int, int], tuple[int, int]], dict[str, int]]
"""Count and sum of offsets by (cell, label), and rows that were left out, by reason."""


def exact_sums(y: Sequence[Any], p: Sequence[Any], nodes: int) -> Sums:
    """Each row's cell and distance from its left end, in units of 2**-36, added up.

    Parameters
    ----------
    y, p : sequence
        Python's numbers, Decimal or None.
    nodes : int
        Cells of the grid.
    """
    width = (1 << FRACTION_BITS) // nodes
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    dropped: Counter[str] = Counter()
    for label, prediction in zip(y, p, strict=True):
        reason = _broken_rule(label, prediction)
        if reason is not None:
            dropped[reason] += 1
            continue
        place = floor(_rational(prediction) * (1 << FRACTION_BITS))
        key = (place // width, int(label))
        count, offset = sums.get(key, (0, 0))
        sums[key] = (count + 1, offset + place % width)
    return sums, dict(dropped)


def _broken_rule(label: Any, prediction: Any) -> str | None:
    """The first rule that a row breaks, in the order in which calibrant names them."""
    if _is_missing(prediction):
        return "missing prediction"
    if not (_is_finite(prediction) and 0 <= _rational(prediction) <= 1):
        return "prediction out of range"
    if _is_missing(label):
        return "missing label"
    return None if label in (0, 1) else "invalid label"


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _is_finite(value: Any) -> bool:
    return not (isinstance(value, float) and isinf(value))


def _rational(value: Any) -> Fraction:
    """The number itself; a decimal is the nearest float, as it is on every engine."""
    return Fraction(float(value)) if isinstance(value, Decimal) else Fraction(value)
