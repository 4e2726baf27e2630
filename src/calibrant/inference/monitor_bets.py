"""Bets against calibration: what each would have made of a batch, from its sketch alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch

__all__ = ["BETS", "Bet", "log_gains"]

Floats = NDArray[np.float64]

INSIDE = 0.95
"""The share of its bounds that a stake may use: a lost bet never ruins."""
SIZES = (0.1, 0.25, 0.6, 1.5)
WAVES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Bet:
    """The alternative logit q(p) = logit p + size · shape(p).

    Attributes
    ----------
    shape : str
        "shift" (all predictions too low or too high), "tilt" (too close to ½ or too far from it) or
        "wave k" (cos πkp).
    size : float
        In log-odds; its sign says which way.

    Examples
    --------
    >>> import numpy as np
    >>> too_low = Bet("shift", 0.6)
    >>> too_low.meaning, too_low.alternative(np.array([0.5])).round(3).tolist()
    ('under-forecasting', [0.646])
    """

    shape: str
    size: float

    def alternative(self, p: Floats) -> Floats:
        """The chance of the event on which the bet is placed."""
        logit = np.log(p) - np.log1p(-p)
        if self.shape == "shift":
            direction = np.ones_like(p)
        elif self.shape == "tilt":
            direction = np.tanh(0.5 * logit)
        else:
            direction = np.cos(np.pi * int(self.shape.split()[1]) * p)
        return np.asarray(1.0 / (1.0 + np.exp(-(logit + self.size * direction))))

    @property
    def meaning(self) -> str:
        """What is wrong with the predictions if this bet wins."""
        if self.shape == "shift":
            return "under-forecasting" if self.size > 0 else "over-forecasting"
        if self.shape == "tilt":
            return "under-confident" if self.size > 0 else "over-confident"
        return "wrong in places"


BETS = tuple(
    Bet(shape, sign * size)
    for shape in ("shift", "tilt", *(f"wave {k}" for k in WAVES))
    for size in SIZES
    for sign in (1.0, -1.0)
)


def log_gains(batch: Sketch, learnt: Floats | None = None) -> Floats:
    """At most Σ log(1 + λ (y - p)) over the rows of a batch, for every bet, and the learnt one last.

    A stake λ is constant in a cell [a, b] and lies inside -1/(1-a) ≤ λ ≤ 1/b, so no factor is
    negative. Of the rows of one (cell, label), a sketch knows the number and the mean of p. The
    logarithm is concave in p, so among all rows with that mean its sum is smallest when they sit at
    the two ends of the cell: that smallest sum is what is returned, and rounding p to cells can never
    make a bet win.

    Parameters
    ----------
    batch : Sketch
        Unweighted, on the probability scale.
    learnt : float64[points + 1], optional
        Expected events less predictions at equally spaced p, learnt from earlier batches.

    Examples
    --------
    Events that come more often than predicted make the bet on "too low" win:

    >>> batch = Sketch.from_arrays([1, 1, 0, 1], [0.4, 0.5, 0.3, 0.6])
    >>> bool(log_gains(batch)[BETS.index(Bet("shift", 0.6))] > 0)
    True
    """
    low = batch.cells / batch.nodes
    high = np.minimum(low + 1.0 / batch.nodes, 1.0)
    middle = np.clip(0.5 * (low + high), 1e-9, 1.0 - 1e-9)
    chances = [bet.alternative(middle) for bet in BETS]
    if learnt is not None:
        gap = np.interp(middle, np.linspace(0.0, 1.0, learnt.size), learnt)
        chances.append(np.clip(middle + gap, 0.0, 1.0))
    stakes = (np.stack(chances) - middle) / (middle * (1.0 - middle))
    with np.errstate(divide="ignore"):
        # λ ≤ 1/b and λ ≥ -1/(1-a); at p exactly 0 or 1 one side has no bound at all.
        largest = np.minimum(INSIDE / high, 1e9)
        smallest = -np.minimum(INSIDE / (1.0 - low), 1e9)
    stakes = np.clip(stakes, smallest, largest)
    width = np.where(high > low, high - low, 1.0)
    rows = batch.counts
    offset = batch.offsets * 2.0**-36
    share = np.divide(offset, rows * width[:, None], out=np.zeros(rows.shape), where=rows > 0)
    gains = np.zeros(len(stakes))
    for label in range(2):
        at_low = np.log1p(stakes * (label - low))
        at_high = np.log1p(stakes * (label - high))
        mean = at_low + share[:, label] * (at_high - at_low)
        gains += np.where(rows[:, label] > 0, rows[:, label] * mean, 0.0).sum(axis=1)
    return gains
