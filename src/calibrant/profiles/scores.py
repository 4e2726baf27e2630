"""Mean scores with intervals: Brier, scaled Brier (IPA), log loss; and Spiegelhalter's z."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference.interval import normal_quantile
from calibrant.inference.null_noise import cross_weights
from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.inference.quantiles import skewed_quantiles, skewness
from calibrant.profiles.cells import UNIT, cells_of

__all__ = [
    "brier_score",
    "error_of_cells",
    "log_loss",
    "mean_of",
    "scaled_brier",
    "shared_brier",
    "spiegelhalter",
    "squared_error",
]

Floats = NDArray[np.float64]

BRIER = "Brier 1950"
GOOD = "Good 1952"
IPA = "Kattan and Gerds 2018"
ONE_OUTCOME = "only one outcome was seen: the interval knows nothing of the other's"
SPIEGELHALTER = "Spiegelhalter 1986"


def mean_of(
    sample: Sample,
    name: str,
    value: Callable[[Floats, Floats], Floats],
    *,
    slope: float,
    bend: float,
    **known: Any,
) -> Quantity:
    """The mean of value(p, y) over the rows; from a sketch, with a bound.

    `slope` and `bend` bound the first and the second derivative in p.
    """
    if sample.pairs is not None:
        return sample.mean(name, value(sample.pairs.p, sample.pairs.y), **known)
    cells = sample.once(cells_of)
    bound = cells.error_of_sum(slope, bend)
    return mean_of_cells(sample, name, value(cells.p, cells.label), bound, **known)


def mean_of_cells(
    sample: Sample, name: str, values: Floats, bound: float, **known: Any
) -> Quantity:
    """The mean of a value for each entry of the cells, its interval wider by the bound."""
    cells = sample.once(cells_of)
    share = cells.weight / cells.total
    value = float(share @ values)
    error, degrees = error_of_cells(sample, values - value)
    skew = _skewness_of_cells(sample, values - value)
    below, above = skewed_quantiles(sample.confidence, degrees, skew)
    low, high = value - above * error - bound, value - below * error + bound
    return Quantity(name, value, low, high, standard_error=error, bound=bound, **known)


def error_of_cells(sample: Sample, deviations: Floats) -> tuple[float, float]:
    """The standard error of a mean of deviations, one for each entry of the cells."""
    sketch, cells = sample.sketch, sample.once(cells_of)
    total = cells.total
    if not sample.parts:
        units = min(total**2 / float(cells.squared.sum()), float(sketch.n))
        variance = float(cells.squared @ deviations**2) / total**2
        if sketch.weighted:  # a soft row has both outcomes
            whole = _of_sketch(sketch, deviations)
            variance += 2.0 * float(cross_weights(sketch) @ whole.prod(axis=1)) / total**2
            variance = max(variance, 0.0)
        return sqrt(variance * units / max(units - 1.0, 1e-300)), units - 1.0
    sums = _sums_of_parts(sample, deviations)
    sizes = [part.total_weight / total for part in sample.parts]
    many, units = len(sums), 1.0 / float(np.square(sizes).sum())
    return sqrt(float(np.square(sums).sum()) * many / (many - 1.0)), units - 1.0


def _sums_of_parts(sample: Sample, deviations: Floats) -> Floats:
    """What each cluster adds to the mean of deviations, one for each entry of the cells."""
    sketch = sample.sketch
    whole = _of_sketch(sketch, deviations)
    cells = [np.searchsorted(sketch.cells, part.cells) for part in sample.parts]
    sums = [
        float((part.weights * whole[at]).sum())
        for part, at in zip(sample.parts, cells, strict=True)
    ]
    return np.array(sums) / sketch.total_weight


def _of_sketch(sketch: Sketch, values: Floats) -> Floats:
    """[cell, outcome], 0 where a cell has none of an outcome."""
    whole = np.zeros(sketch.weights.shape)
    whole[sketch.weights > 0.0] = values
    return whole


def _skewness_of_cells(sample: Sample, deviations: Floats) -> float:
    """As `skewness`; rows of one cell and outcome are taken to weigh alike."""
    if sample.parts:
        return skewness(_sums_of_parts(sample, deviations))
    cells, squares = sample.once(cells_of), deviations**2
    variance = float(cells.squared @ squares)
    cubes = float((cells.squared**2 / cells.weight * deviations) @ squares)
    return cubes / variance**1.5 if variance > 0.0 else 0.0


def brier_score(sample: Sample) -> Quantity:
    """Mean of (p - y)²."""
    note = _one_outcome(sample)
    found = mean_of(
        sample, "Brier score", squared_error, slope=2.0, bend=2.0, source=BRIER, note=note
    )
    return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))


def _one_outcome(sample: Sample) -> str:
    return "" if 0.0 < sample.assessment.event_rate < 1.0 else ONE_OUTCOME


def squared_error(p: Floats, y: Floats) -> Floats:
    """(p - y)² of outcomes 0 and 1; a soft outcome is both, in its shares, as a sketch holds it."""
    return np.asarray(y * (1.0 - p) ** 2 + (1.0 - y) * p**2)


def shared_brier(sample: Sample) -> Quantity:
    """`brier_score`, computed once for all that need it."""
    return sample.once(brier_score)


def scaled_brier(sample: Sample) -> Quantity:
    """1 - Brier score / that of the event rate: the index of prediction accuracy."""
    rate = sample.assessment.event_rate
    if not 0.0 < rate < 1.0:
        raise Unavailable(
            "the scaled Brier score needs both outcomes", seen=round(rate), saying="all are {}"
        )
    brier = shared_brier(sample)
    least = rate * (1.0 - rate)

    def influence(p: Floats, y: Floats) -> Floats:
        up = squared_error(p, y) - brier.value
        return np.asarray(brier.value * (1.0 - 2.0 * rate) * (y - rate) / least**2 - up / least)

    if sample.pairs is not None:
        values = influence(sample.pairs.p, sample.pairs.y)
        error, degrees = sample.standard_error(sample.weights * values)
    else:
        cells = sample.once(cells_of)
        error, degrees = error_of_cells(sample, influence(cells.p, cells.label))
    value, bound = 1.0 - brier.value / least, brier.bound / least
    reach = normal_quantile(0.5 + 0.5 * sample.confidence, degrees) * error + bound
    return Quantity(
        "scaled Brier score (IPA)",
        value,
        value - reach,
        min(value + reach, 1.0),
        standard_error=error,
        bound=bound,
        source=IPA,
    )


def log_loss(sample: Sample) -> Quantity:
    """Mean of -log of the probability that was given to what happened."""
    if sample.pairs is None:
        return _log_loss_of_cells(sample)
    pairs = sample.pairs
    if pairs.form == "logit":
        z = np.asarray(pairs.raw_prob, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            losses = np.logaddexp(0.0, z) - np.where(pairs.y == 0.0, 0.0, pairs.y * z)
        losses = np.where(np.isnan(losses), np.where(pairs.y == 1.0, 0.0, inf), losses)
    else:
        from scipy.special import xlog1py, xlogy

        losses = -(xlogy(pairs.y, pairs.p) + xlog1py(1.0 - pairs.y, -pairs.p))
    failed = np.isinf(losses) & (sample.weights > 0.0)
    if failed.any():
        note = f"infinite: {int(failed.sum())} rows had probability 0 for what happened"
        return Quantity("log loss", inf, source=GOOD, note=note)
    return sample.mean(
        "log loss", np.where(np.isinf(losses), 0.0, losses), source=GOOD, note=_one_outcome(sample)
    )


def _log_loss_of_cells(sample: Sample) -> Quantity:
    """At the mean of a cell -log is least, and greatest where the rows sit at its ends."""
    cells, scale = sample.once(cells_of), sample.sketch.scale

    def loss(position: Floats) -> Floats:
        p = np.asarray(scale.prediction(position))
        return np.asarray(-np.log(np.where(cells.label > 0.0, p, 1.0 - p)))

    if not (scale.reflected or scale.logits_per_unit is not None):
        raise Unavailable("the log loss needs rows, or a sketch on the probability or logit scale")
    with np.errstate(divide="ignore", invalid="ignore"):
        width = cells.high - cells.low
        left = np.where(width > 0.0, (cells.high - cells.position) / width, 1.0)
        ends = [loss(cells.low), loss(cells.high)]
        most = sum(
            np.where(part > 0.0, part * end, 0.0)
            for part, end in zip((left, 1.0 - left), ends, strict=True)
        )
        least = np.maximum(loss(cells.position), 0.0)
        room = most - least
    share = cells.weight / cells.total
    bound = 0.5 * float(share @ room) if np.isfinite(room).all() else nan
    if not isfinite(bound):
        raise Unavailable(
            "the log loss needs rows: of this sketch, some lie so near 0 or 1 that theirs has no bound"
        )
    return mean_of_cells(
        sample,
        "log loss",
        0.5 * (least + most),
        bound + UNIT,
        source=GOOD,
        note=_one_outcome(sample),
    )


def spiegelhalter(sample: Sample) -> Quantity:
    """Σ(y - p)(1 - 2p) over its standard deviation under calibration, and the p-value.

    With weights or clusters the deviation is that of the sums seen, not p(1 - p).
    """

    def term(p: Floats, y: Floats) -> Floats:
        return np.asarray((y - p) * (1.0 - 2.0 * p))

    def variance(p: Floats, y: Floats) -> Floats:
        return np.asarray((1.0 - 2.0 * p) ** 2 * p * (1.0 - p))

    bound = 0.0
    if sample.pairs is None:
        cells = sample.once(cells_of)
        share = cells.weight / cells.total
        terms, spread = term(cells.p, cells.label), variance(cells.p, cells.label)
        mean = float(share @ terms)
        if sample.sketch.weighted or sample.parts:
            error = error_of_cells(sample, terms)[0]
        else:
            error = sqrt(float(share @ spread) / sample.sketch.n)
        top, below = cells.error_of_sum(3.0, 4.0), cells.error_of_sum(1.0, 10.0)
        if error > 0.0:
            bound = (top + abs(mean) * below / (2.0 * float(share @ spread))) / error
    else:
        pairs = sample.pairs
        terms = sample.weights * term(pairs.p, pairs.y)
        mean = float(terms.sum())
        if pairs.fractional or sample.dependent:
            error = sample.standard_error(terms)[0]
        else:
            error = sqrt(float(variance(pairs.p, pairs.y).sum())) / pairs.n
    if not error > 0.0:
        raise Unavailable("Spiegelhalter's z needs predictions other than 0, ½ and 1")
    value = mean / error
    from scipy.special import ndtr

    return Quantity(
        "Spiegelhalter's z",
        value,
        p_value=float(2.0 * ndtr(-abs(value))),
        bound=bound,
        source=SPIEGELHALTER,
    )
