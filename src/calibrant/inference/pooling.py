"""All groups together: is any of them off, do they differ, and each one's error in that light.

A group of few rows says little by itself, and after correction for a thousand groups nothing. Together they
say much. What is pooled is the mean of f - y in each group: a signed error, whose size is at most SmoothECE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.inference.null_noise import (
    cross_weights,
    design_effects,
    expected_weights,
    has_weight,
    null_variance,
)
from calibrant.inference.resampling import cell_predictions

__all__ = ["PooledError", "Pooling", "pool_groups"]

Floats = NDArray[np.float64]

FEW_SURPRISES = 5.0
"""Outcomes against the odds to expect, of all groups, below which their number alone can tell."""

_STEPS, _HALVINGS = 64, 40


@dataclass(frozen=True)
class PooledError:
    """How far predictions are above the outcomes on average, with an interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Pooling:
    """What all groups say together of the mean of f - y.

    Attributes
    ----------
    p_value : float
        P-value of "in no group are predictions too high or too low on average".
    differ_p_value : float
        P-value of "they are so by the same amount in all groups".
    typical : PooledError
        The mean over the groups.
    spread : float
        Standard deviation of the groups' true errors around it, as estimated.
    groups : mapping of key to PooledError
        Each group's own, drawn towards the typical one: the more, the fewer rows it has and the more
        alike the groups are.
    """

    p_value: float
    differ_p_value: float
    typical: PooledError
    spread: float
    groups: Mapping[Any, PooledError]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON; the groups in their order."""
        return {
            "p_value": self.p_value,
            "differ_p_value": self.differ_p_value,
            "typical": vars(self.typical),
            "spread": self.spread,
            "groups": [vars(one) for one in self.groups.values()],
        }


def pool_groups(
    sketches: Mapping[Any, Sketch], *, confidence: float = CONFIDENCE
) -> Pooling | None:
    """Partial pooling of the groups' mean errors; None for fewer than two groups with rows.

    With b the mean of f - y in a group and s² its variance, b ~ N(β, s²) and β ~ N(m, τ²) over the groups.
    How far the groups differ, τ², is not known either: every τ² is as likely beforehand, and each group's
    error is a mixture over what the groups make of it (Stein's prior; Morris and Tang, 2011). An estimate
    of τ² in its place would be 0 by chance and the intervals too short. "No group is off" is tested by
    Σ (b / s)² and by the mean over all, half of the level for each; "all by the same amount" by Cochran's
    Σ ((b - m) / s)². For the tests s² and the fourth moment are those of calibrated outcomes: where events
    are few, squares have heavier tails than those of normal deviations. For the errors s² is as many times
    larger as the residuals of all groups are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = {}
    >>> for k in range(200):
    ...     p = rng.uniform(0.1, 0.9, 50)
    ...     groups[k] = Sketch.from_arrays(rng.random(50) < p - 0.05, p)
    >>> together = pool_groups(groups)
    >>> together.p_value < 0.001, together.typical.low < 0.05 < together.typical.high
    (True, True)
    """
    moments = {key: _moments(one) for key, one in sketches.items() if has_weight(one)}
    usable = {key: own for key, own in moments.items() if own.variance > 0.0}
    k = len(usable)
    if k < 2:
        return None
    bias, variance, seen, excess = np.array([own[:4] for own in usable.values()]).T
    precision = 1.0 / variance
    common = float(precision @ bias / precision.sum())
    statistic = float((precision * (bias - common) ** 2).sum())
    of_all = 2.0 * NormalDist().cdf(-abs(common) * float(np.sqrt(precision.sum())))
    squares = _tail(float((precision * bias**2).sum()), k, float(excess.sum()))
    # Of next to no events, one more is no normal deviation: what is beyond chance is their number.
    number = _chance_of_so_many(
        sum(own.surprises for own in moments.values()),
        sum(own.expected_surprises for own in moments.values()),
    )
    errors = _Mixture.of(bias, variance * max(float(np.mean(seen / variance)), 1.0))
    ends = np.stack([errors.quantile(0.5 + side * 0.5 * confidence) for side in (-1.0, 1.0)])
    typical, *own = map(PooledError, errors.centre, *ends.tolist())
    return Pooling(
        max(min(2.0 * min(squares, of_all), 1.0), number),
        max(_tail(statistic, k - 1, float(excess.sum())), number),
        typical,
        float(np.sqrt(errors.share @ errors.spread)),
        dict(zip(usable, own, strict=True)),
    )


@dataclass(frozen=True, eq=False)
class _Mixture:
    """The errors of all groups on average, first, and of each group, given what was seen of all.

    Attributes
    ----------
    spread, share : float64[steps]
        Values of τ², and how likely each is.
    mean, error : float64[steps, 1 + groups]
        Of the normal deviations whose mixture an error is.
    """

    spread: Floats
    share: Floats
    mean: Floats
    error: Floats

    @classmethod
    def of(cls, bias: Floats, variance: Floats) -> _Mixture:
        # Errors lie within ±1. Small values of τ² matter as long as they are not far below all variances.
        spread = np.concatenate([[0.0], np.geomspace(1e-3 * variance.min(), 1.0, _STEPS)])
        precision = 1.0 / (variance + spread[:, None])
        total = precision.sum(axis=1)
        mean = precision @ bias / total
        off = (precision * (bias - mean[:, None]) ** 2).sum(axis=1)
        logs = 0.5 * (np.log(precision).sum(axis=1) - np.log(total) - off)
        share = np.exp(logs - logs.max()) * np.gradient(spread)
        own = spread[:, None] * precision
        means = np.column_stack([mean, own * bias + (1.0 - own) * mean[:, None]])
        errors = own * variance + (1.0 - own) ** 2 / total[:, None]
        return cls(
            spread, share / share.sum(), means, np.sqrt(np.column_stack([1.0 / total, errors]))
        )

    @property
    def centre(self) -> list[float]:
        return [float(value) for value in self.share @ self.mean]

    def quantile(self, level: float) -> Floats:
        """Of every error, by bisection."""
        from scipy.special import ndtr

        reach = 9.0 * self.error.max(axis=0)
        low, high = self.mean.min(axis=0) - reach, self.mean.max(axis=0) + reach
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            above = self.share @ ndtr((middle - self.mean) / self.error) > level
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray(0.5 * (low + high))


class _Moments(NamedTuple):
    """Of one group: the mean of f - y, its variance, were predictions calibrated, and as it was seen.

    The excess is that of the fourth moment of calibrated outcomes; a surprise is an outcome against the odds.
    """

    bias: float
    variance: float
    seen_variance: float
    excess: float
    surprises: float
    expected_surprises: float


def _moments(sketch: Sketch) -> _Moments:
    """What pooling needs to know of a group.

    Where rows were sampled by outcome and weighted for it, both the weight and the variance of a group are
    judged by how many rows it has, not by which outcomes came: a group with more heavy rows than usual
    would seem both further off and less sure, and those with fewer would outvote it.
    """
    f = np.clip(cell_predictions(sketch), 0.0, 1.0)
    chance, rows = f * (1.0 - f), over_outcomes(sketch.counts)
    weights, total = sketch.weights, sketch.total_weight
    squared = over_outcomes(sketch.squared_weights)
    variance = float(null_variance(sketch, f).sum())
    spread = float(squared @ chance)
    fourth = float((squared**2 / np.maximum(rows, 1)) @ (chance * (1.0 - 6.0 * chance)))
    if sketch.weighted and not cross_weights(sketch).any():
        worth = design_effects(weights, sketch.squared_weights, f)
        expected = expected_weights(weights, worth, f)
        total, spread = float(expected.sum()), variance
        other, event = (worth * np.stack([f, 1.0 - f], axis=1)).T
        fourth = float((expected * chance) @ (event**3 + other**3))  # of Poisson numbers of both
    bias = float((over_outcomes(weights) * f - weights[:, 1]).sum()) / total
    strayed = np.stack([f, f - 1.0], axis=1) - bias
    seen = float((sketch.squared_weights * strayed**2).sum()) * sketch.n / max(sketch.n - 1.0, 1.0)
    excess = fourth / spread**2 if spread > 0 else 0.0
    others, events = sketch.counts.T
    return _Moments(
        bias,
        variance / total**2,
        seen / total**2,
        excess,
        float(np.where(f > 0.5, others, events).sum()),
        float(rows @ np.minimum(f, 1.0 - f)),
    )


def _tail(statistic: float, degrees: int, excess: float) -> float:
    """P(sum of squares > statistic), by the χ² with as many degrees of freedom as its variance says."""
    from scipy.special import chdtrc

    variance = max(2.0 * degrees + excess, 1e-3)
    scale = variance / (2.0 * degrees)
    return float(chdtrc(degrees / scale, max(statistic / scale, 0.0)))


def _chance_of_so_many(seen: float, expected: float) -> float:
    """P(as many outcomes against the odds, or more), if calibrated; 0 where many are expected anyway."""
    from scipy.special import pdtrc

    return float(pdtrc(seen - 1.0, expected)) if expected < FEW_SURPRISES and seen >= 1.0 else 0.0
