"""The test of calibration and the interval of SmoothECE: one construction.

Let r be the residual measure f - y and K_s the kernel of bandwidth s, reflected at 0 and 1. For every
function w with |w| ≤ 1,

    T(r) = |⟨r, K_s w⟩| ≤ smECE_s(r) = ‖K_s r‖₁,

and smECE_s falls with s. So a lower confidence bound m of any such T is one of SmoothECE, which is at least
min(s, m). Four families of them are used, each at a geometric grid of scales from half of the noise floor up:

- directions, w = 1, 1 - 2f and log-odds: calibration in the large, Spiegelhalter's test, Cox's slope;
- boxes, w = indicator of a dyadic interval: errors in one place;
- waves, w = cos(πku): errors that change their sign;
- smECE_s itself: everything else.

Boxes and waves are functions of u, the cumulated null variance, so that each sees equally many surprises.

**Test.** Samples of r under calibration (see `null_noise`) give the null distribution of the largest
standardised statistic of each family, and so its p-value. The smallest of these is referred to its own
distribution over the samples (Westfall and Young 1993). Beyond all samples the p-value is a union bound over
the linear statistics: the normal tail at the deviation of Bernstein's inequality.

**Lower end.** With q the critical value of a family, m solves (T - m)² = q² v(m), where v goes from the
variance under calibration at m = 0 to the variance that was observed at m = T, as in Wilson's (1927) interval
for a proportion. So the lower end is above 0 exactly where p ≤ 1 - confidence. The upper end never misses a
SmoothECE below the noise floor, so the lower end has the whole level there, and half of it above.

**Upper end.** E smECE_s(r̂) ≥ smECE_s(r) by Jensen's inequality. So SmoothECE is at most the largest s with
smECE_s(r̂) + z se_s ≥ s, where se_s is the standard error of smECE_s from its influence function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.data.sketch import Sketch
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.null_noise import (
    DRAWS,
    MOST_CELLS,
    ResidualCells,
    null_variance,
    observed_variance,
    product,
)
from calibrant.inference.quantiles import normal_quantile
from calibrant.inference.residuals import cell_positions

__all__ = ["CalibrationTest", "Interval", "NoiseFloor"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Singles = NDArray[np.float32]

SCALES = 0.5 * 1.7 ** -np.arange(40.0)
"""From the widest error that a probability scale can have; adjacent scales correlate by about .9."""
FEW_DRAWS, LARGE_P = 499, 0.1
"""First draws, and the p-value above which they are enough: no usual level is near it."""
LEVELS, LEAST_SURPRISES, MANY_SURPRISES = 4, 4.0, 40.0
"""Halves to sixteenths of the rows, each with so many expected surprises, as for Pearson's χ². And as many as
the signs of residuals must have, as Kish's n, for a test of smECE_s."""
WAVES = range(2, 9)
"""One turn to four: k = 1 is nearly the direction 1 - 2f."""
LARGEST_LOG_ODDS = 6.0
"""Log-odds beyond, where events are one in 400, are set there: one row must not be the whole direction."""
REACH = 4.5
"""In bandwidths: beyond, a kernel has 1e-5 of its mass."""
DIGITS, ROUNDING = 4, 1.0 + 1e-9
"""Decimal places of standardised statistics, so that ties are ties whatever rounding does; and of ranks."""
POSITIVE = 1e-12
"""Least lower end of a rejection, which may be this close to 0."""
FAMILIES = ("directions", "boxes", "waves", "smooth")


class _Scale(NamedTuple):
    """Test functions at one bandwidth, on the cells of a grid that resolves it.

    `first` says where these cells begin among the finest ones, `kernel` [mesh, cells] holds the integrals of
    K_s over a mesh half a bandwidth wide, `functions` [cells, k] are K_s w, `family` their families, and
    `drawn` and `null` their variances under calibration (see `ResidualCells.null_variances`).
    """

    bandwidth: float
    first: Integers
    kernel: Floats
    functions: Floats
    family: Integers
    drawn: Floats
    null: Floats


class _Null(NamedTuple):
    """Statistics under calibration: the largest of each family [families, draws], the smallest p-value of the
    families [draws], both sorted, and smECE_s [draws, scales] with its mean and standard deviation.
    """

    largest: Floats
    smallest: Floats
    smooth: Floats
    mean: Floats
    deviation: Floats


@dataclass(frozen=True, eq=False)
class CalibrationTest:
    """Test of calibration with its interval for SmoothECE.

    Parameters
    ----------
    cells : ResidualCells
        Residuals of the rows, and their noise.
    scales : float64[k]
        Bandwidths of the test functions, the narrowest first.

    Examples
    --------
    >>> rows = Sketch.from_counts(p=[0.2, 0.7], n=[500, 500], events=[50, 450])
    >>> test = CalibrationTest.of(rows)
    >>> test.p_value <= 0.05 and test.lower_end(0.95) > 0
    True
    """

    cells: ResidualCells
    scales: Floats

    @classmethod
    def of(cls, sketch: Sketch, clusters: ClusterResiduals | None = None) -> CalibrationTest:
        """The test of a sketch's rows, which are independent unless clusters are given."""
        f = sketch.scale.prediction(cell_positions(sketch)).clip(0.0, 1.0)
        variance = null_variance(sketch, f) / sketch.total_weight**2
        if clusters is not None:
            rows = float(observed_variance(sketch, f).sum()) / sketch.total_weight**2
            variance = variance * clusters.inflation(rows) ** 2
        narrowest = 0.5 * _approximate_floor(sketch, variance)
        k = min(int(np.searchsorted(-SCALES, -narrowest)), SCALES.size - 1)
        while k > 0 and _occupied(sketch, _nodes(sketch, SCALES[k])) > MOST_CELLS:
            k -= 1
        cells = ResidualCells.of(sketch, _nodes(sketch, SCALES[k]), clusters)
        return cls(cells, SCALES[: k + 1][::-1])

    # -- statistics --------------------------------------------------------------------------------

    @cached_property
    def _scales(self) -> list[_Scale]:
        """From the narrowest to the widest; boxes and waves at every second one."""
        return [self._at(bandwidth, k % 2 == 0) for k, bandwidth in enumerate(self.scales)]

    def _at(self, bandwidth: float, everything: bool) -> _Scale:
        cells, width = self.cells, bandwidth / self.cells.scale.length
        nodes = min(cells.nodes, _power_of_two(2.0 / width))
        coarse, first = cells.coarsened(nodes)
        centre, kernel = _kernel(nodes, width, coarse, cells.scale.reflected)
        tests, family = self._test_functions(centre, everything)
        functions = product(kernel.T, tests.T)
        drawn, null = cells.null_variances(functions, first)
        usable = (drawn > 1e-12 * drawn.max(initial=0.0)) | (not drawn.any())
        columns = (functions[:, usable], family[usable], drawn[usable], null[usable])
        return _Scale(bandwidth, first, kernel, *columns)

    def _test_functions(self, place: Floats, everything: bool) -> tuple[Floats, Integers]:
        """w at these places of the grid [functions, places], and the number of their families."""
        cells = self.cells
        f = cells.scale.prediction(place).clip(0.0, 1.0)
        middle, largest = self._log_odds
        tests = [
            np.ones_like(f),
            1.0 - 2.0 * f,
            np.clip((_log_odds(f) - middle) / largest, -1.0, 1.0),
        ]
        if not everything:
            return np.array(tests), np.zeros(3, dtype=np.int64)
        share = cells.null / max(float(cells.null.sum()), 1e-300)
        upto = np.cumsum(share)
        u = np.interp(place, cells.position, upto - 0.5 * share)
        levels = sum(
            cells.surprises >= LEAST_SURPRISES * 2**level for level in range(1, LEVELS + 1)
        )
        for level in range(1, levels + 1):
            box = np.minimum((u * 2**level).astype(np.int64), 2**level - 1)
            tests += list((box == np.arange(2**level)[:, None]).astype(np.float64))
        boxes = len(tests) - 3
        tests += [np.cos(np.pi * k * u) for k in WAVES]
        return np.array(tests), np.repeat([0, 1, 2], [3, boxes, len(WAVES)])

    @cached_property
    def _log_odds(self) -> tuple[float, float]:
        """Mean of the log-odds, weighted by null variance, and the largest distance from it."""
        cells = self.cells
        odds = _log_odds(cells.prediction)
        weight = cells.null if cells.null.any() else np.ones_like(odds)
        middle = float(weight @ odds / weight.sum())
        return middle, max(float(np.abs(odds - middle).max()), 1e-6)

    @cached_property
    def _linear(self) -> tuple[Floats, Floats, Floats, Floats, Integers]:
        """Linear statistics of all scales: scale, T, null and observed variance, number of the family."""
        columns = []
        for scale in self._scales:
            t = np.abs(np.add.reduceat(self.cells.residual, scale.first) @ scale.functions)
            seen = self.cells.variances(scale.functions, scale.first)
            seen = np.maximum(seen - t**2 / self.cells.units, 0.0)
            width = np.full(t.size, scale.bandwidth)
            columns.append(np.array([width, t, scale.null, seen, scale.family]))
        *numbers, family = np.concatenate(columns, axis=1)
        return (*numbers, family.astype(np.int64))

    @cached_property
    def _curves(self) -> tuple[Floats, Floats]:
        """smECE_s at each scale, and its observed variance from the influence function."""
        values, variances = np.empty(len(self._scales)), np.empty(len(self._scales))
        for k, scale in enumerate(self._scales):
            curve = scale.kernel @ np.add.reduceat(self.cells.residual, scale.first)
            values[k] = np.abs(curve).sum()
            signs = np.where(curve < 0.0, -1.0, 1.0)  # of 0 too: other samples would not be 0
            critic = (scale.kernel.T @ signs)[:, None]
            variances[k] = self.cells.variances(critic, scale.first)[0]
        return values, np.maximum(variances - values**2 / self.cells.units, 0.0)

    # -- under calibration -------------------------------------------------------------------------

    def _drawn(self, number: int) -> _Null:
        noise = self.cells.draws(number)
        largest = np.zeros((len(FAMILIES), number), dtype=np.float32)
        smooth = np.empty((len(self._scales), number))
        pooled, size = noise, len(noise)
        for k, scale in enumerate(self._scales):
            if scale.first.size < size:
                pooled, size = np.add.reduceat(noise, scale.first, axis=0), scale.first.size
            error = np.where(scale.drawn > 0.0, np.sqrt(scale.drawn), 1.0)
            rows = np.concatenate([(scale.functions / error).T, scale.kernel], dtype=np.float32)
            values = np.abs(product(rows, pooled))
            for family in np.unique(scale.family).tolist():
                own = values[: error.size][scale.family == family].max(axis=0)
                np.maximum(largest[family], own, out=largest[family])
            smooth[k] = values[error.size :].sum(axis=0)
        mean, deviation = smooth.mean(axis=1), np.maximum(smooth.std(axis=1), 1e-12)
        largest[-1] = ((smooth - mean[:, None]) / deviation[:, None]).max(axis=0)
        rounded = largest.astype(np.float64).round(DIGITS)
        ordered = np.sort(rounded, axis=1)
        ranks = [
            number - np.searchsorted(one, own) for one, own in zip(ordered, rounded, strict=True)
        ]
        smallest = np.min(np.array(ranks, dtype=np.float64), axis=0) / (number + 1.0)
        return _Null(ordered, np.sort(smallest), smooth.T, mean, deviation)

    @cached_property
    def _null(self) -> _Null:
        """The first draws, or all of them where calibration is in doubt."""
        null = self._drawn(FEW_DRAWS)
        p_value = self._joint(self._smallest(null), null)
        return null if p_value > LARGE_P or p_value < 1.0 / DRAWS else self._drawn(DRAWS)

    @cached_property
    def noise_floor(self) -> float:
        """Mean SmoothECE of calibrated predictions like these.

        SmoothECE of a sample is at least s exactly where its smECE_s is.
        """
        if not self.cells.null.any():
            return 0.0
        logs = np.log(self.scales)
        gaps = np.log(np.maximum(self._null.smooth[:FEW_DRAWS], 1e-300)) - logs
        if logs.size == 1:
            return float(np.exp(np.minimum(gaps[:, 0] + logs, logs)).mean())
        at = np.clip((gaps > 0.0).sum(axis=1) - 1, 0, logs.size - 2)
        draw = np.arange(len(gaps))
        before, after = gaps[draw, at], gaps[draw, at + 1]
        crossing = logs[at] + before / (before - after) * (logs[at + 1] - logs[at])
        return float(np.exp(crossing).mean())

    @property
    def _tests_smooth(self) -> bool:
        """True where smECE_s is tested: not of certain predictions, nor of few events with random signs."""
        cells = self.cells
        by_signs = cells.soft or cells.scores is not None
        return bool(cells.null.any()) and (not by_signs or cells.surprises >= MANY_SURPRISES)

    @property
    def _unseen(self) -> float:
        """Factor on the noise of smECE_s for events that did not come, as in `null_variances`."""
        widest = self._scales[-1]
        drawn, null = widest.drawn[:1].sum(), widest.null[:1].sum()
        return math.sqrt(null / drawn) if drawn > 0.0 else 1.0

    # -- p-values ----------------------------------------------------------------------------------

    @cached_property
    def _standard(self) -> Floats:
        """Standardised linear statistics; of weights by Bernstein's inequality, as their sums are skewed."""
        _, t, variance, _, _ = self._linear
        z = t / np.sqrt(np.maximum(variance, 1e-300))
        return z if self.cells.rows is not None else self._bernstein(z, variance)

    def _bernstein(self, z: Floats | float, variance: Floats) -> Floats:
        """z / √(1 + z M / 3σ), M the part of a residual that one event makes."""
        error = np.sqrt(np.maximum(variance, 1e-300))
        return np.asarray(z / np.sqrt(1.0 + z * self.cells.step / (3.0 * error)))

    def _observed(self, null: _Null) -> Floats:
        """The largest standardised statistic of each family."""
        family = self._linear[4]
        largest = [self._standard[family == k].max(initial=0.0) for k in range(3)]
        smooth = ((self._curves[0] / self._unseen - null.mean) / null.deviation).max()
        return np.round([*largest, smooth if self._tests_smooth else -math.inf], DIGITS)

    def _smallest(self, null: _Null) -> float:
        """The smallest p-value of the families."""
        values = enumerate(self._observed(null).tolist())
        return min(self._family_p_value(k, value, null) for k, value in values)

    def _family_p_value(self, k: int, value: float, null: _Null) -> float:
        """P(largest of the family ≥ value): by the draws, and beyond these by the union bound."""
        number: int = null.largest.shape[1]
        beyond = number - int(np.searchsorted(null.largest[k], value))
        drawn = (1.0 + beyond) / (number + 1.0)
        return drawn if beyond else min(drawn, self._union_bound(k, value))

    def _union_bound(self, k: int, value: float) -> float:
        """Σ 2Φ̄(x / √(1 + x M / 3σ)) over the statistics of a family, M what one event adds to one."""
        from scipy.special import ndtr

        _, t, variance, _, family = self._linear
        if k == len(FAMILIES) - 1:
            return 1.0
        own = variance[family == k]
        if not own.any():  # predictions of 0 and 1 alone: one failure refutes them
            return 0.0 if t[family == k].any() else 1.0
        z = self._bernstein(value, own) if self.cells.rows is not None else np.full(own.size, value)
        return float((2.0 * ndtr(-z)).sum())

    def _joint(self, smallest: float, null: _Null) -> float:
        """P(smallest p-value of the families ≤ this); Bonferroni's bound beyond the draws."""
        number = null.smallest.size
        below = int(np.searchsorted(null.smallest, smallest * ROUNDING, side="right"))
        drawn = (1.0 + below) / (number + 1.0)
        if smallest * ROUNDING < 1.0 / (number + 1.0):
            drawn = min(drawn, len(FAMILIES) * smallest)
        return float(max(drawn, self._fewest_signs))

    @property
    def _fewest_signs(self) -> float:
        """Share of one pattern of signs, and its opposite, among all that clusters can have."""
        return 0.0 if self.cells.signs is None else 2.0 ** (1.0 - self.cells.signs)

    @cached_property
    def p_value(self) -> float:
        """P-value of "the predictions are calibrated"; never 0, which no sample can show."""
        joint = self._joint(self._smallest(self._null), self._null)
        return min(max(joint, float(np.finfo(np.float64).tiny)), 1.0)

    # -- interval ----------------------------------------------------------------------------------

    def lower_end(self, confidence: float) -> float:
        """Lower end of the interval: above 0 exactly where the p-value is at most 1 - confidence."""
        level = 1.0 - confidence + 1e-12
        if self.p_value > level:
            return 0.0
        below = min(self._lower_bound(level), self.noise_floor)
        return max(below, self._lower_bound(0.5 * level), POSITIVE)

    def _lower_bound(self, level: float) -> float:
        """Largest min(s, m) at this level; 0 where calibration is not rejected."""
        if self.p_value > level:
            return 0.0
        bounds = (pair for family in self.lower_bounds(level) for pair in family.items())
        return max((min(scale, m) for scale, m in bounds), default=0.0)

    def lower_bounds(self, level: float) -> list[dict[float, float]]:
        """Largest lower confidence bound m of the statistics of each family, by bandwidth."""
        allowed = self._allowed(level)
        least = normal_quantile(1.0 - 0.5 * max(allowed, 1e-15), self.cells.degrees)
        scale, t, null, seen, family = self._linear
        found: list[dict[float, float]] = [{} for _ in FAMILIES]
        for k in range(len(FAMILIES) - 1):
            q = self._critical(k, allowed)
            own = (family == k) & (self._standard > q)
            q = max(q, least)
            half = 0.5 * q * q * (null[own] - seen[own]) / t[own]
            bounds = t[own] - half - np.sqrt(half**2 + q * q * seen[own])
            for s, m in zip(scale[own].tolist(), bounds.tolist(), strict=True):
                found[k][s] = max(m, found[k].get(s, -math.inf))
        q = self._critical(len(FAMILIES) - 1, allowed)
        values = self._curves[0]
        if math.isfinite(q) and self._tests_smooth:
            critical = self._unseen * (self._null.mean + q * self._null.deviation)
            ratio = np.array([self._noise_ratio(one) for one in self._scales])
            bounds = (values - critical) / (
                1.0 + critical * (ratio - 1.0) / np.maximum(values, 1e-300)
            )
            found[-1] = dict(zip(self.scales.tolist(), bounds.tolist(), strict=True))
        return found

    def _noise_ratio(self, scale: _Scale) -> float:
        """Standard deviation of the smoothed residual as observed, over that under calibration."""
        seen, null = (
            float((scale.kernel**2 @ np.add.reduceat(each, scale.first)).sum())
            for each in (self.cells.observed, self.cells.null)
        )
        return math.sqrt(seen / null) if null > 0.0 else 1.0

    def _allowed(self, level: float) -> float:
        """Largest p-value of a family at which the joint one is at most this level."""
        null = self._null
        unit = null.smallest.size + 1.0
        steps = np.arange(1, null.smallest.size + 1) / unit
        joint = (1.0 + np.searchsorted(null.smallest, steps * ROUNDING, side="right")) / unit
        fitting = steps[joint <= level]
        return float(fitting[-1]) if fitting.size else min(level / len(FAMILIES), 0.5 / unit)

    def _critical(self, k: int, allowed: float) -> float:
        """Value that a family's largest statistic must exceed to have at most this p-value."""
        ordered = self._null.largest[k]
        place = int(allowed * ROUNDING * (ordered.size + 1.0))
        if place >= 1:
            return float(ordered[-place])
        own = self._linear[4] == k
        if not own.any():  # smECE_s, whose tail is not known, and families without a function
            return math.inf
        if not self._linear[2][own].any():
            return 0.0
        low, high = 0.0, 1.0
        while self._union_bound(k, high) > allowed:
            high *= 2.0
        from scipy.optimize import brentq

        root = brentq(lambda x: self._union_bound(k, x) - allowed, low, high)
        return max(float(root), float(ordered[-1]))

    def upper_end(self, confidence: float, error: Callable[[float], float], start: float) -> float:
        """Upper end of the interval: the largest s with smECE_s + e(s) ≥ s, at most 1.

        With z the normal or Student's quantile and m the effective number of rows, e = z² / 2m +
        z √(se² + z² / 4m²) as in Wilson's interval: se may be 0 although other samples would differ, as when
        no event was seen at all.

        Parameters
        ----------
        confidence : float
            Of the interval.
        error : callable
            smECE_s of the sample at a bandwidth s.
        start : float
            SmoothECE of the sample, where smECE_s = s.
        """
        from scipy.optimize import brentq

        z = normal_quantile(0.5 + 0.5 * confidence, self.cells.degrees)
        units = self.trials
        variance, logs = self._curves[1], np.log(self.scales)

        def excess(s: float) -> float:
            seen = float(np.interp(math.log(s), logs, variance))
            lean = 0.5 * z / units
            return s - error(s) - z * (lean + math.sqrt(seen + lean**2))

        if excess(start) >= 0.0:
            return start
        high = max(2.0 * start, 1e-9)
        while excess(high) < 0.0 and high < 1.0:
            high *= 2.0
        if excess(high) < 0.0:
            return 1.0
        return min(float(brentq(excess, start, high, xtol=1e-4 * start)), 1.0)

    @property
    def trials(self) -> float:
        """Number of independent rows whose mean residual would be as uncertain."""
        return self.cells.trials

    def critical_mean(self, level: float) -> float | None:
        """Size of the mean residual at which calibration is rejected, if nothing else is amiss."""
        if self._fewest_signs > level:
            return None
        return self._critical(0, self._allowed(level)) * self.mean_error

    @property
    def mean_error(self) -> float:
        """Standard error of the mean residual under calibration."""
        cells = self.cells
        ones = np.ones((cells.cell.size, 1))
        return math.sqrt(float(cells.null_variances(ones, np.arange(cells.cell.size))[1][0]))


@dataclass(frozen=True)
class Interval:
    """A range that holds the population's SmoothECE with the given confidence."""

    low: float
    high: float
    confidence: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    @property
    def width(self) -> float:
        """High minus low."""
        return self.high - self.low


@dataclass(frozen=True)
class NoiseFloor:
    """Mean SmoothECE under calibration, on the same scale as the SmoothECE beside it."""

    value: float

    def __float__(self) -> float:
        return self.value


def _log_odds(f: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(f) - np.log1p(-f), -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))


def _power_of_two(least: float) -> int:
    return 1 << max(math.ceil(math.log2(least)), 2)


def _nodes(sketch: Sketch, bandwidth: float) -> int:
    """Cells of a grid on which one is no wider than the bandwidth."""
    return min(_power_of_two(sketch.scale.length / bandwidth), sketch.nodes)


def _occupied(sketch: Sketch, nodes: int) -> int:
    coarse = sketch.cells >> (sketch.nodes.bit_length() - nodes.bit_length())
    return 1 + int(np.count_nonzero(np.diff(coarse)))


def _approximate_floor(sketch: Sketch, variance: Floats) -> float:
    """Noise floor in closed form, b = (I² / π^{3/2})^{1/3} with I = ∫√v, by a histogram of cells b wide.

    v is the density of the null variance along the scale: the smoothed residual has variance v / (2√π b), and
    its mean absolute value, integrated, equals b.
    """
    length, total = sketch.scale.length, float(variance.sum())
    b: float = (length * total / math.pi**1.5) ** (1.0 / 3.0)
    for _ in range(4):  # it changes by less than a tenth thereafter
        nodes = _power_of_two(min(max(length / max(b, 1e-12), 4.0), sketch.nodes))
        first = np.flatnonzero(
            np.diff(sketch.cells >> (sketch.nodes.bit_length() - nodes.bit_length()), prepend=-1)
        )
        integral = float(np.sqrt(np.add.reduceat(variance, first)).sum()) * math.sqrt(
            length / nodes
        )
        b = (integral**2 / math.pi**1.5) ** (1.0 / 3.0)
    return b


def _kernel(nodes: int, width: float, cells: Integers, reflected: bool) -> tuple[Floats, Floats]:
    """Centres of a mesh half a bandwidth wide, and the integrals of the kernel around each cell over it."""
    if nodes <= MOST_CELLS:
        centre, kernel = _whole_kernel(nodes, width, reflected)
        return centre, kernel[:, cells]
    steps = math.ceil(2.0 / width)
    position = np.minimum((cells + 0.5) / nodes, 1.0)
    around = np.arange(-math.ceil(2.0 * REACH), math.ceil(2.0 * REACH) + 1)
    place = np.unique(np.clip((position * steps).astype(np.int64)[:, None] + around, 0, steps - 1))
    return (place + 0.5) / steps, _integrals(place, steps, width, position, reflected)


@cache
def _whole_kernel(nodes: int, width: float, reflected: bool) -> tuple[Floats, Floats]:
    steps = math.ceil(2.0 / width)
    position = np.minimum((np.arange(nodes + 1) + 0.5) / nodes, 1.0)
    place = np.arange(steps)
    return (place + 0.5) / steps, _integrals(place, steps, width, position, reflected)


def _integrals(
    place: Integers, steps: int, width: float, position: Floats, reflected: bool
) -> Floats:
    """∫ K_s(t, x) dt over the cells of the mesh at these places, for each position x: [places, positions]."""
    from scipy.special import ndtr

    images = [position]
    if reflected:
        images += [-position, 2.0 - position]
        if width > 0.1:  # from further images nothing else comes
            images += [-2.0 + position, -2.0 - position, 2.0 + position, 4.0 - position]
    kernel = np.zeros((place.size, position.size))
    ends = np.unique(np.concatenate([place, place + 1]))
    left, right = np.searchsorted(ends, place), np.searchsorted(ends, place + 1)
    for image in images:
        below = ndtr((ends[:, None] / steps - image) / width)
        kernel += below[right] - below[left]
    return kernel
