"""Clinical profile: the performance measures that TRIPOD+AI asks for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_flag
from calibrant.decisions.net_benefit import net_benefit_values, require_thresholds
from calibrant.inference.profile import Measure, Profile, Quantity, Sample, Unavailable, profile
from calibrant.profiles.logistic import (
    calibration_intercept,
    calibration_slope,
    joint_test,
    recalibrated_intercept,
)
from calibrant.profiles.scores import auc, brier_score, log_loss, scaled_brier, spiegelhalter

Floats = NDArray[np.float64]

GROUPS = 10
SMOOTH = "Austin and Steyerberg 2019; smooth curve: Błasiok and Nakkiran 2023"
GAP_QUANTILES = {"E50": 0.5, "E90": 0.9, "Emax": 1.0}
WHY_NOT = (
    "not recommended: it depends on the choice of groups, has little power, and says neither how large "
    "the error is nor in which direction. Look at the slope, the intercept and the curve"
)


@profile
def clinical(*, thresholds: float | Iterable[float] = (), hosmer_lemeshow: bool = False) -> Profile:
    """Clinical profile: calibration, discrimination and overall performance as TRIPOD+AI lists them.

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
    (0.33, True)
    >>> list(found)[-1]
    'net benefit at 0.3'
    """
    measures: dict[str, Measure] = {
        "observed / expected": observed_expected,
        "calibration intercept": calibration_intercept,
        "calibration slope": calibration_slope,
        "intercept given slope": recalibrated_intercept,
        "intercept 0 and slope 1": joint_test,
        "mean gap (ICI)": _mean_gap,
        **{name: partial(_gap_quantile, name=name) for name in GAP_QUANTILES},
        "AUC": auc,
        "Brier score": brier_score,
        "scaled Brier score (IPA)": scaled_brier,
        "log loss": log_loss,
        "Spiegelhalter's z": spiegelhalter,
    }
    listed = list(thresholds) if isinstance(thresholds, Iterable) else [thresholds]
    if listed:
        measures["net benefit"] = partial(net_benefits, thresholds=require_thresholds(listed))
    if require_flag("hosmer_lemeshow", hosmer_lemeshow):
        measures["Hosmer-Lemeshow"] = _hosmer_lemeshow
    return Profile("clinical", measures)


def observed_expected(sample: Sample) -> Quantity:
    """Observed over expected events, with the assessment's score interval."""
    ratio = sample.assessment.observed_expected
    source = "interval: score (Wilson 1927)"
    return Quantity("observed / expected", ratio.value, ratio.low, ratio.high, source=source)


def net_benefits(sample: Sample, thresholds: Floats) -> list[Quantity]:
    """Net benefit of acting where p ≥ t, at each threshold.

    The standard error has one more row of the costlier kind in doubt: where few act, few can be seen to.
    """
    gains = net_benefit_values(sample, thresholds)
    odds = thresholds / (1.0 - thresholds)
    units = (
        sample.units if sample.clusters is None else min(sample.units, float(sample.clusters[1]))
    )
    quantities = []
    for t, gain, cost in zip(thresholds, gains, np.maximum(odds, 1.0), strict=True):
        value = float(sample.share @ gain)
        error = float(np.hypot(sample.standard_error(gain - value), cost / units))
        reach = sample.quantile * error
        quantities.append(
            Quantity(
                f"net benefit at {t:g}",
                value,
                value - reach,
                value + reach,
                standard_error=error,
                source="Vickers and Elkin 2006",
            )
        )
    return quantities


def hosmer_lemeshow(p: Any, y: Any, groups: int = GROUPS) -> tuple[float, int]:
    """Hosmer-Lemeshow statistic over groups between quantiles, and the number of groups.

    For predictions that were not fitted to these outcomes it has as many degrees of freedom.
    """
    p, y = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
    edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, groups + 1)))
    group = np.clip(np.searchsorted(edges, p, side="left") - 1, 0, max(edges.size - 2, 0))
    n, events, expected = (np.bincount(group, each) for each in (np.ones_like(p), y, p))
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (events - expected) ** 2 / (expected * (1.0 - expected / n))
    parts = np.where((events == expected) | (n == 0), 0.0, parts)
    return float(parts.sum()), int(np.count_nonzero(n))


def _hosmer_lemeshow(sample: Sample) -> Quantity:
    rows = sample.require_rows("Hosmer-Lemeshow")
    if rows.fractional or sample.dependent:
        raise Unavailable("Hosmer-Lemeshow takes independent rows of equal weight")
    from scipy.special import chdtrc

    statistic, groups = hosmer_lemeshow(rows.p, rows.y)
    return Quantity(
        f"Hosmer-Lemeshow χ² ({groups} groups, {groups} df)",
        statistic,
        p_value=float(chdtrc(groups, statistic)),
        source="Hosmer and Lemeshow 1980",
        note=WHY_NOT,
    )


# -- gaps between the smooth curve and the diagonal -----------------------------------------------

DRAWS = 2000
CELLS_PER_BANDWIDTH, POINTS_PER_BANDWIDTH, MOST_POINTS = 16, 4, 256
LEAST_DENSITY = 0.01
"""Share of the greatest density below which the curve is not looked at."""


def _require_probabilities(sample: Sample) -> None:
    """Refuse another scale, on which a single row far out has a neighbourhood of its own."""
    if not sample.sketch.scale.reflected:
        raise Unavailable("the gaps are those of the curve on the probability scale")


def _mean_gap(sample: Sample) -> Quantity:
    """Integrated calibration index of the smooth curve, which is SmoothECE."""
    _require_probabilities(sample)
    found = sample.assessment
    return Quantity(
        "mean gap (ICI)",
        found.smooth_ece,
        found.interval.low,
        found.interval.high,
        found.p_value,
        bound=found.certificate.total,
        source=SMOOTH,
    )


def _gap_quantile(sample: Sample, name: str) -> Quantity:
    """E50, E90 or Emax: median, ninth decile or maximum of the gap, over the rows."""
    return sample.once(gap_quantiles)[name]


def gap_quantiles(sample: Sample) -> dict[str, Quantity]:
    """E50, E90 and Emax of the gap between the smooth curve and the diagonal.

    The intervals follow from one simultaneous band: every gap is at most the one estimated and the band's
    half-width, and at least the one estimated less that, so the same is true of their quantiles.
    """
    _require_probabilities(sample)
    found = sample.assessment
    bandwidth = max(found.bandwidth, found.noise_floor.value, 1.0 / MOST_POINTS)
    nodes = 64
    while nodes < sample.sketch.nodes and nodes * bandwidth < CELLS_PER_BANDWIDTH:
        nodes *= 2
    sketch = sample.sketch.rebin(min(nodes, sample.sketch.nodes))
    cells = Sample(sketch, found)
    used = cells.share > 0.0
    p, y, share = cells.p[used], cells.y[used], cells.share[used]
    squared = sketch.squared_weights.ravel()[used] / sketch.total_weight**2
    low, high = float(p.min()), float(p.max())
    count = int(np.clip((high - low) / bandwidth * POINTS_PER_BANDWIDTH, 2, MOST_POINTS)) + 1
    mesh = np.linspace(low, high, count)[:, None]
    kernel = np.zeros((count, p.size))
    for image in (p, -p, 2.0 - p):  # reflected at 0 and 1
        kernel += np.exp(-0.5 * ((mesh - image) / bandwidth) ** 2)
    density = kernel @ share
    where = density > LEAST_DENSITY * density.max()
    kernel, density = kernel[where] / density[where, None], density[where]
    gap = kernel @ (share * (y - p))
    influence = kernel * (y - p - gap[:, None])
    if sample.dependent:
        covariance = _clustered_covariance(sample, sketch, used, influence)
    else:
        covariance = (influence * squared) @ influence.T
    # Where only one outcome occurred, residuals do not vary: calibrated outcomes would.
    least = (kernel**2 @ (share * p * (1.0 - p))) * squared.sum()
    variance = np.diag(covariance)
    reach = _largest_deviation(covariance, sample) * np.sqrt(np.maximum(variance, least))
    weight = density / density.sum()

    def quantile(values: Floats, q: float) -> float:
        order = np.argsort(values)
        upto = np.cumsum(weight[order])
        place = np.searchsorted(upto, q * upto[-1]) if q < 1.0 else values.size
        return float(values[order][min(place, values.size - 1)])

    gap = np.abs(gap)
    ends = np.maximum(gap - reach, 0.0), gap + reach
    return {
        name: Quantity(
            name,
            quantile(gap, q),
            quantile(ends[0], q),
            min(quantile(ends[1], q), 1.0),
            source=SMOOTH
            if q < 1.0
            else SMOOTH.replace("Austin and Steyerberg 2019", "Harrell 2015"),
        )
        for name, q in GAP_QUANTILES.items()
    }


def _clustered_covariance(
    sample: Sample, sketch: Any, used: NDArray[np.bool_], influence: Floats
) -> Floats:
    """Covariance of the curve over clusters: S' S of the sums of each cluster in each cell and outcome."""
    from scipy.sparse import csr_matrix

    assert sample.cluster is not None
    place = np.minimum((sample.p * sketch.nodes).astype(np.int64), sketch.nodes)
    cell = np.minimum(np.searchsorted(sketch.cells, place), sketch.cells.size - 1)
    entry = np.cumsum(used) - 1
    shares = np.concatenate([sample.share * (1.0 - sample.y), sample.share * sample.y])
    at = np.concatenate([entry[2 * cell], entry[2 * cell + 1]])
    cluster, some = np.tile(sample.cluster, 2), shares > 0.0
    sums = csr_matrix(
        (shares[some], (cluster[some], at[some])), shape=(cluster.max() + 1, used.sum())
    )
    many = sums.shape[0]
    return np.asarray(influence @ ((sums.T @ sums) @ influence.T) * (many / (many - 1.0)))


def _largest_deviation(covariance: Floats, sample: Sample) -> float:
    """Quantile of the largest of normal deviations with this covariance, each over its standard error."""
    error = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.outer(error, error))
    used = values > 1e-8 * max(values[-1], 1e-300)
    root = vectors[:, used] * np.sqrt(values[used])
    draws = generator(0, 18).standard_normal((DRAWS, int(used.sum())))
    return float(np.quantile(np.abs(draws @ root.T).max(axis=1), sample.confidence))
