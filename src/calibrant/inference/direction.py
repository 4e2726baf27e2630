"""Direction of the errors, and the ranges of predictions where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.inference.residuals import ResidualGrid, cell_predictions

__all__ = ["NO_DIRECTION", "Direction", "Region", "decimal_places", "direction_of", "regions_of"]

Floats = NDArray[np.float64]

SMALLEST_SHARE = 0.05
MOST_REGIONS = 5
RARE = 0.01


@dataclass(frozen=True)
class Region:
    """A range of predictions that err to one side.

    Attributes
    ----------
    low, high : float
        The smallest and largest prediction there, between two zeros of the smoothed residual.
    gap : float
        Smoothed prediction minus smoothed outcome there, on average: positive where predictions are too
        high.
    share : float
        Share of the SmoothECE that comes from this range; the shares of all ranges add up to 1.
    contribution : float
        The same in units of SmoothECE.
    """

    low: float
    high: float
    gap: float
    share: float
    contribution: float

    @property
    def ends(self) -> str:
        """Its predictions, with as many digits as tell them apart."""
        size = min(self.high - self.low or self.low, 1.0 - self.low) or 1.0
        texts = (f"{end:.{decimal_places(size)}f}" for end in (self.low, self.high))
        return " to ".join(dict.fromkeys(texts))

    @property
    def error(self) -> str:
        """Size and side of the error there, and its share of the whole."""
        side = "too high" if self.gap > 0 else "too low"
        gap = f"{abs(self.gap):.{decimal_places(abs(self.gap)) + 1}f}"
        return f"{side} by {gap} ({self.share:.0%} of the error)"

    def __str__(self) -> str:
        where = f"from {self.ends}" if " to " in self.ends else f"of {self.ends}"
        return f"predictions {where} are {self.error}"


def decimal_places(size: float) -> int:
    """Decimal places that show a number of this size: two, or as many as its first digits need.

    Examples
    --------
    >>> decimal_places(0.3), decimal_places(0.004)
    (2, 4)
    """
    return 2 if size >= 0.02 else int(np.clip(1 - np.floor(np.log10(max(size, 1e-12))), 2, 12))


@dataclass(frozen=True)
class Direction:
    """Kind of error that explains most of SmoothECE, and the ranges where predictions err.

    Attributes
    ----------
    label : str
        "predictions are too high", "predictions are too low" (on average), "overconfident" (further from ½
        than outcomes justify) or "underconfident": the one with the larger mean error, of those that are
        significant. "no clear direction" if none is.
    bias : float
        Mean of f - y.
    confidence_gap : float
        Mean of max(f, 1 - f) minus how often the likelier outcome came.
    regions : tuple of Region
        The ranges that contribute most, largest first.
    """

    label: str
    bias: float
    confidence_gap: float
    regions: tuple[Region, ...]

    def __str__(self) -> str:
        return self.label


NO_DIRECTION = "no clear direction"


def direction_of(
    sketch: Sketch, grid: ResidualGrid, value: float, z: float, inflation: float = 1.0
) -> Direction:
    """Direction of the errors of the rows on a grid.

    Both the bias and the confidence gap are means of (f - y) w with |w| ≤ 1, so each is a part of SmoothECE.
    Where hardly a prediction is above ½ the gap says nothing new.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    grid : ResidualGrid
        The same, on a grid for their bandwidth.
    value : float
        Their SmoothECE.
    z : float
        How many standard errors from 0 a mean must lie to be named.
    inflation : float
        Factor by which clusters make the standard errors larger than for independent rows.
    """
    sums = grid.strayed
    # Beyond the error of the rows, and beyond that of calibrated ones: some saw no event.
    errors = [
        z * inflation * math.sqrt(max(squares, sums.calibrated)) / sums.total
        for squares in (sums.of_bias, sums.of_gap)
    ]
    labels = {}
    if abs(sums.bias) > errors[0]:
        labels[abs(sums.bias)] = f"predictions are too {'high' if sums.bias > 0 else 'low'}"
    larger = abs(sums.gap) > abs(sums.bias) * (1.0 + 1e-9)
    if abs(sums.gap) > errors[1] and sums.above > RARE and larger:
        labels[abs(sums.gap)] = f"{'over' if sums.gap > 0 else 'under'}confident"
    return Direction(
        label=labels[max(labels)] if labels else NO_DIRECTION,
        bias=sums.bias,
        confidence_gap=sums.gap,
        regions=regions_of(sketch, grid, value),
    )


def regions_of(
    sketch: Sketch, grid: ResidualGrid, value: float, bandwidth: float | None = None
) -> tuple[Region, ...]:
    """Ranges between the zeros of the smoothed residual that hold rows, the largest part of the error first.

    Parameters
    ----------
    sketch, grid, value
        As in `direction_of`.
    bandwidth : float, optional
        At which to smooth, where it is not that of SmoothECE, which equals its value.
    """
    bandwidth = value if bandwidth is None else bandwidth
    weight = over_outcomes(grid.sketch.weights)
    residual = grid.smoothed_residual(bandwidth)
    mass = grid.smoothed(grid.on_nodes(weight / weight.sum()), bandwidth)
    sign = np.sign(residual)
    edges = np.flatnonzero(sign[1:] != sign[:-1]) + 1
    ends = [0, *edges.tolist(), residual.size]
    coarse = np.append(grid.sketch.cells, grid.sketch.nodes + 1)
    beyond = coarse[np.searchsorted(grid.places(grid.sketch.cells), ends)]
    first = np.searchsorted(sketch.cells, beyond * (sketch.nodes // grid.sketch.nodes))
    whole = float(np.abs(residual).sum())
    if not whole > 0:
        return ()
    rows, errors = np.add.reduceat(mass, ends[:-1]), np.add.reduceat(residual, ends[:-1])
    large = (first[1:] > first[:-1]) & (rows > 0) & (np.abs(errors) >= SMALLEST_SHARE * whole)
    at = np.flatnonzero(large)
    predictions = cell_predictions(sketch)
    lows, highs = predictions[first[at]].tolist(), predictions[first[at + 1] - 1].tolist()
    shares, gaps = np.abs(errors[at]) / whole, errors[at] / rows[at]
    found = [
        Region(low, high, gap, share, share * value)
        for low, high, gap, share in zip(lows, highs, gaps.tolist(), shares.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda region: -region.share)[:MOST_REGIONS])
