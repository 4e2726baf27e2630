"""Isotonic regression as a map, and Venn–Abers: isotonic regression with the new row in it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from calibrant._arguments import generator, require_count, require_seed
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.logistic import rows_per_weight
from calibrant.measures._chains import pooled
from calibrant.recalibration.learned_map import (
    Floats,
    Parts,
    Recalibrator,
    State,
    Training,
    checked_probabilities,
    register,
)

BEYOND = 2.0
"""Stands behind the last prediction, where the last values go on."""


@register("isotonic")
class IsotonicRecalibrator(Recalibrator):
    """Isotonic regression: the increasing map that fits the outcomes best; linear between its steps.

    Notes
    -----
    It predicts exactly 0 or 1 where the lowest or highest rows had one outcome: the log loss of an unexpected
    outcome there is infinite.

    Examples
    --------
    >>> steps = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> steps.transform([0.1, 0.25, 0.4])
    array([0. , 0.5, 1. ])
    """

    parts: ClassVar[Parts] = {"p": np.ndarray, "values": np.ndarray}

    def _learn(self, training: Training) -> State:
        points = training.points
        weight = over_outcomes(points.mass)
        fitted = pooled(points.mass[:, 1] / weight, weight)
        rises = np.flatnonzero(np.diff(fitted))
        ends = np.unique([0, *rises, *(rises + 1), fitted.size - 1])
        return {"p": np.array(points.p[ends]), "values": fitted[ends]}

    def _apply(self, p: Floats, state: State) -> Floats:
        return np.interp(p, state["p"], state["values"])

    def _breaks(self, state: State) -> tuple[Floats, Floats]:
        return state["p"], np.empty(0)


class _Interval(Recalibrator):
    """Map with two probabilities for each prediction."""

    def interval(self, y_prob: Any) -> tuple[Floats, Floats]:
        """Probabilities of the event if the row turns out without it (lower), and with it (upper)."""
        return self._both(checked_probabilities(y_prob), self.state)

    @abstractmethod
    def _both(self, p: Floats, state: State) -> tuple[Floats, Floats]:
        """Lower and upper probability of checked predictions."""

    def _apply(self, p: Floats, state: State) -> Floats:
        low, high = self._both(p, state)
        return np.asarray(high / (1.0 - low + high))

    def _breaks(self, state: State) -> tuple[Floats, Floats]:
        own = [state["p"]] if "p" in state else [one.state["p"] for one in state["maps"]]
        return np.concatenate(own), np.concatenate(own)  # a third value at the jump


@register("venn-abers")
class VennAbersRecalibrator(_Interval):
    """Two probabilities for each prediction, one of which is calibrated, and one number between them.

    Isotonic regression is fitted to the rows and the new prediction, once with outcome 0 and once with
    outcome 1. For exchangeable rows, the value for the outcome that comes true is calibrated, whatever the
    number of rows. `interval` gives both; `transform` the number between them that loses least in the worst
    case, p₁ / (1 - p₀ + p₁). It is never 0 or 1, unlike isotonic regression.

    References
    ----------
    Vovk, Petej and Fedorova, *Large-scale probabilistic predictors with and without guarantees of
    validity*, 2015: the inductive predictor.

    Examples
    --------
    >>> venn = VennAbersRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> venn.transform([0.4, 0.95]).round(3)
    array([0.5  , 0.667])
    >>> low, high = venn.interval([0.4, 0.95])
    >>> low.round(2), high.round(2)
    (array([0.33, 0.5 ]), array([0.67, 1.  ]))
    """

    parts: ClassVar[Parts] = {"p": np.ndarray, "low": np.ndarray, "high": np.ndarray}

    def _learn(self, training: Training) -> State:
        """Predictions where either probability changes, and both from there on."""
        points = training.points
        mass = points.mass * rows_per_weight(points)
        rows = np.concatenate([[0.0], np.cumsum(over_outcomes(mass))])
        events = np.concatenate([[0.0], np.cumsum(mass[:, 1])])
        high = _with_an_event(rows, events)
        others = rows - events
        low = 1.0 - _with_an_event(rows[-1] - rows[::-1], others[-1] - others[::-1])[::-1]
        changes = np.flatnonzero((np.diff(low) != 0.0) | (np.diff(high) != 0.0))
        kept = np.concatenate([[0], changes + 1])
        return {"p": np.append(points.p[changes], BEYOND), "low": low[kept], "high": high[kept]}

    def _both(self, p: Floats, state: State) -> tuple[Floats, Floats]:
        places = state["p"]
        low = state["low"][np.searchsorted(places, p, "right")]
        return low, state["high"][np.searchsorted(places, p, "left")]


@register("cross venn-abers", cross_venn_abers={})
class CrossVennAbersRecalibrator(_Interval):
    """Venn–Abers maps of parts of the rows, joined by geometric means.

    Parameters
    ----------
    cv : int
        Number of parts.
    random_state : int
        Seed of the random parts.

    References
    ----------
    Vovk, Petej and Fedorova, 2015: the cross predictor, which loses least in the worst case.

    Examples
    --------
    >>> p = np.linspace(0.05, 0.95, 60)
    >>> cross = CrossVennAbersRecalibrator(cv=3).fit(p, p > 0.5)
    >>> low, high = cross.interval([0.9])
    >>> bool(low[0] <= cross.transform([0.9])[0] <= high[0])
    True
    """

    parts: ClassVar[Parts] = {"maps": list}

    def __init__(self, cv: int = 5, random_state: int = 0) -> None:
        self.cv = cv
        self.random_state = random_state

    def _learn(self, training: Training) -> State:
        n, rows = training.points.n, training.rows
        require_count("cv", self.cv, least=2, most=n)
        if isinstance(rows, Sketch):
            raise InputError(
                "`y_prob` must hold rows to be split into parts, and a Sketch holds none.",
                argument="y_prob",
                hint="Pass arrays, or use VennAbersRecalibrator.",
            )
        part = generator(require_seed(self.random_state, "random_state")).permutation(n) % self.cv
        maps = []
        for k in range(self.cv):
            one = VennAbersRecalibrator()
            one._set_state(one._learn(Training(rows.select(part == k))), 1)
            maps.append(one)
        return {"maps": maps}

    def _both(self, p: Floats, state: State) -> tuple[Floats, Floats]:
        both = [one._both(p, one.state) for one in state["maps"]]
        low = 1.0 - _geometric_mean([1.0 - low for low, _ in both])
        return low, _geometric_mean([high for _, high in both])


def _geometric_mean(values: list[Floats]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.mean(np.log(values), axis=0)))


def _with_an_event(rows: Floats, events: Floats) -> Floats:
    """Isotonic fit of one more row with the event, for each number of places below it.

    The fit is the slope of the lower tangent that joins the points (rows, events) up to the new row and
    those behind it, moved by (1, 1). The tangent's left end changes where a point falls below it, and its
    right end then moves to the right along the convex hull of what is left: each is passed once.
    """
    x, y = rows.tolist(), events.tolist()
    following = _hull_from_each(x, y)
    last = len(x) - 1
    slopes = np.empty(len(x))
    left = right = 0
    slope = 0.0
    for j in range(len(x)):
        if j == 0 or y[j] < y[left] + (x[j] - x[left]) * slope:
            left, right = j, max(right, j)
            slope = (y[right] + 1.0 - y[left]) / (x[right] + 1.0 - x[left])
            while right < last:
                ahead = following[right]
                steeper = (y[ahead] + 1.0 - y[left]) / (x[ahead] + 1.0 - x[left])
                if steeper > slope:
                    break
                right, slope = ahead, steeper
        slopes[j] = slope
    return slopes


def _hull_from_each(x: list[float], y: list[float]) -> list[int]:
    """Next corner of the lower convex hull of the points from each one on."""
    following = list(range(len(x)))
    corners = [len(x) - 1]
    for i in range(len(x) - 2, -1, -1):
        while len(corners) > 1:
            a, b = corners[-1], corners[-2]
            if (y[a] - y[i]) * (x[b] - x[i]) < (y[b] - y[i]) * (x[a] - x[i]):
                break
            corners.pop()
        following[i] = corners[-1]
        corners.append(i)
    return following
