"""The rows in a few cells, and functions of the prediction that bear witness against calibration.

For every function w with |w| ≤ 1 and every bandwidth s,

    |E[(f - y) (K_s w)(f)]|  ≤  smECE_s,

and smECE_s falls with s. So SmoothECE, the bandwidth that equals its own error, is at most θ only if
none of these means is above θ at any s ≥ θ: every smoothed function is a witness, and the mean residual,
w = 1, is the first of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.inference._cells import starts_of_runs, sums_of_runs, witness_rows
from calibrant.inference._draws import kernel_shares, orthogonal, product
from calibrant.inference.heavy_rows import HeavyRows
from calibrant.inference.resampling import cell_positions
from calibrant.inference.row_worth import (
    AllGroups,
    cross_weights,
    expected_weights,
    outcome_variances,
    worth_of_rows,
)

__all__ = [
    "LONGEST_CHAIN",
    "MOST_CELLS",
    "Cells",
    "chain_of",
    "shares_and_degrees",
    "smoothed",
    "witnesses_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_CELLS = 192
_FEWEST_EVENTS = 4.0
_LEVELS = 4
_LARGEST_LOGIT = 6.0
_TAIL = 9.0
"""Where a step is that many bandwidths away the kernel does not see it."""
LONGEST_CHAIN = 12
_DEPENDENT = 1e-3
_FEWEST_ROWS = 1.0
_STEPS, _ENDS = 128, 704
_NORMAL = np.array(
    [0.0] + [0.5 * math.erfc(-x / _STEPS / math.sqrt(2.0)) for x in range(1 - _ENDS, _ENDS)] + [1.0]
)
"""Φ, whose lines between entries are right to 2e-6, so that 5.5 bandwidths away a kernel ends: SciPy takes
longer to load than an assessment to run."""

_WEIGHTS = {
    "mean": 3.0,
    "confidence": 2.0,
    "log-odds": 2.0,
    "boxes": 0.1,
    "ends": 0.1,
    "whole": 3.0,
}
_CHAIN_POWER = -0.25
"""Of the kinds of evidence, in the harmonic mean of their p-values; and of chains, by how long they are."""


@dataclass(frozen=True, eq=False)
class Cells:
    """At most 192 neighbourhoods of rows, and how their residuals vary.

    Attributes
    ----------
    position, prediction : float64[m]
        Mean place on the scale, and mean prediction, of the rows of each cell.
    residual : float64[m]
        Sum of w(f - y) / Σw.
    null, seen : float64[m]
        Variance of the residual if the predictions are calibrated, and Σ(w(f - y))² / (Σw)² as it is.
    units : float
        The effective number of rows.
    rows : int64[m] or None
        How many rows there are, where all of them weigh the same.
    shares : float64[m, 3]
        Of the weight: each cell's, if calibrated, and what one event, and one row without, count for.
    edges : float64[m + 1]
        Where one cell ends and the next begins.
    reflected : bool
        Whether the kernel is reflected at the first and last edge.
    blocks, block_shares : float64[blocks, m], float64[blocks], or None
        Residuals of independent sets of dependent rows, which add up to `residual`; and their weight.
    heavy : HeavyRows or None
        Rows that draw outcomes of their own, and in which of these cells each lies.
    """

    position: Floats
    prediction: Floats
    residual: Floats
    null: Floats
    seen: Floats
    units: float
    rows: Integers | None
    shares: Floats
    edges: Floats
    reflected: bool
    blocks: Floats | None = None
    block_shares: Floats | None = None
    heavy: HeavyRows | None = None

    @classmethod
    def of(
        cls, sketch: Sketch, fine: Sketch | None = None, among: AllGroups | None = None
    ) -> Cells:
        """The cells of a sketch, of nearly equal weight and variance; its first and last stay alone.

        `fine` has the same rows on a finer grid, where a heavy row is more often alone. `among` tells what
        rows weigh in other groups.
        """
        weights, squared = sketch.weights, sketch.squared_weights
        weight, total = over_outcomes(weights), sketch.total_weight
        place = cell_positions(sketch)
        f = sketch.scale.prediction(place).clip(0.0, 1.0)
        variance = outcome_variances(sketch, f, among)
        first = np.arange(weight.size)
        if weight.size > MOST_CELLS:
            whole = max(float(variance.sum()), 1e-300)
            first = starts_of_runs(weight, variance, float(weight.sum()), whole, MOST_CELLS)
        sums, rows = sums_of_runs(first, weights, squared, place, f, variance, sketch.counts)
        mass = sums[:, 0] + sums[:, 1]
        middle, prediction = place[first], np.zeros(mass.size)
        np.divide(sums[:, 4], mass, out=middle, where=mass > 0)
        np.divide(sums[:, 5], mass, out=prediction, where=mass > 0)
        expected, worth = mass, np.ones((mass.size, 2))
        if sketch.weighted:
            cross = cross_weights(sketch)
            together = np.add.reduceat(cross, first)[:, None]
            of_label = np.add.reduceat(sketch.counts, first, axis=0)
            worth = worth_of_rows(
                sums[:, :2], sums[:, 2:4] + together, of_label, prediction, middle, among
            )
            if cross.any():  # soft outcomes: their two labels go together
                sums[:, 7] -= 2.0 * np.add.reduceat(cross * f * (1.0 - f), first)
            else:
                expected = expected_weights(sums[:, :2], worth, prediction)
            np.maximum(sums[:, 7], 0.0, out=sums[:, 7])
        length = sketch.scale.length
        position = length * middle
        edges = np.empty(mass.size + 1)
        edges[1:-1] = 0.5 * (position[1:] + position[:-1])
        edges[0], edges[-1] = (0.0, length) if sketch.scale.reflected else (-np.inf, np.inf)
        by_outcome = not np.array_equal(worth[:, 0], worth[:, 1])
        alike, heavy = not by_outcome and _are_alike(sketch), None
        if fine is not None and not alike and not by_outcome:
            heavy = HeavyRows.of(fine)
            coarse = np.searchsorted(sketch.cells, heavy.cell * sketch.nodes // fine.nodes)
            heavy = heavy._replace(cell=np.searchsorted(first, coarse, side="right") - 1)
        return cls(
            position,
            prediction,
            (mass * prediction - sums[:, 1]) / total,
            sums[:, 6] / total**2,
            sums[:, 7] / total**2,
            min(total**2 / float(squared.sum()), float(sketch.n)),
            rows if alike else None,
            np.stack([expected, worth[:, 1], worth[:, 0]], axis=1) / total,
            edges,
            sketch.scale.reflected,
            heavy=heavy,
        )

    @cached_property
    def events(self) -> float:
        """The null variance in units of one row, or cluster: how many surprises there are to be.

        Of rows with weights, no more than there would be if all had the weight of a typical surprise.
        """
        variance = float(self.null_variance(np.ones((1, self.null.size)))[0])
        events = variance * self.units**2
        if self.rows is not None or self.blocks is not None or events == 0.0:
            return events
        f, (weight, event, other) = self.prediction, self.shares.T
        surprises = f * (1.0 - f) * np.stack([(1.0 - f) * event, f * other])
        typical = float(
            (weight * surprises * np.stack([event, other])).sum() / (weight * surprises).sum()
        )
        return min(events, variance / typical**2)

    @property
    def least(self) -> float:
        """The variance of one row: no mean is known better."""
        return 1.0 / self.units**2

    def smoother(self, bandwidth: float) -> Floats:
        """What the kernel around each cell gives to each: [from, to], every row adds up to 1."""
        return self._shares_of_kernel(bandwidth, self.edges, np.empty(0, dtype=np.int64))[0]

    def smoothers(self, bandwidth: float, first: Integers) -> tuple[Floats, Floats]:
        """The same, and what it gives to each stretch of cells, of which these are the first."""
        return self._shares_of_kernel(bandwidth, self.edges, first)

    def mesh(self, bandwidth: float, first: Integers) -> Floats:
        """What it gives to the stretches alone."""
        edges = np.append(self.edges[first], self.edges[-1])
        return self._shares_of_kernel(bandwidth, edges, np.empty(0, dtype=np.int64))[0]

    def _shares_of_kernel(
        self, bandwidth: float, edges: Floats, first: Integers
    ) -> tuple[Floats, Floats]:
        shares = np.zeros((self.position.size, edges.size - 1))
        stretches = np.zeros((self.position.size, first.size))
        kernel_shares(
            self.position, edges, bandwidth, self.reflected, _NORMAL, float(_STEPS), shares, first,
            stretches,
        )  # fmt: skip
        return shares, stretches

    def null_variance(self, values: Floats) -> Floats:
        """Variance of the mean of (f - y) times each function [..., m], if calibrated."""
        if self.blocks is None:
            squares = np.ascontiguousarray((values * values).T)
            return np.asarray(product(self.null[None], squares)[0])
        return np.asarray(((self.blocks @ values.T) ** 2).sum(axis=0))

    def seen_variance(self, values: Floats) -> Floats:
        """The same as it was seen, around the mean that was seen."""
        mean = values @ self.residual
        if self.blocks is None or self.block_shares is None:
            variance = (values * values) @ self.seen - mean**2 / self.units
            return np.asarray(np.maximum(variance, 0.0))
        number = len(self.blocks)
        strayed = self.blocks @ values.T - np.multiply.outer(self.block_shares, mean)
        return np.asarray((strayed**2).sum(axis=0) * number / (number - 1.0))

    def covariances(self, values: Floats, others: Floats) -> Floats:
        """If calibrated, of the means of (f - y) times functions [k, m] and others [l, m]: [k, l]."""
        if self.blocks is None:
            return np.asarray((values * self.null) @ others.T)
        return np.asarray((self.blocks @ values.T).T @ (self.blocks @ others.T))


def _are_alike(sketch: Sketch) -> bool:
    """Whether every row weighs the same, be it 1 or any other number."""
    if not sketch.weighted:
        return True
    one = sketch.total_weight / sketch.n
    pairs = ((sketch.weights, sketch.counts), (sketch.squared_weights, sketch.weights))
    return all(bool(np.allclose(each, one * of, 1e-9, 0.0)) for each, of in pairs)


def witnesses_of(cells: Cells, bandwidth: float, *, waves: int = 0) -> tuple[Floats, Integers]:
    """Functions on the cells, each at most 1 in size, before they are smoothed; where families begin.

    The mean; confidence, 1 - 2f (Spiegelhalter's direction); log-odds (Cox's slope); halves to
    sixteenths of the predictions by their null variance, as long as each has four surprises to expect;
    and both ends. After the last family, cosines of the rank with two and up to so many turns.
    """
    levels = sum(cells.events >= _FEWEST_EVENTS * 2**level for level in range(1, _LEVELS + 1))
    null = cells.null if cells.null.any() else cells.shares[:, 0].copy()
    functions = witness_rows(
        cells.position, cells.prediction, null, float(null.sum()), levels, _TAIL * bandwidth,
        _LARGEST_LOGIT, waves,
    )  # fmt: skip
    return functions, np.array([0, 1, 2, *(1 + 2**level for level in range(1, levels + 2))])


def smoothed(functions: Floats, smoother: Floats) -> Floats:
    """Functions [k, m], smoothed: what each cell's kernel sees of them."""
    return np.ascontiguousarray(product(smoother, np.ascontiguousarray(functions.T)).T)


def chain_of(cells: Cells, plain: Floats, smooth: Floats) -> tuple[Floats, Floats]:
    """Functions, and what they are when smoothed, uncorrelated and of variance 1 if calibrated.

    Made of witnesses, before and after they are smoothed, in order: the mean, confidence, log-odds, and
    cosines of the rank, which come last (as in an adaptive Neyman test). Those that the ones before nearly
    give are left out, and those that a single row would decide.
    """
    plain, smooth = (
        np.concatenate([part[:3], part[1 - LONGEST_CHAIN :]]) for part in (plain, smooth)
    )
    gram = cells.covariances(smooth, smooth)
    least = _FEWEST_ROWS * cells.least * np.abs(smooth).max(axis=1) ** 2
    mixed = np.empty_like(gram)
    mixed = mixed[: orthogonal(gram, least, _DEPENDENT, mixed)]
    return mixed @ plain, mixed @ smooth


@cache
def shares_and_degrees(families: int, chains: int) -> tuple[Floats, Integers]:
    """Share in the harmonic mean, and degrees of freedom, of families, chains and the whole curve."""
    names = ["mean", "confidence", "log-odds", *["boxes"] * (families - 4), "ends"]
    chain = np.arange(1, chains + 1)
    single = [_WEIGHTS[name] for name in names]
    shares = np.array([*single, *chain**_CHAIN_POWER, _WEIGHTS["whole"]])
    return shares / shares.sum(), np.array([*[1] * families, *chain, 1])
