"""The clinical profile: the performance measures that TRIPOD+AI asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.decisions.net_benefit import Acting, require_thresholds
from calibrant.errors import InputError
from calibrant.inference.interval import normal_quantile
from calibrant.inference.profile import Measure, Profile, Quantity, Sample, Unavailable
from calibrant.profiles.cells import UNIT, cells_of
from calibrant.profiles.discrimination import auc
from calibrant.profiles.gaps import gap_quantile, mean_gap
from calibrant.profiles.scores import (
    error_of_cells,
    log_loss,
    scaled_brier,
    shared_brier,
    spiegelhalter,
)
from calibrant.profiles.slope import (
    calibration_intercept,
    calibration_slope,
    joint_test,
    recalibrated_intercept,
)

__all__ = ["clinical", "hosmer_lemeshow", "net_benefits", "observed_expected"]

Floats = NDArray[np.float64]

GROUPS = 10
RESIDUALS = "interval: score, of the residuals (Wilson 1927)"
WHY_NOT = (
    "not recommended: it depends on the choice of groups, has little power, and says neither how large "
    "the error is nor in which direction. Look at the slope, the intercept and the curve"
)


def clinical(*, thresholds: float | Iterable[float] = (), hosmer_lemeshow: bool = False) -> Profile:
    """The clinical profile: calibration, discrimination and overall performance as TRIPOD+AI lists them.

    Parameters
    ----------
    thresholds : float or several, optional
        Probabilities at which somebody would act, for the net benefit there.
    hosmer_lemeshow : bool
        Whether to add the Hosmer-Lemeshow test, which is not recommended.

    References
    ----------
    Collins and others, *TRIPOD+AI statement*, BMJ 2024; Van Calster and others, *Calibration: the
    Achilles heel of predictive analytics*, BMC Medicine 2019.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < 0.25 + 0.5 * p
    >>> found = cal.assess(y, p, profile=clinical(thresholds=0.3)).profile
    >>> round(found["calibration slope"].value, 2), found["calibration slope"].high < 1
    (0.3..., True)
    >>> list(found)[-1]
    'net benefit at 0.3'
    """
    measures: dict[str, Measure] = {
        "observed / expected": observed_expected,
        "calibration intercept": calibration_intercept,
        "calibration slope": calibration_slope,
        "intercept given slope": recalibrated_intercept,
        "intercept 0 and slope 1": joint_test,
        "mean gap (ICI)": mean_gap,
        **{name: partial(gap_quantile, name=name) for name in ("E50", "E90", "Emax")},
        "AUC": auc,
        "Brier score": shared_brier,
        "scaled Brier score (IPA)": scaled_brier,
        "log loss": log_loss,
        "Spiegelhalter's z": spiegelhalter,
    }
    listed = list(thresholds) if isinstance(thresholds, Iterable) else [thresholds]
    if listed:
        measures["net benefit"] = partial(net_benefits, thresholds=require_thresholds(thresholds))
    if not isinstance(hosmer_lemeshow, bool | np.bool_):
        raise InputError(
            "must be True or False",
            argument="hosmer_lemeshow",
            seen=hosmer_lemeshow,
            cure="Pass True to add the test, or leave it out.",
        )
    if hosmer_lemeshow:
        measures["Hosmer-Lemeshow"] = _hosmer_lemeshow
    return Profile("clinical", measures)


def observed_expected(sample: Sample) -> Quantity:
    """Events seen over events predicted, with the score interval of the residuals."""
    ratio = sample.assessment.observed_expected
    bound = 0.0
    if sample.pairs is None:
        # The mean prediction is known to so much; the ratio is one over it.
        off = sample.once(cells_of).error_of_sum(1.0, 0.0) / sample.assessment.mean_prediction
        bound = ratio.value * off / (1.0 - off) if off < 1.0 else inf
    return Quantity(
        "observed / expected",
        ratio.value,
        max(ratio.low - bound, 0.0),
        ratio.high + bound,
        bound=bound,
        source=RESIDUALS,
    )


def net_benefits(sample: Sample, thresholds: Floats) -> list[Quantity]:
    """Net benefit of acting where p ≥ t, at each threshold."""
    acting = Acting(thresholds)
    source = "Vickers and Elkin 2006"
    names = [f"net benefit at {t:g}" for t in thresholds]
    if sample.pairs is not None:
        pairs = sample.pairs
        return [
            _at_least_one_row(
                sample,
                sample.mean(
                    name, (pairs.p >= t) * (pairs.y - (1.0 - pairs.y) * odds), source=source
                ),
                float(odds),
            )
            for name, t, odds in zip(names, thresholds, acting.odds, strict=True)
        ]
    table, bounds = acting.of_sketch(sample.sketch)
    worth = acting.worth()
    values = np.einsum("cl,clt->t", table, worth)
    cells = sample.once(cells_of)
    gains = worth[acting.reached(cells.p + UNIT), cells.label.astype(np.int64)] - values
    errors, degrees = zip(*(error_of_cells(sample, gain) for gain in gains.T), strict=True)
    error = np.hypot(errors, np.maximum(acting.odds, 1.0) / (degrees[0] + 1.0))
    reach = normal_quantile(0.5 + 0.5 * sample.confidence, degrees[0]) * error + bounds
    columns = zip(names, values, values - reach, values + reach, error, bounds, strict=True)
    return [
        Quantity(
            name,
            float(v),
            float(lo),
            float(hi),
            standard_error=float(e),
            bound=float(b),
            source=source,
        )
        for name, v, lo, hi, e, b in columns
    ]


def _at_least_one_row(sample: Sample, quantity: Quantity, odds: float) -> Quantity:
    """The interval with one more row of the costlier kind in doubt: where few act, few can be seen to."""
    units = float(1.0 / (sample.weights @ sample.weights))
    if sample.clusters is not None:
        units = min(units, float(sample.clusters[1]))
    error = float(np.hypot(quantity.standard_error, max(odds, 1.0) / units))
    reach = normal_quantile(0.5 + 0.5 * sample.confidence, units - 1.0) * error
    return replace(
        quantity,
        low=quantity.value - reach,
        high=quantity.value + reach,
        standard_error=error,
    )


def hosmer_lemeshow(p: Any, y: Any, groups: int = GROUPS) -> tuple[float, int]:
    """The Hosmer-Lemeshow statistic over groups between quantiles, and the number of groups.

    For predictions that were not fitted to these outcomes it has as many degrees of freedom.
    """
    p, y = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
    edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, groups + 1)))
    group = np.clip(np.searchsorted(edges, p, side="left") - 1, 0, max(edges.size - 2, 0))
    n, seen, expected = (np.bincount(group, each) for each in (np.ones_like(p), y, p))
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (seen - expected) ** 2 / (expected * (1.0 - expected / n))
    parts = np.where((seen == expected) | (n == 0), 0.0, parts)
    return float(parts.sum()), int(np.count_nonzero(n))


def _hosmer_lemeshow(sample: Sample) -> Quantity:
    pairs = sample.rows("Hosmer-Lemeshow")
    if pairs.fractional or sample.dependent:
        raise Unavailable("Hosmer-Lemeshow takes independent rows of equal weight")
    statistic, groups = hosmer_lemeshow(pairs.p, pairs.y)
    from scipy.special import chdtrc

    return Quantity(
        f"Hosmer-Lemeshow χ² ({groups} groups, {groups} df)",
        statistic,
        p_value=float(chdtrc(groups, statistic)),
        source="Hosmer and Lemeshow 1980",
        note=WHY_NOT,
    )
