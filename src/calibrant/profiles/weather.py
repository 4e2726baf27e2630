"""The weather profile: reliability, resolution and uncertainty, skill and sharpness."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, is_number, require_choice, require_count
from calibrant.data.arrays import as_column
from calibrant.data.cell_sums import over_outcomes
from calibrant.errors import InputError, Where
from calibrant.inference.interval import normal_quantile
from calibrant.inference.profile import Measure, Profile, Quantity, Sample, Unavailable
from calibrant.measures.binned import Bins, bins_of
from calibrant.measures.isotonic import binned_decomposition
from calibrant.profiles.corp import corp_parts
from calibrant.profiles.scores import mean_of, scaled_brier, shared_brier, squared_error

__all__ = ["weather"]

Floats = NDArray[np.float64]
Forecast = Literal["mean", "middle"]

BINS = 10
DRAWS = 4000
MURPHY = "Murphy 1973"


def weather(*, climatology: Any = None, bins: int = BINS, at: Forecast = "mean") -> Profile:
    """The weather profile: Brier score and skill, reliability, resolution, uncertainty, sharpness.

    Parameters
    ----------
    climatology : array or float, optional
        The forecast to beat, for each row or for all. Without it, the sample's own event rate.
    bins : int
        How many bins of equal width, for the binned parts.
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
    require_count("bins", bins, least=2)
    require_choice("at", at, get_args(Forecast))
    skill: Measure = scaled_skill
    if climatology is not None:
        alone = is_number(climatology)
        column = np.asarray(climatology) if alone else as_column(climatology, "climatology")
        skill = partial(skill_over, climatology=column)
    return Profile(
        "weather",
        {
            "Brier score": shared_brier,
            "Brier skill score": skill,
            "binned parts": partial(binned_parts, bins=int(bins), at=at),
            "CORP parts": corp_parts,
            "sharpness": sharpness,
        },
    )


def scaled_skill(sample: Sample) -> Quantity:
    """1 - Brier score / that of the sample's event rate."""
    return replace(
        scaled_brier(sample),
        name="Brier skill score",
        source="Brier 1950; reference: the event rate of the sample",
    )


def skill_over(sample: Sample, climatology: NDArray[Any]) -> Quantity:
    """1 - Brier score / that of the climatology given."""
    pairs = sample.rows("the skill over a column")
    column = _climate(sample, climatology)
    ours, theirs = squared_error(pairs.p, pairs.y), squared_error(column, pairs.y)
    score, reference = float(sample.weights @ ours), float(sample.weights @ theirs)
    if reference == 0.0:
        raise Unavailable("the Brier skill score needs a climatology that errs")
    influence = score * (theirs - reference) / reference**2 - (ours - score) / reference
    error, degrees = sample.standard_error(sample.weights * influence)
    reach = normal_quantile(0.5 + 0.5 * sample.confidence, degrees) * error
    value = 1.0 - score / reference
    return Quantity(
        "Brier skill score",
        value,
        value - reach,
        min(value + reach, 1.0),
        standard_error=error,
        source="Brier 1950; reference: the climatology given",
    )


def _climate(sample: Sample, climatology: NDArray[Any]) -> Floats:
    """The climatology of each row that was kept, as probabilities."""
    if climatology.ndim == 0:
        rows = sample.rows("the skill over a climatology").n
        kept, number = np.full(rows, climatology), np.arange(rows)
    else:
        cure = "Pass the climatology of each row, or one number."
        kept, number = sample.column("climatology", climatology, cure)
    try:
        column = kept.astype(np.float64)
    except (TypeError, ValueError):
        at = next(k for k, value in enumerate(kept) if not _reads(value))
        raise _no_probability(kept[at], int(number[at])) from None
    wrong = np.flatnonzero(~((column >= 0.0) & (column <= 1.0)))
    if wrong.size:
        raise _no_probability(float(column[wrong[0]]), int(number[wrong[0]]))
    return column


def _reads(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _no_probability(seen: Any, row: int) -> InputError:
    percent = is_number(seen) and 1.0 < seen <= 100.0
    missing = is_number(seen) and np.isnan(seen)
    return InputError(
        "must hold no missing values" if missing else "must hold probabilities, in [0, 1]",
        argument="climatology",
        seen=seen,
        where=Where(row=row),
        cure="Divide percentages by 100."
        if percent
        else "Leave such rows out first."
        if missing
        else "Pass the probability that the climatology gives to each row.",
    )


def sharpness(sample: Sample) -> Quantity:
    """The variance of the forecasts."""
    mean = sample.assessment.mean_prediction
    return mean_of(
        sample,
        "sharpness (variance of forecasts)",
        lambda p, y: (p - mean) ** 2,
        slope=2.0,
        bend=2.0,
        source="Murphy and Winkler 1992",
    )


def binned_parts(sample: Sample, bins: int, at: Forecast = "mean") -> list[Quantity]:
    """Murphy's reliability, resolution and uncertainty over bins, with the mean forecast of each.

    Reliability and resolution are squared lengths of vectors of gaps. With probability `confidence` the
    error of that vector is no longer than a quantile, so the length is that of the estimate up to it.
    """
    split = binned_decomposition(sample.atoms, n_bins=bins)
    table = bins_of(sample.atoms, bins, "uniform")
    reliability = split.miscalibration
    if at == "middle":
        middle = (np.ceil(np.maximum(table.prediction, 1e-300) * bins) - 0.5) / bins
        reliability = float(table.weight @ (middle - table.outcome) ** 2)
    lengths = _error_lengths(sample, table, bins)
    parts = []
    for name, value, length in (
        ("reliability", reliability, lengths[0]),
        ("resolution", split.discrimination, lengths[1]),
    ):
        root, most = sqrt(max(value, 0.0)), 1.0 if name == "reliability" else 0.25
        low, high = max(root - length, 0.0) ** 2, min((root + length) ** 2, most)
        parts.append(
            Quantity(
                f"{name} ({bins} bins)",
                value,
                max(low - split.error, 0.0),
                high + split.error,
                bound=split.error,
                source=MURPHY,
            )
        )
    return [*parts, _uncertainty(sample)]


def _uncertainty(sample: Sample) -> Quantity:
    rate = mean_of(sample, "event rate", lambda p, y: y + 0.0 * p, slope=0.0, bend=0.0)
    ends = [min(max(end, 0.0), 1.0) for end in (rate.low, rate.high)]
    if rate.value in (0.0, 1.0):  # of one outcome, the other may be as rare as that no row had it
        units = (
            1.0 / float(sample.weights @ sample.weights)
            if sample.pairs is not None
            else sample.sketch.n
        )
        units = float(sample.clusters[1] if sample.clusters else len(sample.parts) or units)
        unseen = 1.0 - (0.5 * (1.0 - sample.confidence)) ** (1.0 / units)
        ends = [0.0, unseen] if rate.value == 0.0 else [1.0 - unseen, 1.0]
    spread = [end * (1.0 - end) for end in ends]
    high = 0.25 if ends[0] < 0.5 < ends[1] else max(spread)
    value = rate.value * (1.0 - rate.value)
    return Quantity("uncertainty", value, min(spread), high, source=MURPHY)


def _error_lengths(sample: Sample, table: Bins, bins: int) -> tuple[float, float]:
    """How long the error of the bins' gaps is, at most, with the confidence asked for.

    The length weighs each bin by its rows. The first is for outcome less forecast, the second for outcome
    less event rate, whose error is the smaller by that of the rate.
    """
    effective = table.weight**2 / np.maximum(table.squared, 1e-300)
    smoothed = (table.outcome * effective + 0.5) / (effective + 1.0)  # all alike is not all sure
    variance = smoothed * (1.0 - smoothed) / effective
    covariance = np.diag(variance)
    if sample.dependent:
        seen = _clustered(sample, table, bins)
        covariance = seen + np.diag(np.maximum(variance - np.diag(seen), 0.0))
    root = np.sqrt(table.weight)
    values, vectors = np.linalg.eigh(covariance * np.outer(root, root))
    draws = generator(sample.assessment.seed, 19).standard_normal((DRAWS, values.size))
    error = (draws * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    centred = error - np.outer(error @ root, root)
    return tuple(  # type: ignore[return-value]
        float(np.sqrt(np.quantile((each**2).sum(axis=1), sample.confidence)))
        for each in (error, centred)
    )


def _clustered(sample: Sample, table: Bins, bins: int) -> Floats:
    """Covariance of the bins' mean residuals over clusters."""
    edges = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    count = table.weight.size
    if sample.pairs is None:
        curves = _curves_of_parts(sample, table, edges)
        number = len(sample.parts)
    else:
        assert sample.clusters is not None
        pairs, (codes, number) = sample.pairs, sample.clusters
        _, place = np.unique(np.searchsorted(edges, pairs.p), return_inverse=True)
        residual = sample.weights * (pairs.y - pairs.p + table.gap[place.ravel()])
        sums = np.bincount(codes * count + place.ravel(), residual, number * count)
        curves = np.asarray(sums.reshape(number, count), dtype=np.float64)
    curves = curves / table.weight
    return np.asarray(curves.T @ curves * (number / (number - 1.0)))


def _curves_of_parts(sample: Sample, table: Bins, edges: Floats) -> Floats:
    """What each cluster's sketch adds to the residual of each bin."""
    sketch = sample.sketch
    used = over_outcomes(sketch.weights) > 0.0
    p = np.zeros(used.size)
    p[used] = sample.atoms.p
    place = np.zeros(used.size, dtype=np.int64)
    place[used] = np.unique(np.searchsorted(edges, p[used]), return_inverse=True)[1].ravel()
    rows = []
    for part in sample.parts:
        at = np.searchsorted(sketch.cells, part.cells)
        short = table.gap[place[at]] - p[at]
        residual = over_outcomes(part.weights) * short + part.weights[:, 1]
        rows.append(np.bincount(place[at], residual / sketch.total_weight, table.weight.size))
    return np.array(rows)
