"""Sketches for every class: one-vs-rest, or by predicted class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from calibrant.inputs.multiclass import ENTRIES_PER_LARGE_BLOCK, as_class_probabilities
from calibrant.inputs.pairs import Pairs
from calibrant.sketch._fill import fill_classes
from calibrant.sketch.columns import Columns
from calibrant.sketch.groups import Sketches
from calibrant.sketch.table import DEFAULT_NODES, Sketch, require_nodes

__all__ = ["classwise", "top_label"]

MOST_BYTES = 1 << 28


def classwise(
    y_true: Any,
    y_prob: Any,
    *,
    nodes: int | None = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Sketches:
    """A sketch for each class, one-vs-rest: its probability against "was it this class?".

    One pass over the matrix. Where many classes would make the tables larger than 256 MB while they
    are filled, the grid is coarser; `nodes=` chooses it.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> classwise([0, 2], probs, classes=[0, 1, 2])
    <Sketches of 3 groups by class: 0, 1, 2>
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    many = len(matrix.classes)
    if nodes is None:
        nodes = DEFAULT_NODES
        while 32 * many * nodes > MOST_BYTES and nodes > 256:
            nodes //= 2
    nodes = require_nodes(nodes)
    counts, offsets = np.zeros((2, many, nodes + 1, 2), dtype=np.int64)
    for rows, block, predicted, _ in matrix.checked_blocks(ENTRIES_PER_LARGE_BLOCK):
        labels = matrix.labels[rows]
        if predicted.min() < 0:
            block, labels = block[predicted >= 0], labels[predicted >= 0]
        fill_classes(block, labels, nodes.bit_length() - 1, counts, offsets)
    dropped = matrix.top().dropped if counts[0].sum() < matrix.n else {}
    return Sketches(
        {
            name: Sketch(Columns.from_dense(counts[k], offsets[k]), nodes=nodes, dropped=dropped)
            for k, name in enumerate(matrix.classes)
        },
        by="class",
    )


def top_label(
    y_true: Any,
    y_prob: Any,
    *,
    nodes: int = DEFAULT_NODES,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Sketches:
    """A sketch for each predicted class: the largest probability against "was it right?".

    Top-label calibration asks for the confidence to be right among the cases of each predicted class,
    not only on the whole (Gupta and Ramdas, 2022). Classes that are never predicted have no sketch.
    Each sketch counts all the rows of the matrix that were left out.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> top_label([0, 2], probs)
    <Sketches of 2 groups by predicted: 0, 1>
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    top = matrix.top()
    order = np.argsort(top.predicted, kind="stable")
    bounds = np.searchsorted(top.predicted[order], np.arange(len(matrix.classes) + 1))
    sketches = {}
    for k, name in enumerate(matrix.classes):
        rows = order[bounds[k] : bounds[k + 1]]
        if rows.size:
            pairs = Pairs(top.probability[rows], top.correct[rows], dropped=top.dropped)
            sketches[name] = Sketch.from_pairs(pairs, nodes=nodes)
    return Sketches(sketches, by="predicted")
