"""What a map of class probabilities does to rows that it was not learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.data.classes import confidence as confidence_of
from calibrant.errors import Code, InputError
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.class_map import MapOfClasses
from calibrant.recalibration.class_rows import (
    ClassSample,
    brier_of,
    cross_fitted_classes,
    dealt_classes,
    log_losses_of,
)
from calibrant.recalibration.gain import Gain, interval_of_gain

__all__ = ["ClassEffect", "ClassScores", "cross_fitted_effect_on_classes", "effect_on_classes"]

Floats = NDArray[np.float64]
KNOWN = ("sample_weight", "classes")


@dataclass(frozen=True)
class ClassScores(Record):
    """Log loss, Brier score (over all classes), SmoothECE of the confidence, and accuracy."""

    log_loss: float
    brier: float
    smooth_ece: float
    accuracy: float


@dataclass(frozen=True, repr=False)
class ClassEffect(Gain):
    """Scores before and after a map of classes, and what it gains.

    Attributes
    ----------
    before, after : ClassScores
        Scores of the class probabilities as they are, and mapped.
    gain : float
        By how much the mean log loss falls.
    low, high : float
        The interval of the gain.
    confidence : float
        Confidence of the interval.
    n : int
        Rows that were judged.
    """

    before: ClassScores
    after: ClassScores

    @property
    def accuracy_cost(self) -> float:
        """By how much the share of rows falls whose most likely class is the true one."""
        return self.before.accuracy - self.after.accuracy

    def __repr__(self) -> str:
        return self._said({"smooth_ece": "SmoothECE of the confidence", "accuracy": "accuracy"})


def effect_on_classes(
    made: MapOfClasses,
    y_true: Any,
    y_prob: Any,
    cluster: Any,
    confidence: float,
    options: Mapping[str, Any],
) -> ClassEffect:
    """`effect_of` for a map of classes."""
    sample = _read(made, y_true, y_prob, cluster, options)
    mapped = made.transform(y_prob, classes=options.get("classes"))
    return _effect(sample, mapped, confidence)


def cross_fitted_effect_on_classes(
    made: MapOfClasses,
    y_true: Any,
    y_prob: Any,
    cluster: Any,
    folds: int,
    confidence: float,
    seed: int,
    options: Mapping[str, Any],
) -> ClassEffect:
    """`cross_fitted_effect` for a map of classes."""
    sample = _read(made, y_true, y_prob, cluster, options)
    mapped = cross_fitted_classes(made, sample, dealt_classes(sample, folds, seed))
    return _effect(sample, mapped, confidence)


def _read(
    made: MapOfClasses, y_true: Any, y_prob: Any, cluster: Any, options: Mapping[str, Any]
) -> ClassSample:
    unknown = [name for name in options if name not in KNOWN]
    if unknown:
        raise InputError(
            "is not known for a map of classes", argument=unknown[0], cure="Leave it out."
        )
    if y_prob is None or as_array(y_prob, "y_prob").ndim != 2:
        raise InputError(
            "must have a column for each class, as the map has",
            argument="y_prob",
            seen=None if y_prob is None else as_array(y_prob, "y_prob").shape,
            saying="its shape is {}",
            cure="Pass class probabilities, or for one event a map such as {example}.",
            example=Code("PlattRecalibrator()"),
        )
    classes = options.get("classes")
    if classes is None and not hasattr(y_prob, "columns"):
        named = as_array(y_true, "y_true").dtype.kind not in "biuf"
        classes = made.classes if named else None
    return ClassSample.of(
        y_true,
        y_prob,
        sample_weight=options.get("sample_weight"),
        cluster=cluster,
        classes=classes,
        from_logits=made.from_logits,
    )


def _effect(sample: ClassSample, mapped: Floats, confidence: float) -> ClassEffect:
    saved = log_losses_of(sample.labels, sample.probs) - log_losses_of(sample.labels, mapped)
    gain, low, high = interval_of_gain(saved, sample.ones, sample.unit, confidence)
    before, after = _scores(sample, sample.probs), _scores(sample, mapped)
    return ClassEffect(before, after, gain, low, high, float(confidence), sample.n)


def _scores(sample: ClassSample, probs: Floats) -> ClassScores:
    labels, weight = sample.labels, sample.ones
    return ClassScores(
        float(np.average(log_losses_of(labels, probs), weights=weight)),
        float(np.average(brier_of(labels, probs), weights=weight)),
        smooth_ece(confidence_of(labels, probs, sample_weight=sample.weight)),
        float(np.average(probs.argmax(axis=1) == labels, weights=weight)),
    )
