"""Areas under a risk-coverage curve, in expected order within ties, and how uncertain they are."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.decisions.ranking import Ranking
from calibrant.inference.quantiles import exact_binomial

__all__ = [
    "area",
    "best_sum",
    "limits_where_all_agree",
    "order_error",
    "standard_errors",
    "sum_of_risks",
]

Floats = NDArray[np.float64]


def _blocks(ranking: Ranking) -> tuple[Floats, Floats, Floats, Floats]:
    """Rows and errors before each tie, and in it."""
    before, wrong_before = np.append(0.0, ranking.rows[:-1]), np.append(0.0, ranking.errors[:-1])
    return before, wrong_before, ranking.rows - before, ranking.errors - wrong_before


def _harmonic(count: Floats | float) -> Any:
    """H(n) = 1 + 1/2 + ... + 1/n, and between whole numbers what joins them smoothly."""
    from scipy.special import digamma

    return digamma(np.asarray(count) + 1.0)


def sum_of_risks(ranking: Ranking) -> tuple[float, float]:
    """Σ over k of the expected risk among the first k rows, and the risk of the first.

    In a tie of m rows with e errors, after a rows with E errors, the k-th row has (E + (k-a) e/m) / k
    errors expected, so that its rows add e + (E - a e/m) (H(a+m) - H(a)).
    """
    before, wrong_before, rows, wrong = _blocks(ranking)
    rate = wrong / rows
    steps = _harmonic(ranking.rows) - _harmonic(before)
    return float((wrong + (wrong_before - before * rate) * steps).sum()), float(rate[0])


def best_sum(total: float, wrong: float) -> float:
    """The same of an order with all right answers first."""
    right = total - wrong
    return float(wrong - right * (_harmonic(total) - _harmonic(right)))


def area(ranking: Ranking) -> float:
    """The area under the cumulative errors over the rows, straight within ties."""
    _, wrong_before, rows, wrong = _blocks(ranking)
    return float((rows * (wrong_before + 0.5 * wrong)).sum())


def order_error(ranking: Ranking) -> float:
    """At most this far the sum of risks is from that of any order within ties."""
    before, _, rows, wrong = _blocks(ranking)
    spread = wrong * (rows - wrong) / rows
    return float((spread * (_harmonic(ranking.rows) - _harmonic(before))).sum())


def standard_errors(ranking: Ranking) -> tuple[float, float]:
    """Of AURC and AUGRC, by the influence of each row.

    With c the share of rows that are at least as confident, AURC is E[-e log c] and AUGRC E[e (1-c)];
    a row adds its own term, and moves every row below it down by one.
    """
    before, _, rows, wrong = _blocks(ranking)
    total = ranking.rows[-1]
    middle = (before + 0.5 * rows) / total
    from_below = np.cumsum((wrong / middle)[::-1])[::-1] / total
    count_below = np.cumsum(wrong[::-1])[::-1] / total
    errors = []
    for own, moved in ((-np.log(middle), from_below), (1.0 - middle, count_below)):
        centre = float((wrong * own - rows * moved).sum() / total)
        errors.append(_error_of(ranking, own - moved - centre, -moved - centre))
    return errors[0], errors[1]


def _error_of(ranking: Ranking, if_wrong: Floats, if_right: Floats) -> float:
    """Standard error of a mean of these influences, by threshold and outcome."""
    _, _, rows, wrong = _blocks(ranking)
    total = float(ranking.rows[-1])
    if ranking.clusters is None:
        squared = np.diff(ranking.squared, prepend=0.0)
        share = wrong / rows
        variance = float((squared * (share * if_wrong**2 + (1.0 - share) * if_right**2)).sum())
        return float(np.sqrt(variance)) / total
    entries = ranking.clusters
    place = entries.place
    influence = entries.errors * if_wrong[place] + (entries.rows - entries.errors) * if_right[place]
    sums = np.bincount(entries.code, weights=influence, minlength=entries.clusters)
    inflate = entries.clusters / (entries.clusters - 1.0)
    return float(np.sqrt((sums**2).sum() * inflate)) / total


def limits_where_all_agree(
    ranking: Ranking, confidence: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of AURC and AUGRC where the sample has no spread: all answers are right, or all are wrong.

    The other kind may be as frequent as an exact bound on its share u says, and lie where it matters
    most: among the surest answers, where errors are in ∫ -log c dc and ∫ (1 - c) dc, c from 0 to u.
    """
    units = float(ranking.rows[-1] ** 2 / ranking.squared[-1])
    if ranking.clusters is not None:
        units /= max(ranking.clusters.design_effect, 1.0)
    u = float(exact_binomial(0.0, units, confidence)[1])
    aurc, augrc = u * (1.0 - log(u)), u - 0.5 * u**2
    if ranking.errors[-1] > 0:
        return (1.0 - aurc, 1.0), (0.5 - augrc, 0.5)
    return (0.0, aurc), (0.0, augrc)
