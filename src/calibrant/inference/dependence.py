"""Rows that look dependent although nothing was said of it: told by ties."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantWarning

Floats = NDArray[np.float64]

ROWS_LOOKED_AT = 1 << 14
"""Enough for ties to show, and so few that looking costs little beside the test."""
FEWEST_VALUES, REPEATS = 50, 1.5
"""Distinct predictions, and rows for each: fewer values are a lattice, fewer rows chance ties."""
NEIGHBOURS = 4
"""Predictions on either side whose outcomes give the rate at a tie."""
EXPECTED_TO_DIFFER, SHARE_DIFFERING = 10.0, 0.5
"""Ties that should have seen both outcomes, and the share of these that has: where ten should, under five
do in at most 3 of 100 samples of independent rows (Poisson)."""


class DependenceWarning(CalibrantWarning):
    """The rows look dependent, and the interval and the test take them to be independent."""


def warn_of_repeated_rows(*models: Rows, stacklevel: int) -> None:
    """Warn where predictions come back again and again, and with them their outcomes.

    Forecasts on a lattice, of a tree or of an isotonic map repeat by nature: rows that share one of
    these do not share an outcome. So where ties tell (enough of them should have seen both outcomes,
    by the rate among their neighbours), the outcomes decide; where they do not, as for rare events,
    it is the digits that come back.
    """
    for pairs in models:
        part = pairs if pairs.n <= ROWS_LOOKED_AT else pairs.select(np.arange(ROWS_LOOKED_AT))
        inside = (part.p > 0.001) & (part.p < 0.999)  # beyond, single precision makes ties
        p, y = part.p[inside], part.y[inside]
        ordered = np.sort(p)
        if not (ordered[1:] == ordered[:-1]).any():
            continue
        distinct, expected, seen = _ties(p, y)
        how = "and rows that tie share their outcome"
        repeated = expected >= EXPECTED_TO_DIFFER and seen < SHARE_DIFFERING * expected
        if not repeated:
            long = p != np.round(p, 4)  # rounded predictions repeat by nature
            p, how = p[long], "to the last digit"
            distinct, expected, _ = _ties(p, y[long])
            repeated = distinct >= FEWEST_VALUES and p.size >= REPEATS * distinct
            repeated &= expected < EXPECTED_TO_DIFFER
        if repeated:
            _warn(p.size / distinct, how, stacklevel=stacklevel + 1)
            return


def warn_of_repeated_cells(sketch: Sketch, *, stacklevel: int) -> None:
    """Warning of the rows of a sketch: where few rows are in a cell, those that tie are in one."""
    rows = over_outcomes(sketch.counts)
    middle = (rows > 0) & (sketch.cells > 0) & (sketch.cells < sketch.nodes - 1)
    rows, events = rows[middle], sketch.counts[middle, 1]
    expected, seen = _agreements(rows.astype(np.float64), events.astype(np.float64))
    if expected >= EXPECTED_TO_DIFFER and seen < SHARE_DIFFERING * expected:
        how = "and rows that tie share their outcome"
        _warn(float(rows.sum()) / rows.size, how, stacklevel=stacklevel + 1)


def _warn(times: float, how: str, *, stacklevel: int) -> None:
    message = (
        f"Each prediction occurs {times:.1f} times on average, {how}, so rows may repeat one event; interval "
        "and test take rows to be independent. Pass `cluster` with what identifies the event."
    )
    warnings.warn(DependenceWarning(message), stacklevel=stacklevel)


def _ties(p: Floats, y: Floats) -> tuple[int, float, int]:
    """Distinct predictions; how many of them should have seen both outcomes, and how many have.

    Were the k rows of one prediction independent, they would agree with probability r^k + (1-r)^k, with
    r the rate of events among the predictions next to theirs.
    """
    values, place, rows = np.unique(p, return_inverse=True, return_counts=True)
    events = np.bincount(place.ravel(), weights=y, minlength=values.size).astype(np.float64)
    return (int(values.size), *_agreements(rows.astype(np.float64), events))


def _agreements(rows: Floats, events: Floats) -> tuple[float, int]:
    """Agreements among predictions in order, by their rows and events."""
    if rows.size <= 2 * NEIGHBOURS:
        return 0.0, 0
    rate = events / rows
    total = np.concatenate([[0.0], np.cumsum(rate)])
    start = np.clip(np.arange(rows.size) - NEIGHBOURS, 0, rows.size - 2 * NEIGHBOURS - 1)
    nearby = total[start + 2 * NEIGHBOURS + 1] - total[start]
    r = np.clip((nearby - rate) / (2 * NEIGHBOURS), 0.0, 1.0)
    expected = float((1.0 - r**rows - (1.0 - r) ** rows).sum())
    return expected, int(((events > 0) & (events < rows)).sum())
