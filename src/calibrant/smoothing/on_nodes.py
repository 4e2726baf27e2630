"""Numbers on the nodes of a grid, smoothed at any bandwidth: by transforms, or kernel by kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.smoothing._solver import (
    kernel_root,
    kernel_size,
    kernel_values,
    mean_root,
    series_sizes,
    series_values,
)
from calibrant.smoothing.curves import mesh_for
from calibrant.smoothing.spectrum import DECAY, cosine_coefficients

__all__ = ["OnNodes", "mesh_of_series"]

Floats = NDArray[np.float64]

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
