"""Interval calibration error: the best trade of bin width against binned error."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs.pairs import InputOptions
from calibrant.measures.record import Bounded
from calibrant.sketch.atoms import Atoms, as_atoms

__all__ = ["interval_calibration_error", "interval_of_atoms"]

Floats = NDArray[np.float64]

MOST_ATOMS = 2048


def interval_calibration_error(
    y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]
) -> float:
    """min over partitions into intervals of Σ |Σ residuals| + mean width of a row's interval.

    Parameters
    ----------
    y_true : array, Sketch or Atoms
        Outcomes, 0 or 1; or a Sketch or Atoms, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    **options
        How to read the arrays (see `InputOptions`).

    Returns
    -------
    float
        The minimum, by dynamic programming: exact up to 2,048 distinct predictions; beyond, of
        predictions grouped into 2,048 intervals, at most 1/1024 too large.

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
    return interval_of_atoms(as_atoms(y_true, y_prob, **options)).value


def interval_of_atoms(atoms: Atoms) -> Bounded:
    """Interval CE; every interval is at most two cells wider than known, or grouped."""
    low, high = atoms.p, atoms.p
    residual, weight = atoms.residuals, atoms.mass.sum(axis=1) / atoms.total
    error = 2.0 * atoms.position_error * atoms.scale.steepness
    if atoms.p.size > MOST_ATOMS:
        group = np.minimum((atoms.p * MOST_ATOMS).astype(np.int64), MOST_ATOMS - 1)
        first = np.flatnonzero(np.diff(group, prepend=-1))
        low, high = atoms.p[first], atoms.p[np.append(first[1:], atoms.p.size) - 1]
        residual, weight = np.add.reduceat(residual, first), np.add.reduceat(weight, first)
        error += 2.0 / MOST_ATOMS
    bias, mass = np.cumsum(residual), np.cumsum(weight)
    before_bias, before_mass = bias - residual, mass - weight
    best = np.zeros(bias.size + 1)
    for end in range(bias.size):
        start = slice(0, end + 1)
        cost = np.abs(bias[end] - before_bias[start])
        cost += (mass[end] - before_mass[start]) * (high[end] - low[start])
        best[end + 1] = np.min(best[start] + cost)
    return Bounded(float(best[-1]), error)
