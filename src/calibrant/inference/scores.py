"""Brier score and log loss, each with the part that recalibration could remove."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.fill import mean_log_loss
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.inference.residuals import cell_positions
from calibrant.measures._chains import pooled

__all__ = ["UNLIMITED", "Score", "brier_score", "log_loss", "scores_of"]

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


@dataclass(frozen=True, eq=False)
class _Losses:
    """Mean losses, squared and logarithmic: of an isotonic regression and of the event rate.

    `squares` is that of the predictions.
    """

    squares: float
    regression: tuple[float, float]
    rate: tuple[float, float]

    @classmethod
    def of(cls, sketch: Sketch, predictions: Floats) -> _Losses:
        weights = sketch.weights / sketch.total_weight
        per_cell = over_outcomes(weights)
        if not per_cell.all():
            used = per_cell > 0
            weights, predictions, per_cell = weights[used], predictions[used], per_cell[used]
        regression = pooled(weights[:, 1] / per_cell, per_cell)
        squares = float((weights * (predictions - np.arange(2.0)) ** 2).sum())
        rate = np.stack([1.0 - regression, regression], axis=1)
        of_regression = (
            float((weights * (1.0 - rate) ** 2).sum()),
            float((weights * _surprisal(rate, weights)).sum()),
        )
        negative, positive = float(weights[:, 0].sum()), float(weights[:, 1].sum())
        if not (negative > 0.0 and positive > 0.0):  # what rounding leaves is no uncertainty
            return cls(squares, of_regression, (math.nan, math.nan))
        uncertain = -positive * math.log(positive) - negative * math.log(negative)
        of_rate = negative * positive**2 + positive * (1.0 - positive) ** 2, uncertain
        return cls(squares, of_regression, of_rate)

    def brier(self) -> Score:
        """Brier score."""
        return self.score(0, self.squares)

    def score(self, kind: int, value: float) -> Score:
        """Score of the squares, 0, or the logarithms, 1, with this loss of the predictions.

        Dimitriadis, Gneiting and Jordan (2021) show that the isotonic part is never negative, for any
        proper score.
        """
        refinement = self.regression[kind]
        calibration = value - refinement
        if abs(calibration) < 1e-12:
            calibration, refinement = 0.0, value
        return Score(value, calibration, refinement, 1.0 - value / self.rate[kind])


def scores_of(sketch: Sketch, pairs: Rows | None = None) -> tuple[Score, Score]:
    """Brier score and log loss: `brier_score` and `log_loss`, with one isotonic regression for both."""
    predictions = _predictions(sketch)
    losses = _Losses.of(sketch, predictions)
    return losses.brier(), _log_loss(sketch, pairs, losses, predictions)


def brier_score(sketch: Sketch) -> Score:
    """Mean of (f - y)², to the width of a cell squared.

    Examples
    --------
    >>> brier_score(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    Score(value=0.1875, calibration=0.0, refinement=0.1875, skill=0.25)
    """
    return _Losses.of(sketch, _predictions(sketch)).brier()


def log_loss(sketch: Sketch, pairs: Rows | None = None) -> Score:
    """Mean of -log of the probability given to what happened: that of the rows, or bounds from a sketch.

    A sketch holds the mean prediction of each cell and outcome. -log is convex, so the mean of -log p is
    least where all rows of a cell sit at their mean, and most where they sit at its two ends: a bound
    that matters only where something came that was called nearly impossible, and is infinite where rows
    of the first cell may predict 0.

    Examples
    --------
    >>> score = log_loss(Sketch.from_counts([0.25, 0.75], [4, 4], [1, 3]))
    >>> round(score.value, 4), round(score.calibration, 4), score.at_most
    (0.5623, 0.0, None)
    """
    predictions = _predictions(sketch)
    return _log_loss(sketch, pairs, _Losses.of(sketch, predictions), predictions)


def _log_loss(sketch: Sketch, pairs: Rows | None, losses: _Losses, predictions: Floats) -> Score:
    if pairs is not None:
        return losses.score(1, mean_log_loss(pairs))
    least, most = _log_loss_of_cells(sketch, predictions)
    score = losses.score(1, least)
    return score if most <= least * (1.0 + _EXACT) else replace(score, at_most=min(most, UNLIMITED))


def _log_loss_of_cells(sketch: Sketch, predictions: Floats) -> tuple[float, float]:
    """The least and the most that the rows can have: all at the mean of their cell, or at its two ends."""
    cells = sketch.cells
    ends = sketch.scale.prediction(np.stack([cells, cells + 1], axis=1) / sketch.nodes)
    ends = np.clip(ends, 0.0, 1.0)
    weights = sketch.weights
    inside = np.clip(predictions, ends[:, :1], ends[:, 1:])
    width = np.maximum(ends[:, 1:] - ends[:, :1], 1e-300)
    right = np.where(ends[:, 1:] > ends[:, :1], (inside - ends[:, :1]) / width, 1.0)
    parts = ((predictions, weights), *_ends_of_cells(weights, sketch.counts, inside, right, ends))
    losses = [float((part * _surprisal(_of_outcome(f), part)).sum()) for f, part in parts]
    least, most = losses[0], sum(losses[1:])
    return least / sketch.total_weight, max(least, most) / sketch.total_weight


def _ends_of_cells(
    weights: Floats, counts: NDArray[np.int64], inside: Floats, right: Floats, ends: Floats
) -> tuple[tuple[Floats, Floats], ...]:
    """Predictions and weights of rows at the ends of their cells; one row alone sits at the mean."""
    alone = counts <= 1
    several = np.where(alone, 0.0, weights)
    low, high = (np.repeat(ends[:, k : k + 1], 2, axis=1) for k in (0, 1))
    return (
        (inside, np.where(alone, weights, 0.0)),
        (low, several * (1.0 - right)),
        (high, several * right),
    )


def _of_outcome(f: Floats) -> Floats:
    """Probability given to each outcome, from that of the event [m, 2]."""
    return np.stack([1.0 - f[:, 0], f[:, 1]], axis=1)


def _surprisal(chance: Floats, weights: Floats) -> Floats:
    """-log of a probability; 0 where nothing has weight."""
    with np.errstate(divide="ignore"):
        return np.where(weights > 0.0, -np.log(chance), 0.0)


def _predictions(sketch: Sketch) -> Floats:
    """Mean prediction of the rows of each (cell, label)."""
    return np.clip(sketch.scale.prediction(cell_positions(sketch, by_label=True)), 0.0, 1.0)
