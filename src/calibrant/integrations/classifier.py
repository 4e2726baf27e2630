"""A scikit-learn classifier whose probabilities are recalibrated by cross-fitting."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._format import group_text
from calibrant._optional import require
from calibrant.data.arrays import require_each
from calibrant.data.rows import as_rows
from calibrant.errors import InputError, TooFewRows, invalid, show_value
from calibrant.inference.logistic import expit
from calibrant.recalibration.choice import choose_recalibrator
from calibrant.recalibration.class_map import LEAST_OF_A_CLASS
from calibrant.recalibration.learned_map import make_map
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling

Floats = NDArray[np.float64]

require("sklearn.base", caller="RecalibratedClassifier")

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone  # noqa: E402

PREFIT = "prefit"
CHOOSE = "choose"
WIDEST = 8.0
"""The log-odds that the largest score is brought to, so that twice as large ones can be told apart too."""


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier, and a map from its probabilities to calibrated ones.

    The map is learned from predictions for rows that the classifier had not seen: every fold is
    predicted by a classifier fitted to the others. Then the classifier is fitted to all rows.

    Parameters
    ----------
    estimator : classifier, optional
        With `predict_proba`, or with `decision_function` alone: scores become probabilities by Platt's map,
        or by one temperature for more than two classes, before they are recalibrated. By default a
        logistic regression.
    recalibrator : str, Recalibrator or map of class probabilities, default "adaptive"
        A name of `calibrant.recalibration.map_names()` such as "adaptive", "platt" (or "sigmoid") and
        "isotonic", a map of your own, or "choose" for `choose_recalibrator`. With more than two classes the
        names are those of `map_names(n_classes=3)`; "adaptive" is then structured scaling of all classes
        together, or one temperature where a class has too few rows, and any other map of two classes takes
        each class against the rest.
    cv : int, splitter or "prefit", default 5
        The folds; fewer where a class has fewer rows. Rows that belong together stay together where `fit`
        is given their `groups`. Where time orders the rows, pass `TimeSeriesSplit()`: each fold is then
        predicted from earlier rows alone. Folds that would learn without one of the classes are left out.
        With "prefit", or a `FrozenEstimator`, the classifier is already fitted, to other rows than these,
        and stays as it is.

    Attributes
    ----------
    classes_ : array
        The classes, in the order of the columns of `predict_proba`.
    estimator_ : classifier
        Fitted to all rows.
    recalibrator_ : Recalibrator or map of class probabilities
        The map; None where all rows are of one class. A map of classes knows their names.
    link_ : callable or None
        Map from scores to probabilities; None where the classifier has `predict_proba`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.predict_proba(X).shape
    (569, 2)
    """

    def __init__(self, estimator: Any = None, recalibrator: Any = "adaptive", cv: Any = 5) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the map by cross-fitting, then the classifier to all rows.

        `groups` says which rows belong together, such as those of one patient: they share a fold.
        """
        from sklearn.utils import indexable
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import _check_sample_weight, validate_data

        y = validate_data(self, y=y)
        check_classification_targets(y)
        X, y, groups = indexable(X, y, groups)  # what X must be is for the classifier to say
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
            zeros = np.zeros(len(y))
            as_rows(zeros, zeros, sample_weight=sample_weight).require_valid()
        fitted = self._is_prefit()
        self.estimator_ = (
            self._prefit() if fitted else _fitted(self._classifier(), X, y, sample_weight)
        )
        self.classes_ = np.asarray(self.estimator_.classes_) if fitted else np.unique(y)
        codes = self._codes(y)
        self._require_two_heavy_classes(codes, sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.recalibrator_: Any = None
        self.link_: _ScoreLink | None = None
        if self.classes_.size == 1:
            return self
        if fitted:
            seen = np.ones(codes.size, dtype=bool)
            given = _predictions(self.estimator_, X)
        else:
            seen, given = self._held_out(X, y, codes, sample_weight, groups)
        weight = None if sample_weight is None else sample_weight[seen]
        if not hasattr(self.estimator_, "predict_proba"):
            self.link_ = _ScoreLink(given[seen], codes[seen], weight)
        self.recalibrator_ = self._learned(self._linked(given[seen]), codes[seen], weight)
        return self

    def _linked(self, given: Floats) -> Floats:
        return given if self.link_ is None else self.link_(given)

    def _is_prefit(self) -> bool:
        from sklearn.frozen import FrozenEstimator

        said = isinstance(self.cv, str) and self.cv == PREFIT
        return said or isinstance(self.estimator, FrozenEstimator)

    def _prefit(self) -> Any:
        from sklearn.utils.validation import check_is_fitted

        if self.estimator is None:
            raise invalid("estimator", 'be a fitted classifier with `cv="prefit"`', None)
        self._classifier()  # refuses what gives no probabilities
        check_is_fitted(self.estimator)
        return self.estimator

    def _codes(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """The column of each row's class."""
        order = np.argsort(self.classes_)
        place = np.clip(np.searchsorted(self.classes_[order], y), 0, order.size - 1)
        codes = order[place]
        known = self.classes_[codes] == y
        require_each("y", y, known, "hold classes that the fitted classifier knows")
        return np.asarray(codes, dtype=np.int64)

    def _require_two_heavy_classes(self, codes: NDArray[np.int64], weight: Any) -> None:
        if self.classes_.size < 2 or (weight is None and not self._is_prefit()):
            return
        heavy = np.bincount(codes, weight, self.classes_.size) > 0
        if heavy.sum() < 2:
            only = show_value(self.classes_[heavy].tolist())
            raise InputError(
                f"`y` must have weight in two classes for a map; all of it is on {only}."
            )

    def predict_proba(self, X: Any) -> Floats:
        """Recalibrated class probabilities."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if self.classes_.size == 1:
            return np.ones((len(self.estimator_.predict(X)), 1))
        probs = self._linked(_predictions(self.estimator_, X))
        if self.classes_.size > 2:
            return np.asarray(self.recalibrator_.mapped(probs))
        events = self.recalibrator_.mapped(np.clip(probs[:, 1], 0.0, 1.0))
        return np.stack([1.0 - events, events], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest recalibrated probability."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def _classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        chosen = LogisticRegression() if self.estimator is None else self.estimator
        if not (hasattr(chosen, "predict_proba") or hasattr(chosen, "decision_function")):
            kind = type(chosen).__name__
            raise invalid("estimator", "have `predict_proba` or `decision_function`", kind)
        return clone(chosen)

    def _held_out(
        self, X: Any, y: Any, codes: NDArray[np.int64], sample_weight: Any, groups: Any
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Probabilities, or scores, of rows that the classifier which gives them was not fitted to."""
        from sklearn.model_selection import check_cv
        from sklearn.utils import _safe_indexing

        k = self.classes_.size
        alone = k == 2 and not hasattr(self.estimator_, "predict_proba")
        given = np.zeros((codes.size, 1 if alone else k))
        seen = np.zeros(codes.size, dtype=bool)
        for train, test in check_cv(self._folds(codes, groups), codes, classifier=True).split(
            X, codes, groups
        ):
            if np.unique(codes[train]).size < self.classes_.size:
                continue  # its classifier would have no prediction for a class
            weight = None if sample_weight is None else sample_weight[train]
            model = _fitted(self._classifier(), _safe_indexing(X, train), y[train], weight)
            given[test] = _predictions(model, _safe_indexing(X, test))
            seen[test] = True
        if not seen.any():
            hint = (
                "Pass another `cv`, such as one that shuffles, or leave out classes that come late."
            )
            raise TooFewRows("`y` must hold rows of every class outside some fold.", hint=hint)
        return seen, given

    def _folds(self, codes: NDArray[np.int64], groups: Any) -> Any:
        """A splitter of scikit-learn, or how many folds; fewer where a class has fewer rows."""
        from sklearn.model_selection import StratifiedGroupKFold

        cv = self.cv
        if isinstance(cv, str) or (isinstance(cv, Integral) and (isinstance(cv, bool) or cv < 2)):
            raise invalid("cv", "be 2 folds or more, a splitter of scikit-learn, or prefit", cv)
        if not isinstance(cv, Integral):
            return cv
        fewest = int(np.bincount(codes).min())
        if fewest < 2:
            rarest = self.classes_[np.argmin(np.bincount(codes))]
            raise InputError(
                f"`y` must hold at least 2 rows of every class; {show_value(rarest)} has {fewest}."
            )
        cv = max(2, min(cv, fewest))
        return cv if groups is None else StratifiedGroupKFold(cv)

    def _learned(self, probs: Floats, codes: NDArray[np.int64], weight: Any) -> Any:
        k, chosen = self.classes_.size, self.recalibrator
        p = np.clip(probs[:, 1], 0.0, 1.0) if k == 2 else probs
        if isinstance(chosen, str) and chosen == CHOOSE:
            learned = choose_recalibrator(codes, p, sample_weight=weight).recalibrator
        else:
            made = make_map(chosen, k)
            if k > 2 and isinstance(chosen, str) and chosen == "adaptive":
                counts = np.bincount(codes, None if weight is None else weight > 0.0, k)
                made = StructuredScaling(from_logits=False)
                enough = counts.sum() >= made.n_parameters_of(k)
                if not (enough and counts.min() >= LEAST_OF_A_CLASS):
                    made = TemperatureScaling(from_logits=False)
            learned = made.fit(p, codes, weight)
        if k > 2:
            names = [group_text(name) for name in self.classes_.tolist()]
            learned.classes_ = names if len(set(names)) == len(names) else None
        return learned

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


def _predictions(model: Any, X: Any) -> Floats:
    """Probabilities with a column for each class, or else scores; of two classes, scores are one column."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    many = len(model.classes_)
    if scores.shape[1] != (1 if many == 2 else many):
        columns = f"`decision_function` has {scores.shape[1]} columns for {many} classes"
        raise InputError(f"`estimator` must score each class against the rest; {columns}.")
    return scores


class _ScoreLink:
    """Map from scores to probabilities: Platt's of two classes, one temperature of more."""

    def __init__(self, scores: Floats, labels: NDArray[np.int64], weight: Any = None) -> None:
        self._unit = 0.0
        if scores.shape[1] > 1:
            self._scaling = TemperatureScaling().fit(scores, labels, weight)
            return
        largest = float(np.abs(scores).max())
        self._unit = largest / WIDEST if largest > 0.0 else 1.0
        self._platt = PlattRecalibrator().fit(expit(scores[:, 0] / self._unit), labels, weight)

    def __call__(self, scores: Floats) -> Floats:
        """Probabilities, with a column for each class."""
        if not self._unit:
            return np.asarray(self._scaling.transform(scores))
        events = self._platt.transform(expit(scores[:, 0] / self._unit))
        return np.stack([1.0 - events, events], axis=1)
