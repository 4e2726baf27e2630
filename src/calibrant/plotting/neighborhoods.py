"""Kernel neighbourhoods of predictions: the statistics of a reliability diagram, without a picture.

Every row is spread over the axis by a reflected Gaussian kernel of a bandwidth of its own: the largest of
SmoothECE's, the one at which its neighbourhood holds enough effective rows, and the one from which on noise
hardly turns the curve. At each position of a mesh the weighted means of prediction and outcome make a point.
Where no row was widened, the mean absolute distance of the points from the diagonal, weighted by the share of
rows, is SmoothECE.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from calibrant.data.points import Points
from calibrant.data.scales import Scale

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

EFFECTIVE_ROWS, FEWEST_ROWS, SAMPLE_SHARE = 40.0, 20.0, 1 / 12
"""Rows that a neighbourhood should hold: n p(1 - p) = 10 at one half, the usual rule for a rate to be nearly
normal; of small samples a twelfth, at least half as many."""
NOISE_SLOPE = 0.15
"""Largest standard error of the curve's slope: that of a calibrated curve is 1, and noise seldom turns it."""
WIDEST = 0.12
"""Widest bandwidth, as a share of the span of the predictions: a quarter of it lies within one bandwidth."""
SHORT_SPAN = 0.2
"""The span is 1, or what 99.9% of the predictions use, where that is shorter and at 0 or at 1."""
FEW_VALUES, ROWS_EACH = 24, 4
"""Predictors that emit at most so many values, most for so many rows, have no curve but points."""
REACH = 5.0
"""Bandwidths beyond which a Gaussian is left out: 6e-7 of its mass."""
CELLS_PER_BANDWIDTH, MOST_CELLS = 48.0, 4096
"""More distinct predictions than the second number are merged into cells: rows move by up to a 96th of a
bandwidth, which changes the area of a calibrated sample by about a thousandth of itself. The curve has as
many points at most."""
PILOT_CELLS = 128
"""Places at which the bandwidth is chosen; it is interpolated between them."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of the curve, in order along the axis; NaN where it is not drawn.

    Attributes
    ----------
    position : float64[m]
        Centre of each neighbourhood, as a prediction.
    bandwidth : float64[m]
        Weighted mean bandwidth of the rows in it, on the scale of the kernel.
    prediction, observed : float64[m]
        Weighted means of prediction and outcome.
    effective_rows : float64[m]
        Kish's effective sample size, (Σwk)²/Σ(wk)².
    weight, density : float64[m]
        Share of the rows that the point stands for, by the trapezoidal rule, and per unit of the axis.
    low, high : float64[m]
        Confidence band: Wilson's interval at the effective sample size.
    consistency_low, consistency_high : float64[m]
        Consistency band: quantiles of the beta law with the mean and the variance Σ(wk)² f(1 - f)/(Σwk)² of
        `observed` under calibration.
    drawn : bool[m]
        Whether the evidence is enough for a line.
    span : float
        Length of the axis that predictions use: 1 unless nearly all are close to 0 or to 1.
    widened : float
        Share of the rows whose bandwidth is wider than SmoothECE's.
    area : float
        Area between curve and diagonal, weighted by the share of rows: SmoothECE where nothing was widened.
    """

    position: Floats
    bandwidth: Floats
    prediction: Floats
    observed: Floats
    effective_rows: Floats
    weight: Floats
    density: Floats
    low: Floats
    high: Floats
    consistency_low: Floats
    consistency_high: Floats
    drawn: Bools
    span: float
    widened: float
    area: float


@dataclass(frozen=True, eq=False)
class Clumps:
    """Groups of rows, such as bins: their mean prediction and outcome, and both intervals."""

    prediction: Floats
    observed: Floats
    rows: Floats
    low: Floats
    high: Floats
    consistency_low: Floats
    consistency_high: Floats


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows merged into narrow cells, in order along the axis."""

    x: Floats  # mean position
    weight: Floats
    events: Floats
    moment: Floats  # Σ w f
    squared: Floats  # Σ w²

    def merged(self, key: NDArray[np.int64]) -> _Cells:
        """Neighbouring cells of equal key as one."""
        first = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        if first.size == key.size:
            return self
        placed = self.x * self.weight
        sums = [placed, self.weight, self.events, self.moment, self.squared]
        moment, total, *others = np.add.reduceat(sums, first, axis=1)
        return _Cells(moment / total, total, *others)


def curve_of(
    points: Points,
    bandwidth: float,
    *,
    widen: bool,
    confidence: float,
    design_effect: float = 1.0,
) -> Curve:
    """Points (mean prediction, mean outcome) of kernel neighbourhoods, with both bands.

    Parameters
    ----------
    points : Points
        The rows.
    bandwidth : float
        The narrowest bandwidth, in units of the scale of `points`.
    widen : bool
        Widen it where a neighbourhood holds too few rows, and break the curve where even the widest does;
        otherwise one bandwidth serves all rows, and the curve goes wherever the density is positive.
    confidence : float
        Of both bands, at each point.
    design_effect : float
        Variance of a mean of rows, relative to that of independent ones; effective rows are divided by it.
    """
    cells, length, reflected = _cells_of(points, bandwidth)
    # The reflected kernel of a bandwidth of three lengths is level to the last digit.
    widths = np.full(cells.x.size, min(bandwidth, 3.0 * length))
    weight = cells.weight.sum()
    kish = weight**2 / cells.squared.sum() / design_effect
    wanted = float(np.clip(SAMPLE_SHARE * kish, FEWEST_ROWS, EFFECTIVE_ROWS))
    span, reach = _span(cells)
    if widen:
        # Of a short range between 0 and 1, a kernel reaches over half.
        widest = WIDEST * min(span, 2.0 * reach)
        widths = _bandwidths(cells, bandwidth, wanted, design_effect, widest, points.scale)
    t = _mesh(cells.x, widths, length, reflected)
    sums, mean_width = _smoothed(cells, widths, t, length if reflected else None)
    total, events, moment, squares, variance = sums
    known = total > 1e-9 * total.max()
    step = 0.5 * (np.diff(t, prepend=t[0]) + np.diff(t, append=t[-1]))
    share = np.where(known, total * step / weight, 0.0)
    safe = np.where(known, total, np.nan)
    prediction, observed = moment / safe, np.clip(events / safe, 0.0, 1.0)
    effective = np.nan_to_num(safe**2 / np.maximum(squares, 1e-300)) / design_effect
    drawn = known
    if widen:
        many = kish >= EFFECTIVE_ROWS and _by_value(points) is None
        with np.errstate(invalid="ignore"):
            # Half of the wanted rows; on short axes, the same standard error as a share of them.
            fewest = 0.5 * wanted * np.maximum(1.0, 4.0 * prediction * (1.0 - prediction) / span**2)
            drawn = known & (effective >= fewest) & many
            # No line through a gap between rows, nor beyond the last ones.
            after = np.searchsorted(points.p, np.nan_to_num(prediction)).clip(1, points.p.size - 1)
            drawn &= points.p[after] - points.p[after - 1] <= WIDEST * span
            drawn &= (t >= cells.x[0]) & (t <= cells.x[-1])
            drawn &= prediction >= np.fmax.accumulate(np.where(drawn, prediction, -np.inf))
        drawn = _without_fragments(drawn, prediction, 1.5 * WIDEST * min(span, reach))
        covered = sum(prediction[run.stop - 1] - prediction[run.start] for run in runs(drawn))
        if wanted < EFFECTIVE_ROWS and covered < 0.5 * min(span, reach):
            drawn = np.zeros_like(drawn)  # pieces of a small sample are easier to read as points
    low, high = wilson(observed, effective, confidence)
    below, above = beta_quantiles(prediction, variance / safe**2 * design_effect, confidence)
    return Curve(
        position=np.asarray(points.scale.prediction(t / length), dtype=np.float64),
        bandwidth=mean_width / safe,
        prediction=prediction,
        observed=observed,
        effective_rows=effective,
        weight=share,
        density=np.where(known, total / weight, 0.0),
        low=low,
        high=high,
        consistency_low=below,
        consistency_high=above,
        drawn=drawn,
        span=span,
        widened=float(cells.weight[widths > 1.001 * bandwidth].sum() / weight),
        area=_area((moment - events) / weight, t),
    )


def _span(cells: _Cells) -> tuple[float, float]:
    """Length of the axis that predictions use (1 unless they are close to 0 or to 1), and their range."""
    passed = np.cumsum(cells.weight) / cells.weight.sum()
    ends = np.searchsorted(passed, [0.001, 0.999]).clip(0, passed.size - 1)
    first, last = (cells.moment[ends] / cells.weight[ends]).tolist()
    span = max(min(last, 1.0 - first), 1e-9)
    return (span if span < SHORT_SPAN else 1.0), last - first


def _without_fragments(drawn: Bools, prediction: Floats, shortest: float) -> Bools:
    """Stretches that are long enough for a line; those so close that no one would see a gap are one."""
    drawn = drawn.copy()
    for before, after in pairwise(runs(drawn)):
        between = slice(before.stop, after.start)
        gap = prediction[after.start] - prediction[before.stop - 1]
        if gap < 0.3 * shortest and np.isfinite(prediction[between]).all():
            drawn[between] = True
    for run in runs(drawn):
        drawn[run] = prediction[run.stop - 1] - prediction[run.start] >= shortest
    return drawn


def runs(shown: Bools) -> list[slice]:
    """Stretches of true values.

    Examples
    --------
    >>> runs(np.array([True, False, True, True]))
    [slice(0, 1, None), slice(2, 4, None)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shown.astype(np.int8), [0]])))
    return list(map(slice, edges[::2].tolist(), edges[1::2].tolist()))


def _area(gap: Floats, t: Floats) -> float:
    """∫|g| dt of a g that is linear between points, also where it changes sign.

    Examples
    --------
    >>> _area(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))
    0.5
    """
    left, right = gap[:-1], gap[1:]
    ends = np.abs(left) + np.abs(right)
    crossing = left * right < 0.0
    height = np.divide(left**2 + right**2, ends, out=ends.copy(), where=crossing)
    return float(np.sum(0.5 * height * np.diff(t)))


def _cells_of(points: Points, bandwidth: float) -> tuple[_Cells, float, bool]:
    """Narrow cells of rows, the length of their axis, and whether its ends reflect."""
    length = float(points.scale.length)
    reflected = bool(points.scale.reflected)
    p, mass = points.p, points.mass
    x = np.asarray(points.scale.locate(p), dtype=np.float64) * length
    weight = mass[:, 0] + mass[:, 1]
    squared = weight if points.squared is None else points.squared
    cells = _Cells(x, weight, mass[:, 1], weight * p, squared)
    if x.size > MOST_CELLS:
        cells = cells.merged(np.floor(x * (CELLS_PER_BANDWIDTH / bandwidth)).astype(np.int64))
    return cells, length, reflected


def _bandwidths(
    cells: _Cells,
    narrowest: float,
    wanted: float,
    design_effect: float,
    widest: float,
    scale: Scale,
) -> Floats:
    """A bandwidth for each cell: its neighbourhood holds the wanted rows and noise is no slope there.

    The slope of a curve of bandwidth h has the standard error s / (h √2), where s is that of its height.
    """
    x, length = cells.x, float(scale.length)
    rank = np.cumsum(cells.weight) / cells.weight.sum()
    even = np.floor((x - x[0]) / max(x[-1] - x[0], 1e-12) * PILOT_CELLS).astype(np.int64)
    quantile = np.floor(rank * PILOT_CELLS).astype(np.int64)
    pilot = cells.merged(even * (PILOT_CELLS + 2) + quantile)
    p = pilot.moment / pilot.weight
    around = pilot.x / length + np.array([-1e-4, 1e-4])[:, None]
    slope = np.abs(np.diff(np.asarray(scale.prediction(around)), axis=0)[0]) / (2e-4 * length)
    limit = np.maximum(narrowest, widest / np.maximum(slope, widest / length))
    widths = np.full(p.size, narrowest)
    distances = [
        pilot.x[:, None] - image
        for image in _images(
            pilot.x, length if scale.reflected else None, REACH * max(widest, narrowest)
        )
    ]
    few = np.ones(p.size, dtype=bool)
    while few.any():
        # As the curve will have them: dense rows nearby, which stay narrow, do not count.
        kernel = sum(np.exp(-0.5 * (d / widths) ** 2) for d in distances) / widths
        effective = (kernel @ pilot.weight) ** 2 / ((kernel * kernel) @ pilot.squared)
        steep = p * (1.0 - p) / (NOISE_SLOPE * widths * slope) ** 2 / 2.0
        few = (effective / design_effect < np.maximum(wanted, steep)) & (widths < limit)
        widths[few] = np.minimum(widths[few] * 1.2, limit[few])
    # Neighbours agree: a moving average of the logarithms, which leaves what was not widened alone.
    shape = np.bartlett(7)[1:-1]
    padded = np.pad(np.log(widths), shape.size // 2, mode="edge")
    smooth = np.convolve(padded, shape / shape.sum(), mode="valid")
    widths = np.exp(np.interp(x, pilot.x, np.maximum(smooth, np.log(narrowest))))
    return np.where(widths < 1.01 * narrowest, narrowest, widths)


def _images(x: Floats, length: float | None, reach: float) -> list[Floats]:
    """Positions and their reflections at the ends, as far as kernels reach."""
    if length is None:
        return [x]
    turns = range(-int(reach / (2 * length)) - 1, int(reach / (2 * length)) + 2)
    images = []
    for turn, sign in product(turns, (1.0, -1.0)):
        image = sign * x + 2 * length * turn
        if image.max() > -reach and image.min() < length + reach:
            images.append(image)
    return images


def _mesh(x: Floats, widths: Floats, length: float, reflected: bool) -> Floats:
    """Positions some to a bandwidth: fine where kernels are narrow, and near rows only."""
    low, high = x[0] - REACH * widths[0], x[-1] + REACH * widths[-1]
    if reflected:
        low, high = max(low, 0.0), min(high, length)
    knots = np.unique(
        np.concatenate([np.linspace(low, high, 257), x, x - 3 * widths, x + 3 * widths])
    )
    knots = knots[(knots >= low) & (knots <= high)]
    local = np.exp(np.interp(knots, x, np.log(widths)))
    per = 16.0 / local
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (per[1:] + per[:-1]) * np.diff(knots))])
    count = int(np.clip(np.ceil(passed[-1]), 64, MOST_CELLS))
    return np.asarray(np.interp(np.linspace(0.0, passed[-1], count + 1), passed, knots))


def _smoothed(
    cells: _Cells, widths: Floats, t: Floats, length: float | None
) -> tuple[Floats, Floats]:
    """Kernel sums at t of weight, events, Σwf, Σ(wk)² and Σ(wk)² f(1 - f); and of the bandwidth."""
    f = cells.moment / cells.weight
    columns = np.stack([cells.weight, cells.events, cells.moment, cells.weight * widths])
    squares = np.stack([cells.squared, cells.squared * np.clip(f * (1.0 - f), 0.0, None)])
    sums, of_squares = np.zeros((4, t.size)), np.zeros((2, t.size))
    for start in range(0, cells.x.size, 64):
        some = slice(start, start + 64)
        width = widths[some, None]
        reach = REACH * float(width.max())
        x = cells.x[some]
        window = slice(*np.searchsorted(t, [x[0] - reach, x[-1] + reach]))
        kernel = np.zeros((x.size, t[window].size))
        for image in _images(x, length, reach):
            d = (t[window] - image[:, None]) / width
            kernel += np.exp(-0.5 * d * d)
        kernel /= width * np.sqrt(2.0 * np.pi)
        sums[:, window] += columns[:, some] @ kernel
        of_squares[:, window] += squares[:, some] @ (kernel * kernel)
    return np.concatenate([sums[:3], of_squares]), sums[3]


def wilson(rate: Floats, rows: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Wilson's interval for a rate among so many rows (an effective number may be fractional).

    Examples
    --------
    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([20.0, 20.0]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.299], [0.161, 0.701])
    """
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    rows = np.maximum(rows, 1e-9)
    center = (rate + z * z / (2.0 * rows)) / (1.0 + z * z / rows)
    half = z * np.sqrt(rate * (1.0 - rate) / rows + (z / (2.0 * rows)) ** 2) / (1.0 + z * z / rows)
    return np.clip(center - half, 0.0, 1.0), np.clip(center + half, 0.0, 1.0)


def beta_quantiles(mean: Floats, variance: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Central quantiles of the beta law with this mean and variance, with a continuity correction.

    Examples
    --------
    >>> low, high = beta_quantiles(np.array([0.5]), np.array([0.0025]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.397], [0.603])
    """
    from scipy.special import betaincinv

    low, high = mean.copy(), mean.copy()
    with np.errstate(invalid="ignore"):
        known = (mean > 0.0) & (mean < 1.0) & (variance > 0.0)
    m = mean[known]
    rows = np.maximum(m * (1.0 - m) / variance[known] - 1.0, 1e-3)
    tail = (1.0 - confidence) / 2.0
    # Continuity correction: a rate of few rows takes few values, 0 and 1 among them.
    half = 0.5 / np.maximum(rows, 0.5)
    low[known] = np.clip(betaincinv(m * rows, (1.0 - m) * rows, tail) - half, 0.0, 1.0)
    high[known] = np.clip(betaincinv(m * rows, (1.0 - m) * rows, 1.0 - tail) + half, 0.0, 1.0)
    return low, high


def _by_value(points: Points) -> NDArray[np.int64] | None:
    """Index of each row's value, of a predictor that emits few; None of one that emits many."""
    first = np.diff(points.p, prepend=points.p[0]) > 1e-6
    count = int(np.count_nonzero(first)) + 1
    if count > FEW_VALUES:
        return None
    key, weight = np.cumsum(first, dtype=np.int64), points.mass.sum(axis=1)
    rows = np.bincount(key, weight / weight.sum() * points.n)
    return key if count == 1 or np.median(rows) >= ROWS_EACH else None


def clumps_outside(
    points: Points, curve: Curve, confidence: float, design_effect: float = 1.0
) -> Clumps:
    """Rows at positions where no curve is drawn, in groups no wider than a wide neighbourhood.

    Of a predictor that emits few values, each value is a group; samples too small for a curve make
    up to five.
    """
    at = np.searchsorted(curve.position, points.p).clip(1, curve.position.size - 1)
    bare = ~(curve.drawn[at] | curve.drawn[at - 1])
    key, fewest = _by_value(points), 0.0
    if key is None and points.n < EFFECTIVE_ROWS * design_effect:
        rows = points.mass.sum(axis=1)
        passed = (np.cumsum(rows) - 0.5 * rows) / rows.sum()
        key = (passed * np.clip(points.n // ROWS_EACH, 1, 5)).astype(np.int64)
    if key is None:
        # Beside a line, half of the rows that it needs; where there are only points, fewer.
        fewest = 0.5 * FEWEST_ROWS if curve.drawn.any() else 5.0
        key = np.zeros(bare.size, dtype=np.int64)
        if bare.any():
            wide = WIDEST * curve.span
            p, index = points.p[bare], np.flatnonzero(bare)
            apart = (np.diff(p, prepend=p[0]) > wide) | (np.diff(index, prepend=index[0]) > 1)
            group = np.cumsum(apart)
            first = p[np.flatnonzero(np.diff(group, prepend=-1))][group]
            parts = ((p - first) / (2.0 * wide)).astype(np.int64)
            key[bare] = np.cumsum(apart | (np.diff(parts, prepend=0) != 0))
    place = np.full(bare.size, -1)
    place[bare] = np.unique(key[bare], return_inverse=True)[1]
    every = rates(points, place, int(place.max(initial=-1)) + 1, confidence, design_effect)
    variance = 4.0 * every.prediction * (1.0 - every.prediction) / curve.span**2
    enough = every.rows >= fewest * np.maximum(variance, 1.0)
    return Clumps(*np.stack(list(vars(every).values()))[:, enough])


def rates(
    points: Points,
    place: NDArray[np.int64],
    count: int,
    confidence: float,
    design_effect: float = 1.0,
) -> Clumps:
    """Mean prediction and outcome in each of `count` groups, NaN in empty ones; -1 is no group."""
    used = place >= 0
    p, mass = points.p[used], points.mass[used]
    weight = mass.sum(axis=1)
    squared = weight if points.squared is None else points.squared[used]
    columns = [weight, weight * p, mass[:, 1], squared, squared * p * (1.0 - p)]
    sums = [np.bincount(place[used], column, minlength=count) for column in columns]
    total, moment, events, squares, spread = np.array(sums, dtype=np.float64)
    safe = np.where(total > 0, total, np.nan)
    prediction, observed = moment / safe, np.clip(events / safe, 0.0, 1.0)
    effective = np.nan_to_num(safe**2 / np.maximum(squares, 1e-300)) / design_effect
    variance = spread / safe**2 * design_effect
    return Clumps(
        prediction,
        observed,
        effective,
        *wilson(observed, effective, confidence),
        *beta_quantiles(prediction, variance, confidence),
    )
