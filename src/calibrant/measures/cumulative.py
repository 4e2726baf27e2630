"""Measures on the cumulative residual A(t), the mean of (f - y) over rows with f ≤ t."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_count
from calibrant._format import SMALLEST_P_VALUE
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.measures.result_record import Record

Floats = NDArray[np.float64]

SERIES_TERMS = 64
"""Of the alternating series of Brownian motion, whose terms beyond are below 1e-16."""
MOST_POINTS = 1 << 12
"""Places of a curve with a handful of knots; rows that lie closer are one point."""


@dataclass(frozen=True, repr=False)
class CumulativeDifferences(Record):
    """Both statistics of the cumulative residual, with their p-values.

    Attributes
    ----------
    mad : float
        ECCE-MAD, the largest |A|.
    mad_p_value : float
        How often calibrated predictions reach it: sup of |Brownian motion|.
    range : float
        ECCE-R, the largest A less the smallest.
    range_p_value : float
        How often calibrated predictions reach it: range of Brownian motion.
    noise : float
        √(Σ w² f (1 - f)) / Σ w, the standard deviation of A(1) if the predictions are calibrated.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> found = cumulative_differences([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> found.mad <= found.range
    True
    """

    mad: float
    mad_p_value: float
    range: float
    range_p_value: float
    noise: float
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)


def cumulative_differences(
    y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]
) -> CumulativeDifferences:
    """ECCE-MAD and ECCE-R with p-values: no bins, no bandwidth, one sort.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Notes
    -----
    The p-values are those of Brownian motion, right for many rows. Predictions of exactly 0 or 1 have
    no noise: where these are all there is, a single miss has p-value 0. Residuals of opposite sign far
    apart on the probability axis cancel here where they are neighbours in rank.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, *Metrics of calibration for probabilistic
    predictions*.

    Examples
    --------
    >>> cumulative_differences([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8])
    CumulativeDifferences(mad=0.15, mad_p_value=0.857965, range=0.15, range_p_value=0.997672, noise=0.2, n=4)
    """
    points = as_points(y_true, y_prob, **options)
    at = np.cumsum(points.residuals)
    top, bottom = max(0.0, float(at.max())), min(0.0, float(at.min()))
    squared = over_outcomes(points.mass) if points.squared is None else points.squared
    noise = float(np.sqrt(np.sum(squared * points.p * (1.0 - points.p)))) / points.total
    mad = max(top, -bottom)
    return CumulativeDifferences(
        mad=mad,
        mad_p_value=_p_value(mad, noise, _sup_of_brownian_motion),
        range=top - bottom,
        range_p_value=_p_value(top - bottom, noise, _range_of_brownian_motion),
        noise=noise,
        n=points.n,
        dropped=points.dropped,
    )


def ecce_mad(y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> float:
    """ECCE-MAD = max |A|; see `cumulative_differences`, which has its p-value.

    Examples
    --------
    >>> round(ecce_mad([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8]), 6)
    0.15
    """
    return cumulative_differences(y_true, y_prob, **options).mad


def ecce_range(y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> float:
    """ECCE-R = max A - min A, with A = 0 at the start; see `cumulative_differences`.

    It is the cutoff calibration error: the largest |E[(f - y) 1(a ≤ f ≤ b)]| over all intervals. Whoever
    acts on the predictions by cut-offs, whatever these and the costs are, gains at most that much from
    recalibrating them.

    References
    ----------
    Rossellini, Soloff, Barber, Ren and Willett, *Can a calibration metric be both testable and
    actionable?*, 2025 (arXiv 2502.19851).

    Examples
    --------
    >>> round(ecce_range([1, 0], [0.4, 0.6]), 6)
    0.3
    """
    return cumulative_differences(y_true, y_prob, **options).range


cutoff_calibration_error = ecce_range


def truthful_atb(y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> float:
    """Averaged two-bin calibration error: ∫₀¹ A(t)² + (A(1) - A(t))² dt.

    Cut [0, 1] at a random place; the squared biases on both sides, added up, on average. It is
    perfectly truthful: forecasters gain nothing by reporting anything but the probabilities they believe.

    Parameters
    ----------
    y_true, y_prob, **options
        As for `cumulative_differences`.

    References
    ----------
    Hartline, Hu and Wu, *A perfectly truthful calibration measure*.

    Examples
    --------
    >>> round(truthful_atb([1, 0], [0.5, 0.5]), 6)
    0.0
    >>> round(truthful_atb([0], [0.5]), 6)
    0.25
    """
    points = as_points(y_true, y_prob, **options)
    at = np.concatenate([[0.0], np.cumsum(points.residuals)])
    widths = np.diff(points.p, prepend=0.0, append=1.0)
    return float(widths @ (at**2 + (at[-1] - at) ** 2))


def spline_ks_error(
    y_true: Any, y_prob: Any = None, *, knots: int = 6, **options: Unpack[InputOptions]
) -> float:
    """The largest |A| after A, as a function of the share of rows, is fitted by a natural spline.

    Rows of one prediction lie evenly over their share, where A is a straight line. Where few rows leave
    the curve free, it counts up to what |A| can be for these predictions and outcomes in any order.

    Parameters
    ----------
    knots : int
        Evenly spaced over the share of rows; at least 3.
    y_true, y_prob, **options
        As for `cumulative_differences`.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley, *Calibration of neural networks using
    splines*.

    Examples
    --------
    >>> p = np.linspace(0, 1, 101)
    >>> round(spline_ks_error((p > 0.5).astype(int), p), 2)
    0.1
    """
    points = as_points(y_true, y_prob, **options)
    places = np.linspace(0.0, 1.0, require_count("knots", knots, least=3, most=MOST_POINTS))
    share, at, weight = _spread(points)
    curve = _natural_splines(np.linspace(0.0, 1.0, 513), places)
    fitted = float(np.abs(curve @ _least_squares(share, at, weight, places)).max())
    (negative, positive), p = points.mass.T, points.p
    # |A| is largest where all rows with the event, or all without, come first.
    most = float(max(p @ negative, (1.0 - p) @ positive)) / points.total
    return min(fitted, most)


def _spread(points: Points) -> tuple[Floats, Floats, Floats]:
    """Shares, A there and weights: the rows of a point lie evenly over its share, where A is straight.

    With weights, a point counts for as many rows as are worth it at the mean weight of a row. Where
    rows lie closer than 1/4096, neighbours are one point at their mean.
    """
    mass = over_outcomes(points.mass)
    row = 1.0 if points.squared is None else float(np.mean(points.squared / mass))
    rows = np.maximum(mass / row, 1.0)
    weight = mass / points.total
    parts = np.minimum(np.floor(rows + 1e-9), np.ceil(weight * MOST_POINTS)).astype(np.int64)
    at = np.repeat(np.arange(parts.size), parts)
    within = np.arange(at.size) - np.repeat(np.cumsum(parts) - parts, parts)
    part = (within + 0.5) / parts[at] + 0.5 / rows[at]
    before = np.cumsum(weight) - weight, np.cumsum(points.residuals) - points.residuals
    share = before[0][at] + part * weight[at]
    return share, before[1][at] + part * points.residuals[at], (weight / parts)[at]


def _least_squares(x: Floats, y: Floats, weight: Floats, knots: Floats) -> Floats:
    """Coefficients of the natural spline."""
    rows = np.column_stack([_natural_splines(x, knots), y]) * np.sqrt(weight)[:, None]
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    return np.asarray(np.linalg.lstsq(triangle[:, :-1], triangle[:, -1], rcond=None)[0])


def _natural_splines(x: Floats, knots: Floats) -> Floats:
    """Truncated-power basis of natural cubic splines: linear beyond the first and last knot."""
    last, before = knots[-1], knots[-2]

    def bent(knot: float) -> Floats:
        above, beyond = np.maximum(x - knot, 0.0), np.maximum(x - last, 0.0)
        return np.asarray((above * above * above - beyond * beyond * beyond) / (last - knot))

    columns = [np.ones_like(x), x] + [bent(knot) - bent(before) for knot in knots[:-2]]
    return np.stack(columns, axis=1)


def _p_value(statistic: float, noise: float, survival: Any) -> float:
    if noise == 0.0:
        return 1.0 if statistic < 1e-12 else 0.0
    return max(float(survival(statistic / noise)), SMALLEST_P_VALUE) if statistic > 0.0 else 1.0


def _sup_of_brownian_motion(x: float) -> float:
    """Survival function P(sup |W| > x) on [0, 1]; below x = 0.2 it is 1 to 13 digits."""
    from scipy.special import ndtr

    k = 2.0 * np.arange(SERIES_TERMS) + 1.0
    signs = np.where(np.arange(SERIES_TERMS) % 2, -1.0, 1.0)
    return 1.0 if x < 0.2 else float(np.clip(4.0 * np.sum(signs * ndtr(-k * x)), 0.0, 1.0))


def _range_of_brownian_motion(x: float) -> float:
    """Survival function P(sup W - inf W > x) on [0, 1] (Feller 1951); below x = 0.4 it is 1 to 12 digits."""
    from scipy.special import ndtr

    k = np.arange(1.0, SERIES_TERMS + 1.0)
    signed = np.where(k % 2, k, -k)
    return 1.0 if x < 0.4 else float(np.clip(8.0 * np.sum(signed * ndtr(-k * x)), 0.0, 1.0))
