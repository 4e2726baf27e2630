"""Prior shift: the event rate has changed, and the likelihood ratio of every prediction has not."""

from __future__ import annotations

from typing import Any, ClassVar, Self, Unpack

import numpy as np

from calibrant._arguments import require_share
from calibrant.data.sketches import is_summed
from calibrant.errors import InputError
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
from calibrant.recalibration.logistic import expit, log_odds

__all__ = ["PriorShift"]


@register("prior-shift")
class PriorShift(Recalibrator):
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
    _unlabelled = False

    def __init__(self, from_rate: float | None = None, to_rate: float | None = None) -> None:
        self.from_rate = from_rate
        self.to_rate = to_rate

    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the shift; `y_true` may be left out, and is if both rates were given."""
        for name, rate in (("from_rate", self.from_rate), ("to_rate", self.to_rate)):
            if rate is not None:
                require_share(name, rate)
        unlabelled = y_true is None and not is_summed(y_prob)
        if unlabelled and self.from_rate is None:
            raise InputError(
                "`from_rate` is needed without outcomes: the rate for which predictions are calibrated.",
                argument="from_rate",
            )
        self._unlabelled = unlabelled
        if unlabelled:
            y_true = np.zeros(checked_probabilities(y_prob).size)
        self._set_state(self._learn(Training.of(y_prob, y_true, sample_weight, options)), 1)
        return self

    def _learn(self, training: Training) -> State:
        points = training.points
        weight = points.mass.sum(axis=1) / points.total
        old = float(weight @ points.p) if self.from_rate is None else self.from_rate
        if not 0.0 < old < 1.0:
            raise InputError(f"`y_prob` must not be {old:g} everywhere.", argument="y_prob")
        new = self.to_rate
        if new is None:
            labelled = float(np.clip(points.base_rate, 1e-9, 1.0 - 1e-9))
            new = _rate_by_em(points.p, weight, old) if self._unlabelled else labelled
        offset = float(log_odds(np.array([new]))[0] - log_odds(np.array([old]))[0])
        return {"offset": offset, "rate": float(new)}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(log_odds(p) + state["offset"])

    def _formula(self, state: State) -> str:
        return f"low - high + {state['offset']!r}"


def _rate_by_em(p: Floats, weight: Floats, old: float) -> float:
    """Maximum-likelihood event rate of unlabelled predictions that are calibrated at the rate `old`.

    The EM step replaces the rate by the mean of the shifted predictions; its fixed point is the root of the
    score, which falls with the rate.
    """
    from scipy.optimize import brentq

    event, other = p / old, (1.0 - p) / (1.0 - old)  # likelihoods of the two outcomes

    def score(rate: float) -> float:
        return float(weight @ ((event - other) / (rate * event + (1.0 - rate) * other)))

    low, high = 1e-9, 1.0 - 1e-9
    if score(low) <= 0.0:
        return low
    return high if score(high) >= 0.0 else float(brentq(score, low, high, xtol=1e-12))
