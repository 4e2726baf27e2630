"""Calibration intercept and slope, with profile-likelihood intervals and likelihood-ratio tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.interval import normal_quantile
from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.profiles.cells import Cells, cells_of
from calibrant.profiles.logistic import (
    Fit,
    LogOdds,
    offset_intercept,
    one_sided_end,
    profile_ends,
    recalibration,
    separated_end,
)
from calibrant.profiles.scores import error_of_cells

__all__ = [
    "calibration_intercept",
    "calibration_slope",
    "joint_test",
    "log_odds",
    "recalibrated_intercept",
]

Floats = NDArray[np.float64]

COX = "Cox 1958; Miller, Hui and Tierney 1991"
PROFILED = f"{COX}; interval: profile likelihood (Venzon and Moolgavkar 1988)"
ROBUST = f"{COX}; interval: sandwich (Liang and Zeger 1986)"


@dataclass(frozen=True)
class _Fits:
    """Both fits of one sample. `slope` is infinite where the outcomes are separated."""

    data: LogOdds
    offset: Fit
    free: Fit | None
    slope: float
    cells: Cells | None = None

    @cached_property
    def errors(self) -> tuple[float, float, float]:
        """What the rows could change of slope, intercept and log-likelihood, from a sketch."""
        assert self.cells is not None
        assert self.free is not None
        return self.cells.recalibration_error(self.data, self.free)


def log_odds(sample: Sample) -> LogOdds:
    """Log-odds of the predictions and what they met; from a sketch, where it knows them."""
    if sample.pairs is None:
        return sample.once(cells_of).log_odds("the calibration slope").condensed()
    if sample.pairs.form == "logit":  # some are lost once they are probabilities
        pairs = sample.pairs
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        z, events = np.asarray(pairs.raw_prob, dtype=np.float64), weight * pairs.y
        return LogOdds.of(z, weight - events, events).condensed()
    negative, positive = sample.atoms.mass.T
    return LogOdds.of(_logit(sample.atoms.p), negative, positive).condensed()


def _logit(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _fits(sample: Sample) -> _Fits:
    data = sample.once(log_odds)
    cells = sample.once(cells_of) if sample.pairs is None else None
    offset = offset_intercept(data)
    events, others = float(data.events.sum()), float((data.weight - data.events).sum())
    if events <= 0.0 or others <= 0.0 or data.wrong > 0.0 or np.ptp(data.z) == 0.0:
        return _Fits(data, offset, None, nan, cells)
    slope = data.separation()
    free = recalibration(data) if isnan(slope) else None
    return _Fits(data, offset, free, slope if free is None else free.slope, cells)


def _robust(sample: Sample) -> bool:
    """Whether the likelihood is not that of independent rows of one outcome each."""
    weighted = sample.sketch.weighted if sample.pairs is None else sample.pairs.fractional
    return weighted or sample.dependent


def _influence(sample: Sample, fits: _Fits, fit: Fit, free: bool) -> tuple[Floats, Floats]:
    """What each row, or each entry of the cells, adds to intercept and slope for each unit of weight."""
    from scipy.special import expit

    if sample.pairs is None:
        assert fits.cells is not None
        z, y, p = fits.cells.z, fits.cells.label, fits.cells.p
    else:
        pairs = sample.pairs
        z = np.asarray(pairs.raw_prob, float) if pairs.form == "logit" else _logit(pairs.p)
        y, p = pairs.y, pairs.p
    finite = np.isfinite(z)
    line = np.where(finite, z, 0.0)
    score = y - np.where(finite, expit(fit.intercept + fit.slope * line), p)
    aa, ab, bb = fit.likelihood.information
    if not free:
        return score / aa, np.zeros_like(score)
    score = np.where(finite, score, 0.0)
    determinant = aa * bb - ab * ab
    return score * (bb - ab * line) / determinant, score * (aa * line - ab) / determinant


def _error(sample: Sample, influence: Floats) -> tuple[float, float]:
    """The standard error of a sum of weighted influences, and its degrees of freedom."""
    if sample.pairs is None:
        return error_of_cells(sample, influence * sample.sketch.total_weight)
    weight = sample.pairs.weight
    return sample.standard_error(influence if weight is None else weight * influence)


def _interval(sample: Sample, fits: _Fits, fit: Fit, which: str, quantity: Quantity) -> Quantity:
    """The quantity with its standard error and interval."""
    index = 1 if which == "slope" else 0
    bound = _bound(fits, fit, which)
    if _robust(sample):
        influence = _influence(sample, fits, fit, which != "offset intercept")[index]
        error, degrees = _error(sample, influence)
        reach = normal_quantile(0.5 + 0.5 * sample.confidence, degrees) * error + bound
        value = quantity.value
        p = _two_sided((value - index) / error, degrees) if which != "intercept" else nan
        return replace(
            quantity,
            low=value - reach,
            high=value + reach,
            standard_error=error,
            p_value=p,
            bound=bound,
            source=ROBUST,
        )
    reach = normal_quantile(0.5 + 0.5 * sample.confidence)
    low, high = profile_ends(fits.data, fit, which, reach)
    error = (
        1.0 / sqrt(fit.likelihood.information[0])
        if which == "offset intercept"
        else fit.standard_errors[index]
    )
    return replace(quantity, low=low - bound, high=high + bound, standard_error=error, bound=bound)


def _bound(fits: _Fits, fit: Fit, which: str) -> float:
    """How far the value of the rows can be from that of their sketch; refused where nothing is known."""
    if fits.cells is None:
        return 0.0
    held = which == "offset intercept"
    errors = fits.cells.recalibration_error(fits.data, fit, held=True) if held else fits.errors
    bound = errors[0 if which == "slope" else 1]
    if not isfinite(bound):
        raise Unavailable(
            "the calibration {which} needs rows, or a finer sketch: this one bounds it by nothing",
            which=which.split()[-1],
        )
    return bound


def calibration_intercept(sample: Sample) -> Quantity:
    """The intercept with the predictions as offset: 0 if they are right on average.

    It is in log-odds: positive where events are more frequent than predicted.
    """
    fits = sample.once(_fits)
    if fits.data.z.size == 0 and fits.data.wrongly_never == fits.data.wrongly_always:
        raise Unavailable(
            "the calibration intercept needs predictions strictly between 0 and 1; all are 0 or 1, and "
            "every intercept fits them alike"
        )
    value = fits.offset.intercept
    quantity = Quantity(
        "calibration intercept", value, source=PROFILED, note=_wrong_note(fits.data)
    )
    if not isfinite(value):
        seen = "every" if value > 0 else "no"
        quantity = replace(quantity, note=f"infinite: {seen} row that could tell has the event")
        if _robust(sample) or fits.data.wrong > 0.0:
            return quantity
        end = one_sided_end(fits.data, value, normal_quantile(0.5 + 0.5 * sample.confidence))
        low, high = (end, inf) if value > 0 else (-inf, end)
        return replace(quantity, low=low, high=high)
    quantity = _interval(sample, fits, fits.offset, "offset intercept", quantity)
    if _robust(sample) or fits.data.wrong > 0.0:
        return quantity
    data = fits.data
    statistic = 2.0 * (data.at(value, 1.0).value - data.at(0.0, 1.0).value)
    return replace(quantity, p_value=_chi_squared(statistic, 1))


def calibration_slope(sample: Sample) -> Quantity:
    """The slope of the outcomes' log-odds on those of the predictions: 1 if these are as sharp as they
    should be, below where they are over-confident.
    """
    fits = sample.once(_fits)
    quantity = Quantity("calibration slope", source=PROFILED)
    if fits.free is None:
        return _without_maximum(sample, fits, quantity)
    quantity = replace(quantity, value=fits.free.slope)
    quantity = _interval(sample, fits, fits.free, "slope", quantity)
    if _robust(sample):
        return quantity
    held = fits.data.at(fits.offset.intercept, 1.0).value
    statistic = 2.0 * (fits.free.likelihood.value - held)
    return replace(quantity, p_value=_chi_squared(statistic, 1), note=_certain_note(fits.data))


def _without_maximum(sample: Sample, fits: _Fits, quantity: Quantity) -> Quantity:
    data = fits.data
    if data.wrong > 0.0:
        rate = sample.assessment.event_rate
        if 0.0 < rate < 1.0:
            return replace(
                quantity, value=0.0, low=0.0, high=0.0, p_value=0.0, note=_wrong_note(data)
            )
    _require_slope(sample, data)
    reach = normal_quantile(0.5 + 0.5 * sample.confidence)
    end = separated_end(data, fits.slope, reach) if not _robust(sample) else nan
    side = "above" if fits.slope > 0 else "below"
    low, high = (end, inf) if fits.slope > 0 else (-inf, end)
    return replace(
        quantity,
        value=fits.slope,
        low=low,
        high=high,
        note=f"infinite: every event was predicted {side} every other row, so any steeper line fits "
        "better; the finite end of the interval is that of the profile likelihood",
    )


def _require_slope(sample: Sample, data: LogOdds) -> None:
    rate = sample.assessment.event_rate
    if rate in (0.0, 1.0):
        raise Unavailable(
            "the calibration slope needs both outcomes", seen=round(rate), saying="all are {}"
        )
    if data.z.size == 0:
        raise Unavailable(
            "the calibration slope needs predictions strictly between 0 and 1; all are 0 or 1"
        )
    if np.ptp(data.z) == 0.0:
        raise Unavailable(
            "the calibration slope needs two different finite log-odds; all are equal"
        )
    if not 0.0 < data.events.sum() < data.weight.sum():
        raise Unavailable(
            "the calibration slope needs both outcomes among predictions strictly between 0 and 1"
        )


def recalibrated_intercept(sample: Sample) -> Quantity:
    """The intercept that goes with the slope: of the recalibration line, not a measure by itself."""
    fits = sample.once(_fits)
    quantity = Quantity("intercept given slope", source=PROFILED)
    if fits.free is None:
        raise Unavailable("there is no recalibration line; see the calibration slope")
    quantity = replace(quantity, value=fits.free.intercept)
    return _interval(sample, fits, fits.free, "intercept", quantity)


def joint_test(sample: Sample) -> Quantity:
    """The likelihood-ratio test of intercept 0 and slope 1 together, on 2 degrees of freedom."""
    fits = sample.once(_fits)
    name, source = "intercept 0 and slope 1, χ² (2 df)", f"likelihood-ratio test; {COX}"
    data, fit = fits.data, fits.free
    if data.wrong > 0.0:
        return Quantity(name, inf, p_value=0.0, source=source, note=_wrong_note(data))
    if _robust(sample):
        if fit is None:
            raise Unavailable("there is no recalibration line; see the calibration slope")
        if sample.pairs is None:
            raise Unavailable(
                "the joint test with weights or clusters needs rows: of a sketch it has no bound"
            )
        a, b = _influence(sample, fits, fit, True)
        error_a, degrees = _error(sample, a)
        error_b, _ = _error(sample, b)
        both = (_error(sample, a + b)[0] ** 2 - error_a**2 - error_b**2) / 2.0
        da, db = fit.intercept, fit.slope - 1.0
        determinant = error_a**2 * error_b**2 - both**2
        statistic = (error_b**2 * da**2 - 2.0 * both * da * db + error_a**2 * db**2) / determinant
        return Quantity(
            name,
            statistic,
            p_value=_hotelling(statistic, degrees),
            source=f"Wald test, sandwich; {COX}",
        )
    if fit is not None:
        top, bound = fit.likelihood.value, 0.0
    else:
        _require_slope(sample, data)
        top, bound = data.separated_value(fits.slope), 0.0
    if fits.cells is not None and fit is not None:
        bound = 4.0 * fits.errors[2]
    statistic = 2.0 * (top - data.at(0.0, 1.0).value)
    return Quantity(name, statistic, p_value=_chi_squared(statistic, 2), bound=bound, source=source)


def _wrong_note(data: LogOdds) -> str:
    if data.wrong == 0.0:
        return _certain_note(data)
    return (
        f"{_rows(data.wrong)} had probability 0 or 1 and failed: the likelihood of any positive slope "
        "is 0. The slope is 0 in the limit; the intercept is the limit in which their log-odds grow"
    )


def _rows(number: float) -> str:
    return f"{number:g} row{'' if number == 1.0 else 's'}"


def _certain_note(data: LogOdds) -> str:
    if data.certain == 0.0:
        return ""
    return f"{_rows(data.certain)} had probability 0 or 1 and came true: they add nothing to the likelihood"


def _chi_squared(statistic: float, degrees: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))


def _two_sided(t: float, degrees: float) -> float:
    from scipy.special import stdtr

    return float(2.0 * stdtr(degrees, -abs(t)))


def _hotelling(statistic: float, degrees: float) -> float:
    """P-value of a Wald statistic in two parameters whose variances are estimated."""
    from scipy.special import fdtrc

    if degrees <= 1.0:
        return nan
    return float(fdtrc(2.0, degrees - 1.0, statistic * (degrees - 1.0) / (2.0 * degrees)))
