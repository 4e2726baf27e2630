"""All groups together: is any of them off, do they differ, and each one's error in that light.

A group of few rows says little by itself, and after correction for a thousand groups nothing. Together they
say much. What is pooled is the mean of f - y in each group: a signed error, whose size is at most SmoothECE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference.interval import normal_quantile
from calibrant.inference.resampling import cell_predictions

__all__ = ["PooledError", "Pooling", "pool_groups"]

Floats = NDArray[np.float64]


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
        Of "in no group are predictions too high or too low on average".
    differ_p_value : float
        Of "they are so by the same amount in all groups".
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


def pool_groups(sketches: Mapping[Any, Sketch], *, confidence: float = 0.95) -> Pooling | None:
    """Partial pooling of the groups' mean errors; None for fewer than two groups with rows.

    With b the mean of f - y in a group and s² its variance, b ~ N(β, s²) and β ~ N(m, τ²) over the groups
    (DerSimonian and Laird, 1986; Morris, 1983, for how sure the groups' own are). "No group is off" is
    tested by Σ (b / s)² and by the mean over all, half of the level for each; "all by the same amount" by
    Cochran's Σ ((b - m) / s)². There s² and the fourth moment are those of calibrated outcomes: where events
    are few, squares have heavier tails than those of normal deviations.

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
    moments = {key: _moments(one) for key, one in sketches.items() if one.total_weight > 0}
    usable = {key: found for key, found in moments.items() if found[1] > 0.0}
    k = len(usable)
    if k < 2:
        return None
    bias, variance, excess = np.array(list(usable.values())).T
    precision = 1.0 / variance
    share = precision / precision.sum()
    common = float(share @ bias)
    statistic = float((precision * (bias - common) ** 2).sum())
    spare = float(precision.sum() - (precision**2).sum() / precision.sum())
    tau = max(statistic - (k - 1), 0.0) / spare
    weight = 1.0 / (variance + tau)
    mean, of_mean = float(weight @ bias / weight.sum()), float(1.0 / weight.sum())
    own = tau / (tau + variance)
    drawn = own * bias + (1.0 - own) * mean
    of_spread = 2.0 / max(k - 3, 1) * ((1.0 - own) * (bias - mean)) ** 2
    error = np.sqrt(own * variance + (1.0 - own) ** 2 * of_mean + of_spread)
    z = normal_quantile(0.5 + 0.5 * confidence)
    of_all = 2.0 * NormalDist().cdf(-abs(common) * float(np.sqrt(precision.sum())))
    squares = _tail(float((precision * bias**2).sum()), k, float(excess.sum()))
    return Pooling(
        min(2.0 * min(squares, of_all), 1.0),
        _tail(statistic, k - 1, float(excess.sum())),
        _ends(mean, z * float(np.sqrt(of_mean))),
        float(np.sqrt(tau)),
        {key: _ends(b, z * e) for key, b, e in zip(usable, drawn, error, strict=True)},
    )


def _moments(sketch: Sketch) -> tuple[float, float, float]:
    """Mean of f - y; its variance, and the excess of its fourth moment, were predictions calibrated.

    Rows that were sampled by outcome and weighted for it have a variance of w₀ w₁ f (1 - f) each, with w₁
    the weight of an event and w₀ of another.
    """
    f = np.clip(cell_predictions(sketch), 0.0, 1.0)
    weights, total = sketch.weights, sketch.total_weight
    bias = float((weights.sum(axis=1) * f - weights[:, 1]).sum()) / total
    chance = f * (1.0 - f)
    rows = sketch.counts.sum(axis=1)
    sums, squared = weights.sum(axis=0), sketch.squared_weights.sum(axis=0)
    row = np.divide(squared, sums, out=np.zeros(2), where=sums > 0)
    row = np.where(row > 0, row, row.max())
    variance = float(row.prod() * (rows @ chance))
    if sketch.weighted:
        residual = np.stack([f, f - 1.0], axis=1)
        variance = max(variance, float((sketch.squared_weights * residual**2).sum()))
    fourth = float(rows @ (chance * (1.0 - 6.0 * chance)))
    spread = float(rows @ chance)
    return bias, variance / total**2, fourth / spread**2 if spread > 0 else 0.0


def _tail(statistic: float, degrees: int, excess: float) -> float:
    """P(sum of squares > statistic), by the χ² with as many degrees of freedom as its variance says."""
    from scipy.special import chdtrc

    variance = max(2.0 * degrees + excess, 1e-3)
    scale = variance / (2.0 * degrees)
    return float(chdtrc(degrees / scale, max(statistic / scale, 0.0)))


def _ends(value: float, reach: float) -> PooledError:
    return PooledError(float(value), float(value - reach), float(value + reach))
