"""Weather profile: reliability, resolution and uncertainty, skill and sharpness."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import nan, sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, is_number, require_choice, require_count
from calibrant.data.arrays import numbers, require_each
from calibrant.inference.profile import Measure, Profile, Quantity, Sample, Unavailable, profile
from calibrant.measures._chains import pooled
from calibrant.measures.binned import Bins, bins_of
from calibrant.measures.isotonic import binned_decomposition, corp_decomposition
from calibrant.profiles.scores import (
    brier_score,
    event_rate,
    scaled_brier,
    skill_score,
    squared_error,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Forecast = Literal["mean", "middle"]

BINS = 10
DRAWS = 4000
MURPHY = "Murphy 1973"


@profile
def weather(*, climatology: Any = None, n_bins: int = BINS, at: Forecast = "mean") -> Profile:
    """Weather profile: Brier score and skill, reliability, resolution, uncertainty, sharpness.

    Parameters
    ----------
    climatology : array or float, optional
        The forecast to beat, for each row or for all. Without it, the sample's own event rate.
    n_bins : int
        Number of bins of equal width, for the binned parts.
    at : {"mean", "middle"}
        The forecast that stands for a bin: the mean of its forecasts, or its middle, as where forecasts
        were rounded to it.

    References
    ----------
    Murphy, *A new vector partition of the probability score*, 1973; Dimitriadis, Gneiting and Jordan,
    *Stable reliability diagrams for probabilistic classifiers*, PNAS 2021.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 5000)
    >>> found = cal.assess(rng.random(5000) < p, p, profile=weather()).profile
    >>> parts = [found[f"{part} ({BINS} bins)"].value for part in ("reliability", "resolution")]
    >>> parts[0] < 0.001 < parts[1]
    True
    """
    require_count("n_bins", n_bins, least=2)
    require_choice("at", at, get_args(Forecast))
    skill: Measure = _skill
    if climatology is not None:
        alone = is_number(climatology)
        column = numbers([climatology] if alone else climatology, "climatology")
        valid = (column >= 0.0) & (column <= 1.0)
        rule = "hold probabilities, in [0, 1]"
        require_each("climatology", column, valid, rule, "Divide percentages by 100.")
        skill = partial(_skill_over, climatology=column[0] if alone else column)
    return Profile(
        "weather",
        {
            "Brier score": brier_score,
            "Brier skill score": skill,
            "binned parts": partial(_binned_parts, bins=int(n_bins), at=at),
            "CORP parts": _corp_parts,
            "sharpness": _sharpness,
        },
    )


def _skill(sample: Sample) -> Quantity:
    """1 - Brier score / that of the sample's event rate."""
    source = "Brier 1950; reference: the event rate of the sample"
    return replace(scaled_brier(sample), name="Brier skill score", source=source)


def _skill_over(sample: Sample, climatology: Any) -> Quantity:
    """1 - Brier score / that of the climatology given."""
    sample.require_rows("the skill over a climatology")
    alone = np.ndim(climatology) == 0
    column = climatology if alone else sample.column("climatology", climatology)[0]
    ours, theirs = squared_error(sample.p, sample.y), squared_error(column, sample.y)
    score, reference = float(sample.share @ ours), float(sample.share @ theirs)
    if reference == 0.0:
        raise Unavailable("the Brier skill score needs a climatology that errs")
    influence = score * (theirs - reference) / reference**2 - (ours - score) / reference
    source = "Brier 1950; reference: the climatology given"
    return skill_score(sample, "Brier skill score", 1.0 - score / reference, influence, source)


def _sharpness(sample: Sample) -> Quantity:
    """Variance of the forecasts."""
    squares = (sample.p - float(sample.share @ sample.p)) ** 2
    name = "sharpness (variance of forecasts)"
    return sample.mean(name, squares, source="Murphy and Winkler 1992")


# -- Murphy's parts over bins ----------------------------------------------------------------------


def _binned_parts(sample: Sample, bins: int, at: Forecast) -> list[Quantity]:
    """Murphy's reliability, resolution and uncertainty over bins.

    Reliability and resolution are squared lengths of vectors of gaps. With probability `confidence` the
    error of that vector is no longer than a quantile, so the length is that of the estimate up to it.
    """
    split = binned_decomposition(sample.points, n_bins=bins)
    table = bins_of(sample.points, bins, "uniform")
    reliability = split.miscalibration
    if at == "middle":
        middle = (np.ceil(np.maximum(table.prediction, 1e-300) * bins) - 0.5) / bins
        reliability = float(table.weight @ (middle - table.outcome) ** 2)
    parts = []
    for name, value, length, most in zip(
        ("reliability", "resolution"),
        (reliability, split.discrimination),
        _error_lengths(sample, table, bins),
        (1.0, 0.25),
        strict=True,
    ):
        root = sqrt(max(value, 0.0))
        low, high = max(root - length, 0.0) ** 2, min((root + length) ** 2, most)
        low, high = max(low - split.error, 0.0), high + split.error
        name = f"{name} ({bins} bins)"
        parts.append(Quantity(name, value, low, high, bound=split.error, source=MURPHY))
    return [*parts, _uncertainty(sample)]


def _uncertainty(sample: Sample) -> Quantity:
    """Variance of the outcome, rate (1 - rate)."""
    rate = sample.mean("event rate", sample.y)
    if rate.value in (0.0, 1.0):
        rate = event_rate(sample, "event rate")
    low, high = max(rate.low, 0.0), min(rate.high, 1.0)
    spread = [end * (1.0 - end) for end in (low, high)]
    most = 0.25 if low < 0.5 < high else max(spread)
    value = rate.value * (1.0 - rate.value)
    return Quantity("uncertainty", value, min(spread), most, source=MURPHY)


def _error_lengths(sample: Sample, table: Bins, bins: int) -> tuple[float, float]:
    """Quantile of the length of the error of the bins' gaps, each weighed by its rows.

    The first is for outcome less forecast, the second for outcome less event rate, whose error is the
    smaller by that of the rate.
    """
    effective = table.weight**2 / np.maximum(table.squared, 1e-300)
    smoothed = (table.outcome * effective + 0.5) / (effective + 1.0)  # all alike is not all certain
    variance = smoothed * (1.0 - smoothed) / effective
    covariance = np.diag(variance)
    if sample.cluster is not None:
        edges = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        used = np.unique(np.searchsorted(edges, sample.points.p))
        place = np.searchsorted(used, np.searchsorted(edges, sample.p))
        place = np.minimum(place, used.size - 1)
        residual = sample.share * (sample.y - sample.p + table.gap[place])
        count, number = table.weight.size, int(sample.cluster.max()) + 1
        sums = np.bincount(sample.cluster * count + place, residual, number * count)
        curves = sums.reshape(number, count) / table.weight
        seen = curves.T @ curves * (number / (number - 1.0))
        covariance = seen + np.diag(np.maximum(variance - np.diag(seen), 0.0))
    root = np.sqrt(table.weight)
    values, vectors = np.linalg.eigh(covariance * np.outer(root, root))
    draws = generator(0, 19).standard_normal((DRAWS, values.size))
    error = (draws * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    reliability, resolution = (
        float(np.sqrt(np.quantile((each**2).sum(axis=1), sample.confidence)))
        for each in (error, error - np.outer(error @ root, root))
    )
    return reliability, resolution


# -- CORP's parts by isotonic regression -----------------------------------------------------------

FOLDS = 5
CORP = "Dimitriadis, Gneiting and Jordan 2021"
IN_SAMPLE = (
    "CORP's map fits the noise of the sample, so both parts are too large on average; their intervals are "
    "for the population's parts, the lower ends cross-fitted"
)


def _corp_parts(sample: Sample) -> list[Quantity]:
    """Miscalibration and discrimination by isotonic regression: reliability and resolution.

    Let S(g) be the mean Brier score of an increasing map g, least for the population's map g*. The
    sample's own map makes S(p) - S(g) no smaller than that of g*, so its upper end holds S(p) - S(g*).
    A map that was learned on other rows does no better than g*, so the lower end of a cross-fitted
    S(p) - S(g) holds it, too. Each end is that of a mean. The same goes for resolution, with the event
    rate in place of p.
    """
    split = corp_decomposition(sample.points)
    note, ends = "", [(nan, nan)] * 2
    if not 0.0 < sample.points.base_rate < 1.0:
        note = "no interval: it needs both outcomes"
    elif sample.rows is None:
        note = "no interval: it needs rows"
    elif (sample.p.size if sample.clusters is None else sample.clusters[1]) < 2 * FOLDS:
        note = "no interval: too few rows to learn a map and judge it on others"
    else:
        ends = _corp_ends(sample)
    return [
        Quantity(
            f"{name} (CORP)",
            value,
            max(low, 0.0) if low == low else low,
            min(high, most) if high == high else high,
            source=CORP,
            note=note or (IN_SAMPLE if name == "reliability" else ""),
        )
        for name, value, (low, high), most in zip(
            ("reliability", "resolution"),
            (split.miscalibration, split.discrimination),
            ends,
            (1.0, 0.25),
            strict=True,
        )
    ]


def _corp_ends(sample: Sample) -> list[tuple[float, float]]:
    """Lower and upper end for reliability and for resolution."""
    p, y = sample.points.p, sample.y
    at = np.minimum(np.searchsorted(p, sample.p), p.size - 1)
    units = sample.p.size if sample.clusters is None else sample.clusters[1]
    fold = generator(0, 22).permutation(units) % FOLDS
    fold = fold if sample.cluster is None else fold[sample.cluster]
    cell, size = fold * p.size + at, FOLDS * p.size
    sums = [np.bincount(cell, sample.share * part, size) for part in (1.0 - y, y)]
    masses = np.stack(sums, axis=1).reshape(FOLDS, p.size, 2)
    whole = masses.sum(axis=0)
    own = _isotonic(p, whole)[at]
    others = np.stack([_isotonic(p, whole - part) for part in masses])[fold, at]
    rate = np.full(own.shape, whole[:, 1].sum() / whole.sum())
    ends = []
    for start in (p[at], rate):
        gains = [(start - after) * (start + after - 2.0 * y) for after in (others, own)]
        after_others, after_own = (sample.mean("gain", gain) for gain in gains)
        ends.append((after_others.low, after_own.high))
    return ends


def _isotonic(p: Floats, mass: Floats) -> Floats:
    """Isotonic regression of these outcomes at every prediction, also where none of them is."""
    weight = mass[:, 0] + mass[:, 1]
    seen = weight > 1e-12 * weight.max()
    if not seen.any():
        return p
    fitted = pooled(mass[seen, 1] / weight[seen], np.ascontiguousarray(weight[seen]))
    return np.interp(p, p[seen], np.clip(fitted, 0.0, 1.0))
