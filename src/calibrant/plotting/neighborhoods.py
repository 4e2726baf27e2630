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
from typing import Any

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
SHORTEST_END, END_POINTS = 0.01, 25
"""Share of the axis from which on a line is led on to its last rows, and the points of such an end."""
WIDEST_END = 2.2
"""Standard error there, in those of a neighbourhood: 2 for a local line at the end of even rows."""
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
        Confidence band at each point: Wilson's interval at the effective sample size.
    consistency_low, consistency_high : float64[m]
        Simultaneous consistency band: quantiles of the beta law with the mean and the variance
        Σ(wk)² f(1 - f)/(Σwk)² of `observed` under calibration.
    drawn : bool[m]
        Whether the evidence is enough for a line.
    span : float
        Length of the axis that predictions use: 1 unless nearly all are close to 0 or to 1.
    widened : float
        Share of the rows whose bandwidth is wider than SmoothECE's.
    left_out : float
        Share of the rows that are in no neighbourhood of the line and in no group.
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
    left_out: float
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


def neighborhoods(
    points: Points,
    bandwidth: float,
    *,
    widen: bool,
    confidence: float,
    design_effect: float = 1.0,
) -> tuple[Curve, Clumps]:
    """Means of prediction and outcome in kernel neighbourhoods, and in groups of rows that are in none.

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
        Of the confidence band at each point, and of the consistency band at all points together.
    design_effect : float
        Variance of a mean of rows, relative to that of independent ones; effective rows are divided by it.
    """
    cells, length, reflected = _cells_of(points, bandwidth)
    ends = length if reflected else None
    # The reflected kernel of a bandwidth of three lengths is level to the last digit.
    widths = np.full(cells.x.size, min(bandwidth, 3.0 * length))
    weight = cells.weight.sum()
    kish = weight**2 / cells.squared.sum() / design_effect
    wanted = float(np.clip(SAMPLE_SHARE * kish, FEWEST_ROWS, EFFECTIVE_ROWS))
    passed = np.cumsum(cells.weight) / weight
    outermost = np.searchsorted(passed, [0.001, 0.999]).clip(0, passed.size - 1)
    lowest, highest = (cells.moment[outermost] / cells.weight[outermost]).tolist()
    span, reach = max(min(highest, 1.0 - lowest), 1e-9), highest - lowest
    span = span if span < SHORT_SPAN else 1.0
    if widen:
        # Of a short range between 0 and 1, a kernel reaches over half.
        widest = WIDEST * min(span, 2.0 * reach)
        widths = _bandwidths(cells, bandwidth, wanted, design_effect, widest, points.scale)
    t = _mesh(cells.x, widths, length, reflected)
    sums, mean_width, products = _smoothed(cells, widths, t, ends)
    total, events, moment, squares, variance = sums
    known = total > 1e-9 * total.max()
    step = 0.5 * (np.diff(t, prepend=t[0]) + np.diff(t, append=t[-1]))
    safe = np.where(known, total, np.nan)
    columns = {
        "position": np.asarray(points.scale.prediction(t / length), dtype=np.float64),
        "bandwidth": mean_width / safe,
        "prediction": moment / safe,
        "observed": np.clip(events / safe, 0.0, 1.0),
        "effective_rows": np.nan_to_num(safe**2 / np.maximum(squares, 1e-300)) / design_effect,
        "weight": np.where(known, total * step / weight, 0.0),
        "density": np.where(known, total / weight, 0.0),
        "variance": variance / safe**2 * design_effect,
        "along": np.zeros(t.size),
        "up": np.zeros(t.size),
        "spread": np.ones(t.size),
    }
    drawn = known
    prediction = columns["prediction"]
    if widen:
        # No line through a gap between rows, nor beyond the last ones.
        gaps = np.flatnonzero(np.diff(points.p) > WIDEST * span)
        first, last = points.p[np.append(0, gaps + 1)], points.p[np.append(gaps, -1)]
        stretch = np.searchsorted(first - 1e-12, np.nan_to_num(prediction)).clip(1) - 1

        def enough(x: Floats, rows: Floats) -> Bools:
            """Half of the wanted rows; on short axes, the same standard error as a share of them."""
            return rows >= 0.5 * wanted * _error_share(x, span)

        with np.errstate(invalid="ignore"):
            drawn &= enough(prediction, columns["effective_rows"])
            drawn &= (prediction <= last[stretch] + 1e-12) & (t >= cells.x[0]) & (t <= cells.x[-1])
            drawn &= prediction >= np.fmax.accumulate(np.where(drawn, prediction, -np.inf))
        drawn = _without_fragments(drawn, prediction, 1.5 * WIDEST * min(span, reach))
        covered = sum(prediction[run.stop - 1] - prediction[run.start] for run in runs(drawn))
        many = kish >= EFFECTIVE_ROWS and _by_value(points) is None
        if not many or (wanted < EFFECTIVE_ROWS and covered < 0.5 * min(span, reach)):
            drawn[:] = False  # pieces of a small sample are easier to read as points
    turns, turn = _angle(products, variance[:-1], variance[1:]), 0.0
    for run in reversed(runs(drawn)):  # from the right, so that indices stay
        turn += float(turns[run.start : run.stop - 1].sum())
        if not widen:
            continue
        for at, edges, outward in ((run.stop - 1, last, 1), (run.start, first, -1)):
            edge = float(np.clip(edges[stretch[at]], lowest, highest))
            if outward * (edge - prediction[at]) >= SHORTEST_END * span:
                kernel = _kernel(cells.x, widths, t[at : at + 1], ends)[:, 0] / widths
                tail, angle = _end(cells, kernel, edge)
                rows = columns["effective_rows"][at] / tail[2] ** 2
                kept = np.logical_and.accumulate(enough(prediction[at] + tail[0], rows))
                columns, drawn = _joined(columns, drawn, at, tail[:, kept])
                turn += angle
    rows, scatter = columns.pop("effective_rows"), columns.pop("variance")
    along, up, spread = (columns.pop(name) for name in ("along", "up", "spread"))
    prediction, observed = columns.pop("prediction"), columns.pop("observed")
    mass, reached = points.mass.sum(axis=1), prediction + along
    bare = _outside(points.p, columns["position"], reached, drawn)
    place = _groups(points, bare, drawn.any(), span, kish, design_effect)
    if widen and len(runs(drawn)) > 1 and place.max() >= 0:  # easier to read as points only
        drawn, bare, turn = np.zeros_like(drawn), np.ones_like(bare), 0.0
        place = _groups(points, bare, False, span, kish, design_effect)
    groups = int(place.max(initial=-1)) + 1
    z = simultaneous_quantile(confidence, len(runs(drawn)) + groups, float(turn))
    below, above = beta_quantiles(prediction, scatter, z)
    low, high = wilson(observed, rows, confidence)
    curve = Curve(
        **columns,
        prediction=np.clip(prediction + along, 0.0, 1.0),
        observed=np.clip(observed + up, 0.0, 1.0),
        effective_rows=rows / spread**2,
        low=np.clip(observed + up + spread * (low - observed), 0.0, 1.0),
        high=np.clip(observed + up + spread * (high - observed), 0.0, 1.0),
        consistency_low=np.clip(prediction + along + spread * (below - prediction), 0.0, 1.0),
        consistency_high=np.clip(prediction + along + spread * (above - prediction), 0.0, 1.0),
        drawn=drawn,
        span=span,
        widened=float(cells.weight[widths > 1.001 * bandwidth].sum() / weight),
        left_out=float(mass[bare & (place < 0)].sum() / mass.sum()),
        area=_area((moment - events) / weight, t),
    )
    return curve, rates(points, place, groups, confidence, design_effect, z)


def _end(cells: _Cells, kernel: Floats, edge: float) -> tuple[Floats, float]:
    """A neighbourhood's mean prediction and outcome, moved towards the prediction of the last row.

    The mean of a neighbourhood at the end of the rows lies inside them. The weights wk(1 + b(f - m)) move it
    to m + b Var(f): those of a local linear fit, with which a straight line stays straight (Hastie and
    Loader, *Local regression: automatic kernel carpentry*, 1993).

    Returns
    -------
    float64[3, m]
        Change of the prediction, of the observed frequency, and the factor by which its error grows.
    float
        Angle by which the weights have turned.
    """
    f = cells.moment / cells.weight
    kernel = kernel / (kernel @ cells.weight)
    mean, rate = kernel @ cells.moment, kernel @ cells.events
    away = f - mean
    along = np.linspace(0.0, edge - mean, END_POINTS)
    tilt = along / ((kernel * cells.weight) @ away**2)
    up = tilt * ((kernel * away) @ cells.events)
    null = cells.squared * kernel**2 * f * (1.0 - f)
    first, second, third = null.sum(), null @ away, null @ away**2
    spread = np.sqrt(1.0 + (2.0 * tilt * second + tilt**2 * third) / first)
    kept = (spread <= WIDEST_END) & (np.abs(rate + up - 0.5) < 0.5 + 1e-9)
    last = int(np.logical_and.accumulate(kept).sum()) - 1
    angle = _angle(first + tilt[last] * second, first, first * spread[last] ** 2)
    return np.stack([along, up, spread])[:, : last + 1], float(angle)


def _joined(
    columns: dict[str, Floats], drawn: Bools, at: int, tail: Floats
) -> tuple[dict[str, Floats], Bools]:
    """Columns of the curve, and whether it is drawn, with the end of a stretch in place of its last point."""
    outward = 1 if tail[0, -1] > 0.0 else -1
    rest = {name: np.full(tail.shape[1], column[at]) for name, column in columns.items()}
    rest |= dict(zip(("along", "up", "spread"), tail, strict=True))
    rest["weight"][1:] = 0.0  # the same rows
    joined = {
        name: np.concatenate([column[:at], rest[name][::outward], column[at + 1 :]])
        for name, column in columns.items()
    }
    return joined, np.insert(drawn, at, np.ones(tail.shape[1] - 1, dtype=bool))


def _angle(product: Any, first: Any, second: Any) -> Floats:
    """Angle between vectors of these squared lengths; 0 where one has none."""
    length = np.sqrt(first * second)
    cosine = np.divide(product, length, out=np.ones_like(length), where=length > 0.0)
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def simultaneous_quantile(confidence: float, pieces: int, turn: float) -> float:
    """Quantile of the largest |standard normal| on curves: the bound of Sun and Loader (1994).

    Along a curve, the weights of the outcomes turn by an angle; P(max |Z| > z) is at most, and for large z
    nearly, pieces · 2Φ(-z) + turn / π · exp(-z²/2). A point is a piece without a turn.

    References
    ----------
    Sun and Loader, *Simultaneous confidence bands for linear regression and smoothing*, 1994.

    Examples
    --------
    >>> round(simultaneous_quantile(0.95, 1, 0.0), 3), round(simultaneous_quantile(0.95, 1, 6.0), 3)
    (1.96, 2.746)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(z: float) -> float:
        outside = 2.0 * pieces * ndtr(-z) + turn / np.pi * np.exp(-0.5 * z * z)
        return float(outside) - (1.0 - confidence)

    return float(brentq(excess, 0.0, 40.0)) if pieces else 0.0


def _error_share(prediction: Floats, span: float) -> Floats:
    """Factor of the rows that give a rate the error, as a share of its axis, of one half on [0, 1]."""
    return np.maximum(1.0, 4.0 * prediction * (1.0 - prediction) / span**2)


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


def _kernel(x: Floats, widths: Floats, t: Floats, length: float | None) -> Floats:
    """Kernel of each cell at each t, 1 in its middle, reflected at the ends of an axis of a length."""
    kernel = np.zeros((x.size, t.size))
    for image in _images(x, length, REACH * float(widths.max())):
        d = t - image[:, None]
        d /= widths[:, None]
        d *= d
        d *= -0.5
        kernel += np.exp(d, out=d)
    return kernel


def _smoothed(
    cells: _Cells, widths: Floats, t: Floats, length: float | None
) -> tuple[Floats, Floats, Floats]:
    """Kernel sums at t: five of rows, one of bandwidths, one of products with the next t.

    Those of rows are of weight, events, Σwf, Σ(wk)² and Σ(wk)² f(1 - f); the last is Σ(wk)(wk') f(1 - f).
    """
    f = cells.moment / cells.weight
    norm = 1.0 / (widths * np.sqrt(2.0 * np.pi))
    columns = norm * np.stack([cells.weight, cells.events, cells.moment, cells.weight * widths])
    squares = norm**2 * cells.squared * np.stack([np.ones_like(f), (f * (1.0 - f)).clip(0.0)])
    sums, of_squares, products = np.zeros((4, t.size)), np.zeros((2, t.size)), np.zeros(t.size - 1)
    for start in range(0, cells.x.size, 64):
        some = slice(start, start + 64)
        x, reach = cells.x[some], REACH * float(widths[some].max())
        low, high = np.searchsorted(t, [x[0] - reach, x[-1] + reach])
        kernel = _kernel(x, widths[some], t[low:high], length)
        sums[:, low:high] += columns[:, some] @ kernel
        products[low : max(high - 1, low)] += squares[1, some] @ (kernel[:, 1:] * kernel[:, :-1])
        kernel *= kernel
        of_squares[:, low:high] += squares[:, some] @ kernel
    return np.concatenate([sums[:3], of_squares]), sums[3], products


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


def beta_quantiles(mean: Floats, variance: Floats, z: float) -> tuple[Floats, Floats]:
    """Quantiles of the beta law with this mean and variance at Φ(±z), with a continuity correction.

    Examples
    --------
    >>> low, high = beta_quantiles(np.array([0.5]), np.array([0.0025]), 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.397], [0.603])
    """
    from scipy.special import betaincinv, ndtr

    low, high = mean.copy(), mean.copy()
    with np.errstate(invalid="ignore"):
        known = (mean > 0.0) & (mean < 1.0) & (variance > 0.0)
    m = mean[known]
    rows = np.maximum(m * (1.0 - m) / variance[known] - 1.0, 1e-3)
    # Continuity correction: a rate of few rows takes few values, 0 and 1 among them.
    half = 0.5 / np.maximum(rows, 0.5)
    low[known] = np.clip(betaincinv(m * rows, (1.0 - m) * rows, ndtr(-z)) - half, 0.0, 1.0)
    high[known] = np.clip(betaincinv(m * rows, (1.0 - m) * rows, ndtr(z)) + half, 0.0, 1.0)
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


def _outside(p: Floats, position: Floats, reached: Floats, drawn: Bools) -> Bools:
    """Rows that are at no neighbourhood of the line, and not between predictions that it reaches."""
    at = np.searchsorted(position, p).clip(1, drawn.size - 1)
    bare = ~(drawn[at] | drawn[at - 1])
    for run in runs(drawn):
        bare &= (p < reached[run.start]) | (p > reached[run.stop - 1])
    return np.asarray(bare)


def _groups(
    points: Points,
    bare: Bools,
    beside_line: bool,
    span: float,
    kish: float,
    design_effect: float,
) -> NDArray[np.int64]:
    """Group of each row where no curve is drawn, no wider than a wide neighbourhood; -1 elsewhere.

    Of a predictor that emits few values, each value is a group; samples too small for a curve make
    up to five.
    """
    key, fewest = _by_value(points), 0.0
    rows = points.mass.sum(axis=1) * kish / points.mass.sum()
    if key is None and kish < EFFECTIVE_ROWS:
        passed = (np.cumsum(rows) - 0.5 * rows) / kish
        key = (passed * np.clip(kish // ROWS_EACH, 1, 5)).astype(np.int64)
    if key is None:
        # Beside a line, half of the rows that it needs; where there are only points, fewer.
        fewest = 0.5 * FEWEST_ROWS if beside_line else 5.0
        wide, p, index = WIDEST * span, points.p[bare], np.flatnonzero(bare)
        passed = np.append(0.0, np.cumsum(rows[bare]))
        apart = np.flatnonzero((np.diff(p) > wide) | (np.diff(index) > 1)) + 1
        needed = np.maximum(FEWEST_ROWS, fewest * _error_share(p, span))
        edges = [0]
        while (start := edges[-1]) < p.size:
            # As many rows as are needed, from half to twice the widest bandwidth.
            full = np.flatnonzero(passed[start + 1 :] - passed[start] >= needed[start:])
            near, far = np.searchsorted(p, p[start] + wide * np.array([0.5, 2.0]), "right")
            limit = apart[apart > start].min(initial=p.size)
            stop = start + 1 + int(full[0]) if full.size else p.size
            edges.append(int(min(max(stop, near), far, limit)))
        key = np.zeros(bare.size, dtype=np.int64)
        key[bare] = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    place = np.full(bare.size, -1)
    place[bare] = np.unique(key[bare], return_inverse=True)[1]
    every = rates(points, place, int(place.max(initial=-1)) + 1, 0.5, design_effect)
    enough = np.append(every.rows >= fewest * _error_share(every.prediction, span), False)
    if not beside_line and not enough.any():
        enough[:-1] = True  # better points with long intervals than none
    return np.where(enough[place], np.cumsum(enough)[place] - 1, -1)


def rates(
    points: Points,
    place: NDArray[np.int64],
    count: int,
    confidence: float,
    design_effect: float = 1.0,
    z: float | None = None,
) -> Clumps:
    """Mean prediction and outcome in each of `count` groups, NaN in empty ones; -1 is no group.

    The consistency band is that of each single group, or the one at the normal quantile `z`.
    """
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
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0) if z is None else z
    return Clumps(
        prediction,
        observed,
        effective,
        *wilson(observed, effective, confidence),
        *beta_quantiles(prediction, spread / safe**2 * design_effect, z),
    )
