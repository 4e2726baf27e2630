"""Mean residual of groups of rows: its normal score, its interval, and both along the bins of a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc
from scipy.stats import norm

from calibrant._arguments import CONFIDENCE, require_confidence, require_count
from calibrant._format import p_equation
from calibrant.data.arrays import categories
from calibrant.data.cells import MOST_BINS, Cells
from calibrant.data.rows import InputOptions, as_rows, require_same_index
from calibrant.data.sketch import Sketch
from calibrant.errors import invalid
from calibrant.inference.null_noise import null_moments
from calibrant.inference.residuals import LabelSums
from calibrant.measures.result_record import Record, frame_of

Floats = NDArray[np.float64]

MOST_CATEGORIES = 20
"""Categories shown; the rarest are pooled as "other"."""


@dataclass(frozen=True)
class BiasBin:
    """Mean residual, outcome less prediction, of the rows of one interval or category."""

    label: str
    rows: int
    prediction: float
    outcome: float
    bias: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class FeatureBias(Record):
    """Mean residual along a feature.

    Attributes
    ----------
    bins : tuple of BiasBin
        Intervals from low to high, or categories by size; "missing" comes last.
    p_value : float
        Of "no bin is biased": the smallest of the bins' p-values, corrected by Holm.
    """

    feature: str
    bins: tuple[BiasBin, ...]
    p_value: float
    confidence: float

    def __repr__(self) -> str:
        return f"FeatureBias({self.feature}, {len(self.bins)} bins, {p_equation(self.p_value)})"

    def __str__(self) -> str:
        width = max(len(one.label) for one in self.bins)
        lines = [f"{self.feature}: {p_equation(self.p_value)}"]
        lines += [
            f"  {one.label:<{width}}  {one.bias:+.4f} ({one.low:+.4f} to {one.high:+.4f})  {one.rows:,} rows"
            for one in self.bins
        ]
        return "\n".join(lines)

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each bin."""
        return frame_of([vars(one) for one in self.bins], backend)


def bias_by(
    feature: Any,
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    name: str | None = None,
    n_bins: int = 10,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> FeatureBias:
    """Mean residual in bins of a feature, with intervals and one test.

    Parameters
    ----------
    feature : array
        Numbers, which are cut at quantiles, or categories; missing values make a bin of their own.
    y_true, y_prob : array
        Outcomes and predicted probabilities.
    data : frame or mapping, optional
        Table of columns, which `feature`, `y_true`, `y_prob` and `sample_weight` then name.
    name : str, optional
        Of the feature; by default its own, or "feature".
    n_bins : int
        Bins of a numeric feature; values that repeat may leave fewer.
    confidence : float
        Of each bin's interval.
    **options
        How the arrays are read (see `calibrant.data.InputOptions`).

    Notes
    -----
    A bin's p-value is that of its number of events by the binomial law with the mean and variance under
    calibration, f (1 - f) for each row (with weights, those of the calibration test); its interval is
    Wilson's, from that variance at no bias to the observed one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 80, 4000), np.full(4000, 0.3)
    >>> y = rng.random(4000) < 0.3 + 0.2 * (age > 65)
    >>> found = bias_by(age, y, p, name="age", n_bins=4)
    >>> print(found.bins[-1].label, found.p_value < 0.001)
    65 to 79.97 True
    """
    require_confidence(confidence)
    require_count("n_bins", n_bins, most=MOST_BINS)
    label = str(getattr(feature, "name", None) or "feature") if name is None else name
    if data is not None:
        label = feature if isinstance(feature, str) and name is None else label
        feature, y_true, y_prob = (
            categories(value, argument, data)
            for argument, value in (("feature", feature), ("y_true", y_true), ("y_prob", y_prob))
        )
        if isinstance(options.get("sample_weight"), str):
            options["sample_weight"] = categories(options["sample_weight"], "sample_weight", data)
    require_same_index(y_true=y_true, y_prob=y_prob, feature=feature)
    rows = as_rows(y_true, y_prob, **options)
    values = rows.entries(categories(feature, "feature"), "feature")
    if not isinstance(label, str):
        raise invalid("name", "be a text", name)
    cells = Cells.of(values, n_bins, MOST_CATEGORIES)
    codes, labels = cells.codes(values), cells.labels
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    z = float(norm.ppf(0.5 + 0.5 * confidence))
    bins = []
    for code, text in enumerate(labels):
        here = codes == code
        w, y, p = weight[here], rows.y[here], rows.p[here]
        total = float(w.sum())
        if total == 0.0:
            continue
        chance = p * (1.0 - p)
        null = float(chance.sum())
        if rows.weight is not None:
            sketch = Sketch.from_rows(rows.select(here))
            null = float(null_moments(LabelSums.of(sketch))[0].sum())
        bias = float(w @ (y - p)) / total
        observed = float(np.sum(w**2 * (y - p - bias) ** 2))
        score = np.copysign(np.inf, bias) if bias else 0.0  # of predictions that are all 0 or 1
        if null > 0.0:
            typical = null / float(w @ chance)  # weight of a row
            sums = np.array([w @ y, total, w @ p, null / typical]) / typical
            events, size, expected, variance = sums
            rate, spread = (w * chance) @ p / (w @ chance), np.array(observed / typical**2)
            score = float(binomial_score(events, size, expected, variance, rate, spread))
        mean = float(w @ p) / total
        low, high = wilson_interval(
            bias, mean, score, observed / total**2, float(w @ w) / total**2, z
        )
        p_value = 2.0 * float(norm.sf(abs(score)))
        bins.append(BiasBin(text, int(here.sum()), mean, mean + bias, bias, low, high, p_value))
    smallest = min(one.p_value for one in bins)
    return FeatureBias(label, tuple(bins), min(1.0, len(bins) * smallest), confidence)


def binomial_score(
    events: Floats,
    rows: Floats,
    predicted: Floats,
    variance: Floats,
    rate: Floats,
    observed: Floats,
) -> Floats:
    """Normal score of numbers of events, by a shifted binomial law of the same mean, variance and skewness.

    Of a sum of unlike Bernoulli outcomes with chances f, that law's rate is the mean of f with the weights
    f (1 - f). A normal law would make few rare events too significant. Outside of the law's support the tail
    is that of as many alike trials as rows (Hoeffding 1956). Where the `observed` variance of the sum is
    larger than other rates explain, as of over-confident predictions, the score is that much smaller
    (quasi-binomial; Wedderburn 1974): it is about the mean alone.
    """
    rate = np.clip(rate, 1e-12, 1.0 - 1e-12)
    trials = variance / (rate * (1.0 - rate))
    count = events - (predicted - trials * rate)
    above = _tail(count, trials, rate, events, rows, predicted)
    below = _tail(trials - count, trials, 1.0 - rate, rows - events, rows, rows - predicted)
    score = norm.isf(np.clip(np.minimum(above, below), 1e-300, 0.5))
    gap = events - predicted
    explained = variance + gap * (1.0 - 2.0 * predicted / rows) - gap**2 / rows
    dispersion = np.maximum(observed / np.maximum(explained, variance), 1.0)
    return np.asarray(np.where(above <= below, score, -score) / np.sqrt(dispersion))


def _tail(
    count: Floats, trials: Floats, rate: Floats, events: Floats, rows: Floats, predicted: Floats
) -> Floats:
    """P-value of at least this count; beyond all trials, of at least these events among the rows."""
    beyond = count > trials
    count, trials = np.where(beyond, events, count), np.where(beyond, rows, trials)
    rate = np.where(beyond, predicted / rows, rate)
    return np.where(count <= 0.0, 1.0, betainc(np.maximum(count, 1e-9), trials - count + 1.0, rate))


def wilson_interval(
    bias: float, mean: float, score: float, observed: float, unit: float, z: float
) -> tuple[float, float]:
    """Interval of the mean residual of predictions with this mean: (bias - m)² = z² v(m) at its ends m.

    v is `observed` at the bias and that of a rate elsewhere, with `unit` = Σw² / (Σw)² in place of 1 / n.
    Where the interval and the score disagree about 0, the score decides.
    """
    skew, curve = 0.5 * z * z * unit * (1.0 - 2.0 * (mean + bias)), 1.0 + z * z * unit
    root = float(np.sqrt(skew**2 + curve * z * z * observed))
    low, high = bias + (skew - root) / curve, bias + (skew + root) / curve
    if abs(score) < z:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low <= 0.0 <= high:
        end = bias * (1.0 - z / abs(score))
        low, high = (end, high) if bias > 0.0 else (low, end)
    return max(low, -mean), min(high, 1.0 - mean)
