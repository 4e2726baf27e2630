"""Calibration of quantile forecasts: coverage, one test over all levels, and the parts of the pinball loss.

A forecast q of level t is calibrated if P(Y <= q) = t. Under calibration of all levels the outcome falls
between two neighbouring quantiles with the difference of their levels as its probability, so that the counts
between them are multinomial: the null distribution of every coverage at once is exact.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from calibrant._arguments import CONFIDENCE, is_number, require_confidence, require_share
from calibrant._format import aligned, decimals, p_equation
from calibrant.data.arrays import numbers, same_length
from calibrant.data.rows import require_same_index, require_same_index_in
from calibrant.errors import InputError, show_value
from calibrant.inference.assessment import MISCALIBRATED, UNDETECTED
from calibrant.measures.result_record import Record, frame_of

__all__ = [
    "PinballLoss",
    "QuantileAssessment",
    "QuantileLevel",
    "assess",
    "decompose",
    "isotonic_quantile",
]

Floats = NDArray[np.float64]

DRAWS = 4999
"""Null samples: p-values are resolved to 1/5000."""


@dataclass(frozen=True)
class PinballLoss:
    """Mean pinball loss = miscalibration - discrimination + uncertainty (Gneiting et al. 2023)."""

    value: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, eq=False)
class QuantileLevel:
    """Coverage and pinball loss of the forecasts of one level.

    Attributes
    ----------
    level : float
        Probability with which the forecast should not be exceeded.
    coverage, below : float
        Share of outcomes at or below the forecast, and below it. They differ where outcomes equal it.
    low, high : float
        Wilson's interval, from its lower end for `below` to its upper end for `coverage`.
    pinball : PinballLoss
        Mean loss and its parts.
    forecast, recalibrated : array
        Isotonic quantile regression of the outcome on the forecast (pool adjacent violators): the ends of its
        steps. Where the forecasts are calibrated given their value, both are equal.
    """

    level: float
    coverage: float
    below: float
    low: float
    high: float
    pinball: PinballLoss
    forecast: Floats
    recalibrated: Floats

    @property
    def deviation(self) -> float:
        """Distance of the level from what the forecast covers: the range from `below` to `coverage`."""
        return max(self.below - self.level, self.level - self.coverage, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class QuantileAssessment(Record):
    """Coverage of quantile forecasts at each level, with one test of all levels.

    Attributes
    ----------
    levels : tuple of QuantileLevel
        In increasing order.
    p_value : float
        Of "every level has its coverage": the largest standardised deviation against its null distribution.
    n : int
        Number of outcomes.
    confidence : float
        Of each level's interval (Wilson).
    """

    levels: tuple[QuantileLevel, ...]
    p_value: float
    n: int
    confidence: float

    @property
    def miscalibrated(self) -> bool:
        """Rejection of calibration at the level 1 - confidence."""
        return self.p_value <= 1.0 - self.confidence + 1e-12

    @property
    def verdict(self) -> str:
        """The result in one line."""
        worst = max(self.levels, key=lambda one: one.deviation)
        line = MISCALIBRATED if self.miscalibrated else UNDETECTED
        return (
            f"{line}: {p_equation(self.p_value)}; largest deviation at level {worst.level:g}, where "
            f"coverage is {_with_ties(worst, '{:.3g}'.format)}"
        )

    def __repr__(self) -> str:
        return (
            f"QuantileAssessment({len(self.levels)} levels, {p_equation(self.p_value)}, n={self.n})"
        )

    def __str__(self) -> str:
        return f"{self.verdict}\n\n{aligned(self.rows())}"

    def rows(self) -> list[list[str]]:
        """The levels as a table of text, header first."""
        header = ["level", "coverage", "interval", "pinball loss", "miscalibration"]
        return [
            header,
            *(
                [
                    f"{one.level:g}",
                    _with_ties(one, decimals),
                    f"{decimals(one.low)} to {decimals(one.high)}",
                    f"{one.pinball.value:.4g}",
                    f"{one.pinball.miscalibration:.4g}",
                ]
                for one in self.levels
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"verdict": self.verdict, **super().to_dict()}

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each level."""
        rows = [
            {name: getattr(one, name) for name in ("level", "coverage", "below", "low", "high")}
            | {f"pinball_{name}": value for name, value in vars(one.pinball).items()}
            for one in self.levels
        ]
        return frame_of(rows, backend)


def assess(
    y: Any, forecasts: Mapping[float, Any], *, data: Any = None, confidence: float = CONFIDENCE
) -> QuantileAssessment:
    """Coverage of quantile forecasts with intervals, one test over all levels, and pinball losses.

    Parameters
    ----------
    y : array or name of a column
        Outcomes.
    forecasts : mapping
        Forecasts (arrays or names of columns) by level, such as {0.1: low, 0.5: median, 0.9: high}.
    data : frame or mapping, optional
        Where the named columns are.
    confidence : float
        Of the intervals; the test's level is 1 - `confidence`.

    Notes
    -----
    Where outcomes equal the forecast, a level counts as covered if it lies between the shares below and at or
    below the forecast, as it does for a quantile of a distribution with atoms.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> found = assess(y, {0.1: np.full(500, -1.2816), 0.9: np.full(500, 1.2816)})
    >>> found.miscalibrated, [round(one.coverage, 3) for one in found.levels]
    (False, [0.096, 0.894])
    """
    require_confidence(confidence)
    outcome = numbers(y, "y", data)
    levels, quantiles = _quantiles(y, outcome, forecasts, data)
    below = (outcome < quantiles).sum(axis=1)
    at_most = (outcome <= quantiles).sum(axis=1)
    n = outcome.size
    counted = np.clip(levels * n, below, at_most)  # the nearest count to the expected one
    counted = np.where(below == at_most, at_most, counted)
    shown = []
    each = zip(levels.tolist(), quantiles, below.tolist(), at_most.tolist(), strict=True)
    for level, quantile, under, within in each:
        low = binomtest(under, n).proportion_ci(confidence, method="wilson").low
        high = binomtest(within, n).proportion_ci(confidence, method="wilson").high
        fitted = isotonic_quantile(outcome, quantile, level)
        loss = _parts(outcome, quantile, fitted, level)
        steps = _steps(quantile, fitted)
        shown.append(QuantileLevel(level, within / n, under / n, low, high, loss, *steps))
    return QuantileAssessment(tuple(shown), _p_value(levels, counted, n), n, confidence)


def _with_ties(one: QuantileLevel, text: Callable[[float], str]) -> str:
    """Coverage as text, with the share below the forecast where outcomes equal it."""
    ties = f" ({text(one.below)} below)" if one.below < one.coverage else ""
    return text(one.coverage) + ties


def _steps(forecast: Floats, fitted: Floats) -> tuple[Floats, Floats]:
    """Forecasts at which an increasing step function of them starts or ends a step, and its values."""
    x, first = np.unique(forecast, return_index=True)
    y = fitted[first]
    rises = np.flatnonzero(np.diff(y))
    ends = np.unique([0, *rises, *(rises + 1), x.size - 1])
    return x[ends], y[ends]


def _quantiles(y: Any, outcome: Floats, forecasts: Any, data: Any) -> tuple[Floats, Floats]:
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InputError(
            "`forecasts` must map levels to forecasts.",
            argument="forecasts",
            hint="Pass {0.1: low, 0.5: median, 0.9: high}.",
        )
    for level in forecasts:
        if not (is_number(level) and 0.0 < level < 1.0):
            raise InputError(
                f"`forecasts` must have levels between 0 and 1; one is {show_value(level)}.",
                argument="forecasts",
            )
    require_same_index(y=y, **{f"forecasts[{level!r}]": one for level, one in forecasts.items()})
    require_same_index_in(data, y, *forecasts.values())
    levels = np.array(sorted(forecasts))
    columns = [numbers(forecasts[level], "forecasts", data) for level in levels]
    for column in columns:
        same_length(y=outcome, forecasts=column)
    quantiles = np.array(columns)
    crossed = np.flatnonzero((np.diff(quantiles, axis=0) < 0).any(axis=0))
    if crossed.size:
        row = int(crossed[0])
        raise InputError(
            f"`forecasts` must not cross; in row {row} a higher level has a lower quantile "
            f"({crossed.size} of {outcome.size} rows do).",
            argument="forecasts",
            row=row,
            hint="Sort them in each row: np.sort(np.column_stack(forecasts), axis=1).",
        )
    return levels, quantiles


def _p_value(levels: Floats, counted: Floats, n: int) -> float:
    """P-value of the largest standardised deviation; beyond all draws, Bonferroni's bound."""
    sd = np.sqrt(n * levels * (1.0 - levels))
    largest = np.max(np.abs(counted - n * levels) / sd)
    cells = np.diff(levels, prepend=0.0, append=1.0)
    draws = np.random.default_rng(0).multinomial(n, cells, DRAWS)
    null = np.abs(np.cumsum(draws[:, :-1], axis=1) - n * levels) / sd
    beyond = int(np.sum(null.max(axis=1) >= largest - 1e-12))
    if beyond:
        return (1 + beyond) / (DRAWS + 1)
    tails = np.minimum(binom.cdf(counted, n, levels), binom.sf(counted - 1, n, levels))
    return float(min(1 / (DRAWS + 1), 2.0 * levels.size * tails.min()))


def _checked(outcome: Any, forecast: Any, level: Any) -> tuple[Floats, Floats, float]:
    outcome, forecast = numbers(outcome, "outcome"), numbers(forecast, "forecast")
    same_length(outcome=outcome, forecast=forecast)
    return outcome, forecast, require_share("level", level)


def pinball_loss(outcome: Floats, forecast: Floats, level: float) -> float:
    """Mean pinball loss, (1{y <= q} - level)(q - y)."""
    return float(np.mean((np.where(outcome <= forecast, 1.0, 0.0) - level) * (forecast - outcome)))


def decompose(outcome: Floats, forecast: Floats, level: float) -> PinballLoss:
    """Pinball loss and its parts by isotonic quantile regression (Gneiting et al. 2023).

    Examples
    --------
    >>> loss = decompose(np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.0, 1.0, 1.0, 2.0]), 0.5)
    >>> loss.value, loss.miscalibration, loss.discrimination, loss.uncertainty
    (0.5, 0.375, 0.625, 0.75)
    """
    outcome, forecast, level = _checked(outcome, forecast, level)
    return _parts(outcome, forecast, isotonic_quantile(outcome, forecast, level), level)


def _parts(outcome: Floats, forecast: Floats, fitted: Floats, level: float) -> PinballLoss:
    value = pinball_loss(outcome, forecast, level)
    recalibrated = pinball_loss(outcome, fitted, level)
    marginal = np.full(outcome.size, np.quantile(outcome, level, method="inverted_cdf"))
    uncertainty = pinball_loss(outcome, marginal, level)
    return PinballLoss(value, value - recalibrated, uncertainty - recalibrated, uncertainty)


def isotonic_quantile(outcome: Floats, forecast: Floats, level: float) -> Floats:
    """Isotonic quantile regression on the forecast: the increasing map of least pinball loss.

    The loss of the first i forecasts, as a function of the last fitted value, is convex and piecewise linear;
    its break points are kept in a heap (slope trick), O(n log n).
    """
    outcome, forecast, level = _checked(outcome, forecast, level)
    order = np.argsort(forecast, kind="stable")
    _, first = np.unique(forecast[order], return_index=True)
    ends = np.append(first[1:], order.size)
    heap: list[tuple[float, float]] = []
    minima = np.empty(first.size)
    for k, (start, end) in enumerate(zip(first, ends, strict=True)):
        for value in outcome[order[start:end]]:
            heapq.heappush(heap, (-float(value), 1.0))
        surplus = (end - start) * (1.0 - level)
        while True:
            value, mass = heap[0]
            if mass > surplus + 1e-9 * end or len(heap) == 1:
                heapq.heapreplace(heap, (value, mass - surplus))
                break
            heapq.heappop(heap)
            surplus -= mass
        minima[k] = -heap[0][0]
    fitted = np.minimum.accumulate(minima[::-1])[::-1]
    result = np.empty(outcome.size)
    result[order] = np.repeat(fitted, ends - first)
    return result
