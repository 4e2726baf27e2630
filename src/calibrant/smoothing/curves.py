"""The smooth functions that a reliability diagram shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.smoothing._nodes import lay_cells
from calibrant.smoothing.spectrum import DECAY, cosine_coefficients

Floats = NDArray[np.float64]

NEGLIGIBLE_DENSITY = 1e-9
"""Of the largest density: below, a ratio of transforms is rounding."""
MESH_PER_BANDWIDTH = 5
"""Points at which a smoothed curve is integrated: the error is below 1e-4 of it."""


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
    width = bandwidth / sketch.scale.length
    density, events, predictions = smoothed_series(coefficients, width, points)
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


def smoothed_series(coefficients: Floats, bandwidth: float | Floats, points: int) -> Floats:
    """Cosine series damped at a bandwidth, in units of the grid, at points + 1 equal steps.

    One bandwidth for all series [..., K], or one for each; points are a power of two.
    """
    width = np.expand_dims(np.asarray(bandwidth, dtype=np.float64), -1)
    used = min(coefficients.shape[-1], math.ceil(DECAY / float(width.min())) + 1)
    mesh = max(points, 1 << (used - 1).bit_length())
    damped = coefficients[..., :used] * np.exp(-0.5 * (math.pi * width * np.arange(used)) ** 2)
    return np.fft.irfft(damped, 2 * mesh, norm="forward")[..., : mesh + 1 : mesh // points]


def mean_size(coefficients: Floats, bandwidth: float | Floats) -> Floats:
    """Mean absolute value of each such series, by trapezoids of a mesh fine enough for the narrowest."""
    mesh = 1 << max(6, math.ceil(math.log2(MESH_PER_BANDWIDTH / float(np.min(bandwidth)))))
    sizes = np.abs(smoothed_series(coefficients, bandwidth, mesh))
    return np.asarray((sizes.sum(axis=-1) - 0.5 * (sizes[..., 0] + sizes[..., -1])) / mesh)
