"""Calibration intercept and slope: logistic recalibration log-odds(y) = a + b · log-odds(p).

Predictions of exactly 0 and 1 have infinite log-odds. One that agrees with its outcome adds nothing to
the likelihood of any positive slope; one that disagrees makes it 0. Both are treated as the limit of
log-odds that grow without end: none is clipped, none is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import copysign, inf, isfinite, isnan, log, log1p, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.inference.quantiles import normal_quantile

__all__ = [
    "LogOdds",
    "calibration_intercept",
    "calibration_slope",
    "fit_held",
    "fit_line",
    "joint_test",
    "profile_interval",
    "recalibrated_intercept",
]

Floats = NDArray[np.float64]

COX = "Cox 1958; Miller, Hui and Tierney 1991"
PROFILED = f"{COX}; interval: profile likelihood (Venzon and Moolgavkar 1988)"
ROBUST = f"{COX}; interval: sandwich (Liang and Zeger 1986)"
MOST_STEPS = 200
LARGEST_STEP = 5.0
"""Newton's step in units of the standardised log-odds: beyond, probabilities are 0 or 1."""
CONVERGED = 1e-12
"""Gain in log-likelihood of a Newton step after which the next one is rounding."""
MANY, CELL = 1 << 15, 0.005
"""Rows beyond which a likelihood interval takes cells of log-odds of this width, at their means: the
log-likelihood then changes by less than h²/24 of itself."""
FEW_CLUSTERS = 20
"""Clusters below which the sandwich interval of the slope covers too little (docs/evidence/profiles.md)."""


@dataclass(frozen=True, eq=False)
class LogOdds:
    """Finite log-odds with the weight of the events and of all rows at each.

    `missed` is the weight of events that had probability 0, `failed` of their absence where it was 1, and
    `certain` of rows whose infinite log-odds agree with the outcome.
    """

    z: Floats
    events: Floats
    weight: Floats
    missed: float = 0.0
    failed: float = 0.0
    certain: float = 0.0

    @classmethod
    def of(cls, z: Floats, negative: Floats, positive: Floats) -> LogOdds:
        """Log-odds with the weight of both outcomes; infinite ones are set apart."""
        weight = negative + positive
        finite, never, always = np.isfinite(z) & (weight > 0.0), z == -inf, z == inf
        return cls(
            z[finite],
            positive[finite],
            weight[finite],
            float(positive[never].sum()),
            float(negative[always].sum()),
            float(negative[never].sum() + positive[always].sum()),
        )

    @property
    def wrong(self) -> float:
        """Weight of the rows that a certain prediction got wrong."""
        return self.missed + self.failed

    def condensed(self) -> LogOdds:
        """At most a few thousand points for many rows, for the search of an interval's ends."""
        if self.z.size <= MANY:
            return self
        cell = np.floor(self.z / CELL).astype(np.int64)
        cell -= cell.min()
        z, mass = [], []
        for weight in (self.weight - self.events, self.events):  # at the mean of each outcome
            total, moment = np.bincount(cell, weight), np.bincount(cell, weight * self.z)
            used = total > 0.0
            z.append(moment[used] / total[used])
            mass.append(total[used])
        events = np.concatenate([np.zeros_like(mass[0]), mass[1]])
        return replace(self, z=np.concatenate(z), events=events, weight=np.concatenate(mass))

    def likelihood(self, a: float, b: float) -> tuple[float, Floats, Floats]:
        """Log-likelihood of intercept a and slope b, its gradient, and its information matrix."""
        eta = a + b * self.z
        tail = np.exp(-np.abs(eta))
        chance = np.where(eta < 0.0, tail, 1.0) / (1.0 + tail)
        value = self.events @ eta - self.weight @ (np.log1p(tail) + np.maximum(eta, 0.0))
        residual = self.events - self.weight * chance
        spread = self.weight * tail / (1.0 + tail) ** 2
        first = spread * self.z
        aa, ab, bb = float(spread.sum()), float(first.sum()), float(first @ self.z)
        gradient = np.array([float(residual.sum()), float(residual @ self.z)])
        return float(value), gradient, np.array([[aa, ab], [ab, bb]])

    def separation(self) -> float:
        """Infinite slope that separates the outcomes (inf or -inf); nan where none does."""
        without, having = self.z[self.weight > self.events], self.z[self.events > 0.0]
        if having.min() >= without.max() and having.max() > without.min():
            return inf
        if having.max() <= without.min() and having.min() < without.max():
            return -inf
        return nan

    def separated_value(self, slope: float) -> float:
        """Supremum of the log-likelihood where the outcomes are separated: that of the border's rows."""
        having, without = self.z[self.events > 0.0], self.z[self.weight > self.events]
        border = having.min() if slope > 0 else having.max()
        there = self.z == border
        events, weight = float(self.events[there].sum()), float(self.weight[there].sum())
        if border != (without.max() if slope > 0 else without.min()):
            return 0.0
        return events * log(events / weight) + (weight - events) * log1p(-events / weight)


@dataclass(frozen=True)
class Fit:
    """Maximum of the likelihood: intercept, slope, log-likelihood and information matrix."""

    intercept: float
    slope: float
    value: float
    information: Floats

    def standard_error(self, index: int) -> float:
        """Standard error of the intercept (0), the slope (1), or the intercept with the slope held (-1)."""
        if index < 0:
            return 1.0 / sqrt(self.information[0, 0])
        return sqrt(np.linalg.inv(self.information)[index, index])


def fit_held(data: LogOdds, index: int, value: float, start: float = 0.0) -> Fit:
    """Maximum with one parameter held (0 the intercept, 1 the slope), by Newton's method in a bracket.

    Where certain predictions failed, the intercept is the limit in which their log-odds grow: the events
    that they missed must come from the other rows.
    """
    surplus = (data.missed - data.failed) if index else 0.0
    target = float(data.events.sum()) + surplus
    if index and not 0.0 < target < float(data.weight.sum()):
        return Fit(inf if target > 0.0 else -inf, value, nan, np.full((2, 2), nan))
    low, high, free, last = -inf, inf, start, False
    for _ in range(MOST_STEPS):
        line = (free, value) if index else (value, free)
        likelihood, gradient, information = data.likelihood(*line)
        score, curvature = gradient[1 - index] + surplus, information[1 - index, 1 - index]
        if score == 0.0:
            break
        low, high = (free, high) if score > 0.0 else (low, free)
        # Where all rows are certain there is no curvature, and the step is the longest.
        step = score / curvature if curvature > 1e-100 * abs(score) else copysign(inf, score)
        following = free + float(np.clip(step, -LARGEST_STEP, LARGEST_STEP))
        if not low < following < high:
            following = 0.5 * (low + high)
        if last or following == free or not isfinite(following):
            break
        free, last = following, score * step < CONVERGED
    return Fit(*line, likelihood + surplus * free, information)


def fit_line(data: LogOdds) -> Fit:
    """Intercept and slope of greatest likelihood: iteratively reweighted least squares.

    The log-odds are standardised and steps are bounded, and halved where the likelihood would fall. The
    maximum must exist: outcomes are not separated, and no certain prediction failed.
    """
    total = float(data.weight.sum())
    centre = float(data.weight @ data.z) / total
    scale = sqrt(float(data.weight @ (data.z - centre) ** 2) / total)
    units = replace(data, z=(data.z - centre) / scale)
    at = np.zeros(2)
    value, gradient, information = units.likelihood(*at)
    for _ in range(MOST_STEPS):
        if not np.linalg.det(information) > 0.0:
            break
        step = np.linalg.solve(information, gradient)
        gain = float(step @ gradient)
        step *= min(1.0, LARGEST_STEP / float(np.abs(step).max()))
        following = units.likelihood(*(at + step))
        # Near the maximum Newton converges, and rounding would hide the gain.
        while gain > 1e-3 and following[0] < value and np.abs(step).max() > 1e-9:
            step *= 0.5
            following = units.likelihood(*(at + step))
        at, (value, gradient, information) = at + step, following
        if gain < CONVERGED:
            break
    slope = at[1] / scale
    back = np.array([[1.0, 0.0], [centre, scale]])  # from standardised to plain log-odds
    return Fit(float(at[0] - slope * centre), float(slope), value, back @ information @ back.T)


def profile_interval(data: LogOdds, fit: Fit, index: int, reach: float) -> tuple[float, float]:
    """Values of a parameter at which twice the loss of profile likelihood is reach².

    `index` is 0 for the intercept, 1 for the slope, and -1 for the intercept with the slope held at 1.
    """
    estimate = fit.slope if index == 1 else fit.intercept
    other = (fit.slope, fit.intercept)[index]
    error, surplus = fit.standard_error(index), data.missed - data.failed

    def profiled(x: float) -> float:
        if index < 0:
            return data.likelihood(x, 1.0)[0] + surplus * x
        return fit_held(data, index, x, other).value

    top = profiled(estimate)

    def loss(x: float) -> float:
        return 2.0 * (top - profiled(x)) - reach**2

    return _root(loss, estimate, -reach * error), _root(loss, estimate, reach * error)


def _root(excess: Callable[[float], float], start: float, step: float) -> float:
    """Zero of a function that is negative at the start: a bracket by doubling steps, then Brent's method."""
    from scipy.optimize import brentq

    inside, outside = start, start + step
    while excess(outside) < 0.0:
        step *= 2.0
        inside, outside = outside, start + step
        if abs(step) > 1e12 * max(abs(start), 1.0):
            return copysign(inf, step)
    return float(brentq(excess, inside, outside, xtol=1e-12 + 1e-9 * abs(step)))


# -- quantities ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Fits:
    """Both fits of one sample; `slope` is infinite where the outcomes are separated."""

    data: LogOdds
    offset: Fit
    line: Fit | None
    slope: float


def _fits(sample: Sample) -> _Fits:
    weight = sample.share * sample.sketch.total_weight
    if sample.rows is not None:
        weight = np.ones(sample.rows.n) if sample.rows.weight is None else sample.rows.weight
    data = LogOdds.of(sample.log_odds, weight * (1.0 - sample.y), weight * sample.y)
    offset = fit_held(data, 1, 1.0)
    events, others = float(data.events.sum()), float((data.weight - data.events).sum())
    if events <= 0.0 or others <= 0.0 or data.wrong > 0.0 or np.ptp(data.z) == 0.0:
        return _Fits(data, offset, None, nan)
    slope = data.separation()
    line = fit_line(data) if isnan(slope) else None
    return _Fits(data, offset, line, slope if line is None else line.slope)


def _robust(sample: Sample) -> bool:
    """True where the likelihood is not that of independent rows of one outcome each."""
    return sample.fractional or sample.dependent


def _covariance(sample: Sample, fit: Fit, *, held: bool) -> Floats:
    """Sandwich covariance of intercept and slope; of the intercept alone where the slope is held."""
    from scipy.special import expit

    z = sample.log_odds
    finite = np.isfinite(z)
    line = np.where(finite, z, 0.0)
    score = sample.y - np.where(finite, expit(fit.intercept + fit.slope * line), sample.p)
    total = sample.sketch.total_weight if sample.rows is None else sample.rows.total_weight
    if held:
        return sample.covariance(score / fit.information[0, 0] * total)
    a, b = (
        np.linalg.inv(fit.information) @ np.stack([score * finite, score * finite * line]) * total
    )
    return sample.covariance(a, b)


def _with_interval(sample: Sample, fit: Fit, index: int, quantity: Quantity) -> Quantity:
    """The quantity with its standard error, interval, and p-value where there is one for robust errors."""
    if not _robust(sample):
        reach = normal_quantile(0.5 + 0.5 * sample.confidence)
        low, high = profile_interval(sample.once(_fits).data.condensed(), fit, index, reach)
        return replace(quantity, low=low, high=high, standard_error=fit.standard_error(index))
    from scipy.special import stdtr

    covariance = _covariance(sample, fit, held=index < 0)
    error, value = sqrt(max(covariance[max(index, 0), max(index, 0)], 0.0)), quantity.value
    t = (value - (index == 1)) / error if error > 0.0 else nan
    clusters = int(sample.cluster.max()) + 1 if sample.cluster is not None else inf
    few = f"{clusters} clusters: the interval is too short below {FEW_CLUSTERS}"
    return replace(
        quantity,
        low=value - sample.quantile * error,
        high=value + sample.quantile * error,
        standard_error=error,
        p_value=nan if index == 0 else float(2.0 * stdtr(sample.units - 1.0, -abs(t))),
        source=ROBUST,
        note="; ".join(filter(None, [quantity.note, few if clusters < FEW_CLUSTERS else ""])),
    )


def calibration_intercept(sample: Sample) -> Quantity:
    """Calibration intercept, the slope held at 1: 0 if the predictions are right on average.

    It is in log-odds: positive where events are more frequent than predicted.
    """
    fits = sample.once(_fits)
    data, value = fits.data, fits.offset.intercept
    if data.z.size == 0 and data.missed == data.failed:
        raise Unavailable(
            "the calibration intercept needs predictions strictly between 0 and 1; all are 0 or 1, and "
            "every intercept fits them alike"
        )
    quantity = Quantity("calibration intercept", value, source=PROFILED, note=_certain_note(data))
    if isfinite(value):
        quantity = _with_interval(sample, fits.offset, -1, quantity)
        if _robust(sample) or data.wrong > 0.0:
            return quantity
        statistic = 2.0 * (fits.offset.value - data.likelihood(0.0, 1.0)[0])
        return replace(quantity, p_value=_chi_squared(statistic, 1))
    every = "every" if value > 0 else "no"
    quantity = replace(quantity, note=f"infinite: {every} row that could tell has the event")
    if _robust(sample) or data.wrong > 0.0:
        return quantity
    # The likelihood rises to 1 as the intercept goes to infinity.
    reach = normal_quantile(0.5 + 0.5 * sample.confidence)
    sign = copysign(1.0, value)
    far = float(np.abs(data.z).max()) + 40.0
    end = _root(lambda a: -2.0 * data.likelihood(a, 1.0)[0] - reach**2, sign * far, -sign)
    return replace(quantity, low=end if value > 0 else -inf, high=inf if value > 0 else end)


def calibration_slope(sample: Sample) -> Quantity:
    """Calibration slope of the outcomes' log-odds on those of the predictions; below 1: over-confident."""
    fits = sample.once(_fits)
    data, line = fits.data, fits.line
    quantity = Quantity("calibration slope", source=PROFILED)
    if line is not None:
        quantity = replace(quantity, value=line.slope, note=_certain_note(data))
        quantity = _with_interval(sample, line, 1, quantity)
        if _robust(sample):
            return quantity
        statistic = 2.0 * (line.value - data.likelihood(fits.offset.intercept, 1.0)[0])
        return replace(quantity, p_value=_chi_squared(statistic, 1))
    if data.wrong > 0.0 and 0.0 < sample.points.base_rate < 1.0:
        note = _certain_note(data)
        return replace(quantity, value=0.0, low=0.0, high=0.0, p_value=0.0, note=note)
    _require_slope(sample, data)
    end, positive = nan, fits.slope > 0
    if not _robust(sample):
        reach, top = (
            normal_quantile(0.5 + 0.5 * sample.confidence),
            data.separated_value(fits.slope),
        )
        unit = copysign(1.0 / float(np.ptp(data.z)), fits.slope)

        def loss(steepness: float) -> float:  # falls to -reach²
            return 2.0 * (top - fit_held(data, 1, steepness * unit).value) - reach**2

        steeper = loss(0.0) > 0.0
        end = unit * _root((lambda x: -loss(x)) if steeper else loss, 0.0, 1.0 if steeper else -1.0)
    side = "above" if positive else "below"
    note = (
        f"infinite: every event was predicted {side} every other row, so any steeper line fits better; the "
        "finite end of the interval is that of the profile likelihood"
    )
    low, high = (end, inf) if positive else (-inf, end)
    return replace(quantity, value=fits.slope, low=low, high=high, note=note)


def _require_slope(sample: Sample, data: LogOdds) -> None:
    rate = sample.points.base_rate
    if rate in (0.0, 1.0):
        raise Unavailable(f"the calibration slope needs both outcomes; all are {round(rate)}")
    if data.z.size == 0:
        raise Unavailable(
            "the calibration slope needs predictions strictly between 0 and 1; all are 0 or 1"
        )
    if np.ptp(data.z) == 0.0:
        raise Unavailable("the calibration slope needs two different finite log-odds")
    if not 0.0 < data.events.sum() < data.weight.sum():
        raise Unavailable(
            "the calibration slope needs both outcomes among predictions strictly between 0 and 1"
        )


def recalibrated_intercept(sample: Sample) -> Quantity:
    """Intercept of the recalibration line, which goes with the slope: not a measure by itself."""
    line = sample.once(_fits).line
    if line is None:
        raise Unavailable("there is no recalibration line; see the calibration slope")
    quantity = Quantity("intercept given slope", line.intercept, source=PROFILED)
    return _with_interval(sample, line, 0, quantity)


def joint_test(sample: Sample) -> Quantity:
    """Test of intercept 0 and slope 1 together, 2 degrees of freedom: likelihood ratio, or Wald's T².

    With weights or clusters it is Wald's with the sandwich covariance, and Hotelling's distribution.
    """
    fits = sample.once(_fits)
    data, line = fits.data, fits.line
    name, source = "intercept 0 and slope 1, χ² (2 df)", f"likelihood-ratio test; {COX}"
    if data.wrong > 0.0:
        return Quantity(name, inf, p_value=0.0, source=source, note=_certain_note(data))
    if not _robust(sample):
        if line is None:
            _require_slope(sample, data)
        top = line.value if line is not None else data.separated_value(fits.slope)
        statistic = 2.0 * (top - data.likelihood(0.0, 1.0)[0])
        return Quantity(name, statistic, p_value=_chi_squared(statistic, 2), source=source)
    if line is None:
        raise Unavailable("there is no recalibration line; see the calibration slope")
    from scipy.special import fdtrc

    covariance, degrees = _covariance(sample, line, held=False), sample.units - 1.0
    if not np.linalg.det(covariance) > 0.0 or degrees <= 1.0:
        raise Unavailable("the joint test needs three clusters or more")
    away = np.array([line.intercept, line.slope - 1.0])
    statistic = float(away @ np.linalg.solve(covariance, away))
    p_value = float(fdtrc(2.0, degrees - 1.0, statistic * (degrees - 1.0) / (2.0 * degrees)))
    return Quantity(name, statistic, p_value=p_value, source=f"Wald test, sandwich; {COX}")


def _certain_note(data: LogOdds) -> str:
    number = data.wrong or data.certain
    rows = f"{number:g} row{'' if number == 1.0 else 's'} had probability 0 or 1"
    if data.wrong:
        return (
            f"{rows} and failed: the likelihood of any positive slope is 0. The slope is 0 in the limit; "
            "the intercept is the limit in which their log-odds grow"
        )
    return f"{rows} and came true: they add nothing to the likelihood" if number else ""


def _chi_squared(statistic: float, degrees: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))
