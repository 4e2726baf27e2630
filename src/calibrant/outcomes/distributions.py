"""Calibration of predictive distributions: probability integral transform (PIT), CRPS and coverage.

A predictive distribution F is probabilistically calibrated if F(Y), the PIT, is uniform (Dawid 1984;
Gneiting, Balabdaoui & Raftery 2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest, norm

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    is_number,
    require_confidence,
    require_count,
    require_seed,
)
from calibrant._format import aligned, decimals, p_equation, percent
from calibrant.data.arrays import numbers, require_each, same_length
from calibrant.data.rows import require_same_index, require_same_index_in
from calibrant.errors import InputError, invalid
from calibrant.inference.assessment import MISCALIBRATED, UNDETECTED
from calibrant.measures.result_record import Record, frame_of
from calibrant.outcomes.quantiles import PinballLoss, decompose

__all__ = ["DistributionAssessment", "PITRecalibrator", "assess"]

Floats = NDArray[np.float64]
CDF = Callable[[Floats], Floats]

DRAWS = 1999
"""Null samples of the PIT: p-values are resolved to 1/2000."""
CELLS = 200
"""Cells of the PIT in which the test sees it: finer than any histogram that is shown."""
LEVELS = (np.arange(50) + 0.5) / 50
"""Levels of the quantiles whose pinball losses give the parts of the CRPS."""
GROWTHS, HALVINGS = 60, 80
"""Doublings until one interval holds all quantiles, and bisections: to neighbouring floats or 1e-24 of it."""
TAIL = np.linspace(0.0, 1.0, 41)
"""Edges beyond the quantiles, from 1/100 of their range to 10,000 times the widest range, in equal ratios."""
INTERVALS = (0.5, 0.8, 0.9, 0.95)
"""Central intervals of the PIT whose coverage is reported."""


@dataclass(frozen=True, eq=False, repr=False)
class DistributionAssessment(Record):
    """Calibration of predictive distributions of one outcome each.

    Attributes
    ----------
    p_value : float
        Of "the PIT is uniform": the larger of the standardised deviations of its distribution function and of
        its histogram, combined by the smaller p-value of the two (Westfall & Young).
    pit : array
        PIT of each outcome.
    histogram, low, high : array
        Relative frequency of the PIT in equal bins (1 where calibrated), with the consistency band.
    coverage : dict
        For each central interval of the PIT: the share of outcomes in it, with the ends of a Wilson interval.
        Of a continuous distribution that is the coverage of its prediction interval. Where the PIT is
        randomised (samples, or a function that jumps) it is that of no interval: it is 95% of calibrated
        ensembles of five, whose range covers two thirds.
    crps : float
        Mean continuous ranked probability score.
    parts : PinballLoss
        Miscalibration, discrimination and uncertainty of the CRPS: twice the mean pinball loss of fifty
        quantiles.
    mace, rmsce, miscalibration_area : float
        Of the coverage of central intervals against their levels, as uncertainty-toolbox defines them.
    n : int
        Number of outcomes.
    """

    p_value: float
    pit: Floats
    histogram: Floats
    low: Floats
    high: Floats
    coverage: dict[float, tuple[float, float, float]]
    crps: float
    parts: PinballLoss
    mace: float
    rmsce: float
    miscalibration_area: float
    n: int
    confidence: float

    @property
    def miscalibrated(self) -> bool:
        """Rejection of calibration at the level 1 - confidence."""
        return self.p_value <= 1.0 - self.confidence + 1e-12

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if not self.miscalibrated:
            return f"{UNDETECTED}: {p_equation(self.p_value)}"
        variance, mean = float(self.pit.var()), float(self.pit.mean())
        if abs(mean - 0.5) * np.sqrt(12.0) > abs(12.0 * variance - 1.0):
            finding = "forecasts are too high" if mean < 0.5 else "forecasts are too low"
        else:
            narrow = variance > 1.0 / 12.0
            finding = "distributions are too narrow" if narrow else "distributions are too wide"
        return f"{MISCALIBRATED}: {p_equation(self.p_value)}; {finding}"

    def __repr__(self) -> str:
        return (
            f"DistributionAssessment(CRPS {self.crps:.4g}, {p_equation(self.p_value)}, n={self.n})"
        )

    def __str__(self) -> str:
        return f"{self.verdict}\n\n{aligned(self.rows())}"

    def rows(self) -> list[list[str]]:
        """Scores and PIT coverage as a table of text, header first."""
        scores = {
            "CRPS": self.crps,
            "miscalibration": self.parts.miscalibration,
            "discrimination": self.parts.discrimination,
            "uncertainty": self.parts.uncertainty,
            "MACE": self.mace,
        }
        return [
            ["", "value", "interval"],
            *([name, decimals(value), ""] for name, value in scores.items()),
            *(
                [f"PIT coverage of {percent(level)}", decimals(share), f"{low:.4f} to {high:.4f}"]
                for level, (share, low, high) in self.coverage.items()
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        coverage = [
            {"level": level, "coverage": covered, "low": low, "high": high}
            for level, (covered, low, high) in self.coverage.items()
        ]
        return {"verdict": self.verdict, **super().to_dict(), "coverage": coverage}

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each central interval."""
        return frame_of(self.to_dict()["coverage"], backend)


def assess(
    y: Any,
    *,
    mean: Any = None,
    sd: Any = None,
    samples: Any = None,
    cdf: CDF | None = None,
    data: Any = None,
    n_bins: int = 10,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
) -> DistributionAssessment:
    """PIT, test of uniformity, CRPS and PIT coverage of predictive distributions.

    Parameters
    ----------
    y : array or name of a column
        Outcomes.
    mean, sd : array or name of a column
        Normal distributions; or
    samples : array, shape (n, m)
        Samples of each distribution (an ensemble); or
    cdf : callable
        `cdf(x)` gives the value of each row's distribution function at the n values x. It may jump.
    data : frame or mapping, optional
        Where the named columns are.
    n_bins : int
        Bins of the PIT histogram.
    confidence : float
        Of intervals and band; the test's level is 1 - `confidence`.
    random_state : int
        For the random part of the PIT where the outcome has a probability of its own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> center = rng.normal(size=1000)
    >>> found = assess(rng.normal(center), mean=center, sd=np.full(1000, 0.7))
    >>> print(found.verdict)
    miscalibrated: p < 0.001; distributions are too narrow
    """
    require_confidence(confidence)
    require_count("n_bins", n_bins)
    require_seed(random_state, "random_state")
    require_same_index(y=y, mean=mean, sd=sd, samples=samples)
    require_same_index_in(data, y, mean, sd)
    outcome = numbers(y, "y", data)
    forms = [mean is not None or sd is not None, samples is not None, cdf is not None]
    if sum(forms) != 1:
        raise InputError(
            f"one form of the distributions is needed; {sum(forms)} are given.",
            hint="Pass `mean` and `sd`, or `samples`, or `cdf`.",
        )
    if forms[0]:
        center, spread = _normal(outcome, mean, sd, data)
        with np.errstate(over="ignore"):  # refused below
            z = (outcome - center) / spread
            pit = norm.cdf(z)
            crps = spread * (z * (2.0 * pit - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
            quantiles = [center + spread * norm.ppf(level) for level in LEVELS]
    elif samples is not None:
        ensemble = np.sort(numbers(samples, "samples", ndim=2), axis=1)
        same_length(y=outcome, samples=ensemble)
        pit = _rank(outcome, ensemble, random_state)
        crps = _ensemble_crps(outcome, ensemble)
        quantiles = list(np.quantile(ensemble, LEVELS, axis=1, method="inverted_cdf"))
    else:
        if not callable(cdf):
            raise invalid("cdf", "be a function", cdf)
        below, at_most = (_values(cdf, at) for at in (np.nextafter(outcome, -np.inf), outcome))
        pit = below + generator(random_state).random(outcome.size) * (at_most - below)
        quantiles = _inverted(cdf, outcome)
        crps = _integrated_crps(cdf, outcome, quantiles)
    _require_finite(crps, *quantiles)
    return _assessment(pit, float(np.mean(crps)), _parts(outcome, quantiles), n_bins, confidence)


def _require_finite(*columns: Floats) -> None:
    if not all(np.all(np.isfinite(column)) for column in columns):
        raise InputError(
            "the CRPS of the distributions must be finite; they rise too slowly from 0 to 1, or not at all."
        )


def _normal(outcome: Floats, mean: Any, sd: Any, data: Any) -> tuple[Floats, Floats]:
    if mean is None or sd is None:
        raise InputError(
            "`mean` and `sd` belong together.", argument="mean" if mean is None else "sd"
        )
    center, spread = (
        numbers(np.full(outcome.size, value) if is_number(value) else value, name, data)
        for value, name in ((mean, "mean"), (sd, "sd"))
    )
    same_length(y=outcome, mean=center, sd=spread)
    require_each("sd", spread, spread > 0, "be above 0")
    return center, spread


def _values(cdf: CDF, at: Floats) -> Floats:
    """The distribution functions at these values, checked."""
    values = numbers(cdf(at), "cdf")
    if values.shape != at.shape or not np.all((values >= 0) & (values <= 1)):
        raise InputError(
            "`cdf` must return one number between 0 and 1 for each value.", argument="cdf"
        )
    return values


def _rank(outcome: Floats, ensemble: Floats, random_state: int) -> Floats:
    """Randomised PIT: the rank of the outcome among the samples, spread over its ties."""
    below = (ensemble < outcome[:, None]).sum(axis=1)
    ties = (ensemble == outcome[:, None]).sum(axis=1)
    jitter = generator(random_state).random(outcome.size)
    pit: Floats = (below + jitter * (ties + 1)) / (ensemble.shape[1] + 1)
    return pit


def _ensemble_crps(outcome: Floats, ensemble: Floats) -> Floats:
    """E|X - y| - E|X - X'| / 2 of the empirical distributions, from sorted samples."""
    m = ensemble.shape[1]
    distance = np.abs(ensemble - outcome[:, None]).mean(axis=1)
    rank = 2.0 * np.arange(1, m + 1) - m - 1.0
    return np.asarray(distance - ensemble @ rank / m**2)


def _integrated_crps(cdf: CDF, outcome: Floats, quantiles: list[Floats]) -> Floats:
    """Integral of (F(x) - 1{y <= x})^2 in panels between quantiles and outcome; beyond them panels grow.

    Quantiles stand at every jump of 1/50 or more, so that F is smooth, or nearly flat, within a panel.
    """
    first, last = quantiles[0], quantiles[-1]
    scale = _scale(outcome)
    width = np.where(last > first, last - first, scale)
    miss = np.maximum(np.abs(outcome - first), np.abs(outcome - last))
    start, end = 0.01 * width, 1e4 * np.maximum(np.maximum(width, miss), scale)
    tail = [start ** (1.0 - t) * end**t for t in TAIL]
    ends = [first - step for step in tail], quantiles, [last + step for step in tail], [outcome]
    edges = np.sort(np.concatenate(ends), axis=0)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    total, outer = np.zeros((2, outcome.size))
    for k, (left, right) in enumerate(pairwise(edges)):
        panel = np.zeros(outcome.size)
        for node, weight in zip(nodes, weights, strict=True):
            value = _values(cdf, 0.5 * (left + right) + 0.5 * (right - left) * node)
            panel += 0.5 * (right - left) * weight * (value - (left >= outcome)) ** 2
        total += panel
        if k in (0, len(edges) - 2):
            outer = np.maximum(outer, panel)
    total[outer > 1e-3 * np.maximum(total, 1e-300)] = np.inf  # the tail does not end
    return total


def _inverted(cdf: CDF, outcome: Floats) -> list[Floats]:
    """Quantiles of each row's distribution by bisection of one interval: equal forecasts have equal ones."""
    center, reach = float(np.median(outcome)), _scale(outcome)
    for _ in range(GROWTHS):
        ends = np.full(outcome.size, center - reach), np.full(outcome.size, center + reach)
        below, above = _values(cdf, ends[0]) < LEVELS[0], _values(cdf, ends[1]) >= LEVELS[-1]
        if below.all() and above.all():
            break
        reach *= 2.0
    quantiles = []
    for level in LEVELS:
        low, high = ends
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if np.all((middle <= low) | (middle >= high)):
                break
            above = _values(cdf, middle) >= level
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        quantiles.append(high)
    return quantiles


def _scale(outcome: Floats) -> float:
    """Range of the outcomes, or their size where they are alike."""
    return float(np.ptp(outcome)) or float(np.abs(outcome[0])) or 1.0


def _parts(outcome: Floats, quantiles: list[Floats]) -> PinballLoss:
    losses = [decompose(outcome, q, float(t)) for q, t in zip(quantiles, LEVELS, strict=True)]
    names = ("value", "miscalibration", "discrimination", "uncertainty")
    return PinballLoss(*(2.0 * float(np.mean([getattr(one, k) for one in losses])) for k in names))


def _assessment(
    pit: Floats, crps: float, parts: PinballLoss, n_bins: int, confidence: float
) -> DistributionAssessment:
    n = pit.size
    draws = np.random.default_rng(0).multinomial(n, np.full(CELLS, 1.0 / CELLS), DRAWS)
    seen = np.histogram(pit, CELLS, (0.0, 1.0))[0]
    edges = np.linspace(0.0, 1.0, CELLS + 1)[1:-1]

    def statistics(counts: NDArray[Any]) -> Floats:
        ecdf = np.cumsum(counts, axis=-1)[..., :-1] / n
        sup = np.max(np.abs(ecdf - edges) / np.sqrt(edges * (1.0 - edges)), axis=-1)
        bins = counts.reshape(*counts.shape[:-1], 10, -1).sum(axis=-1)
        return np.stack([sup, np.max(np.abs(bins - n / 10), axis=-1)])

    both = np.concatenate([statistics(seen)[:, None], statistics(draws)], axis=1)
    order = np.sort(both, axis=1)
    ranks = np.stack(
        [
            both.shape[1] - np.searchsorted(row, values, side="left")
            for row, values in zip(order, both, strict=True)
        ]
    ).min(axis=0)
    p_value = float(np.mean(ranks <= ranks[0]))
    histogram = np.histogram(pit, n_bins, (0.0, 1.0))[0] * n_bins / n
    ends = binom.ppf([0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence], n, 1.0 / n_bins)
    low, high = (np.full(n_bins, end * n_bins / n) for end in ends)
    central = np.abs(2.0 * pit - 1.0)
    coverage = {}
    for level in INTERVALS:
        inside = int(np.sum(central <= level))
        wilson = binomtest(inside, n).proportion_ci(confidence, method="wilson")
        coverage[level] = (inside / n, float(wilson.low), float(wilson.high))
    expected = np.linspace(0.0, 1.0, 100)
    gap = np.searchsorted(np.sort(central), expected, side="right") / n - expected
    return DistributionAssessment(
        p_value,
        pit,
        histogram,
        low,
        high,
        coverage,
        crps,
        parts,
        float(np.abs(gap).mean()),
        float(np.sqrt(np.mean(gap**2))),
        _area(gap, expected[1]),
        n,
        confidence,
    )


def _area(gap: Floats, step: float) -> float:
    """Area between a broken line and 0."""
    a, b = np.abs(gap[:-1]), np.abs(gap[1:])
    crosses = gap[:-1] * gap[1:] < 0
    pieces = np.where(crosses, (a**2 + b**2) / np.maximum(a + b, 1e-300), a + b)
    return float(0.5 * step * pieces.sum())


class PITRecalibrator:
    """Recalibration of distribution functions by the distribution of their PIT (Kuleshov et al. 2018).

    The recalibrated distribution function is R(F(y)), with R the empirical distribution function of the PIT
    of other outcomes; it is increasing by construction.

    Examples
    --------
    >>> pit = np.random.default_rng(0).beta(0.5, 0.5, 2000)  # distributions were too narrow
    >>> recalibrate = PITRecalibrator().fit(pit)
    >>> recalibrate.transform([0.05, 0.5]).round(2)
    array([0.15, 0.49])
    """

    def fit(self, pit: Any) -> PITRecalibrator:
        """Learn R from the PIT of outcomes that were not used to train the forecasts."""
        self.pit_: Floats = np.sort(_shares(pit, "pit"))
        return self

    def transform(self, pit: Any) -> Floats:
        """Recalibrated values of the distribution function: shares of the PIT at or below."""
        self._require_fit()
        below = np.searchsorted(self.pit_, _shares(pit, "pit"), side="right")
        return np.asarray(below / self.pit_.size)

    def levels(self, levels: Any) -> Floats:
        """Levels at which the original quantile function gives the recalibrated quantiles."""
        self._require_fit()
        return np.quantile(self.pit_, _shares(levels, "levels"), method="inverted_cdf")

    def _require_fit(self) -> None:
        if not hasattr(self, "pit_"):
            raise InputError("`fit` comes first: this PITRecalibrator has learned nothing yet.")


def _shares(values: Any, name: str) -> Floats:
    column = numbers(values, name)
    require_each(name, column, (column >= 0) & (column <= 1), "be between 0 and 1")
    return column
