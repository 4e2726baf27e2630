"""The test of calibration and the lower end of the interval: one construction.

Every size of error θ has a test of "SmoothECE is at most θ". At 0 it is the test of calibration. The lower
end is the smallest size that is not rejected, so it leaves 0 exactly where calibration is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.data.sketch import Sketch
from calibrant.inference._draws import inverse_sums, lowered_sums, product
from calibrant.inference.lower_bound import BUMP, ROUND, lowered, proved_error
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.null_draws import (
    DRAWS,
    FEW_DRAWS,
    are_fixed,
    null_means,
    null_residuals,
    tail_of,
    tail_of_failures,
    value_of_tail,
)
from calibrant.inference.quantiles import (
    crossing,
    evidence_of,
    harmonic_mean,
    log_tail,
    log_tails_of_draws,
)
from calibrant.inference.resampling import coarse_sketch
from calibrant.inference.row_worth import AllGroups
from calibrant.inference.witnesses import (
    LONGEST_CHAIN,
    Cells,
    chain_of,
    shares_and_degrees,
    smoothed,
    witnesses_of,
)

__all__ = ["Rejection", "calibration_p_value"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

LARGE = 0.2
"""A p-value that few draws say is larger than this is left at that: no level is near it."""
_TOO_FEW, _SMALLEST = 10.0, 1e-300
_NARROWEST, _NARROW = 1e-4, 0.05


class _Drawn(NamedTuple):
    """Of some residuals: what p-values of witnesses and chains add up to (see `inverse_sums`), and Λ."""

    sums: Singles
    wholes: Singles

    @classmethod
    def joined(cls, parts: Sequence[_Drawn]) -> _Drawn:
        """All draws in one."""
        sums, wholes = zip(*parts, strict=True)
        return cls(np.concatenate(sums, axis=1), np.concatenate(wholes))


class _Look(NamedTuple):
    """What draws from calibrated predictions show, for each null.

    `statistics` are what the test makes of them, in falling order; `variance` is that of Λ.
    """

    statistics: Sequence[Singles]
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
    def of(cls, sketch: Sketch, floor: float, among: AllGroups | None = None) -> Rejection:
        """The evidence of independent rows, which may be one of several groups."""
        coarse = coarse_sketch(sketch, 0.5 * floor) if floor > 0.0 else sketch
        return cls(Cells.of(coarse, sketch, among), floor)

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
        look = self._looked(DRAWS)
        drawn = self._of_residuals(residuals)
        values = self._statistics(drawn, look.variance)
        return np.array([self._p_value(value, 0.0, look) for value in values.tolist()])

    def p_value_of(self, size: float) -> float:
        """Of "SmoothECE is at most `size`", for a size up to the bandwidth."""
        if not self.cells.null.any() and self.cells.blocks is None:
            return tail_of_failures(self.cells, size)
        look, of_calibration = self._settled
        if size == 0.0:
            return of_calibration
        return self._p_value(self._statistic(size, look), size, look)

    @cached_property
    def _settled(self) -> tuple[_Look, float]:
        """Few draws where they show that nothing is amiss, else all; and the p-value of calibration."""
        look = self._looked(FEW_DRAWS)
        p_value = self._p_value(self._statistic(0.0, look), 0.0, look)
        if p_value <= LARGE:
            look = self._looked(DRAWS)
            p_value = self._p_value(self._statistic(0.0, look), 0.0, look)
        return look, p_value

    def _p_value(self, value: float, size: float, look: _Look) -> float:
        cells = self.cells
        tails = [tail_of(null, value, cells.events) for null in look.statistics]
        if cells.blocks is not None:  # of so many signs, as many sums are different
            tails.append(2.0 ** (1.0 - len(cells.blocks)))
        elif size > 0.0 and cells.events < _TOO_FEW:  # draws of hardly any events say little
            tails.append(math.exp(-value))
        return min(max(*tails, _SMALLEST), 1.0)

    def mean_needed(self, level: float) -> float | None:
        """How large the mean residual must be for calibration to be rejected, if nothing else is amiss."""
        cells, (shares, degrees) = self.cells, self._parts
        if cells.blocks is not None and 2.0 ** (1.0 - len(cells.blocks)) > level:
            return None
        nulls = self._settled[0].statistics
        needed = max(value_of_tail(null, level, cells.events) for null in nulls)
        error = math.sqrt(self._means[1][0])
        along = cells.covariances(np.ones((1, cells.null.size)), self._chain[1])[0]
        along = np.cumsum((along / error) ** 2)
        chain = slice(shares.size - 1 - along.size, -1)
        strayed, still = np.zeros(shares.size), degrees[chain] - along

        def beyond(mean: float) -> float:
            strayed[0] = mean
            np.sqrt(still + mean**2 * along, out=strayed[chain])
            return evidence_of(strayed, degrees, shares) - needed

        most = 38.0  # where the normal's tail is the smallest number
        return error * crossing(beyond, (0.0, beyond(0.0)), (most, beyond(most)), 1e-3)

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
            return size - proved_error(self.cells, size, half, self.degrees)

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
        if size <= self.bandwidth:
            return True
        return proved_error(self.cells, size, half, self.degrees) > size

    # -- at the bandwidth of the noise floor ---------------------------------------------------

    @cached_property
    def _kernel(self) -> tuple[Floats, Floats]:
        return self.cells.smoothers(self.bandwidth, self._stretches)

    @property
    def _mesh(self) -> Floats:
        """What the kernel around each cell gives to each stretch of cells, half a bandwidth long."""
        return self._kernel[1]

    @cached_property
    def _stretches(self) -> NDArray[np.intp]:
        place = np.floor(2.0 * self.cells.position / self.bandwidth)
        return np.flatnonzero(np.diff(place, prepend=-np.inf))

    @cached_property
    def _witnesses(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Functions before and after they are smoothed, and where each family of them begins."""
        plain, first = witnesses_of(self.cells, self.bandwidth, waves=LONGEST_CHAIN)
        return plain, smoothed(plain, self._kernel[0]), first

    @cached_property
    def _single(self) -> tuple[Floats, NDArray[np.int64]]:
        """Smoothed witnesses, and where each family of them begins."""
        return self._witnesses[1][: 1 - LONGEST_CHAIN], self._witnesses[2]

    @cached_property
    def _means(self) -> tuple[Floats, Floats]:
        """Size of the mean of each witness, and its variance if calibrated."""
        smooth = self._single[0]
        variance = self.cells.null_variance(smooth) + self.cells.least
        return np.abs(smooth @ self.cells.residual), variance

    @cached_property
    def _seen(self) -> Floats:
        """Variance of the mean of each witness, as it was seen."""
        return self.cells.seen_variance(self._single[0]) + self.cells.least

    @cached_property
    def _chain(self) -> tuple[Floats, Floats]:
        return chain_of(self.cells, *self._witnesses[:2])

    @cached_property
    def _directions(self) -> Floats:
        """Of each chain, [3, 2 directions, chains]: length of ẑ, sup of the function, variance."""
        plain, smooth = self._chain
        z = smooth @ self.cells.residual
        first = np.tri(len(z))  # as many as each chain has
        signs = smoothed(np.sign((first * z) @ plain), self._kernel[0])
        ways = np.stack([first * z, first * self.cells.covariances(signs, smooth)])
        ways /= np.maximum(np.linalg.norm(ways, axis=2, keepdims=True), 1e-300)
        largest = np.maximum(np.abs(ways @ plain).max(axis=2, initial=0.0), 1e-300)
        values = (ways @ smooth).reshape(-1, self.cells.null.size)
        return np.stack([ways @ z, largest, self.cells.seen_variance(values).reshape(2, -1)])

    @cached_property
    def _errors(self) -> Floats:
        """ν: standard error of the smoothed residual in each stretch, if calibrated."""
        return np.asarray(np.sqrt(self.cells.null_variance(self._mesh.T)))

    @cached_property
    def _whole(self) -> tuple[float, float]:
        """Λ and its variance as they were seen."""
        value, slopes = lowered(product(self.cells.residual[None], self._mesh)[0], self._errors)
        witness = np.einsum("ij,j->i", self._mesh, slopes)
        return value, float(self.cells.seen_variance(witness[None])[0]) + self.cells.least

    @cached_property
    def _functions(self) -> Singles:
        """What residuals are multiplied with: witnesses, chain and stretches, in standard errors."""
        errors = np.where(self._errors > 0, self._errors, 1.0)
        single = self._single[0] / np.sqrt(self._means[1])[:, None]
        return np.concatenate([single, self._chain[1], (self._mesh / errors).T], dtype=np.float32)

    def _of_residuals(self, residuals: NDArray[np.floating]) -> _Drawn:
        """What the test needs of residuals [draws, m]."""
        columns = np.ascontiguousarray(residuals.T, dtype=np.float32)
        return self._of_means(product(self._functions, columns))

    def _of_means(self, means: Singles) -> _Drawn:
        """What it needs of the means of all functions [k, draws]."""
        single, first = self._single
        chain = len(single) + len(self._chain[0])
        logs = log_tails_of_draws(means[:chain], first, len(single), self._parts[0].size - 1)
        errors = self._errors.astype(np.float32)
        sums = inverse_sums(logs, self._parts[0][:-1].astype(np.float32))
        return _Drawn(sums, lowered_sums(means[chain:], errors, 0.5 / ROUND**2, BUMP))

    @cached_property
    def _first(self) -> list[_Drawn]:
        """The first few draws of each null."""
        return self._drawn(0, FEW_DRAWS)

    def _drawn(self, start: int, stop: int) -> list[_Drawn]:
        """Draws of each null from start to stop, some at a time: so many as stay close to the processor."""
        parts = [slice(k, k + FEW_DRAWS) for k in range(start, stop, FEW_DRAWS)]
        if self.nulls is None and are_fixed(self.cells):
            blocks = null_means(self.cells, self._functions, parts)
            return [_Drawn.joined(list(map(self._of_means, blocks)))]
        nulls = [null_residuals(self.cells, 0, stop)] if self.nulls is None else self.nulls
        return [_Drawn.joined([self._of_residuals(null[part]) for part in parts]) for null in nulls]

    def _looked(self, draws: int) -> _Look:
        nulls = self._first
        if draws > FEW_DRAWS and (self.nulls is not None or are_fixed(self.cells)):
            pairs = zip(nulls, self._drawn(FEW_DRAWS, draws), strict=True)
            nulls = [_Drawn.joined(pair) for pair in pairs]
        elif draws > FEW_DRAWS:
            nulls = self._drawn(0, draws)
        squares = (np.square(null.wholes, dtype=np.float64).mean() for null in nulls)
        variance = float(max(squares)) + self.cells.least
        return _Look([np.sort(self._statistics(null, variance))[::-1] for null in nulls], variance)

    @cached_property
    def _parts(self) -> tuple[Floats, NDArray[np.int64]]:
        """Of the families of witnesses, the chains and Λ: share in the harmonic mean, degrees of freedom."""
        return shares_and_degrees(self._single[1].size, len(self._chain[0]))

    def _statistic(self, size: float, look: _Look) -> float:
        _, first = self._single
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
        shares, degrees = self._parts
        return evidence_of(strayed, degrees, shares)

    def _statistics(self, drawn: _Drawn, variance: float) -> Singles:
        """The statistic at size 0 of draws, with this variance of Λ."""
        whole = np.maximum(drawn.wholes, 0.0, dtype=np.float64)[None] / math.sqrt(variance)
        shares, degrees = self._parts
        return harmonic_mean(drawn.sums, log_tail(whole, degrees[-1:])[0], float(shares[-1]))


def calibration_p_value(sketch: Sketch) -> float:
    """P-value of "the predictions are calibrated", for independent rows.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> calibration_p_value(Sketch.from_arrays(p > 0.5, p)) < 1e-12
    True
    """
    return Rejection.of(sketch, noise_floor(sketch).value).p_value


def _strayed(mean: Floats, size: float, null: Floats, seen: Floats) -> Floats:
    """How many standard errors a mean is beyond `size`, with a variance between null and seen."""
    share = np.minimum(size / np.maximum(mean, 1e-300), 1.0)
    variance = null + (seen - null) * share
    return np.asarray(np.maximum(mean - size, 0.0) / np.sqrt(np.maximum(variance, 1e-300)))
