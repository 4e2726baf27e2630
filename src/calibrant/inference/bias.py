"""Mean residual against any column: where, along a feature, predictions are too high or too low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from calibrant._arguments import CONFIDENCE, require_confidence, require_count
from calibrant._format import p_equation
from calibrant.data.cells import Cells
from calibrant.data.columns import categories
from calibrant.data.rows import InputOptions, as_rows
from calibrant.errors import InputError, invalid
from calibrant.measures.result_record import Record, frame_of

__all__ = ["BiasBin", "FeatureBias", "bias_by"]

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
    y_true: Any,
    y_prob: Any,
    *,
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
    name : str, optional
        Of the feature; by default its own, or "feature".
    n_bins : int
        Bins of a numeric feature; values that repeat may leave fewer.
    confidence : float
        Of each bin's interval.
    **options
        How the arrays are read (see `InputOptions`).

    Notes
    -----
    A bin's p-value has the variance under calibration, the sum of w² f (1 - f); its interval is Wilson's,
    from that variance at no bias to the observed one.

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
    require_count("n_bins", n_bins)
    rows = as_rows(y_true, y_prob, **options)
    values = categories(feature, "feature")
    label = str(getattr(feature, "name", None) or "feature") if name is None else name
    if not isinstance(label, str):
        raise invalid("name", "be a text", name)
    given = rows.n + sum(rows.dropped.values())
    if values.size != given:
        raise InputError(
            f"`feature` must have one entry per row; it has {values.size} for {given} rows.",
            argument="feature",
        )
    if rows.kept is not None:
        values = values[rows.kept]
    cells = Cells.of(values, n_bins, MOST_CATEGORIES)
    codes, labels = cells.codes(values), cells.labels
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    residual = rows.y - rows.p
    z = float(norm.ppf(0.5 + 0.5 * confidence))
    bins = []
    for code, text in enumerate(labels):
        here = codes == code
        w, r, p = weight[here], residual[here], rows.p[here]
        total = float(w.sum())
        if total == 0.0:
            continue
        bias = float(w @ r) / total
        null = float(np.sum(w**2 * p * (1 - p))) / total**2
        observed = float(np.sum(w**2 * (r - bias) ** 2)) / total**2
        low, high = _wilson(bias, null, observed, z)
        p_value = 2 * float(norm.sf(abs(bias) / np.sqrt(null))) if null > 0 else float(bias == 0)
        mean = float(w @ p) / total
        bins.append(BiasBin(text, int(here.sum()), mean, mean + bias, bias, low, high, p_value))
    smallest = min(one.p_value for one in bins)
    return FeatureBias(label, tuple(bins), min(1.0, len(bins) * smallest), confidence)


def _wilson(bias: float, null: float, observed: float, z: float) -> tuple[float, float]:
    """Ends m with (bias - m)² = z² v(m), v linear from `null` at 0 to `observed` at the bias."""
    if bias == 0.0:
        return -z * float(np.sqrt(observed)), z * float(np.sqrt(observed))
    slope = (observed - null) / bias
    middle = bias + 0.5 * z * z * slope
    root = float(np.sqrt(max(middle**2 - bias**2 + z * z * null, 0.0)))
    low, high = middle - root, middle + root
    far = z * float(np.sqrt(max(observed, 0.0)))
    return (low, max(high, bias + far)) if bias > 0 else (min(low, bias - far), high)
