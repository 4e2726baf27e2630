"""What SmoothECE a perfectly calibrated predictor would show on as many rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference.resampling import cell_predictions, effective_rows, outcome_variances
from calibrant.inference.residuals import ResidualGrid
from calibrant.smoothing._nodes import add_points
from calibrant.smoothing._solver import Transform
from calibrant.smoothing.curves import smoothed_series

__all__ = ["NoiseFloor", "noise_floor"]

Floats = NDArray[np.float64]

_VALUES_PER_BANDWIDTH = 5.0
_EXPECTED_EVENTS = 10.0
# On a logit scale predictions of 0 and 1 are kept as 1e-13 from them.
_NO_EVENT = 1e-6
_DRAWS = 100
_MOST_STEPS = 50
_FEWEST_CELLS = 16


@dataclass(frozen=True)
class NoiseFloor:
    """The mean SmoothECE under calibration, and how it was found.

    Attributes
    ----------
    value : float
        On the same scale as the SmoothECE beside it.
    method : str
        "closed form", or "simulated" where the predictions take few values for the bandwidth.
    """

    value: float
    method: str

    def __float__(self) -> float:
        return self.value


def noise_floor(sketch: Sketch) -> NoiseFloor:
    """The SmoothECE that calibrated predictions of this distribution have on average, at this n.

    Where predictions are spread out, the smoothed residual at t is close to normal with variance
    v(t) / (2 √π σ), v(t) = Σ w² (f-y)² K(f, t) / (Σw)², where (f-y)² is f(1-f) on average. Its mean
    absolute value, integrated, equals σ at

        b0 = (I² / π^{3/2})^{1/3},    I = ∫ √v(t) dt,

    with v smoothed at b0 itself. On a lattice, where a bandwidth covers few distinct predictions, b0
    is too high by up to a fifth, and outcomes y ~ Bernoulli(f) are drawn instead, always the same.

    Parameters
    ----------
    sketch : Sketch
        The rows. Outcomes are used only for what weights are worth that depend on them.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> y = (p > 0.5).astype(int)
    >>> noise_floor(Sketch.from_arrays(y, p))
    NoiseFloor(value=0.030..., method='closed form')
    >>> noise_floor(Sketch.from_counts([0.1, 0.5, 0.9], [300, 400, 300], [0, 0, 0]))
    NoiseFloor(value=0.01..., method='simulated')
    """
    f, rows = cell_predictions(sketch), effective_rows(sketch)
    variance = outcome_variances(sketch) / sketch.total_weight**2
    expected = float(rows @ np.minimum(f, 1.0 - f))
    if not variance.any() or expected < _NO_EVENT:  # predictions of 0 and 1 that are never wrong
        return NoiseFloor(0.0, "closed form")
    closed, values = _closed_form(sketch, variance)
    if values >= _VALUES_PER_BANDWIDTH and expected >= _EXPECTED_EVENTS:
        return NoiseFloor(closed, "closed form")
    grid = ResidualGrid.of(sketch, 0.5 * closed)
    drawn = [grid.fixed_points(block, start=closed) for block in grid.consistency(_DRAWS, seed=0)]
    return NoiseFloor(float(np.concatenate(drawn).mean()), "simulated")


def _closed_form(sketch: Sketch, variance: Floats) -> tuple[float, float]:
    """b0, and how many distinct predictions lie within one bandwidth of each other."""
    length, total = sketch.scale.length, float(variance.sum())
    position = sketch.cells / sketch.nodes
    value = (length * total / np.pi**1.5) ** (1 / 3)
    cells, coefficients, smooth = 0, variance, variance
    for _ in range(_MOST_STEPS):
        mesh = 1 << int(np.ceil(np.log2(max(64.0, 16.0 * length / value))))
        if cells < min(mesh, sketch.nodes):  # sixteen to a bandwidth: interpolation costs 1e-10
            cells = max(min(2 * mesh, sketch.nodes), _FEWEST_CELLS)
            moments = np.zeros((cells, 8))
            add_points(position, variance, moments)
            coefficients = Transform(moments, 1.0).coefficients
        smooth = smoothed_series(coefficients, value / length, min(mesh, sketch.nodes))
        integral = float(np.sqrt(np.maximum(smooth, 0.0)).mean())
        before, value = value, (length * integral**2 / np.pi**1.5) ** (1 / 3)
        if abs(value - before) <= 1e-4 * value:
            break
    distinct = total**2 / float((variance**2).sum())
    spread = total**2 / float((smooth**2).mean())
    return value, value / length * distinct / spread
