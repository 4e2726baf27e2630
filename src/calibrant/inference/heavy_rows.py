"""Rows that weigh so much that each draws an outcome of its own, were predictions calibrated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.inference.resampling import cell_predictions

__all__ = ["HeavyRows"]

Floats = NDArray[np.float64]

_FEWEST = 200
"""So many rows like it would make up all of the variance: no more can be as heavy."""
_ALONE = 1.1
"""With up to so many effective rows, a cell is one heavy row and next to nothing else."""


class HeavyRows(NamedTuple):
    """Rows that are as good as alone in their cell of a sketch, and each much of the variance.

    What a neighbourhood of rows of unlike weight adds up to has steps as large as its heaviest row: the sum
    of as many rows of one weight, with the same variance, would lie beside them.

    Attributes
    ----------
    cell : int64[k]
        Where in the sketch.
    prediction, share : float64[k]
        Of each row, the latter of the weight of all.
    """

    cell: NDArray[np.int64]
    prediction: Floats
    share: Floats

    @classmethod
    def of(cls, sketch: Sketch) -> HeavyRows:
        """Those of a sketch whose weights do not depend on the outcome."""
        weight, squared = (over_outcomes(each) for each in (sketch.weights, sketch.squared_weights))
        f = cell_predictions(sketch).clip(0.0, 1.0)
        variance = squared * f * (1.0 - f)
        heavy = (_FEWEST * variance > variance.sum()) & (weight**2 <= _ALONE * squared)
        return cls(sketch.cells[heavy], f[heavy], np.sqrt(squared[heavy]) / sketch.total_weight)

    def shares_of_others(self, shares: Floats) -> Floats:
        """What is left without these rows of the shares of cells [m, 3] (see `Cells`) in which they lie."""
        weight, one = shares[:, 0], shares[:, 1]
        left = weight - np.bincount(self.cell, self.share, weight.size)
        squares = weight * one - np.bincount(self.cell, self.share**2, weight.size)
        known = (left > 1e-9 * weight) & (squares > 0.0)
        one = np.divide(squares, left, out=one.copy(), where=known)
        return np.stack([np.where(known, left, 0.0), one, one], axis=1)

    def residuals(self, rng: np.random.Generator, draws: int) -> Floats:
        """Their part of the mean of f - y in each draw [draws, k], with y ~ Bernoulli(f)."""
        happened = rng.random((draws, self.prediction.size)) < self.prediction
        return np.asarray(self.share * (self.prediction - happened))
