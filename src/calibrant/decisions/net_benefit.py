"""Net benefit: true positives less false positives at the exchange rate that a threshold implies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError

__all__ = ["Acting", "require_thresholds"]

Floats = NDArray[np.float64]


def require_thresholds(thresholds: Any, argument: str = "thresholds") -> Floats:
    """The thresholds as an increasing array, each strictly between 0 and 1.

    Examples
    --------
    >>> require_thresholds([0.2, 0.1])
    array([0.1, 0.2])
    """
    values = [thresholds] if is_number(thresholds) else thresholds
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(
            "must be numbers between 0 and 1",
            argument=argument,
            seen=thresholds,
            cure="Pass one number, or a list such as [0.1, 0.2].",
        )
    listed = list(values)
    for value in listed:
        if not is_number(value) or not 0.0 < value < 1.0:
            percent = is_number(value) and 1.0 < value < 100.0
            raise InputError(
                "must lie strictly between 0 and 1",
                argument=argument,
                seen=value,
                cure="For {percent} per cent pass {share}."
                if percent
                else "Act where the probability reaches a threshold such as 0.2.",
                percent=f"{value:g}" if percent else "",
                share=f"{value / 100:g}" if percent else "",
            )
    if not listed:
        raise InputError(
            "must not be empty", argument=argument, cure="Pass one or more, such as [0.1, 0.2]."
        )
    return np.unique(np.asarray(listed, dtype=np.float64))


class Acting:
    """Which rows act (p ≥ t) at each of several thresholds, and what that is worth.

    Rows fall into len(thresholds) + 1 classes by how many thresholds they reach, so that everything is
    a sum over classes, whatever the number of rows.
    """

    def __init__(self, thresholds: Floats) -> None:
        self.thresholds = thresholds
        self.odds = thresholds / (1.0 - thresholds)

    def reached(self, p: Floats) -> NDArray[np.int64]:
        """How many thresholds each prediction reaches."""
        return np.searchsorted(self.thresholds, p, side="right")

    def worth(self) -> Floats:
        """What a row of each class and outcome adds to the net benefit, [class, outcome, threshold]."""
        count = self.thresholds.size
        acts = np.arange(count + 1)[:, None] > np.arange(count)[None, :]
        return np.stack([-self.odds * acts, 1.0 * acts], axis=1)

    def treat_all(self, rate: float) -> Floats:
        """Net benefit of acting always."""
        return np.asarray(rate - (1.0 - rate) * self.odds)

    def of_sketch(self, sketch: Sketch) -> tuple[Floats, Floats]:
        """Weight of each class and outcome, and how far the net benefit can be off at each threshold.

        A cell that a threshold cuts acts as its mean does; the bound is what its rows are worth.
        """
        unit = 2.0**FRACTION_BITS
        width = 2.0**sketch.offset_bits
        # In fixed point, as the sketch holds predictions: 0.1 reaches 0.1 there, too.
        place = np.floor(np.asarray(sketch.scale.locate(self.thresholds)) * unit)
        weights = sketch.weights
        mass = over_outcomes(weights)
        mean = np.divide(
            over_outcomes(sketch.weighted_offsets), mass, out=np.zeros_like(mass), where=mass > 0
        )
        position = sketch.cells * width + mean
        reached = np.searchsorted(place, position + 1e-3, side="right")
        table = np.stack(
            [np.bincount(reached, weights[:, label], place.size + 1) for label in range(2)], axis=1
        )
        cell = np.minimum(np.searchsorted(sketch.cells, np.floor(place / width)), mass.size - 1)
        cut = (sketch.cells[cell] == np.floor(place / width)) & (place % width > 0.0)
        cut &= over_outcomes(sketch.counts[cell]) > 1
        worth = np.maximum(weights[cell, 1], weights[cell, 0] * self.odds)
        return table / mass.sum(), np.where(cut, worth / mass.sum(), 0.0)
