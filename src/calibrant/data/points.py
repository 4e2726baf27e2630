"""Unique predictions with the weight of each outcome, for measures that need an order rather than a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.rows import InputOptions, Rows, require_alone
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch, as_sample

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Points:
    """Unique predictions in increasing order, with the weight of each outcome at each.

    Attributes
    ----------
    p : float64[m]
        Strictly increasing.
    mass : float64[m, 2]
        Weight (or number) of rows without and with the event at each prediction.
    n : int
        Number of rows.
    position_error : float
        Width of the cell that a point stands for, in units of `scale`: no row lies further from its
        point. 0 from arrays.
    squared : float64[m] or None
        Sum of squared weights at each prediction; None where every row counts for one.
    squared_residuals : float64[m] or None
        Sum of (weight · (p - y))² at each prediction; None where `mass` tells it, or where it is not
        known: from a sketch with weights.
    soft : bool
        Whether outcomes may lie between 0 and 1. A sketch with weights does not tell.
    scale : Scale
        The scale of the sketch that the points come from.
    dropped : mapping
        Rows that were left out, by reason.

    Examples
    --------
    >>> points = as_points([0, 1, 1], [0.7, 0.2, 0.7])
    >>> points.p
    array([0.2, 0.7])
    >>> points.mass
    array([[0., 1.],
           [1., 1.]])
    """

    p: Floats
    mass: Floats
    n: int
    position_error: float = 0.0
    squared: Floats | None = None
    squared_residuals: Floats | None = None
    soft: bool = False
    scale: Scale = PROBABILITY
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (self.p, self.mass, self.squared, self.squared_residuals):
            if array is not None:
                array.flags.writeable = False

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.mass.sum())

    @property
    def base_rate(self) -> float:
        """Share of the weight that has the event."""
        return float(self.mass[:, 1].sum()) / self.total

    @cached_property
    def cumulative(self) -> Floats:
        """Weight, weight of events and weighted predictions up to each point; 0 first, [m + 1, 3]."""
        sums = np.zeros((self.p.size + 1, 3), order="F")  # each column is searched by itself
        weight = self.mass[:, 0] + self.mass[:, 1]
        np.cumsum(weight, out=sums[1:, 0])
        np.cumsum(self.mass[:, 1], out=sums[1:, 1])
        weight *= self.p
        np.cumsum(weight, out=sums[1:, 2])
        return sums

    @cached_property
    def residuals(self) -> Floats:
        """Sum of p - y over the rows of each point, divided by the weight of all rows."""
        residuals: Floats = self.p - 1.0  # in place from here on: there may be many rows
        residuals *= self.mass[:, 1]
        residuals += self.p * self.mass[:, 0]
        residuals /= self.total
        return residuals

    @property
    def drift(self) -> float:
        """Bound on the distance of the mean prediction of a cell from the prediction at its mean position.

        Off the probability scale the two differ by the curvature of the scale.
        """
        if self.position_error == 0.0:
            return 0.0
        scale, reach = self.scale, self.position_error
        steepness, curvature, *_ = scale.slopes
        rounding = 2.0**-FRACTION_BITS * scale.length * steepness
        bent = min(steepness, 0.5 * curvature * reach) * reach
        return rounding + (0.0 if scale.reflected else bent)

    @classmethod
    def of(cls, data: Rows | Sketch | Points) -> Points:
        """Unique predictions of rows, exactly; or of the cells of a sketch, at the mean of their rows."""
        if isinstance(data, Points):
            return data
        if isinstance(data, Sketch):
            return cls._of_cells(data)
        return cls._of_weights(data) if data.fractional else cls._of_labels(data)

    @classmethod
    def _of_weights(cls, rows: Rows) -> Points:
        """Points of the rows that have weight: one sort."""
        order = np.argsort(rows.p, kind="stable")
        p, y = rows.p[order], rows.y[order]
        first = np.flatnonzero(np.diff(p, prepend=-1.0))
        weight = np.ones(p.size) if rows.weight is None else rows.weight[order]
        positive = np.add.reduceat(weight * y, first)
        negative = np.add.reduceat(weight * (1.0 - y), first)
        used = negative + positive > 0.0
        return cls(
            p[first][used],
            np.column_stack([negative, positive])[used],
            rows.n,
            squared=np.add.reduceat(weight * weight, first)[used],
            squared_residuals=np.add.reduceat((weight * (p - y)) ** 2, first)[used],
            soft=rows.soft,
            dropped=rows.dropped,
        )

    @classmethod
    def _of_labels(cls, rows: Rows) -> Points:
        """Points by a sort of predictions and labels as one integer.

        The bits of a float in [0, 1] are in order, and leave the two highest free. Half the time of
        sorting indices.
        """
        rows.require_valid()
        p, y, _ = rows.columns
        keys = np.add(p, 0.0, dtype=np.float64).view(np.uint64)  # without negative zeros
        keys <<= np.uint64(1)
        keys |= y.astype(np.uint64)
        keys.sort()
        mass = np.empty((keys.size, 2))
        mass[:, 1] = keys & np.uint64(1)
        keys >>= np.uint64(1)
        p = keys.view(np.float64)
        changes = keys[1:] != keys[:-1]
        if changes.all():
            np.subtract(1.0, mass[:, 1], out=mass[:, 0])
            return cls(p, mass, rows.n, dropped=rows.dropped)
        first = np.concatenate([[0], np.flatnonzero(changes) + 1])
        counts = np.diff(first, append=p.size)
        events = np.add.reduceat(mass[:, 1], first)
        mass = np.column_stack([counts - events, events])
        return cls(p[first], mass, rows.n, dropped=rows.dropped)

    @classmethod
    def _of_cells(cls, sketch: Sketch) -> Points:
        """Points of the cells that have weight, each at the mean of its rows."""
        mass = sketch.weights
        per_cell = over_outcomes(mass)
        used = per_cell > 0
        unit = 2.0**-FRACTION_BITS
        width = unit * 2.0**sketch.offset_bits
        offset = over_outcomes(sketch.weighted_offsets)[used] / per_cell[used]
        position = sketch.cells[used] * width + offset * unit
        error = float(np.minimum(width, 1.0)) if np.any(over_outcomes(sketch.counts) > 1) else unit
        return cls(
            np.array(sketch.scale.prediction(position)),
            mass[used],
            sketch.n,
            error * sketch.scale.length,
            squared=over_outcomes(sketch.squared_weights)[used] if sketch.weighted else None,
            soft=sketch.weighted,
            scale=sketch.scale,
            dropped=sketch.dropped,
        )


def as_points(first: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> Points:
    """Points of `(y_true, y_prob)`, exactly, or of the cells of a Sketch."""
    if isinstance(first, Points):
        require_alone(first, y_prob, options)
        return first
    return Points.of(as_sample(first, y_prob, **options))
