"""Brier score and log loss, each with the part that recalibration could remove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.classes import as_class_probabilities
from calibrant.data.fill import mean_log_loss
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.inference.residuals import cell_predictions
from calibrant.measures._chains import pooled

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class ClassScores:
    """Mean losses of the whole distribution over the classes, and the accuracy of the likeliest one.

    Attributes
    ----------
    log_loss : float
        Mean of -log p of the true class. As in scikit-learn, p is at least the spacing of floats at 1. Not
        a number where sketches were read, which hold no distributions; `brier` too.
    brier : float
        Mean squared distance of the distribution from the outcome, summed over the classes: up to 2.
    accuracy : float
        Share of the rows whose likeliest class is the true one.
    """

    log_loss: float
    brier: float
    accuracy: float

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        from_logits: bool = False,
        classes: Sequence[Any] | None = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        **_: Any,
    ) -> ClassScores:
        """Scores of class probabilities."""
        matrix = as_class_probabilities(
            y_true,
            y_prob,
            sample_weight=sample_weight,
            from_logits=from_logits,
            classes=classes,
            on_invalid=on_invalid,
        ).valid()
        p = matrix.probs[np.arange(matrix.n), matrix.labels].astype(np.float64)
        squares = np.einsum("ij,ij->i", matrix.probs, matrix.probs, dtype=np.float64)
        top, _predicted = matrix.top()
        losses = [
            -np.log(np.clip(p, np.finfo(matrix.probs.dtype).eps, 1.0)),
            squares - 2.0 * p + 1.0,
        ]
        log_loss, brier = np.average(losses, axis=1, weights=top.weight).tolist()
        return cls(log_loss, brier, top.base_rate)


class ProperScores:
    """Brier score and log loss of a sample, each split by one isotonic regression.

    The isotonic part is never negative, for any proper score (Dimitriadis, Gneiting and Jordan 2021).

    Rows of a sketch count as if they sat at the mean of their cell and outcome. That gives the Brier score to
    the width of a cell squared. Of the log loss it is the least that they can have, as -log is convex: below
    that of the rows where something came that was called nearly impossible.

    The split is computed when it is first asked for: diagrams and tables of many groups show none of it.

    Examples
    --------
    >>> scores = ProperScores(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    >>> scores.brier
    Score(value=0.1875, calibration=0.0, refinement=0.1875, skill=0.25)
    >>> round(scores.log_loss.value, 4)
    0.5623
    """

    def __init__(self, sketch: Sketch, pairs: Rows | None = None) -> None:
        self._sketch = sketch
        # At once, as the arrays of rows may change later.
        self._loss_of_rows = None if pairs is None else mean_log_loss(pairs)

    @property
    def brier(self) -> Score:
        """Mean of (f - y)²."""
        return self._both[0]

    @property
    def log_loss(self) -> Score:
        """Mean of -log of the probability given to what happened."""
        return self._both[1]

    @cached_property
    def _both(self) -> tuple[Score, Score]:
        sketch = self._sketch
        f = cell_predictions(sketch, by_label=True)
        whole = sketch.weights / sketch.total_weight
        used = over_outcomes(whole) > 0
        weights, mass = whole[used], over_outcomes(whole[used])
        regression = pooled(weights[:, 1] / mass, mass)
        rate = np.stack([1.0 - regression, regression], axis=1)
        negative, positive = weights.sum(axis=0).tolist()
        uncertain = entropy = math.nan
        if negative > 0.0 and positive > 0.0:  # rounding's remains are no uncertainty
            uncertain = negative * positive
            entropy = -positive * math.log(positive) - negative * math.log(negative)
        squares = float((weights * (f[used] - np.arange(2.0)) ** 2).sum())
        brier = _split(squares, float((weights * (1.0 - rate) ** 2).sum()), uncertain)
        mean_loss = self._loss_of_rows
        if mean_loss is None:
            given = np.stack([1.0 - f[used, 0], f[used, 1]], axis=1)
            mean_loss = float((weights * _surprisal(given, weights)).sum())
        loss = _split(mean_loss, float((weights * _surprisal(rate, weights)).sum()), entropy)
        return brier, loss


def _split(value: float, refinement: float, of_rate: float) -> Score:
    if abs(value - refinement) < 1e-12:
        refinement = value
    return Score(value, value - refinement, refinement, 1.0 - value / of_rate)


def _surprisal(chance: Floats, weights: Floats) -> Floats:
    """-log of a probability; 0 where nothing has weight."""
    with np.errstate(divide="ignore"):
        return np.where(weights > 0.0, -np.log(chance), 0.0)
