"""Calibration intercept and slope: logistic recalibration log-odds(y) = a + b · log-odds(p).

Predictions of exactly 0 and 1 have infinite log-odds. One that agrees with its outcome adds nothing to
the likelihood of any positive slope; one that disagrees makes it 0. Both are treated as the limit of
log-odds that grow without end: none is clipped, none is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import copysign, inf, isinf, isnan, log, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.logistic import posterior
from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.inference.quantiles import normal_quantile

Floats = NDArray[np.float64]

COX = "Cox 1958; Miller, Hui and Tierney 1991"
PROFILED = f"{COX}; interval: profile likelihood (Venzon and Moolgavkar 1988)"
WALD = f"{COX}; interval: Wald"
ROBUST = f"{COX}; interval: sandwich (Liang and Zeger 1986)"
MANY, CELL = 1 << 15, 0.005
"""Rows beyond which a likelihood interval takes cells of log-odds of this width, at their means: the
log-likelihood then changes by less than h²/24 of itself."""
STEEP = 1e9
"""Slope, over the range of log-odds, at which the likelihood of separated outcomes is at its supremum."""
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

    def fit(self, a: float, b: float) -> Fit:
        """Log-likelihood of intercept a and slope b, its gradient, and its information matrix.

        Where certain predictions failed, it is the limit of log-odds that grow, less what it loses for
        every intercept alike.
        """
        eta = a + b * self.z
        tail = np.exp(-np.abs(eta))
        chance = np.where(eta < 0.0, tail, 1.0) / (1.0 + tail)
        value = float(self.events @ eta - self.weight @ (np.log1p(tail) + np.maximum(eta, 0.0)))
        surplus = self.missed - self.failed
        residual = self.events - self.weight * chance
        spread = self.weight * tail / (1.0 + tail) ** 2
        first = spread * self.z
        aa, ab, bb = float(spread.sum()), float(first.sum()), float(first @ self.z)
        gradient = np.array([float(residual.sum()) + surplus, float(residual @ self.z)])
        return Fit(a, b, value + surplus * a, gradient, np.array([[aa, ab], [ab, bb]]))

    def with_slope(self, slope: float) -> Fit:
        """Maximum of the likelihood for this slope: the intercept that expects as many events as came."""
        from scipy.optimize import brentq
        from scipy.special import expit

        target = float(self.events.sum()) + self.missed - self.failed
        others = float(self.weight.sum()) - target
        if target <= 0.0 or others <= 0.0:
            return Fit(inf if target > 0.0 else -inf, slope, nan, np.full(2, nan), np.eye(2) * nan)
        line = slope * self.z
        centre, reach = log(target / others), float(np.abs(line).max()) + 1.0

        def excess(intercept: float) -> float:
            return float(self.weight @ expit(intercept + line)) - target

        at = brentq(excess, centre - reach, centre + reach, xtol=1e-15, rtol=1e-15)
        return self.fit(float(at), slope)

    def separation(self) -> float:
        """Infinite slope that separates the outcomes (inf or -inf); nan where none does."""
        without, having = self.z[self.weight > self.events], self.z[self.events > 0.0]
        if having.min() >= without.max() and having.max() > without.min():
            return inf
        if having.max() <= without.min() and having.min() < without.max():
            return -inf
        return nan


@dataclass(frozen=True)
class Fit:
    """Intercept, slope, log-likelihood, its gradient, and the information matrix."""

    intercept: float
    slope: float
    value: float
    gradient: Floats
    information: Floats


def fit_line(data: LogOdds) -> Fit:
    """Intercept and slope of greatest likelihood, by Newton's method on standardised log-odds.

    The maximum must exist: outcomes are not separated, and no certain prediction failed.
    """
    total = float(data.weight.sum())
    centre = float(data.weight @ data.z) / total
    scale = sqrt(float(data.weight @ (data.z - centre) ** 2) / total)
    features = np.stack([np.ones_like(data.z), (data.z - centre) / scale], axis=1)
    start, flat = np.zeros_like(data.z), np.full(2, inf)  # no prior
    found = posterior(features, start, data.weight, data.events / data.weight, flat).coefficients
    slope = float(found[1]) / scale
    fit = data.fit(float(found[0]) - slope * centre, slope)
    if not np.linalg.det(fit.information) > 0.0:
        return fit
    a, b = np.linalg.solve(fit.information, fit.gradient).tolist()  # the last digits
    return data.fit(fit.intercept + a, fit.slope + b)


def slope_interval(data: LogOdds, slope: float, reach: float) -> tuple[float, float]:
    """Slopes of which twice the loss of profile likelihood is at most reach²; of separated outcomes, too."""
    unit = 1.0 / float(np.ptp(data.z))
    top = data.with_slope(copysign(STEEP * unit, slope) if isinf(slope) else slope).value
    return _ends(lambda b: 2.0 * (top - data.with_slope(b).value) - reach**2, slope, unit)


def _ends(excess: Callable[[float], float], best: float, step: float) -> tuple[float, float]:
    """Ends of the interval in which a convex function is below 0; its least point may be infinite."""
    if not isinf(best):
        return _root(excess, best, -step), _root(excess, best, step)
    step = copysign(step, best)
    towards = excess(0.0) > 0.0  # from 0 towards the least point, or away from it
    end = _root(lambda x: -excess(x), 0.0, step) if towards else _root(excess, 0.0, -step)
    return (end, inf) if best > 0.0 else (-inf, end)


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
    offset = data.with_slope(1.0)
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
    total = sample.sketch.total_weight
    if held:
        return sample.covariance(score / fit.information[0, 0] * total)
    a, b = (
        np.linalg.inv(fit.information) @ np.stack([score * finite, score * finite * line]) * total
    )
    return sample.covariance(a, b)


def _sandwich(sample: Sample, fit: Fit, index: int, quantity: Quantity) -> Quantity:
    """The quantity with the interval and p-value of a robust standard error.

    `index` is 0 for the intercept, 1 for the slope, and -1 for the intercept with the slope held at 1.
    """
    from scipy.special import stdtr

    place = max(index, 0)
    error = sqrt(max(_covariance(sample, fit, held=index < 0)[place, place], 0.0))
    t = (quantity.value - (index == 1)) / error if error > 0.0 else nan
    clusters = int(sample.cluster.max()) + 1 if sample.cluster is not None else inf
    few = f"{clusters} clusters: the interval is too short below {FEW_CLUSTERS}"
    return replace(
        quantity,
        low=quantity.value - sample.quantile * error,
        high=quantity.value + sample.quantile * error,
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
    data, fit = fits.data, fits.offset
    value, note = fit.intercept, _certain_note(data)
    if data.z.size == 0 and data.missed == data.failed:
        raise Unavailable(
            "the calibration intercept needs predictions strictly between 0 and 1; all are 0 or 1, and "
            "every intercept fits them alike"
        )
    if isinf(value):
        note = f"infinite: {'every' if value > 0 else 'no'} row that could tell has the event"
    quantity = Quantity("calibration intercept", value, source=PROFILED, note=note)
    if _robust(sample) and not isinf(value):
        return _sandwich(sample, fit, -1, quantity)
    if _robust(sample) or (isinf(value) and data.wrong > 0.0):
        return quantity
    condensed = data.condensed()
    # The likelihood rises to 1 as the intercept goes to infinity.
    top = 0.0 if isinf(value) else condensed.fit(value, 1.0).value
    excess = normal_quantile(0.5 + 0.5 * sample.confidence) ** 2
    low, high = _ends(lambda a: 2.0 * (top - condensed.fit(a, 1.0).value) - excess, value, 1.0)
    quantity = replace(quantity, low=low, high=high)
    if isinf(value):
        return quantity
    p_value = nan if data.wrong else _chi_squared(2.0 * (fit.value - data.fit(0.0, 1.0).value), 1)
    error = 1.0 / sqrt(fit.information[0, 0])
    return replace(quantity, standard_error=error, p_value=p_value)


def calibration_slope(sample: Sample) -> Quantity:
    """Calibration slope of the outcomes' log-odds on those of the predictions; below 1: over-confident."""
    fits = sample.once(_fits)
    data, line = fits.data, fits.line
    note = _certain_note(data)
    if data.wrong > 0.0 and 0.0 < sample.points.base_rate < 1.0:
        return Quantity("calibration slope", 0.0, 0.0, 0.0, p_value=0.0, source=PROFILED, note=note)
    if line is None:
        _require_slope(sample, data)
        side = "above" if fits.slope > 0 else "below"
        note = (
            f"infinite: every event was predicted {side} every other row, so any steeper line fits better; "
            "the finite end of the interval is that of the profile likelihood"
        )
    quantity = Quantity("calibration slope", fits.slope, source=PROFILED, note=note)
    if _robust(sample):
        return quantity if line is None else _sandwich(sample, line, 1, quantity)
    reach = normal_quantile(0.5 + 0.5 * sample.confidence)
    low, high = slope_interval(data.condensed(), fits.slope, reach)
    quantity = replace(quantity, low=low, high=high)
    if line is None:
        return quantity
    p_value = _chi_squared(2.0 * (line.value - fits.offset.value), 1)
    error = sqrt(np.linalg.inv(line.information)[1, 1])
    return replace(quantity, standard_error=error, p_value=p_value)


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
    quantity = Quantity("intercept given slope", line.intercept, source=WALD)
    if _robust(sample):
        return _sandwich(sample, line, 0, quantity)
    error = sqrt(np.linalg.inv(line.information)[0, 0])
    reach = normal_quantile(0.5 + 0.5 * sample.confidence) * error
    low, high = line.intercept - reach, line.intercept + reach
    return replace(quantity, low=low, high=high, standard_error=error)


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
            line = data.with_slope(copysign(STEEP / float(np.ptp(data.z)), fits.slope))
        statistic = 2.0 * (line.value - data.fit(0.0, 1.0).value)
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
