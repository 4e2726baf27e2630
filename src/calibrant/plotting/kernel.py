"""The kernel between the cells of a sketch and the points of a picture, as blocks of a matrix.

Hundreds of resamples are smoothed at the same few points. The matrix that does it is short where the
bandwidth is wide and banded where it is narrow, and holds only points at which there are rows, so its
product with all resamples costs less than a transform of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch

__all__ = ["KernelMatrix"]

Floats = NDArray[np.float64]

_POINTS_AT_ONCE = 64
_WORK_AT_ONCE = 1 << 18
# Beyond this many bandwidths the kernel has vanished.
_REACH = 8.5
# At this share of the grid the reflected kernel is level to the last digit; wider ones are too.
_LEVEL = 3.0


@dataclass(frozen=True, eq=False)
class _Block:
    """The kernel between neighbouring cells and neighbouring points."""

    cells: slice
    points: slice
    kernel: Floats  # [labels, cells, points]


class KernelMatrix:
    """What weight in each (cell, label) adds to the smoothed density at each point.

    Rows sit at the mean position of their (cell, label), or of their cell. Densities are in units of
    the kernel's largest value.

    Parameters
    ----------
    sketch : Sketch
        The cells.
    points : float64[k]
        Positions on the grid, increasing, from 0 to 1.
    bandwidth : float
        In units of the scale.
    labels : {1, 2}
        1 for weights that do not tell the outcomes apart.
    """

    def __init__(self, sketch: Sketch, points: Floats, bandwidth: float, *, labels: int) -> None:
        width = min(bandwidth / sketch.scale.length, _LEVEL)
        at = _positions(sketch, labels)
        first, last = sketch.cells / sketch.nodes, (sketch.cells + 1) / sketch.nodes
        self.points = points.size
        self.blocks = []
        for start in range(0, points.size, _POINTS_AT_ONCE):
            here = slice(start, min(start + _POINTS_AT_ONCE, points.size))
            t = points[here]
            cells = slice(
                int(np.searchsorted(last, t[0] - _REACH * width)),
                int(np.searchsorted(first, t[-1] + _REACH * width, side="right")),
            )
            self.blocks.append(_Block(cells, here, _reflected(at[:, cells], t, width)))

    def __call__(self, weights: Floats) -> Floats:
        """Smooth weights [some, m, labels] into densities [some, labels, k]."""
        some, _, labels = weights.shape
        by_label = np.ascontiguousarray(np.moveaxis(weights, -1, 0))
        smooth = np.empty((labels, some, self.points))
        for block in self.blocks:
            smooth[..., block.points] = _product(by_label[..., block.cells], block.kernel)
        return np.swapaxes(smooth, 0, 1)


def _product(weights: Floats, kernel: Floats) -> Floats:
    """weights [labels, some, m] @ kernel [labels, m, k], in pieces too small to be worth a thread.

    Several threads would wait for each other longer than they work, and might add up in another order.
    """
    labels, some, cells = weights.shape
    points = kernel.shape[-1]
    piece = max(1, _WORK_AT_ONCE // max(1, cells * points))
    pieces = some // piece
    product = np.empty((labels, some, points))
    np.matmul(
        weights[:, : pieces * piece].reshape(labels, pieces, piece, cells),
        kernel[:, None],
        out=product[:, : pieces * piece].reshape(labels, pieces, piece, points),
    )
    np.matmul(weights[:, pieces * piece :], kernel, out=product[:, pieces * piece :])
    return product


def _positions(sketch: Sketch, labels: int) -> Floats:
    """Mean position of the rows of each (label, cell)."""
    mass, moment = sketch.weights.T, sketch.weighted_offsets.T
    if labels == 1:
        mass, moment = mass.sum(axis=0, keepdims=True), moment.sum(axis=0, keepdims=True)
    offset = np.divide(moment, mass, out=np.zeros_like(mass), where=mass > 0)
    return (sketch.cells + offset * 2.0**-sketch.offset_bits) / sketch.nodes


def _reflected(at: Floats, points: Floats, width: float) -> Floats:
    """exp(-d²/2) over all images of the positions at 0 and 1 that lie in reach of the points."""
    kernel = np.zeros((*at.shape, points.size))
    if not at.size:
        return kernel
    shifts = 2.0 * np.arange(-int(_REACH * width / 2) - 1, int(_REACH * width / 2) + 2)
    for images in (sign * at + shift for shift in shifts for sign in (1.0, -1.0)):
        near = images.max() > points[0] - _REACH * width
        if near and images.min() < points[-1] + _REACH * width:
            kernel += np.exp(-0.5 * np.square((images[..., None] - points) / width))
    return kernel
