"""Columns of class probabilities that seem to stand in another order than their classes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import CalibrantWarning, Option, show_value

if TYPE_CHECKING:
    from calibrant.data.multiclass import ClassProbabilities

__all__ = ["ColumnOrderWarning", "likelier_order", "warn_of_other_order"]

ROWS_LOOKED_AT = 5_000
FEWEST_ROWS = 50
CLEARLY = 5.0
"""How many times the largest standard error that a sum of so many shares can have."""


class ColumnOrderWarning(CalibrantWarning):
    """The labels fit the columns of class probabilities far better in another order."""


def likelier_order(mass: NDArray[np.float64], rows: NDArray[np.int64]) -> dict[int, int]:
    """Which columns classes seem to have instead of their own; empty unless that is unmistakable.

    `mass` has for the rows of each class (down) the sum of each column (across), and `rows` their number.
    Of calibrated predictions no other order of the columns can be expected to have more.

    Examples
    --------
    >>> likelier_order(np.array([[5.0, 85.0], [90.0, 20.0]]), np.array([90, 110]))
    {0: 1, 1: 0}
    >>> likelier_order(np.array([[60.0, 30.0], [50.0, 60.0]]), np.array([90, 110]))
    {}
    """
    own = np.diagonal(mass)
    if np.all(own >= mass.max(axis=1)):
        return {}
    from scipy.optimize import linear_sum_assignment

    order = linear_sum_assignment(mass, maximize=True)[1]
    moved = np.flatnonzero((order != np.arange(len(order))) & (rows > 0))
    gain = float((mass[moved, order[moved]] - own[moved]).sum())
    many = int(rows[moved].sum())
    if many < FEWEST_ROWS or gain <= CLEARLY * np.sqrt(many):
        return {}
    return {int(k): int(order[k]) for k in moved if mass[k, order[k]] > own[k]}


def warn_of_other_order(matrix: ClassProbabilities, *, stacklevel: int) -> None:
    """Warn where the labels fit the columns far better in another order."""
    known = np.flatnonzero(matrix.labels[:ROWS_LOOKED_AT] >= 0)
    many = len(matrix.classes)
    if known.size < FEWEST_ROWS:
        return
    block = np.asarray(matrix.first(ROWS_LOOKED_AT), dtype=np.float64)[known]
    labels = matrix.labels[known]
    with np.errstate(invalid="ignore"):
        sums = np.abs(block.sum(axis=1) - 1.0) <= matrix.tolerance
        valid = sums & (block.min(axis=1) >= 0.0)
    mass = np.zeros((many, many))
    np.add.at(mass, labels[valid], block[valid])
    order = likelier_order(mass, np.bincount(labels[valid], minlength=many))
    if order:
        first = next(iter(order))
        warnings.warn(
            ColumnOrderWarning(
                "the columns of {y_prob} seem to stand in another order than their classes: rows of "
                "class {label} have more probability in the column of {other} than in their own",
                y_prob=Option("y_prob"),
                label=show_value(matrix.classes[first]),
                other=show_value(matrix.classes[order[first]]),
                cure="Check the order, or name the classes of the columns with {classes}.",
                classes=Option("classes", ...),
            ),
            stacklevel=stacklevel + 1,
        )
