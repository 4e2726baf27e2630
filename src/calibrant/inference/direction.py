"""Direction of the errors, and the ranges of predictions where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.quantiles import normal_quantile
from calibrant.inference.residuals import ResidualGrid

Floats = NDArray[np.float64]

SMALLEST_SHARE, MOST_REGIONS = 0.05, 5
"""Of SmoothECE that a range must explain to be named, and the most ranges: a reader acts on no more."""
RARE = 0.01
"""Share of predictions above ½ below which the confidence gap is the bias."""
ONE_SIDED = 0.9
"""Share of SmoothECE from which on the bias alone explains it."""
BACKWARDS = 0.45
"""Area under the ROC curve that is well below that of predictions without information, ½."""


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
        significant; the bias if it is nearly all of the error. "no clear direction" if none is.
    bias : float
        Mean of f - y.
    confidence_gap : float
        Mean of max(f, 1 - f) minus how often the likelier outcome came.
    regions : tuple of Region
        The ranges that contribute most, largest first.
    auc : float
        Area under the ROC curve; not a number where only one outcome occurs.
    backwards : bool
        Predictions rank outcomes backwards: the area is significantly below `BACKWARDS`.
    """

    label: str
    bias: float
    confidence_gap: float
    regions: tuple[Region, ...]
    auc: float
    backwards: bool

    def __str__(self) -> str:
        return self.label


NO_DIRECTION = "no clear direction"


def direction_of(
    sketch: Sketch, grid: ResidualGrid, value: float, test: CalibrationTest, confidence: float
) -> Direction:
    """Direction of the errors of the rows on a grid.

    Both the bias and the confidence gap are means of (f - y) w with |w| ≤ 1, so each is a part of SmoothECE.
    One is named if it lies outside its error, that of the rows and that of calibrated ones, with this
    confidence. Where hardly a prediction is above ½ the gap says nothing new.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    grid : ResidualGrid
        The same, on a grid for their bandwidth.
    value : float
        Their SmoothECE.
    test : CalibrationTest
        The test of their calibration, which knows the errors.
    confidence : float
        Of the errors.
    """
    cells = test.cells
    side = np.sign(cells.prediction - 0.5)
    functions = np.stack([np.ones_like(side), side], axis=1)
    bias, gap = (cells.residual @ functions).tolist()
    seen = cells.variances(functions) - np.array([bias, gap]) ** 2 / cells.units
    variance = np.maximum(seen, cells.null_variances(functions)[1])
    z = normal_quantile(0.5 + 0.5 * confidence, cells.degrees)
    errors = z * np.sqrt(variance)
    label = NO_DIRECTION
    biased = abs(bias) > errors[0]
    if biased:
        label = f"predictions are too {'high' if bias > 0 else 'low'}"
    above = float(cells.mass[side > 0].sum())
    one_sided = biased and abs(bias) >= ONE_SIDED * value
    larger = abs(gap) > max(errors[1], abs(bias) * (1.0 + 1e-9))
    if larger and above > RARE and not one_sided:
        label = f"{'over' if gap > 0 else 'under'}confident"
    auc, rarer = _area_under_roc(cells.sums.weights)
    # Birnbaum and Klose's bound on the variance of the area, whatever the distributions.
    error = z * math.sqrt(auc * (1.0 - auc) / max(rarer * cells.units, 1.0))
    return Direction(
        label,
        bias,
        gap,
        _regions(sketch, cells.sums.prediction, grid, value),
        auc,
        auc + error < BACKWARDS,
    )


def _area_under_roc(weights: Floats) -> tuple[float, float]:
    """Area under the ROC curve, not a number where only one outcome occurs, and the rarer outcome's share."""
    zeros, ones = weights.sum(axis=0).tolist()
    rarer = min(zeros, ones) / (zeros + ones)
    if not rarer > 0:
        return math.nan, rarer
    below = np.cumsum(weights[:, 0]) - weights[:, 0] / 2.0
    return min(float(below @ weights[:, 1]) / (zeros * ones), 1.0), rarer


def _regions(
    sketch: Sketch, predictions: Floats, grid: ResidualGrid, value: float
) -> tuple[Region, ...]:
    """Ranges with rows between zeros of the smoothed residual, the largest part of the error first."""
    share = grid.on_nodes(grid.sums.position, grid.sums.mass / grid.sums.mass.sum())
    residual, mass = grid.smoothed(np.stack([grid.observed, share]), value)
    whole = float(np.abs(residual).sum())
    if not whole > 0:
        return ()
    sign = np.sign(residual)
    starts = np.append(0, np.flatnonzero(sign[1:] != sign[:-1]) + 1)
    cells = (starts + grid.first) * (sketch.nodes // grid.nodes)
    first = np.append(np.searchsorted(sketch.cells, cells), sketch.cells.size)
    rows, errors = np.add.reduceat(mass, starts), np.add.reduceat(residual, starts)
    shares = np.abs(errors) / whole
    found = [
        Region(
            float(predictions[first[k]]),
            float(predictions[first[k + 1] - 1]),
            float(errors[k] / rows[k]),
            float(shares[k]),
            float(shares[k] * value),
        )
        for k in np.flatnonzero((np.diff(first) > 0) & (rows > 0) & (shares >= SMALLEST_SHARE))
    ]
    return tuple(sorted(found, key=lambda region: -region.share)[:MOST_REGIONS])
