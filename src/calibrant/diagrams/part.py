"""The part of a long scale's grid where the rows are.

Scales other than the probabilities have grids that are far longer than any data. What lies within
some bandwidths of the rows is cut out as a grid of its own, so that a picture costs the same on every
scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import Columns
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch

__all__ = ["part_of"]

Floats = NDArray[np.float64]

# Beyond this many bandwidths from the rows nothing is left of them that the ends could reflect.
_MARGIN = 9.0
_FEWEST_CELLS = 256


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
