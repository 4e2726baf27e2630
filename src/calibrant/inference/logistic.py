"""Logistic regression of outcomes on functions of a prediction, with and without a Gaussian prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_flag
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points

Floats = NDArray[np.float64]

NEAREST_TO_THE_ENDS = 2.0**-24
"""Logarithms see predictions of exactly 0 and 1 as this far away: half of float32's spacing at 1."""
LIMIT = float(np.log(1.0 - NEAREST_TO_THE_ENDS) - np.log(NEAREST_TO_THE_ENDS))
"""The log-odds of a prediction of exactly 1."""
AN_END = 1e-12
"""Predictions this close to 0 or 1 count as equal to it; sketches on the logit scale keep no others."""


def logarithms(p: Floats) -> tuple[Floats, Floats]:
    """log p and log(1 - p), finite also at 0 and 1."""
    inside = np.clip(p, NEAREST_TO_THE_ENDS, 1.0 - NEAREST_TO_THE_ENDS)
    return np.log(inside), np.log1p(-inside)


def log_odds(p: Floats) -> Floats:
    """log p - log(1 - p), finite also at 0 and 1."""
    low, high = logarithms(p)
    return low - high


def expit(z: Floats) -> Floats:
    """Inverse of the log-odds."""
    from scipy.special import expit as inverse

    return np.asarray(inverse(z), dtype=np.float64)


def rows_per_weight(points: Points) -> float:
    """Σw / Σw²: with this factor, weights add up to Kish's effective sample size, whatever their scale."""
    return 1.0 if points.squared is None else points.total / float(points.squared.sum())


def fit_logistic(
    features: Floats, points: Points, nonnegative: int = 0, *, platt_targets: bool = True
) -> list[float]:
    """Maximum likelihood of logit P(y) = features · coefficients, with Platt's targets.

    Platt's targets are (n₁ + 1) / (n₁ + 2) and 1 / (n₀ + 2) in place of 1 and 0. Of the first `nonnegative`
    coefficients, one that comes out negative is left out, and the rest are fitted again.
    """
    require_flag("platt_targets", platt_targets)
    negative, positive = points.mass.sum(axis=0) * rows_per_weight(points)
    low, high = 0.0, 1.0
    if platt_targets:
        low, high = 1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)
    weight = over_outcomes(points.mass)
    share = points.mass @ np.array([low, high]) / weight
    count = features.shape[1]
    flat = np.full(count, np.inf)  # no prior
    found = posterior(features, np.zeros_like(weight), weight / points.total, share, flat)
    values = found.coefficients
    worst = int(np.argmin(values[:nonnegative])) if nonnegative else 0
    if nonnegative and values[worst] < 0.0:
        rest: list[float] = []
        if count > 1:
            kept = np.delete(features, worst, axis=1)
            rest = fit_logistic(kept, points, nonnegative - 1, platt_targets=platt_targets)
        return [*rest[:worst], 0.0, *rest[worst:]]
    return [float(value) for value in values]


@dataclass(frozen=True)
class Posterior:
    """Posterior mode of the coefficients, the curvature there, and minus the logarithm of its height.

    `spread` holds the standard deviations of the prior.
    """

    coefficients: Floats
    precision: Floats
    loss: float
    spread: Floats

    @property
    def evidence(self) -> float:
        """Logarithm of the marginal likelihood: that of the outcomes, averaged over the prior."""
        volume = np.linalg.slogdet(self.precision)[1] if self.coefficients.size else 0.0
        return -self.loss - 0.5 * float(volume) - float(np.log(self.spread).sum())

    def log_odds(self, offset: Floats, features: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the log-odds at these features."""
        if not self.coefficients.size:
            return offset, np.zeros_like(offset)
        covariance = np.linalg.inv(self.precision)
        variance = np.einsum("ij,jk,ik->i", features, covariance, features)
        return offset + features @ self.coefficients, variance


def posterior(
    features: Floats, offset: Floats, rows: Floats, share: Floats, spread: Floats
) -> Posterior:
    """Posterior of logit P(y) = offset + features · coefficients, with coefficients ~ N(0, spread²).

    `rows` counts the rows at each place and `share` is the share of events among them. Newton's method,
    with steps halved until the likelihood rises (Armijo's rule): the problem is convex.
    """
    prior = np.diag(spread**-2.0)
    events = rows * share

    def value(coefficients: Floats) -> float:
        s = offset + features @ coefficients
        penalty = 0.5 * coefficients @ prior @ coefficients
        return float((rows * np.logaddexp(0.0, s) - events * s).sum() + penalty)

    def curvature(q: Floats) -> Floats:
        return np.asarray((features.T * (rows * q * (1.0 - q))) @ features + prior)

    coefficients = np.zeros(features.shape[1])
    loss = value(coefficients)
    for _ in range(100 if coefficients.size else 0):
        q = expit(offset + features @ coefficients)
        slope = (rows * q - events) @ features + prior @ coefficients
        step = -np.linalg.lstsq(curvature(q), slope)[0]  # the shortest one of many
        size, fall = 1.0, float(slope @ step)
        while value(coefficients + size * step) > loss + 1e-4 * size * fall and size > 1e-6:
            size /= 2.0
        coefficients = coefficients + size * step
        loss, before = value(coefficients), loss
        if before - loss <= 1e-11 * (1.0 + abs(loss)):
            break
    precision = curvature(expit(offset + features @ coefficients))
    return Posterior(coefficients, precision, loss, spread)
