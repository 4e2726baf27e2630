"""What a sketch knows of the rows in its cells, and how far their log-odds can lie from that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.scales import LOGIT_LIMIT
from calibrant.data.sketch import Sketch
from calibrant.inference.profile import Sample, Unavailable
from calibrant.profiles.logistic import Fit, LogOdds

__all__ = ["UNIT", "Cells", "cells_of"]

Floats = NDArray[np.float64]
UNIT = 2.0**-FRACTION_BITS
BEND, TWIST = 0.25, 0.0963
"""The most that the logistic function's first and second derivative can be."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The (cell, outcome) pairs of a sketch that have weight, one entry each.

    Attributes
    ----------
    position, low, high : float64[m]
        Mean position of the rows on the grid of the scale, and between what they lie.
    label, weight, squared, rows : float64[m]
        Outcome, weight, sum of squared weights and number of the rows.
    """

    sketch: Sketch
    position: Floats
    low: Floats
    high: Floats
    label: Floats
    weight: Floats
    squared: Floats
    rows: Floats

    @classmethod
    def of(cls, sketch: Sketch) -> Cells:
        """One entry for each outcome in each cell."""
        used = sketch.weights > 0.0
        cell = np.repeat(sketch.cells[:, None], 2, axis=1)[used]
        weight, rows = sketch.weights[used], sketch.counts[used].astype(np.float64)
        squared = sketch.squared_weights[used] if sketch.weighted else weight
        left = cell / sketch.nodes
        position = left + sketch.weighted_offsets[used] / weight * UNIT
        alone = rows == 1.0
        low = np.where(alone, position, left)
        high = np.minimum(np.where(alone, position + UNIT, left + 1.0 / sketch.nodes), 1.0)
        label = np.repeat(np.array([[0.0, 1.0]]), sketch.cells.size, axis=0)[used]
        return cls(sketch, position, low, np.maximum(high, position), label, weight, squared, rows)

    @cached_property
    def total(self) -> float:
        """Weight of all."""
        return float(self.weight.sum())

    @cached_property
    def p(self) -> Floats:
        """The prediction at the mean position."""
        return np.clip(np.asarray(self.sketch.scale.prediction(self.position)), 0.0, 1.0)

    @cached_property
    def variance(self) -> Floats:
        """The most that positions of a cell can vary around their mean, for each row."""
        return (self.high - self.position) * (self.position - self.low) + UNIT

    def error_of_sum(self, slope: float, bend: float) -> float:
        """How far Σ f(p) can be from that at the cells' means, as a share of the weight.

        `slope` and `bend` bound the first and the second derivative of f in p.
        """
        scale = self.sketch.scale
        curved = bend * scale.steepness**2 + slope * scale.curvature
        spread = 0.5 * curved * scale.length**2 * self.variance + slope * scale.steepness * UNIT
        return float(self.weight @ spread) / self.total

    # -- log-odds ------------------------------------------------------------------------------

    def log_odds(self, what: str) -> LogOdds:
        """Log-odds at the cells' means, refused where rows of one cell could have any."""
        with np.errstate(divide="ignore"):
            z = self._z(self.position)
        exact = ~np.isfinite(z) & (self.high == self.low)
        unknown = ~exact & ~np.isfinite(self._slopes[0])
        if unknown.any():
            rows = int(self.rows[unknown].sum())
            raise Unavailable(
                "{what} needs rows{other}: {rows} of this sketch so near 0 or 1 that the log-odds are not "
                "known",
                what=what,
                rows="one row lies" if rows == 1 else f"{rows:,} rows lie",
                other="" if self._logits else ", or a logit sketch",
            )
        return LogOdds.of(z, self.weight * (1.0 - self.label), self.weight * self.label)

    @property
    def _logits(self) -> bool:
        return self.sketch.scale.logits_per_unit is not None

    def _z(self, position: Floats) -> Floats:
        scale = self.sketch.scale
        if scale.logits_per_unit is not None:
            line = scale.limits[0] - scale.margin + position * scale.length
            return np.asarray(line * scale.logits_per_unit)
        p = np.asarray(scale.prediction(position))
        return np.asarray(np.log(p) - np.log1p(-p))

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """Bounds on the first two derivatives of the log-odds in the position, over each cell."""
        scale = self.sketch.scale
        if scale.logits_per_unit is not None:
            slope = scale.length * scale.logits_per_unit
            edge = np.abs(self._z(self.position)) >= LOGIT_LIMIT - 2.0 * slope / self.sketch.nodes
            return np.where(edge, inf, slope), np.zeros_like(self.position)
        if not scale.reflected:
            raise Unavailable(
                "the log-odds need rows, or a sketch on the probability or logit scale"
            )
        spread = np.minimum(self.low * (1.0 - self.low), self.high * (1.0 - self.high))
        # Nearer to 0 or 1 than a few units the position itself is not known well enough.
        known = spread > 64.0 * UNIT
        inverse = np.where(known, 1.0 / np.where(known, spread, 1.0), inf)
        return inverse, inverse**2

    def recalibration_error(
        self, data: LogOdds, fit: Fit, *, held: bool = False
    ) -> tuple[float, float, float]:
        """Bounds on what the rows would change: of the slope, the intercept and the log-likelihood.

        With log-odds centred and scaled, the gradient of the rows at this fit is at most g, and the
        information at least λ. Along any line the information falls no faster than e^{-Rr}, with R
        the largest regressor (Bach 2010), so the maximum lies within r of the fit, where
        λ(1 - e^{-Rr})/R = g. With `held`, the slope is held at 1.
        """
        finite = np.isfinite(self.z)
        total = float(data.weight.sum())
        centre = float(data.weight @ data.z) / total
        scale = sqrt(float(data.weight @ (data.z - centre) ** 2) / total)
        if held:
            return self._held_error(fit, finite)
        slope, curve = (each[finite] / scale for each in self._slopes)
        u = np.abs(self.z[finite] - centre) / scale
        far = np.maximum(self.high - self.position, self.position - self.low)[finite] + UNIT
        beta, weight = abs(fit.slope) * scale, self.weight[finite]
        half = 0.5 * self.variance[finite] * weight
        drift = UNIT * weight  # the position itself is cut to fixed point
        turn = TWIST * beta**2 * slope**2 + BEND * beta * curve
        g0 = float(half @ turn + drift @ (BEND * beta * slope))
        g1 = float(
            half @ (curve + 2.0 * BEND * beta * slope**2 + u * turn)
            + drift @ (slope + u * BEND * beta * slope)
        )
        moved = far * weight
        top = u + far * slope
        h0 = float(moved @ (TWIST * beta * slope))
        h1 = float(moved @ (TWIST * beta * slope * top + BEND * slope))
        h2 = float(moved @ (TWIST * beta * slope * top**2 + 2.0 * BEND * top * slope))
        aa, ab, bb = fit.likelihood.information
        ab, bb = (ab - centre * aa) / scale, (bb - 2.0 * centre * ab + centre**2 * aa) / scale**2
        least = 0.5 * (aa + bb) - sqrt(0.25 * (aa - bb) ** 2 + ab**2)
        radius = _radius(sqrt(g0**2 + g1**2), least - (h0 + 2.0 * h1 + h2), 1.0 + float(top.max()))
        value = float(half @ (beta * curve + BEND * beta**2 * slope**2) + drift @ (beta * slope))
        return (
            radius / scale,
            radius * sqrt(1.0 + (centre / scale) ** 2),
            value + radius * sqrt(g0**2 + g1**2),
        )

    def _held_error(self, fit: Fit, finite: NDArray[np.bool_]) -> tuple[float, float, float]:
        slope, curve = (each[finite] for each in self._slopes)
        weight = self.weight[finite]
        half = 0.5 * self.variance[finite] * weight
        far = np.maximum(self.high - self.position, self.position - self.low)[finite] + UNIT
        drift = UNIT * weight
        g = float(half @ (TWIST * slope**2 + BEND * curve) + drift @ (BEND * slope))
        lost = float((far * weight) @ (TWIST * slope))
        radius = _radius(g, fit.likelihood.information[0] - lost, 1.0)
        value = float(half @ (curve + BEND * slope**2) + drift @ slope)
        return 0.0, radius, value + radius * g

    @cached_property
    def z(self) -> Floats:
        """Log-odds at the mean position, infinite at 0 and 1."""
        with np.errstate(divide="ignore"):
            return self._z(self.position)


def cells_of(sample: Sample) -> Cells:
    """The cells of the sample's sketch."""
    return Cells.of(sample.sketch)


def _radius(gradient: float, least: float, regressor: float) -> float:
    if not least > 0.0 or regressor * gradient >= least:
        return inf
    return -log1p(-regressor * gradient / least) / regressor
