"""Scores on the real line, as `decision_function` gives them, as probabilities that a map can take."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import Code, InputError, TypeName
from calibrant.recalibration.logistic import expit
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.scaling import TemperatureScaling

__all__ = ["LinkOfScores", "has_scores_alone", "raw_predictions", "require_predictions"]

Floats = NDArray[np.float64]

WIDEST = 8.0
"""The log-odds that the largest score is brought to, so that twice as large ones can be told apart too."""


def require_predictions(model: Any) -> None:
    """Refuse a model that gives neither probabilities nor scores."""
    if not (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        raise InputError(
            "must have {probs} or {scores}, which a map is learned from",
            argument="estimator",
            seen=TypeName.of(model),
            saying="{} has none",
            cure="Pass another classifier, such as {example}.",
            probs=Code("predict_proba"),
            scores=Code("decision_function"),
            example=Code("LogisticRegression()"),
        )


def has_scores_alone(model: Any) -> bool:
    """Whether a fitted model gives scores and no probabilities."""
    return not hasattr(model, "predict_proba")


def raw_predictions(model: Any, X: Any) -> Floats:
    """A column for each class that the model knows; of two classes, scores are one column."""
    if not has_scores_alone(model):
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    many = len(model.classes_)
    if scores.shape[1] != (1 if many == 2 else many):
        raise InputError(
            "must give a score for each class",
            argument="estimator",
            seen=scores.shape[1],
            saying="{method} has {} columns for {many} classes",
            cure="Make it score each class against the rest.",
            method=Code("decision_function"),
            many=many,
        )
    return scores


class LinkOfScores:
    """From scores to probabilities: Platt's map of two classes, one temperature of more.

    Examples
    --------
    >>> link = LinkOfScores().fit(np.array([[-300.0], [-20.0], [40.0], [100.0]]), np.array([0, 1, 0, 1]))
    >>> link.transform(np.array([[0.0]])).shape
    (1, 2)
    """

    def fit(self, scores: Floats, labels: NDArray[np.int64], weight: Any = None) -> Self:
        """Learn from scores and the number of each row's class."""
        if scores.shape[1] > 1:
            self._scaling = TemperatureScaling().fit(scores, labels, weight)
            return self
        largest = float(np.abs(scores).max())
        self._unit = largest / WIDEST if largest > 0.0 else 1.0
        self._platt = PlattRecalibrator().fit(expit(scores[:, 0] / self._unit), labels, weight)
        return self

    def transform(self, scores: Floats) -> Floats:
        """Probabilities, with a column for each class."""
        if scores.shape[1] > 1:
            return self._scaling.transform(scores)
        events = self._platt.transform(expit(scores[:, 0] / self._unit))
        return np.stack([1.0 - events, events], axis=1)
