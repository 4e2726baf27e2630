"""The test of calibration and the lower end of the interval: one construction.

Every size of error θ has a test of "SmoothECE is at most θ". At 0 it is the test of calibration. The lower
end is the smallest size that is not rejected, so it leaves 0 exactly where calibration is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sketch import Sketch
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.null_draws import DRAWS, FEW_DRAWS, FEW_EVENTS, null_residuals, tail_of
from calibrant.inference.quantiles import crossing, harmonic_mean, log_tail, normal_quantile
from calibrant.inference.resampling import coarse_sketch
from calibrant.inference.wilson import wilson_error
from calibrant.inference.witnesses import Cells, chain_of, witnesses_of

__all__ = ["Rejection", "calibration_p_value"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

LARGE = 0.2
"""A p-value that few draws say is larger than this is left at that: no level is near it."""
_TOO_FEW, _SMALLEST = 10.0, 1e-300
_NARROWEST, _NARROW, _WIDER = 1e-4, 0.05, 0.1
_WEIGHTS = {
    "mean": 3.0,
    "confidence": 2.0,
    "log-odds": 2.0,
    "boxes": 0.1,
    "ends": 0.1,
    "whole": 3.0,
}
_CHAIN_POWER = -0.25
# Shares of the level beyond the noise floor, where no draws are needed.
_SHARES = {"whole": 0.8, "mean": 0.1, "others": 0.1}
_ROUND = 0.7
"""Width of the bump by which |x| is lowered near 0."""
_BUMP = math.sqrt(2.0 / math.pi) * math.sqrt(1.0 + _ROUND**2) / _ROUND


@dataclass(frozen=True, eq=False)
class _Look:
    """What draws from calibrated predictions show, for each null.

    `wholes` are their Λ, `values` their smECE at the floor's bandwidth, `statistics` what the test makes of
    them, in falling order; `variance` is that of Λ.
    """

    wholes: Sequence[Floats]
    values: Sequence[Floats]
    statistics: Sequence[Floats]
    variance: float


@dataclass(frozen=True, eq=False)
class Rejection:
    """What the rows of the cells say against each size of error.

    Notes
    -----
    **Up to the noise floor b0**, at the bandwidth s = b0. Under "SmoothECE ≤ θ", θ ≤ s, the mean
    T = E[(f - y) K_s w] of a witness is at most θ, so |T̂| - θ is at most the noise of T̂, for all
    witnesses at once. Three kinds of evidence are brought to one denominator, as p-values:

    - single witnesses: 2Φ̄((|T̂| - θ)₊ / se), where the variance moves from the one that calibrated
      predictions have, at θ = 0, to the one that was seen, at θ = |T̂|;
    - chains of m uncorrelated ones: with ẑ their standardised means, ‖ẑ‖ is χ_m if calibrated, and for
      every direction a of length 1, ⟨a, ẑ⟩ - θ sup|w_a| ≤ ‖noise‖ (Scheffé);
    - the whole curve: Λ = Σ ν d(r̂_s / ν), with ν the standard error of the smoothed residual r̂_s in
      a cell and d(x) = |x| - c exp(-x² / 2τ²). E d(m + Z) ≤ |m| for every m, since the bump outweighs
      the bias of |m + Z|; so E Λ ≤ smECE_s whatever the truth is, and where it is 0, E Λ = 0.

    Their weighted harmonic mean is the statistic (Wilson, 2019). It falls with θ, and for every θ it is
    at most what noise alone would make of it, so one null distribution serves all of them: that of
    outcomes drawn from the predictions. Far out in the tail, p is proportional to the statistic.

    **Beyond b0**, at the bandwidth θ itself and without draws: Λ, the mean and the other witnesses, each
    with its share of the level, with variances as they were seen.

    The upper end of the interval misses hardly ever where the truth is below b0. There the lower end has
    the whole level, 1 - confidence, and beyond it one half.

    Examples
    --------
    >>> rows = Sketch.from_counts(p=[0.2, 0.7], n=[500, 500], events=[50, 450])
    >>> rejection = Rejection.of(rows, noise_floor(rows).value)
    >>> rejection.p_value <= 0.05 and rejection.lower_end(0.95) > 0
    True
    """

    cells: Cells
    floor: float
    nulls: Sequence[Singles] | None = None
    degrees: float = math.inf

    @classmethod
    def of(cls, sketch: Sketch, floor: float) -> Rejection:
        """The evidence of independent rows."""
        cells = Cells.of(coarse_sketch(sketch, 0.5 * floor) if floor > 0.0 else sketch)
        return cls(cells, floor)

    @cached_property
    def bandwidth(self) -> float:
        """At which witnesses are smoothed, up to the noise floor; without noise, a narrow one."""
        span = float(np.ptp(self.cells.position)) or 1.0
        return max(self.floor, (_NARROWEST if self.floor > 0.0 else _NARROW) * span)

    @cached_property
    def p_value(self) -> float:
        """Of "the predictions are calibrated"."""
        return self.p_value_of(0.0)

    def p_values(self, residuals: NDArray[np.floating]) -> Floats:
        """P-values of calibration for other residuals of the same predictions, [samples, m]."""
        drawn = np.asarray(residuals, dtype=np.float32)
        look = self._looked(DRAWS)
        values = self._statistics(drawn, self._wholes(drawn)[0], look.variance)
        return np.array([self._p_value(value, 0.0, look) for value in values.tolist()])

    def p_value_of(self, size: float) -> float:
        """Of "SmoothECE is at most `size`", for a size up to the bandwidth."""
        if not self.cells.null.any() and self.cells.blocks is None:
            return _surprised(self.cells, size)
        return self._p_value(self._statistic(size, self._look), size, self._look)

    @cached_property
    def _look(self) -> _Look:
        """Few draws where they show that nothing is amiss, else all."""
        few = self._looked(FEW_DRAWS)
        clear = self._p_value(self._statistic(0.0, few), 0.0, few) > LARGE
        return few if clear else self._looked(DRAWS)

    def _p_value(self, value: float, size: float, look: _Look) -> float:
        cells = self.cells
        # Where surprises are few, their tail is that of a count, and longer than the normal's.
        slope = 1.0 if cells.events >= FEW_EVENTS else 0.5
        tails = [tail_of(null, value, slope) for null in look.statistics]
        if cells.blocks is not None:  # of so many signs, as many sums are different
            tails.append(2.0 ** (1.0 - len(cells.blocks)))
        elif size > 0.0 and cells.events < _TOO_FEW:  # draws of hardly any events say little
            tails.append(math.exp(-value))
        return min(max(*tails, _SMALLEST), 1.0)

    def null_values(self) -> Floats:
        """SmoothECE of the draws, whose mean is the noise floor b0: one of Newton's steps from there.

        smECE at the bandwidth b0 strays from its mean by v - v̄; where it falls with the bandwidth at the
        rate D, the bandwidth that equals its own error strays by (v - v̄) / (1 + D).
        """
        if not self.cells.null.any() and self.cells.blocks is None:
            return np.zeros(1)
        values = self._look.values[-1]
        wider = self.cells.smoother((1.0 + _WIDER) * self.bandwidth, self._stretches)
        noise = np.sqrt(self.cells.null_variance(wider.T)).sum() / self._errors.sum()
        steepness = max(1.0 - float(noise), 0.0) / _WIDER
        mean = float(values.mean())
        return np.asarray(self.floor * (1.0 + (values / mean - 1.0) / (1.0 + steepness)))

    def lower_end(self, confidence: float) -> float:
        """The smallest SmoothECE that is not rejected; above 0 exactly where p ≤ 1 - confidence."""
        level = 1.0 - confidence + 1e-12
        if self.p_value > level:
            return 0.0
        half, wide = 0.5 * level, self.bandwidth
        level = level if self.floor > 0.0 else half

        def accepted(size: float) -> float:
            return math.log(self.p_value_of(size) / level + 1e-300)

        def unproved(size: float) -> float:
            return size - self._proved(size, half)

        if (value := accepted(wide)) > 0.0:
            start = math.log(self.p_value / level + 1e-300)
            return max(crossing(accepted, (0.0, start), (wide, value), 1e-3 * wide), 1e-9 * wide)
        low, value = wide, unproved(wide)
        if value >= 0.0:
            return wide
        high, above = low - value, unproved(low - value)
        while above < 0.0:  # what is proved may rise with the bandwidth
            low, value, high = high, above, 1.2 * high
            above = unproved(high)
        return crossing(unproved, (low, value), (high, above), 1e-3 * high)

    def excludes(self, size: float, confidence: float) -> bool:
        """Whether the lower end is above `size`, which is quicker to know than where it is."""
        level = 1.0 - confidence + 1e-12
        if self.p_value > level or size == 0.0:
            return self.p_value <= level
        half = 0.5 * level
        level = level if self.floor > 0.0 else half
        if self.p_value_of(min(size, self.bandwidth)) > level:
            return False
        return size <= self.bandwidth or self._proved(size, half) > size

    # -- at the bandwidth of the noise floor ---------------------------------------------------

    @cached_property
    def _smoother(self) -> Floats:
        return self.cells.smoother(self.bandwidth)

    @cached_property
    def _mesh(self) -> Floats:
        """What the kernel around each cell gives to each stretch of cells, half a bandwidth long."""
        return np.add.reduceat(self._smoother, self._stretches, axis=1)

    @cached_property
    def _stretches(self) -> NDArray[np.intp]:
        place = np.floor(2.0 * self.cells.position / self.bandwidth)
        return np.flatnonzero(np.diff(place, prepend=-np.inf))

    @cached_property
    def _least(self) -> float:
        """The variance of one row: no mean is known better."""
        return 1.0 / self.cells.units**2

    @cached_property
    def _single(self) -> tuple[Floats, NDArray[np.intp], Floats]:
        """Smoothed witnesses, where each family of them begins, and their weights."""
        families = witnesses_of(self.cells, self.bandwidth)
        first = np.cumsum([0, *(len(family) for family in families[:-1])])
        boxes = ["boxes"] * (len(families) - 4)
        names = ["mean", "confidence", "log-odds", *boxes, "ends"]
        weights = np.array([_WEIGHTS[name] for name in names])
        return np.concatenate(families) @ self._smoother.T, first, weights

    @cached_property
    def _means(self) -> tuple[Floats, Floats]:
        """Size of the mean of each witness, and its variance if calibrated."""
        smooth = self._single[0]
        variance = self.cells.null_variance(smooth) + self._least
        return np.abs(smooth @ self.cells.residual), variance

    @cached_property
    def _seen(self) -> Floats:
        """Variance of the mean of each witness, as it was seen."""
        return self.cells.seen_variance(self._single[0]) + self._least

    @cached_property
    def _chain(self) -> tuple[Floats, Floats]:
        return chain_of(self.cells, self._smoother)

    @cached_property
    def _directions(self) -> Floats:
        """Of each chain, [3, 2 directions, chains]: length of ẑ, sup of the function, variance."""
        plain, smooth = self._chain
        z = smooth @ self.cells.residual
        out = np.zeros((3, 2, len(z)))
        for m in range(1, len(z) + 1):
            signs = self._smoother @ np.sign(z[:m] @ plain[:m])
            projected = self.cells.gram(np.concatenate([smooth[:m], signs[None]]))[-1, :-1]
            ways = np.stack([z[:m], projected])
            ways /= np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-300)
            largest = np.maximum(np.abs(ways @ plain[:m]).max(axis=1), 1e-300)
            out[:, :, m - 1] = ways @ z[:m], largest, self.cells.seen_variance(ways @ smooth[:m])
        return out

    @cached_property
    def _errors(self) -> Floats:
        """ν: standard error of the smoothed residual in each stretch, if calibrated."""
        return np.asarray(np.sqrt(self.cells.null_variance(self._mesh.T)))

    @cached_property
    def _whole(self) -> tuple[float, float]:
        """Λ and its variance as they were seen."""
        value, slopes = _lowered(self.cells.residual @ self._mesh, self._errors)
        seen = float(self.cells.seen_variance((self._mesh @ slopes)[None])[0]) + self._least
        return value, seen

    def _wholes(self, residuals: Singles) -> tuple[Floats, Floats]:
        """Λ of many residuals [samples, m], and their smECE at the floor's bandwidth."""
        errors = self._errors.astype(np.float32)
        x = residuals @ (self._mesh / np.where(errors > 0, errors, 1)).astype(np.float32)
        bump = np.square(x)
        bump *= -0.5 / _ROUND**2
        np.exp(bump, out=bump)
        values = (np.abs(x, out=x) @ errors).astype(np.float64)
        return values - _BUMP * (bump @ errors), values

    def _looked(self, draws: int) -> _Look:
        nulls = [null_residuals(self.cells, draws)] if self.nulls is None else self.nulls
        drawn = [null[:draws] for null in nulls]
        wholes, values = zip(*map(self._wholes, drawn), strict=True)
        variance = max(float((whole**2).mean()) for whole in wholes) + self._least
        statistics = [
            np.sort(self._statistics(null, whole, variance))[::-1]
            for null, whole in zip(drawn, wholes, strict=True)
        ]
        return _Look(wholes, values, statistics, variance)

    @cached_property
    def _shares(self) -> Floats:
        chain = np.arange(1.0, len(self._chain[0]) + 1.0) ** _CHAIN_POWER
        shares = np.concatenate([self._single[2], chain, [_WEIGHTS["whole"]]])
        return np.asarray(shares / shares.sum())

    @cached_property
    def _degrees(self) -> NDArray[np.intp]:
        chain = np.arange(1, len(self._chain[0]) + 1)
        return np.concatenate([np.ones(self._single[1].size, dtype=np.intp), chain, [1]])

    def _statistic(self, size: float, look: _Look) -> float:
        _, first, _ = self._single
        mean, null = self._means
        (value, seen), calibrated = self._whole, look.variance
        seen = max(seen, calibrated)
        if size == 0.0:
            single = mean / np.sqrt(null)
            z = self._chain[1] @ self.cells.residual
            lengths = np.sqrt(np.cumsum(z**2))
            whole = max(value, 0.0) / math.sqrt(calibrated)
        else:
            single = _strayed(mean, size, null, self._seen)
            length, largest, spread = self._directions
            lengths = _strayed(length / largest, size, largest**-2.0, spread * largest**-2.0)
            lengths = lengths.max(axis=0, initial=0.0)
            mean, *both = np.array([[max(value, 0.0)], [calibrated], [seen]])
            whole = float(_strayed(mean, size, *both)[0])
        strayed = np.concatenate([np.maximum.reduceat(single, first), lengths, [whole]])
        return float(harmonic_mean(log_tail(strayed[:, None], self._degrees), self._shares)[0])

    def _statistics(self, residuals: Singles, whole: Floats, variance: float) -> Floats:
        """The statistic at size 0 of many residuals [samples, m], their Λ and its variance."""
        single, first, _ = self._single
        single = single / np.sqrt(self._means[1])[:, None]
        functions = np.concatenate([single, self._chain[1]]).astype(np.float32)
        means = np.abs(functions @ residuals.T)
        families = np.maximum.reduceat(means[: len(single)], first, axis=0)
        lengths = np.sqrt(np.cumsum(np.square(means[len(single) :]), axis=0))
        last = np.maximum(whole, 0.0)[None] / math.sqrt(variance)
        strayed = np.concatenate([families, lengths, last.astype(np.float32)])
        return harmonic_mean(log_tail(strayed, self._degrees), self._shares)

    # -- beyond it -----------------------------------------------------------------------------

    def _proved(self, bandwidth: float, level: float) -> float:
        """What smECE at this bandwidth is at least, with confidence 1 - level."""
        cells = self.cells
        smoother = cells.smoother(bandwidth)
        errors = np.sqrt(cells.null_variance(smoother.T))
        value, slopes = _lowered(cells.residual @ smoother, errors)
        first, *others = witnesses_of(cells, bandwidth)
        means = np.concatenate([first, *others]) @ smoother.T
        variances = cells.seen_variance(np.concatenate([(smoother @ slopes)[None], means]))
        values = np.concatenate([[value], np.abs(means @ cells.residual)])
        tails = np.full(values.size, 0.5 * _SHARES["others"] / (values.size - 2))
        tails[:2] = _SHARES["whole"], 0.5 * _SHARES["mean"]
        quantiles = [normal_quantile(1.0 - level * tail, self.degrees) for tail in tails[:3]]
        z = np.full(values.size, quantiles[2])
        z[:2] = quantiles[:2]
        return float((values - wilson_error(z, np.sqrt(variances), cells.units)).max())


def calibration_p_value(sketch: Sketch) -> float:
    """P-value of "the predictions are calibrated", for independent rows.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> calibration_p_value(Sketch.from_arrays(p > 0.5, p)) < 1e-12
    True
    """
    return Rejection.of(sketch, noise_floor(sketch).value).p_value


def _surprised(cells: Cells, size: float) -> float:
    """P-value of predictions of 0 and 1 alone: as many failures, in as many rows, at this rate."""
    failures = round(cells.units * float(np.abs(cells.residual).sum()))
    expected = cells.units * size
    if failures == 0 or expected == 0.0:
        return float(failures == 0)
    k = np.arange(failures)
    logs = k * math.log(expected) - np.array([math.lgamma(x + 1.0) for x in k]) - expected
    return max(1.0 - float(np.exp(logs).sum()), 0.0)


def _strayed(mean: Floats, size: float, null: Floats, seen: Floats) -> Floats:
    """How many standard errors a mean is beyond `size`, with a variance between null and seen."""
    share = np.minimum(size / np.maximum(mean, 1e-300), 1.0)
    variance = null + (seen - null) * share
    return np.asarray(np.maximum(mean - size, 0.0) / np.sqrt(np.maximum(variance, 1e-300)))


def _lowered(residual: Floats, errors: Floats) -> tuple[float, Floats]:
    """Λ of a smoothed residual, and its slope in each cell; |r| where it has no error."""
    known = errors > 0
    x = np.divide(residual, errors, out=np.zeros_like(residual), where=known)
    bump = _BUMP * np.exp(-0.5 * (x / _ROUND) ** 2)
    value = np.abs(residual) - np.where(known, errors * bump, 0.0)
    return float(value.sum()), np.sign(residual) + x * bump / _ROUND**2
