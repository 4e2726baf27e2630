"""The area under the ROC curve with DeLong's interval, and Gini's coefficient."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.interval import normal_quantile
from calibrant.inference.profile import Quantity, Sample, Unavailable

__all__ = ["auc", "gini"]

Floats = NDArray[np.float64]

DELONG = "DeLong, DeLong and Clarke-Pearson 1988; Sun and Xu 2014"
CLUSTERED = "Obuchowski 1997"


def auc(sample: Sample) -> Quantity:
    """The chance that an event has the higher prediction than another row, ties half: one sort.

    From a sketch, rows of one cell count as tied, and the bound is what that can change.
    """
    atoms = sample.atoms
    negative, positive = atoms.mass.T
    without, having = float(negative.sum()), float(positive.sum())
    if not (without > 0.0 and having > 0.0):
        raise Unavailable("the AUC needs both outcomes")
    below = np.cumsum(negative) - 0.5 * negative
    above = having - np.cumsum(positive) + 0.5 * positive
    of_events, of_others = below / without, above / having
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
        source = DELONG
    elif sample.pairs is None:
        return Quantity(
            "AUC",
            value,
            bound=bound,
            source=DELONG,
            note="no interval: with weights or clusters it needs rows",
        )
    else:
        error, quantile = _by_influence(sample, of_events, of_others, value, having, without)
        source = CLUSTERED if sample.dependent else DELONG
    low, high = (
        min(max(value + sign * (quantile * error + bound), 0.0), 1.0) for sign in (-1.0, 1.0)
    )
    quantity = Quantity("AUC", value, low, high, standard_error=error, bound=bound, source=source)
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


def _by_influence(
    sample: Sample,
    of_events: Floats,
    of_others: Floats,
    value: float,
    having: float,
    without: float,
) -> tuple[float, float]:
    """The standard error with weights or clusters, and the quantile that goes with it."""
    pairs = sample.rows("an interval with weights or clusters")
    at = np.minimum(np.searchsorted(sample.atoms.p, pairs.p), sample.atoms.p.size - 1)
    weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
    influence = weight * pairs.y * (of_events[at] - value) / having
    influence += weight * (1.0 - pairs.y) * (of_others[at] - value) / without
    error, degrees = sample.standard_error(influence)
    return error, normal_quantile(0.5 + 0.5 * sample.confidence, degrees)


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
