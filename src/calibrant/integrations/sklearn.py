"""SmoothECE where scikit-learn expects a scorer, and its diagram under the contract for displays."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.classes import confidence, require_known_classes
from calibrant.errors import InputError
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.plotting.display import ReliabilityDisplay

__all__ = ["ReliabilityDisplay", "neg_smooth_ece_scorer"]


def neg_smooth_ece_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """A scorer: minus the SmoothECE of a classifier's predicted probabilities; larger is better.

    Pass it as `scoring=` to `cross_val_score`, `cross_validate` or `GridSearchCV`. With two classes it
    looks at the probability of `estimator.classes_[1]`; with more, at the confidence of the predicted
    class.

    Notes
    -----
    Calibration alone can be had by predicting the event rate for everybody: choose models by a proper
    score, such as the log loss, and look at this one beside it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cross_val_score(GaussianNB(), X, y, cv=3, scoring=neg_smooth_ece_scorer).round(3)
    array([-0.078, -0.049, -0.047])
    """
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"`estimator` must have `predict_proba` to be scored; {type(estimator).__name__} has none.",
            hint="Wrap it in `RecalibratedClassifier` or `sklearn.calibration.CalibratedClassifierCV`.",
        )
    classes = np.asarray(estimator.classes_)
    require_known_classes(y, classes.tolist())
    probs = np.asarray(estimator.predict_proba(X))
    if classes.size == 2:
        return -smooth_ece(np.asarray(y) == classes[1], probs[:, 1], sample_weight=sample_weight)
    return -smooth_ece(confidence(y, probs, classes=classes.tolist(), sample_weight=sample_weight))
