"""A scikit-learn classifier whose probabilities are recalibrated by cross-fitting."""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.recalibration.interface import Recalibrator
from calibrant.recalibration.multiclass import OneVsRestRecalibrator
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    IdentityRecalibrator,
    IsotonicRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.repair.choice import choose_recalibrator
from calibrant.repair.randomized import RandomizedRecalibrator

__all__ = ["RecalibratedClassifier"]

Floats = NDArray[np.float64]

require("sklearn.base", caller="RecalibratedClassifier")

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone  # noqa: E402

CHOOSE = "choose"
_MAPS: dict[str, type[Recalibrator]] = {
    made.kind: made
    for made in (
        BetaRecalibrator,
        IdentityRecalibrator,
        IsotonicRecalibrator,
        OffsetRecalibrator,
        PlattRecalibrator,
        RandomizedRecalibrator,
        SmoothRecalibrator,
        TemperatureRecalibrator,
    )
}


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier, and a map from its probabilities to calibrated ones.

    The map is learned from predictions for rows that the classifier had not seen: every fold is
    predicted by a classifier fitted to the others. Then the classifier is fitted to all rows.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        By default a logistic regression.
    recalibrator : str or Recalibrator, default "smooth"
        "smooth" (the paper's map), "platt", "temperature", "beta", "isotonic", "offset",
        "randomized", "none", a Recalibrator of your own, or "choose" for `choose_recalibrator`. With
        more than two classes each class is mapped against the rest.
    cv : int or splitter, default 5
        The folds; fewer where a class has fewer rows.

    Attributes
    ----------
    classes_ : array
        The classes, in the order of the columns of `predict_proba`.
    estimator_ : classifier
        Fitted to all rows.
    recalibrator_ : Recalibrator
        The map; None where all rows are of one class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)
    """

    def __init__(self, estimator: Any = None, recalibrator: Any = "smooth", cv: Any = 5) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map by cross-fitting, then the classifier to all rows."""
        from sklearn.utils import indexable
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import _check_sample_weight, validate_data

        y = validate_data(self, y=y)
        check_classification_targets(y)
        X, y = indexable(X, y)  # a frame stays one: what X must be is for the classifier to say
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if sample_weight is not None and self.classes_.size > 1:
            heavy = np.bincount(codes, sample_weight, self.classes_.size) > 0
            if heavy.sum() < 2:
                raise InputError(
                    f"all the weight is on one class, {self.classes_[heavy].tolist()}; a map needs "
                    "rows of positive weight in two."
                )
        self.estimator_ = _fitted(self._classifier(), X, y, sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if self.classes_.size == 1:
            self.recalibrator_ = None
            return self
        seen, probs = self._held_out(X, y, codes, sample_weight)
        weight = None if sample_weight is None else sample_weight[seen]
        self.recalibrator_ = self._learned(probs[seen], codes[seen], weight)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Recalibrated class probabilities."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        probs = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        if self.recalibrator_ is None:
            return probs
        if self.classes_.size > 2:
            return np.asarray(self.recalibrator_.transform(probs))
        events = self.recalibrator_.transform(np.clip(probs[:, 1], 0.0, 1.0))
        return np.stack([1.0 - events, events], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest recalibrated probability."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def _classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        chosen = LogisticRegression() if self.estimator is None else self.estimator
        if not hasattr(chosen, "predict_proba"):
            raise InputError(
                f"`estimator` must have `predict_proba`; {type(chosen).__name__} has none. A map of "
                "probabilities needs probabilities."
            )
        return clone(chosen)

    def _held_out(
        self, X: Any, y: Any, codes: NDArray[np.int64], sample_weight: Any
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Probabilities for rows that the classifier which gives them was not fitted to."""
        from sklearn.model_selection import check_cv
        from sklearn.utils import _safe_indexing

        cv = self.cv
        if isinstance(cv, Integral):
            if isinstance(cv, bool) or cv < 2:
                raise InputError(
                    f"`cv` must be 2 folds or more, or a splitter of scikit-learn; got {cv!r}."
                )
            fewest = int(np.bincount(codes).min())
            cv = max(2, min(cv, fewest))
            if fewest < 2:
                raise InputError(
                    f"cross-fitting needs at least 2 rows of every class; class "
                    f"{self.classes_[np.argmin(np.bincount(codes))]!r} has {fewest}."
                )
        probs = np.zeros((codes.size, self.classes_.size))
        seen = np.zeros(codes.size, dtype=bool)
        for train, test in check_cv(cv, codes, classifier=True).split(X, codes):
            weight = None if sample_weight is None else sample_weight[train]
            model = _fitted(self._classifier(), _safe_indexing(X, train), y[train], weight)
            columns = np.searchsorted(self.classes_, model.classes_)
            probs[np.ix_(test, columns)] = model.predict_proba(_safe_indexing(X, test))
            seen[test] = True
        return seen, probs

    def _learned(self, probs: Floats, codes: NDArray[np.int64], weight: Any) -> Any:
        if self.classes_.size > 2:
            return OneVsRestRecalibrator(self._map()).fit(probs, codes, weight)
        p = np.clip(probs[:, 1], 0.0, 1.0)
        if self.recalibrator == CHOOSE:
            return choose_recalibrator(p, codes, weight).recalibrator
        return self._map().fit(p, codes, weight)

    def _map(self) -> Recalibrator:
        if isinstance(self.recalibrator, Recalibrator):
            return deepcopy(self.recalibrator)
        if self.recalibrator == CHOOSE and self.classes_.size > 2:
            raise InputError('`recalibrator="choose"` compares maps of two classes; name one.')
        if not isinstance(self.recalibrator, str) or self.recalibrator not in _MAPS:
            raise InputError(
                f"`recalibrator` must be one of {', '.join([*sorted(_MAPS), CHOOSE])}, or a "
                f"Recalibrator; got {self.recalibrator!r}."
            )
        if self.recalibrator == SmoothRecalibrator.kind:
            # A weight counts as so many rows here, as scikit-learn asks; pseudo-rows count otherwise.
            return SmoothRecalibrator(scale="probability", pseudo_rows=0)
        return _MAPS[self.recalibrator]()

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        else:
            tags.input_tags.sparse = True
        return tags


def _fitted(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    return (
        model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=sample_weight)
    )
