"""The area under the ROC curve with DeLong's interval, and Gini's coefficient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.interval import normal_quantile
from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.profiles.scores import error_of_cells

__all__ = ["auc", "gini"]

Floats = NDArray[np.float64]

DELONG = "DeLong, DeLong and Clarke-Pearson 1988; Sun and Xu 2014"
CLUSTERED = "Obuchowski 1997"
FEW = 30
NOTE = (
    "fewer than {} {} rarer outcome: the interval takes the larger of DeLong's variance and that of Hanley "
    "and McNeil 1982"
)


def auc(sample: Sample) -> Quantity:
    """The chance that an event has the higher prediction than another row, ties half: one sort.

    From a sketch, rows of one cell count as tied, and the bound is what that can change.
    """
    atoms = sample.atoms
    negative, positive = atoms.mass.T
    without, having = float(negative.sum()), float(positive.sum())
    if not (without > 0.0 and having > 0.0):
        raise Unavailable("the AUC needs both outcomes")
    of_events, of_others = _placed(negative, positive)
    value = float(positive @ of_events) / having
    bound = 0.0
    if atoms.position_error > 0.0:
        bound = 0.5 * float(positive @ negative) / (having * without)
    if _plain(sample):
        spread = [
            float(mass @ (placed - value) ** 2) / (total * max(total - 1.0, 1.0))
            for mass, placed, total in (
                (positive, of_events, having),
                (negative, of_others, without),
            )
        ]
        error, quantile = sqrt(sum(spread)), normal_quantile(0.5 + 0.5 * sample.confidence)
    else:
        error, degrees = _by_influence(sample, of_events, of_others, value, having / without)
        quantile = normal_quantile(0.5 + 0.5 * sample.confidence, degrees)
    units = _units(sample)
    reach = quantile * error
    low, high, note = value - reach, value + reach, ""
    if min(units) < FEW:
        low, high = _with_few(value, error, quantile, units)
        note = NOTE.format(FEW, "clusters with the" if sample.dependent else "rows of the")
    low, high = max(low - bound, 0.0), min(high + bound, 1.0)
    source = CLUSTERED if sample.dependent else DELONG
    quantity = Quantity(
        "AUC", value, low, high, standard_error=error, bound=bound, source=source, note=note
    )
    return _at_an_end(sample, quantity, min(having, without)) if error == 0.0 else quantity


def gini(sample: Sample) -> Quantity:
    """Twice the AUC less 1: the accuracy ratio of a bank's validator."""
    area = sample.once(auc)
    return replace(
        area,
        name="Gini",
        value=2.0 * area.value - 1.0,
        low=2.0 * area.low - 1.0,
        high=2.0 * area.high - 1.0,
        standard_error=2.0 * area.standard_error,
        bound=2.0 * area.bound,
    )


def _plain(sample: Sample) -> bool:
    weighted = sample.sketch.weighted if sample.pairs is None else sample.pairs.fractional
    return not weighted and not sample.dependent


def _placed(negative: Floats, positive: Floats) -> tuple[Floats, Floats]:
    """The share of the other outcome below an event, and above another row, at each prediction."""
    below = np.cumsum(negative) - 0.5 * negative
    above = positive.sum() - np.cumsum(positive) + 0.5 * positive
    return below / negative.sum(), above / positive.sum()


def _by_influence(
    sample: Sample, of_events: Floats, of_others: Floats, value: float, odds: float
) -> tuple[float, float]:
    """The standard error with weights or clusters, and its degrees of freedom.

    `odds` are those of the event in the whole sample.
    """
    event, other = 1.0 + 1.0 / odds, 1.0 + odds
    if sample.pairs is None:
        used = sample.sketch.weights > 0.0
        placed = _placed(*sample.sketch.weights.T)
        deviations = np.stack([other * (placed[1] - value), event * (placed[0] - value)], axis=1)
        return error_of_cells(sample, deviations[used])
    pairs = sample.pairs
    at = np.minimum(np.searchsorted(sample.atoms.p, pairs.p), sample.atoms.p.size - 1)
    influence = event * pairs.y * (of_events[at] - value)
    influence += other * (1.0 - pairs.y) * (of_others[at] - value)
    return sample.standard_error(sample.weights * influence)


def _units(sample: Sample) -> tuple[float, float]:
    """The effective number of rows, or of clusters, with each outcome."""
    if sample.pairs is not None:
        weights, y = sample.weights, sample.pairs.y
        shares = [sample.together(weights * part) for part in (1.0 - y, y)]
    elif sample.parts:
        shares = list(np.array([part.weights.sum(axis=0) for part in sample.parts]).T)
    else:
        sums = sample.sketch.weights.sum(axis=0)
        none, one = sums**2 / sample.sketch.squared_weights.sum(axis=0)
        return float(none), float(one)
    none, one = (float(share.sum() ** 2 / (share @ share)) for share in shares)
    return none, one


def _with_few(
    value: float, error: float, quantile: float, units: tuple[float, float]
) -> tuple[float, float]:
    """The AUCs from which the one seen is no further than quantile × standard error there.

    With few rows of one outcome DeLong's variance is too often too small. Hanley and McNeil's depends on
    the AUC alone, for exponential predictions; it is taken with the rarer outcome as the more variable
    one. The larger of both counts.
    """
    fewer, more = sorted(units)

    def beyond(area: float) -> float:
        one = area / (2.0 - area) - area**2
        other = 2.0 * area**2 / (1.0 + area) - area**2
        most, least = max(one, other), min(one, other)
        variance = area * (1.0 - area) + (fewer - 1.0) * least + (more - 1.0) * most
        return abs(value - area) - quantile * sqrt(max(variance / (fewer * more), error**2))

    return _last_within(beyond, value, 0.0), _last_within(beyond, value, 1.0)


def _last_within(beyond: Callable[[float], float], start: float, end: float) -> float:
    """The point from start to end where a function passes 0; the end where it does not."""
    if start == end or beyond(end) <= 0.0:
        return end
    inside, outside = start, end
    for _ in range(50):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if beyond(middle) <= 0.0 else (inside, middle)
    return outside


def _at_an_end(sample: Sample, quantity: Quantity, fewer: float) -> Quantity:
    """An AUC of 1 or 0 leaves DeLong's interval no width.

    With m disjoint pairs, all of them are in order with probability AUC^m: that gives an end.
    """
    if not _plain(sample) or quantity.value not in (0.0, 1.0):
        return quantity
    end = (0.5 * (1.0 - sample.confidence)) ** (1.0 / fewer)
    low, high = (end, 1.0) if quantity.value == 1.0 else (0.0, 1.0 - end)
    note = "DeLong's interval has no width here; this one is exact for disjoint pairs of rows"
    return replace(quantity, low=low, high=high, note=note)
