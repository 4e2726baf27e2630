"""Performance before labels arrive, if the calibration curve of a labelled reference still holds.

Rate, Brier score, accuracy, AUC and net benefit of predictions f are functions of E[Y | f]. The reference
gives that curve as f + r(f), r its mean residual, piecewise linear; its uncertainty becomes that of the
projection.
With no reference the predictions are taken to be calibrated (confidence-based performance estimation).
Nothing here is measured: a drift of the curve itself is not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogorov

from calibrant._arguments import CONFIDENCE, require_confidence, require_share
from calibrant.data.arrays import numbers, require_each
from calibrant.data.points import Points
from calibrant.data.rows import InputOptions, Rows, as_rows
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import CalibrantWarning, InputError
from calibrant.inference.quantiles import normal_quantile
from calibrant.measures.result_record import Record, frame_of

Floats = NDArray[np.float64]

PIECES, ROWS_PER_PIECE = 10, 100
"""Pieces of the reference's curve, of equal numbers of rows; fewer where these would have less than 100."""

FEW, MOST_BEYOND = 5, 0.1
"""Rows of the reference that tell nothing of its curve beyond them; and share of rows there, above which
there is a warning."""


@dataclass(frozen=True)
class Projected:
    """Projected value of a metric with the interval that the reference's uncertainty gives."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "not defined"
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True, repr=False)
class Projection(Record):
    """Expected performance of predictions without labels.

    Attributes
    ----------
    rate, brier, accuracy, auc, net_benefit : Projected
        Expected event rate, Brier score, accuracy and net benefit at `threshold`, and AUC, of pairs of rows;
        NaN where only one outcome is possible.
    drift : float or None
        Largest difference of the distribution functions of reference and current predictions
        (Kolmogorov-Smirnov), and in `drift_p_value` its p-value: a drift of predictions, not of calibration.
    n_reference, n : int
        Labelled rows of the reference, and rows projected.
    beyond : float
        Share of the rows whose predictions are beyond all but a few of the reference's, where its curve is
        extrapolated.
    dropped : mapping
        Rows of the reference that were left out, by reason.
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
    beyond: float
    dropped: Mapping[str, int]
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
        lines += [f"{'dropped':<12} {count:,}: {reason}" for reason, count in self.dropped.items()]
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

    Notes
    -----
    The curve is fitted by least squares between knots at quantiles of the reference's predictions, and
    continued in a straight line beyond the last. Where more than one row in ten lies beyond all but five
    rows of the reference, a CalibrantWarning says how many: there the intervals hold only for a curve that
    goes on straight. With 1,500 labelled and 2,000 current rows, intervals at 95% held the truth in .95 of
    samples or more where the curve .25 + .5 f was carried from Beta(2, 4) to Beta(4, 2), and in .93 (of the
    AUC in .78) where f**1.5 was carried from Beta(2, 8) to Beta(8, 2), nearly all of it beyond the reference.

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
    curve = _Curve(np.zeros(1), np.zeros(1), np.zeros((1, 1)))
    drift, drift_p_value, n_reference, beyond = None, None, 0, 0.0
    dropped: Mapping[str, int] = {}
    if reference is not None:
        if isinstance(reference, Sketch):
            read: Sketch | Rows = as_sketch(reference, scale=PROBABILITY, **options)
        elif isinstance(reference, tuple | list) and len(reference) == 2:
            read = as_rows(*reference, **options)
        else:
            raise InputError(
                "`reference` must be a pair (y_true, y_prob), a Sketch or None.",
                argument="reference",
            )
        if isinstance(reference, Sketch) and reference.weighted:
            raise InputError("`reference` must have no weights.", argument="reference")
        known, dropped = Points.of(read), read.dropped
        n_reference = known.n
        curve = _Curve.of(known)
        count = known.cumulative[:, 0]
        few = (count[1:] <= FEW) | (known.total - count[:-1] <= FEW)
        inner = known.p[~few]
        inside = (f >= inner.min(initial=np.inf)) & (f <= inner.max(initial=-np.inf))
        beyond = 1.0 - float(mass[inside].sum())
        if beyond > MOST_BEYOND:
            message = f"{beyond:.0%} of `current` is beyond all but {FEW} rows of `reference`: "
            message += "there its curve is extrapolated in a straight line."
            warnings.warn(CalibrantWarning(message), stacklevel=2)
        drift, drift_p_value = _kolmogorov_smirnov(known, now)
    basis = _hats(f, curve.knots)
    mu = np.clip(f + basis @ curve.residual, 0.0, 1.0)
    z = normal_quantile(0.5 + 0.5 * confidence)

    def projected(value: float, slope: Floats, least: float = 0.0) -> Projected:
        """A metric, whose derivative by the mass of events in each cell is the slope."""
        if np.isnan(value):
            return Projected(np.nan, np.nan, np.nan)
        by_knot = basis.T @ (slope * mass)
        reach = z * float(np.sqrt(by_knot @ curve.covariance @ by_knot))
        return Projected(value, max(value - reach, least), min(value + reach, 1.0))

    rate, brier, accuracy, auc, net_benefit = (
        projected(*each) for each in _metrics(mu, f, mass, now.n, threshold)
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
        beyond,
        dropped,
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
    """Mean residual of a reference, piecewise linear in the prediction and linear beyond the last knots."""

    knots: Floats
    residual: Floats
    covariance: Floats

    @classmethod
    def of(cls, known: Points) -> _Curve:
        """Least squares with knots at quantiles, and the covariance of the values at the knots."""
        rows, events = known.mass.sum(axis=1), known.mass[:, 1]
        pieces = int(np.clip(known.n // ROWS_PER_PIECE, 1, PIECES))
        upto = np.linspace(0.0, known.total, pieces + 1)
        place = np.searchsorted(known.cumulative[1:, 0], upto)
        knots = np.unique(known.p[np.minimum(place, known.p.size - 1)])
        basis = _hats(known.p, knots)
        # The variance under a Beta(1, 1) prior: a piece whose outcomes are all alike is not certain.
        own = np.clip(np.searchsorted(knots, known.p, side="right") - 1, 0, max(knots.size - 2, 0))
        count, hits = np.bincount(own, rows), np.bincount(own, events)
        rate = ((hits + 1.0) / (count + 2.0))[own]
        inverse = np.linalg.inv(basis.T @ (rows[:, None] * basis))
        spread = basis.T @ ((rows * rate * (1.0 - rate))[:, None] * basis)
        residual = inverse @ (basis.T @ (events - rows * known.p))
        return cls(knots, residual, inverse @ spread @ inverse)


def _hats(at: Floats, knots: Floats) -> Floats:
    """Weights of the values at the knots in a piecewise linear function; beyond them, of their line."""
    if knots.size == 1:
        return np.ones((at.size, 1))
    left = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, knots.size - 2)
    share = (at - knots[left]) / (knots[left + 1] - knots[left])
    weights = np.zeros((at.size, knots.size))
    row = np.arange(at.size)
    weights[row, left] = 1.0 - share
    weights[row, left + 1] = share
    return weights


def _metrics(
    mu: Floats, f: Floats, mass: Floats, n: int, threshold: float
) -> list[tuple[Any, ...]]:
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
    # No row makes a pair with itself.
    itself, change = float(events @ (1.0 - mu)) / n, (1.0 - 2.0 * mu) / n
    pairs = rate * (1.0 - rate) - itself
    area, slope = np.nan, ones
    if pairs > 1e-9 * rate * (1.0 - rate):
        area = (float(events @ below) - 0.5 * itself) / pairs
        slope = below - above - 0.5 * change - area * (1.0 - 2.0 * rate - change)
        slope = slope / pairs
    return [*values[:3], (area, slope), (*values[3], -np.inf)]
