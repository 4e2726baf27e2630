"""Observed/expected ratio (calibration in the large) with a score interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from calibrant._format import decimals
from calibrant.data.cell_sums import over_outcomes
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.null_noise import design_effects
from calibrant.inference.residuals import LabelSums
from calibrant.measures.result_record import plain


@dataclass(frozen=True)
class Ratio:
    """Observed over expected events, with a confidence interval.

    Attributes
    ----------
    value : float
        The ratio; 1 for predictions that are right on average.
    low, high : float
        Confidence limits of the population's ratio.
    confidence : float
        Confidence level.
    """

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        if math.isfinite(self.value):
            value, low, high = (decimals(x, places=3) for x in (self.value, self.low, self.high))
            return f"{value} ({low} to {high})"
        return (
            "no event seen, none expected"
            if math.isnan(self.value)
            else "events seen, none expected"
        )

    def to_dict(self) -> dict[str, float | None]:
        """The ratio and its interval; None where they are not finite."""
        return {name: plain(getattr(self, name)) for name in ("value", "low", "high")}


def observed_expected(
    sums: LabelSums, confidence: float, clusters: ClusterResiduals | None = None
) -> Ratio:
    """Observed/expected ratio ρ = Σwy / Σwf with a score interval (Wilson's, for a ratio).

    The interval holds every ρ with |Σ w (y - ρf)| ≤ t √V(ρ), where the variance is the one under the
    hypothesised ratio:

        V(ρ) = null variance of predictions min(ρf, 1)  +  ρ² τ².

    The first term is that of the calibration test (`null_noise`): Bernoulli outcomes, and with weights the
    design effects of each label. The second is the variance of random effects (DerSimonian and Laird's
    moment estimator): the excess of the squared residuals at the estimate, summed within clusters, over the
    first term, for outcomes that depend on each other or on more than ρf. t is Student's quantile with one
    degree of freedom less than the effective number of rows or clusters. From 20 clusters on the interval
    covers (docs, "Profiles"); with fewer, and few events, it is too short.

    References
    ----------
    Wilson 1927; McCullagh and Nelder, *Generalized Linear Models*, 1989 (variance functions).

    Examples
    --------
    >>> y = [1] * 3 + [0] * 47  # three events of fifty, one in ten predicted
    >>> from calibrant.data.sketch import Sketch
    >>> print(observed_expected(LabelSums.of(Sketch.from_arrays(y, [0.1] * 50)), 0.95))
    0.600 (0.200 to 1.703)
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    f, weights, squared, cross = sums.prediction, sums.weights, sums.squared, sums.cross
    total, observed, expected = (
        float(sums.mass.sum()),
        float(weights[:, 1].sum()),
        float(sums.mass @ f),
    )
    if expected <= 0.0:
        return Ratio(math.nan if observed == 0.0 else math.inf, 0.0, math.inf, confidence)
    ratio, squares = observed / expected, float(squared.sum() + 2.0 * cross.sum())
    omega = np.ones((f.size, 2))
    if sums.weighted:
        omega = design_effects((sums.counts, weights, squared), f)
    rows = over_outcomes(weights / omega)

    def bernoulli(rho: float) -> float:
        event = np.minimum(rho * f, 1.0)
        other = 1.0 - event
        if not sums.weighted:
            return float(sums.mass @ (event * other))
        weight = rows / (event / omega[:, 1] + other / omega[:, 0])
        return float(weight @ (event * other * (other * omega[:, 1] + event * omega[:, 0])))

    if clusters is None:
        d0, d1 = -ratio * f, 1.0 - ratio * f
        seen = float(squared[:, 0] @ d0**2 + squared[:, 1] @ d1**2 + 2.0 * cross @ (d0 * d1))
        units = many = total**2 / squares
    else:
        _, events, foreseen = clusters.sums * total
        seen = float(((events - ratio * foreseen) ** 2).sum())
        units, many = float(clusters.number), clusters.units
    if many < 2.0:
        return Ratio(ratio, 0.0, total / expected, confidence)
    seen *= units / (units - 1.0)
    agree = observed <= 0.0 or observed >= total
    # Outcomes that all agree show no dependence: as if each cluster were one row.
    factor = max(total**2 / many / squares, 1.0) if agree else 1.0
    if sums.soft and not agree:  # outcomes between 0 and 1 vary less than Bernoulli's
        factor = min(seen / bernoulli(ratio), 1.0)
    excess = max(seen - factor * bernoulli(ratio), 0.0) / ratio**2 if ratio > 0.0 else 0.0
    t2 = float(stdtrit(many - 1.0, 0.5 + 0.5 * confidence)) ** 2

    @cache  # the ends of the search are asked for twice
    def beyond(rho: float) -> float:
        variance = factor * bernoulli(rho) + excess * rho**2
        return (observed - rho * expected) ** 2 - t2 * variance

    rounding = 1e-9  # at the ratio itself the sign of `beyond` is that of rounding
    below = ratio * (1.0 - rounding)
    above = max(ratio * (1.0 + rounding), rounding * total / expected)
    low, high = ratio, math.inf
    if beyond(below) < 0.0:
        low = float(brentq(beyond, 0.0, below))
    if expected**2 > t2 * excess:
        high = ratio
        if beyond(above) < 0.0:
            end = 2.0 * above
            while beyond(end) < 0.0:
                end *= 2.0
            high = float(brentq(beyond, above, end))
    return Ratio(ratio, low, high, confidence)
