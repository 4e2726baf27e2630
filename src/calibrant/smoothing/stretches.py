"""Cells of a sketch on a line that leaves out what no kernel reaches."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Line", "shortened"]

Integers = NDArray[np.int64]


class Line(NamedTuple):
    """Line with gaps left out, on which the mean absolute smoothed residual is the same.

    Attributes
    ----------
    cells : int64[m]
        Of each, how many cells lie before it on the line.
    length : int
        Cells of the line.
    margin : float
        Room around rows where something was left out, in parts of the line; infinite where nothing was.
    """

    cells: Integers
    length: int
    margin: float


def shortened(
    cells: Integers, weights: NDArray[np.float64] | Integers, nodes: int, margin: int
) -> Line:
    """The line for bandwidths of which `margin` cells are many.

    Stretches of cells with more than two margins between them do not see each other: what lies beyond a
    margin on either side of each is left out. A stretch whose rows have one outcome has residuals of one
    sign, whose smoothed sum has the same size at any bandwidth and wherever they lie: all such stretches
    of one outcome lie in the same place.

    Reflecting a kernel at a margin, or joining two of them there, moves at most the mass that is farther
    away, and so it changes the mean absolute value by at most twice that of all of them.

    Parameters
    ----------
    cells : int64[m]
        The cells with rows, in increasing order; that of a prediction of 1 is `nodes`.
    weights : [m, 2]
        Of the rows with each outcome.
    nodes : int
        Cells from 0 to 1, at both of which the kernel is rightly reflected.
    margin : int
        In cells.

    Examples
    --------
    >>> line = shortened(np.array([3, 40, 70, 71]), np.array([[1, 0], [1, 0], [2, 0], [0, 1]]), 99, 5)
    >>> line.cells, line.length
    (array([ 3,  3, 14, 15]), 21)
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(cells) > 2 * margin + 1) + 1])
    begin = cells[starts]
    end = np.minimum(np.append(cells[starts[1:] - 1], cells[-1]) + 1, nodes)
    width, stretch = end - begin, np.arange(starts.size)
    host = stretch.copy()
    seen = np.add.reduceat(weights, starts, axis=0) > 0
    for outcome in (0, 1):
        alone = np.flatnonzero(~seen[:, 1 - outcome])
        if alone.size:
            host[alone] = alone[0]
            width[alone[0]] = width[alone].max()
    own = host == stretch
    lead = min(int(begin[0]), margin)
    tail = min(nodes - int(end[-1]), margin) if own[-1] else margin
    room = np.where(own, width + 2 * margin, 0)
    first = lead + np.cumsum(room) - room
    length = lead + int(room.sum()) - 2 * margin + tail
    whole = starts.size == 1 and lead == begin[0] and tail == nodes - end[-1]
    sizes = np.diff(np.append(starts, cells.size))
    moved = cells + np.repeat(first[host] - begin, sizes)
    return Line(moved, length, math.inf if whole else margin / length)
