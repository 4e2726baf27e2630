"""What a map does to rows that it was not learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence, require_count
from calibrant.data.points import Points
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.inference.assess import read_clustered
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.class_effect import (
    ClassEffect,
    cross_fitted_effect_on_classes,
    effect_on_classes,
)
from calibrant.recalibration.class_map import MapOfClasses
from calibrant.recalibration.cross_fitting import cross_fitted, dealt, rows_of
from calibrant.recalibration.cures import TO_LEARN, only_cures, refuse_forms
from calibrant.recalibration.gain import Gain, interval_of_gain
from calibrant.recalibration.learned_map import Recalibrator, require_map
from calibrant.recalibration.logistic import logarithms
from calibrant.recalibration.training import require_one_event

__all__ = ["Effect", "Scores", "cross_fitted_effect", "effect_of", "log_losses"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Scores(Record):
    """Log loss, Brier score, SmoothECE and area under the ROC curve of the same rows."""

    log_loss: float
    brier: float
    smooth_ece: float
    auc: float


@dataclass(frozen=True, repr=False)
class Effect(Gain):
    """Scores before and after a map, and what it gains.

    Attributes
    ----------
    before, after : Scores
        Scores of the predictions as they are, and mapped.
    gain : float
        By how much the mean log loss falls.
    low, high : float
        The interval of the gain.
    confidence : float
        Confidence of the interval.
    n : int
        Rows that were judged.
    """

    before: Scores
    after: Scores

    @property
    def auc_cost(self) -> float:
        """How much of the area under the ROC curve the map takes away, by ties or a changed order."""
        return self.before.auc - self.after.auc

    def __repr__(self) -> str:
        return self._said({"smooth_ece": "SmoothECE", "auc": "AUC"})


@overload
def effect_of(recalibrator: Recalibrator, y_true: Any, y_prob: Any, **options: Any) -> Effect: ...
@overload
def effect_of(
    recalibrator: MapOfClasses, y_true: Any, y_prob: Any, **options: Any
) -> ClassEffect: ...
def effect_of(
    recalibrator: Any,
    y_true: Any,
    y_prob: Any,
    *,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    **options: Any,
) -> Effect | ClassEffect:
    """Scores before and after a map, on rows that it was not learned from, with an interval for the gain.

    Parameters
    ----------
    recalibrator : Recalibrator or map of classes
        One that is fitted, to other rows than these.
    y_true, y_prob, **options
        As for `assess`. For a map of classes, `y_prob` is what the map takes (class probabilities, or
        logits) and the options are `sample_weight` and `classes`.
    cluster : array, optional
        Which rows belong together; the interval then counts clusters.
    confidence : float
        Confidence of the interval of the gain.

    Returns
    -------
    Effect or ClassEffect
        Of a map of classes, `ClassEffect`: with accuracy in place of AUC, and SmoothECE of the confidence.

    Notes
    -----
    The interval is Student's for the mean of the change of every row's loss, or of every cluster's.
    Predictions of 0 and 1 count as 6e-8 away from them.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> platt = PlattRecalibrator().fit(p[:2000], y[:2000])
    >>> effect_of(platt, y[2000:], p[2000:]).verdict
    'better'
    """
    require_confidence(confidence)
    if isinstance(recalibrator, MapOfClasses):
        return effect_on_classes(recalibrator, y_true, y_prob, cluster, confidence, options)
    require_map(recalibrator, "recalibrator")
    if options.get("multiclass") is None:
        require_one_event(y_prob)
    pairs, codes = read_clustered(y_true, y_prob, cluster, **options)
    unit = np.arange(pairs.n) if codes is None else codes[0]
    return effect_on(pairs, recalibrator.transform(pairs.p), unit, confidence)


@overload
def cross_fitted_effect(
    recalibrator: Recalibrator, y_true: Any, y_prob: Any = None, **options: Any
) -> Effect: ...
@overload
def cross_fitted_effect(
    recalibrator: MapOfClasses, y_true: Any, y_prob: Any = None, **options: Any
) -> ClassEffect: ...
def cross_fitted_effect(
    recalibrator: Any,
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    cluster: Any = None,
    folds: int = 5,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    **options: Any,
) -> Effect | ClassEffect:
    """Scores before and after a map, each row judged by a map that was learned from the others.

    For rows that are too few to set some aside: all of them learn, and all of them judge.

    Parameters
    ----------
    recalibrator : Recalibrator or map of classes
        The kind of map. What it has learned before is not used.
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch that counts rows, and no `y_prob`.
    y_prob, sample_weight, **options
        As for `Recalibrator.fit`.
    cluster : array, optional
        Which rows belong together; they are held out together, and the interval counts clusters.
    folds : int
        Every row is judged by the map of the other folds.
    confidence : float
        Confidence of the interval of the gain.
    seed : int
        Seed of the folds.

    Notes
    -----
    A map of all rows is a little better than those that are judged here, which have seen fewer. The maps
    of two folds do not rank rows alike: AUC, before and after, is that of rows within a fold.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> cross_fitted_effect(PlattRecalibrator(), rng.random(1000) < p**2, p).verdict
    'better'
    """
    require_count("folds", folds, least=2)
    require_confidence(confidence)
    if isinstance(recalibrator, MapOfClasses):
        settings = {**options, "sample_weight": sample_weight}
        return cross_fitted_effect_on_classes(
            recalibrator, y_true, y_prob, cluster, folds, confidence, seed, settings
        )
    require_map(recalibrator, "recalibrator")
    require_one_event(y_prob)
    refuse_forms(options)
    if isinstance(y_true, Sketch):
        y_true, y_prob = rows_of(y_true, y_prob, sample_weight, cluster)
    with only_cures(TO_LEARN):
        pairs, codes = read_clustered(
            y_true, y_prob, cluster, sample_weight=sample_weight, **options
        )
    unit = np.arange(pairs.n) if codes is None else codes[0]
    fold = dealt(pairs.y, unit, "rows" if codes is None else "clusters", folds, seed)
    mapped = cross_fitted(recalibrator, pairs, fold)
    return effect_on(pairs, mapped, unit, confidence, fold=fold)


def effect_on(
    pairs: Rows,
    mapped: Floats,
    unit: Integers,
    confidence: float,
    *,
    fold: Integers | None = None,
) -> Effect:
    """Scores of the predictions of these rows and of what they became, and the gain over units of rows.

    Rows of a fold were mapped by one map, and only they are ranked among each other.
    """
    weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
    saved = log_losses(pairs.y, pairs.p) - log_losses(pairs.y, mapped)
    gain, low, high = interval_of_gain(saved, weight, unit, confidence)
    return Effect(
        _scores(pairs, pairs.p, fold),
        _scores(pairs, mapped, fold),
        gain,
        low,
        high,
        float(confidence),
        pairs.n,
    )


def log_losses(y: Floats, p: Floats) -> Floats:
    """-log of the probability of what happened, with 0 and 1 as far away as float32 can tell."""
    low, high = logarithms(p)
    return np.asarray(-(y * low + (1.0 - y) * high))


def _scores(pairs: Rows, p: Floats, fold: Integers | None) -> Scores:
    weight = np.ones(p.size) if pairs.weight is None else pairs.weight
    rows = Rows(p, pairs.y, pairs.weight, soft=True)
    mean = float(np.average(log_losses(pairs.y, p), weights=weight))
    brier = float(np.average((p - pairs.y) ** 2, weights=weight))
    folds = [rows] if fold is None else [rows.select(fold == k) for k in range(fold.max() + 1)]
    return Scores(mean, brier, smooth_ece(rows), _auc([Points.of(one) for one in folds]))


def _auc(folds: list[Points]) -> float:
    """The chance that an event has the higher prediction than another row of its fold; a tie counts half."""
    won = total = 0.0
    for atoms in folds:
        others, events = atoms.mass.T
        won += float(events @ (np.cumsum(others) - 0.5 * others))
        total += float(others.sum() * events.sum())
    return won / total if total else float("nan")
