"""Residuals of a sketch on a grid; smECE of many of them at once.

smECE depends on the data through one function of the grid alone, the sum of f - y on each node. So smECE of
many parts of the rows is one batch of cosine transforms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Stacked
from calibrant.smoothing._solver import series_sizes
from calibrant.smoothing.curves import OnNodes, mesh_of_series, smoothed_series
from calibrant.smoothing.spectrum import cosine_coefficients

__all__ = [
    "ResidualGrid",
    "Strayed",
    "cell_positions",
    "cell_predictions",
    "nodes_of",
    "rows_on_nodes",
]

ROWS_AT_ONCE = 1 << 20

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MESH_PER_BANDWIDTH = 5
_MARGIN = 8.0
_NARROWEST = 0.25
_VALUES_AT_ONCE = 1 << 19
_MOST_STEPS = 12
_CONVERGED = 1e-4


# A grid of so many cells to a bandwidth widens the kernel by less than half a per cent.
_CELLS_PER_BANDWIDTH = 6
_FEWEST_CELLS = 64


def coarse_sketch(sketch: Sketch, bandwidth: float) -> Sketch:
    """Sketch of the rows on the coarsest grid that smoothing at `bandwidth` does not notice."""
    cells = _FEWEST_CELLS
    while cells < sketch.nodes and cells * bandwidth < _CELLS_PER_BANDWIDTH * sketch.scale.length:
        cells *= 2
    return sketch if cells >= sketch.nodes else sketch.rebin(cells)


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


class Strayed(NamedTuple):
    """Sums over the rows of a grid: what they weigh, and how far outcomes stray from predictions f.

    Attributes
    ----------
    total, events : float
        Weight of all rows, and of those with the event.
    expected, bias, gap : float
        Means of f, of f - y, and of f - y where f is above ½ less f - y where it is below.
    above : float
        The part of the weight whose f is above ½.
    negative, positive : float
        Σw² of rows without and with the event.
    second, calibrated : float
        Σw² (f - y)², and what it is on average if calibrated: Σw² f(1 - f).
    of_bias, of_gap : float
        Σw² (r - r̄)² of the residuals whose means are `bias` and `gap`.
    variance, third : float
        Σw² (y - ρf)², and its cube, with ρ the events over the expected ones.
    """

    total: float
    events: float
    expected: float
    bias: float
    gap: float
    above: float
    negative: float
    positive: float
    second: float
    calibrated: float
    of_bias: float
    of_gap: float
    variance: float
    third: float

    @property
    def units(self) -> float:
        """The effective number of rows, and at most that of rows of the heavier outcome.

        Where the weights depend on the outcome, one of its rows may fail: there are as many units as there
        would be rows, had all of them its weight.
        """
        labels = (self.negative, self.total - self.events), (self.positive, self.events)
        one = max(squares / weight for squares, weight in labels if weight > 0.0)
        return min(self.total**2 / (self.negative + self.positive), self.total / one)


@dataclass(frozen=True, eq=False)
class ResidualGrid:
    """The part of a coarse grid where there are rows, with room to smooth around them.

    Where all predictions are small, say, the rest of [0, 1] need not be transformed: at eight
    bandwidths from the nearest row the kernel has vanished, and reflecting there changes nothing.
    Nor does the middle of a gap that is many bandwidths wide: predictions of 0 and 1 alone, or at
    both ends of a logit scale, take a grid as short as their bandwidth is narrow.

    Attributes
    ----------
    sketch : Sketch
        The rows on a grid just fine enough for the bandwidth.
    first : int
        The node of the sketch's grid at which this part begins.
    cells : int
        Number of cells of this part, a power of two.
    length : float
        What they cover, in units of the scale.
    beyond, skipped : int64[k]
        From each of these cells of the sketch's grid on, so many cells before them are left out.
    """

    sketch: Sketch
    first: int
    cells: int
    length: float
    beyond: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    skipped: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, sketch: Sketch, bandwidth: float) -> ResidualGrid:
        """The grid for smoothing at `bandwidth`, in units of the scale, or at wider ones."""
        coarse = coarse_sketch(sketch, bandwidth)
        margin = int(np.ceil(_MARGIN * bandwidth / sketch.scale.length * coarse.nodes))
        low = max(0, int(coarse.cells[0]) - margin)
        high = min(coarse.nodes, int(coarse.cells[-1]) + 1 + margin)
        cells = min(_power_of_two(high - low), coarse.nodes)
        beyond, skipped = _cuts(coarse.cells, high - low, margin)
        if beyond.size:
            cells = high - low - int(skipped[-1])
        first = low if beyond.size else min(low, coarse.nodes - cells)
        length = sketch.scale.length * cells / coarse.nodes
        return cls(coarse, first, cells, length, beyond, skipped)

    def places(self, cells: Integers) -> Integers:
        """Places of the cells of the sketch's grid in this one."""
        if not self.beyond.size:
            return cells - self.first
        stretch = np.searchsorted(self.beyond, cells, side="right")
        return np.asarray(cells - self.first - np.append(0, self.skipped)[stretch])

    @cached_property
    def predictions(self) -> Floats:
        """Mean prediction of the rows in each non-empty cell."""
        return cell_predictions(self.sketch)

    @cached_property
    def strayed(self) -> Strayed:
        """Sums over the rows."""
        weights, squared = self.sketch.weights, self.sketch.squared_weights
        f, total = self.predictions, float(weights.sum())
        mass, events, side = over_outcomes(weights), float(weights[:, 1].sum()), np.sign(f - 0.5)
        residual = mass * f - weights[:, 1]
        expected, bias = float(mass @ f) / total, float(residual.sum()) / total
        gap = float(residual @ side) / total
        ratio = events / total / expected if expected > 0.0 else 0.0
        r = np.stack([f, f - 1.0], axis=1)
        y = np.arange(2.0) - ratio * f[:, None]
        chance = np.clip(f, 0.0, 1.0)
        negative, positive = squared.sum(axis=0).tolist()
        return Strayed(
            total,
            events,
            expected,
            bias,
            gap,
            float(mass[f > 0.5].sum()) / total,
            negative,
            positive,
            float((squared * r**2).sum()),
            float(over_outcomes(squared) @ (chance * (1.0 - chance))),
            float((squared * (r - bias) ** 2).sum()),
            float((squared * (r * side[:, None] - gap) ** 2).sum()),
            float((squared * y**2).sum()),
            float((squared * y**3).sum()),
        )

    @cached_property
    def right_share(self) -> Floats:
        """The share of each non-empty cell's rows that goes to the node on its right."""
        mass, moment = (
            over_outcomes(self.sketch.weights),
            over_outcomes(self.sketch.weighted_offsets),
        )
        offset = np.divide(moment, mass, out=np.zeros_like(mass), where=mass > 0)
        share: Floats = offset * 2.0**-self.sketch.offset_bits
        return share

    def on_nodes(self, per_cell: Floats) -> Floats:
        """Sums per non-empty cell [..., m] split over the two nodes next to the cell's rows."""
        nodes = np.zeros((*per_cell.shape[:-1], self.cells + 2))
        at = self.places(self.sketch.cells)
        right = per_cell * self.right_share
        if at[-1] - at[0] + 1 == at.size:  # no gap: slices are many times faster than indices
            nodes[..., at[0] : at[-1] + 1] = per_cell - right
            nodes[..., at[0] + 1 : at[-1] + 2] += right
        else:
            nodes[..., at] = per_cell - right
            nodes[..., at + 1] += right
        return nodes[..., :-1]

    @cached_property
    def observed(self) -> Floats:
        """Mean of f - y on the nodes; its sum is E[f - y]."""
        weights = self.sketch.weights
        mass = over_outcomes(weights)
        return self.on_nodes((mass * self.predictions - weights[:, 1]) / mass.sum())

    def smoothed(self, on_nodes: Floats, bandwidth: float) -> Floats:
        """Density on the nodes of what lies there, smoothed."""
        width = self._resolved(bandwidth)
        if on_nodes.ndim == 1:
            return OnNodes(on_nodes).values(width, self.cells)
        return smoothed_series(cosine_coefficients(on_nodes), width, self.cells)

    def smoothed_residual(self, bandwidth: float) -> Floats:
        """Smoothed residual of the rows."""
        return self._rows.values(self._resolved(bandwidth), self.cells)

    def errors(self, residuals: Floats, bandwidth: float) -> Floats:
        """smECE at one bandwidth of residuals [..., cells + 1]."""
        coefficients = cosine_coefficients(residuals)
        return _errors(coefficients, np.full(residuals.shape[:-1], self._resolved(bandwidth)))

    @cached_property
    def _rows(self) -> OnNodes:
        return OnNodes(self.observed)

    def error(self, bandwidth: float) -> float:
        """smECE of the rows at a bandwidth."""
        width = self._resolved(bandwidth)
        mesh = mesh_of_series(self.cells + 1, width, _MESH_PER_BANDWIDTH)
        return self._rows.mean_size(width, mesh)

    def _resolved(self, bandwidth: float) -> float:
        """The bandwidth in units of this grid: a quarter of a cell is as narrow as a point."""
        return max(bandwidth / self.length, _NARROWEST / self.cells)

    def fixed_points(self, residuals: Floats, *, start: float) -> Floats:
        """σ* = smECE_σ* of each of the residuals [b, cells + 1].

        Between two evaluations log smECE is taken to be linear in log σ; every evaluation brackets
        the fixed point, since smECE_σ falls with σ. Less than a quarter of a cell is not resolved.
        """
        some = max(1, _VALUES_AT_ONCE // (self.cells + 1))
        if len(residuals) > some:
            parts = [residuals[k : k + some] for k in range(0, len(residuals), some)]
            return np.concatenate([self.fixed_points(part, start=start) for part in parts])
        coefficients = cosine_coefficients(residuals)
        low = np.maximum(np.abs(coefficients[..., 0]), _NARROWEST * self.length / self.cells)
        high = np.full(low.shape, np.inf)
        sigma = np.maximum(start, low)
        steepness = np.full(low.shape, 0.25)
        before = None
        for _ in range(_MOST_STEPS):
            value = np.maximum(_errors(coefficients, sigma / self.length), 1e-300)
            low = np.maximum(low, np.minimum(value, sigma))
            high = np.minimum(high, np.maximum(value, sigma))
            gap = np.log(value / sigma)
            if np.all((np.abs(gap) <= _CONVERGED) | (high <= low * (1 + _CONVERGED))):
                break
            if before is not None:
                steepness = _steepness(before, (sigma, value), steepness)
            before = (sigma, value)
            sigma = np.clip(sigma * np.exp(gap / (1.0 + steepness)), low, high)
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


def _power_of_two(cells: int) -> int:
    return 1 << max(6, int(np.ceil(np.log2(max(cells, 1)))))


def _cuts(cells: Integers, span: int, margin: int) -> tuple[Integers, Integers]:
    """Cells after each gap that is shortened, and how many are left out before them.

    So many are, in all, that a power of two is left of the span: none, where that is not less than
    without. The wider bandwidths that are asked of a grid find room for four times the margin.
    """
    nothing = np.empty(0, dtype=np.int64)
    gaps = np.diff(cells)
    at = np.flatnonzero(gaps > 4 * margin + 1)
    room = gaps[at] - (4 * margin + 1)
    left = _power_of_two(span - int(room.sum()))
    if left >= span:
        return nothing, nothing
    excess = left - (span - int(room.sum()))  # given back to the first gaps
    room = room - np.clip(excess - (np.cumsum(room) - room), 0, room)
    at, room = at[room > 0], room[room > 0]
    return cells[at + 1] - margin, np.cumsum(room)


def _steepness(
    before: tuple[Floats, Floats], now: tuple[Floats, Floats], otherwise: Floats
) -> Floats:
    """-d log smECE / d log σ between two evaluations, where they are apart."""
    moved = np.log(now[0] / before[0])
    apart = np.abs(moved) > 1e-9
    fall = np.log(before[1] / now[1])
    slope = np.divide(fall, moved, out=otherwise.copy(), where=apart)
    return np.clip(slope, 0.0, 4.0)


def _errors(coefficients: Floats, bandwidths: Floats) -> Floats:
    """smECE at one bandwidth, in units of the grid, for each row of coefficients [..., K]."""
    known = coefficients.shape[-1]
    mesh = mesh_of_series(known, float(bandwidths.min()), _MESH_PER_BANDWIDTH)
    sizes = series_sizes(coefficients.reshape(-1, known), bandwidths.reshape(-1), mesh)
    return sizes.reshape(bandwidths.shape)


def nodes_of(grid: ResidualGrid, position: Floats) -> tuple[Integers, Floats]:
    """The node on the left of each row, and the part of the row that goes to the one on its right."""
    place = position * grid.sketch.nodes
    cell = place.astype(np.int64)
    place = place - cell + grid.places(cell)
    node = np.minimum(place.astype(np.int64), grid.cells - 1)
    return node, np.asarray(place - node)


def rows_on_nodes(
    grid: ResidualGrid, position: Floats, values: Floats, block: Integers, blocks: int
) -> Floats:
    """Sums of the rows' values on the nodes of the grid, apart by block: [blocks, cells + 1]."""
    size = blocks * (grid.cells + 1)
    sums = np.zeros(size)
    for start in range(0, position.size, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        node, right = nodes_of(grid, position[piece])
        at = block[piece] * (grid.cells + 1) + node
        sums += np.bincount(at, weights=values[piece] * (1.0 - right), minlength=size)
        sums += np.bincount(at + 1, weights=values[piece] * right, minlength=size)
    return sums.reshape(blocks, grid.cells + 1)
