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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.inference._draws import kernel_shares, orthogonal
from calibrant.inference.resampling import cross_weights, outcome_variances, worth_of_rows

__all__ = ["MOST_CELLS", "Cells", "chain_of", "witnesses_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_CELLS = 192
_FEWEST_EVENTS = 4.0
_LEVELS = 4
_LARGEST_LOGIT = 6.0
_TAIL = 9.0
"""Where a step is that many bandwidths away the kernel does not see it."""
_LONGEST_CHAIN = 12
_DEPENDENT = 1e-3
_FEWEST_ROWS = 1.0
_STEPS = 128
_NORMAL = np.array(
    [0.5 * math.erfc(-x / _STEPS / math.sqrt(2.0)) for x in range(-9 * _STEPS, 9 * _STEPS + 1)]
)
"""Φ, whose lines between entries are right to 2e-6: SciPy takes longer to load than an assessment to run."""


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
        How many rows there are, where they are counted and not weighted.
    shares : float64[m, 3]
        Of the weight: each cell's, and what one event, and one row without, are worth on average.
    edges : float64[m + 1]
        Where one cell ends and the next begins.
    reflected : bool
        Whether the kernel is reflected at the first and last edge.
    blocks, block_shares : float64[blocks, m], float64[blocks], or None
        Residuals of independent sets of dependent rows, which add up to `residual`; and their weight.
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

    @classmethod
    def of(cls, sketch: Sketch) -> Cells:
        """The cells of a sketch, of nearly equal weight and variance; its first and last stay alone."""
        weights, squared = sketch.weights, sketch.squared_weights
        weight, total = over_outcomes(weights), sketch.total_weight
        moment = over_outcomes(sketch.weighted_offsets)
        place = sketch.cells / sketch.nodes
        place = place + np.divide(moment, weight, out=np.zeros_like(weight), where=weight > 0) * (
            2.0**-FRACTION_BITS
        )
        f = np.clip(sketch.scale.prediction(place), 0.0, 1.0)
        variance = outcome_variances(sketch)
        first = _starts(weight, variance)

        def added(values: Floats) -> Floats:
            return np.add.reduceat(values, first, axis=0)

        mass = added(weight)
        held = mass > 0
        by_label = added(weights)
        worth = worth_of_rows(by_label, added(squared), sketch.weighted)
        seen = added(squared[:, 0] * f**2 + squared[:, 1] * (1.0 - f) ** 2)
        prediction = np.divide(added(weight * f), mass, out=np.zeros_like(mass), where=held)
        if cross_weights(sketch).any():  # soft outcomes: their two labels go together
            seen = seen - 2.0 * added(cross_weights(sketch) * f * (1.0 - f))
        length = sketch.scale.length
        middle = np.divide(added(weight * place), mass, out=place[first].copy(), where=held)
        position = length * middle
        ends = [0.0] if sketch.scale.reflected else [-np.inf]
        edges = np.concatenate(
            [ends, 0.5 * (position[1:] + position[:-1]), [length if ends[0] == 0.0 else np.inf]]
        )
        return cls(
            position,
            prediction,
            (mass * prediction - by_label[:, 1]) / total,
            added(variance) / total**2,
            np.maximum(seen, 0.0) / total**2,
            min(float(total**2 / squared.sum()), float(sketch.n)),
            None if sketch.weighted else np.add.reduceat(over_outcomes(sketch.counts), first),
            np.column_stack([mass, worth[:, 1], worth[:, 0]]) / total,
            edges,
            sketch.scale.reflected,
        )

    @cached_property
    def rank(self) -> Floats:
        """How much of the null variance lies below each cell, from 0 to 1."""
        null = self.null if self.null.any() else self.shares[:, 0]
        return np.asarray((np.cumsum(null) - 0.5 * null) / null.sum())

    @property
    def events(self) -> float:
        """The null variance in units of one row, or cluster: how many surprises there are to be."""
        return float(self.null_variance(np.ones((1, self.null.size)))[0]) * self.units**2

    def smoother(self, bandwidth: float, first: Integers | None = None) -> Floats:
        """What the kernel around each cell gives to each: [from, to], every row adds up to 1.

        With `first`, to each stretch of cells, of which these are the first.
        """
        edges = self.edges if first is None else np.append(self.edges[first], self.edges[-1])
        shares = np.empty((self.position.size, edges.size - 1))
        kernel_shares(
            self.position, edges, bandwidth, self.reflected, _TAIL, _NORMAL, float(_STEPS), shares
        )
        return shares

    def null_variance(self, values: Floats) -> Floats:
        """Variance of the mean of (f - y) times each function [..., m], if calibrated."""
        if self.blocks is None:
            return np.asarray((values * values) @ self.null)
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

    @cached_property
    def families(self) -> list[Floats]:
        """The witnesses that do not depend on a bandwidth: the mean, slopes and boxes."""
        boxes = [
            np.equal.outer(np.arange(2**level), np.minimum(self.rank * 2**level, 2**level - 1) // 1)
            for level in range(1, _LEVELS + 1)
            if self.events >= _FEWEST_EVENTS * 2**level
        ]
        families = [np.ones((1, self.rank.size)), *_slopes(self)[:, None], *boxes]
        return [np.asarray(family, dtype=np.float64) for family in families]


def _starts(weight: Floats, variance: Floats) -> Integers:
    """The first of the sketch's cells in each of at most 192 runs of them."""
    if weight.size <= MOST_CELLS:
        return np.arange(weight.size)
    share = 0.5 * weight / weight.sum() + 0.5 * variance / max(float(variance.sum()), 1e-300)
    run = np.floor((np.cumsum(share) - 0.5 * share) * (MOST_CELLS - 2))
    run[0], run[-1] = -1.0, MOST_CELLS
    return np.flatnonzero(np.diff(run, prepend=-2.0))


def witnesses_of(cells: Cells, bandwidth: float) -> list[Floats]:
    """Families of functions on the cells, each at most 1 in size, before they are smoothed.

    The mean; confidence, 1 - 2f (Spiegelhalter's direction); log-odds (Cox's slope); halves to
    sixteenths of the predictions by their null variance, as long as each has four surprises to expect;
    and both ends.
    """
    low = cells.position <= cells.position[0] + _TAIL * bandwidth
    high = cells.position >= cells.position[-1] - _TAIL * bandwidth
    ends = np.array([low, high, low | high, low.astype(float) - high], dtype=np.float64)
    return [*cells.families, ends]


def _slopes(cells: Cells) -> Floats:
    """1 - 2f, and the centred log-odds, both within ±1."""
    f = np.clip(cells.prediction, 1e-9, 1.0 - 1e-9)
    odds = np.clip(np.log(f / (1.0 - f)), -_LARGEST_LOGIT, _LARGEST_LOGIT)
    null = cells.null if cells.null.any() else cells.shares[:, 0]
    odds = odds - float(null @ odds) / float(null.sum())
    return np.stack([1.0 - 2.0 * f, odds / max(float(np.abs(odds).max()), 1e-300)])


def chain_of(cells: Cells, smoother: Floats) -> tuple[Floats, Floats]:
    """Functions, and what they are when smoothed, uncorrelated and of variance 1 if calibrated.

    In order: the mean, confidence, log-odds, and cosines of the rank (as in an adaptive Neyman test).
    Those that the ones before nearly give are left out, and those that a single row would decide.
    """
    waves = np.cos(np.pi * np.multiply.outer(np.arange(2, _LONGEST_CHAIN + 1), cells.rank))
    plain = np.concatenate([*cells.families[:3], waves])
    smooth = plain @ smoother.T
    gram = cells.covariances(smooth, smooth)
    least = _FEWEST_ROWS / cells.units**2 * np.abs(smooth).max(axis=1) ** 2
    mixed = np.empty_like(gram)
    mixed = mixed[: orthogonal(gram, least, _DEPENDENT, mixed)]
    return mixed @ plain, mixed @ smooth
