"""Histogram binning: the observed frequency of each bin."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from calibrant._arguments import require_choice, require_count
from calibrant.data.cell_sums import over_outcomes
from calibrant.recalibration.learned_map import (
    Floats,
    Parts,
    Recalibrator,
    State,
    Training,
    register,
)


@register("histogram")
class HistogramRecalibrator(Recalibrator):
    """Histogram binning: every prediction becomes the observed frequency of its bin.

    Parameters
    ----------
    n_bins : int
        Number of bins; quantiles that coincide, and bins without rows, make them fewer.
    strategy : {"uniform", "quantile"}
        Bins of one width, or of as equal a number of rows as ties allow.

    Attributes
    ----------
    edges_ : array
        Upper edges of the bins; a bin holds its lower edge, and the last one 1.
    values_ : array
        Observed frequency of each bin; an empty bin has that of the nearest one below, or else above.

    References
    ----------
    Zadrozny and Elkan, *Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers*, 2001.

    Examples
    --------
    >>> bins = HistogramRecalibrator(2, "uniform").fit([0.1, 0.2, 0.3, 0.8], [0, 0, 1, 1])
    >>> bins.transform([0.0, 0.49, 0.5]).round(3)
    array([0.333, 0.333, 1.   ])
    """

    parts: ClassVar[Parts] = {"edges": np.ndarray, "values": np.ndarray}

    def __init__(
        self, n_bins: int = 10, strategy: Literal["uniform", "quantile"] = "quantile"
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    def _learn(self, training: Training) -> State:
        require_count("n_bins", self.n_bins, least=1)
        require_choice("strategy", self.strategy, ("uniform", "quantile"))
        points = training.points
        weight = over_outcomes(points.mass)
        inner = np.linspace(0.0, 1.0, self.n_bins + 1)[1:-1]
        if self.strategy == "quantile":
            rank = np.cumsum(weight) / points.total - 1e-9  # rounding moves no edge
            inner = np.unique(points.p[np.searchsorted(rank, inner, side="right")])
            inner = inner[inner > points.p[0]]
        bin_of = np.searchsorted(inner, points.p, side="right")
        total = np.bincount(bin_of, weight, minlength=inner.size + 1)
        events = np.bincount(bin_of, points.mass[:, 1], minlength=inner.size + 1)
        filled = np.flatnonzero(total > 0.0)
        source = filled[np.maximum(np.searchsorted(filled, np.arange(total.size), "right") - 1, 0)]
        values = np.minimum(events[source] / total[source], 1.0)
        return {"edges": np.append(inner, 1.0), "values": values}

    def _apply(self, p: Floats, state: State) -> Floats:
        return np.asarray(state["values"][np.searchsorted(state["edges"][:-1], p, side="right")])

    def _breaks(self, state: State) -> tuple[Floats, Floats]:
        return np.empty(0), state["edges"][:-1]
