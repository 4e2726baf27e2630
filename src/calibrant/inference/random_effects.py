"""Random-effects meta-analysis of the groups' mean errors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant._format import group_text
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Stacked
from calibrant.inference.null_noise import (
    design_effects,
    expected_weights,
    has_weight,
    null_moments,
)
from calibrant.inference.residuals import LabelSums
from calibrant.measures.result_record import Record, frame_of, plain

Floats = NDArray[np.float64]

FEWEST_EVENTS = 5.0
"""Expected unlikely outcomes of all groups, as for Pearson's χ²; fewer are no normal deviations."""


@dataclass(frozen=True)
class Effect:
    """A mean of f - y with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RandomEffects(Record):
    """Random-effects model of the groups' mean errors f - y: b ~ N(β, s²), β ~ N(mean, tau²).

    Attributes
    ----------
    mean : Effect
        Mean over the population of groups, with the Hartung–Knapp interval.
    tau : float
        Standard deviation of the groups' true errors, by restricted maximum likelihood (REML).
    new_group : Effect
        Prediction interval for a group that is not among these (Higgins, Thompson and Spiegelhalter).
    p_value : float
        P-value of "no group's predictions are too high or too low on average".
    heterogeneity_p_value : float
        P-value of "all groups have the same mean error": Cochran's Q.
    i2 : float
        Share of the groups' variance that is not chance (Higgins' I²).
    groups : mapping of key to Effect
        Best linear unbiased predictions: each group's mean error, shrunk towards the mean.
    confidence : float
    """

    mean: Effect
    tau: float
    new_group: Effect
    p_value: float
    heterogeneity_p_value: float
    i2: float
    groups: Mapping[Any, Effect]
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON; the groups in their order."""
        groups = [{"group": group_text(k), **plain(one)} for k, one in self.groups.items()]
        return super().to_dict() | {"groups": groups}

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame of one row: mean, standard deviation and a new group, with intervals, and the tests."""
        row: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Effect):
                row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            elif name != "groups":
                row[name] = value
        return frame_of([row], backend)


def random_effects(
    sketches: Mapping[Any, Sketch], *, confidence: float = CONFIDENCE
) -> RandomEffects | None:
    """Random-effects model of the groups; None for fewer than two groups with rows, or too few events.

    With b the mean of f - y in a group and s² its variance under calibration: "no group is off" is tested by
    Σ (b / s)² and by the common mean, at half of the level each; heterogeneity by Cochran's Q = Σ ((b - m) /
    s)². Where events are few, squares have heavier tails than those of normal deviations, so both are
    referred to the χ² with the variance that calibrated outcomes give them.

    References
    ----------
    DerSimonian and Laird, *Meta-analysis in clinical trials* (1986). Hartung and Knapp, *A refined method for
    the meta-analysis of controlled clinical trials with binary outcome* (2001). Higgins, Thompson and
    Spiegelhalter, *A re-evaluation of random-effects meta-analysis* (2009).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = {}
    >>> for k in range(200):
    ...     p = rng.uniform(0.1, 0.9, 50)
    ...     groups[k] = Sketch.from_arrays(rng.random(50) < p - 0.05, p)
    >>> model = random_effects(groups)
    >>> model.p_value < 0.001, model.mean.low < 0.05 < model.mean.high
    (True, True)
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr, stdtrit

    keys = [key for key, one in sketches.items() if one.n > 0 and has_weight(one)]
    if len(keys) < 2:
        return None
    bias, variance, excess, unlikely = _moments(Stacked.of([sketches[key] for key in keys]))
    used = variance > 0.0
    k = int(used.sum())
    if k < 2 or unlikely < FEWEST_EVENTS:
        return None
    bias, variance, skewed = bias[used], variance[used], float(excess[used].sum())
    precision = 1.0 / variance
    common = float(precision @ bias / precision.sum())
    q = float((precision * (bias - common) ** 2).sum())
    of_mean = 2.0 * float(ndtr(-abs(common) * np.sqrt(precision.sum())))
    of_all = _chi_square_tail(float((precision * bias**2).sum()), k, skewed)

    def fitted(tau: float) -> tuple[float, float]:
        """The mean, and minus twice the restricted log-likelihood."""
        total = variance + tau**2
        mean = float((bias / total).sum() / (1.0 / total).sum())
        deviance = np.log(total).sum() + np.log((1.0 / total).sum())
        return mean, float(deviance + ((bias - mean) ** 2 / total).sum())

    most = float(np.ptp(bias)) + 1e-12
    best = minimize_scalar(lambda tau: fitted(tau)[1], bounds=(0.0, most), method="bounded").x
    tau = float(best) if fitted(float(best))[1] < fitted(0.0)[1] else 0.0
    mean, total = fitted(tau)[0], variance + tau**2
    scatter = float(((bias - mean) ** 2 / total).sum()) / (k - 1)
    error = float(np.sqrt(max(scatter, 1.0) / (1.0 / total).sum()))
    level = 0.5 + 0.5 * confidence
    reach, reach_of_new = float(stdtrit(k - 1, level)), float(stdtrit(max(k - 2, 1), level))
    shrinkage = variance / total
    values = bias + shrinkage * (mean - bias)
    errors = reach * np.sqrt(tau**2 * shrinkage + (shrinkage * error) ** 2)
    ends = np.stack([values, values - errors, values + errors], axis=1).tolist()
    new = reach_of_new * float(np.hypot(tau, error))
    return RandomEffects(
        mean=Effect(mean, mean - reach * error, mean + reach * error),
        tau=tau,
        new_group=Effect(mean, max(mean - new, -1.0), min(mean + new, 1.0)),
        p_value=min(2.0 * min(of_mean, of_all), 1.0),
        heterogeneity_p_value=_chi_square_tail(q, k - 1, skewed),
        i2=max(1.0 - (k - 1) / q, 0.0) if q > 0 else 0.0,
        groups=dict(
            zip(itertools.compress(keys, used), (Effect(*row) for row in ends), strict=True)
        ),
        confidence=confidence,
    )


def _moments(groups: Stacked) -> tuple[Floats, Floats, Floats, float]:
    """Mean of f - y in each group, its variance and excess kurtosis under calibration, and events.

    The last is the expected number of unlikely outcomes in all groups. Where rows were sampled by outcome and
    weighted for it, a group's weight is what its number of rows leads to expect: one more heavy row than
    usual would seem to make it both further off and less sure. The design effects are those of all groups.
    """
    sums = LabelSums.of(groups.entries)  # of one group after the other
    f, weights, mass, squared = sums.prediction, sums.weights, sums.mass, sums.squared.sum(axis=1)
    rows, chance = sums.counts.sum(axis=1), f * (1.0 - f)
    expected, variance = mass, null_moments(sums)[0]
    fourth = squared**2 / np.maximum(rows, 1) * chance * (1.0 - 6.0 * chance)  # of binomial numbers
    if sums.weighted and not sums.soft:
        omega = design_effects((sums.counts, weights, sums.squared), f)
        expected = expected_weights(weights, omega, f)
        jumps = omega * np.stack([f, 1.0 - f], axis=1)
        fourth = expected * chance * (jumps**3).sum(axis=1)  # of Poisson numbers of both outcomes

    def summed(values: Floats) -> Floats:
        return np.bincount(groups.code, values, len(groups)).astype(np.float64)

    total, spread = summed(expected), np.maximum(summed(variance), 1e-100)
    return (
        summed(mass * f - weights[:, 1]) / total,
        summed(variance) / total**2,
        summed(fourth) / spread**2,
        float(rows @ np.minimum(f, 1.0 - f)),
    )


def _chi_square_tail(statistic: float, degrees: int, excess: float) -> float:
    """P(sum of squares > statistic), by the χ² scaled to its mean and variance (Satterthwaite)."""
    from scipy.special import chdtrc

    scale = max(2.0 * degrees + excess, 1e-3) / (2.0 * degrees)
    return float(chdtrc(degrees / scale, max(statistic / scale, 0.0)))
