"""Logistic recalibration, log-odds(y) = a + b · log-odds(p): its maximum and its profile likelihood.

Predictions of exactly 0 and 1 have infinite log-odds. One that agrees with its outcome adds nothing to
the likelihood of any positive slope; one that disagrees makes it 0. Both are treated as what they are:
the limit of log-odds that grow without end. None is clipped, none is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, log, log1p, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Fit",
    "Likelihood",
    "LogOdds",
    "offset_intercept",
    "one_sided_end",
    "profile_ends",
    "recalibration",
    "separated_end",
]

Floats = NDArray[np.float64]

MOST_STEPS = 200
NEARLY_THERE = 1e-12
"""A likelihood to be gained after which one more of Newton's steps leaves nothing but rounding."""
MANY = 1 << 15
CELL = 0.005


class Likelihood(NamedTuple):
    """Log-likelihood, its gradient in (a, b), and minus its second derivatives aa, ab, bb."""

    value: float
    gradient: tuple[float, float]
    information: tuple[float, float, float]

    def step(self) -> tuple[float, float]:
        """Newton's step."""
        (ga, gb), (aa, ab, bb) = self.gradient, self.information
        determinant = aa * bb - ab * ab
        if not determinant > 0.0:
            return nan, nan
        return (bb * ga - ab * gb) / determinant, (aa * gb - ab * ga) / determinant


class Fit(NamedTuple):
    """A maximum: intercept, slope, and the likelihood there."""

    intercept: float
    slope: float
    likelihood: Likelihood

    @property
    def standard_errors(self) -> tuple[float, float]:
        """Of intercept and slope, from the information."""
        aa, ab, bb = self.likelihood.information
        determinant = aa * bb - ab * ab
        return sqrt(bb / determinant), sqrt(aa / determinant)


@dataclass(frozen=True, eq=False)
class LogOdds:
    """Log-odds of predictions, with the weight of both outcomes at each.

    Attributes
    ----------
    z : float64[m]
        Finite log-odds.
    events, weight : float64[m]
        Weight of the events and of all rows.
    wrongly_never, wrongly_always : float
        Weight of events that were given probability 0, and of their absence where it was 1.
    certain : float
        Weight of rows whose infinite log-odds agree with the outcome.
    """

    z: Floats
    events: Floats
    weight: Floats
    wrongly_never: float = 0.0
    wrongly_always: float = 0.0
    certain: float = 0.0

    @classmethod
    def of(cls, z: Floats, negative: Floats, positive: Floats) -> LogOdds:
        """Sort out the infinite ones."""
        finite = np.isfinite(z)
        if finite.all():
            return cls(z, positive, negative + positive)
        never, always = z == -inf, z == inf
        return cls(
            z[finite],
            positive[finite],
            (negative + positive)[finite],
            float(positive[never].sum()),
            float(negative[always].sum()),
            float(negative[never].sum() + positive[always].sum()),
        )

    def condensed(self) -> LogOdds:
        """The same likelihood from fewer points, to about 1e-12: for many rows, in any order of z.

        The rows of each outcome in a cell of width h are replaced by the two points and weights that
        have their first four moments (Gauss). What that changes of a sum is at most h⁴/384 times the
        fourth derivative for each row: 2e-12 where it is 1.
        """
        if self.z.size <= MANY:
            return self
        order = (
            slice(None) if np.all(self.z[1:] >= self.z[:-1]) else np.argsort(self.z, kind="stable")
        )
        z = self.z[order]
        cell = np.floor((z - z[0]) * (1.0 / CELL))
        first = np.concatenate([[0], np.flatnonzero(cell[1:] != cell[:-1]) + 1])
        middle = z[0] + CELL * (cell[first] + 0.5)
        offset = z - np.repeat(middle, np.diff(first, append=z.size))
        positive = self.events[order]
        parts = [
            _two_points(mass, offset, first, middle)
            for mass in (self.weight[order] - positive, positive)
        ]
        points, weights = (np.concatenate([part[k] for part in parts]) for k in range(2))
        events = np.concatenate([np.zeros_like(parts[0][1]), parts[1][1]])
        return replace(self, z=points, events=events, weight=weights)

    def at(self, a: float, b: float) -> Likelihood:
        """The log-likelihood of intercept a and slope b over the finite log-odds."""
        eta = b * self.z
        eta += a
        tail = np.exp(-np.abs(eta))
        chance = 1.0 / (1.0 + tail)
        spread = tail * chance * chance
        value = float(self.events @ eta) - float(
            self.weight @ (np.log1p(tail) + np.maximum(eta, 0.0))
        )
        np.multiply(tail, chance, out=chance, where=eta < 0.0)
        residual = self.events - self.weight * chance
        spread *= self.weight
        first = spread * self.z
        return Likelihood(
            value,
            (float(residual.sum()), float(residual @ self.z)),
            (float(spread.sum()), float(first.sum()), float(first @ self.z)),
        )

    @property
    def wrong(self) -> float:
        """Weight of the rows that a certain prediction got wrong."""
        return self.wrongly_never + self.wrongly_always

    def separation(self) -> float:
        """The infinite slope that separates the outcomes: inf, -inf, or nan where none does.

        One class only, or one prediction only, is no separation; the caller must know better.
        """
        without, having = self.z[self.weight > self.events], self.z[self.events > 0.0]
        if having.min() >= without.max() and having.max() > without.min():
            return inf
        if having.max() <= without.min() and having.min() < without.max():
            return -inf
        return nan

    def separated_value(self, slope: float) -> float:
        """The log-likelihood that an ever steeper line approaches: that of the rows on the border."""
        having, without = self.z[self.events > 0.0], self.z[self.weight > self.events]
        border = having.min() if slope > 0 else having.max()
        if border != (without.max() if slope > 0 else without.min()):
            return 0.0
        there = self.z == border
        events, weight = float(self.events[there].sum()), float(self.weight[there].sum())
        share = events / weight
        return events * log(share) + (weight - events) * log1p(-share)


def _two_points(
    mass: Floats, offset: Floats, first: NDArray[np.int64], middle: Floats
) -> tuple[Floats, Floats]:
    """Two points and weights for each cell that has mass, with the first four moments of its rows."""
    moments = [np.add.reduceat(mass, first)]
    for _ in range(3):
        mass = mass * offset
        moments.append(np.add.reduceat(mass, first))
    used = moments[0] > 0.0
    weight, one, two, three = (moment[used] for moment in moments)
    mean, square, cube = one / weight, two / weight, three / weight
    variance = np.maximum(square - mean * mean, 0.0)
    third = cube - 3.0 * mean * square + 2.0 * mean**3
    spread = variance > 1e-9 * CELL**2  # below, skewness is rounding, and one point will do
    skew = np.divide(third, variance, out=np.zeros_like(third), where=spread)
    reach = np.sqrt(skew * skew + 4.0 * variance)
    right, left = 0.5 * (skew + reach), 0.5 * (skew - reach)
    share = np.divide(-left, reach, out=np.ones_like(reach), where=spread)
    points = middle[used] + mean + np.stack([right * spread, left * spread])
    return points.ravel(), np.stack([weight * share, weight * (1.0 - share)]).ravel()


def offset_intercept(data: LogOdds) -> Fit:
    """The intercept with the slope held at 1: the log-odds as an offset.

    Where certain predictions failed, it is the limit in which their log-odds grow: the events that they
    missed must come from the others.
    """
    surplus = data.wrongly_never - data.wrongly_always
    target = float(data.events.sum()) + surplus
    if target <= 0.0 or target >= float(data.weight.sum()):
        return Fit(inf if target > 0.0 else -inf, 1.0, data.at(0.0, 1.0))
    bracket = [-inf, inf]
    a = 0.0
    for _ in range(MOST_STEPS):
        here = data.at(a, 1.0)
        gradient, information = here.gradient[0] + surplus, here.information[0]
        bracket[0 if gradient > 0.0 else 1] = a
        if gradient == 0.0:
            break
        step = gradient / information if information > 0.0 else inf
        following = a + step if abs(step) < 10.0 else a + np.copysign(10.0, gradient)
        if not bracket[0] < following < bracket[1]:
            middle = 0.5 * (bracket[0] + bracket[1])
            following = middle if isfinite(middle) else a  # a step that rounding swallows
        a = following
        if gradient * step < NEARLY_THERE:
            break
    return Fit(a, 1.0, data.at(a, 1.0))


def recalibration(data: LogOdds) -> Fit:
    """Intercept and slope of greatest likelihood, which must exist: no separation, no certain error.

    Newton's method with steps cut where the likelihood would fall: from (0, 1) it diverges on sharp
    models. The log-odds are centred and scaled, so that steps are of order 1.
    """
    total = float(data.weight.sum())
    centre = float(data.weight @ data.z) / total
    scale = sqrt(float(data.weight @ (data.z - centre) ** 2) / total)
    units = LogOdds((data.z - centre) / scale, data.events, data.weight)
    a, b = 0.0, 0.0
    here = units.at(a, b)
    for _ in range(MOST_STEPS):
        da, db = here.step()
        if not isfinite(da + db):
            break
        gain = da * here.gradient[0] + db * here.gradient[1]
        if gain < NEARLY_THERE:
            a, b = a + da, b + db
            here = units.at(a, b)  # the information is that of the maximum, not of the step before
            break
        length = 1.0
        following = units.at(a + da, b + db)
        # Where little is left to gain, Newton converges, and rounding would hide the gain.
        while gain > 1e-3 and not following.value >= here.value + 0.25 * length * gain:
            length *= 0.5
            following = units.at(a + length * da, b + length * db)
        a, b, here = a + length * da, b + length * db, following
    slope = b / scale
    intercept = a - slope * centre
    aa, ab, bb = here.information
    return Fit(
        intercept,
        slope,
        Likelihood(
            here.value,
            (0.0, 0.0),
            (
                aa,
                scale * ab + centre * aa,
                scale**2 * bb + 2.0 * centre * scale * ab + centre**2 * aa,
            ),
        ),
    )


def profile_ends(data: LogOdds, fit: Fit, which: str, reach: float) -> tuple[float, float]:
    """Where twice the loss of profile likelihood is `reach`², on either side of the maximum.

    `which` is "offset intercept", where the slope is held at 1, or "intercept" or "slope", where the other
    one follows.
    """
    value, error, along = _profile(data, fit, which)
    top = along(value, None)[0]
    return (
        _crossing(along, value, top, -reach * error, reach),
        _crossing(along, value, top, reach * error, reach),
    )


def one_sided_end(data: LogOdds, value: float, reach: float) -> float:
    """The finite end of the offset intercept's interval where one outcome alone was seen.

    The likelihood rises to 1 as the intercept goes to infinity.
    """
    sign = 1.0 if value > 0 else -1.0

    def excess(a: float) -> float:
        return -2.0 * data.at(sign * a, 1.0).value - reach**2

    return sign * _falling_root(excess)


def separated_end(data: LogOdds, slope: float, reach: float) -> float:
    """The finite end of the slope's profile interval where the other one is infinite."""
    top = data.separated_value(slope)
    sign = 1.0 if slope > 0 else -1.0
    unit = sign / float(np.ptp(data.z))

    def excess(multiple: float) -> float:
        scaled = replace(data, z=multiple * unit * data.z)
        fit = offset_intercept(scaled)
        return 2.0 * (top - scaled.at(fit.intercept, 1.0).value) - reach**2

    return _falling_root(excess) * unit


def _falling_root(excess: Callable[[float], float]) -> float:
    """Where a falling function is 0: a bracket by doubling, then halves of it."""
    low, high = -1.0, 1.0
    while excess(high) > 0.0 and high < 1e12:
        low, high = high, 2.0 * high
    while excess(low) < 0.0 and low > -1e12:
        low, high = 2.0 * low, low
    for _ in range(MOST_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            break
    return 0.5 * (low + high)


Along = Callable[[float, float | None], tuple[float, float, float]]


def _profile(data: LogOdds, fit: Fit, which: str) -> tuple[float, float, Along]:
    """The parameter, its standard error, and its profile log-likelihood with the slope of that."""
    if which == "offset intercept":
        surplus = data.wrongly_never - data.wrongly_always

        def fixed(a: float, _: float | None) -> tuple[float, float, float]:
            here = data.at(a, 1.0)
            return here.value + surplus * a, here.gradient[0] + surplus, 0.0

        return fit.intercept, 1.0 / sqrt(fit.likelihood.information[0]), fixed
    index = ("intercept", "slope").index(which)
    aa, ab, bb = fit.likelihood.information
    ratio = -ab / (aa if index else bb)  # how the other one follows, to first order
    estimate = (fit.intercept, fit.slope)

    def followed(x: float, guess: float | None) -> tuple[float, float, float]:
        other = estimate[1 - index] + ratio * (x - estimate[index]) if guess is None else guess
        for _ in range(MOST_STEPS):
            here = data.at(other, x) if index else data.at(x, other)
            gradient, cross = here.gradient[1 - index], here.information[1]
            information = here.information[0 if index else 2]
            step = gradient / information
            # A step changes the likelihood by half of this, to third order.
            if abs(gradient * step) < 1e-9:
                own = here.gradient[index] - cross * step
                return here.value + 0.5 * gradient * step, own, other + step
            other += float(np.clip(step, -2.0, 2.0))
        return here.value, here.gradient[index], other

    return estimate[index], fit.standard_errors[index], followed


def _crossing(along: Along, start: float, top: float, step: float, reach: float) -> float:
    """Newton on the signed root of the likelihood's loss, which is nearly straight, in a bracket."""
    inside, outside = start, nan
    x, guess = start + step, None
    for _ in range(MOST_STEPS):
        value, slope, guess = along(x, guess)
        loss = 2.0 * (top - value)
        root = sqrt(max(loss, 0.0))
        if root < reach:
            inside = x
        else:
            outside = x
        change = abs(slope) / root if root > 0.0 else 0.0
        move = (reach - root) / change if change > 0.0 else inf
        following = (
            x + float(np.copysign(min(move, 1e6), step))
            if move > 0
            else x + float(np.copysign(move, -step))
        )
        low, high = sorted((inside, outside if isfinite(outside) else start + 1e3 * step))
        if not low < following < high:
            following = 0.5 * (inside + outside) if isfinite(outside) else inside + 2.0 * step
            step *= 2.0
        if abs(following - x) < 1e-9 * abs(start - x):
            return following
        x = following
    return x
