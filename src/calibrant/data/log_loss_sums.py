"""Sums of -log over rows that were called nearly impossible and came: what cells are too wide for.

The mean of -log p of the rows in a cell is that of their mean prediction, but where p is next to 0. So a
sketch keeps these sums beside its cells wherever rows are seen. They are floats, and no part of what two
sketches must have in common to be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data._fill import find_beyond

__all__ = ["IMPOSSIBLE", "are_surprises", "coarse_enough", "places_of_surprises", "surprises_of"]

Floats = NDArray[np.float64]

IMPOSSIBLE = 1 / 256
"""What is given a smaller chance than this, and comes, is a surprise: whole cells of every usual grid."""


def coarse_enough(nodes: int) -> bool:
    """Whether the surprises fill whole cells of the grid."""
    return nodes * IMPOSSIBLE >= 1.0


def places_of_surprises(cells: NDArray[np.int64], nodes: int) -> tuple[int, int]:
    """Before which of the cells rows with the event are surprises, and from which on those without."""
    wide = int(nodes * IMPOSSIBLE)
    low, high = cells.searchsorted((wide, nodes - wide)).tolist()
    return low, high


def are_surprises(cells: NDArray[np.int64], sums: NDArray[Any], nodes: int) -> bool:
    """Whether there are any among the sums [cell, label] of rows or of their weights."""
    low, high = places_of_surprises(cells, nodes)
    return bool(sums[high:, 0].any() or sums[:low, 1].any())


def surprises_of(
    p: NDArray[np.floating],
    y: NDArray[Any],
    weight: Floats | None = None,
    group: NDArray[np.int64] | None = None,
    groups: int = 1,
) -> Floats:
    """Σ w (-log) of the chance given to what came, over the surprises among valid rows: [groups, label].

    Examples
    --------
    >>> surprises_of(np.array([0.5, np.exp(-8.0), 1.0]), np.array([1, 1, 1])).round(6)
    array([[0., 8.]])
    """
    rows = np.empty(p.size, np.int64)
    rows = rows[: find_beyond(np.ascontiguousarray(p), IMPOSSIBLE, 1.0 - IMPOSSIBLE, rows)]
    chance, outcome = p[rows].astype(np.float64), y[rows].astype(np.float64)
    share = np.where(chance < IMPOSSIBLE, outcome, 1.0 - outcome)
    if weight is not None:
        share *= weight[rows]
    some = share > 0.0
    rows, chance, share = rows[some], chance[some], share[some]
    with np.errstate(divide="ignore"):
        loss = share * -np.where(chance < IMPOSSIBLE, np.log(chance), np.log1p(-chance))
    label = (chance < IMPOSSIBLE).astype(np.int64)
    place = label if group is None else 2 * group[rows] + label
    sums: Floats = np.bincount(place, weights=loss, minlength=2 * groups).astype(np.float64)
    return sums.reshape(-1, 2)
