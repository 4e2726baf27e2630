"""Recalibration maps with few parameters: Platt scaling, temperature, beta, shifts, and no change."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from calibrant._arguments import require_number, require_share
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.sketches import is_summed
from calibrant.errors import InputError
from calibrant.inference.logistic import expit, fit_logistic, log_odds, logarithms
from calibrant.recalibration.learned_map import (
    FitOptions,
    Floats,
    Parts,
    Recalibrator,
    State,
    Training,
    checked_probabilities,
    register,
)

BELOW_ONE = float(np.nextafter(1.0, 0.0))
RATES = 1e-9, 1.0 - 1e-9
"""Event rates between which an unknown one is sought."""
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


class LogisticMap(Recalibrator):
    """Map whose log-odds are linear in functions of log p and log(1 - p), by maximum likelihood."""

    terms: ClassVar[tuple[str, ...]]
    """Features as Python text of `low` = log p and `high` = log(1 - p); one coefficient each, in order."""
    nonnegative: ClassVar[int] = 0
    """How many coefficients, from the first, may not be below 0."""

    def __init__(self, platt_targets: bool = True) -> None:
        self.platt_targets = platt_targets

    @property
    def n_parameters(self) -> int:  # type: ignore[override]
        """Number of coefficients."""
        return len(self.terms)

    @abstractmethod
    def _features(self, low: Floats, high: Floats) -> list[Floats]:
        """The terms at these logarithms."""

    def _learn(self, training: Training) -> State:
        features = np.stack(self._features(*logarithms(training.points.p)), axis=1)
        found = fit_logistic(
            features, training.points, self.nonnegative, platt_targets=self.platt_targets
        )
        return self._named(found)

    def _named(self, coefficients: list[float]) -> State:
        return dict(zip(self.parts, coefficients, strict=True))

    def _coefficients(self, state: State) -> list[float]:
        return [float(state[name]) for name in self.parts]

    def _apply(self, p: Floats, state: State) -> Floats:
        features = self._features(*logarithms(p))
        pairs = zip(self._coefficients(state), features, strict=True)
        return expit(np.sum([value * feature for value, feature in pairs], axis=0))

    def _formula(self, state: State) -> str:
        pairs = zip(self._coefficients(state), self.terms, strict=True)
        return " + ".join(f"{value!r} * {term}" for value, term in pairs)


@register("platt", "sigmoid")
class PlattRecalibrator(LogisticMap):
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

    parts: ClassVar[Parts] = {"slope": float, "intercept": float}
    terms = ("(low - high)", "1.0")

    def _features(self, low: Floats, high: Floats) -> list[Floats]:
        return [low - high, np.ones_like(low)]


@register("temperature")
class TemperatureRecalibrator(LogisticMap):
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

    parts: ClassVar[Parts] = {"temperature": float}
    terms = ("(low - high)",)
    nonnegative = 1
    temperature_: float

    def _features(self, low: Floats, high: Floats) -> list[Floats]:
        return [low - high]

    def _named(self, coefficients: list[float]) -> State:
        return {"temperature": 1.0 / max(coefficients[0], SMALLEST_SLOPE)}

    def _coefficients(self, state: State) -> list[float]:
        return [1.0 / state["temperature"]]


@register("beta")
class BetaRecalibrator(LogisticMap):
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

    parts: ClassVar[Parts] = {"a": float, "b": float, "c": float}
    terms = ("low", "-high", "1.0")
    nonnegative = 2

    def _features(self, low: Floats, high: Floats) -> list[Floats]:
        return [low, -high, np.ones_like(low)]


class ShiftMap(Recalibrator):
    """Map that adds one number to the log-odds, which rows without outcomes may tell."""

    n_parameters = 1

    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the shift; `y_true` may be left out where the parameters tell the event rate.

        Parameters
        ----------
        y_prob, y_true, sample_weight, **options
            As for every map.
        """
        labelled = y_true is not None or is_summed(y_prob)
        if self._learned_from_outcomes(labelled):
            return super().fit(y_prob, y_true, sample_weight, **options)
        if not labelled:
            y_true = np.zeros(checked_probabilities(y_prob).size)
        points = Training.of(y_prob, y_true, sample_weight, options).points
        self._set_state(self._shift(points, labelled), 1)
        return self

    def _learn(self, training: Training) -> State:
        return self._shift(training.points, True)

    @abstractmethod
    def _learned_from_outcomes(self, labelled: bool) -> bool:
        """True where `fit` needs rows of both outcomes; refuses parameters that are wrong."""

    @abstractmethod
    def _shift(self, points: Points, labelled: bool) -> State:
        """Fitted attributes; outcomes are unknown unless `labelled`."""

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(log_odds(p) + state["offset"])

    def _formula(self, state: State) -> str:
        return f"low - high + {state['offset']!r}"


@register("offset")
class OffsetRecalibrator(ShiftMap):
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

    parts: ClassVar[Parts] = {"offset": float}

    def __init__(self, target_mean: float | None = None) -> None:
        self.target_mean = target_mean

    def _learned_from_outcomes(self, labelled: bool) -> bool:
        if self.target_mean is not None:
            require_number("target_mean", self.target_mean, 0.0, BELOW_ONE)
        return self.target_mean is None

    def _shift(self, points: Points, labelled: bool) -> State:
        from scipy.optimize import brentq

        target = points.base_rate if self.target_mean is None else self.target_mean
        weight, x = over_outcomes(points.mass) / points.total, log_odds(points.p)

        def excess(offset: float) -> float:
            return float((weight * expit(x + offset)).sum()) - target

        return {"offset": float(brentq(excess, -800.0, 800.0, xtol=1e-13))}


@register("prior-shift")
class PriorShift(ShiftMap):
    """Prior shift: logit p' = logit p + logit(new rate) - logit(old rate).

    Parameters
    ----------
    from_rate : float, optional
        Event rate for which the predictions are calibrated; by default their mean in `fit`.
    to_rate : float, optional
        Event rate now. By default `fit` estimates it: from the outcomes if there are any, else by the EM
        algorithm from the predictions alone.

    Attributes
    ----------
    rate_ : float
        Event rate now, given or estimated.

    References
    ----------
    Saerens, Latinne and Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities*,
    2002.

    Examples
    --------
    >>> float(1 / PriorShift(from_rate=0.5, to_rate=0.1).fit([0.3]).transform([0.3])[0])
    22.0
    """

    parts: ClassVar[Parts] = {"offset": float, "rate": float}

    def __init__(self, from_rate: float | None = None, to_rate: float | None = None) -> None:
        self.from_rate = from_rate
        self.to_rate = to_rate

    def _learned_from_outcomes(self, labelled: bool) -> bool:
        for name, rate in (("from_rate", self.from_rate), ("to_rate", self.to_rate)):
            if rate is not None:
                require_share(name, rate)
        if not labelled and self.from_rate is None:
            raise InputError(
                "`from_rate` is needed without outcomes: the rate for which predictions are calibrated.",
                argument="from_rate",
            )
        return False

    def _shift(self, points: Points, labelled: bool) -> State:
        weight = over_outcomes(points.mass) / points.total
        old = float(weight @ points.p) if self.from_rate is None else self.from_rate
        if not 0.0 < old < 1.0:
            raise InputError(f"`y_prob` must not be {old:g} everywhere.", argument="y_prob")
        new = self.to_rate
        if new is None:
            known = float(np.clip(points.base_rate, *RATES))
            new = known if labelled else _rate_by_em(points.p, weight, old)
        offset = float(log_odds(np.array([new]))[0] - log_odds(np.array([old]))[0])
        return {"offset": offset, "rate": float(new)}


def _rate_by_em(p: Floats, weight: Floats, old: float) -> float:
    """Maximum-likelihood event rate of unlabelled predictions that are calibrated at the rate `old`.

    The EM step replaces the rate by the mean of the shifted predictions; its fixed point is the root of the
    score, which falls with the rate.
    """
    from scipy.optimize import brentq

    event, other = p / old, (1.0 - p) / (1.0 - old)  # likelihoods of the two outcomes

    def score(rate: float) -> float:
        return float(weight @ ((event - other) / (rate * event + (1.0 - rate) * other)))

    low, high = RATES
    if score(low) <= 0.0:
        return low
    return high if score(high) >= 0.0 else float(brentq(score, low, high, xtol=1e-12))
