"""Logistic regression of outcomes on functions of a prediction, with a Gaussian prior on what it adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.points import Points

__all__ = [
    "AN_END",
    "LIMIT",
    "Design",
    "Posterior",
    "expit",
    "log_odds",
    "logarithms",
    "posterior",
    "rows_per_weight",
]

Floats = NDArray[np.float64]

NEAREST_TO_THE_ENDS = 2.0**-24
"""Logarithms see predictions of exactly 0 and 1 as this far away: half of float32's spacing at 1."""
LIMIT = float(np.log(1.0 - NEAREST_TO_THE_ENDS) - np.log(NEAREST_TO_THE_ENDS))
"""The log-odds of a prediction of exactly 1."""
AN_END = 1e-12
"""Predictions this close to 0 or 1 count as equal to it; sketches on the logit scale keep no others."""
MOST_STEPS = 100
SMALLEST_STEP = 1e-6
CONVERGED = 1e-11


def logarithms(p: Floats) -> tuple[Floats, Floats]:
    """log p and log(1 - p), finite also at 0 and 1."""
    inside = np.clip(p, NEAREST_TO_THE_ENDS, 1.0 - NEAREST_TO_THE_ENDS)
    return np.log(inside), np.log1p(-inside)


def log_odds(p: Floats) -> Floats:
    """log p - log(1 - p), finite also at 0 and 1."""
    low, high = logarithms(p)
    return low - high


def expit(z: Floats) -> Floats:
    """The inverse of the log-odds."""
    from scipy.special import expit as inverse

    return np.asarray(inverse(z), dtype=np.float64)


def rows_per_weight(atoms: Points) -> float:
    """How many rows a weight of 1 counts for.

    A weight counts for so many rows, but all together for no fewer than the rows of equal weight that they
    are worth: weights that add up to 1 are not one row.
    """
    worth = 1.0 if atoms.squared is None else atoms.total / float(atoms.squared.sum())
    return max(1.0, worth)


class Design:
    """Features [places, k] of a regression, multiplied on one thread: BLAS starts more than are worth it."""

    def __init__(self, features: Floats) -> None:
        self._features = np.ascontiguousarray(features)
        self._across = np.ascontiguousarray(features.T)

    def at(self, coefficients: Floats) -> Floats:
        """features · coefficients, at each place."""
        return np.asarray(coefficients @ self._across)

    def sums(self, weight: Floats) -> Floats:
        """Σ weight · features."""
        return np.asarray(weight @ self._features)

    def squares(self, weight: Floats) -> Floats:
        """Σ weight · features featuresᵀ."""
        return np.asarray((self._across * weight) @ self._features)


@dataclass(frozen=True)
class Posterior:
    """The most likely coefficients, the curvature there, and the evidence (Laplace's approximation).

    `evidence` is the logarithm of the probability of the outcomes, averaged over the prior.
    """

    coefficients: Floats
    precision: Floats
    evidence: float

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
    """Of logit P(y) = offset + features · coefficients, with coefficients ~ N(0, spread²).

    `rows` counts the rows at each place and `share` is the share of events among them. Newton's method,
    with steps halved until the likelihood rises: the problem is convex.
    """
    prior = np.diag(spread**-2.0)
    events = rows * share
    design = Design(features)

    def value(coefficients: Floats) -> float:
        s = offset + design.at(coefficients)
        penalty = 0.5 * coefficients @ prior @ coefficients
        return float((rows * np.logaddexp(0.0, s) - events * s).sum() + penalty)

    def curvature(q: Floats) -> Floats:
        return design.squares(rows * q * (1.0 - q)) + prior

    coefficients = np.zeros(features.shape[1])
    loss = value(coefficients)
    for _ in range(MOST_STEPS if coefficients.size else 0):
        q = expit(offset + design.at(coefficients))
        slope = design.sums(rows * q - events) + prior @ coefficients
        step = -np.linalg.solve(curvature(q), slope)
        size, fall = 1.0, float(slope @ step)
        while (
            value(coefficients + size * step) > loss + 1e-4 * size * fall and size > SMALLEST_STEP
        ):
            size /= 2.0
        coefficients = coefficients + size * step
        loss, before = value(coefficients), loss
        if before - loss <= CONVERGED * (1.0 + abs(loss)):
            break
    precision = curvature(expit(offset + design.at(coefficients)))
    volume = np.linalg.slogdet(precision)[1] if coefficients.size else 0.0
    evidence = -loss - 0.5 * volume - float(np.log(spread).sum())
    return Posterior(coefficients, precision, evidence)
