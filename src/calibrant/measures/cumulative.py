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
from calibrant.data.rows import Dropped, InputOptions
from calibrant.measures.result_record import Bounded, Record, rows_text

__all__ = [
    "CumulativeDifferences",
    "cumulative_differences",
    "ecce_mad",
    "ecce_mad_of_atoms",
    "ecce_range",
    "ecce_range_of_atoms",
    "spline_ks_error",
    "spline_ks_of_atoms",
    "truthful_atb",
    "truthful_atb_of_atoms",
]

Floats = NDArray[np.float64]

SERIES_TERMS = 64
ROWS_AT_ONCE = 1 << 14
MOST_POINTS = 1 << 12


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
    error : float
        Bound on the error of `mad`; that of `range` is twice it. 0 from arrays.
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
    error: float
    n: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)

    def __repr__(self) -> str:
        return (
            f"CumulativeDifferences(mad={self.mad:.6f} (p={self.mad_p_value:.3g}), "
            f"range={self.range:.6f} (p={self.range_p_value:.3g}), "
            f"{rows_text(self.n, self.dropped)})"
        )


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
        How to read the arrays (see `InputOptions`).

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
    CumulativeDifferences(mad=0.150000 (p=0.858), range=0.150000 (p=0.998), n=4)
    """
    atoms = as_points(y_true, y_prob, **options)
    at = np.cumsum(atoms.residuals)
    top, bottom = max(0.0, float(at.max())), min(0.0, float(at.min()))
    squared = over_outcomes(atoms.mass) if atoms.squared is None else atoms.squared
    noise = float(np.sqrt(np.sum(squared * atoms.p * (1.0 - atoms.p)))) / atoms.total
    mad = max(top, -bottom)
    return CumulativeDifferences(
        mad=mad,
        mad_p_value=_p_value(mad, noise, _sup_of_brownian_motion),
        range=top - bottom,
        range_p_value=_p_value(top - bottom, noise, _range_of_brownian_motion),
        noise=noise,
        error=_largest_cell(atoms),
        n=atoms.n,
        dropped=atoms.dropped,
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

    Examples
    --------
    >>> round(ecce_range([1, 0], [0.4, 0.6]), 6)
    0.3
    """
    return cumulative_differences(y_true, y_prob, **options).range


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
    return truthful_atb_of_atoms(as_points(y_true, y_prob, **options)).value


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
    return spline_ks_of_atoms(as_points(y_true, y_prob, **options), knots=knots).value


def ecce_mad_of_atoms(atoms: Points) -> Bounded:
    """ECCE-MAD and how much unknown positions can change it."""
    both = cumulative_differences(atoms)
    return Bounded(both.mad, both.error)


def ecce_range_of_atoms(atoms: Points) -> Bounded:
    """ECCE-R and how much unknown positions can change it."""
    both = cumulative_differences(atoms)
    return Bounded(both.range, 2.0 * both.error)


def truthful_atb_of_atoms(atoms: Points) -> Bounded:
    """ATB and how much unknown positions can change it: |A| ≤ 1 differs only inside cells."""
    at = np.concatenate([[0.0], np.cumsum(atoms.residuals)])
    widths = np.diff(atoms.p, prepend=0.0, append=1.0)
    value = float(widths @ (at**2 + (at[-1] - at) ** 2))
    return Bounded(value, 4.0 * atoms.position_error * atoms.scale.steepness)


def spline_ks_of_atoms(atoms: Points, *, knots: int = 6) -> Bounded:
    """Spline KS error; an error of A inside cells passes through the fit as its norm allows.

    Without weights the rows of a sketch lie at the same shares as those of arrays. With weights they
    need not, and there is no bound.
    """
    require_count("knots", knots, least=3)
    places = np.linspace(0.0, 1.0, int(knots))
    share, at, weight = _spread(atoms)
    curve = _natural_splines(np.linspace(0.0, 1.0, 513), places)
    fitted = float(np.abs(curve @ _least_squares(share, at, weight, places)).max())
    value = min(fitted, _most(atoms))  # few rows leave the curve free between them
    if atoms.position_error == 0.0:
        return Bounded(value, 0.0)
    if atoms.squared is not None:
        return Bounded(value, float("nan"))
    root = np.sqrt(weight)
    solver = np.linalg.pinv(_natural_splines(share, places) * root[:, None]) * root
    norm = max(float(np.abs(row @ solver).sum()) for row in curve)
    return Bounded(value, norm * (_largest_cell(atoms) + (knots / MOST_POINTS) ** 2))


def _spread(atoms: Points) -> tuple[Floats, Floats, Floats]:
    """Shares, A there and weights: the rows of an atom lie evenly over its share, where A is straight.

    With weights, an atom counts for as many rows as are worth it at the mean weight of a row. Where
    rows lie closer than 1/4096, neighbours are one point at their mean.
    """
    mass = over_outcomes(atoms.mass)
    row = 1.0 if atoms.squared is None else float(np.mean(atoms.squared / mass))
    rows = np.maximum(mass / row, 1.0)
    weight = mass / atoms.total
    points = np.minimum(np.floor(rows + 1e-9), np.ceil(weight * MOST_POINTS)).astype(np.int64)
    atom = np.repeat(np.arange(points.size), points)
    within = np.arange(atom.size) - np.repeat(np.cumsum(points) - points, points)
    part = (within + 0.5) / points[atom] + 0.5 / rows[atom]
    before = np.cumsum(weight) - weight, np.cumsum(atoms.residuals) - atoms.residuals
    share = before[0][atom] + part * weight[atom]
    return share, before[1][atom] + part * atoms.residuals[atom], (weight / points)[atom]


def _least_squares(x: Floats, y: Floats, weight: Floats, knots: Floats) -> Floats:
    """Coefficients of the natural spline, by a QR decomposition that takes the rows block by block."""
    triangle: Floats = np.zeros((0, knots.size + 1))
    for start in range(0, x.size, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        rows = np.column_stack([_natural_splines(x[part], knots), y[part]])
        rows *= np.sqrt(weight[part])[:, None]
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, rows]), mode="r"))
    return np.asarray(np.linalg.lstsq(triangle[:, :-1], triangle[:, -1], rcond=None)[0])


def _natural_splines(x: Floats, knots: Floats) -> Floats:
    """Truncated-power basis of natural cubic splines: linear beyond the first and last knot."""
    last, before = knots[-1], knots[-2]

    def bent(knot: float) -> Floats:
        above, beyond = np.maximum(x - knot, 0.0), np.maximum(x - last, 0.0)
        return np.asarray((above * above * above - beyond * beyond * beyond) / (last - knot))

    columns = [np.ones_like(x), x] + [bent(knot) - bent(before) for knot in knots[:-2]]
    return np.stack(columns, axis=1)


def _most(atoms: Points) -> float:
    """|A| is largest where all rows with the event, or all without, come first."""
    (negative, positive), p = atoms.mass.T, atoms.p
    return float(max(p @ negative, (1.0 - p) @ positive)) / atoms.total


def _largest_cell(atoms: Points) -> float:
    """A is known at the ends of cells; inside one it moves by the residuals there at most."""
    if atoms.position_error == 0.0:
        return 0.0
    p, (negative, positive) = atoms.p, atoms.mass.T
    return float((p * negative + (1.0 - p) * positive).max() / atoms.total)


def _p_value(statistic: float, noise: float, survival: Any) -> float:
    if noise == 0.0:
        return 1.0 if statistic < 1e-12 else 0.0
    return max(float(survival(statistic / noise)), SMALLEST_P_VALUE) if statistic > 0.0 else 1.0


def _sup_of_brownian_motion(x: float) -> float:
    """P(sup |W| > x) on [0, 1]; below x = 0.2 it is 1 to 13 digits."""
    from scipy.special import ndtr

    k = 2.0 * np.arange(SERIES_TERMS) + 1.0
    signs = np.where(np.arange(SERIES_TERMS) % 2, -1.0, 1.0)
    return 1.0 if x < 0.2 else float(np.clip(4.0 * np.sum(signs * ndtr(-k * x)), 0.0, 1.0))


def _range_of_brownian_motion(x: float) -> float:
    """P(sup W - inf W > x) on [0, 1] (Feller 1951); below x = 0.4 it is 1 to 12 digits."""
    from scipy.special import ndtr

    k = np.arange(1.0, SERIES_TERMS + 1.0)
    signed = np.where(k % 2, k, -k)
    return 1.0 if x < 0.4 else float(np.clip(8.0 * np.sum(signed * ndtr(-k * x)), 0.0, 1.0))
