"""Sums of -log over rows that were called nearly impossible and came: what cells are too wide for.

The mean of -log p of the rows in a cell is that of their mean prediction, but where p is next to 0. So a
sketch keeps these sums beside its cells wherever rows are seen. They are floats, and no part of what two
sketches must have in common to be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["IMPOSSIBLE", "are_surprises", "coarse_enough", "places_of_surprises", "surprises_of"]

Floats = NDArray[np.float64]

IMPOSSIBLE = 1 / 256
"""What is given a smaller chance than this, and comes, is a surprise: whole cells of every usual grid."""

_NO_WEIGHTS, _NO_GROUPS = np.empty(0), np.empty(0, np.int64)


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
    from calibrant.data._fill import (  # updating on a device needs neither
        add_surprises,
        find_beyond,
    )

    rows, sums = np.empty(p.size, np.int64), np.zeros((groups, 2))
    rows = rows[: find_beyond(np.ascontiguousarray(p), IMPOSSIBLE, 1.0 - IMPOSSIBLE, rows)]
    add_surprises(
        p[rows].astype(np.float64, copy=False),
        y[rows].astype(np.float64),
        _NO_WEIGHTS if weight is None else weight[rows].astype(np.float64, copy=False),
        _NO_GROUPS if group is None else group[rows],
        IMPOSSIBLE,
        sums,
    )
    return sums
