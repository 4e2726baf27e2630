"""Residuals of a sketch on a grid; smECE of many of them at once.

smECE depends on the data through one function of the grid alone, the sum of f - y on each node. So smECE of
many parts of the rows is one batch of cosine transforms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Stacked
from calibrant.smoothing._solver import series_sizes
from calibrant.smoothing.curves import OnNodes, mesh_of_series, smoothed_series
from calibrant.smoothing.spectrum import cosine_coefficients

__all__ = ["ResidualGrid", "cell_positions", "cell_predictions", "nodes_of", "rows_on_nodes"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CELLS_PER_BANDWIDTH, FEWEST_CELLS = 6, 64
"""Such a grid widens the kernel by less than half a per cent."""
MARGIN = 8.0
"""In bandwidths: beyond, a Gaussian has 1e-15 of its mass."""
MESH_PER_BANDWIDTH = 5
"""Points at which a smoothed curve is integrated: the error is below 1e-4 of it."""
NARROWEST = 0.25
"""In cells: a narrower kernel is a point."""
CONVERGED, MOST_STEPS = 1e-4, 30
"""Relative precision of the fixed points of a batch, which takes five steps or so."""


def cell_positions(sketch: Sketch | Stacked, *, by_label: bool = False) -> Floats:
    """Mean place of the rows in each non-empty cell, or (cell, label), on the scale's grid from 0 to 1."""
    weights, moments, left = sketch.weights, sketch.weighted_offsets, sketch.cells / sketch.nodes
    if by_label:
        left = left[:, None]
    else:
        weights, moments = over_outcomes(weights), over_outcomes(moments)
    offset = np.divide(moments, weights, out=np.zeros_like(moments), where=weights > 0)
    return np.asarray(left + offset * 2.0**-FRACTION_BITS)


def cell_predictions(sketch: Sketch) -> Floats:
    """Mean prediction of the rows in each non-empty cell."""
    return np.asarray(sketch.scale.prediction(cell_positions(sketch)))


@dataclass(frozen=True, eq=False)
class ResidualGrid:
    """The part of a coarse grid where there are rows, with room to smooth around them.

    Where all predictions are small, say, the rest of [0, 1] need not be transformed: at eight
    bandwidths from the nearest row the kernel has vanished, and reflecting there changes nothing.

    Attributes
    ----------
    sketch : Sketch
        The rows on a grid just fine enough for the bandwidth.
    first : int
        The node of the sketch's grid at which this part begins.
    cells : int
        Number of cells of this part, a power of two.
    length : float
        Range that they cover, in units of the scale.
    """

    sketch: Sketch
    first: int
    cells: int
    length: float

    @classmethod
    def of(cls, sketch: Sketch, bandwidth: float) -> ResidualGrid:
        """The grid for smoothing at `bandwidth`, in units of the scale, or at wider ones."""
        length, nodes = sketch.scale.length, FEWEST_CELLS
        while nodes < sketch.nodes and nodes * bandwidth < CELLS_PER_BANDWIDTH * length:
            nodes *= 2
        coarse = sketch if nodes >= sketch.nodes else sketch.rebin(nodes)
        margin = int(np.ceil(MARGIN * bandwidth / length * coarse.nodes))
        low = max(0, int(coarse.cells[0]) - margin)
        high = min(coarse.nodes, int(coarse.cells[-1]) + 1 + margin)
        cells = FEWEST_CELLS
        while cells < high - low:
            cells *= 2
        cells = min(cells, coarse.nodes)
        return cls(coarse, min(low, coarse.nodes - cells), cells, length * cells / coarse.nodes)

    @cached_property
    def _position(self) -> Floats:
        return cell_positions(self.sketch)

    @cached_property
    def place(self) -> Floats:
        """Mean place of the rows in each non-empty cell, in cells of this part."""
        return self._position * self.sketch.nodes - self.first

    def on_nodes(self, per_cell: Floats) -> Floats:
        """Sums per non-empty cell split over the two nodes next to the cell's rows."""
        node = self.sketch.cells - self.first
        right = per_cell * (self.place - node)
        nodes = np.zeros(self.cells + 2)
        nodes[node] = per_cell - right
        nodes[node + 1] += right
        return nodes[:-1]

    @cached_property
    def observed(self) -> Floats:
        """Mean of f - y on the nodes; its sum is E[f - y]."""
        weights = self.sketch.weights
        mass = over_outcomes(weights)
        f = np.asarray(self.sketch.scale.prediction(self._position))
        residual = mass * f - weights[:, 1]
        return self.on_nodes(residual / mass.sum())

    def smoothed(self, on_nodes: Floats, bandwidth: float) -> Floats:
        """Density on the nodes of mass that lies on them, smoothed."""
        width = self._resolved(bandwidth)
        if on_nodes.ndim == 1:
            return OnNodes(on_nodes).values(width, self.cells)
        return smoothed_series(cosine_coefficients(on_nodes), width, self.cells)

    @cached_property
    def _rows(self) -> OnNodes:
        return OnNodes(self.observed)

    def error(self, bandwidth: float) -> float:
        """smECE of the rows at a bandwidth."""
        width = self._resolved(bandwidth)
        return self._rows.mean_size(
            width, mesh_of_series(self.cells + 1, width, MESH_PER_BANDWIDTH)
        )

    def _resolved(self, bandwidth: float) -> float:
        """The bandwidth in units of this grid: a quarter of a cell is as narrow as a point."""
        return max(bandwidth / self.length, NARROWEST / self.cells)

    def fixed_points(self, residuals: Floats, *, start: float) -> Floats:
        """σ* = smECE_σ* of each of the residuals [b, cells + 1].

        Every evaluation brackets the fixed point, since smECE_σ falls with σ: as about σ^(-1/4), or else
        the bracket is halved. Less than a quarter of a cell is not resolved.
        """
        coefficients = cosine_coefficients(residuals)
        low = np.maximum(np.abs(coefficients[..., 0]), NARROWEST * self.length / self.cells)
        high = np.full(low.shape, np.inf)
        sigma = np.maximum(start, low)
        for _ in range(MOST_STEPS):
            widths = sigma / self.length
            mesh = mesh_of_series(self.cells + 1, float(widths.min()), MESH_PER_BANDWIDTH)
            value = np.maximum(series_sizes(coefficients, widths, mesh), 1e-300)
            low = np.maximum(low, np.minimum(value, sigma))
            high = np.minimum(high, np.maximum(value, sigma))
            if np.all(high <= low * (1.0 + CONVERGED)):
                break
            guess = sigma * (value / sigma) ** 0.8
            sigma = np.where((low < guess) & (guess < high), guess, np.sqrt(low * high))
        return np.clip(sigma, low, high)

    def witness(self, residuals: Floats, bandwidth: float) -> Floats:
        """g = K_σ ∗ sign(r_σ) on the nodes: the function whose mean with f - y is smECE_σ.

        smECE_σ is the largest E[(f - y) g(f)] over all g = K_σ ∗ s with |s| ≤ 1, so the influence of
        a row on smECE_σ is (f - y) g(f) - smECE_σ.
        """
        smooth = self.smoothed(residuals, bandwidth)
        # The mean of the sign over the cell around each node, with r taken to be linear there.
        slope = np.abs(np.gradient(smooth))
        sign = np.sign(smooth)
        np.divide(smooth, 0.5 * slope, out=sign, where=0.5 * slope > np.abs(smooth))
        sign[[0, -1]] *= 0.5
        return self.smoothed(sign / self.cells, bandwidth)

    def steepness(self, bandwidth: float) -> float:
        """-d smECE_σ / dσ, which is never negative, from two bandwidths close by."""
        wide, narrow = 1.05 * bandwidth, 0.95 * bandwidth
        return max((self.error(narrow) - self.error(wide)) / (wide - narrow), 0.0)


def nodes_of(grid: ResidualGrid, position: Floats) -> tuple[Integers, Floats]:
    """The node on the left of each row, and the part of the row that goes to the one on its right."""
    place = position * grid.sketch.nodes - grid.first
    node = np.minimum(place.astype(np.int64), grid.cells - 1)
    return node, np.asarray(place - node)


def rows_on_nodes(
    grid: ResidualGrid, position: Floats, values: Floats, block: Integers, blocks: int
) -> Floats:
    """Sums of the rows' values on the nodes of the grid, apart by block: [blocks, cells + 1]."""
    node, right = nodes_of(grid, position)
    at, size = block * (grid.cells + 1) + node, blocks * (grid.cells + 1)
    sums = np.bincount(at, values * (1.0 - right), size)
    sums = sums + np.bincount(at + 1, values * right, size)
    return np.asarray(sums, dtype=np.float64).reshape(blocks, grid.cells + 1)
