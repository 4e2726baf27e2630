"""Bayesian model average of recalibration maps, with a prior on no change."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence, require_flag
from calibrant.data.cell_sums import over_outcomes
from calibrant.inference.logistic import (
    AN_END,
    LIMIT,
    Posterior,
    expit,
    log_odds,
    posterior,
    rows_per_weight,
)
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

FAMILIES = ("none", "ends", "offset", "temperature", "platt", "beta", "smooth")
"""Members of the average: "ends" moves predictions of exactly 0 and 1 alone."""
LINEAR = {"none": (), "offset": (0,), "temperature": (1,), "platt": (0, 1), "beta": (0, 1, 2)}
"""Which of intercept, slope and asymmetry a family adds to the log-odds."""
PRIOR_SDS = np.array([0.5, 0.35, 0.2])
"""Prior standard deviations of these coefficients."""
GP_BASES = ((12, 0.25, 0.4), (12, 0.25, 1.5), (32, 0.07, 0.6))
"""Gaussian processes: basis functions, length scale as a share of the rows, prior sd of the log-odds."""
PRIOR_ODDS_OF_NONE = 3.0
"""Prior odds of no change against any other family."""
PRIOR_AGAINST, PRIOR_WITH = 0.5, 1.0
"""Beta prior at predictions of exactly 0 and 1: outcomes against and with the prediction."""
CELLS_PER_UNIT, MAX_PLACES = 128, 1 << 12
"""More places than so many are gathered in cells of 1/128: no probability moves by more than 1/512."""
QUANTILES, STEPS = 33, 8
"""Quantiles of the rows, one to each 1/32 of them; and knots between two, and in a unit of log-odds."""


class _Rows(NamedTuple):
    """Log-odds in increasing order, how many rows have them, the share of events among these, and -1 or 1
    where the prediction is exactly 0 or 1, otherwise 0.
    """

    x: Floats
    n: Floats
    share: Floats
    end: Floats

    def where(self, chosen: NDArray[np.bool_]) -> _Rows:
        return _Rows(*(column[chosen] for column in self))


@register("adaptive")
class AdaptiveRecalibrator(Recalibrator):
    """Bayesian model average: predictions change as far as the rows give reason to, and no further.

    The map is an average of maps: no change, an offset, a temperature, Platt's, beta, and three smooth ones.
    Each starts close to no change, with a normal prior on what it adds to the log-odds, and counts by the
    probability that it gives to the outcomes, averaged over that prior (its evidence). Few rows therefore
    move predictions little, and many rows as far as they must. Where "no change" is more likely than all
    others together, nothing is changed. Nothing is drawn at random, and there is nothing to set.

    Parameters
    ----------
    monotone : bool
        Keep the map from falling, so that no two predictions change their order. On real predictions this
        costs nothing; pass False where the order itself may be wrong.

    Attributes
    ----------
    evidence : dict
        The probability of each family, given the rows.
    is_identity : bool
        Whether predictions stay as they are: "no change" is more probable than all others together.

    Notes
    -----
    Predictions of exactly 0 and 1 have no log-odds. Either they are meant, and count as 6e-8 away, or they
    are words for "very unlikely" and "very likely", whose rate is then learned by itself; the rows decide
    between the two. The evidence takes rows as independent: where several forecast one event, the map is
    surer than it should be.

    References
    ----------
    MacKay, *The evidence framework applied to classification networks*, 1992: Laplace's approximation of the
    evidence, and predictions that average over the posterior. Hoeting, Madigan, Raftery and Volinsky,
    *Bayesian model averaging*, 1999. Kull, Silva Filho and Flach, *Beta calibration*, 2017, for the features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> AdaptiveRecalibrator().fit(p, rng.random(2000) < p).is_identity
    True
    >>> repaired = AdaptiveRecalibrator().fit(p, rng.random(2000) < p**2).transform([0.2, 0.5, 0.8])
    >>> repaired.round(1)
    array([0. , 0.3, 0.6])
    """

    parts: ClassVar[Parts] = {
        **dict.fromkeys(("x", "values", "spread"), np.ndarray),
        **dict.fromkeys(("low", "high", "low_spread", "high_spread", *FAMILIES), float),
    }

    def __init__(self, monotone: bool = True) -> None:
        self.monotone = monotone

    @property
    def evidence(self) -> dict[str, float]:
        return {family: float(self.state[family]) for family in FAMILIES}

    @property
    def is_identity(self) -> bool:
        return float(self.state["none"]) > 0.5

    def _learn(self, training: Training) -> State:
        from scipy.special import softmax

        require_flag("monotone", self.monotone)
        rows = _rows_by_log_odds(training)
        everywhere = ModelAverage(rows)
        averages = [everywhere]
        low = EndpointModel(rows.where(rows.end < 0), PRIOR_AGAINST, PRIOR_WITH)
        high = EndpointModel(rows.where(rows.end > 0), PRIOR_WITH, PRIOR_AGAINST)
        if rows.end.any():
            averages.append(ModelAverage(rows.where(rows.end == 0), low.evidence + high.evidence))
        shares = list(softmax([average.evidence for average in averages]))
        knots = everywhere.knots
        states = [average.at(knots, share) for average, share in zip(averages, shares, strict=True)]
        chance, spread = _mixture(states)
        # An end that no row was at is no farther out than so many rows could tell.
        unseen = np.log(2.0 * rows.n.sum() + 1.0)
        ends = [
            _end_value(averages, shares, end, sign * (LIMIT if end.n else unseen))
            for end, sign in ((low, -1.0), (high, 1.0))
        ]
        chances = np.array([ends[0][0], *chance, ends[1][0]])
        if self.monotone:
            chances = pooled(chances, _weights_of(knots, rows))
        return {
            "x": knots,
            "values": log_odds(chances[1:-1]),
            "spread": spread,
            "low": float(chances[0]),
            "high": float(chances[-1]),
            "low_spread": ends[0][1],
            "high_spread": ends[1][1],
            **_by_family(shares),
        }

    def _apply(self, p: Floats, state: State) -> Floats:
        if self.is_identity:
            return np.array(p)
        return expit(self._mapped(p, state))

    def interval(self, y_prob: Any, *, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
        """Lower and upper end of what the event's chance may be, given the prediction and the rows.

        From the spread of the log-odds over all families, taken as normal. It is around the average of
        the families even where predictions are left alone.
        """
        from scipy.special import ndtri

        require_confidence(confidence)
        state = self.state
        p = checked_probabilities(y_prob)
        spread = np.interp(log_odds(p), state["x"], state["spread"])
        spread[p <= AN_END] = state["low_spread"]
        spread[p >= 1.0 - AN_END] = state["high_spread"]
        centre, reach = self._mapped(p, state), ndtri(0.5 + 0.5 * confidence) * spread
        return expit(centre - reach), expit(centre + reach)

    def _breaks(self, state: State) -> tuple[Floats, Floats]:
        return expit(state["x"]), np.array([AN_END, 1.0 - AN_END])

    def _mapped(self, p: Floats, state: State) -> Floats:
        """The log-odds of the average."""
        mapped = np.interp(log_odds(p), state["x"], state["values"])
        ends = log_odds(np.array([state["low"], state["high"]]))
        mapped[p <= AN_END], mapped[p >= 1.0 - AN_END] = ends
        return mapped


class ModelAverage:
    """Every family, learned from some rows; `known` is the evidence of what was learned apart."""

    def __init__(self, rows: _Rows, known: float = 0.0) -> None:
        self._where, self._rank = _quantiles(rows)
        linear = _linear_features(rows.x)
        self.members: list[tuple[tuple[int, ...], tuple[int, float, float] | None, Posterior]] = []
        for columns in LINEAR.values():
            fitted = posterior(
                linear[:, columns], rows.x, rows.n, rows.share, PRIOR_SDS[list(columns)]
            )
            self.members.append((columns, None, fitted))
        for basis in GP_BASES:
            features = np.hstack([linear, self._gaussian_process(rows.x, basis)])
            spread = np.concatenate([PRIOR_SDS, np.full(basis[0], basis[2])])
            fitted = posterior(features, rows.x, rows.n, rows.share, spread)
            self.members.append(((0, 1, 2), basis, fitted))
        self.evidence = known + np.array([member[2].evidence for member in self.members])
        self.evidence[0] += np.log(PRIOR_ODDS_OF_NONE)

    @property
    def knots(self) -> Floats:
        """Log-odds between which the map is as good as straight."""
        steps = np.linspace(0.0, 1.0, STEPS, endpoint=False)
        between = (self._where[:-1, None] + np.diff(self._where)[:, None] * steps).ravel()
        even = np.linspace(-LIMIT, LIMIT, int(2 * LIMIT * STEPS))
        return np.unique(np.concatenate([even, between, self._where]))

    def at(self, x: Floats, share: Floats) -> list[tuple[float, Floats, Floats]]:
        """Weight, mean and variance of the log-odds of each family at these places."""
        linear = _linear_features(x)
        states = []
        for (columns, basis, fitted), weight in zip(self.members, share, strict=True):
            features = linear[:, columns]
            if basis is not None:
                features = np.hstack([features, self._gaussian_process(x, basis)])
            states.append((float(weight), *fitted.log_odds(x, features)))
        return states

    def _gaussian_process(self, x: Floats, basis: tuple[int, float, float]) -> Floats:
        """Features whose sum with independent coefficients is a Gaussian process over the rank of x."""
        places, width, _ = basis
        centres = np.linspace(0.0, 1.0, places)

        def alike(u: Floats) -> Floats:
            return np.asarray(np.exp(-0.5 * ((u[:, None] - centres) / width) ** 2))

        root = np.linalg.cholesky(alike(centres) + 1e-6 * np.eye(places))
        return np.linalg.solve(root, alike(np.interp(x, self._where, self._rank)).T).T


class EndpointModel:
    """Rate of events among predictions of exactly 0, or exactly 1, with a beta prior, and its evidence."""

    def __init__(self, rows: _Rows, events: float, others: float) -> None:
        from scipy.special import betaln, polygamma

        self.n, seen = float(rows.n.sum()), float(rows.n @ rows.share)
        after = np.array([seen + events, self.n - seen + others])
        (mean, less), (variance, more) = polygamma(0, after), polygamma(1, after)
        self.rate = float(after[0]) / float(after.sum())
        self.log_odds = np.array([mean - less]), np.array([variance + more])
        self.evidence = float(betaln(*after) - betaln(events, others))


def _rows_by_log_odds(training: Training) -> _Rows:
    """The rows by log-odds; many places are gathered in cells of 1/128."""
    points = training.points
    x, mass = log_odds(points.p), points.mass * rows_per_weight(points)
    end = np.where(points.p >= 1.0 - AN_END, 1.0, np.where(points.p <= AN_END, -1.0, 0.0))
    if x.size > MAX_PLACES:
        cell = np.rint(x * CELLS_PER_UNIT) + end
        _, first, place = np.unique(cell, return_index=True, return_inverse=True)
        rows = over_outcomes(mass)
        x, end = np.bincount(place, rows * x) / np.bincount(place, rows), end[first]
        mass = np.stack([np.bincount(place, column) for column in mass.T], axis=1)
    n = over_outcomes(mass)
    return _Rows(x, n, mass[:, 1] / n, end)


def _linear_features(x: Floats) -> Floats:
    """Intercept, slope, and the even part of beta calibration, which is 0 at ½."""
    even = -np.logaddexp(0.0, -x) - np.logaddexp(0.0, x) + 2.0 * np.log(2.0)
    return np.stack([np.ones_like(x), x, even], axis=1)


def _quantiles(rows: _Rows) -> tuple[Floats, Floats]:
    """Log-odds and the share of rows below them: a coordinate in which rows are spread evenly."""
    if rows.x.size < 2:
        return np.array([-LIMIT, LIMIT]), np.array([0.0, 1.0])
    rank = (np.cumsum(rows.n) - 0.5 * rows.n) / rows.n.sum()
    if rows.x.size <= QUANTILES:
        return rows.x, rank
    levels = np.linspace(0.0, 1.0, QUANTILES)
    where, first = np.unique(np.interp(levels, rank, rows.x), return_index=True)
    return where, levels[first]


def _mixture(averages: list[list[tuple[float, Floats, Floats]]]) -> tuple[Floats, Floats]:
    """Mean probability, by MacKay's approximation, and the standard deviation of the log-odds."""
    states = [state for average in averages for state in average]
    chance = np.sum(
        [w * expit(m / np.sqrt(1.0 + np.pi / 8.0 * variance)) for w, m, variance in states], axis=0
    )
    centre = np.sum([w * mean for w, mean, _ in states], axis=0)
    squares = [w * (variance + (mean - centre) ** 2) for w, mean, variance in states]
    return chance, np.sqrt(np.sum(squares, axis=0))


def _end_value(
    averages: list[ModelAverage], shares: list[Floats], end: EndpointModel, x: float
) -> tuple[float, float]:
    """The chance of the event at a prediction of exactly 0 or 1, and the spread of its log-odds."""
    at = np.array([x])
    chance, states = 0.0, []
    for k, (average, share) in enumerate(zip(averages, shares, strict=True)):
        if k and end.n:
            chance += float(share.sum()) * end.rate
            states.append([(float(share.sum()), *end.log_odds)])
        else:
            states.append(average.at(at, share))
            chance += float(_mixture(states[-1:])[0][0])
    return chance, float(_mixture(states)[1][0])


def _weights_of(knots: Floats, rows: _Rows) -> Floats:
    """Rows at 0, near each knot and at 1, and a little everywhere: what pooling averages with."""
    place = 1 + np.clip(np.searchsorted(knots, rows.x), 0, knots.size - 1)
    place[rows.end < 0], place[rows.end > 0] = 0, knots.size + 1
    near = np.bincount(place, rows.n, knots.size + 2)
    return np.asarray(near + 1e-6 * rows.n.sum() / knots.size, dtype=np.float64)


def _by_family(shares: list[Floats]) -> dict[str, float]:
    names = [*LINEAR, *["smooth"] * len(GP_BASES)]
    evidence = dict.fromkeys(FAMILIES, 0.0)
    for k, share in enumerate(shares):
        for name, value in zip(names, share, strict=True):
            evidence["ends" if k and name == "none" else name] += float(value)
    return evidence
