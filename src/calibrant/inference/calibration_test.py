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
distribution over the samples (Westfall and Young 1993). Where a family is beyond all samples, its p-value is
at most the union bound Σ 2Φ̄(x) over its linear statistics, with x the deviation of Bernstein's inequality;
there are three such families, so the joint one is at most three times that (Bonferroni).

**Lower end.** With q the critical value of a family, m solves (T - m)² = q² v(m), where v goes from the
variance under calibration at m = 0 to the variance that was observed at m = T, as in Wilson's (1927) interval
for a proportion. So the lower end is above 0 exactly where p ≤ 1 - confidence. The upper end never misses a
SmoothECE below the noise floor, so the lower end has the whole level there, and half of it above.

**Upper end.** E smECE_s(r̂) ≥ smECE_s(r) by Jensen's inequality. So SmoothECE is at most the largest s with
smECE_s(r̂) + z se_s ≥ s, where se_s is the standard error of smECE_s from its influence function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.null_noise import (
    DRAWS,
    MANY_SURPRISES,
    SINGLE_THREADED,
    ResidualCells,
    in_blocks,
    product,
    weighted_sums,
)
from calibrant.inference.quantiles import normal_quantile, wilson_error

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Singles = NDArray[np.float32]

LEVELS, LEAST_SURPRISES = 4, 4.0
"""Halves to sixteenths of the rows, each with so many expected surprises, as for Pearson's χ²."""
WAVES = range(2, 9)
"""One turn to four: k = 1 is nearly the direction 1 - 2f."""
LARGEST_LOG_ODDS = 6.0
"""Log-odds beyond, where events are one in 400, are set there: one row must not be the whole direction."""
REACH = 9
"""In halves of a bandwidth: beyond, a kernel has 1e-5 of its mass."""
DIGITS = 4
"""Decimal places of standardised statistics, so that ties are ties whatever rounding does."""
FAMILIES = ("directions", "boxes", "waves", "smooth")
SMOOTH = len(FAMILIES) - 1
"""The place of the last one, which is not linear."""


class _Linear(NamedTuple):
    """Statistics T = |⟨r, K_s w⟩|, in the order of their bandwidths s, the narrowest first.

    `drawn` and `null` are variances under calibration (`ResidualCells.null_variances`), `seen` the variance
    that was observed, and `x` the standardised statistic. `skew` is the ratio of the third absolute moment
    under calibration to null^(3/2), and 0 where x accounts for it.
    """

    bandwidth: Floats
    family: Integers
    functions: Floats
    t: Floats
    drawn: Floats
    null: Floats
    seen: Floats
    skew: Floats
    x: Floats

    @classmethod
    def of(cls, cells: ResidualCells, meshes: Sequence[tuple[Floats, Floats]]) -> _Linear:
        """The statistics of the rows, with a mesh and its kernel for each scale."""
        tests, family = _test_functions(cells, np.concatenate([mesh for mesh, _ in meshes]))
        columns, families, widths, start = [], [], [], 0
        directions = np.count_nonzero(family == 0)
        for k, (mesh, kernel) in enumerate(meshes):
            most = directions if k % 2 else family.size  # boxes and waves at every second scale
            columns.append(_in_pieces(tests[:most, start : start + mesh.size], kernel).T)
            families.append(family[:most])
            widths.append(np.full(most, cells.scales[k]))
            start += mesh.size
        functions = np.concatenate(columns, axis=1)
        drawn, null = cells.null_variances(functions)
        t = np.abs(weighted_sums(cells.residual, functions))
        seen = np.maximum(cells.variances(functions) - t**2 / cells.units, 0.0)
        variance = np.maximum(null, 1e-300)
        error = np.sqrt(variance)
        skew, x = weighted_sums(cells.third, np.abs(functions) ** 3) / variance / error, t / error
        if cells.rows is None:  # sums of unequal weights are skewed, and their draws are not
            x, skew = _bernstein(x, skew), np.zeros(x.size)
        used = drawn > 1e-12 * drawn.max(initial=0.0) if drawn.any() else np.ones(t.size, bool)
        width, family = np.concatenate(widths), np.concatenate(families)
        columns = [one[used] for one in (t, drawn, null, seen, skew, x.round(DIGITS))]
        return cls(width[used], family[used], functions[:, used], *columns)

    def skews(self, k: int) -> Floats:
        """Skews of the statistics of a family, of proportional ones once."""
        own = np.flatnonzero(self.family == k)
        shapes = self.functions[:, own] / np.sqrt(self.drawn[own] + 1e-300)
        shapes = (shapes * np.sign(shapes[:1])).round(DIGITS).T + 0.0  # without negative zeros
        distinct: dict[bytes, int] = {}
        for shape, statistic in zip(shapes, own.tolist(), strict=True):
            distinct.setdefault(shape.tobytes(), statistic)
        return self.skew[list(distinct.values())]


class _Smooth(NamedTuple):
    """smECE_s at each scale, its observed variance from the influence function, and its draws.

    `mean` and `deviation` are those of the draws [scales, draws]. `unseen` is the factor on their noise for
    events that did not come: that of the mean residual. It is not `tested` of certain predictions, nor of few
    events with random signs.
    """

    kernels: Sequence[Floats]
    value: Floats
    variance: Floats
    draws: Floats
    mean: Floats
    deviation: Floats
    unseen: float
    tested: bool

    @classmethod
    def of(cls, cells: ResidualCells, kernels: Sequence[Floats], noise: Singles) -> _Smooth:
        """smECE_s of the rows and of draws of their noise in blocks, with a kernel for each scale."""
        curves = [weighted_sums(cells.residual, kernel.T) for kernel in kernels]
        value = np.array([np.abs(curve).sum() for curve in curves])
        # The sign of 0 too: other samples would not be 0.
        signs = [np.where(curve < 0.0, -1.0, 1.0) for curve in curves]
        critics = [weighted_sums(sign, kernel) for sign, kernel in zip(signs, kernels, strict=True)]
        variance = cells.variances(np.stack(critics, axis=1)) - value**2 / cells.units
        each = [np.abs(product(kernel, noise)).sum(axis=0) for kernel in kernels]
        draws = np.array(each, dtype=np.float64)
        drawn, null = cells.null_variances(np.ones((cells.mass.size, 1)))
        unseen = math.sqrt(null[0] / drawn[0]) if drawn[0] > 0.0 else 1.0
        mean, deviation = draws.mean(axis=1), np.maximum(draws.std(axis=1), 1e-12)
        tested = (cells.known or cells.surprises.sum() >= MANY_SURPRISES) and cells.null.any()
        return cls(
            kernels=kernels,
            value=value,
            variance=np.maximum(variance, 0.0),
            draws=draws,
            mean=mean,
            deviation=deviation,
            unseen=unseen,
            tested=bool(tested),
        )

    def noise_ratio(self, cells: ResidualCells) -> Floats:
        """Standard deviation of the smoothed residual as observed, over that of the draws, by scale."""
        squares = np.array([np.einsum("ij,ij->j", kernel, kernel) for kernel in self.kernels])
        seen, drawn = squares @ cells.observed, squares @ cells.drawn
        return np.asarray(np.sqrt(seen / np.maximum(drawn, 1e-300)))


@dataclass(frozen=True, eq=False)
class CalibrationTest:
    """Test of calibration with its interval for SmoothECE.

    Attributes
    ----------
    cells : ResidualCells
        Residuals of the rows, and their noise.
    p_value : float
        P-value of "the predictions are calibrated"; never 0, which no sample can show.
    noise_floor : float
        Mean SmoothECE of calibrated predictions like these.

    Examples
    --------
    >>> rows = Sketch.from_counts(p=[0.2, 0.7], n=[500, 500], events=[50, 450])
    >>> test = CalibrationTest.of(rows)
    >>> test.p_value <= 0.05 and test.lower_end(0.95) > 0
    True
    """

    cells: ResidualCells
    p_value: float
    noise_floor: float
    linear: _Linear
    smooth: _Smooth
    largest: Floats
    smallest: Integers

    @classmethod
    def of(cls, sketch: Sketch, clusters: ClusterResiduals | None = None) -> CalibrationTest:
        """The test of a sketch's rows, which are independent unless clusters are given."""
        cells = ResidualCells.of(sketch, clusters)
        widths = (cells.scales / sketch.scale.length).tolist()
        # For each scale a mesh half a bandwidth wide, and the integrals of K_s over it [mesh, cells].
        meshes = [_kernel(width, cells.position) for width in widths]
        linear, noise = _Linear.of(cells, meshes), in_blocks(cells.draws())
        smooth = _Smooth.of(cells, [kernel for _, kernel in meshes], noise)
        # The largest standardised statistic of each family, of the draws and last of the sample.
        error = np.where(linear.drawn > 0.0, np.sqrt(linear.drawn), 1.0)
        values = np.abs(product((linear.functions / error).T, noise))
        largest = np.zeros((len(FAMILIES), DRAWS + 1))
        for k in np.unique(linear.family):
            own = linear.family == k
            largest[k, :-1], largest[k, -1] = values[own].max(axis=0), linear.x[own].max()
        drawn = (smooth.draws - smooth.mean[:, None]) / smooth.deviation[:, None]
        seen = (smooth.value / smooth.unseen - smooth.mean) / smooth.deviation
        largest[SMOOTH, :-1] = drawn.max(axis=0)
        largest[SMOOTH, -1] = seen.max() if smooth.tested else -math.inf
        largest = largest.round(DIGITS)
        # Ranks of the draws among themselves give critical values, those with the sample its p-value.
        ranks, beaten = _ranks(largest), largest[:, :-1] <= largest[:, -1:]
        smallest = ranks.min(axis=0)
        p_value = float(np.mean(smallest <= smallest[-1]))
        for k in np.flatnonzero(ranks[:SMOOTH, -1] == 1).tolist():
            p_value = min(p_value, _union_bound(float(largest[k, -1]), linear.skews(k)))
        return cls(
            cells=cells,
            p_value=max(p_value, cells.fewest_signs, float(np.finfo(np.float64).tiny)),
            noise_floor=_noise_floor(cells.scales, smooth.draws.T),
            linear=linear,
            smooth=smooth,
            largest=np.sort(largest[:, :-1], axis=1),
            smallest=np.sort((ranks[:, :-1] - beaten).min(axis=0)),
        )

    def lower_end(self, confidence: float) -> float:
        """Lower end of the interval: above 0 exactly where the p-value is at most 1 - confidence."""
        level = 1.0 - confidence + 1e-12
        if self.p_value > level:
            return 0.0
        below = min(self._lower_bound(level), self.noise_floor)
        # A rejection is above 0, be it by this little.
        return max(below, self._lower_bound(0.5 * level), 1e-12)

    def _lower_bound(self, level: float) -> float:
        """Largest min(s, m) at this level; 0 where calibration is not rejected."""
        if self.p_value > level:
            return 0.0
        _, scale, bound = self.lower_bounds(level)
        largest = float(np.minimum(scale, bound).max(initial=0.0))
        if largest < self.cells.scales[-1]:
            return largest
        # Beyond the widest kernel: smECE_s is at least the mean residual at every s.
        cells = self.cells
        mean = abs(float(cells.residual.sum()))
        variance = float(cells.variances(np.ones((cells.mass.size, 1)))[0]) - mean**2 / cells.units
        z = normal_quantile(1.0 - 0.5 * level, cells.degrees)
        return max(largest, mean - wilson_error(max(variance, 0.0), z, cells.trials))

    def lower_bounds(self, level: float) -> tuple[Integers, Floats, Floats]:
        """Family, bandwidth s and lower confidence bound m of each statistic beyond its critical value."""
        linear, smooth, scales = self.linear, self.smooth, self.cells.scales
        critical = np.array([self._critical(k, level) for k in range(len(FAMILIES))])
        q = critical[linear.family]
        above = linear.x > q
        t, seen = linear.t[above], linear.seen[above]
        # Draws take few values where events are few: no less than the normal, or Student's, quantile.
        allowed = self._rank(level) / (DRAWS + 1.0) or level / len(FAMILIES)
        least = normal_quantile(1.0 - 0.5 * max(allowed, 1e-15), self.cells.degrees)
        squared = np.maximum(q[above], least) ** 2
        half = 0.5 * squared * (linear.null[above] - seen) / t
        family, scale = linear.family[above], linear.bandwidth[above]
        bounds = t - half - np.sqrt(half**2 + squared * seen)
        if math.isinf(critical[SMOOTH]) or not smooth.tested:
            return family, scale, bounds
        # The noise goes from that under calibration at m = 0 to the one observed at m = smECE_s.
        noise = smooth.unseen * (smooth.mean + critical[SMOOTH] * smooth.deviation)
        growth = noise * (smooth.noise_ratio(self.cells) - 1.0) / np.maximum(smooth.value, 1e-300)
        family = np.append(family, np.full(scales.size, SMOOTH))
        bounds = np.append(bounds, (smooth.value - noise) / (1.0 + growth))
        return family, np.append(scale, scales), bounds

    def _rank(self, level: float) -> int:
        """Largest rank of a family's statistic at which calibration is rejected at this level; 0 if none."""
        most = int(level * (DRAWS + 1.0))  # the joint rank is no smaller
        below = np.searchsorted(self.smallest, np.arange(1, most + 1), side="right")
        return int(np.count_nonzero(1.0 + below <= level * (DRAWS + 1.0)))

    def _critical(self, k: int, level: float) -> float:
        """Value of a family's largest statistic above which calibration is rejected."""
        rank, ordered = self._rank(level), self.largest[k]
        if rank > 0:
            return float(ordered[-rank])
        if k == SMOOTH:  # beyond all draws its tail is not known
            return math.inf
        from scipy.optimize import brentq

        skews, high = self.linear.skews(k), 1.0
        while _union_bound(high, skews) > level:
            high *= 2.0
        root = brentq(lambda x: _union_bound(x, skews) - level, 0.0, high) if high > 1.0 else 0.0
        return float(max(ordered[-1], root))

    def upper_end(self, confidence: float, error: Callable[[float], float], start: float) -> float:
        """Upper end of the interval: the largest s with smECE_s + e(s) ≥ s, at most 1.

        Here e is Wilson's error, with z the normal or Student's quantile.

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
        variance, logs = self.smooth.variance, np.log(self.cells.scales)

        @cache  # the ends of the search are asked for again and again
        def excess(s: float) -> float:
            seen = float(np.interp(math.log(s), logs, variance))
            return s - error(s) - wilson_error(seen, z, self.cells.trials)

        if excess(start) >= 0.0:
            return start
        high = max(2.0 * start, 1e-9)
        while excess(high) < 0.0 and high < 1.0:
            high *= 2.0
        if excess(high) < 0.0:
            return 1.0
        return min(float(brentq(excess, start, high, xtol=1e-4 * start)), 1.0)

    def critical_mean(self, level: float) -> float | None:
        """Size of the mean residual at which calibration is rejected, if nothing else is amiss."""
        if self.cells.fewest_signs > level:
            return None
        return self._critical(0, level) * self.mean_error

    @property
    def mean_error(self) -> float:
        """Standard error of the mean residual under calibration."""
        ones = np.ones((self.cells.position.size, 1))
        return math.sqrt(float(self.cells.null_variances(ones)[1][0]))


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


def _test_functions(cells: ResidualCells, place: Floats) -> tuple[Floats, Integers]:
    """w at these places of the grid [functions, places], and the number of their families."""
    f = cells.scale.prediction(place).clip(0.0, 1.0)
    share = cells.null / cells.null.sum() if cells.null.any() else np.ones_like(cells.null)
    odds = _log_odds(cells.prediction)
    middle = float(share @ odds / share.sum())
    largest = max(float(np.abs(odds - middle).max()), 1e-6)
    steps = np.clip((_log_odds(f) - middle) / largest, -1.0, 1.0)
    directions, boxes = [np.ones_like(f), 1.0 - 2.0 * f, steps], []
    u = np.interp(place, cells.position, np.cumsum(share) - 0.5 * share)
    for parts in 2 ** np.arange(1, LEVELS + 1):
        if cells.surprises.sum() >= LEAST_SURPRISES * parts:
            box = np.minimum((u * parts).astype(np.int64), parts - 1)
            boxes += list((box == np.arange(parts)[:, None]).astype(np.float64))
    waves = [np.cos(np.pi * k * u) for k in WAVES]
    sizes = [len(directions), len(boxes), len(waves)]
    return np.array(directions + boxes + waves), np.repeat([0, 1, 2], sizes)


def _in_pieces(rows: Floats, matrix: Floats) -> Floats:
    """Product of rows with a matrix, as many at a time as linear algebra leaves to one thread."""
    step = max(SINGLE_THREADED // matrix.size, 1)
    if step >= len(rows):
        return np.asarray(rows @ matrix)
    return np.concatenate([rows[k : k + step] @ matrix for k in range(0, len(rows), step)])


def _log_odds(f: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(f) - np.log1p(-f), -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))


def _noise_floor(scales: Floats, smooth: Floats) -> float:
    """Mean SmoothECE of draws of smECE_s [draws, scales].

    SmoothECE of a sample is at least s exactly where its smECE_s is.
    """
    if not smooth.any():
        return 0.0
    if scales.size == 1:
        return float(np.minimum(smooth[:, 0], scales).mean())
    logs = np.log(scales)
    gaps = np.log(np.maximum(smooth, 1e-300)) - logs
    at = np.clip((gaps > 0.0).sum(axis=1) - 1, 0, logs.size - 2)
    draw = np.arange(len(gaps))
    before, after = gaps[draw, at], gaps[draw, at + 1]
    crossing = logs[at] + before / (before - after) * (logs[at + 1] - logs[at])
    return float(np.exp(np.minimum(crossing, 0.0)).mean())


def _ranks(values: Floats) -> Integers:
    """Number of values in each row that are at least as large: 1 for the largest."""
    return np.array([one.size - np.searchsorted(np.sort(one), one) for one in values])


def _bernstein(z: Floats | float, third: Floats) -> Floats:
    """Deviation z / √(1 + zρ / 3) of Bernstein's inequality, ρ the third absolute moment over σ³."""
    return np.asarray(z / np.sqrt(1.0 + z * third / 3.0))


def _union_bound(value: float, skews: Floats) -> float:
    """Bound Σ 2Φ̄ of the p-value of a family's largest statistic, times the number of such families."""
    from scipy.special import ndtr

    return float(2.0 * SMOOTH * ndtr(-_bernstein(value, skews)).sum())


def _kernel(width: float, position: Floats) -> tuple[Floats, Floats]:
    """Midpoints t of a mesh half a bandwidth wide, and K_s(t, x) dt, reflected at 0 and 1 [mesh, positions].

    The midpoint rule is exact to 1e-30 for a Gaussian on so fine a mesh.
    """
    steps = math.ceil(2.0 / width)
    around = np.arange(-REACH, REACH + 1)
    near = np.zeros(steps, dtype=np.bool_)
    near[((position * steps).astype(np.int64)[:, None] + around).clip(0, steps - 1)] = True
    mesh = (np.flatnonzero(near) + 0.5) / steps
    images = [position, -position, 2.0 - position]
    if width > 0.11:  # from further images nothing else comes
        images += [position - 2.0, position + 2.0, -2.0 - position, 4.0 - position]
    kernel = np.zeros((mesh.size, position.size))
    for image in images:
        deviation = (mesh[:, None] - image) / width
        deviation *= -0.5 * deviation
        kernel += np.exp(deviation, out=deviation)
    return mesh, kernel / (steps * width * math.sqrt(2.0 * math.pi))
