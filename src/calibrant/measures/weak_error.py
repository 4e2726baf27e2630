"""The weak calibration error, exactly: the largest correlation of residuals with a slow function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.dropped import Dropped
from calibrant.data.input_forms import InputOptions
from calibrant.data.named_scales import as_scale
from calibrant.data.points import Points, as_points
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.measures._chains import minimise, witness
from calibrant.measures.result_record import Record, rows_text

__all__ = ["WeakCalibration", "weak_calibration_error", "weak_calibration_result"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class WeakCalibration(Record):
    """A weak calibration error and the function that attains it.

    Attributes
    ----------
    value : float
        wCE.
    error : float
        From arrays, rounding alone. From a sketch, how much the unknown positions of rows inside
        cells can change it.
    p, witness : float64[m]
        The optimal Lipschitz function w at the distinct predictions p: E[(f - y) w(f)] is `value`.
    n : int
        Rows; `dropped` counts by reason those that were left out.
    scale : str
        The scale on which w is Lipschitz.

    Examples
    --------
    >>> found = weak_calibration_result([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> round(found.value, 3), len(found.witness)
    (0.0..., 4)
    """

    value: float
    error: float
    p: Floats = field(compare=False)
    witness: Floats = field(compare=False)
    n: int
    scale: str
    dropped: Mapping[str, int] = field(default_factory=Dropped)

    def __repr__(self) -> str:
        rows = rows_text(self.n, self.dropped)
        return f"WeakCalibration({self.value:.9f} ± {self.error:.1e}, {rows}, {self.scale})"


def weak_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    scale: str | Scale = PROBABILITY,
    **options: Unpack[InputOptions],
) -> float:
    """The weak calibration error wCE = sup E[(f - y) w(f)] over 1-Lipschitz w with |w| ≤ 1.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    scale : str or Scale
        The metric in which w is Lipschitz: |w(u) - w(v)| ≤ min(|h(u) - h(v)|, 2).
    **options
        How to read the arrays (see `InputOptions`).

    Returns
    -------
    float
        Exact up to rounding from arrays, in O(n log n): one sort and one sweep.

    Notes
    -----
    ½ dCE ≤ wCE ≤ 2 dCE. Also known as the smooth calibration error smCE. It is no larger than the
    ECE of any binning plus the width of its bins, and, unlike SmoothECE, it has no diagram.

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE*: (T2) of the theory page, with the metric of (T16).

    Examples
    --------
    >>> weak_calibration_error([0, 1], [0.5, 0.5])
    0.0
    >>> round(weak_calibration_error([1, 0], [0.4, 0.6]), 6)
    0.06
    """
    atoms = as_points(y_true, y_prob, **options)
    cumulative, gaps = _chain(atoms, as_scale(scale, base_rate=atoms.base_rate))
    return minimise(cumulative, gaps, np.empty_like(cumulative))


def weak_calibration_result(
    y_true: Any,
    y_prob: Any = None,
    *,
    scale: str | Scale = PROBABILITY,
    **options: Unpack[InputOptions],
) -> WeakCalibration:
    """As `weak_calibration_error`, with its error and the optimal Lipschitz function.

    Examples
    --------
    >>> result = weak_calibration_result([1, 0], [0.4, 0.6])
    >>> result.witness
    array([-0.1,  0.1])
    """
    atoms = as_points(y_true, y_prob, **options)
    scale = as_scale(scale, base_rate=atoms.base_rate)
    cumulative, gaps = _chain(atoms, scale)
    flow, w = np.empty_like(cumulative), np.empty_like(cumulative)
    value = minimise(cumulative, gaps, flow)
    witness(cumulative, gaps, flow, w)
    rounding = 4.0 * float(np.finfo(float).eps) * (1.0 + np.log2(atoms.n))
    error = rounding + _unknown(atoms, scale)
    return WeakCalibration(value, error, atoms.p, w, atoms.n, scale.name, atoms.dropped)


def _chain(atoms: Points, scale: Scale) -> tuple[Floats, Floats]:
    """Cumulative residuals, and how much w may change from one prediction to the next."""
    z = scale.z(atoms.p)
    return np.cumsum(atoms.residuals), np.minimum(np.diff(z), 2.0)


def _unknown(atoms: Points, scale: Scale) -> float:
    """A row may lie anywhere in its cell: w changes by the width of the cell in the metric at most.

    On the probability scale its residual is known; on another it changes with the position.
    """
    if atoms.position_error == 0.0:
        return 0.0
    reach = cell_reach(atoms, scale)
    p, (negative, positive) = atoms.p, atoms.mass.T
    changed = float(np.sum(reach * (p * negative + (1.0 - p) * positive)) / atoms.total)
    slack = 0.0 if atoms.scale.reflected else atoms.scale.steepness * atoms.position_error
    return changed + slack + 2.0**-FRACTION_BITS * atoms.scale.length


def cell_reach(atoms: Points, scale: Scale) -> Floats:
    """How far, on `scale` and at most 2, a row of each atom may lie from it."""
    if atoms.scale == scale:
        return np.full(atoms.p.shape, min(atoms.position_error, 2.0))
    at = np.clip(atoms.scale.z(atoms.p), *atoms.scale.limits)
    ends = np.stack([at - atoms.position_error, at, at + atoms.position_error])
    z = scale.z(np.asarray(atoms.scale.inverse(np.clip(ends, *atoms.scale.limits))))
    with np.errstate(invalid="ignore"):  # two ends at the same infinity
        reach = np.nan_to_num(np.diff(z, axis=0), nan=0.0, posinf=2.0).max(axis=0)
    return np.asarray(np.minimum(reach, 2.0))


def mean_drift(atoms: Points) -> float:
    """How far the mean prediction of a cell may lie from the prediction at its mean position.

    Off the probability scale the two differ by the curvature of the scale.
    """
    if atoms.position_error == 0.0:
        return 0.0
    scale, reach = atoms.scale, atoms.position_error
    rounding = 2.0**-FRACTION_BITS * scale.length * scale.steepness
    bent = 0.0 if scale.reflected else min(scale.steepness, 0.5 * scale.curvature * reach) * reach
    return rounding + bent
