"""What logits of classes must be: numbers or -inf, and not probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import Cure, InputError, Option, Where

__all__ = ["PROBABILITIES", "SMALLEST_LOGARITHM", "finite_logits", "refuse_probabilities"]

SMALLEST_LOGARITHM = float(np.log(np.finfo(np.float32).tiny))
"""Of a class probability: 0 counts as the smallest float32 that has all its digits."""
PROBABILITIES = Cure(
    "If they are probabilities, leave out {option}.", {"option": Option("from_logits", True)}
)


def refuse_probabilities(
    logits: NDArray[Any], tolerance: float, argument: str, cure: Cure = PROBABILITIES
) -> None:
    """Refuse a matrix whose every row lies in [0, 1] and sums to 1: nothing else looks like that.

    Examples
    --------
    >>> refuse_probabilities(np.array([[2.0, -1.0], [0.5, 0.5]]), 1e-4, "y_prob")
    >>> refuse_probabilities(np.array([[0.7, 0.3], [0.5, 0.5]]), 1e-4, "y_prob")
    Traceback (most recent call last):
    calibrant.errors.InputError: `y_prob` must hold logits, and every row lies in [0, 1] and sums to 1. If
    they are probabilities, leave out `from_logits=True`.
    """
    if len(logits) and _are_probabilities(logits[:1], tolerance):
        if not _are_probabilities(logits, tolerance):
            return
        raise InputError(
            "must hold logits, and every row lies in [0, 1] and sums to 1",
            argument=argument,
            cure=cure,
        )


def _are_probabilities(rows: NDArray[Any], tolerance: float) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) <= tolerance
    return bool(sums.all() and rows.min() >= 0.0)


def finite_logits(logits: NDArray[Any], argument: str) -> NDArray[Any]:
    """The logits with a probability of 0, which -inf stands for, as one that has a logarithm.

    NaN, +inf and rows of nothing but -inf are refused.
    """
    if np.isfinite(logits).all():
        return logits
    masked = np.isneginf(logits)
    bad = ~(np.isfinite(logits) | masked) | masked.all(axis=1, keepdims=True)
    wrong = np.flatnonzero(bad.any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "must hold logits that are finite or -inf, and not -inf alone",
            argument=argument,
            seen=logits[row][bad[row]][0],
            where=Where(row=row),
            cure="Leave such rows out first.",
        )
    top = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - top).sum(axis=1, keepdims=True)
    return np.where(masked, top + np.log(total) + SMALLEST_LOGARITHM, logits)
