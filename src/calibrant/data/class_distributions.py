"""Rows of class probabilities that were checked, one by one: what maps of classes learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.class_order import warn_of_other_order
from calibrant.data.dropped import Dropped
from calibrant.data.multiclass import as_class_probabilities, as_weights
from calibrant.data.rows import Rows

__all__ = ["ClassDistributions", "class_distributions"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassDistributions:
    """Class probabilities, classes and weights of the rows that break no rule.

    Attributes
    ----------
    given : array[n, classes]
        The rows as they were: probabilities, or logits.
    probs : float64[n, classes]
        Each row sums to 1; of logits, their softmax.
    labels : int64[n]
        The column of the true class.
    weight : float64[n] or None
        Importance of each row.
    rows : int64[n]
        Where the rows stand among those that were given.
    classes : list
        What the columns stand for.
    dropped : Dropped
        How many rows were left out, by reason.
    """

    given: NDArray[Any]
    probs: Floats
    labels: NDArray[np.int64]
    weight: Floats | None
    rows: NDArray[np.int64]
    classes: list[Any]
    dropped: Dropped


def class_distributions(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> ClassDistributions:
    """The valid rows of class probabilities or logits; refuses the first that is not, or leaves all out.

    Examples
    --------
    >>> found = class_distributions([0, 1, None], [[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]], on_invalid="drop")
    >>> found.labels, dict(found.dropped)
    (array([0, 1]), {'missing label': 1})
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    top = matrix.top()
    weight = as_weights(sample_weight, matrix.n)
    rows = np.arange(matrix.n)[top.rows]
    pairs = Rows(
        top.probability,
        top.correct,
        None if weight is None else weight[rows],
        dropped=top.dropped,
        kept=rows,
    )
    if on_invalid == "drop":
        pairs = pairs.without_invalid()
    pairs.require_valid()
    warn_of_other_order(matrix, stacklevel=3)
    kept = rows if pairs.kept is None else pairs.kept
    probs = np.concatenate([block for _, block in matrix.blocks()]).astype(np.float64)
    return ClassDistributions(
        matrix.raw[kept],
        np.minimum(probs[kept], 1.0),
        matrix.labels[kept],
        pairs.weight,
        kept,
        matrix.classes,
        Dropped(pairs.dropped),
    )
