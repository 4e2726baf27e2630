"""Brier score, scaled Brier score (IPA), log loss, Spiegelhalter's z, AUC and Gini coefficient."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.inference.quantiles import exact_binomial, normal_quantile

Floats = NDArray[np.float64]

ONE_OUTCOME = "only one outcome occurred: the interval knows nothing of the other"
DELONG = "DeLong, DeLong and Clarke-Pearson 1988; Sun and Xu 2014"
OBUCHOWSKI = "Obuchowski 1997"
FEW_EVENTS = 30
"""Rows of the rarer outcome below which DeLong's interval covers too little (docs/evidence/profiles.md)."""


def squared_error(p: Floats, y: Floats) -> Floats:
    """(p - y)² of outcomes 0 and 1; a soft outcome is both, in its shares."""
    return np.asarray(y * (1.0 - p) ** 2 + (1.0 - y) * p**2)


def event_rate(sample: Sample, name: str) -> Quantity:
    """Event rate, with its exact interval where rows are alike or all outcomes are."""
    rate = sample.mean(name, sample.y)
    if 0.0 < sample.points.base_rate < 1.0 and (sample.dependent or sample.fractional):
        return replace(rate, low=max(rate.low, 0.0), high=min(rate.high, 1.0))
    units = sample.units if sample.cluster is None else float(sample.cluster.max() + 1)
    low, high = exact_binomial(min(rate.value, 1.0) * units, units, sample.confidence)
    return replace(rate, low=float(low), high=float(high))


def _one_outcome(sample: Sample) -> str:
    return "" if 0.0 < sample.points.base_rate < 1.0 else ONE_OUTCOME


def _brier(sample: Sample) -> Quantity:
    errors = squared_error(sample.p, sample.y)
    score = sample.mean("Brier score", errors, source="Brier 1950", note=_one_outcome(sample))
    return replace(score, low=max(score.low, 0.0), high=min(score.high, 1.0))


def brier_score(sample: Sample) -> Quantity:
    """Mean of (p - y)²."""
    return sample.once(_brier)


def scaled_brier(sample: Sample) -> Quantity:
    """Index of prediction accuracy: 1 - Brier score / that of the event rate."""
    rate = sample.points.base_rate
    if not 0.0 < rate < 1.0:
        raise Unavailable(f"the scaled Brier score needs both outcomes; all are {round(rate)}")
    brier, least = brier_score(sample).value, rate * (1.0 - rate)
    influence = brier * (1.0 - 2.0 * rate) * (sample.y - rate) / least**2
    influence -= (squared_error(sample.p, sample.y) - brier) / least
    source = "Kattan and Gerds 2018"
    return skill_score(sample, "scaled Brier score (IPA)", 1.0 - brier / least, influence, source)


def skill_score(
    sample: Sample, name: str, value: float, influence: Floats, source: str
) -> Quantity:
    """Skill score with the interval of its influence function, at most 1."""
    error = sample.standard_error(influence)
    reach = sample.quantile * error
    high = min(value + reach, 1.0)
    return Quantity(name, value, value - reach, high, standard_error=error, source=source)


def log_loss(sample: Sample) -> Quantity:
    """Mean of -log of the probability of the outcome that occurred."""
    z, y = sample.log_odds, sample.y  # refused where a sketch does not know them
    with np.errstate(invalid="ignore"):  # an outcome that did not occur costs nothing
        losses = np.where(y > 0.0, y * np.logaddexp(0.0, -z), 0.0)
        losses += np.where(y < 1.0, (1.0 - y) * np.logaddexp(0.0, z), 0.0)
    failed = np.isinf(losses) & (sample.share > 0.0)
    if failed.any():
        rows = (
            failed.sum() if sample.rows is not None else sample.sketch.counts.ravel()[failed].sum()
        )
        note = f"infinite: {int(rows)} rows had probability 0 for what happened"
        return Quantity("log loss", inf, source="Good 1952", note=note)
    losses = np.where(np.isinf(losses), 0.0, losses)
    return sample.mean("log loss", losses, source="Good 1952", note=_one_outcome(sample))


def spiegelhalter(sample: Sample) -> Quantity:
    """Spiegelhalter's z = Σ(y - p)(1 - 2p) over its standard deviation under calibration.

    With weights or clusters the deviation is that of the sums observed, not of p(1 - p).
    """
    from scipy.special import ndtr

    p, share = sample.p, sample.share
    terms = (sample.y - p) * (1.0 - 2.0 * p)
    if sample.fractional or sample.dependent:
        error = sample.standard_error(terms)
    else:
        error = sqrt(float(share @ ((1.0 - 2.0 * p) ** 2 * p * (1.0 - p))) / sample.sketch.n)
    if not error > 0.0:
        raise Unavailable("Spiegelhalter's z needs predictions other than 0, ½ and 1")
    value = float(share @ terms) / error
    p_value = float(2.0 * ndtr(-abs(value)))
    return Quantity("Spiegelhalter's z", value, p_value=p_value, source="Spiegelhalter 1986")


# -- discrimination --------------------------------------------------------------------------------


def auc(sample: Sample) -> Quantity:
    """Area under the ROC curve: the chance that an event has the higher prediction, ties half.

    The interval is DeLong's; with weights or clusters that of the influence function (Obuchowski). With few
    rows of one outcome Hanley and McNeil's variance counts where it is larger. Rows of one cell of a sketch
    are tied.
    """
    points = sample.points
    negative, positive = points.mass.T
    without, having = float(negative.sum()), float(positive.sum())
    if not (without > 0.0 and having > 0.0):
        raise Unavailable("the AUC needs both outcomes")
    of_events = (np.cumsum(negative) - 0.5 * negative) / without
    of_others = (having - np.cumsum(positive) + 0.5 * positive) / having
    value = float(positive @ of_events) / having
    plain = not (sample.fractional or sample.dependent)
    if plain:
        error = sqrt(
            sum(
                float(mass @ (placed - value) ** 2) / (total * max(total - 1.0, 1.0))
                for mass, placed, total in (
                    (positive, of_events, having),
                    (negative, of_others, without),
                )
            )
        )
        quantile = normal_quantile(0.5 + 0.5 * sample.confidence)
    else:
        odds = having / without
        at = np.minimum(np.searchsorted(points.p, sample.p), points.p.size - 1)
        influence = (1.0 + 1.0 / odds) * sample.y * (of_events[at] - value)
        influence += (1.0 + odds) * (1.0 - sample.y) * (of_others[at] - value)
        error, quantile = sample.standard_error(influence), sample.quantile
    low, high, note = value - quantile * error, value + quantile * error, ""
    fewer, more = sorted(_units_by_outcome(sample))
    if fewer < FEW_EVENTS:
        low, high = _hanley_mcneil(value, error, quantile, fewer, more)
        kind = "clusters with" if sample.dependent else "rows of"
        note = (
            f"fewer than {FEW_EVENTS} {kind} the rarer outcome: the interval takes the larger of DeLong's "
            "variance and that of Hanley and McNeil 1982"
        )
    low, high = max(low, 0.0), min(high, 1.0)
    if plain and error == 0.0 and value in (0.0, 1.0):
        # Of m disjoint pairs all are in order with probability AUC^m.
        end = (0.5 * (1.0 - sample.confidence)) ** (1.0 / min(having, without))
        low, high = (end, 1.0) if value == 1.0 else (0.0, 1.0 - end)
        note = "DeLong's interval has no width here; this one is exact for disjoint pairs of rows"
    source = OBUCHOWSKI if sample.dependent else DELONG
    return Quantity("AUC", value, low, high, standard_error=error, source=source, note=note)


def gini(sample: Sample) -> Quantity:
    """Gini coefficient (accuracy ratio): 2 AUC - 1."""
    area = auc(sample)
    return replace(
        area,
        name="Gini",
        value=2.0 * area.value - 1.0,
        low=2.0 * area.low - 1.0,
        high=2.0 * area.high - 1.0,
        standard_error=2.0 * area.standard_error,
    )


def _units_by_outcome(sample: Sample) -> list[float]:
    """Effective numbers of rows, or of clusters, with each outcome."""
    if sample.rows is None and not sample.dependent:
        sums = sample.sketch.weights.sum(axis=0)
        return list(sums**2 / sample.sketch.squared_weights.sum(axis=0))
    shares = [sample.by_unit(sample.share * part) for part in (1.0 - sample.y, sample.y)]
    return [float(share.sum() ** 2 / (share @ share)) for share in shares]


def _hanley_mcneil(
    value: float, error: float, quantile: float, fewer: float, more: float
) -> tuple[float, float]:
    """AUCs from which the one observed is no further than quantile × standard error there.

    Hanley and McNeil's variance depends on the AUC alone, for exponential predictions; it is taken with the
    rarer outcome as the more variable one. The larger of it and DeLong's counts.
    """
    from scipy.optimize import brentq

    def beyond(area: float) -> float:
        one = area / (2.0 - area) - area**2
        other = 2.0 * area**2 / (1.0 + area) - area**2
        variance = (
            area * (1.0 - area) + (fewer - 1.0) * min(one, other) + (more - 1.0) * max(one, other)
        )
        return abs(value - area) - quantile * sqrt(max(variance / (fewer * more), error**2, 0.0))

    low, high = (
        end if value == end or beyond(end) <= 0.0 else float(brentq(beyond, value, end))
        for end in (0.0, 1.0)
    )
    return low, high
