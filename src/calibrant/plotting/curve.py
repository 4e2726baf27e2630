"""What one bandwidth makes of a sketch: the curves of a diagram, its areas and its regions.

Scales other than the probabilities have grids that are far longer than any data. What lies within
some bandwidths of the rows is cut out as a grid of its own, so that a picture costs the same on every
scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import Columns, over_outcomes
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.smoothing.curves import SmoothCurves, smooth_curves

__all__ = [
    "Mesh",
    "absolute_integral",
    "fine_curves",
    "mesh_of",
    "part_of",
    "rows_nearby",
    "sampled",
]

Floats = NDArray[np.float64]

_FEWEST_STEPS, _MOST_STEPS = 256, 1 << 16
_MOST_POINTS = 4097
_STEPS_PER_BANDWIDTH = 16
_FINE_STEPS_PER_BANDWIDTH = 64
_MOST_FINE_STEPS = 1 << 18
_SMALLEST_SHARE = 0.05
_MOST_REGIONS = 5
# Nothing narrower than this many cells of a sketch is told apart (of a coarse one, this share of it).
_NARROWEST_CELLS, _NARROWEST = 2.0, 1 / 2048
# On other scales than the probabilities, and between the points of a coarse mesh, the picture goes this
# many bandwidths beyond the rows.
_BEYOND = 3.0
# Beyond this many bandwidths from the rows nothing is left of them that the ends could reflect.
_MARGIN = 9.0
_FEWEST_CELLS = 256


@dataclass(frozen=True, eq=False)
class Mesh:
    """The points of an even mesh over the grid at which a diagram gives its curves.

    Attributes
    ----------
    bandwidth : float
        Bandwidth of the picture, in units of the scale.
    steps : int
        Equal steps from one end of the grid to the other; a power of two.
    kept : int64[m]
        The points that are kept, of steps + 1.
    """

    bandwidth: float
    steps: int
    kept: NDArray[np.int64]


def mesh_of(sketch: Sketch, bandwidth: float) -> Mesh:
    """A mesh that is fine enough for the bandwidth and covers the rows.

    On the probability scale it covers [0, 1]; on others, the rows and a little beyond. For a narrow
    bandwidth it is fine only near rows, as far as a few thousand points go.
    """
    length = sketch.scale.length
    width = max(bandwidth / length, min(_NARROWEST_CELLS / sketch.nodes, _NARROWEST))
    steps = _power_of_two(_STEPS_PER_BANDWIDTH / width, _FEWEST_STEPS, _MOST_STEPS)
    kept = _kept(sketch, width, steps)
    while kept.size > _MOST_POINTS:
        steps //= 2
        kept = _kept(sketch, width, steps)
    exact = bandwidth / length >= width
    return Mesh(bandwidth if exact else width * length, steps, kept)


def _kept(sketch: Sketch, width: float, steps: int) -> NDArray[np.int64]:
    """The points near rows and, of a fine mesh, some between; all of a coarse one."""
    at = np.arange(steps + 1) / steps
    chosen = np.ones(at.size, dtype=bool)
    if steps >= _MOST_POINTS:
        chosen = rows_nearby(sketch, at, _BEYOND * width) > 0
        chosen[:: steps // _FEWEST_STEPS] = True
    if not sketch.scale.reflected:
        low, high = sketch.cells[[0, -1]] / sketch.nodes + np.array([-_BEYOND, _BEYOND]) * width
        t = sketch.scale.prediction(at)
        chosen &= (at >= low) & (at <= high) & (t >= 0.0) & (t <= 1.0)
    return np.flatnonzero(chosen)


def fine_curves(sketch: Sketch, mesh: Mesh) -> SmoothCurves:
    """The curves on a mesh so fine that integrals over it are exact for every purpose."""
    wanted = _FINE_STEPS_PER_BANDWIDTH * sketch.scale.length / mesh.bandwidth
    steps = _power_of_two(wanted, 4 * mesh.steps, _MOST_FINE_STEPS)
    return smooth_curves(sketch, mesh.bandwidth, points=steps)


def sampled(curves: SmoothCurves, mesh: Mesh) -> SmoothCurves:
    """The points of a fine mesh that a coarser one keeps."""
    skip = (curves.position.size - 1) // mesh.steps
    return SmoothCurves(
        curves.position[::skip][mesh.kept].copy(),
        curves.density[::skip][mesh.kept].copy(),
        curves.events[::skip][mesh.kept].copy(),
        curves.predictions[::skip][mesh.kept].copy(),
    )


def _power_of_two(wanted: float, fewest: int, most: int) -> int:
    return 1 << int(np.ceil(np.log2(np.clip(wanted, fewest, most))))


def absolute_integral(values: Floats) -> float:
    """∫|g| over [0, 1] of a smooth g given on an even, fine mesh.

    Fourth-order cell by cell; in a cell where g changes sign it is taken as linear.

    Examples
    --------
    >>> mesh = np.linspace(0, 1, 1025)
    >>> round(absolute_integral(np.cos(2 * np.pi * mesh)), 7) == round(2 / np.pi, 7)
    True
    """
    g, step = values, 1.0 / (values.size - 1)
    cells = np.empty(values.size - 1)
    cells[1:-1] = 13 * (g[1:-2] + g[2:-1]) - g[:-3] - g[3:]
    cells[0] = 9 * g[0] + 19 * g[1] - 5 * g[2] + g[3]
    cells[-1] = 9 * g[-1] + 19 * g[-2] - 5 * g[-3] + g[-4]
    areas = np.abs(cells) / 24
    turns = np.flatnonzero(g[:-1] * g[1:] < 0)
    left, right = np.abs(g[turns]), np.abs(g[turns + 1])
    areas[turns] = (left**2 + right**2) / (2 * (left + right))
    return float(areas.sum() * step)


def rows_nearby(sketch: Sketch, position: Floats, reach: float) -> NDArray[np.int64]:
    """Number of rows within `reach` of each position of the grid."""
    at = sketch.cells / sketch.nodes
    before = np.concatenate([[0], np.cumsum(over_outcomes(sketch.counts))])
    last = np.searchsorted(at, position + reach, side="right")
    first = np.searchsorted(at, position - reach, side="left")
    rows: NDArray[np.int64] = before[last] - before[first]
    return rows


@dataclass(frozen=True)
class _PartOfScale(Scale):
    """A stretch of another scale's grid: `share` of it, from `start` on."""

    whole: Scale = field(kw_only=True)
    start: float = field(kw_only=True)
    share: float = field(kw_only=True)

    @property
    def length(self) -> float:
        return self.whole.length * self.share

    def prediction(self, position: Floats) -> Floats:
        return self.whole.prediction(self.start + position * self.share)


def part_of(sketch: Sketch, bandwidth: float) -> Sketch:
    """The sketch on the smallest part of its grid that holds its rows with room for the bandwidth.

    Rows that the scale puts at infinity are left out. On the probability scale, the sketch itself.
    """
    if sketch.scale.reflected:
        return sketch
    kept = _inside(sketch)
    cells = sketch.cells[kept]
    reach = int(np.ceil(_MARGIN * bandwidth / sketch.scale.length * sketch.nodes))
    first, last = int(cells[0]) - reach, int(cells[-1]) + 1 + reach
    nodes = _FEWEST_CELLS
    while nodes < last - first:
        nodes *= 2
    if nodes >= sketch.nodes:
        return sketch
    first = int(np.clip((first + last - nodes) // 2, 0, sketch.nodes - nodes))
    finer = sketch.nodes // nodes  # offsets are in units of the grid, which is now shorter
    columns = sketch.columns
    part = Columns(
        cells - first,
        columns.counts[kept],
        columns.offsets[kept] * finer,
        *(
            (
                sketch.weights[kept],
                sketch.squared_weights[kept],
                sketch.weighted_offsets[kept] * finer,
            )
            if sketch.weighted
            else ()
        ),
    )
    scale = _PartOfScale(
        sketch.scale.forward,
        sketch.scale.inverse,
        name=sketch.scale.name,
        whole=sketch.scale,
        start=first / sketch.nodes,
        share=nodes / sketch.nodes,
    )
    return Sketch(part, nodes=nodes, scale=scale, dropped=sketch.dropped)


def _inside(sketch: Sketch) -> NDArray[np.bool_]:
    """Cells of rows that the scale does not put at infinity; all, where there are no others."""
    end = sketch.scale.margin / sketch.scale.length * sketch.nodes + 1.0
    inside = (sketch.cells > end) & (sketch.cells < sketch.nodes - end)
    return inside if inside.any() else np.ones(sketch.cells.size, dtype=bool)
