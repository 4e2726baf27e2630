"""What SmoothECE a perfectly calibrated predictor would show on as many rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference._draws import smoothed_errors
from calibrant.inference.resampling import cell_predictions
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.row_worth import effective_rows, outcome_variances
from calibrant.smoothing._nodes import add_points
from calibrant.smoothing._solver import nodes_of_moments
from calibrant.smoothing.on_nodes import OnNodes

__all__ = ["NoiseFloor", "noise_floor"]

Floats = NDArray[np.float64]

_VALUES_PER_BANDWIDTH = 5.0
_EXPECTED_EVENTS = 10.0
# On a logit scale predictions of 0 and 1 are kept as 1e-13 from them.
_NO_EVENT = 1e-6
_DRAWS = 100
_MOST_STEPS = 50
_FEWEST_CELLS = 16
_RATIO = 1.15
"""Of a bandwidth to the one before, among those at which all draws are smoothed together."""
_AT_ONCE = 16
_NARROWEST = 0.25
"""Of a cell: less is not resolved."""
_CONVERGED = 1e-4


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
    variance = outcome_variances(sketch, f) / sketch.total_weight**2
    expected = float((rows * np.minimum(f, 1.0 - f)).sum())
    if not variance.any() or expected < _NO_EVENT:  # predictions of 0 and 1 that are never wrong
        return NoiseFloor(0.0, "closed form")
    closed, values = _closed_form(sketch, variance)
    if values >= _VALUES_PER_BANDWIDTH and expected >= _EXPECTED_EVENTS:
        return NoiseFloor(closed, "closed form")
    grid = ResidualGrid.of(sketch, 0.5 * closed)
    drawn = [_fixed_points(grid, block, closed) for block in grid.consistency(_DRAWS, seed=0)]
    return NoiseFloor(float(np.concatenate(drawn).mean()), "simulated")


def _closed_form(sketch: Sketch, variance: Floats) -> tuple[float, float]:
    """b0, and how many distinct predictions lie within one bandwidth of each other."""
    length, total = sketch.scale.length, float(variance.sum())
    position = sketch.cells / sketch.nodes
    value = (length * total / np.pi**1.5) ** (1 / 3)
    cells, points, laid, width = 0, 0, OnNodes(variance), value
    step, factor = math.nan, 1.0
    for _ in range(_MOST_STEPS):
        mesh = 1 << math.ceil(math.log2(max(64.0, 16.0 * length / value)))
        if cells < min(mesh, sketch.nodes):  # sixteen to a bandwidth: interpolation costs 1e-10
            cells = max(min(2 * mesh, sketch.nodes), _FEWEST_CELLS)
            moments = np.zeros((cells, 8))
            add_points(position, variance, moments)
            laid = OnNodes(nodes_of_moments(moments))
        points, width = min(mesh, sketch.nodes), value / length
        integral = laid.mean_root(width, points)
        b0 = (length * integral**2 / np.pi**1.5) ** (1 / 3)
        before, step = step, math.log(b0 / value)
        if not math.isnan(before) and before != step:  # a secant, as b0 rises with its bandwidth
            factor = min(max(factor * before / (before - step), 0.5), 2.0)
        value *= math.exp(factor * step)
        if abs(step) <= _CONVERGED:
            break
    smooth = laid.values(width, points)
    distinct = total**2 / float(np.square(variance).sum())  # BLAS would start threads for a product
    spread = total**2 * smooth.size / float(np.square(smooth).sum())
    return value, value / length * distinct / spread


def _fixed_points(grid: ResidualGrid, residuals: Floats, start: float) -> Floats:
    """σ* = smECE_σ* of draws [draws, m], the residuals in the cells of a grid.

    They are smoothed together, with one kernel for all: at `start` and its neighbours, then at wider and
    narrower bandwidths those that have not crossed σ there. Every σ* lies between two bandwidths.
    """
    sketch, length = grid.sketch, grid.sketch.scale.length
    place = (sketch.cells + grid.right_share) * (length / sketch.nodes)
    ends = (0.0, length) if sketch.scale.reflected else (-np.inf, np.inf)
    low = np.maximum(np.abs(residuals.sum(axis=1)), _NARROWEST * length / sketch.nodes)
    columns = np.zeros((place.size, _padded(len(residuals))), dtype=np.float32)
    columns[:, : len(residuals)] = residuals.T
    gaps: dict[int, Floats] = {}

    def smooth(step: int, draws: NDArray[np.intp]) -> NDArray[np.intp]:
        """Find log(smECE_σ / σ), so many steps from the start; which draws have not crossed σ there."""
        sigma, some = start * _RATIO**step, columns
        if draws.size < len(residuals):
            some = np.zeros((place.size, _padded(draws.size)), dtype=np.float32)
            some[:, : draws.size] = columns[:, draws]
        errors = np.zeros(some.shape[1])
        smoothed_errors(place, some, sigma, *ends, errors)
        errors = np.maximum(errors[: draws.size], 1e-300)
        gaps[step] = np.full(len(residuals), np.nan)
        gaps[step][draws] = np.log(errors / sigma)
        beyond = errors > sigma if step > 0 else (errors < sigma) & (sigma > low[draws])
        return np.asarray(draws[beyond])

    everything = np.flatnonzero(np.abs(residuals).sum(axis=1) > low * (1.0 + _CONVERGED))
    smooth(0, everything)
    for side in (1, -1):
        step, draws = side, smooth(side, everything)
        while draws.size:
            step += side
            draws = smooth(step, draws)
    steps = np.array(sorted(gaps))
    crossed = _crossings(steps, np.stack([gaps[step] for step in steps.tolist()]))
    return np.asarray(np.where(np.isnan(crossed), low, np.maximum(start * _RATIO**crossed, low)))


def _padded(draws: int) -> int:
    """So many and a few more: the compiled loop takes them by the register."""
    return -(-draws // _AT_ONCE) * _AT_ONCE


def _crossings(steps: NDArray[np.int64], gaps: Floats) -> Floats:
    """Where each column of gaps, which fall with the steps, passes 0: by the parabola through three of them.

    NaN where it is below 0 from the first step on that is known.
    """
    above = np.where(np.isnan(gaps), (steps < 0)[:, None], gaps > 0.0)
    last, draws = above.sum(axis=0) - 1, np.arange(gaps.shape[1])

    def at(k: NDArray[np.int64]) -> tuple[Floats, Floats]:
        k = np.clip(k, 0, len(steps) - 1)
        return steps[k].astype(np.float64), gaps[k, draws]

    third = np.where((last > 0) & ~np.isnan(at(last - 1)[1]), last - 1, last + 2)
    (a, x), (b, y), (c, z) = at(last), at(last + 1), at(third)
    return np.asarray(
        a * y * z / ((x - y) * (x - z))
        + b * x * z / ((y - x) * (y - z))
        + c * x * y / ((z - x) * (z - y))
    )
