"""Any measure for class probabilities: of the confidence, by predicted class, or class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from calibrant._arguments import require_choice
from calibrant.data.class_sketches import classwise, top_label
from calibrant.data.multiclass import confidence
from calibrant.errors import Function, InputError
from calibrant.measures.smooth_ece import smooth_ece

__all__ = ["multiclass_error"]

View = Literal["confidence", "top_label", "classwise_mean", "classwise_max"]


def multiclass_error(
    y_true: Any,
    y_prob: Any,
    *,
    view: View = "confidence",
    measure: Callable[[Any], float] = smooth_ece,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
) -> float:
    """A calibration measure of class probabilities.

    Parameters
    ----------
    y_true : array
        Class labels.
    y_prob : array of shape (rows, classes)
        Class probabilities, or logits with `from_logits=True`.
    view : {"confidence", "top_label", "classwise_mean", "classwise_max"}
        The largest probability against "was it right?" over all rows; the same apart by predicted
        class, averaged over rows; or one-vs-rest for each class, averaged over classes or the
        largest.
    measure : callable
        Of pairs or of a sketch: any measure of this package.
    from_logits, classes
        As for `calibrant.confidence`.

    References
    ----------
    Guo et al., 2017 (confidence); Gupta and Ramdas, *Top-label calibration*, 2022; Kull et al.,
    *Beyond temperature scaling*, 2019 (class-wise).

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> round(multiclass_error([0, 2], probs, view="classwise_max"), 3)
    0.35
    """
    if not callable(measure):
        raise InputError(
            "must be a function, as {example} is",
            argument="measure",
            seen=measure,
            cure="Leave it out for {example}.",
            example=Function("smooth_ece"),
        )
    if view == "confidence":
        return measure(confidence(y_true, y_prob, from_logits=from_logits, classes=classes))
    if view == "top_label":
        groups = top_label(y_true, y_prob, from_logits=from_logits, classes=classes)
        rows = np.array([sketch.total_weight for sketch in groups.values()])
        return float(np.average([measure(s) for s in groups.values()], weights=rows))
    require_choice("view", view, get_args(View))
    values = [
        measure(s)
        for s in classwise(y_true, y_prob, from_logits=from_logits, classes=classes).values()
    ]
    return float(np.mean(values) if view == "classwise_mean" else np.max(values))
