"""Outcomes of calibrated predictions in clusters, for where events are too few to flip signs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator

__all__ = ["SharedOutcomes", "surprises_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEW_EVENTS = 100.0
_VALUES_AT_ONCE = 1 << 21


def surprises_of(unit: Integers, odds: Floats, share: Floats | None) -> float:
    """How many units of rows, at most, are expected to turn out against the odds.

    Units of unlike weight count as so many of one weight as would have the same kurtosis: where a few hold
    most of the rows, a sum over all of them is as skewed as one over these few. Without shares of the rows
    all units count alike.

    Examples
    --------
    >>> surprises_of(np.array([0, 1, 1]), np.array([0.1, 0.2, 0.1]), np.array([0.5, 0.25, 0.25])).__round__(9)
    0.3
    >>> round(surprises_of(np.array([0, 1]), np.array([0.1, 0.1]), np.array([0.9, 0.1])), 3)
    0.102
    """
    largest = np.zeros(int(unit.max()) + 1)
    np.maximum.at(largest, unit, odds)
    if share is None:
        return float(largest.sum())
    square = np.bincount(unit, share, largest.size) ** 2
    fourth = float((square**2 * largest).sum())
    return float((square * largest).sum()) ** 2 / fourth if fourth > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class SharedOutcomes:
    """Rows whose outcomes are drawn together where they may be one event.

    The rows of a cluster that saw one outcome only may all be forecasts of one event: they share one
    uniform number u, and y = 1 where u < f. Every such row is calibrated, and no dependence makes
    their sum vary more. Rows of a cluster that saw both outcomes draw their own.

    Attributes
    ----------
    prediction, share : float64[rows]
        Prediction of each row, and its part of the weight of all.
    event : int64[rows]
        Which uniform number decides on the row.
    node : int64[rows]
        The node on the row's left, of a grid of `cells` cells.
    right : float64[rows]
        The part of the row that goes to the node on its right.
    cells : int
    """

    prediction: Floats
    share: Floats
    event: Integers
    node: Integers
    right: Floats
    cells: int

    @property
    def expected_surprises(self) -> float:
        """How many events are expected to turn out against the odds, at most; see `surprises_of`."""
        odds = np.minimum(self.prediction, 1.0 - self.prediction)
        return surprises_of(self.event, odds, self.share)

    @property
    def are_rare(self) -> bool:
        """Whether surprises are few even if every event counts alike."""
        odds = np.minimum(self.prediction, 1.0 - self.prediction)
        return (
            surprises_of(self.event, odds, 1.0 / np.bincount(self.event)[self.event]) < FEW_EVENTS
        )

    @property
    def are_few(self) -> bool:
        """Whether the residuals of clusters are too skewed to be as likely with the other sign."""
        return self.expected_surprises < FEW_EVENTS

    def residuals(self, resamples: int, *, seed: int) -> Iterator[Floats]:
        """Mean of f - y on the nodes, in blocks [some resamples, cells + 1]."""
        rng = generator(seed, 9)
        events = int(self.event.max()) + 1
        nodes = self.cells + 1
        at_once = max(1, min(100, _VALUES_AT_ONCE // max(self.event.size, nodes)))
        for start in range(0, resamples, at_once):
            size = min(at_once, resamples - start)
            happened = rng.random((size, events))[:, self.event] < self.prediction
            part = self.share * (self.prediction - happened)
            place = (np.arange(size)[:, None] * nodes + self.node).ravel()
            left = np.bincount(place, (part * (1.0 - self.right)).ravel(), size * nodes)
            right = np.bincount(place + 1, (part * self.right).ravel(), size * nodes)
            yield np.asarray(left + right, dtype=np.float64).reshape(size, nodes)

    @staticmethod
    def events_of(
        cluster: Integers, events: Floats, weight: Floats, rows: Integers
    ) -> tuple[Integers, Integers]:
        """Which of the rows to repeat, and the number of the event of each.

        Parameters
        ----------
        cluster : int64[m]
            Of each entry.
        events, weight : float64[m]
            Weight of the outcome 1, and of both, in each entry.
        rows : int64[m]
            How many rows each entry holds.
        """
        clusters = int(cluster.max()) + 1
        share = np.bincount(cluster, events, clusters) / np.maximum(
            np.bincount(cluster, weight, clusters), 1e-300
        )
        is_one = (share <= 0.0) | (share >= 1.0)
        entry = np.repeat(np.arange(cluster.size), np.where(is_one[cluster], 1, rows))
        own = ~is_one[cluster[entry]]
        number = cluster[entry].copy()
        number[own] = clusters + np.arange(int(own.sum()))
        return entry, np.unique(number, return_inverse=True)[1].ravel()
