"""Calibration errors over bins, and the ways proposed to choose the bins or remove their bias."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_choice, require_count
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.errors import InputError, invalid
from calibrant.io.from_data import points_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import Bounded, Record

Floats = NDArray[np.float64]
Strategy = Literal["uniform", "quantile"]
Norm = Literal["l1", "l2", "max"]

DEFAULT_BINS = 15
"""Of Guo et al., 2017."""
MOST_BINS = 1 << 12
"""At which a sweep ends: each number of bins takes a pass over them."""
LARGEST_NUMBER = 1 << 24
"""Of bins that anyone may ask for: their edges fit into memory."""
CROSS_VALIDATED = sorted({1} | {base << k for k in range(11) for base in (2, 3)})
DRAWS = 499
"""With the sample itself 500: usual levels are whole numbers of them (Davidson and MacKinnon 2000)."""
FINEST = 1 << 12
"""Cells in which T-Cal draws outcomes."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over the non-empty bins of a partition of [0, 1] into intervals closed on the right.

    Attributes
    ----------
    weight : float64[k]
        Share of the rows in each.
    prediction, outcome : float64[k]
        Mean prediction and mean outcome in each.
    doubtful : float64[k]
        Share of rows in each that, for all a sketch knows, may belong to a neighbour.
    squared : float64[k]
        Sum of the squared shares of the rows in each.
    """

    weight: Floats
    prediction: Floats
    outcome: Floats
    doubtful: Floats
    squared: Floats

    @property
    def gap(self) -> Floats:
        """Mean prediction less mean outcome."""
        return self.prediction - self.outcome


def bins_of(points: Points, n_bins: int | Literal["cube_root"], strategy: Strategy) -> Bins:
    """Bins of equal width, or of equal mass with rows of one prediction kept together.

    With equal mass, a prediction belongs to the bin in which the middle of its mass lies.
    """
    bins = _bin_number(n_bins, points.n)
    require_choice("strategy", strategy, ("uniform", "quantile"))
    if strategy == "uniform":
        cuts = np.searchsorted(points.p, _edges(bins), side="right")
    else:
        target = np.arange(1, bins) * (points.total / bins)
        upto = points.cumulative[:, 0]
        at = np.minimum(np.searchsorted(upto[1:], target), points.p.size - 1)
        cuts = at + (0.5 * (upto[at] + upto[at + 1]) < target)
    cuts = np.unique(np.concatenate([[0], cuts, [points.p.size]]))
    weight, events, predictions = np.diff(points.cumulative[cuts], axis=0).T
    squared = weight if points.squared is None else np.add.reduceat(points.squared, cuts[:-1])
    return Bins(
        weight / points.total,
        predictions / weight,
        events / weight,
        _doubtful(points, bins, strategy, cuts) / points.total,
        squared / points.total**2,
    )


def _bin_number(n_bins: Any, rows: int) -> int:
    """Number of bins; "cube_root" is scikit-learn's rule, the cube root of the number of rows, rounded up."""
    if isinstance(n_bins, str):
        if n_bins != "cube_root":
            raise invalid("n_bins", 'be a number or "cube_root"', n_bins)
        return math.ceil(round(math.cbrt(rows), 9))
    return require_count("n_bins", n_bins, most=LARGEST_NUMBER)


def _edges(bins: int) -> Floats:
    return np.linspace(0.0, 1.0, bins + 1)[1:-1]


def _doubtful(points: Points, bins: int, strategy: Strategy, cuts: NDArray[Any]) -> Floats:
    """Weight, in each bin, of cells of a sketch that reach over one of its edges."""
    if points.position_error == 0.0:
        return np.zeros(cuts.size - 1)
    if strategy == "uniform":
        edges = _edges(bins)
        spread = points.position_error * points.scale.slopes[0]
        last = np.searchsorted(edges, points.p + spread, side="right")
        doubt = last != np.searchsorted(edges, points.p - spread)
    else:
        place = points.cumulative[:, 0] * (bins / points.total)
        doubt = np.floor(place[:-1] + 1e-9) != np.floor(place[1:] - 1e-9)
    return np.add.reduceat(over_outcomes(points.mass) * doubt, cuts[:-1])


def expected_calibration_error(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    n_bins: int | Literal["cube_root"] = DEFAULT_BINS,
    strategy: Strategy = "uniform",
    norm: Norm = "l1",
    **options: Unpack[ReadingOptions],
) -> float:
    """Binned calibration error (ECE): the gap between mean prediction and mean outcome over bins.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns.
    n_bins : int or "cube_root"
        How many; "cube_root" is ⌈n^(1/3)⌉.
    strategy : {"uniform", "quantile"}
        Equal widths, intervals (a, b] with 0 in the first; or equal numbers of rows.
    norm : {"l1", "l2", "max"}
        Weighted mean of |gap|; root of the weighted mean of gap²; or the largest |gap|.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Notes
    -----
    Use it to compare with published numbers, and `smooth_ece` for everything else. The binned error
    depends on the bins: with more of them it grows, from noise alone. It is neither continuous in the
    predictions (an arbitrarily small change of one at an edge moves it by up to 1) nor consistent (it is
    0 for some predictions that are far from calibrated). SmoothECE has none of these faults, and no bins
    to choose.

    References
    ----------
    Naeini, Cooper and Hauskrecht, 2015; Guo, Pleiss, Sun and Weinberger, 2017.

    Examples
    --------
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.3, 0.3, 0.8, 0.9]), 3)
    0.175
    """
    points = points_from(y_true, y_prob, data, options)
    return bounded_ece(points, n_bins=n_bins, strategy=strategy, norm=norm).value


ece = expected_calibration_error


def bounded_ece(
    points: Points,
    *,
    n_bins: int | Literal["cube_root"] = DEFAULT_BINS,
    strategy: Strategy = "uniform",
    norm: Norm = "l1",
) -> Bounded:
    """Binned calibration error, and the most that rows near an edge can change it if a sketch has them.

    A share m that changes bins changes the sum of |weight · gap| by 2m, the sum of weight · gap² by
    6m, and a bin's gap by 2m / (weight - m) at most. Mean predictions are known up to their drift.
    """
    require_choice("norm", norm, ("l1", "l2", "max"))
    table = bins_of(points, n_bins, strategy)
    m, drift = table.doubtful, points.drift
    if norm == "l1":
        return Bounded(float(table.weight @ np.abs(table.gap)), 2.0 * float(m.sum()) + drift)
    if norm == "l2":
        value, squared_error = float(np.sqrt(table.weight @ table.gap**2)), 6.0 * float(m.sum())
        direct = squared_error / value if value > 0.0 else np.inf
        return Bounded(value, float(min(np.sqrt(squared_error), direct)) + drift)
    with np.errstate(divide="ignore"):
        error = np.where(m > 0, 2.0 * m / np.maximum(table.weight - m, 0.0), 0.0)
    return Bounded(float(np.abs(table.gap).max()), float(min(error.max() + drift, 1.0)))


def debiased_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int | Literal["cube_root"] = DEFAULT_BINS,
    strategy: Strategy = "quantile",
    **options: Unpack[InputOptions],
) -> float:
    """Debiased ℓ2 calibration error: over bins, without the bias of the bins' own noise.

    √max(0, Σ weight · (gap² - ȳ(1-ȳ)/(n_b - 1))) over bins with two rows or more, whose weights make
    up 1; NaN where no bin has two. With weights, n_b is the number (Σw)² / Σw² of rows of equal weight
    that a bin is worth, which leaves the estimate of the noise unbiased.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, **options
        As for `expected_calibration_error`; not for soft labels, nor for sketches with weights, which may
        hold some: the noise of an outcome between 0 and 1 is not known.

    References
    ----------
    Kumar, Liang and Ma, *Verified uncertainty calibration*, 2019; Bröcker, 2012; Ferro and Fricker,
    2012.

    Examples
    --------
    >>> debiased_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], n_bins=1)
    0.0
    """
    points = as_points(y_true, y_prob, **options)
    if points.soft:
        message = "`y_true` must be 0 or 1: the debiased error takes neither soft labels nor a sketch with "
        hint = (
            "Pass `y_true` and `y_prob` as arrays of rows, or use `calibrant.measures.sweep_ece`."
        )
        raise InputError(f"{message}weights, which may hold some.", hint=hint)
    table = bins_of(points, n_bins, strategy)
    rows = table.weight**2 / table.squared
    used = rows > 1.5
    if not used.any():
        return math.nan
    share = table.weight[used] / table.weight[used].sum()
    noise = table.outcome[used] * (1.0 - table.outcome[used]) / (rows[used] - 1.0)
    return float(np.sqrt(max(0.0, float(share @ (table.gap[used] ** 2 - noise)))))


def sweep_ece(
    y_true: Any, y_prob: Any = None, *, norm: Norm = "l1", **options: Unpack[InputOptions]
) -> float:
    """ECE-sweep: over as many bins of equal mass as leave the mean outcomes in increasing order.

    The number of bins grows from 1 until the first one that breaks the order; the one before counts.

    Parameters
    ----------
    y_true, y_prob, norm, **options
        As for `expected_calibration_error`.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer, *Mitigating bias in calibration error estimation*, 2022.

    Examples
    --------
    >>> round(sweep_ece([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9]), 3)
    0.25
    """
    points = as_points(y_true, y_prob, **options)
    best = _ordered_bins(points)
    return bounded_ece(points, n_bins=best, strategy="quantile", norm=norm).value


def _ordered_bins(points: Points) -> int:
    """Number of bins before the first that leaves mean outcomes out of order."""
    most = min(int(points.n), points.p.size, MOST_BINS)
    for bins in range(2, most + 1):
        if np.any(np.diff(bins_of(points, bins, "quantile").outcome) < 0.0):
            return bins - 1
    return most


def cross_validated_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    strategy: Strategy = "quantile",
    norm: Norm = "l1",
    **options: Unpack[InputOptions],
) -> float:
    """Cross-validated ECE: over the number of bins whose means predict left-out outcomes best.

    The numbers 1, 2, 3, 4, 6, 8, 12, ... are compared by the squared error of each outcome against
    the mean of the other outcomes in its bin, which has a closed form: no folds, no seed.

    Parameters
    ----------
    y_true, y_prob, strategy, norm, **options
        As for `expected_calibration_error`; for rows without weights.

    Examples
    --------
    >>> round(cross_validated_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5]), 3)
    0.0
    """
    points = as_points(y_true, y_prob, **options)
    if points.squared is not None:
        message = "`sample_weight` cannot be used where rows are left out one by one, nor can soft labels."
        raise InputError(message, hint="Use `calibrant.ece`.")
    allowed = [bins for bins in CROSS_VALIDATED if bins <= max(1, points.n // 2)]
    best = min(allowed, key=lambda bins: _left_out_error(bins_of(points, bins, strategy), points.n))
    return bounded_ece(points, n_bins=best, strategy=strategy, norm=norm).value


def _left_out_error(table: Bins, n: int) -> float:
    """Sum of (y - mean of the others in the bin)²; a row alone in its bin is predicted as ½."""
    rows, events = table.weight * n, table.weight * n * table.outcome
    others = np.maximum(rows - 1.0, 1.0)
    squared = events * ((rows - events) / others) ** 2 + (rows - events) * (events / others) ** 2
    return float(np.sum(np.where(rows > 1.5, squared, 0.25)))


# -- T-Cal -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class TCal(Record):
    """T-Cal's statistic where it is most significant, and a p-value that allows for the choice.

    Attributes
    ----------
    statistic : float
        Unbiased estimate of the sum of weight · gap² over the bins; may be negative.
    p_value : float
        Share of calibrated outcomes whose best p-value over the numbers of bins is as small.
    n_bins : int
        Number of bins of equal width at which the statistic stands out most.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> t_cal(rng.random(500) < p**2, p).p_value < 0.05
    True
    """

    statistic: float
    p_value: float
    n_bins: int
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)


def t_cal(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int | None = None,
    draws: int = DRAWS,
    random_state: int = 0,
    **options: Unpack[InputOptions],
) -> TCal:
    """T-Cal, a test of calibration by the debiased ℓ2 error, adaptive over the number of bins.

    T_m = (1/n) Σ_bins ((Σr)² - Σr²) / n_bin with r = y - f. Under calibration its mean is 0.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`. Without weights.
    y_prob : array
        Predicted probabilities of outcome 1.
    n_bins : int, optional
        One number of bins. By default 2, 4, 8, ... up to n^(2/5) · 2, and the one that stands out
        most, with a p-value that accounts for having looked at all.
    draws : int
        How often outcomes are drawn from the predictions.
    random_state : int
        Seed of the draws.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    References
    ----------
    Lee, Huang, Hassani and Dobriban, *T-Cal: an optimal test for the calibration of predictive
    models*, 2023.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> t_cal(p > 0.5, p).p_value
    0.002
    """
    points = as_points(y_true, y_prob, **options)
    if points.squared is not None:
        message = "`sample_weight` cannot be used in a test that draws the outcomes of whole rows, nor can "
        hint = "Use `calibrant.assess`, whose test takes both."
        raise InputError(f"{message}soft labels.", hint=hint)
    draws = require_count("draws", draws, most=LARGEST_NUMBER)
    most = max(2, int(2 * points.n**0.4))
    tried = [1 << k for k in range(1, most.bit_length())]
    if n_bins is not None:
        tried = [_bin_number(n_bins, points.n)]
    grouped = _grouped(points, tried[-1])
    rows = over_outcomes(grouped.mass).astype(np.int64)
    drawn = generator(random_state).binomial(rows, grouped.p, size=(draws, rows.size))
    observed = points.mass[None, :, 1]
    values = np.stack(
        [
            np.append(t_cal_statistic(points, observed, m), t_cal_statistic(grouped, drawn, m))
            for m in tried
        ],
        axis=1,
    )
    ranks = np.stack([_upper_rank(column) for column in values.T], axis=1)
    smallest = ranks.min(axis=1)
    at = int(np.argmin(ranks[0]))
    p_value = float(np.mean(smallest <= smallest[0] + 1e-12))
    return TCal(float(values[0, at]), p_value, tried[at], points.n, points.dropped)


def _grouped(points: Points, bins: int) -> Points:
    """Points merged into a grid of which this many bins are unions, at their mean prediction.

    For the draws alone: a Bernoulli sum in so narrow a cell is binomial for all that matters.
    """
    cells = bins * -(-FINEST // bins)
    if points.p.size <= cells:
        return points
    cell = np.minimum((points.p * cells).astype(np.int64), cells - 1)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    mass = np.add.reduceat(points.mass, first, axis=0)
    mean = np.add.reduceat(points.p * over_outcomes(points.mass), first) / over_outcomes(mass)
    return Points(mean, mass, points.n)


def t_cal_statistic(points: Points, events: NDArray[Any], bins: int) -> Floats:
    """T_m for each row of events; with weights Σ_bins ((Σwr)² - Σ(wr)²) / Σ_bin w, divided by Σw."""
    if points.squared is not None and points.squared_residuals is None:
        message = "`sample_weight` of single rows is needed, which a sketch does not hold."
        raise InputError(message, hint="Pass arrays.")
    rows = over_outcomes(points.mass)
    index = np.minimum((points.p * bins).astype(np.int64), bins - 1)
    first = np.flatnonzero(np.diff(index, prepend=-1))
    sums = np.add.reduceat(events - rows * points.p, first, axis=1)
    if points.squared_residuals is None:
        each = events * (1.0 - points.p) ** 2 + (rows - events) * points.p**2
    else:
        each = points.squared_residuals[None]
    squares = np.add.reduceat(each, first, axis=1)
    counts = np.add.reduceat(rows, first)
    return np.asarray(((sums**2 - squares) / counts).sum(axis=1) / points.total)


def _upper_rank(values: Floats) -> Floats:
    """Share of the values that are at least as large, for each."""
    order = np.sort(values)
    return 1.0 - np.searchsorted(order, values - 1e-15, side="left") / values.size
