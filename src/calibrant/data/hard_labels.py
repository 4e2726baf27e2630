"""Predictions that are all 0 or 1: hard labels, not probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantWarning

__all__ = ["HardLabelWarning", "are_hard_labels", "warn_of_hard_labels"]

FEWEST_ROWS = 50


class HardLabelWarning(CalibrantWarning):
    """All predictions are 0 or 1, which no model is as sure of as that says."""


def are_hard_labels(sketch: Sketch) -> bool:
    """Whether all predictions are exactly 0 or 1, some of each, and there are enough of them to wonder.

    Examples
    --------
    >>> are_hard_labels(Sketch.from_arrays([0, 1] * 30, [0, 1] * 30))
    True
    >>> are_hard_labels(Sketch.from_arrays([0, 1] * 30, [0, 0.9] * 30))
    False
    """
    used = sketch.cells[over_outcomes(sketch.counts) > 0]
    if sketch.n < FEWEST_ROWS or len(used) != 2:
        return False
    ends = Sketch.from_arrays([0, 1], [0.0, 1.0], scale=sketch.scale, nodes=sketch.nodes)
    plain = sketch.scale == PROBABILITY
    return np.array_equal(used, ends.cells) and not (plain and sketch.offsets.any())


def warn_of_hard_labels(sketches: Iterable[Sketch], *, stacklevel: int) -> None:
    """Warn where every prediction of every sketch is 0 or 1."""
    if all(map(are_hard_labels, sketches)):
        warnings.warn(
            HardLabelWarning(
                "all predictions are 0 or 1: these are hard labels, not probabilities",
                cure="Pass the probabilities that the labels were made from.",
            ),
            stacklevel=stacklevel + 1,
        )
