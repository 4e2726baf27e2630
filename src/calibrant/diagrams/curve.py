"""What one bandwidth makes of a sketch: the curves of a diagram, its areas and its regions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.sketch.table import Sketch
from calibrant.smoothing.curves import SmoothCurves, smooth_curves

__all__ = ["Region", "absolute_integral", "grid_steps", "regions_of", "rows_nearby", "sampled"]

Floats = NDArray[np.float64]

_FEWEST_STEPS, _MOST_STEPS = 256, 4096
_STEPS_PER_BANDWIDTH = 16
_FINE_STEPS_PER_BANDWIDTH = 64
_MOST_FINE_STEPS = 1 << 17
_SMALLEST_SHARE = 0.05
_MOST_REGIONS = 5


def grid_steps(bandwidth: float, length: float) -> int:
    """Steps of a diagram's grid: a power of two, fine enough for its bandwidth."""
    return _power_of_two(_STEPS_PER_BANDWIDTH * length / bandwidth, _FEWEST_STEPS, _MOST_STEPS)


def fine_curves(sketch: Sketch, bandwidth: float) -> SmoothCurves:
    """The curves on a mesh so fine that integrals over it are exact for every purpose."""
    wanted = _FINE_STEPS_PER_BANDWIDTH * sketch.scale.length / bandwidth
    steps = _power_of_two(wanted, 4 * _FEWEST_STEPS, _MOST_FINE_STEPS)
    return smooth_curves(sketch, bandwidth, points=steps)


def sampled(curves: SmoothCurves, steps: int) -> SmoothCurves:
    """Every so many points of a fine mesh."""
    skip = (curves.position.size - 1) // steps
    return SmoothCurves(
        curves.position[::skip].copy(),
        curves.density[::skip].copy(),
        curves.events[::skip].copy(),
        curves.predictions[::skip].copy(),
    )


def _power_of_two(wanted: float, fewest: int, most: int) -> int:
    return int(np.clip(1 << int(np.ceil(np.log2(max(wanted, 1.0)))), fewest, most))


def absolute_integral(values: Floats) -> float:
    """∫|g| over [0, 1] of a smooth g given on an even, fine mesh.

    Fourth-order cell by cell; in a cell where g changes sign it is taken as linear.

    Examples
    --------
    >>> mesh = np.linspace(0, 1, 1025)
    >>> round(absolute_integral(np.cos(2 * np.pi * mesh)), 7) == round(2 / np.pi, 7)
    True
    """
    g, step = values, 1.0 / (values.size - 1)
    cells = np.empty(values.size - 1)
    cells[1:-1] = 13 * (g[1:-2] + g[2:-1]) - g[:-3] - g[3:]
    cells[0] = 9 * g[0] + 19 * g[1] - 5 * g[2] + g[3]
    cells[-1] = 9 * g[-1] + 19 * g[-2] - 5 * g[-3] + g[-4]
    areas = np.abs(cells) / 24
    turns = np.flatnonzero(g[:-1] * g[1:] < 0)
    left, right = np.abs(g[turns]), np.abs(g[turns + 1])
    areas[turns] = (left**2 + right**2) / (2 * (left + right))
    return float(areas.sum() * step)


@dataclass(frozen=True)
class Region:
    """A stretch of predictions in which the model errs to one side.

    Attributes
    ----------
    low, high : float
        Predictions between which the smoothed residual keeps its sign.
    contribution : float
        Its part of SmoothECE; the parts of all stretches add up to the whole.
    share : float
        The same, relative to SmoothECE.
    gap : float
        Mean of outcome minus prediction there: positive where events are more frequent than
        predicted.
    """

    low: float
    high: float
    contribution: float
    share: float
    gap: float

    def __str__(self) -> str:
        side = "too low" if self.gap > 0 else "too high"
        return (
            f"predictions from {self.low:.2f} to {self.high:.2f} are {side} by "
            f"{abs(self.gap):.3f} ({self.share:.0%} of the error)"
        )


def regions_of(curves: SmoothCurves, prediction: Floats) -> tuple[Region, ...]:
    """The stretches that contribute most to ∫|μ̂ - f̂| δ̂, largest first.

    Parameters
    ----------
    curves : SmoothCurves
        On a fine mesh.
    prediction : float64[m]
        The prediction that stands at each position of the mesh.
    """
    residual = curves.events - curves.predictions
    step = curves.position[1]
    turns = np.flatnonzero(np.diff(np.signbit(residual)))
    edges = np.concatenate([[0], turns + 1, [residual.size]])
    parts = np.abs(np.add.reduceat(_trapezoid_weights(residual.size) * residual, edges[:-1])) * step
    masses = np.add.reduceat(_trapezoid_weights(residual.size) * curves.density, edges[:-1]) * step
    total = float(parts.sum())
    if total <= 0.0:
        return ()
    found = []
    for k in np.argsort(-parts, kind="stable")[:_MOST_REGIONS]:
        share = float(parts[k]) / total
        if share < _SMALLEST_SHARE or masses[k] <= 0.0:
            break
        first, last = int(edges[k]), int(edges[k + 1]) - 1
        sign = -1.0 if np.signbit(residual[first]) else 1.0
        low, high = _holding(curves.density[first : last + 1])
        found.append(
            Region(
                low=float(prediction[first + low]),
                high=float(prediction[first + high]),
                contribution=float(parts[k]),
                share=share,
                gap=sign * float(parts[k] / masses[k]),
            )
        )
    return tuple(found)


def _trapezoid_weights(size: int) -> Floats:
    weights = np.ones(size)
    weights[[0, -1]] = 0.5
    return weights


def _holding(density: Floats, share: float = 0.998) -> tuple[int, int]:
    """First and last index between which nearly all of the mass lies: not the empty tails."""
    mass = np.cumsum(np.maximum(density, 0.0))
    tail = (1 - share) / 2 * mass[-1]
    low = int(np.searchsorted(mass, tail))
    high = int(np.searchsorted(mass, mass[-1] - tail))
    return low, min(high, density.size - 1)


def rows_nearby(sketch: Sketch, position: Floats, reach: float) -> NDArray[np.int64]:
    """Number of rows within `reach` of each position of the grid."""
    at = sketch.cells / sketch.nodes
    before = np.concatenate([[0], np.cumsum(sketch.counts.sum(axis=1))])
    last = np.searchsorted(at, position + reach, side="right")
    first = np.searchsorted(at, position - reach, side="left")
    rows: NDArray[np.int64] = before[last] - before[first]
    return rows
