"""Performance before labels arrive, if the calibration curve of a labelled reference still holds.

Rate, Brier score, accuracy, AUC and net benefit of predictions f are functions of E[Y | f]. The reference
gives that curve as f + r(f), r its mean residual in bins; its uncertainty becomes that of the projection.
With no reference the predictions are taken to be calibrated (confidence-based performance estimation).
Nothing here is measured: a drift of the curve itself is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from calibrant._arguments import CONFIDENCE, require_confidence, require_share
from calibrant.data.columns import numbers, require_each
from calibrant.data.rows import InputOptions, as_rows
from calibrant.errors import InputError

__all__ = ["Projected", "Projection", "project"]

Floats = NDArray[np.float64]

DRAWS = 1000
"""Draws of the reference's curve: the ends of 95% intervals are known to a few per cent of their width."""
BINS = 20
"""Bins of the reference's residuals, of equal numbers of rows, if there are 50 rows for each."""
ROWS_PER_BIN = 50
CELLS = 2000
"""Cells into which the current predictions are gathered: metrics change by less than 1e-4."""


@dataclass(frozen=True)
class Projected:
    """Projected value of a metric with the interval that the reference's uncertainty gives."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True)
class Projection:
    """Expected performance of predictions without labels.

    Attributes
    ----------
    rate, brier, accuracy, auc, net_benefit : Projected
        Expected event rate, Brier score, accuracy and net benefit at `threshold`, and AUC.
    drift : float or None
        Largest difference of the distribution functions of reference and current predictions
        (Kolmogorov-Smirnov), and in `drift_p_value` its p-value: a drift of predictions, not of calibration.
    n_reference, n : int
        Labelled rows of the reference, and rows projected.
    """

    rate: Projected
    brier: Projected
    accuracy: Projected
    auc: Projected
    net_benefit: Projected
    threshold: float
    drift: float | None
    drift_p_value: float | None
    n_reference: int
    n: int
    confidence: float

    @property
    def metrics(self) -> Mapping[str, Projected]:
        """The projected metrics by name."""
        names = ("rate", "brier", "accuracy", "auc", "net_benefit")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"Projection(expected accuracy {self.accuracy}, n={self.n})"

    def __str__(self) -> str:
        basis = (
            f"if the curve of {self.n_reference:,} labelled rows still holds"
            if self.n_reference
            else "if the predictions are calibrated"
        )
        lines = [f"expected, not measured: {basis}", ""]
        lines += [f"{name.replace('_', ' '):<12} {value}" for name, value in self.metrics.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {**self.__dict__, **{k: dict(v.__dict__) for k, v in self.metrics.items()}}


def project(
    reference: tuple[Any, Any] | None,
    current: Any,
    *,
    threshold: float = 0.5,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> Projection:
    """Expected event rate, Brier score, accuracy, AUC and net benefit of predictions without labels.

    Parameters
    ----------
    reference : (y_true, y_prob) or None
        Labelled rows of the same model; None takes the predictions to be calibrated.
    current : array
        Predicted probabilities whose outcomes are not known yet.
    threshold : float
        Of accuracy and net benefit.
    confidence : float
        Of the intervals, which hold the uncertainty of the reference's curve alone.
    **options
        How the reference is read (see `InputOptions`); weights are not taken.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, q = rng.beta(2, 3, (2, 5000))
    >>> found = project((rng.random(5000) < 0.8 * p, p), q)
    >>> found.rate.low < 0.32 < found.rate.high
    True
    """
    require_confidence(confidence)
    require_share("threshold", threshold)
    if options.get("sample_weight") is not None:
        raise InputError("`sample_weight` is not taken by a projection.", argument="sample_weight")
    q = numbers(current, "current")
    require_each("current", q, (q >= 0) & (q <= 1), "be between 0 and 1")
    f, mass = _gathered(q)
    curves = f[None, :]
    drift, drift_p_value, n_reference = None, None, 0
    if reference is not None:
        if not (isinstance(reference, tuple | list) and len(reference) == 2):
            raise InputError(
                "`reference` must be a pair (y_true, y_prob), or None.", argument="reference"
            )
        rows = as_rows(*reference, **options)
        n_reference = rows.n
        curves = np.clip(f + _residual_draws(rows.p, rows.y, f), 0.0, 1.0)
        test = ks_2samp(rows.p, q)
        drift, drift_p_value = float(test.statistic), float(test.pvalue)
    values = _metrics(curves, f, mass, threshold)
    tail = 0.5 - 0.5 * confidence

    def projected(v: Floats) -> Projected:
        low, high = np.quantile(v[1:] if v.size > 1 else v, [tail, 1 - tail]).tolist()
        return Projected(float(v[0]), low, high)

    rate, brier, accuracy, auc, net_benefit = map(projected, values)
    return Projection(
        rate,
        brier,
        accuracy,
        auc,
        net_benefit,
        threshold,
        drift,
        drift_p_value,
        n_reference,
        q.size,
        confidence,
    )


def _gathered(q: Floats) -> tuple[Floats, Floats]:
    """Mean prediction and share of rows of each cell, in increasing order."""
    distinct, counts = np.unique(q, return_counts=True)
    if distinct.size <= CELLS:
        return distinct, counts / q.size
    cell = np.minimum((distinct * CELLS).astype(np.int64), CELLS - 1)
    mass = np.bincount(cell, counts, CELLS)
    used = mass > 0
    mean = np.bincount(cell, counts * distinct, CELLS)[used] / mass[used]
    return mean, mass[used] / q.size


def _residual_draws(p: Floats, y: Floats, at: Floats) -> Floats:
    """Mean residual near each point: its estimate, and draws of it, from bins with equal numbers of rows."""
    bins = int(np.clip(p.size // ROWS_PER_BIN, 1, BINS))
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, p, side="right")
    count = np.bincount(place, minlength=edges.size + 1)
    residual = np.bincount(place, y - p, edges.size + 1) / np.maximum(count, 1)
    # The variance under a Beta(1, 1) prior: a bin whose outcomes are all alike is not certain.
    rate = (np.bincount(place, y, edges.size + 1) + 1.0) / (count + 2.0)
    error = np.sqrt(rate * (1.0 - rate) / np.maximum(count, 1))
    draws = np.random.default_rng(0).standard_normal((DRAWS, residual.size))
    curves = np.concatenate([residual[None, :], residual + error * draws])
    return curves[:, np.searchsorted(edges, at, side="right")]


def _metrics(mu: Floats, f: Floats, mass: Floats, threshold: float) -> list[Floats]:
    """Rate, Brier score, accuracy, AUC and net benefit for each row of curves."""
    rate = mu @ mass
    brier = mass @ f**2 + mu @ (mass * (1.0 - 2.0 * f))
    called = f >= threshold
    sign = np.where(called, 1.0, -1.0)
    accuracy = mass @ np.where(called, 0.0, 1.0) + mu @ (mass * sign)
    events, others = mu * mass, (1.0 - mu) * mass
    below = np.cumsum(others, axis=1) - 0.5 * others  # ties count half
    pairs = np.maximum(rate * (1.0 - rate), 1e-300)
    auc = (events * below).sum(axis=1) / pairs
    odds = threshold / (1.0 - threshold)
    net_benefit = events[:, called].sum(axis=1) - odds * others[:, called].sum(axis=1)
    return [rate, brier, accuracy, auc, net_benefit]
