"""Sketches for every class: one-vs-rest, or by predicted class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import fill_classes, fill_weights
from calibrant.data.cell_sums import DEFAULT_NODES, Columns, require_nodes
from calibrant.data.class_order import warn_of_other_order
from calibrant.data.dropped import Dropped
from calibrant.data.multiclass import (
    ENTRIES_PER_LARGE_BLOCK,
    ClassProbabilities,
    TopClass,
    as_class_probabilities,
    as_weights,
)
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches

__all__ = ["classwise", "top_label"]

MOST_BYTES = 1 << 28
Filled = Iterable[tuple[NDArray[Any], ...]]
"""The tables of sums, class by class."""


def classwise(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    nodes: int | None = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Sketches:
    """A sketch for each class, one-vs-rest: its probability against "was it this class?".

    One pass over the matrix. Where many classes would make the tables larger than 256 MB while they
    are filled, the grid is coarser; `nodes=` chooses it. Rows that were left out are counted once, in
    the first sketch.

    Parameters
    ----------
    y_true : array
        The class of each row.
    y_prob : array [rows, classes]
        Probabilities that sum to 1 in each row.
    sample_weight : array, optional
        Importance of each row.
    nodes : int, optional
        Cells of the grid, a power of two.
    from_logits : bool
        The matrix holds logits, of which the softmax is taken.
    classes : sequence, optional
        The classes that the columns stand for, in their order; by default 0, 1, 2, ...
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule.

    Returns
    -------
    Sketches
        By class.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> classwise([0, 2], probs, classes=[0, 1, 2])
    <Sketches of 3 groups by class: 0, 1, 2>
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    warn_of_other_order(matrix, stacklevel=3)
    weight = as_weights(sample_weight, matrix.n)
    many = len(matrix.classes)
    if nodes is None:
        nodes = DEFAULT_NODES
        while (32 if weight is None else 80) * many * nodes > MOST_BYTES and nodes > 256:
            nodes //= 2
    nodes = require_nodes(nodes)
    filled, dropped = _counted(matrix, nodes) if weight is None else _weighed(matrix, weight, nodes)
    return Sketches(
        {
            name: Sketch(Columns.from_dense(*sums), nodes=nodes, dropped={} if k else dropped)
            for k, (name, sums) in enumerate(zip(matrix.classes, filled, strict=True))
        },
        by="class",
    )


def _counted(matrix: ClassProbabilities, nodes: int) -> tuple[Filled, Mapping[str, int]]:
    """Counts and offsets of each class."""
    counts, offsets = np.zeros((2, len(matrix.classes), nodes + 1, 2), dtype=np.int64)
    for rows, block, predicted, _ in matrix.checked_blocks(ENTRIES_PER_LARGE_BLOCK):
        labels = matrix.labels[rows]
        if predicted.min() < 0:
            block, labels = block[predicted >= 0], labels[predicted >= 0]
        fill_classes(block, labels, nodes.bit_length() - 1, counts, offsets)
    dropped = matrix.top().dropped if counts[0].sum() < matrix.n else {}
    return zip(counts, offsets, strict=True), dropped


def _weighed(
    matrix: ClassProbabilities, weight: NDArray[Any], nodes: int
) -> tuple[Filled, Mapping[str, int]]:
    """Counts, offsets and the sums of weights of each class."""
    top, _ = _weighted_top(matrix, weight)
    kept = np.zeros(matrix.n, dtype=np.bool_)
    kept[top.rows] = True
    many = len(matrix.classes)
    counts, offsets = np.zeros((2, many, nodes + 1, 2), dtype=np.int64)
    sums = np.zeros((3, many, nodes + 1, 2))
    for rows, block in matrix.blocks(ENTRIES_PER_LARGE_BLOCK):
        probs = np.minimum(block[kept[rows]], 1.0)
        labels, weights = matrix.labels[rows][kept[rows]], weight[rows][kept[rows]]
        for k in range(many):
            fill_weights(
                np.ascontiguousarray(probs[:, k], dtype=np.float64),
                (labels == k).astype(np.float64),
                np.ascontiguousarray(weights, dtype=np.float64),
                nodes.bit_length() - 1,
                *(table[k] for table in (counts, offsets, *sums)),
            )
    return zip(counts, offsets, *sums, strict=True), top.dropped


def top_label(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    nodes: int = DEFAULT_NODES,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Sketches:
    """A sketch for each predicted class: the largest probability against "was it right?".

    Top-label calibration asks for the confidence to be right among the cases of each predicted class,
    not only on the whole (Gupta and Ramdas, 2022). Classes that are never predicted, or only with
    weight 0, have no sketch. Rows that were left out are counted once, in the first sketch.

    Parameters
    ----------
    y_true : array
        The class of each row.
    y_prob : array [rows, classes]
        Probabilities that sum to 1 in each row.
    sample_weight : array, optional
        Importance of each row.
    nodes : int, optional
        Cells of the grid, a power of two.
    from_logits : bool
        The matrix holds logits, of which the softmax is taken.
    classes : sequence, optional
        The classes that the columns stand for, in their order; by default 0, 1, 2, ...
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule.

    Returns
    -------
    Sketches
        By predicted class.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> top_label([0, 2], probs)
    <Sketches of 2 groups by predicted: 0, 1>
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    warn_of_other_order(matrix, stacklevel=3)
    given = as_weights(sample_weight, matrix.n)
    top, weight = (matrix.top(), None) if given is None else _weighted_top(matrix, given)
    order = np.argsort(top.predicted, kind="stable")
    bounds = np.searchsorted(top.predicted[order], np.arange(len(matrix.classes) + 1))
    sketches: dict[Any, Sketch] = {}
    for k, name in enumerate(matrix.classes):
        rows = order[bounds[k] : bounds[k + 1]]
        own = None if weight is None else weight[rows]
        if rows.size and (own is None or own.any()):
            dropped = Dropped() if sketches else top.dropped
            pairs = Rows(top.probability[rows], top.correct[rows], own, dropped=dropped)
            sketches[name] = Sketch.from_pairs(pairs, nodes=nodes)
    return Sketches(sketches, by="predicted")


def _weighted_top(
    matrix: ClassProbabilities, weight: NDArray[Any]
) -> tuple[TopClass, NDArray[Any]]:
    """The most likely class of the rows whose weight is valid too, and those weights."""
    top = matrix.top()
    rows = np.arange(matrix.n)[top.rows]
    pairs = Rows(top.probability, top.correct, weight[rows], dropped=top.dropped)
    if matrix.on_invalid == "raise":
        pairs.require_valid()
        return top, weight
    valid = pairs.reason_codes(slice(None)) < 0
    pairs = pairs.without_invalid()
    pairs.require_valid()
    columns = (top.predicted[valid], top.probability[valid], top.correct[valid], rows[valid])
    return TopClass(*columns, dropped=Dropped(pairs.dropped)), weight[rows[valid]]
