"""Recalibration maps with few parameters: Platt scaling, temperature, beta, offset, and no change."""

from __future__ import annotations

from typing import Any, ClassVar, Self, Unpack

import numpy as np

from calibrant._arguments import require_number
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketches import is_summed
from calibrant.recalibration.learned_map import (
    POSITIVE,
    FitOptions,
    Floats,
    Part,
    Parts,
    Recalibrator,
    State,
    Training,
    checked_probabilities,
    register,
)
from calibrant.recalibration.logistic import expit, fit_logistic, log_odds, logarithms

__all__ = [
    "BetaRecalibrator",
    "IdentityRecalibrator",
    "OffsetRecalibrator",
    "PlattRecalibrator",
    "TemperatureRecalibrator",
]

BELOW_ONE = float(np.nextafter(1.0, 0.0))
SMALLEST_SLOPE = 1e-6
"""Slope of a temperature where the outcomes run against the predictions: all become ½."""


@register("none")
class IdentityRecalibrator(Recalibrator):
    """Predictions as they are: the map that others must beat.

    Examples
    --------
    >>> IdentityRecalibrator().fit([0.2, 0.8], [0, 1]).transform([0.3])
    array([0.3])
    """

    def _learn(self, training: Training) -> State:
        return {}

    def _apply(self, p: Floats, state: State) -> Floats:
        return np.array(p)


@register("platt", "sigmoid")
class PlattRecalibrator(Recalibrator):
    """Platt scaling: logit p' = slope · logit p + intercept, by maximum likelihood with Platt's targets.

    Parameters
    ----------
    platt_targets : bool
        Learn with Platt's targets in place of 0 and 1. With False, plain maximum likelihood.

    Notes
    -----
    The targets (n₁ + 1)/(n₁ + 2) and 1/(n₀ + 2) in place of 1 and 0 keep the slope finite where the
    outcomes are separated.

    References
    ----------
    Platt, *Probabilistic outputs for support vector machines*, 1999.

    Examples
    --------
    >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> platt.transform([0.1, 0.9]).round(3)
    array([0.303, 0.697])
    """

    parts: ClassVar[Parts] = {"slope": Part(), "intercept": Part()}
    n_parameters = 2

    def __init__(self, platt_targets: bool = True) -> None:
        self.platt_targets = platt_targets

    def _learn(self, training: Training) -> State:
        x = log_odds(training.points.p)
        features = np.stack([x, np.ones_like(x)], axis=1)
        slope, intercept = fit_logistic(features, training.points, platt_targets=self.platt_targets)
        return {"slope": slope, "intercept": intercept}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(state["slope"] * log_odds(p) + state["intercept"])

    def _formula(self, state: State) -> str:
        return f"{state['slope']!r} * (low - high) + {state['intercept']!r}"


@register("temperature")
class TemperatureRecalibrator(Recalibrator):
    """Temperature scaling: logit p' = logit p / temperature, learned with Platt's targets; ½ stays.

    Parameters
    ----------
    platt_targets : bool
        Learn with Platt's targets in place of 0 and 1. With False, plain maximum likelihood.

    Attributes
    ----------
    temperature_ : float
        Above 1 where the model was over-confident.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, *On calibration of modern neural networks*, 2017.

    Examples
    --------
    >>> cooler = TemperatureRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> cooler.temperature_ > 1
    True
    >>> float(cooler.transform([0.5])[0])
    0.5
    """

    parts: ClassVar[Parts] = {"temperature": POSITIVE}
    n_parameters = 1
    temperature_: float

    def __init__(self, platt_targets: bool = True) -> None:
        self.platt_targets = platt_targets

    def _learn(self, training: Training) -> State:
        x = log_odds(training.points.p)[:, None]
        (slope,) = fit_logistic(x, training.points, 1, platt_targets=self.platt_targets)
        return {"temperature": 1.0 / max(slope, SMALLEST_SLOPE)}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(log_odds(p) / state["temperature"])

    def _formula(self, state: State) -> str:
        return f"(low - high) / {state['temperature']!r}"


@register("beta")
class BetaRecalibrator(Recalibrator):
    """Beta calibration: logit p' = a · log p - b · log(1 - p) + c with a, b ≥ 0, a slope for each end.

    Learned with Platt's targets.

    Parameters
    ----------
    platt_targets : bool
        Learn with Platt's targets in place of 0 and 1. With False, plain maximum likelihood.

    References
    ----------
    Kull, Silva Filho and Flach, *Beta calibration*, 2017.

    Examples
    --------
    >>> beta = BetaRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> sorted(beta.state)
    ['a', 'b', 'c']
    """

    parts: ClassVar[Parts] = {"a": Part(low=0.0), "b": Part(low=0.0), "c": Part()}
    n_parameters = 3

    def __init__(self, platt_targets: bool = True) -> None:
        self.platt_targets = platt_targets

    def _learn(self, training: Training) -> State:
        low, high = logarithms(training.points.p)
        features = np.stack([low, -high, np.ones_like(low)], axis=1)
        a, b, c = fit_logistic(features, training.points, 2, platt_targets=self.platt_targets)
        return {"a": a, "b": b, "c": c}

    def _apply(self, p: Floats, state: State) -> Floats:
        low, high = logarithms(p)
        return expit(state["a"] * low - state["b"] * high + state["c"])

    def _formula(self, state: State) -> str:
        return f"{state['a']!r} * low - {state['b']!r} * high + {state['c']!r}"


@register("offset")
class OffsetRecalibrator(Recalibrator):
    """Calibration in the large: logit p' = logit p + offset, so that the mean prediction is right.

    Parameters
    ----------
    target_mean : float, optional
        The event rate to reach, known from elsewhere; `fit` then needs no outcomes. By default the
        rate of events in the rows.

    Examples
    --------
    >>> moved = OffsetRecalibrator(target_mean=0.1).fit([0.2, 0.4, 0.6]).transform([0.2, 0.4, 0.6])
    >>> round(float(moved.mean()), 9)
    0.1
    """

    parts: ClassVar[Parts] = {"offset": Part()}
    n_parameters = 1

    def __init__(self, target_mean: float | None = None) -> None:
        self.target_mean = target_mean

    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the offset; without `y_true` where `target_mean` was given."""
        if self.target_mean is None:
            return super().fit(y_prob, y_true, sample_weight, **options)
        require_number("target_mean", self.target_mean, 0.0, BELOW_ONE)
        if y_true is None and not is_summed(y_prob):
            y_true = np.zeros(checked_probabilities(y_prob).size)
        self._set_state(self._learn(Training.of(y_prob, y_true, sample_weight, options)), 1)
        return self

    def _learn(self, training: Training) -> State:
        from scipy.optimize import brentq

        points = training.points
        target = points.base_rate if self.target_mean is None else self.target_mean
        weight, x = over_outcomes(points.mass) / points.total, log_odds(points.p)

        def excess(offset: float) -> float:
            return float((weight * expit(x + offset)).sum()) - target

        return {"offset": float(brentq(excess, -800.0, 800.0, xtol=1e-13))}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(log_odds(p) + state["offset"])

    def _formula(self, state: State) -> str:
        return f"low - high + {state['offset']!r}"
