"""Performance before labels arrive, if the calibration curve of a labelled reference still holds.

Rate, Brier score, accuracy, AUC and net benefit of predictions f are functions of E[Y | f]. The reference
gives that curve as f + r(f), r its mean residual in bins; its uncertainty becomes that of the projection.
With no reference the predictions are taken to be calibrated (confidence-based performance estimation).
Nothing here is measured: a drift of the curve itself is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogorov

from calibrant._arguments import CONFIDENCE, require_confidence, require_share
from calibrant.data.arrays import numbers, require_each
from calibrant.data.points import Points
from calibrant.data.rows import InputOptions, as_rows
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError
from calibrant.inference.quantiles import normal_quantile
from calibrant.measures.result_record import Record, frame_of

__all__ = ["Projected", "Projection", "project"]

Floats = NDArray[np.float64]

BINS, ROWS_PER_BIN = 20, 50
"""Bins of the reference's residuals, of equal numbers of rows; fewer where these would have less than 50."""


@dataclass(frozen=True)
class Projected:
    """Projected value of a metric with the interval that the reference's uncertainty gives."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, repr=False)
class Projection(Record):
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

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with a row for each metric and its interval; see `frame_of` for the backend."""
        rows = [{"metric": name, **vars(one)} for name, one in self.metrics.items()]
        return frame_of(rows, backend)


def project(
    reference: tuple[Any, Any] | Sketch | None,
    current: Any,
    *,
    threshold: float = 0.5,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> Projection:
    """Expected event rate, Brier score, accuracy, AUC and net benefit of predictions without labels.

    Parameters
    ----------
    reference : (y_true, y_prob), Sketch or None
        Labelled rows of the same model; None takes the predictions to be calibrated.
    current : array or Sketch
        Predicted probabilities whose outcomes are not known yet; of a sketch, those alone are read.
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
    now = _predictions(current)
    f, mass = now.p, now.mass.sum(axis=1) / now.total
    curve = _Curve(np.zeros(1), np.zeros(1), np.zeros(f.size, dtype=np.int64))
    drift, drift_p_value, n_reference = None, None, 0
    if reference is not None:
        if isinstance(reference, Sketch):
            known = Points.of(as_sketch(reference, scale=PROBABILITY, **options))
        elif isinstance(reference, tuple | list) and len(reference) == 2:
            known = Points.of(as_rows(*reference, **options))
        else:
            raise InputError(
                "`reference` must be a pair (y_true, y_prob), a Sketch or None.",
                argument="reference",
            )
        if isinstance(reference, Sketch) and reference.weighted:
            raise InputError("`reference` must have no weights.", argument="reference")
        n_reference = known.n
        curve = _Curve.of(known, f)
        drift, drift_p_value = _kolmogorov_smirnov(known, now)
    mu = np.clip(f + curve.residual[curve.place], 0.0, 1.0)
    z = normal_quantile(0.5 + 0.5 * confidence)

    def projected(value: float, slope: Floats, least: float = 0.0) -> Projected:
        """A metric, whose derivative by the mass of events in each cell is the slope."""
        by_bin = np.bincount(curve.place, slope * mass, curve.error.size)
        reach = z * float(np.hypot.reduce(by_bin * curve.error))
        return Projected(value, max(value - reach, least), min(value + reach, 1.0))

    rate, brier, accuracy, auc, net_benefit = (
        projected(*each) for each in _metrics(mu, f, mass, threshold)
    )
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
        now.n,
        confidence,
    )


def _predictions(current: Any) -> Points:
    """Distinct predictions, whose outcomes are not known."""
    if isinstance(current, Sketch):
        return Points.of(as_sketch(current, scale=PROBABILITY))
    q = numbers(current, "current")
    require_each("current", q, (q >= 0) & (q <= 1), "be between 0 and 1")
    return Points.of(as_rows(np.zeros(q.size), q))


def _kolmogorov_smirnov(one: Points, other: Points) -> tuple[float, float]:
    """Largest difference of two distribution functions of predictions, and its asymptotic p-value."""
    at = np.union1d(one.p, other.p)
    shares = [
        points.cumulative[np.searchsorted(points.p, at, side="right"), 0] / points.total
        for points in (one, other)
    ]
    largest = float(np.abs(shares[0] - shares[1]).max())
    return largest, float(kolmogorov(np.sqrt(one.n * other.n / (one.n + other.n)) * largest))


class _Curve(NamedTuple):
    """Mean residual of a reference in bins with equal numbers of rows, and the bin of each cell."""

    residual: Floats
    error: Floats
    place: NDArray[np.int64]

    @classmethod
    def of(cls, known: Points, cells: Floats) -> _Curve:
        bins = int(np.clip(known.n // ROWS_PER_BIN, 1, BINS))
        rows, events = known.mass.sum(axis=1), known.mass[:, 1]
        middle = known.cumulative[1:, 0] - 0.5 * rows
        own = np.minimum((middle * bins / known.total).astype(np.int64), bins - 1)
        count = np.maximum(np.bincount(own, rows, bins), 1e-300)
        residual = np.bincount(own, events - rows * known.p, bins) / count
        # The variance under a Beta(1, 1) prior: a bin whose outcomes are all alike is not certain.
        rate = (np.bincount(own, events, bins) + 1.0) / (count + 2.0)
        error = np.sqrt(rate * (1.0 - rate) / np.maximum(count, 1.0))
        nearest = np.searchsorted(0.5 * (known.p[1:] + known.p[:-1]), cells)
        return cls(residual, error, own[nearest])


def _metrics(mu: Floats, f: Floats, mass: Floats, threshold: float) -> list[tuple[Any, ...]]:
    """Value of each metric, derivative by the events of a cell, and the least that the metric can be."""
    called = f >= threshold
    odds = threshold / (1.0 - threshold)
    rate = float(mu @ mass)
    # Linear in mu: what an event adds, and what a cell without events has.
    ones = np.ones_like(f)
    linear = (
        (ones, 0.0 * f),
        (1.0 - 2.0 * f, f**2),
        (np.where(called, 1.0, -1.0), np.where(called, 0.0, 1.0)),
        (np.where(called, 1.0 + odds, 0.0), np.where(called, -odds, 0.0)),
    )
    values = [(float(mass @ (mu * slope + start)), slope) for slope, start in linear]
    events, others = mu * mass, (1.0 - mu) * mass
    below = np.cumsum(others) - 0.5 * others  # ties count half
    above = rate - np.cumsum(events) + 0.5 * events
    pairs = max(rate * (1.0 - rate), 1e-300)
    area = float(events @ below) / pairs
    slope = (below - above - area * (1.0 - 2.0 * rate)) / pairs
    return [*values[:3], (area, slope), (*values[3], -np.inf)]
