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
LARGEST_WEIGHT = Fraction(1e100)
Sums = dict[Any, tuple[dict[tuple[int, int], tuple[Fraction, ...]], dict[str, int]]]
"""By group: count and sum of offsets by (cell, label), with the sums of weights, of their squares and of
weighted offsets where there are weights; and the rows that were left out, by reason."""


def exact_sums(
    y: Sequence[Any],
    p: Sequence[Any],
    nodes: int,
    weights: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    *,
    percent: bool = False,
) -> Sums:
    """Each row's cell and distance from its left end, in units of 2**-36, added up.

    Parameters
    ----------
    y, p, weights : sequence
        Python's numbers, Decimal or None.
    nodes : int
        Cells of the grid.
    groups : sequence
        The group of each row; without them, all are in the group None.
    percent : bool
        Predictions run from 0 to 100: each stands for the float that is nearest to its hundredth.
    """
    p = [_hundredth(value) if percent else value for value in p]
    width = (1 << FRACTION_BITS) // nodes
    found: Sums = {}
    for row, (label, prediction) in enumerate(zip(y, p, strict=True)):
        weight = None if weights is None else weights[row]
        sums, dropped = found.setdefault(None if groups is None else groups[row], ({}, Counter()))
        reason = _broken_rule(label, prediction)
        if reason is None and weights is not None:
            reason = _broken_rule_of_weights(weight)
        if reason is not None:
            dropped[reason] += 1
            continue
        place = floor(_rational(prediction) * (1 << FRACTION_BITS))
        key, offset = (place // width, int(label)), Fraction(place % width)
        added = [Fraction(1), offset]
        if weights is not None:
            w = _rational(weight)
            added += [w, w * w, w * offset]
        before = sums.get(key, (Fraction(0),) * len(added))
        sums[key] = tuple(a + b for a, b in zip(before, added, strict=True))
    return {group: (sums, dict(dropped)) for group, (sums, dropped) in found.items()}


def _broken_rule(label: Any, prediction: Any) -> str | None:
    """The first rule that a row breaks, in the order in which calibrant names them."""
    if _is_missing(prediction):
        return "missing prediction"
    if not (_is_finite(prediction) and 0 <= _rational(prediction) <= 1):
        return "prediction out of range"
    if _is_missing(label):
        return "missing label"
    return None if label in (0, 1) else "invalid label"


def _broken_rule_of_weights(weight: Any) -> str | None:
    if _is_missing(weight):
        return "missing weight"
    usable = _is_finite(weight) and 0 <= _rational(weight) <= LARGEST_WEIGHT
    return None if usable else "invalid weight"


def _hundredth(value: Any) -> Any:
    if _is_missing(value) or not _is_finite(value):
        return value
    return float(_rational(value) / 100)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _is_finite(value: Any) -> bool:
    return not (isinstance(value, float) and isinf(value))


def _rational(value: Any) -> Fraction:
    """The number itself; a decimal is the nearest float, as it is on every engine."""
    return Fraction(float(value)) if isinstance(value, Decimal) else Fraction(value)
