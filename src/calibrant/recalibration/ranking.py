"""What a map does to the order of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from calibrant.recalibration.learned_map import Recalibrator

__all__ = ["Order", "in_words", "order_after", "order_of_map"]

Floats = NDArray[np.float64]
Order = Literal["kept", "merged", "changed"]
"""All predictions stay apart and in order; none change places, but some become equal; some change places."""
ROUNDING = 1e-12
"""Mapped predictions may fall by so much before they count as having changed places."""
AT_THE_ENDS = 1e-4
"""So close to 0 or 1, predictions may become equal where the order counts as kept."""
A_STEP = 0.1
"""Predictions that become equal closer to 0 or 1 than this do so at the ends; others, in steps."""
APART = 1e-6
"""Places of a map are compared where they are so far apart, next to their distance from 0 or 1."""


def order_after(p: Floats, mapped: Floats) -> Order:
    """What became of the order of these predictions.

    Examples
    --------
    >>> p = np.array([0.2, 0.4, 0.6])
    >>> order_after(p, p**2), order_after(p, np.array([0.3, 0.3, 0.7])), order_after(p, 1 - p)
    ('kept', 'merged', 'changed')
    """
    distinct, first = np.unique(p, return_index=True)
    steps = np.diff(mapped[first]) if distinct.size > 1 else np.ones(1)
    if steps.min() < -ROUNDING:
        return "changed"
    return "kept" if steps.min() > 0.0 else "merged"


def order_of_map(recalibrator: Recalibrator) -> Order:
    """What a map does to the order; predictions within 1e-4 of 0 or 1 may become equal where it is kept."""
    return _judged(recalibrator)[0]


def in_words(recalibrator: Recalibrator) -> str:
    """What a map does to the order of predictions, as the end of a sentence."""
    order, low, high = _judged(recalibrator)
    if order == "changed":
        return "changes the order of some"
    near = [f"{gap:.1g}".replace("e-0", "e-") for gap in (low, high)]
    ends = [f"{gap} of {end}" for gap, end in zip(near, (0, 1), strict=True) if gap != "0"]
    within = f"{near[0]} of 0 or 1" if near[0] == near[1] else " or ".join(ends)
    if order == "kept":
        return f"keeps their order{f', but makes those within {within} equal' if ends else ''}"
    if max(low, high) < A_STEP:
        return f"makes those within {within} equal; none change places"
    return "merges some of them into steps; none change places"


def _judged(recalibrator: Recalibrator) -> tuple[Order, float, float]:
    """The order, and how far from 0 and from 1 predictions become equal."""
    x, mapped = _points(recalibrator)
    order = order_after(x, mapped)
    equal = np.flatnonzero(np.diff(mapped) <= 0.0)
    low = max((float(x[k + 1]) for k in equal if x[k + 1] <= 0.5), default=0.0)
    high = max((float(1.0 - x[k]) for k in equal if x[k + 1] > 0.5), default=0.0)
    if order == "merged" and max(low, high) <= AT_THE_ENDS:
        order = "kept"
    return order, low, high


def _points(recalibrator: Recalibrator) -> tuple[Floats, Floats]:
    """Places so far apart that a map tells them apart wherever it rises, and what becomes of them."""
    from calibrant.recalibration.deploy import places_of

    x = places_of(recalibrator)
    kept = np.diff(x, prepend=-1.0) > APART * np.minimum(x, 1.0 - x)
    x = x[kept]
    return x, recalibrator._apply(x, recalibrator.state)
