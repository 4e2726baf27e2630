"""A scikit-learn classifier whose probabilities are recalibrated by cross-fitting."""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.errors import Code, InputError, Option, TypeName, Where
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.learned_map import LearnedMap, Recalibrator
from calibrant.recalibration.multiclass import OneVsRestRecalibrator
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    IdentityRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.recalibration.venn_abers import VennAbersRecalibrator
from calibrant.repair.choice import choose_recalibrator
from calibrant.repair.randomized import RandomizedRecalibrator

__all__ = ["RecalibratedClassifier"]

Floats = NDArray[np.float64]

require("sklearn.base", caller="RecalibratedClassifier")

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone  # noqa: E402

CHOOSE, PREFIT = "choose", "prefit"
_MAPS: dict[str, type[Recalibrator]] = {
    made.kind: made
    for made in (
        AdaptiveRecalibrator,
        BetaRecalibrator,
        IdentityRecalibrator,
        IsotonicRecalibrator,
        OffsetRecalibrator,
        PlattRecalibrator,
        RandomizedRecalibrator,
        SmoothRecalibrator,
        TemperatureRecalibrator,
        VennAbersRecalibrator,
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
    recalibrator : str, Recalibrator or map of class probabilities, default "adaptive"
        "adaptive", "smooth" (the paper's map), "platt", "temperature", "beta", "isotonic", "venn-abers",
        "offset", "randomized", "none", a map of your own, or "choose" for `choose_recalibrator`. With more
        than two classes, "adaptive" is structured scaling of all classes together, "temperature" is one
        temperature for all, and any other map of two classes takes each class against the rest.
    cv : int, splitter or "prefit", default 5
        The folds; fewer where a class has fewer rows. Rows that belong together stay together where `fit`
        is given their `groups`. Where time orders the rows, pass `TimeSeriesSplit()`: each fold is then
        predicted from earlier rows alone. With "prefit", or a `FrozenEstimator`, the classifier is
        already fitted, to other rows than these, and stays as it is.

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
        if self.classes_.size == 1:
            self.recalibrator_ = None
            return self
        if fitted:
            seen = np.ones(codes.size, dtype=bool)
            probs = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        else:
            seen, probs = self._held_out(X, y, codes, sample_weight, groups)
        weight = None if sample_weight is None else sample_weight[seen]
        self.recalibrator_ = self._learned(probs[seen], codes[seen], weight)
        return self

    def _is_prefit(self) -> bool:
        from sklearn.frozen import FrozenEstimator

        return isinstance(self.estimator, FrozenEstimator) or self._says_prefit()

    def _says_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == PREFIT

    def _prefit(self) -> Any:
        from sklearn.utils.validation import check_is_fitted

        if self.estimator is None:
            raise InputError(
                "must be a fitted classifier with {prefit}",
                argument="estimator",
                seen=None,
                cure="Pass the classifier that was fitted.",
                prefit=Option("cv", PREFIT),
            )
        self._classifier()  # refuses what gives no probabilities
        check_is_fitted(self.estimator)
        return self.estimator

    def _codes(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """The column of each row's class."""
        order = np.argsort(self.classes_)
        place = np.clip(np.searchsorted(self.classes_[order], y), 0, order.size - 1)
        codes = order[place]
        unknown = np.flatnonzero(self.classes_[codes] != y)
        if unknown.size:
            raise InputError(
                "must hold classes that the fitted classifier knows",
                argument="y",
                seen=y[unknown[0]],
                where=Where(row=int(unknown[0])),
                cure="Leave such rows out, or fit the classifier on them.",
            )
        return np.asarray(codes, dtype=np.int64)

    def _require_two_heavy_classes(self, codes: NDArray[np.int64], weight: Any) -> None:
        if self.classes_.size < 2 or (weight is None and not self._is_prefit()):
            return
        heavy = np.bincount(codes, weight, self.classes_.size) > 0
        if heavy.sum() < 2:
            raise InputError(
                "must have rows of positive weight in two classes for a map",
                argument="y",
                seen=self.classes_[heavy].tolist(),
                saying="all the weight is on {}",
                cure="Give weight to rows of another class.",
            )

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
                "must have {method}, as a map of probabilities needs probabilities",
                argument="estimator",
                seen=TypeName.of(chosen),
                saying="{} has none",
                cure="Pass another classifier, such as {example}.",
                method=Code("predict_proba"),
                example=Code("LogisticRegression()"),
            )
        return clone(chosen)

    def _held_out(
        self, X: Any, y: Any, codes: NDArray[np.int64], sample_weight: Any, groups: Any
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Probabilities for rows that the classifier which gives them was not fitted to."""
        from sklearn.model_selection import StratifiedGroupKFold, check_cv
        from sklearn.utils import _safe_indexing

        cv = self.cv
        if isinstance(cv, Integral):
            if isinstance(cv, bool) or cv < 2:
                raise InputError(
                    "must be 2 folds or more, a splitter of scikit-learn, or prefit",
                    argument="cv",
                    seen=cv,
                    cure="Leave it out for the default.",
                )
            fewest = int(np.bincount(codes).min())
            cv = max(2, min(cv, fewest))
            if fewest < 2:
                raise InputError(
                    "must hold at least 2 rows of every class for cross-fitting",
                    argument="y",
                    seen=self.classes_[np.argmin(np.bincount(codes))],
                    saying="class {} has {fewest}",
                    fewest=fewest,
                    cure="Pass more rows of that class, or fewer classes.",
                )
            if groups is not None:
                cv = StratifiedGroupKFold(cv)
        probs = np.zeros((codes.size, self.classes_.size))
        seen = np.zeros(codes.size, dtype=bool)
        for train, test in check_cv(cv, codes, classifier=True).split(X, codes, groups):
            weight = None if sample_weight is None else sample_weight[train]
            model = _fitted(self._classifier(), _safe_indexing(X, train), y[train], weight)
            columns = np.searchsorted(self.classes_, model.classes_)
            probs[np.ix_(test, columns)] = model.predict_proba(_safe_indexing(X, test))
            seen[test] = True
        return seen, probs

    def _learned(self, probs: Floats, codes: NDArray[np.int64], weight: Any) -> Any:
        if self.classes_.size > 2:
            chosen = self._map_of_classes(codes.size)
            if chosen == CHOOSE:
                return choose_recalibrator(codes, probs, sample_weight=weight).recalibrator
            return chosen.fit(probs, codes, weight)
        p = np.clip(probs[:, 1], 0.0, 1.0)
        if self.recalibrator == CHOOSE:
            return choose_recalibrator(codes, p, sample_weight=weight).recalibrator
        return self._map().fit(p, codes, weight)

    def _map_of_classes(self, rows: int) -> Any:
        """A map of all classes: of its own kind, or of each class against the rest."""
        chosen = self.recalibrator
        if isinstance(chosen, LearnedMap) and not isinstance(chosen, Recalibrator):
            if getattr(chosen, "from_logits", False):
                raise InputError(
                    "must take class probabilities here",
                    argument="recalibrator",
                    seen=chosen,
                    cure="Make it with {option}.",
                    option=Option("from_logits", False),
                )
            return deepcopy(chosen)
        if isinstance(chosen, str) and chosen == CHOOSE:
            return CHOOSE
        named = chosen if isinstance(chosen, str) else ""
        if named == TemperatureRecalibrator.kind or (
            named == AdaptiveRecalibrator.kind and rows < 2 * self.classes_.size
        ):
            return TemperatureScaling(from_logits=False)
        if named == AdaptiveRecalibrator.kind:
            return StructuredScaling(from_logits=False)
        return OneVsRestRecalibrator(self._map())

    def _map(self) -> Recalibrator:
        if isinstance(self.recalibrator, Recalibrator):
            return deepcopy(self.recalibrator)
        if not isinstance(self.recalibrator, str) or self.recalibrator not in _MAPS:
            raise InputError(
                "must be one of {known}, or a map",
                argument="recalibrator",
                seen=self.recalibrator,
                known=", ".join([*sorted(_MAPS), CHOOSE]),
                cure="Pass one of these names, or a map.",
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
