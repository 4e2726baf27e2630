"""Brier score and log loss, each with the part that recalibration could remove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import fsum

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.log_loss_sums import surprising_cells
from calibrant.data.pairs import Pairs
from calibrant.data.sketch import Sketch
from calibrant.measures._pooling import pooled

__all__ = ["Score", "brier_score", "log_loss", "scores_of"]

Floats = NDArray[np.float64]
Loss = Callable[[Floats, int], Floats]

_EXACT = 1e-4
"""Bounds that are closer than this, in proportion, are one number in all digits that are shown."""


@dataclass(frozen=True)
class Score:
    """A mean loss, split as value = calibration + refinement.

    Attributes
    ----------
    value : float
        Mean loss of the predictions. Infinite for the log loss of a certain prediction that failed.
    calibration : float
        What the best increasing map of the predictions would save (CORP's miscalibration, in sample).
    refinement : float
        What is left after that map.
    skill : float
        1 - value / (loss of always predicting the event rate); NaN where only one outcome occurs.
    at_most : float or None
        Where the rows themselves are not known, as for the log loss of a sketch that was read from a file,
        `value` is the least that they can have, and this the most. None where the value is theirs.
    """

    value: float
    calibration: float
    refinement: float
    skill: float
    at_most: float | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Cells with weight: weights by label, as shares, predictions of both labels, isotonic regression."""

    weights: Floats
    predictions: Floats
    regression: Floats

    @classmethod
    def of(cls, sketch: Sketch) -> _Fit:
        weights, predictions = sketch.weights / sketch.total_weight, _predictions(sketch)
        per_cell = over_outcomes(weights)
        if not per_cell.all():
            used = per_cell > 0
            weights, predictions, per_cell = weights[used], predictions[used], per_cell[used]
        regression = np.clip(pooled(weights[:, 1] / per_cell, per_cell), 0.0, 1.0)
        return cls(weights, predictions, np.repeat(regression[:, None], 2, axis=1))


def scores_of(sketch: Sketch, pairs: Pairs | None = None) -> tuple[Score, Score]:
    """Brier score and log loss: `brier_score` and `log_loss`, with one isotonic regression for both."""
    fit = _Fit.of(sketch)
    return _score(fit, _squared), _log_loss(sketch, pairs, fit)


def brier_score(sketch: Sketch) -> Score:
    """Mean of (f - y)², to the width of a cell squared.

    Examples
    --------
    >>> brier_score(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    Score(value=0.1875, calibration=0.0, refinement=0.1875, skill=0.25)
    """
    return _score(_Fit.of(sketch), _squared)


def log_loss(sketch: Sketch, pairs: Pairs | None = None) -> Score:
    """Mean of -log of the probability given to what happened: that of the rows, or bounds from a sketch.

    A sketch holds the mean prediction of each cell and outcome. -log is convex, so the mean of -log p is
    least where all rows of a cell sit at their mean, and most where they sit at its two ends: a bound
    that matters only where something came that was called nearly impossible, and is infinite where rows
    of the first cell may predict 0. A sketch whose rows were seen by calibrant keeps the sums of these
    (see `Columns.surprises`); its value is then that of the rows to a few millionths.

    Examples
    --------
    >>> score = log_loss(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    >>> round(score.value, 4), round(score.calibration, 4), score.at_most
    (0.5623, 0.0, None)
    """
    return _log_loss(sketch, pairs, _Fit.of(sketch))


def _log_loss(sketch: Sketch, pairs: Pairs | None, fit: _Fit) -> Score:
    if pairs is not None:
        return _score(fit, _log, _log_loss_of_rows(pairs))
    least, most = _log_loss_of_cells(sketch)
    score = _score(fit, _log, least)
    return score if most <= least * (1.0 + _EXACT) else replace(score, at_most=most)


def _squared(f: Floats, label: int) -> Floats:
    return np.asarray((f - label) ** 2)


def _log(f: Floats, label: int) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(f) if label else -np.log1p(-f))


def _log_loss_of_rows(pairs: Pairs) -> float:
    total, mass = [], []
    for _, p, y, weight in pairs.blocks():
        p, y = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
        share = np.ones(p.size) if weight is None else weight
        mass.append(float(share.sum()))
        for label, of_label in ((0, share * (1.0 - y)), (1, share * y)):
            some = of_label > 0.0
            total.append(float(of_label[some] @ _log(p[some], label)))
    return fsum(total) / fsum(mass)


def _log_loss_of_cells(sketch: Sketch) -> tuple[float, float]:
    """The least and the most that the rows can have: all at the mean of their cell, or at its two ends."""
    ends = [
        np.clip(sketch.scale.prediction((sketch.cells + k) / sketch.nodes), 0, 1) for k in (0, 1)
    ]
    low, high = (np.repeat(np.asarray(end)[:, None], 2, axis=1) for end in ends)
    f = _predictions(sketch)
    inside = np.clip(f, low, high)
    width = high - low
    at_high = np.divide(inside - low, width, out=np.ones_like(f), where=width > 0)
    alone = sketch.counts <= 1
    surprises = sketch.columns.surprises
    known = surprising_cells(sketch.cells, sketch.nodes) if surprises is not None else None
    least = most = 0.0 if surprises is None else float(surprises.sum())
    for label in range(2):
        weight, share = sketch.weights[:, label], at_high[:, label]
        if known is not None:
            weight = np.where(known[label], 0.0, weight)
        some = weight > 0.0
        least += float(weight[some] @ _log(f[some, label], label))
        for end, part in ((low, 1.0 - share), (high, share)):
            place = np.where(alone[:, label], inside[:, label], end[:, label])
            some = weight * part > 0.0
            most += float((weight * part)[some] @ _log(place[some], label))
    return least / sketch.total_weight, max(least, most) / sketch.total_weight


def _score(fit: _Fit, loss: Loss, value: float | None = None) -> Score:
    """Loss of the predictions, unless it is known, of their isotonic regression, and of the event rate.

    Dimitriadis, Gneiting and Jordan (2021) show that the isotonic part is never negative, for any
    proper score.
    """
    weights = fit.weights
    base = np.full_like(fit.regression, weights[:, 1].sum())
    refinement, uncertainty = (_mean_loss(loss, f, weights) for f in (fit.regression, base))
    if value is None:
        value = _mean_loss(loss, fit.predictions, weights)
    calibration = value - refinement
    if abs(calibration) < 1e-12:
        calibration, refinement = 0.0, value
    both_occur = bool(weights.any(axis=0).all())  # what rounding leaves is no uncertainty
    skill = 1.0 - value / uncertainty if both_occur else float("nan")
    return Score(value, calibration, refinement, skill)


def _mean_loss(loss: Loss, f: Floats, weights: Floats) -> float:
    total = 0.0
    for label in range(2):
        seen = weights[:, label] > 0
        total += float(np.sum(weights[seen, label] * loss(f[seen, label], label)))
    return total


def _predictions(sketch: Sketch) -> Floats:
    """Mean prediction of the rows of each (cell, label)."""
    weights, moments = sketch.weights, sketch.weighted_offsets
    offset = np.divide(moments, weights, out=np.zeros_like(weights), where=weights > 0)
    position = sketch.cells[:, None] / sketch.nodes + offset * 2.0**-FRACTION_BITS
    return np.clip(sketch.scale.prediction(position), 0.0, 1.0)
