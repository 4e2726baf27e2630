"""Interval calibration error: the best trade of bin width against binned error."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.input_forms import InputOptions
from calibrant.data.points import Points, as_points
from calibrant.measures.result_record import Bounded

__all__ = ["interval_calibration_error", "interval_of_atoms"]

Floats = NDArray[np.float64]

MOST_ATOMS = 2048


def interval_calibration_error(
    y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]
) -> float:
    """min over partitions into intervals of Σ |Σ residuals| + mean width of a row's interval.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    **options
        How to read the arrays (see `InputOptions`).

    Returns
    -------
    float
        The minimum, by dynamic programming: exact up to 2,048 distinct predictions; beyond, of
        predictions grouped into 2,048 intervals. That is too large where a cut inside one of them
        would part errors of opposite sign; `measure_all` shows by how much at most.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, *A unifying theory of distance from calibration*, section 6:
    an upper bound of the distance to calibration.

    Examples
    --------
    >>> interval_calibration_error([0, 1], [0.5, 0.5])
    0.0
    >>> round(interval_calibration_error([1, 0], [0.4, 0.6]), 6)
    0.2
    """
    return interval_of_atoms(as_points(y_true, y_prob, **options)).value


def interval_of_atoms(atoms: Points) -> Bounded:
    """Interval CE of groups, and how much cuts inside groups, and unknown positions, can change it.

    A partition that cuts a group becomes one of whole groups when the group is set apart: whatever
    joined the intervals beside it, at most `hidden`, is all that they and it have lost.
    """
    group = np.arange(atoms.p.size)
    if atoms.p.size > MOST_ATOMS:
        group = np.minimum((atoms.p * MOST_ATOMS).astype(np.int64), MOST_ATOMS - 1)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    low, high = atoms.p[first], atoms.p[np.append(first[1:], atoms.p.size) - 1]
    residual = np.add.reduceat(atoms.residuals, first)
    weight = np.add.reduceat(over_outcomes(atoms.mass), first) / atoms.total
    value = _best_partition(low, high, residual, weight, np.full(first.size, np.inf))
    hidden = _hidden_by_groups(atoms, first)
    if not hidden.any():
        return Bounded(value, 0.0)
    least = _best_partition(low, high, residual, weight, -hidden)
    moved = 3.0 * atoms.position_error * atoms.scale.steepness  # two ends, and the residual
    return Bounded(value, value - max(0.0, least) + moved)


def _best_partition(
    low: Floats, high: Floats, residual: Floats, weight: Floats, apart: Floats
) -> float:
    """The least cost of a partition of the groups, where `apart` is what one by itself may cost."""
    bias, mass = np.cumsum(residual), np.cumsum(weight)
    before_bias, before_mass = bias - residual, mass - weight
    best = np.zeros(bias.size + 1)
    for end in range(bias.size):
        start = slice(0, end + 1)
        cost = np.abs(bias[end] - before_bias[start])
        cost += (mass[end] - before_mass[start]) * (high[end] - low[start])
        best[end + 1] = min(np.min(best[start] + cost), best[end] + apart[end])
    return float(best[-1])


def _hidden_by_groups(atoms: Points, first: NDArray[np.int64]) -> Floats:
    """The largest |Σ residuals| at the start of each group, and at its end, that a cut can part.

    Rows of a cell of a sketch may be cut, too: a part of them has one outcome at worst.
    """
    size = np.diff(first, append=atoms.p.size)
    upto = np.cumsum(atoms.residuals)
    begin = np.repeat(upto[first] - atoms.residuals[first], size)
    end = np.repeat(upto[first + size - 1], size)
    inner = np.ones(atoms.p.size, dtype=bool)
    inner[first + size - 1] = False
    hidden = np.maximum.reduceat(np.where(inner, np.abs(upto - begin), 0.0), first)
    hidden += np.maximum.reduceat(np.where(inner, np.abs(end - upto), 0.0), first)
    if atoms.position_error > 0.0:
        part = np.maximum(atoms.p * atoms.mass[:, 0], (1.0 - atoms.p) * atoms.mass[:, 1])
        if atoms.squared is None:
            part = np.where(over_outcomes(atoms.mass) > 1.5, part, 0.0)
        hidden += 2.0 * np.maximum.reduceat(part, first) / atoms.total
    return np.asarray(hidden)
