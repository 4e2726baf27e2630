"""Kernel calibration errors: the residuals' length in a space of smooth functions."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice, require_flag, require_number
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.data.scales import PROBABILITY, WIDTHS_OF_MARGIN, Scale, as_scale
from calibrant.errors import InputError
from calibrant.measures._chains import laplace_sum

Floats = NDArray[np.float64]
Kernel = Literal["laplace", "rbf"]


def kernel_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    scale: str | Scale = PROBABILITY,
    **options: Unpack[InputOptions],
) -> float:
    """kCE = E[r r' k(f, f')]^½ over independent pairs of rows, each also with itself.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    kernel : {"laplace", "rbf"}
        exp(-|d| / bandwidth) or exp(-d² / (2 bandwidth²)).
    bandwidth : float
        In units of the scale.
    scale : str or Scale
        d = h(u) - h(v).
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Returns
    -------
    float
        Exact to rounding: for "laplace" by one recursion over sorted predictions, for "rbf" by the
        Fourier series of the kernel, cut where its terms are below 1e-17.

    Notes
    -----
    With bandwidth 1 and the Laplace kernel it is a consistent calibration measure: within constant
    factors between wCE and its square root. A calibrated model does not reach 0 on a finite sample;
    `squared_kernel_calibration_error` has an unbiased estimate.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, *A unifying theory of distance from calibration*, section 8.

    Examples
    --------
    >>> round(kernel_calibration_error([0, 1], [0.25, 0.25]), 6)
    0.25
    """
    value = squared_kernel_calibration_error(
        y_true, y_prob, kernel=kernel, bandwidth=bandwidth, scale=scale, **options
    )
    return float(np.sqrt(max(value, 0.0)))


def squared_kernel_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    unbiased: bool = False,
    scale: str | Scale = PROBABILITY,
    **options: Unpack[InputOptions],
) -> float:
    """kCE², with or without the pairs of a row with itself.

    Parameters
    ----------
    unbiased : bool
        Leave those pairs out: the expectation is then 0 for calibrated predictions, and the value
        may be negative. With weights, Σ_{i≠j} w_i w_j r_i r_j k / Σ_{i≠j} w_i w_j; a sketch with
        weights is refused.
    y_true, y_prob, kernel, bandwidth, scale, **options
        As for `kernel_calibration_error`.

    References
    ----------
    Widmann, Lindsten and Zachariah, *Calibration tests in multi-class classification* (SKCE).

    Examples
    --------
    >>> squared_kernel_calibration_error([0, 1], [0.5, 0.5], unbiased=True)
    -0.25
    """
    require_choice("kernel", kernel, ("laplace", "rbf"))
    require_number("bandwidth", bandwidth, 0.0)
    require_flag("unbiased", unbiased)
    points = as_points(y_true, y_prob, **options)
    r = points.residuals
    z = as_scale(scale, base_rate=points.base_rate).z(points.p)
    total = laplace_sum(z, r, bandwidth) if kernel == "laplace" else _rbf_sum(z, r, bandwidth)
    if not unbiased:
        return float(total)
    itself, squares = _rows_with_themselves(points)
    if not squares < 1.0 - 1e-12:
        message = "`unbiased` needs two or more rows with weight; there is one."
        raise InputError(message)
    return float((total - itself) / (1.0 - squares))


def _rows_with_themselves(points: Points) -> tuple[float, float]:
    """Σ (w r)² and Σ w², with weights that add up to 1."""
    if points.squared is None:
        negative, positive = points.mass.T
        squares = float(np.sum(negative * points.p**2 + positive * (1.0 - points.p) ** 2))
        return squares / points.total**2, 1.0 / points.total
    if points.squared_residuals is None:
        message = "`unbiased` needs the squares of single rows, which a sketch with weights does not hold."
        raise InputError(message, hint="Pass `y_true` and `y_prob` as arrays.")
    return (
        float(points.squared_residuals.sum()) / points.total**2,
        float(points.squared.sum()) / points.total**2,
    )


def mmce(y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> float:
    """Maximum mean calibration error: kCE of the Laplace kernel with bandwidth 0.2.

    Parameters
    ----------
    y_true, y_prob, **options
        As for `kernel_calibration_error`.

    References
    ----------
    Kumar, Sarawagi and Jain, *Trainable calibration measures for neural networks from kernel mean
    embeddings*.

    Examples
    --------
    >>> round(mmce([0, 1], [0.25, 0.25]), 6)
    0.25
    """
    return kernel_calibration_error(y_true, y_prob, bandwidth=0.2, **options)


def _rbf_sum(z: Floats, r: Floats, bandwidth: float) -> float:
    """The double sum by the kernel's Fourier series on a period that no pair can reach around.

    k(d) = Σ_k a_k cos(2πkd / P), so that the sum is Σ_k a_k |Σ_i r_i exp(2πikz_i / P)|². Points at
    infinity are near one another only.
    """
    finite = np.isfinite(z)
    far = float(np.sum(r[z == -np.inf]) ** 2 + np.sum(r[z == np.inf]) ** 2)
    if not finite.any():
        return far
    z, r = z[finite] - z[finite][0], r[finite]
    period = float(z[-1]) + WIDTHS_OF_MARGIN * bandwidth
    terms = int(np.ceil(WIDTHS_OF_MARGIN * period / (2.0 * np.pi * bandwidth)))
    share = bandwidth * np.sqrt(2.0 * np.pi) / period
    total = share * float(np.sum(r)) ** 2
    for k in range(1, terms + 1):
        angle = (2.0 * np.pi * k / period) * z
        weight = 2.0 * share * np.exp(-0.5 * (2.0 * np.pi * k * bandwidth / period) ** 2)
        total += weight * (float(r @ np.cos(angle)) ** 2 + float(r @ np.sin(angle)) ** 2)
    return float(far + total)


CELLS = 1 << 14
"""Nodes of the density estimate: its error is their square, 4e-9."""
LARGEST_BANDWIDTH = 100.0
"""Far beyond it, the kernel would not fit into memory; the estimate is level long before."""


def kde_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: float | None = None,
    **options: Unpack[InputOptions],
) -> float:
    """∫ |t - π̃(t)| p̃(t) dt with density p̃ and regression π̃ from one triweight kernel.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    bandwidth : float, optional
        At most 100. By default 1.06 · standard deviation · n^(-1/5), the normal reference rule.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Notes
    -----
    The kernel is reflected at 0 and 1. The regression is compared with t, not with the smoothed
    predictions, so that calibrated predictions have an error of the order of the bandwidth.

    References
    ----------
    Zhang, Kailkhura and Han, *Mix-n-match: ensemble and compositional methods for uncertainty
    calibration*, 2020.

    Examples
    --------
    >>> p = np.linspace(0, 1, 101)
    >>> round(kde_ece((p > 0.5).astype(int), p), 2)
    0.21
    """
    points = as_points(y_true, y_prob, **options)
    weight = over_outcomes(points.mass) / points.total
    if bandwidth is None:
        spread = float(np.sqrt(weight @ (points.p - weight @ points.p) ** 2))
        bandwidth = 1.06 * spread * points.n**-0.2 or 1.0 / CELLS
    require_number("bandwidth", bandwidth, 0.0, LARGEST_BANDWIDTH)
    at = np.arange(CELLS + 1) / CELLS
    density = _smoothed(points.p, weight, bandwidth)
    events = _smoothed(points.p, points.mass[:, 1] / points.total, bandwidth)
    gap = np.abs(at * density - events)
    return float(np.sum(gap) - 0.5 * (gap[0] + gap[-1])) / CELLS


def _smoothed(p: Floats, mass: Floats, bandwidth: float) -> Floats:
    """Mass on the nodes, shared linearly, convolved with (35/32)(1-u²)³ and reflected."""
    from scipy.signal import fftconvolve

    place = p * CELLS
    left = np.minimum(place.astype(np.int64), CELLS - 1)
    share = place - left
    nodes = np.bincount(left, mass * (1.0 - share), CELLS + 1).astype(np.float64)
    nodes += np.bincount(left + 1, mass * share, CELLS + 1)
    reach = int(np.ceil(bandwidth * CELLS))
    u = np.arange(-reach, reach + 1) / (bandwidth * CELLS)
    kernel = np.maximum(1.0 - u * u, 0.0) ** 3
    wide = np.asarray(fftconvolve(nodes, kernel / kernel.sum() * CELLS), dtype=np.float64)
    return _reflected(wide, reach)


def _reflected(wide: Floats, reach: int) -> Floats:
    """Fold what lies beyond either end back, as often as it takes."""
    index = np.arange(-reach, CELLS + reach + 1)
    folded = CELLS - np.abs(CELLS - np.mod(index, 2 * CELLS))
    whole: Floats = np.bincount(folded, wide, CELLS + 1).astype(np.float64)
    whole[[0, -1]] *= 2.0  # half of the kernel at an end lies outside, and comes back
    return whole
