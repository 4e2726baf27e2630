"""Performance before labels arrive, if the calibration curve of a labelled reference still holds.

Rate, Brier score, accuracy, AUC and net benefit of predictions f are functions of E[Y | f]. The reference
gives that curve as logit f + g(logit f). The prior of g is a line, a random walk and a jump at the threshold:
where the reference has rows they decide, and away from them the posterior widens with the distance. Its
draws are those of the projection.
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
from calibrant.inference.logistic import expit, log_odds, posterior
from calibrant.measures.result_record import Record, frame_of

Floats = NDArray[np.float64]

KNOTS, DRAWS = 20, 1000
"""Quantiles of each sample between which g is linear, and draws of the curve."""

FITTED_CELLS, DRAWN_CELLS = 1000, 250
"""Cells of about equally many rows that stand for the reference, and for the current rows in the draws."""

LEVEL, SLOPE, WALK, JUMP = 3.0, 1.0, 0.5, 1.0
"""Prior standard deviations of g: its level (from a twentieth to twenty times the odds); its slope (at -1 the
predictions say nothing, at 1 the curve is twice as steep); its bend over one unit of the log-odds (a unit
over the four from .12 to .88); and its jump at the threshold, where people act."""

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
        How the reference is read (see `calibrant.data.InputOptions`); weights are not taken.

    Notes
    -----
    The curve is a logistic regression on the log-odds of the predictions: a line, a random walk and a jump at
    the threshold, with Gaussian priors around calibrated predictions. Intervals are quantiles of 1,000 draws
    of its posterior (Laplace's approximation). Where more than one row in ten lies beyond all but five rows
    of the reference, a CalibrantWarning says how many: there the walk alone says how far the curve may bend.

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
    mu, draws = f[:, None], None
    drift, drift_p_value, n_reference, beyond = None, None, 0, 0.0
    dropped: Mapping[str, int] = {}
    if reference is not None:
        if isinstance(reference, Sketch):
            read: Sketch | Rows = as_sketch(reference, scale=PROBABILITY, **options)
            if reference.weighted:
                raise InputError("`reference` must have no weights.", argument="reference")
        elif isinstance(reference, tuple | list) and len(reference) == 2:
            read = as_rows(*reference, **options)
        else:
            raise InputError(
                "`reference` must be a pair (y_true, y_prob), a Sketch or None.",
                argument="reference",
            )
        known, dropped = Points.of(read), read.dropped
        n_reference = known.n
        count = known.cumulative[:, 0]
        few = (count[1:] <= FEW) | (known.total - count[:-1] <= FEW)
        inner = known.p[~few]
        inside = (f >= inner.min(initial=np.inf)) & (f <= inner.max(initial=-np.inf))
        beyond = 1.0 - float(mass[inside].sum())
        if beyond > MOST_BEYOND:
            message = f"{beyond:.0%} of `current` is beyond all but {FEW} rows of `reference`: "
            message += "there its curve is extrapolated."
            warnings.warn(CalibrantWarning(message), stacklevel=2)
        drift, drift_p_value = _kolmogorov_smirnov(known, now)
        curve = _Curve.of(known, now, threshold)
        mu = curve(f, curve.mode)
        cells, weight = _pooled(now, DRAWN_CELLS, threshold)
        draws = (curve(cells, curve.draws), cells, weight[:, 0] / now.total)
    ends = [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence]
    values = _metrics(mu, f, mass, now.n, threshold)[:, 0]
    intervals = np.stack([values, values], axis=1)
    if draws is not None:
        intervals = np.quantile(_metrics(*draws, now.n, threshold), ends, axis=1).T
    rate, brier, accuracy, auc, net_benefit = (
        Projected(value, min(low, value), max(high, value))
        for value, (low, high) in zip(values.tolist(), intervals.tolist(), strict=True)
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
    """Posterior of g, piecewise linear on the log-odds: its mode and draws of it at the knots."""

    knots: Floats
    mode: Floats
    draws: Floats

    @classmethod
    def of(cls, known: Points, now: Points, threshold: float) -> _Curve:
        """Logistic regression with the log-odds of the predictions as offset."""
        cut = float(log_odds(np.array(threshold)))
        each = [log_odds(_quantiles(one)) for one in (known, now)]
        knots = np.unique(np.concatenate([*each, [np.nextafter(cut, -np.inf), cut]]))
        spread = np.where(knots[1:] == cut, JUMP, WALK * np.sqrt(np.diff(knots)))
        steps = np.tile(spread, (knots.size, 1))
        level = np.full(knots.size, LEVEL)
        # The coefficients of level, slope and steps of the walk are independent and standard normal.
        basis = np.column_stack([level, SLOPE * knots, np.tril(steps, -1)])
        f, mass = _pooled(known, FITTED_CELLS, threshold)
        x, rows = log_odds(f), mass.sum(axis=1)
        features = _interpolated(x, knots, basis)
        found = posterior(features, x, rows, mass[:, 1] / rows, np.ones(basis.shape[1]))
        root = np.linalg.inv(np.linalg.cholesky(found.precision)).T
        half = root @ np.random.default_rng(0).standard_normal((len(root), DRAWS // 2))
        mode = basis @ found.coefficients[:, None]
        return cls(knots, mode, mode + basis @ np.hstack([half, -half]))

    def __call__(self, f: Floats, g: Floats) -> Floats:
        """Chances of events at these predictions, a column for each column of g; f itself where g is 0."""
        x = log_odds(f)[:, None]
        change = expit(x + _interpolated(x[:, 0], self.knots, g)) - expit(x)
        return np.asarray(np.clip(f[:, None] + change, 0.0, 1.0))


def _quantiles(points: Points) -> Floats:
    upto = np.linspace(0.0, points.total, KNOTS + 1)
    place = np.searchsorted(points.cumulative[1:, 0], upto)
    return points.p[np.minimum(place, points.p.size - 1)]


def _interpolated(x: Floats, knots: Floats, values: Floats) -> Floats:
    """Piecewise linear functions with these values at the knots, a column each."""
    return np.stack([np.interp(x, knots, column) for column in values.T], axis=1)


def _pooled(points: Points, cells: int, threshold: float) -> tuple[Floats, Floats]:
    """Mean prediction and mass by outcome of the cells, each on one side of the threshold."""
    place = np.minimum(points.cumulative[:-1, 0] / points.total * cells, cells - 1)
    cell = np.unique(place.astype(np.int64) + cells * (points.p >= threshold), return_inverse=True)[
        1
    ]
    others, events = (np.bincount(cell, column) for column in points.mass.T)
    sums = np.bincount(cell, points.mass.sum(axis=1) * points.p)
    return sums / (others + events), np.stack([others, events], axis=1)


def _metrics(mu: Floats, f: Floats, mass: Floats, n: int, threshold: float) -> Floats:
    """Rate, Brier score, accuracy, AUC and net benefit, for each column of chances."""
    called = f >= threshold
    odds = threshold / (1.0 - threshold)
    events, others = mu * mass[:, None], (1.0 - mu) * mass[:, None]
    rate = events.sum(axis=0)
    brier = (1.0 - f) ** 2 @ events + f**2 @ others
    accuracy = called @ events + ~called @ others
    below = np.cumsum(others, axis=0) - 0.5 * others  # ties count half
    itself = (events * (1.0 - mu)).sum(axis=0) / n  # no row makes a pair with itself
    pairs = rate * (1.0 - rate) - itself
    some = pairs > 1e-9 * rate * (1.0 - rate)
    area = ((events * below).sum(axis=0) - 0.5 * itself) / np.where(some, pairs, np.nan)
    return np.stack([rate, brier, accuracy, area, called @ events - odds * (called @ others)])
