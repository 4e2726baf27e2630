"""Residuals at their places on a scale, from rows or from a sketch, laid on grids of any fineness."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.fill import (
    SQUARE_BITS,
    outline_of,
    residual_moments,
    sums_of_squares,
)
from calibrant.data.points import Points
from calibrant.data.rows import Rows
from calibrant.data.scales import WIDTHS_OF_MARGIN, Scale
from calibrant.data.sketch import Sketch
from calibrant.smoothing._nodes import (
    add_cells,
    add_points,
    add_variances,
    means_of_cells,
    outline_of_cells,
)
from calibrant.smoothing.spectrum import (
    EPSILON,
    SMALLEST_BANDWIDTH,
    Skew,
    Spectrum,
    Spread,
)

Integers = NDArray[np.int64]


class Line(NamedTuple):
    """Line with gaps left out, on which the mean absolute smoothed residual is the same.

    Attributes
    ----------
    cells : int64[m]
        Of each, how many cells lie before it on the line.
    length : int
        Cells of the line.
    margin : float
        Room around rows where something was left out, in parts of the line; infinite where nothing was.
    """

    cells: Integers
    length: int
    margin: float


def shortened(
    cells: Integers, weights: NDArray[np.float64] | Integers, nodes: int, margin: int
) -> Line:
    """The line for bandwidths of which `margin` cells are many.

    Stretches of cells with more than two margins between them do not see each other: what lies beyond a
    margin on either side of each is left out. A stretch whose rows have one outcome has residuals of one
    sign, whose smoothed sum has the same size at any bandwidth and wherever they lie: all such stretches
    of one outcome lie in the same place.

    Reflecting a kernel at a margin, or joining two of them there, moves at most the mass that is farther
    away, and so it changes the mean absolute value by at most twice that of all of them.

    Parameters
    ----------
    cells : int64[m]
        The cells with rows, in increasing order; that of a prediction of 1 is `nodes`.
    weights : [m, 2]
        Of the rows with each outcome.
    nodes : int
        Cells from 0 to 1, at both of which the kernel is rightly reflected.
    margin : int
        In cells.

    Examples
    --------
    >>> line = shortened(np.array([3, 40, 70, 71]), np.array([[1, 0], [1, 0], [2, 0], [0, 1]]), 99, 5)
    >>> line.cells, line.length
    (array([ 3,  3, 14, 15]), 21)
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(cells) > 2 * margin + 1) + 1])
    begin = cells[starts]
    end = np.minimum(np.append(cells[starts[1:] - 1], cells[-1]) + 1, nodes)
    width, stretch = end - begin, np.arange(starts.size)
    host = stretch.copy()
    seen = np.add.reduceat(weights, starts, axis=0) > 0
    for outcome in (0, 1):
        alone = np.flatnonzero(~seen[:, 1 - outcome])
        if alone.size:
            host[alone] = alone[0]
            width[alone[0]] = width[alone].max()
    own = host == stretch
    lead = min(int(begin[0]), margin)
    tail = min(nodes - int(end[-1]), margin) if own[-1] else margin
    room = np.where(own, width + 2 * margin, 0)
    first = lead + np.cumsum(room) - room
    length = lead + int(room.sum()) - 2 * margin + tail
    whole = starts.size == 1 and lead == begin[0] and tail == nodes - end[-1]
    sizes = np.diff(np.append(starts, cells.size))
    moved = cells + np.repeat(first[host] - begin, sizes)
    return Line(moved, length, math.inf if whole else margin / length)


Floats = NDArray[np.float64]

SAMPLE = 1 << 14
"""Rows from which the starting bandwidth is guessed."""
SAMPLED_CELLS = 1 << 11
"""Cells of a sketch, likewise."""
ROWS_WORTH_A_CELL = 32
"""So many rows are summed up in cells and laid from there in half the time that laying each of them takes."""
MOST_LOG2_SUMMED = 16
"""Of those cells: a table of more does not stay in the cache."""
WIDTHS_OF_KERNEL = 8.0
"""Bandwidths that a kernel covers."""
WHOLE = 0.75
"""Rows that would need a window wider than this are given the whole of [0, 1]."""
SMALLEST_SIZE = 1e-3
"""Of residuals: certain predictions that never fail need no fine grid."""


class RowResiduals:
    """Residuals of rows on the probability scale.

    The grid covers [0, 1], or only a window around the rows where they lie close together: the kernel of
    a narrow bandwidth does not reach the ends of a wider one.

    Parameters
    ----------
    pairs : Rows
        Rows, checked or not: they are checked as they are read.
    bandwidth : float, optional
        The only one that will be asked for.
    """

    narrowest = 0.0

    def __init__(self, pairs: Rows, bandwidth: float | None = None) -> None:
        self._pairs = pairs
        step = max(1, pairs.n // SAMPLE)
        seen = outline_of(pairs, step)
        widest = seen.absolute if bandwidth is None else bandwidth
        self.size = seen.absolute
        self.guess = starting_bandwidth(
            seen.high - seen.low,
            seen.absolute,
            pairs.n,
            abs(seen.bias) if step == 1 else 0.0,
            (seen.coarse, pairs.n / step),
        )
        self._sums: Floats | None = None
        self._exact = False
        self._range = seen.low, seen.high
        self.narrow(widest)
        if step > 1 and self.length < 1.0:
            seen = outline_of(pairs)
            self._range = seen.low, seen.high
            self.narrow(max(widest, seen.absolute if bandwidth is None else bandwidth))

    def narrow(self, widest: float) -> None:
        """Leave no more room around the rows than bandwidths up to `widest` need."""
        (low, high), margin = self._range, WIDTHS_OF_MARGIN * max(widest, SMALLEST_BANDWIDTH)
        start, stop = max(0.0, low - margin), min(1.0, high + margin)
        whole = not stop - start < WHOLE
        self._start, self.length = (0.0, 1.0) if whole else (start, stop - start)
        # At ends that are 0 or 1 the kernel is rightly reflected.
        before = low - start if start > 0.0 else math.inf
        after = stop - high if stop < 1.0 else math.inf
        self._margin = math.inf if whole else min(before, after) / self.length

    def spectrum(self, cells: int) -> Spectrum:
        """Read the rows: the first that breaks a rule is refused.

        Many rows are summed up in cells first, in half the time; if what that leaves open is too much,
        they are read again.
        """
        pairs, skew = self._pairs, None
        total, summands = float(pairs.n), pairs.n
        # Four to a cell of the grid at least, or the bound would hardly do; more where they cost little.
        finer = math.ceil(math.log2(4.0 * cells / self.length))
        log2_summed = max(finer, min(12, pairs.n.bit_length() - 8))
        many = pairs.n >= ROWS_WORTH_A_CELL * max(4 * cells, 1 << log2_summed)
        if many and log2_summed <= MOST_LOG2_SUMMED and not (self._exact or pairs.fractional):
            moments, absolute, summands, skew = self._from_sums(cells, log2_summed)
        else:
            moments, total, absolute = residual_moments(pairs, cells, self._start, self.length)
        return Spectrum.of(
            moments,
            1.0 / total,
            self.length,
            absolute / total,
            summands=summands,
            position=2.0 * EPSILON / self.length,
            margin=self._margin,
            spread=skew,
            window=self.length,
        )

    def _from_sums(self, cells: int, log2_cells: int) -> tuple[Floats, float, int, Skew]:
        """Moments, Σ|p - y|, how many numbers were added up at most, and what the sums leave open."""
        n, slots = self._pairs.n, 2 * ((1 << log2_cells) + 1)
        if self._sums is None or self._sums.shape[0] < slots:
            self._sums = sums_of_squares(self._pairs, log2_cells)
        slots = self._sums.shape[0]
        moments, width = np.zeros((cells, 8)), 1.0 / (slots // 2 - 1)
        absolute, third, third_mass, fourth, fourth_mass = add_variances(
            self._sums, 2.0**SQUARE_BITS, self._start, self.length, moments
        )
        unit = width * 2.0**-SQUARE_BITS
        skew = Skew(width, third / n, third_mass / n, fourth / n, fourth_mass / n, unit)
        return moments, absolute, 2 * slots, skew

    def widen(self, bandwidth: float) -> bool:
        """No fixed point needs more room than that for the mean absolute residual."""
        return False

    def refine(self) -> bool:
        """Read the rows themselves from now on; False where that is so already."""
        again = self._sums is not None and not self._exact
        self._exact, self._sums = True, None
        return again

    def cancelled(self) -> tuple[float, float, float] | None:
        """|Σ residuals|, Σ|their sums, prediction by prediction| and the rounding of both."""
        return _cancelled(self._pairs)


class LineResiduals:
    """Residuals of rows on a scale of their own, which starts where they start.

    What lies in a gap too wide to be smoothed across is left out. Predictions at infinity (exactly 0 or
    1 under a logit) stand alone, beyond all others, so that they add the absolute value of their summed
    residual and nothing else.

    Parameters
    ----------
    pairs : Rows
        Checked rows.
    scale : Scale
        Where the rows lie, on the real line.
    bandwidth : float, optional
        The only one that will be asked for.
    """

    narrowest = 0.0

    def __init__(self, pairs: Rows, scale: Scale, bandwidth: float | None = None) -> None:
        self._pairs = pairs
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        self._residual: Floats = (pairs.p - pairs.y) * weight / weight.sum()
        self.size = float(np.abs(self._residual).sum())
        self._z = _places(pairs, scale)
        self._order = np.argsort(self._z, kind="stable")
        sorted_z = self._z[self._order]
        with np.errstate(invalid="ignore"):  # neighbours at the same infinity
            self._gaps = np.nan_to_num(np.diff(sorted_z), nan=0.0)
        # No fixed point lies beyond the mean absolute residual.
        self.narrow(max(self.size, SMALLEST_BANDWIDTH) if bandwidth is None else bandwidth)
        bias = abs(float(self._residual.sum()))
        self.guess = starting_bandwidth(self.length, self.size, pairs.n, bias)

    def narrow(self, widest: float) -> None:
        """Leave no more room at the ends and in gaps than bandwidths up to `widest` need."""
        margin = WIDTHS_OF_MARGIN * widest
        steps = np.concatenate([[0.0], np.cumsum(np.minimum(self._gaps, 2.0 * margin))])
        self.length = float(steps[-1]) + 2.0 * margin
        self._margin = margin / self.length
        self._position: Floats = np.empty_like(steps)
        self._position[self._order] = (steps + margin) / self.length

    def spectrum(self, cells: int) -> Spectrum:
        """Lay the residuals onto a grid, and transform."""
        moments = np.zeros((cells, 8))
        size = add_points(self._position, self._residual, moments)
        n, position = self._pairs.n, 8.0 * EPSILON
        return Spectrum.of(
            moments, 1.0, self.length, size, summands=n, position=position, margin=self._margin
        )

    def widen(self, bandwidth: float) -> bool:
        """No fixed point needs more room than that for the mean absolute residual."""
        return False

    def refine(self) -> bool:
        """The rows are at hand."""
        return False

    def cancelled(self) -> tuple[float, float, float] | None:
        """|Σ residuals|, Σ|their sums, prediction by prediction| and the rounding of both."""
        return _cancelled(self._pairs)


class SketchResiduals:
    """Residuals of a sketch's cells, each at its mean and at both its ends (see `Spread`).

    On the probability scale the grid covers only what kernels reach (see `shortened`).

    Parameters
    ----------
    sketch : Sketch
        The rows.
    bandwidth : float, optional
        The only one that will be asked for.
    """

    def __init__(self, sketch: Sketch, bandwidth: float | None = None) -> None:
        self._sketch = sketch
        scale, cells = sketch.scale, sketch.cells
        self.narrowest = max(SMALLEST_BANDWIDTH, 1.0 / sketch.nodes) * scale.length
        weights: Floats | Integers = sketch.counts
        offsets: Floats | Integers = sketch.offsets
        if sketch.weighted:
            weights, offsets = sketch.weights, sketch.weighted_offsets
        self._sums = weights, offsets, 2.0**sketch.offset_bits
        self._cells, self.length = cells, scale.length
        self._margin = math.inf if scale.reflected else scale.margin / scale.length
        self._predictions = np.empty((0, 4)) if scale.reflected else self._at_means_and_ends()
        step = max(1, cells.size // SAMPLED_CELLS)
        bias, self.size, coarse = outline_of_cells(
            cells, weights, self._predictions, float(sketch.nodes), step
        )
        width = scale.length / sketch.nodes
        reach = width * (min(int(cells[-1]) + 1, sketch.nodes) - int(cells[0]))
        if cells.size <= SAMPLED_CELLS:  # of more hardly any is far from all others
            calm = starting_bandwidth(reach, self.size, sketch.n)
            near = np.minimum(np.diff(cells), WIDTHS_OF_KERNEL * calm / width)
            reach = min(reach, width * float(near.sum() + 1.0))
        mean = abs(bias) if step == 1 else 0.0
        bins = coarse, sketch.n / step
        self.guess = starting_bandwidth(reach, self.size, sketch.n, mean, bins)
        self.narrow(self.guess if bandwidth is None else bandwidth)

    def _at_means_and_ends(self) -> Floats:
        """Predictions at the mean of each (cell, label), and at both ends of each cell: [m, 4]."""
        sketch, cells = self._sketch, self._sketch.cells
        places = np.empty((cells.size, 4))
        means = np.empty((cells.size, 2))
        means_of_cells(cells, *self._sums, float(sketch.nodes), means)
        places[:, :2], places[:, 2], places[:, 3] = means, cells, cells + 1
        places[:, 2:] /= sketch.nodes
        return np.asarray(sketch.scale.prediction(places))

    def narrow(self, widest: float) -> None:
        """Leave no more room around the rows than bandwidths up to `widest` need."""
        sketch = self._sketch
        if not sketch.scale.reflected:
            return
        margin = WIDTHS_OF_MARGIN * max(widest, SMALLEST_BANDWIDTH) * sketch.nodes
        self._cells, self.length, self._margin = sketch.cells, 1.0, math.inf
        self._predictions = np.empty((0, 4))
        if margin < WHOLE * sketch.nodes:
            line = shortened(sketch.cells, self._sums[0], sketch.nodes, math.ceil(margin))
            if line.length < WHOLE * sketch.nodes:
                self._cells, length, self._margin = line
                self.length = length / sketch.nodes
                self._predictions = self._at_means_and_ends()

    def spectrum(self, cells: int) -> Spectrum:
        """Lay the cells onto a grid, and transform."""
        sketch, scale = self._sketch, self._sketch.scale
        moments = np.zeros((cells, 8))
        window = self.length / scale.length
        total, absolute, spread, mass = add_cells(
            self._cells,
            sketch.counts,
            *self._sums,
            sketch.weighted,  # a soft row is counted once, but lies under both labels
            float(sketch.nodes),
            self._predictions,
            window,
            moments,
        )
        a, b, c, _ = scale.slopes
        slopes = a * scale.length, b * scale.length**2, c * scale.length**3
        cell = 1.0 / sketch.nodes
        unknown = Spread(cell, spread / total, mass / total, slopes, 2.0**-FRACTION_BITS)
        return Spectrum.of(
            moments,
            1.0 / total,
            self.length,
            absolute / total,
            summands=sketch.n if sketch.weighted else 4 * sketch.cells.size,
            position=2.0 * EPSILON / window,
            margin=self._margin,
            spread=unknown,
            window=window,
        )

    def widen(self, bandwidth: float) -> bool:
        """Leave the room that a wider bandwidth needs; False where nothing is left out."""
        if self._margin == math.inf or not self._sketch.scale.reflected:
            return False
        self.narrow(2.0 * bandwidth)
        return True

    def refine(self) -> bool:
        """A sketch has no rows to be read again."""
        return False

    def cancelled(self) -> None:
        """A sketch does not know where exactly its rows meet."""


def starting_bandwidth(
    reach: float, size: float, n: int, bias: float = 0.0, bins: tuple[float, float] = (0.0, 1.0)
) -> float:
    """Bandwidth below which the fixed point hardly lies.

    For predictions with density p, SmoothECE of calibrated rows is about (I² / (π^{3/2} n))^{1/3} with
    I = ∫ √(p(t) t(1-t)) dt; I² is at most their range times E[f(1-f)], half the mean absolute residual. It is
    no less than the absolute mean residual. Nor is it much less than the error in eight bins of some rows, if
    that is twice what calibrated rows show, Σ √(2/π · variance), and within a bin.

    Parameters
    ----------
    reach : float
        Range of the rows.
    size : float
        Mean absolute residual.
    n : int
        Number of rows.
    bias : float
        Absolute mean residual, where it is known.
    bins : float, float
        Error in eight bins, and of how many rows.
    """
    noise = 0.75 * math.cbrt(max(reach, 1e-3) * 0.5 * max(size, SMALLEST_SIZE) / (5.57 * n))
    error, rows = bins
    calm = 0.8 * math.sqrt(8 * 0.5 * size / rows)
    return max(noise, bias, 0.6 * min(error, 0.1) if error > 2.0 * calm else 0.0)


def _cancelled(pairs: Rows) -> tuple[float, float, float]:
    residuals = Points.of(pairs).residuals
    rounding = EPSILON * (4.0 + pairs.n)
    return abs(float(residuals.sum())), float(np.abs(residuals).sum()), rounding


def _places(pairs: Rows, scale: Scale) -> Floats:
    """z of each row; log-odds that came as such do not pass through probabilities."""
    if pairs.form == "logit" and scale.logits_per_unit is not None:
        return np.asarray(pairs.raw_prob, dtype=np.float64) / scale.logits_per_unit
    return scale.z(pairs.p)
