"""The smooth functions that a reliability diagram shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.smoothing._nodes import lay_cells
from calibrant.smoothing._solver import (
    kernel_root,
    kernel_size,
    kernel_values,
    mean_root,
    series_sizes,
    series_values,
)
from calibrant.smoothing.spectrum import DECAY, cosine_coefficients

__all__ = [
    "OnNodes",
    "SmoothCurves",
    "mesh_for",
    "mesh_of_series",
    "smooth_curves",
    "smoothed_series",
]

Floats = NDArray[np.float64]

NEGLIGIBLE_DENSITY = 1e-9
"""Of the largest density: below, a ratio of transforms is rounding."""


@dataclass(frozen=True)
class SmoothCurves:
    """Smoothed densities on a mesh of positions of the grid.

    Attributes
    ----------
    position : float64[m]
        Where, in [0, 1] on the scale's grid; on the probability scale, the prediction t itself.
    density : float64[m]
        δ̂ = E[K(f, t)], which integrates to 1.
    events : float64[m]
        E[K(f, t) y].
    predictions : float64[m]
        E[K(f, t) f].
    """

    position: Floats
    density: Floats
    events: Floats
    predictions: Floats

    @property
    def regression(self) -> Floats:
        """μ̂ = E[K y] / E[K], NaN where there is no data to speak of."""
        return self._ratio(self.events)

    @property
    def smoothed_predictions(self) -> Floats:
        """f̂ = E[K f] / E[K]: what μ̂ would be if the predictions were calibrated."""
        return self._ratio(self.predictions)

    def _ratio(self, numerator: Floats) -> Floats:
        known = self.density > NEGLIGIBLE_DENSITY * self.density.max()
        return np.divide(numerator, self.density, out=np.full_like(numerator, np.nan), where=known)


def smooth_curves(sketch: Sketch, bandwidth: float, *, points: int = 512) -> SmoothCurves:
    """Density, events and predictions of a sketch, smoothed, at `points` + 1 positions.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    bandwidth : float
        In units of the scale.
    points : int
        Number of equal steps from one end of the grid to the other; a power of two.
    """
    negative, positive = _on_nodes(sketch)
    everything = negative + positive
    prediction = sketch.scale.prediction(np.arange(-1, sketch.nodes + 3) / sketch.nodes)
    layers = [everything, positive, prediction * everything]
    coefficients = cosine_coefficients(np.stack([_folded(layer) for layer in layers]))
    density, events, predictions = smoothed_series(
        coefficients, bandwidth / sketch.scale.length, points
    )
    return SmoothCurves(np.arange(points + 1) / points, density, events, predictions)


def _on_nodes(sketch: Sketch) -> Floats:
    """Shares of the weight of each outcome on the nodes -1, 0, ..., cells + 2."""
    weights = sketch.weights
    nodes = np.zeros((2, sketch.nodes + 4))
    lay_cells(
        sketch.cells,
        sketch.counts,
        weights,
        sketch.weighted_offsets,
        float(weights.sum()),
        2.0**sketch.offset_bits,
        sketch.weighted,  # a soft row is counted once, but lies under both labels
        nodes,
    )
    return nodes


def _folded(ghosted: Floats) -> Floats:
    """Numbers on the grid with those beyond an end folded back, as the reflected kernel has it."""
    inside = ghosted[1:-2].copy()
    inside[1] += ghosted[0]
    inside[-2] += ghosted[-2]
    inside[-3] += ghosted[-1]
    return inside


def smoothed_series(coefficients: Floats, bandwidth: float, points: int) -> Floats:
    """Damp coefficients at a bandwidth in units of the grid and sum the series at `points` + 1."""
    *rows, known = coefficients.shape
    mesh = mesh_for(known, bandwidth, points)
    return series_values(coefficients.reshape(-1, known), bandwidth, points, mesh).reshape(
        *rows, -1
    )


def mesh_for(known: int, bandwidth: float, points: int) -> int:
    """At least so many points, and enough for what a bandwidth leaves of so many coefficients."""
    while points <= min(known - 1, math.ceil(DECAY / bandwidth)):
        points *= 2
    return points


_WIDTH_OF_KERNEL = 17.0
"""In bandwidths."""
_KERNELS_AS_QUICK = 24.0
"""A transform takes about as long as adding up so many numbers for each point of the mesh."""


@dataclass(frozen=True, eq=False)
class OnNodes:
    """Numbers on the nodes of a grid from 0 to 1, whose ends reflect the kernel.

    Where few nodes hold anything, each of these adds its kernel to the points around it, and nothing is done
    for the rest of the grid. Both ways give the same up to rounding.

    Attributes
    ----------
    numbers : float64[cells + 1]
        What each node holds; their sum is the integral of the smooth curve.
    """

    numbers: Floats

    @cached_property
    def coefficients(self) -> Floats:
        """Their cosine transform."""
        return cosine_coefficients(self.numbers)

    @cached_property
    def _held(self) -> int:
        return int(np.count_nonzero(self.numbers))

    def _are_few(self, bandwidth: float, points: int, mesh: int) -> bool:
        """True where kernels at so many points are quicker to add up than a mesh is to transform."""
        cells = self.numbers.size - 1
        if bandwidth * cells < DECAY or points > cells:  # the grid does not resolve a kernel
            return False
        taps = max(_WIDTH_OF_KERNEL * bandwidth * points, 8.0)
        return self._held * taps <= _KERNELS_AS_QUICK * mesh

    def values(self, bandwidth: float, points: int) -> Floats:
        """The smooth curve at points + 1 nodes."""
        mesh = mesh_for(self.numbers.size, bandwidth, points)
        if self._are_few(bandwidth, points, mesh):
            return kernel_values(self.numbers, bandwidth, points)
        return series_values(self.coefficients[None], bandwidth, points, mesh).reshape(-1)

    def mean_size(self, bandwidth: float, mesh: int) -> float:
        """Its mean absolute value, by trapezoids of a mesh."""
        if self._are_few(bandwidth, mesh, mesh):
            return kernel_size(self.numbers, bandwidth, mesh)
        return float(series_sizes(self.coefficients[None], np.array([bandwidth]), mesh)[0])

    def mean_root(self, bandwidth: float, points: int) -> float:
        """Its mean square root at points + 1 nodes; where it is below 0, of 0."""
        mesh = mesh_for(self.numbers.size, bandwidth, points)
        if self._are_few(bandwidth, points, mesh):
            return kernel_root(self.numbers, bandwidth, points)
        return mean_root(self.coefficients, bandwidth, points, mesh)


def mesh_of_series(known: int, narrowest: float, per_bandwidth: float) -> int:
    """A power of two of points: so many to a bandwidth, and no fewer than the coefficients that it leaves."""
    last = min(known - 1, math.ceil(DECAY / narrowest))
    return 1 << max(6, math.ceil(math.log2(max(last, per_bandwidth / narrowest))))
