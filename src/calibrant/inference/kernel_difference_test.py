"""A test of "two models have the same kernel calibration error", by a U-statistic and its jackknife.

The squared kernel calibration error E[r r' k(f, f')], with r = f - y and two independent rows, has an
unbiased estimate: the mean over pairs of different rows. It is 0 on average for a calibrated model, however
few the rows, which no plug-in error is. So its difference between two models needs no debiasing, and its
standard error is that of the jackknife, or of pairs of rows where no single row matters.

References
----------
Widmann, Lindsten and Zachariah, *Calibration tests in multi-class classification* (SKCE, 2019). Arvesen,
*Jackknifing U-statistics* (1969).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._format import SMALLEST_P_VALUE
from calibrant.data.rows import Rows
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.measures._chains import laplace_sums

__all__ = ["KERNEL_WIDTH", "KernelError", "difference_p_value"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIRS = 400_000
KERNEL_WIDTH = 0.05
"""Of the Laplace kernel, in units of probability where the scale is steepest."""


@dataclass(frozen=True, eq=False)
class KernelError:
    """The squared kernel calibration error of one model, and what each unit of rows adds to it.

    Attributes
    ----------
    value : float
        Unbiased: below 0 for about half of all calibrated models.
    influence : float64[units]
        The value less what it is without the unit, a row or a cluster; these add up to about nothing, and
        their squares to the variance.
    repeats : float64[units]
        How many units are alike; 1 for rows.
    smooth : float64[units]
        Mean over all rows of r k(f, ·) at the row of the unit; empty for clusters.
    chance : float64[units]
        The prediction there.
    place, residual : float64[rows]
        Of each row, or each kind of rows: where it lies, in widths of the kernel, and its share of f - y.
    weight : float
        What the variance of a calibrated outcome is multiplied by, for a row.
    units : float
        The effective number of independent units: (Σ weight)² / Σ weight².
    """

    value: float
    influence: Floats
    repeats: Floats
    smooth: Floats
    chance: Floats
    place: Floats
    residual: Floats
    weight: float
    units: float

    @classmethod
    def of_rows(
        cls, pairs: Rows, scale: Scale, codes: tuple[Integers, int] | None = None
    ) -> KernelError:
        """Of rows, or of clusters of them as `cluster_codes` numbers these."""
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        share = weight / weight.sum()
        z = _in_widths(scale.locate(pairs.p), scale)
        residual = share * (pairs.p - pairs.y)
        smooth = _kernel_sums(z, residual)
        outcome = _outcome_weight(share, pairs.y)
        if codes is None:
            own, unit_share = residual**2, share
            with_others = residual * smooth - own
        else:
            inside = _kernel_sums(z, residual, codes[0])
            with_others, unit_share = (
                np.bincount(codes[0], weights=each, minlength=codes[1])
                for each in (residual * (smooth - inside), share)
            )
        return cls(
            *_jackknifed(with_others, unit_share, np.ones(unit_share.size)),
            smooth if codes is None else np.empty(0),
            np.asarray(pairs.p),
            z,
            residual,
            outcome,
            float(1.0 / (unit_share**2).sum()),
        )

    @classmethod
    def of_sketch(cls, sketch: Sketch) -> KernelError:
        """Of the rows of a sketch, which are alike where they share a cell and an outcome."""
        total = sketch.total_weight
        mass, squared = sketch.weights, sketch.squared_weights
        used = mass > 0
        unit = np.divide(squared, mass, out=np.zeros_like(mass), where=used)[used] / total
        repeats = mass[used] / total / unit
        label = np.broadcast_to(np.arange(2.0), mass.shape)[used]
        offset = np.divide(sketch.weighted_offsets, mass, out=np.zeros_like(mass), where=used)
        place = (sketch.cells[:, None] + offset * 2.0**-sketch.offset_bits) / sketch.nodes
        p = np.clip(sketch.scale.prediction(place[used]), 0.0, 1.0)
        z = _in_widths(place[used], sketch.scale)
        residual = unit * (p - label)
        smooth = _kernel_sums(z, repeats * residual)
        with_others = residual * smooth - residual**2
        return cls(
            *_jackknifed(with_others, unit, repeats),
            smooth,
            p,
            z,
            residual,
            _outcome_weight(unit, label, repeats),
            float(1.0 / (repeats * unit**2).sum()),
        )

    @property
    def variance(self) -> float:
        """Of the value, by the jackknife, and no less than calibrated outcomes would give it."""
        seen = float((self.repeats * self.influence**2).sum())
        return max(seen, self._of_outcomes(self.smooth, self.chance), self._of_pairs())

    def variance_of_difference(self, other: KernelError) -> float:
        """Of this value less the other, on the same units."""
        seen = float((self.repeats * (self.influence - other.influence) ** 2).sum())
        seen = max(seen, _of_differing_pairs(self, other))
        if not self.smooth.size:
            return seen
        # Where no event was seen the rows show no spread; were one of the models right, they would.
        chance = 0.5 * (self.chance + other.chance)
        return max(seen, self._of_outcomes(self.smooth - other.smooth, chance))

    def _of_pairs(self) -> float:
        """What pairs of rows alone give the variance: all of it where no row matters on average.

        So it is for a calibrated model, where the jackknife may show next to nothing by chance.
        """
        squares = self.residual**2
        repeats = self.repeats if self.repeats.size == squares.size else np.ones_like(squares)
        near = _kernel_sums(2.0 * self.place, repeats * squares)
        return float(2.0 * (repeats * squares * (near - squares)).sum())

    def _of_outcomes(self, smooth: Floats, chance: Floats) -> float:
        if not smooth.size:
            return 0.0
        spread = chance * (1.0 - chance) * smooth**2
        return float(4.0 * self.weight * (self.repeats * spread).sum())


def difference_p_value(one: KernelError, other: KernelError, *, paired: bool) -> float:
    """P-value of "both models have the same kernel calibration error"; two-sided.

    Student's t with as many degrees of freedom as there are effective rows, or clusters, less one. So many of
    them agree by chance with a probability of ½ for each but the first; no p-value is less than that.

    Examples
    --------
    >>> from calibrant.data.rows import as_rows
    >>> from calibrant.data.scales import PROBABILITY
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> right, wrong = (KernelError.of_rows(as_rows(y, q), PROBABILITY) for q in (p, p**2))
    >>> difference_p_value(right, wrong, paired=True) < 0.001
    True
    """
    from scipy.special import stdtr

    difference = abs(one.value - other.value)
    variance = one.variance_of_difference(other) if paired else one.variance + other.variance
    if difference == 0.0:
        return 1.0
    others = min(one.units, other.units) - 1.0
    least = float(max(0.5 ** max(others, 0.0), SMALLEST_P_VALUE))
    if variance <= 0.0:
        return least
    return float(max(2.0 * stdtr(max(others, 1.0), -difference / np.sqrt(variance)), least))


def _of_differing_pairs(one: KernelError, other: KernelError) -> float:
    """What pairs of rows alone give the variance of the difference, from all pairs or some 400,000."""
    n = one.residual.size
    shifts = min(n - 1, -(-PAIRS // n))
    if shifts < 1:
        return 0.0
    # In an order that does not depend on how the rows came.
    order = np.lexsort((one.residual + other.residual, one.place + other.place))
    order = order[np.random.default_rng(0).permutation(n)]
    models = [(model.place[order], model.residual[order]) for model in (one, other)]
    total = 0.0
    for shift in range(1, shifts + 1):
        first, second = (
            residual * np.roll(residual, shift) * np.exp(-np.abs(place - np.roll(place, shift)))
            for place, residual in models
        )
        total += float(np.square(first - second).sum())
    return 2.0 * total * (n - 1) / shifts


def _kernel_sums(z: Floats, r: Floats, group: Integers | None = None) -> Floats:
    """Σ_j r_j exp(-|z_i - z_j|) for every i, or over the j of its group.

    Examples
    --------
    >>> _kernel_sums(np.array([np.log(2.0), 0.0]), np.array([4.0, 1.0]))
    array([4.5, 3. ])
    >>> _kernel_sums(np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]))
    array([4., 2., 4.])
    """
    if group is None:
        group = np.zeros(z.size, dtype=np.int64)
    order = np.lexsort((z, group)) if group.any() else np.argsort(z, kind="stable")
    sums = np.empty_like(r)
    sums[order] = laplace_sums(z[order], r[order], group[order])
    return sums


def _in_widths(place: Floats, scale: Scale) -> Floats:
    """Positions on the scale's grid, in widths of the kernel."""
    return np.asarray(place * scale.length * scale.steepness / KERNEL_WIDTH)


def _jackknifed(
    with_others: Floats, share: Floats, repeats: Floats
) -> tuple[float, Floats, Floats]:
    """The mean over pairs of different units, and its change by each unit, from its sum over pairs."""
    pairs = 1.0 - float((repeats * share**2).sum())
    if pairs <= 0.0:
        return 0.0, np.zeros_like(share), repeats
    total = float((repeats * with_others).sum())
    value = total / pairs
    left = pairs - 2.0 * share * (1.0 - share)
    without = np.divide(
        total - 2.0 * with_others, left, out=np.full_like(share, value), where=left > 0
    )
    number = float(repeats.sum())
    centre = float((repeats * without).sum()) / number
    return value, (centre - without) * np.sqrt(1.0 - 1.0 / number), repeats


def _outcome_weight(share: Floats, y: Floats, repeats: Floats | float = 1.0) -> float:
    """Mean weight of a row with the event times that of one without.

    Where rows were sampled by outcome and weighted by how rarely they were, w₁ of an event and w₀ of
    another, the variance of w (f - y) is w₀ w₁ f (1 - f), not w² f (1 - f).
    """
    events, others = (
        (float((repeats * part * share).sum()), float((repeats * part).sum()))
        for part in (y, 1.0 - y)
    )
    means = [weight / rows for weight, rows in (events, others) if rows > 0]
    return means[0] * means[-1]
