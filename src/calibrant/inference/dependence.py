"""Rows that look dependent although nothing was said of it: told by ties."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantWarning

Integers = NDArray[np.int64]

ROWS_LOOKED_AT = 1 << 14
"""Enough for ties to show, and so few that looking costs little beside the test."""
NEIGHBOURS = 4
"""Predictions on either side whose outcomes give the rate at a tie."""
EXPECTED_TO_DIFFER, SHARE_DIFFERING = 10.0, 0.5
"""Ties that should have seen both outcomes, and the share of these that has: where ten should, under five
do in at most 3 of 100 samples of independent rows (Poisson)."""


class DependenceWarning(CalibrantWarning):
    """The rows look dependent, and the interval and the test take them to be independent."""


def warn_of_repeated_rows(*models: Rows, stacklevel: int) -> None:
    """Warn where predictions come back again and again, and with them their outcomes.

    Forecasts on a lattice, of a tree or of an isotonic map repeat by nature: rows that share one of these do
    not share an outcome. So ties tell where enough of them should have seen both outcomes.
    """
    for pairs in models:
        part = pairs if pairs.n <= ROWS_LOOKED_AT else pairs.select(np.arange(ROWS_LOOKED_AT))
        inside = (part.p > 0.001) & (part.p < 0.999)  # beyond, single precision makes ties
        ordered = np.sort(part.p[inside])
        if not (ordered[1:] == ordered[:-1]).any():
            continue
        _, place, rows = np.unique(part.p[inside], return_inverse=True, return_counts=True)
        if _warned(rows, np.bincount(place.ravel(), part.y[inside]), stacklevel=stacklevel + 1):
            return


def warn_of_repeated_cells(sketch: Sketch, *, stacklevel: int) -> None:
    """Warning of the rows of a sketch: where few rows are in a cell, those that tie are in one."""
    rows = over_outcomes(sketch.counts)
    middle = (rows > 0) & (sketch.cells > 0) & (sketch.cells < sketch.nodes - 1)
    _warned(rows[middle], sketch.counts[middle, 1], stacklevel=stacklevel + 1)


def _warned(rows: Integers, events: NDArray[Any], *, stacklevel: int) -> bool:
    """True after a warning: too few predictions, by their rows and events in order, saw both outcomes.

    Were the k rows of one prediction independent, they would agree with probability r^k + (1-r)^k, with r the
    rate of events among the predictions next to theirs.
    """
    if rows.size <= 2 * NEIGHBOURS:
        return False
    rate = events / rows
    total = np.concatenate([[0.0], np.cumsum(rate)])
    start = np.clip(np.arange(rows.size) - NEIGHBOURS, 0, rows.size - 2 * NEIGHBOURS - 1)
    nearby = total[start + 2 * NEIGHBOURS + 1] - total[start]
    r = np.clip((nearby - rate) / (2 * NEIGHBOURS), 0.0, 1.0)
    expected = float((1.0 - r**rows - (1.0 - r) ** rows).sum())
    seen = int(((events > 0) & (events < rows)).sum())
    if expected < EXPECTED_TO_DIFFER or seen >= SHARE_DIFFERING * expected:
        return False
    message = (
        f"Each prediction occurs {rows.mean():.1f} times on average, and rows that tie share their outcome, "
        "so rows may repeat one event; interval and test take rows to be independent. Pass `cluster` with "
        "what identifies the event."
    )
    warnings.warn(DependenceWarning(message), stacklevel=stacklevel)
    return True
