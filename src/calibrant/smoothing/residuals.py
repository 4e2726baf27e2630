"""Residuals at their places on a scale, from rows or from a sketch, laid on grids of any fineness."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibrant.data.atoms import Atoms
from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.fill import outline_of, residual_moments, sums_of_squares
from calibrant.data.pairs import Pairs
from calibrant.data.scales import WIDTHS_OF_MARGIN, Scale
from calibrant.data.sketch import Sketch
from calibrant.smoothing._nodes import add_cells, add_points, add_variances, means_of_cells
from calibrant.smoothing._solver import Transform
from calibrant.smoothing.spectrum import EPSILON, BinningError, Skew, Spectrum, Spread

__all__ = ["LineResiduals", "RowResiduals", "SketchResiduals"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SAMPLE = 1 << 14
SAMPLED_CELLS = 1 << 11
ROWS_WORTH_SUMMING = 1 << 21
WHOLE = 0.75
"""Rows that would need a window wider than this are given the whole of [0, 1]."""
SMALLEST_WIDTH = 1e-5
SMALLEST_SIZE = 1e-3
"""Of residuals: certain predictions that never fail need no fine grid."""


class RowResiduals:
    """Residuals of rows on the probability scale.

    The grid covers [0, 1], or only a window around the rows where they lie close together: the kernel of
    a narrow bandwidth does not reach the ends of a wider one.

    Parameters
    ----------
    pairs : Pairs
        Rows, checked or not: they are checked as they are read.
    bandwidth : float, optional
        The only one that will be asked for.
    """

    finest = 0.0

    def __init__(self, pairs: Pairs, bandwidth: float | None = None) -> None:
        self._pairs = pairs
        step = max(1, pairs.n // SAMPLE)
        seen = outline_of(pairs, step)
        widest = seen.absolute if bandwidth is None else bandwidth
        self.size = seen.absolute
        self.guess = max(abs(seen.bias), noise(seen.high - seen.low, seen.absolute, pairs.n))
        if step > 1 and _window(seen.low, seen.high, widest)[1] < 1.0:
            seen = outline_of(pairs)
            widest = max(widest, seen.absolute if bandwidth is None else bandwidth)
        self._range = seen.low, seen.high
        self._sums: Floats | None = None
        self._exact = False
        self.narrow(widest)

    def narrow(self, widest: float) -> None:
        """Leave no more room around the rows than bandwidths up to `widest` need."""
        self._start, self.length = _window(*self._range, widest)

    def spectrum(self, cells: int) -> Spectrum:
        """Read the rows: the first that breaks a rule is refused.

        Many rows are summed up in cells first, in half the time; if what that leaves open is too much,
        they are read again.
        """
        margin = _margin(self._start, self.length, self._range)
        position = 2.0 * EPSILON / self.length
        if self._pairs.n > ROWS_WORTH_SUMMING and not self._pairs.fractional and not self._exact:
            moments, total, error = self._from_sums(cells)
        else:
            moments, total, absolute = residual_moments(
                self._pairs, cells, self._start, self.length
            )
            error = BinningError(cells, absolute / total, summands=self._pairs.n)
        error = error._replace(position=position, margin=margin, window=self.length)
        return Spectrum(Transform(moments, 1.0 / total), error, self.length)

    def _from_sums(self, cells: int) -> tuple[Floats, float, BinningError]:
        n, log2_cells = self._pairs.n, 15 if self._pairs.n < 1 << 25 else 16
        if self._sums is None:
            self._sums = sums_of_squares(self._pairs, log2_cells)
        moments = np.zeros((cells, 8))
        width = 2.0 ** (FRACTION_BITS - log2_cells)
        absolute, third, third_mass, fourth, fourth_mass = add_variances(
            self._sums, width, self._start, self.length, moments
        )
        skew = Skew(
            2.0**-log2_cells,
            third / n,
            third_mass / n,
            fourth / n,
            fourth_mass / n,
            2.0**-FRACTION_BITS,
        )
        summands = self._sums.shape[0] * 2
        return moments, float(n), BinningError(cells, absolute / n, summands, spread=skew)

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
    pairs : Pairs
        Checked rows.
    scale : Scale
        Where the rows lie, on the real line.
    bandwidth : float, optional
        The only one that will be asked for.
    """

    finest = 0.0

    def __init__(self, pairs: Pairs, scale: Scale, bandwidth: float | None = None) -> None:
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
        self.narrow(max(self.size, SMALLEST_WIDTH) if bandwidth is None else bandwidth)
        bias = abs(float(self._residual.sum()))
        self.guess = max(bias, noise(self.length, self.size, pairs.n))

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
        error = BinningError(
            cells, size, summands=self._pairs.n, position=8.0 * EPSILON, margin=self._margin
        )
        return Spectrum(Transform(moments, 1.0), error, self.length)

    def refine(self) -> bool:
        """The rows are at hand."""
        return False

    def cancelled(self) -> tuple[float, float, float] | None:
        """|Σ residuals|, Σ|their sums, prediction by prediction| and the rounding of both."""
        return _cancelled(self._pairs)


class SketchResiduals:
    """Residuals of a sketch's cells, each at its mean and at both its ends (see `Spread`)."""

    def __init__(self, sketch: Sketch, bandwidth: float | None = None) -> None:
        self._sketch = sketch
        scale, cells = sketch.scale, sketch.cells
        self.finest = 1.0 / sketch.nodes
        self._range = float(cells[0]) / sketch.nodes, min(float(cells[-1] + 1) / sketch.nodes, 1.0)
        weights: Floats | Integers = sketch.counts
        offsets: Floats | Integers = sketch.offsets
        if sketch.weighted:
            weights, offsets = sketch.weights, sketch.weighted_offsets
        self._sums = weights, offsets, 2.0**sketch.offset_bits
        self._start, self.length = 0.0, scale.length
        self._predictions = np.empty((0, 4))
        some = slice(None, None, max(1, cells.size // SAMPLED_CELLS))
        about = cells[some] / sketch.nodes
        if not scale.reflected:
            means = np.empty((cells.size, 2))
            means_of_cells(cells, *self._sums, float(sketch.nodes), means)
            ends = np.stack([cells, cells + 1], axis=1) / sketch.nodes
            self._predictions = scale.prediction(np.concatenate([means, ends], axis=1))
            about = self._predictions[some, 2]
        negative, positive = weights[some].astype(np.float64).T
        too_high, too_low = float(negative @ about), float(positive @ (1.0 - about))
        total = float(negative.sum() + positive.sum()) or 1.0
        self.size = (too_high + too_low) / total
        reach = scale.length * (self._range[1] - self._range[0])
        self.guess = max(abs(too_high - too_low) / total, noise(reach, self.size, sketch.n))

    def narrow(self, widest: float) -> None:
        """Leave no more room around the rows than bandwidths up to `widest` need."""
        if self._sketch.scale.reflected:
            self._start, self.length = _window(*self._range, widest)

    def spectrum(self, cells: int) -> Spectrum:
        """Lay the cells onto a grid, and transform."""
        sketch, scale = self._sketch, self._sketch.scale
        moments = np.zeros((cells, 8))
        window = self.length / scale.length
        total, absolute, spread, mass = add_cells(
            sketch.cells,
            sketch.counts,
            *self._sums,
            sketch.weighted,  # a soft row is counted once, but lies under both labels
            float(sketch.nodes),
            self._predictions,
            self._start,
            window,
            moments,
        )
        slopes = (
            scale.steepness * scale.length,
            scale.curvature * scale.length**2,
            scale.higher_slopes[0] * scale.length**3,
        )
        unknown = Spread(self.finest, spread / total, mass / total, slopes, 2.0**-FRACTION_BITS)
        margin = scale.margin / scale.length
        if scale.reflected:
            margin = _margin(self._start, self.length, self._range)
        error = BinningError(
            cells,
            absolute / total,
            summands=sketch.n if sketch.weighted else 4 * sketch.cells.size,
            position=2.0 * EPSILON / window,
            margin=margin,
            spread=unknown,
            window=window,
        )
        return Spectrum(Transform(moments, 1.0 / total), error, self.length)

    def refine(self) -> bool:
        """A sketch has no rows to be read again."""
        return False

    def cancelled(self) -> None:
        """A sketch does not know where exactly its rows meet."""


def noise(reach: float, size: float, n: int) -> float:
    """A bandwidth that calibrated rows hardly stay below: less than the noise of n of them.

    For predictions with density p, SmoothECE of calibrated rows is about (I² / (π^{3/2} n))^{1/3} with
    I = ∫ √(p(t) t(1-t)) dt; I² is at most their range times E[f(1-f)], half the mean absolute residual.
    """
    return 0.6 * math.cbrt(max(reach, 1e-3) * 0.5 * max(size, SMALLEST_SIZE) / (5.57 * n))


def _window(low: float, high: float, widest: float) -> tuple[float, float]:
    """Start and length of the part of [0, 1] that kernels of rows between `low` and `high` reach."""
    margin = WIDTHS_OF_MARGIN * max(widest, SMALLEST_WIDTH)
    start, stop = max(0.0, low - margin), min(1.0, high + margin)
    return (start, stop - start) if stop - start < WHOLE else (0.0, 1.0)


def _margin(start: float, length: float, reach: tuple[float, float]) -> float:
    """Room at ends of a window that are not 0 or 1, where the kernel is rightly reflected."""
    before = reach[0] - start if start > 0.0 else math.inf
    after = start + length - reach[1] if start + length < 1.0 else math.inf
    return min(before, after) / length


def _cancelled(pairs: Pairs) -> tuple[float, float, float]:
    residuals = Atoms.from_pairs(pairs).residuals
    rounding = EPSILON * (4.0 + pairs.n)
    return abs(float(residuals.sum())), float(np.abs(residuals).sum()), rounding


def _places(pairs: Pairs, scale: Scale) -> Floats:
    """z of each row; log-odds that came as such do not pass through probabilities."""
    if pairs.form == "logit" and scale.logits_per_unit is not None:
        return np.asarray(pairs.raw_prob, dtype=np.float64) / scale.logits_per_unit
    return scale.z(pairs.p)
