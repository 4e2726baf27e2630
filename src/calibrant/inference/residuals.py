"""Rows of a sketch as sums by cell and label; their residuals on a grid, and smECE of many of them at once.

smECE depends on the data through one function of the grid alone, the sum of f - y on each node. So smECE of
many parts of the rows is one batch of cosine transforms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.smoothing.curves import mean_size, smoothed_series
from calibrant.smoothing.spectrum import cosine_coefficients

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CELLS_PER_BANDWIDTH, FEWEST_CELLS = 6, 64
"""Such a grid widens the kernel by less than half a per cent."""
MARGIN = 8.0
"""In bandwidths: beyond, a Gaussian has 1e-15 of its mass."""
NARROWEST = 0.25
"""In cells: a narrower kernel is a point."""
CONVERGED = 1e-4
"""Relative precision of the fixed points of a batch."""


def cell_positions(sketch: Sketch, *, by_label: bool = False) -> Floats:
    """Mean place of the rows in each non-empty cell, or (cell, label), on the scale's grid from 0 to 1."""
    weights, moments, left = sketch.weights, sketch.weighted_offsets, sketch.cells / sketch.nodes
    if by_label:
        left = left[:, None]
    else:
        weights, moments = over_outcomes(weights), over_outcomes(moments)
    offset = np.divide(moments, weights, out=np.zeros_like(moments), where=weights > 0)
    return np.asarray(left + offset * 2.0**-FRACTION_BITS)


def cell_predictions(sketch: Sketch, *, by_label: bool = False) -> Floats:
    """Mean prediction of the rows in each non-empty cell, or (cell, label)."""
    positions = cell_positions(sketch, by_label=by_label)
    return np.asarray(sketch.scale.prediction(positions)).clip(0.0, 1.0)


class LabelSums(NamedTuple):
    """Sums over the rows of the non-empty cells of a sketch; the second axis is the label.

    Attributes
    ----------
    position, prediction : float64[m]
        Mean place on the scale's grid, from 0 to 1, and mean prediction.
    mass : float64[m]
        Σw.
    counts, weights, squared : [m, 2]
        Rows, Σw and Σw².
    cross : float64[m]
        Σ y (1 - y) over soft outcomes; 0 for outcomes of 0 and 1. A soft outcome has weight y under the label
        1 and 1 - y under the label 0. Where soft rows have weights of their own the sums of a sketch do not
        tell, and 0 is on the safe side: variances are then too large.
    weighted, soft : bool
        True where rows have weights, and where outcomes lie between 0 and 1: they have weight under labels
        that no row has.
    """

    position: Floats
    prediction: Floats
    mass: Floats
    counts: Integers
    weights: Floats
    squared: Floats
    cross: Floats
    weighted: bool
    soft: bool

    @classmethod
    def of(cls, sketch: Sketch) -> LabelSums:
        """Sums of a sketch."""
        position = cell_positions(sketch)
        counts, weights, weighted = sketch.counts, sketch.weights, sketch.weighted
        mass = over_outcomes(weights)
        squared, cross, soft = weights, np.zeros(mass.size), False
        if weighted:
            squared = sketch.squared_weights
            negative, positive = (weights - squared).T
            if np.allclose(mass, over_outcomes(counts), rtol=1e-9) and np.allclose(
                negative, positive, rtol=1e-6, atol=1e-9
            ):
                cross = np.maximum(positive, 0.0)
            soft = bool(((weights > 0) & (counts == 0)).any() or cross.any())
        prediction = np.asarray(sketch.scale.prediction(position)).clip(0.0, 1.0)
        return cls(position, prediction, mass, counts, weights, squared, cross, weighted, soft)

    @property
    def alike(self) -> bool:
        """True where every row has one weight, be it 1 or any other number, and an outcome of 0 or 1."""
        one = float(self.mass.sum()) / int(self.counts.sum())
        pairs = ((self.weights, self.counts), (self.squared, self.weights))
        return not self.weighted or all(np.allclose(a, one * b, 1e-9, 0.0) for a, b in pairs)


class ResidualGrid:
    """The part of a coarse grid where there are rows, with room to smooth around them.

    Where all predictions are small, say, the rest of [0, 1] need not be transformed: at eight
    bandwidths from the nearest row the kernel has vanished, and reflecting there changes nothing.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    bandwidth : float
        The narrowest at which they will be smoothed, in units of the scale.

    Attributes
    ----------
    bandwidth : float
        As it was given.
    sums : LabelSums
        The rows on a grid just fine enough for the bandwidth.
    nodes : int
        Cells of that grid.
    first, cells : int
        The node at which this part begins, and the number of its cells, a power of two.
    length : float
        Range that they cover, in units of the scale.
    observed : float64[cells + 1]
        Mean of f - y on the nodes; its sum is E[f - y].
    """

    def __init__(self, sketch: Sketch, bandwidth: float) -> None:
        self.bandwidth, length, nodes = bandwidth, sketch.scale.length, FEWEST_CELLS
        while nodes < sketch.nodes and nodes * bandwidth < CELLS_PER_BANDWIDTH * length:
            nodes *= 2
        coarse = sketch if nodes >= sketch.nodes else sketch.rebin(nodes)
        at, self.nodes = coarse.cells, coarse.nodes
        margin = int(np.ceil(MARGIN * bandwidth / length * self.nodes))
        low, high = max(0, int(at[0]) - margin), min(self.nodes, int(at[-1]) + 1 + margin)
        self.cells = min(max(FEWEST_CELLS, 1 << (high - low - 1).bit_length()), self.nodes)
        self.first = min(low, self.nodes - self.cells)
        self.length = length * self.cells / self.nodes
        self.sums = sums = LabelSums.of(coarse)
        residual = sums.mass * sums.prediction - sums.weights[:, 1]
        self.observed = self.on_nodes(sums.position, residual / sums.mass.sum())
        self._coefficients = cosine_coefficients(self.observed)

    def beside(self, position: Floats) -> tuple[Integers, Floats]:
        """The node on the left of each place on the scale's grid, and its distance from there, in cells."""
        place = position * self.nodes - self.first
        node = np.minimum(place.astype(np.int64), self.cells - 1)
        return node, np.asarray(place - node)

    def on_nodes(
        self, position: Floats, values: Floats, block: Integers | int = 0, blocks: int = 1
    ) -> Floats:
        """Sums of values at these places, split over the two nodes next to each: [blocks · (cells + 1)]."""
        node, right = self.beside(position)
        at, moved, size = block * (self.cells + 1) + node, values * right, blocks * (self.cells + 1)
        return np.asarray(np.bincount(at, values - moved, size) + np.bincount(at + 1, moved, size))

    def smoothed(self, on_nodes: Floats, bandwidth: float) -> Floats:
        """Density on the nodes of mass that lies on them, smoothed."""
        width = self._resolved(bandwidth)
        return smoothed_series(cosine_coefficients(on_nodes), width, self.cells)

    def error(self, bandwidth: float) -> float:
        """smECE of the rows at a bandwidth."""
        return float(mean_size(self._coefficients, self._resolved(bandwidth)))

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
        for _ in range(30):  # five or so do
            value = np.maximum(mean_size(coefficients, sigma / self.length), 1e-300)
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
        smooth[np.abs(smooth) < 1e-14 * np.abs(smooth).max()] = 0.0  # of rounding alone
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
