"""Calibration error by kernel density estimates, with a bandwidth from the data's spread."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_positive
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.input_forms import InputOptions
from calibrant.data.points import Points, as_points
from calibrant.measures.result_record import Bounded

__all__ = ["kde_ece", "kde_ece_of_atoms"]

Floats = NDArray[np.float64]

CELLS = 1 << 14
LARGEST_BANDWIDTH = 100.0
"""Far beyond it, the kernel would not fit into memory; the estimate is level long before."""
SLOPE_OF_TRIWEIGHT = 35.0 / 16.0
"""∫|K'| of the triweight kernel."""


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
        How to read the arrays (see `InputOptions`).

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
    return kde_ece_of_atoms(as_points(y_true, y_prob, **options), bandwidth=bandwidth).value


def kde_ece_of_atoms(atoms: Points, *, bandwidth: float | None = None) -> Bounded:
    """KDE-ECE on a grid of 16,384 cells, and how much positions can change it."""
    weight = over_outcomes(atoms.mass) / atoms.total
    if bandwidth is None:
        spread = float(np.sqrt(weight @ (atoms.p - weight @ atoms.p) ** 2))
        bandwidth = 1.06 * spread * atoms.n**-0.2 or 1.0 / CELLS
    require_positive("bandwidth", bandwidth, LARGEST_BANDWIDTH)
    at = np.arange(CELLS + 1) / CELLS
    density, events = (
        _smoothed(atoms.p, mass, bandwidth) for mass in (weight, atoms.mass[:, 1] / atoms.total)
    )
    gap = np.abs(at * density - events)
    value = float(np.sum(gap) - 0.5 * (gap[0] + gap[-1])) / CELLS
    moved = atoms.position_error * atoms.scale.steepness
    return Bounded(value, SLOPE_OF_TRIWEIGHT * moved / bandwidth if moved else 0.0)


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
