"""Populations with a known SmoothECE: five distributions of predictions, two shapes of error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

import calibrant as cal

Floats = NDArray[np.float64]

DISTRIBUTIONS = ("uniform", "U-shaped", "rare events", "lattice", "half at 1")
SHAPES = ("overconfident", "bent")
TRUTHS = (0.0, 0.01, 0.05, 0.2)

SUPPORT = 1 << 18
LARGEST_AMPLITUDE = 8.0


def quantile(distribution: str, rank: Floats) -> Floats:
    """Predictions at these ranks in (0, 1)."""
    if distribution == "uniform":
        return rank
    if distribution == "U-shaped":
        return np.asarray(beta.ppf(rank, 0.4, 0.4))
    if distribution == "rare events":  # events in 0.2% of the rows
        return np.asarray(beta.ppf(rank, 0.5, 249.5))
    if distribution == "lattice":
        return np.floor(rank * 11.0) / 10.0
    if distribution == "half at 1":
        return np.minimum(2.0 * rank, 1.0)
    raise ValueError(distribution)


@cache
def _table(distribution: str) -> Floats:
    return quantile(distribution, (np.arange(SUPPORT) + 0.5) / SUPPORT)


def truth_of(shape: str, distribution: str) -> Callable[[Floats, float], Floats]:
    """P(event | prediction) as a function of the prediction and an amplitude."""
    if shape == "overconfident":
        return lambda f, a: np.clip(f + a * (0.5 - f), 0.0, 1.0)
    sign = -1.0 if distribution == "half at 1" else 1.0
    return lambda f, a: np.clip(f + sign * a * np.cos(2.0 * np.pi * f), 0.0, 1.0)


@dataclass(frozen=True)
class Population:
    """Predictions of a distribution, whose outcomes miss them so that SmoothECE is `truth`."""

    distribution: str
    shape: str
    truth: float
    amplitude: float

    def draw(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Floats]:
        """Independent rows (y, p)."""
        p = _table(self.distribution)[rng.integers(0, SUPPORT, n)]
        chance = truth_of(self.shape, self.distribution)(p, self.amplitude)
        return (rng.random(n) < chance).astype(np.uint8), p


@cache
def population(distribution: str, shape: str, truth: float) -> Population:
    """The population of that truth, its amplitude found by bisection."""
    if truth == 0.0:
        return Population(distribution, shape, 0.0, 0.0)
    p = _table(distribution)
    chance = truth_of(shape, distribution)

    def error(amplitude: float, tolerance: float = 1e-4) -> float:
        return cal.smooth_ece(chance(p, amplitude), p, labels="soft", tolerance=tolerance)

    low, high = 0.0, LARGEST_AMPLITUDE
    if error(high) < truth:
        raise ValueError(f"{distribution}, {shape}: SmoothECE reaches only {error(high):.3f}")
    for _ in range(22):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if error(middle) < truth else (low, middle)
    return Population(distribution, shape, error(high, tolerance=1e-9), high)


def truth_at_support(drawn: Population) -> tuple[Floats, Floats]:
    """Predictions at equal ranks, and the chance of the event at each."""
    p = _table(drawn.distribution)
    return p, truth_of(drawn.shape, drawn.distribution)(p, drawn.amplitude)
