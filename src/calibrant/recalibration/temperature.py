"""The best temperature of many logits, in few passes over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassRows", "best_slope"]

Floats = NDArray[np.float64]

FARTHEST = 30.0
"""The logarithm of a slope, of logits of size 1, stays within this of 0 where no slope is the best."""
ENTRIES_PER_BLOCK = 1 << 20
ENTRIES_TO_START = 1 << 18


class ClassRows(NamedTuple):
    """Logits, the column of the true class, and weights that add up to 1; how many rows they count for."""

    logits: NDArray[Any]
    labels: NDArray[np.int64]
    weight: Floats
    n: float


def best_slope(rows: ClassRows) -> float:
    """The inverse temperature: Newton's method from the best slope of a few rows, a bracket around it."""
    from scipy.optimize import brentq

    n, k = rows.logits.shape
    size, ahead, mean = _gaps(rows)
    if mean >= 0.0:  # the outcomes do not follow the logits at all
        return float(np.exp(-FARTHEST)) / size if ahead else 1.0 / size
    if not ahead:  # the largest logit is never wrong
        return float(np.exp(FARTHEST)) / size
    step = -(-n * k // ENTRIES_TO_START)
    few = rows._replace(
        logits=rows.logits[::step], labels=rows.labels[::step], weight=rows.weight[::step]
    )

    def gradient(log_slope: float) -> float:
        return _derivatives(float(np.exp(log_slope)), few, size)[0]

    low, high = -FARTHEST, FARTHEST
    root = brentq(gradient, low, high, xtol=1e-6) if gradient(low) < 0 < gradient(high) else 0.0
    for _ in range(200):
        slope = float(np.exp(root))
        steepness, curvature = _derivatives(slope, rows, size)
        low, high = (root, high) if steepness < 0.0 else (low, root)
        moved = slope - steepness / curvature if curvature > 0.0 else 0.0
        ahead_of = float(np.log(moved)) if moved > 0.0 else -np.inf
        if not low <= ahead_of <= high:
            ahead_of = 0.5 * (low + high)
        moved_by, root = abs(ahead_of - root), ahead_of
        if moved_by < 1e-7:  # the next step would be the square of this
            break
    return float(np.exp(root)) / size


def _blocks(rows: ClassRows, unit: float) -> Iterator[tuple[Floats, Floats]]:
    """How far every logit is above that of the true class, in units, with weights; a block at a time."""
    n, k = rows.logits.shape
    step = max(1, ENTRIES_PER_BLOCK // k)
    for start in range(0, n, step):
        labels = rows.labels[start : start + step]
        gaps = rows.logits[start : start + step].astype(np.float64)
        gaps -= gaps[np.arange(labels.size), labels, None]
        gaps /= unit
        yield gaps, rows.weight[start : start + step]


def _gaps(rows: ClassRows) -> tuple[float, bool, float]:
    """Root mean square of the gaps, whether any is above 0, and their mean over classes."""
    most, largest = 0.0, 0.0
    for gaps, _ in _blocks(rows, 1.0):
        most, largest = max(most, float(np.abs(gaps).max())), max(largest, float(gaps.max()))
    if most < np.finfo(np.float64).tiny:
        return 1.0, False, 0.0
    squares, mean = 0.0, 0.0
    for gaps, weight in _blocks(rows, most):
        squares += float(np.einsum("ij,ij->", gaps, gaps))
        mean += float(weight @ gaps.mean(axis=1))
    return most * float(np.sqrt(squares / rows.logits.size)), largest > 0.0, mean


def _derivatives(slope: float, rows: ClassRows, unit: float) -> tuple[float, float]:
    """First and second derivative of the mean log loss by the slope: one pass of `exp`."""
    gradient = curvature = 0.0
    for gaps, weight in _blocks(rows, unit):
        chance = slope * gaps
        chance -= chance.max(axis=1, keepdims=True)
        np.exp(chance, out=chance)
        total = chance.sum(axis=1)
        mean = np.einsum("ij,ij->i", chance, gaps) / total
        gaps -= mean[:, None]
        spread = np.einsum("ij,ij,ij->i", chance, gaps, gaps) / total
        gradient += float(weight @ mean)
        curvature += float(weight @ spread)
    return gradient, curvature
