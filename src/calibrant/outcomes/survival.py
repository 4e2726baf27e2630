"""Survival risks at a horizon: rows weighted by the inverse probability of censoring.

A subject whose event, or whose survival to the horizon, was observed stands for those like it who were
censored before: its weight is 1 / G(t-), with G the Kaplan-Meier estimator of the time to censoring. The
weighted share of events is then the Kaplan-Meier estimator of the risk (Aalen-Johansen with several causes),
and every measure, test, diagram and map takes the rows as it takes others with weights.

References: Robins & Finkelstein 2000; Gerds & Schumacher 2006; Austin, Harrell & van Klaveren 2020.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from calibrant._arguments import (
    CONFIDENCE,
    is_number,
    require_confidence,
    require_count,
    require_number,
)
from calibrant._format import decimals
from calibrant.data.arrays import categories, numbers, require_each, same_length
from calibrant.data.rows import CENSORED, Rows, as_rows, require_same_index, require_same_index_in
from calibrant.errors import CalibrantWarning, InputError, TooFewRows, show_value
from calibrant.inference.quantiles import exact_binomial
from calibrant.measures.result_record import Record
from calibrant.recalibration.spline import SplineRecalibrator

__all__ = ["HorizonRisk", "at_horizon", "observed_expected"]

Floats = NDArray[np.float64]

LARGE_WEIGHT = 20.0
"""One subject that stands for more than twenty: fewer than 5% of its peers were followed as long."""

KNOTS = 3
"""Of the spline of the integrated calibration index, as Austin, Harrell & van Klaveren (2020) have it."""


def at_horizon(
    time: Any,
    event: Any,
    risk: Any,
    *,
    horizon: float,
    cause: int = 1,
    strata: Any = None,
    data: Any = None,
    max_weight: float = LARGE_WEIGHT,
) -> Rows:
    """Outcomes by a horizon with inverse-probability-of-censoring weights.

    Parameters
    ----------
    time : array or name of a column
        Follow-up of each subject, above 0.
    event : array or name
        0 where the subject was censored; otherwise the cause of the event (1 where there is only one).
    risk : array or name
        Predicted probability of the event by the horizon.
    horizon : float
        In the unit of `time`; at most the longest follow-up.
    cause : int
        The event that `risk` predicts; other causes by the horizon count as "not this one".
    strata : array or name, optional
        Groups whose censoring differs: G is estimated in each.
    data : frame or mapping, optional
        Where the named columns are.
    max_weight : float
        A warning counts the weights above this.

    Returns
    -------
    Rows
        Subjects whose outcome is known, for `assess`, `reliability_diagram`, `report`, `evaluate` and, as
        {name: rows}, `compare`; a map is fitted to their `p`, `y` and `weight`. `dropped` counts those that
        were censored before. A `cluster` beside them names every subject.

    Notes
    -----
    Test and interval treat the weights as known, which is conservative: estimating G takes variance out of
    every mean Σ w g(f) (f - y), whatever the function g (Robins, Rotnitzky & Zhao 1994), and they are made of
    such means. `observed_expected` has the smaller variance.

    Examples
    --------
    >>> rows = at_horizon([1, 2, 3, 4], [1, 0, 1, 0], [0.5, 0.4, 0.3, 0.2], horizon=3)
    >>> rows.y, rows.weight
    (array([1., 1., 0.]), array([1. , 1.5, 1.5]))
    """
    require_number("max_weight", max_weight, 0.0)
    sample = _sample(time, event, risk, strata, data, horizon, cause)
    known = sample.weight > 0
    large = int(np.sum(sample.weight > max_weight))
    if large:
        warnings.warn(
            CalibrantWarning(
                f"{large} of {known.sum()} weights are above {max_weight:g} (the largest is "
                f"{sample.weight.max():.3g}): few were followed to the horizon, and the result rests on them."
            ),
            stacklevel=2,
        )
    rows = as_rows(sample.outcome[known], sample.risk[known], sample_weight=sample.weight[known])
    if rows.n == sample.n:
        return rows
    return replace(rows, dropped={CENSORED: sample.n - rows.n}, kept=np.flatnonzero(known))


@dataclass(frozen=True, repr=False)
class HorizonRisk(Record):
    """Observed and expected risk by a horizon.

    Attributes
    ----------
    observed : float
        Risk by the horizon.
    estimator : str
        Of that risk: "Kaplan–Meier", or with several causes "Aalen–Johansen".
    expected : float
        Mean predicted risk of all subjects, censored ones too.
    ratio, low, high : float
        Observed / expected with its interval (complementary log-log).
    ici : float
        Integrated calibration index: mean distance of the predicted risks from a natural cubic spline of the
        weighted outcomes with three knots (Austin, Harrell & van Klaveren 2020). NaN where the known
        outcomes are alike, or fewer than three.
    """

    observed: float
    expected: float
    ratio: float
    low: float
    high: float
    ici: float
    confidence: float
    estimator: str = "Kaplan–Meier"

    @property
    def miscalibrated(self) -> bool:
        """True where the interval of the ratio leaves 1."""
        return not self.low <= 1.0 <= self.high

    @property
    def verdict(self) -> str:
        """The ratio in words: whether its interval leaves 1."""
        if self.low > 1.0:
            return "predicted risks are too low on average"
        if self.high < 1.0:
            return "predicted risks are too high on average"
        return "no deviation of the mean risk detected"

    def __str__(self) -> str:
        return (
            f"observed {self.observed:.4f}, expected {self.expected:.4f}, ratio {self.ratio:.3f} "
            f"({self.low:.3f} to {self.high:.3f}), ICI {self.ici:.4f}"
        )

    def rows(self) -> list[list[str]]:
        """A table of text, header first."""
        interval = f"{decimals(self.low)} to {decimals(self.high)}"
        return [
            ["", "value", "interval"],
            [f"observed risk ({self.estimator})", decimals(self.observed), ""],
            ["mean predicted risk", decimals(self.expected), ""],
            ["observed / expected", decimals(self.ratio), interval],
            ["integrated calibration index", decimals(self.ici), ""],
        ]

    def to_dict(self) -> dict[str, Any]:
        """Verdict and fields, for JSON."""
        return {"verdict": self.verdict, **super().to_dict()}


def observed_expected(
    time: Any,
    event: Any,
    risk: Any,
    *,
    horizon: float,
    cause: int = 1,
    strata: Any = None,
    data: Any = None,
    confidence: float = CONFIDENCE,
) -> HorizonRisk:
    """Observed risk (Kaplan-Meier, or Aalen-Johansen with several causes) over mean predicted risk.

    The variance is that of the influence function of the weighted mean, in which the estimated censoring
    distribution has its part.

    Examples
    --------
    >>> print(observed_expected([1, 2, 3, 4] * 25, [1, 0, 1, 0] * 25, [0.6] * 100, horizon=3))
    observed 0.6250, expected 0.6000, ratio 1.042 (0.855 to 1.229), ICI 0.0250
    """
    require_confidence(confidence)
    sample = _sample(time, event, risk, strata, data, horizon, cause)
    share = sample.weight * sample.outcome
    observed, expected = float(share.mean()), float(sample.risk.mean())
    if expected <= 0.0:
        raise InputError("`risk` must not be 0 everywhere.", argument="risk")
    influence = share - observed + sample.censoring_influence(share)
    se = float(np.sqrt(np.sum(influence**2))) / sample.n
    if 0.0 < observed < 1.0:
        survival = 1.0 - observed
        half = norm.ppf(0.5 + 0.5 * confidence) * se / (survival * abs(np.log(survival)))
        low, high = (float(1.0 - survival ** np.exp(sign * half)) for sign in (-1.0, 1.0))
    else:  # all alike: the exact interval of those whose outcome is known
        known = float(np.sum(sample.weight > 0))
        low, high = map(float, exact_binomial(observed * known, known, confidence))
    return HorizonRisk(
        observed=observed,
        expected=expected,
        ratio=observed / expected,
        low=low / expected,
        high=high / expected,
        ici=_integrated_index(sample),
        confidence=confidence,
        estimator="Aalen–Johansen" if sample.several_causes else "Kaplan–Meier",
    )


def _integrated_index(sample: _Sample) -> float:
    """Mean distance of all predicted risks from a spline through the weighted outcomes."""
    known = sample.weight > 0
    p, y, weight = sample.risk[known], sample.outcome[known], sample.weight[known]
    if np.ptp(y) == 0.0 or y.size < KNOTS:
        return float("nan")
    curve = SplineRecalibrator(n_knots=KNOTS).fit(p, y, weight)
    return float(np.abs(curve.transform(sample.risk) - sample.risk).mean())


@dataclass(frozen=True)
class _Sample:
    """Outcomes by the horizon and weights 1 / G(t-), 0 where a subject was censored before."""

    time: Floats
    censored: NDArray[np.bool_]
    outcome: Floats
    risk: Floats
    weight: Floats
    stratum: NDArray[np.int64]
    horizon: float
    several_causes: bool

    @property
    def n(self) -> int:
        return self.time.size

    def censoring_influence(self, share: Floats) -> Floats:
        """Influence of the estimated censoring distribution on the mean of `share`."""
        total = np.zeros(self.n)
        for stratum in np.unique(self.stratum):
            rows = np.flatnonzero(self.stratum == stratum)
            order = rows[np.argsort(self.time[rows], kind="stable")]
            times, first = np.unique(self.time[order], return_index=True)
            at_risk = order.size - first
            censored = np.add.reduceat(self.censored[order].astype(float), first)
            left = np.append(np.cumsum(share[order][::-1])[::-1], 0.0)
            after = left[np.append(first[1:], order.size)]  # of those followed longer
            slope = np.where(times <= self.horizon, after / at_risk, 0.0)
            compensator = np.cumsum(slope * censored / at_risk)
            place = np.searchsorted(times, self.time[order])
            total[order] = self.censored[order] * slope[place] - compensator[place]
        return total


def _sample(
    time: Any, event: Any, risk: Any, strata: Any, data: Any, horizon: float, cause: int
) -> _Sample:
    require_same_index(time=time, event=event, risk=risk, strata=strata)
    require_same_index_in(data, time, event, risk, strata)
    times, events, risks = (
        numbers(value, name, data)
        for value, name in ((time, "time"), (event, "event"), (risk, "risk"))
    )
    same_length(time=times, event=events, risk=risks)
    require_each("time", times, times > 0, "be above 0")
    require_count("cause", cause)
    if not (is_number(horizon) and 0 < horizon <= times.max()):
        raise InputError(
            f"`horizon` must be above 0 and at most the longest follow-up, {times.max():g}; it is "
            f"{show_value(horizon)}.",
            argument="horizon",
            hint="Nothing is known of what happens after the last observed time.",
        )
    if not np.any(events != 0):
        raise TooFewRows(
            "`event` is 0 everywhere: every subject was censored.",
            argument="event",
            hint="Pass 0 for censored subjects and 1 (or the cause) for events.",
        )
    known = (events >= 0) & (events == np.floor(events))
    require_each("event", events, known, "be 0, 1 or the number of a cause")
    require_each("risk", risks, (risks >= 0) & (risks <= 1), "be between 0 and 1")
    column = np.zeros(times.size) if strata is None else categories(strata, "strata", data)
    same_length(time=times, strata=column)
    texts = column.astype(str) if column.dtype.kind == "O" else column
    stratum = np.unique(texts, return_inverse=True)[1].astype(np.int64)
    happened = (events != 0) & (times <= horizon)
    survived = ~happened & (times >= horizon)
    left = np.ones(times.size)
    for one, name in zip(*np.unique(stratum, return_index=True), strict=True):
        rows = stratum == one
        last = times[rows].max()
        if last < horizon and np.any(rows & (times == last) & (events == 0)):
            raise InputError(
                f"`strata` must each be followed to the horizon, {horizon:g}; the last of "
                f"{show_value(column[name])} was censored at {last:g}.",
                argument="strata",
                hint="Pool such strata with others.",
            )
        left[rows] = _still_followed(
            times[rows], events[rows] == 0, np.minimum(times[rows], horizon)
        )
    with np.errstate(divide="ignore"):
        weight = np.where(happened | survived, 1.0 / left, 0.0)
    outcome = np.where(happened & (events == cause), 1.0, 0.0)
    if not outcome.any():
        warnings.warn(
            CalibrantWarning(f"No event of cause {cause} was observed by {horizon:g}."),
            stacklevel=3,
        )
    several = bool(np.any((events != 0) & (events != cause)))
    return _Sample(times, events == 0, outcome, risks, weight, stratum, float(horizon), several)


def _still_followed(time: Floats, censored: NDArray[np.bool_], at: Floats) -> Floats:
    """Kaplan-Meier estimate of P(C >= t) at each `at`; of subjects that tie, events come first."""
    times, place = np.unique(time, return_inverse=True)
    ends = np.bincount(place, censored, times.size)
    events = np.bincount(place, ~censored, times.size)
    at_risk = time.size - np.append(0, np.cumsum(ends + events)[:-1]) - events
    survival = np.cumprod(1.0 - ends / np.maximum(at_risk, 1.0))
    return np.append(1.0, survival)[np.searchsorted(times, at, side="left")]
