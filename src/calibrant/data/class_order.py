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

ROWS_LOOKED_AT, NUMBERS_LOOKED_AT = 5_000, 500_000
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
    many = len(matrix.classes)
    labels, block = _valid_rows(matrix, max(NUMBERS_LOOKED_AT // many, FEWEST_ROWS))
    if labels.size < FEWEST_ROWS or _may_be_right(labels, block):
        return
    labels, block = _valid_rows(matrix, ROWS_LOOKED_AT)
    mass = np.zeros((many, many))
    np.add.at(mass, labels, block)
    order = likelier_order(mass, np.bincount(labels, minlength=many))
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


def _valid_rows(
    matrix: ClassProbabilities, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and class probabilities of the valid ones among the first so many rows."""
    known = np.flatnonzero(matrix.labels[:rows] >= 0)
    block = np.asarray(matrix.first(rows), dtype=np.float64)[known]
    with np.errstate(invalid="ignore"):
        sums = np.abs(block.sum(axis=1) - 1.0) <= matrix.tolerance
        valid = sums & (block.min(axis=1) >= 0.0)
    return matrix.labels[known][valid], block[valid]


def _may_be_right(labels: NDArray[np.int64], block: NDArray[np.float64]) -> bool:
    """Whether labels have as much probability as those of calibrated predictions, Σp², up to chance."""
    own = float(block[np.arange(labels.size), labels].sum())
    expected = float(np.einsum("ij,ij->", block, block))
    return bool(own >= expected - 0.5 * CLEARLY * np.sqrt(labels.size))
