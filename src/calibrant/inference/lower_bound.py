"""What SmoothECE is at least, beyond the noise floor: without draws, at the bandwidth in question."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibrant.inference._draws import product
from calibrant.inference.quantiles import normal_quantile
from calibrant.inference.wilson import wilson_error
from calibrant.inference.witnesses import Cells, smoothed, witnesses_of

__all__ = ["BUMP", "ROUND", "lowered", "proved_error"]

Floats = NDArray[np.float64]

_SHARES = {"whole": 0.8, "mean": 0.1, "others": 0.1}
"""Of the level."""
ROUND = 0.7
"""Width of the bump by which |x| is lowered near 0."""
BUMP = math.sqrt(2.0 / math.pi) * math.sqrt(1.0 + ROUND**2) / ROUND


def proved_error(cells: Cells, bandwidth: float, level: float, degrees: float) -> float:
    """What smECE at this bandwidth is at least, with confidence 1 - level (see `Rejection`)."""
    smoother = cells.smoother(bandwidth)
    errors = np.sqrt(cells.null_variance(smoother.T))
    value, slopes = lowered(product(cells.residual[None], smoother)[0], errors)
    functions = np.concatenate([slopes[None], witnesses_of(cells, bandwidth)[0]])
    smooth = smoothed(functions, smoother)
    variances = cells.seen_variance(smooth)
    values = np.abs(smooth @ cells.residual)
    values[0] = value
    tails = [_SHARES["whole"], 0.5 * _SHARES["mean"], 0.5 * _SHARES["others"] / (values.size - 2)]
    z = np.empty(values.size)
    z[:2], z[2:] = np.split([normal_quantile(1.0 - level * tail, degrees) for tail in tails], [2])
    return float((values - wilson_error(z, np.sqrt(variances), cells.units)).max())


def lowered(residual: Floats, errors: Floats) -> tuple[float, Floats]:
    """Λ of a smoothed residual, and its slope in each cell; |r| where it has no error."""
    known = errors > 0
    x = np.divide(residual, errors, out=np.zeros_like(residual), where=known)
    bump = BUMP * np.exp(-0.5 * (x / ROUND) ** 2)
    value = np.abs(residual) - np.where(known, errors * bump, 0.0)
    return float(value.sum()), np.sign(residual) + x * bump / ROUND**2
