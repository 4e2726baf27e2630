"""Brier score and log loss, each with the part that recalibration could remove."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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

_EXACT = 1e-4
"""Bounds that are closer than this, in proportion, are one number in all digits that are shown."""
UNLIMITED = sys.float_info.max
"""JSON has no infinity."""


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
        `value` is the least that they can have, and this the most: the largest float if a prediction may be
        certain and wrong. None where the value is theirs.
    """

    value: float
    calibration: float
    refinement: float
    skill: float
    at_most: float | None = field(default=None, repr=False)


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

    A sketch holds the mean prediction of each cell and outcome, which gives the Brier score to the width of
    a cell squared, and bounds of the log loss. -log is convex, so its mean is least where all rows of a cell
    sit at their mean, and most where they sit at its two ends: a bound that matters only where something
    came that was called nearly impossible, and is infinite where rows of the first cell may predict 0.

    The split is computed when it is first asked for: diagrams and tables of many groups show none of it.

    Examples
    --------
    >>> scores = ProperScores(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    >>> scores.brier
    Score(value=0.1875, calibration=0.0, refinement=0.1875, skill=0.25)
    >>> round(scores.log_loss.value, 4), scores.log_loss.at_most
    (0.5623, None)
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
        """Mean of -log of the probability given to what happened; of a sketch, its bounds."""
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
        least = most = self._loss_of_rows
        if least is None or most is None:
            least, most = _log_loss_of_cells(sketch, f)
        loss = _split(least, float((weights * _surprisal(rate, weights)).sum()), entropy)
        if most > least * (1.0 + _EXACT):
            loss = replace(loss, at_most=min(most, UNLIMITED))
        return brier, loss


def _split(value: float, refinement: float, of_rate: float) -> Score:
    if abs(value - refinement) < 1e-12:
        refinement = value
    return Score(value, value - refinement, refinement, 1.0 - value / of_rate)


def _log_loss_of_cells(sketch: Sketch, predictions: Floats) -> tuple[float, float]:
    """The least and the most that the rows can have: all at the mean of their cell, or at its two ends.

    One row alone sits at the mean.
    """
    weights, cells = sketch.weights, sketch.cells
    ends = sketch.scale.prediction(np.stack([cells, cells + 1], axis=1) / sketch.nodes)
    low, high = np.hsplit(np.clip(ends, 0.0, 1.0), 2)
    inside, width = np.clip(predictions, low, high), high - low
    right = np.where(width > 0.0, (inside - low) / np.maximum(width, 1e-300), 1.0)
    several = np.where(sketch.counts > 1, weights, 0.0)
    parts = (
        (predictions, weights),
        (inside, weights - several),
        (np.repeat(low, 2, axis=1), several * (1.0 - right)),
        (np.repeat(high, 2, axis=1), several * right),
    )
    least, *most = (float((part * _surprisal(_of_outcome(f), part)).sum()) for f, part in parts)
    return least / sketch.total_weight, max(least, sum(most)) / sketch.total_weight


def _of_outcome(f: Floats) -> Floats:
    """Probability given to each outcome, from that of the event [m, 2]."""
    return np.stack([1.0 - f[:, 0], f[:, 1]], axis=1)


def _surprisal(chance: Floats, weights: Floats) -> Floats:
    """-log of a probability; 0 where nothing has weight."""
    with np.errstate(divide="ignore"):
        return np.where(weights > 0.0, -np.log(chance), 0.0)
