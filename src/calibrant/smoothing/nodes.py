"""A sketch's rows laid onto the nodes of its grid, and what that costs in accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.fill import residuals_on_nodes
from calibrant.data.pairs import Pairs
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.smoothing._nodes import lay_cells

__all__ = ["LEVEL", "BinningError", "NodeMasses", "fold", "masses_of", "residuals_of_rows"]

Floats = NDArray[np.float64]

# L1 norms of the derivatives of the Gaussian density of unit bandwidth, orders 1 to 4, rounded up.
# Reflection is a contraction, so they bound the reflected kernel too.
SLOPE_NORMS = (0.7978845609, 0.9678828981, 1.5100132, 2.8006004)
LEVEL = (0.0, 0.0, 0.0, 0.0)
"""Slopes of a residual that is carried as it is."""


@dataclass(frozen=True)
class BinningError:
    """What is proved of the error that a grid brings into smECE at a bandwidth.

    Rows of one (cell, label) are known by number and mean position. Laying them onto four nodes with
    the weights of cubic interpolation leaves, for a bandwidth of x cells and in units of the mean
    absolute residual, at most

    - `spread` · 0.9679 / (2 x²), where `spread` is the part of E[u(1-u)] that the mean does not
      determine: 0 for a cell with one row, half of ū(1-ū) otherwise (u is the position in the cell);
    - `skew` · 1.5100 / (6 x³) for the third moment of such cells;
    - 0.0656 / x⁴ for the interpolation itself,

    and the same with one to four derivatives less of the kernel, and as many of the prediction, for the
    change of the prediction inside a cell (the product rule).
    """

    cells: int
    total_residual: float  # mean of |p - y|
    spread: float  # mean of (unknown part of u(1-u)) times |p - y|
    spread_mass: float  # mean of (unknown part of u(1-u))
    skew: float
    skew_mass: float
    slopes: tuple[
        float, float, float, float
    ]  # of the prediction, orders 1 to 4, per unit of the grid
    position: float  # rounding of positions to fixed point
    summands: int = 0  # the most rows whose floats were added up on one node
    margin: float = np.inf  # room at the ends, where the kernel should not be reflected but is

    def at(self, bandwidth: float) -> float:
        """The bound at a bandwidth in units of the grid."""
        h, s = 1.0 / self.cells, bandwidth
        d1, d2, d3, d4 = (norm / s**order for order, norm in enumerate(SLOPE_NORMS, 1))
        a, b, c, d = self.slopes
        second = self.spread * d2 + self.spread_mass * (2 * a * d1 + b)
        third = self.skew * d3 + self.skew_mass * (3 * a * d2 + 3 * b * d1 + c)
        fourth = self.total_residual * d4 + 4 * a * d3 + 6 * b * d2 + 4 * c * d1 + d
        moved = self.position * (a + self.total_residual * d1)
        if np.isfinite(self.margin):
            moved += 2.0 * self.total_residual * erfc(self.margin / (s * sqrt(2.0)))
        return h**2 / 2 * second + h**3 / 6 * third + 3 * h**4 / 128 * fourth + moved

    def of_mean(self) -> float:
        """The bound on the mean residual, which no bandwidth changes."""
        h = 1.0 / self.cells
        a, b, c, d = self.slopes
        bent = h**2 / 2 * self.spread_mass * b + h**3 / 6 * self.skew_mass * c + 3 * h**4 / 128 * d
        return bent + self.position * a


@dataclass(frozen=True)
class NodeMasses:
    """Weight of each outcome on the nodes -1, 0, ..., cells + 2 of a grid, in shares of the total."""

    negative: Floats
    positive: Floats
    prediction: Floats
    error: BinningError

    @property
    def cells(self) -> int:
        """Number of cells of the grid."""
        return self.negative.size - 4

    def residual(self) -> Floats:
        """Sum of p - y on each node 0 ... cells."""
        return fold(self.prediction * (self.negative + self.positive) - self.positive)


def masses_of(sketch: Sketch) -> NodeMasses:
    """Lay the rows of a sketch onto nodes, keeping number and mean position of every cell exactly."""
    cells, weights = sketch.nodes, sketch.weights
    prediction = sketch.scale.prediction(np.arange(-1, cells + 3) / cells)
    reach = 2 * sketch.scale.steepness * sketch.scale.length / cells
    negative, positive = nodes = np.zeros((2, cells + 4))
    spread, spread_mass, skew, skew_mass = lay_cells(
        sketch.cells,
        sketch.counts,
        weights,
        sketch.weighted_offsets,
        float(weights.sum()),
        2.0**sketch.offset_bits,
        sketch.weighted,  # a soft row is counted once, but lies under both labels
        prediction,
        reach,
        nodes,
    )
    mean_residual = float(
        (np.abs(fold(prediction * negative)) + np.abs(fold((1 - prediction) * positive))).sum()
    )
    error = BinningError(
        cells=cells,
        total_residual=mean_residual + reach,
        spread=spread,
        spread_mass=spread_mass,
        skew=skew,
        skew_mass=skew_mass,
        slopes=_slopes(sketch.scale),
        position=2.0**-FRACTION_BITS,
        summands=int(sketch.counts.sum(axis=1).max()) if sketch.weighted else 0,
        margin=np.inf if sketch.scale.reflected else sketch.scale.margin / sketch.scale.length,
    )
    return NodeMasses(negative, positive, prediction, error)


def residuals_of_rows(pairs: Pairs, cells: int) -> tuple[Floats, BinningError]:
    """Residuals of rows whose positions are known exactly: the interpolation is the only error.

    For the probability scale. The residual itself is carried, so nothing of it varies in a cell.
    """
    spread, absolute = residuals_on_nodes(pairs, cells)
    ghosted = np.append(spread, 0.0) / pairs.total_weight
    size = absolute / pairs.total_weight
    error = BinningError(cells, size, 0.0, 0.0, 0.0, 0.0, LEVEL, 0.0, summands=pairs.n)
    return fold(ghosted), error


def _slopes(scale: Scale) -> tuple[float, float, float, float]:
    """Derivatives of the prediction in the position on the grid."""
    third, fourth = scale.higher_slopes
    length = scale.length
    return (
        scale.steepness * length,
        scale.curvature * length**2,
        third * length**3,
        fourth * length**4,
    )


def fold(ghosted: Floats) -> Floats:
    """What lies beyond an end comes back into the grid, as the reflected kernel has it."""
    inside = ghosted[1:-2].copy()
    inside[1] += ghosted[0]
    inside[-2] += ghosted[-2]
    inside[-3] += ghosted[-1]
    return inside
