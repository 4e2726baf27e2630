"""Predictors that emit only a few values, and the rows behind the ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.sketch import Sketch
from calibrant.diagrams.bands import read_only
from calibrant.inference.resampling import cell_predictions

__all__ = ["DistinctValues", "RawSample", "distinct_values", "rate_interval", "raw_sample"]

Floats = NDArray[np.float64]

# A predictor is said to emit few values when there are at most so many, half of them with so many
# rows each: not when most predictions are 0 or 1 but for rounding.
_FEW = 32
_ROWS_EACH = 4
# Values closer than this are one value written with float residue (1 - 0.8 and 0.2).
_SAME = 1e-6
# Float residue moves a mean by no more than this, in units of the fixed point of the sketch.
_RESIDUE = 2.0
# The curve is shown for a bandwidth around each row, so it ends between values so far from each other.
_WIDTHS_APART = 4.0


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """Observed rates at the few values that a predictor emits.

    Attributes
    ----------
    prediction : float64[k]
        The values.
    rate : float64[k]
        Share of events among the rows with that prediction.
    low, high : float64[k]
        Interval for the true rate (Jeffreys).
    rows : int64[k]
        Rows with that prediction.
    """

    prediction: Floats
    rate: Floats
    low: Floats
    high: Floats
    rows: NDArray[np.int64]

    def __post_init__(self) -> None:
        read_only(self)

    @property
    def count(self) -> str:
        """How many there are, in words."""
        return f"{self.rows.size} distinct prediction{'s' if self.rows.size > 1 else ''}"


def distinct_values(
    sketch: Sketch, confidence: float, *, bandwidth: float = np.inf
) -> DistinctValues | None:
    """The values with their rates, or None when the predictor emits many.

    Few values count also where each has few rows, if the bandwidth (in units of the scale) is too narrow
    for the curve to join any two of them.
    """
    used = sketch.weights.sum(axis=1) > 0.0
    p, weights = cell_predictions(sketch)[used], sketch.weights[used]
    first = np.flatnonzero(np.diff(p, prepend=-1.0) > _SAME)
    rows = np.add.reduceat(sketch.counts[used].sum(axis=1), first)
    if first.size > _FEW or not _one_value_a_cell(sketch):
        return None
    apart = np.diff(sketch.cells[used][first]) / sketch.nodes * sketch.scale.length
    joined = np.min(apart, initial=np.inf) < _WIDTHS_APART * bandwidth
    if first.size > 1 and joined and np.median(rows) < _ROWS_EACH:
        return None
    events = np.add.reduceat(weights[:, 1], first)
    squared = np.add.reduceat(sketch.squared_weights[used], first).sum(axis=1)
    total = np.add.reduceat(weights.sum(axis=1), first)
    rate = events / total
    low, high = rate_interval(rate, total**2 / squared, confidence)
    mean = np.add.reduceat(p * weights.sum(axis=1), first) / total
    return DistinctValues(mean, rate, low, high, rows)


def _one_value_a_cell(sketch: Sketch) -> bool:
    """Whether nothing tells that rows of one cell differ.

    Rows at one offset have the same mean offset under both outcomes and, where there is one outcome, a
    sum that is a multiple of their number.
    """
    counts, offsets = sketch.counts, sketch.offsets
    mean = np.divide(offsets, counts, out=np.zeros(offsets.shape), where=counts > 0)
    both = (counts > 0).all(axis=1)
    same = np.abs(mean[:, 1] - mean[:, 0]) <= _RESIDUE
    whole = (offsets % np.maximum(counts, 1) == 0).all(axis=1)
    return bool(np.where(both, same, whole).all())


def rate_interval(rate: Floats, trials: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Jeffreys interval for a rate seen in so many trials; ends at 0 and 1 stay there."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    events = rate * trials
    low = betaincinv(events + 0.5, trials - events + 0.5, tail)
    high = betaincinv(events + 0.5, trials - events + 0.5, 1 - tail)
    return np.where(rate <= 0, 0.0, low), np.where(rate >= 1, 1.0, high)


@dataclass(frozen=True, eq=False)
class RawSample:
    """Some of the rows, drawn without replacement, to the resolution of the sketch.

    Attributes
    ----------
    prediction : float64[k]
        In increasing order.
    outcome : int8[k]
        0 or 1.
    """

    prediction: Floats
    outcome: NDArray[np.int8]

    def __post_init__(self) -> None:
        read_only(self)


def raw_sample(sketch: Sketch, size: int, *, seed: int) -> RawSample:
    """At most `size` rows of the sketch; all of them when there are no more."""
    rng = generator(seed, 3)
    few = sketch.n <= size
    rows = np.arange(sketch.n) if few else rng.choice(sketch.n, size, replace=False, shuffle=False)
    ends = np.cumsum(sketch.counts.ravel())
    slot = np.searchsorted(ends, np.sort(rows), side="right")
    cell, label = slot // 2, slot % 2
    offset = sketch.offsets[cell, label] / sketch.counts[cell, label] * 2.0**-FRACTION_BITS
    position = sketch.cells[cell] / sketch.nodes + offset
    prediction = np.array(sketch.scale.prediction(position))
    return RawSample(prediction, label.astype(np.int8))
