"""Brier score and log loss, each with the part that recalibration could remove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.sketch import Sketch
from calibrant.measures._pooling import pooled

__all__ = ["Score", "brier_score", "log_loss"]

Floats = NDArray[np.float64]
Loss = Callable[[Floats, int], Floats]


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
    """

    value: float
    calibration: float
    refinement: float
    skill: float


def brier_score(sketch: Sketch) -> Score:
    """Mean of (f - y)², to the width of a cell squared.

    Examples
    --------
    >>> brier_score(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    Score(value=0.1875, calibration=0.0, refinement=0.1875, skill=0.25)
    """
    return _score(sketch, lambda f, label: (f - label) ** 2)


def log_loss(sketch: Sketch) -> Score:
    """Mean of -log of the probability given to what happened.

    Examples
    --------
    >>> score = log_loss(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    >>> round(score.value, 4), round(score.calibration, 4)
    (0.5623, 0.0)
    """

    def loss(f: Floats, label: int) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(f if label else 1.0 - f))

    return _score(sketch, loss)


def _score(sketch: Sketch, loss: Loss) -> Score:
    """Loss of the predictions, of their isotonic regression, and of the event rate.

    Dimitriadis, Gneiting and Jordan (2021) show that the isotonic part is never negative, for any
    proper score.
    """
    weights = sketch.weights / sketch.total_weight
    per_cell = weights.sum(axis=1)
    used = per_cell > 0
    rate = weights[used, 1] / per_cell[used]
    regression = np.clip(pooled(rate, per_cell[used]), 0.0, 1.0)
    both = np.repeat(regression[:, None], 2, axis=1)
    base = np.full_like(both, weights[:, 1].sum())
    value, refinement, uncertainty = (
        _mean_loss(loss, f, weights[used]) for f in (_predictions(sketch)[used], both, base)
    )
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
