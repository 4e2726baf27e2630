"""Residuals in cells of a grid, and the noise that they have if the predictions are calibrated.

Let r = Σ w (f - y) / Σ w in each cell. Under calibration E r = 0, and samples of r are drawn in one of four
ways:

- rows of one weight: y* ~ Bernoulli(f), exact but for the width of a cell;
- rows with weights: Gaussian, with the variance of `null_variance`;
- soft outcomes: Gaussian with variance Σ w² (f - y)². This is the law of residuals with random signs; nothing
  but their size is known of outcomes between 0 and 1;
- clusters: the residuals of each cluster with one random sign (wild cluster bootstrap; Cameron, Gelbach and
  Miller 2008).

Weights estimate their own variance, so their noise is widened by the ratio of Student's to the normal
quantile, at Kish's effective number less one degrees of freedom. Signs need no such factor, but both they and
soft outcomes know nothing of events that did not come: see `ResidualCells.null_variances`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.residuals import cell_positions

__all__ = [
    "ResidualCells",
    "cross_weights",
    "design_effects",
    "effective_rows",
    "expected_weights",
    "has_weight",
    "null_moments",
    "null_variance",
    "observed_variance",
    "product",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Singles = NDArray[np.float32]
Number = TypeVar("Number", bound=np.floating[Any])

NORMAL_VARIANCE = 9.0
"""Of a count: from there on the usual rule of three standard deviations lets it be normal."""
MOST_CELLS, MOST_SIGNS = 256, 1024
"""Of rows at the finest scale: more would cost time and show errors that hardly any sample has. And clusters:
of more, sums with random signs are normal, and are drawn so from their
covariance."""
UNSEEN_ROWS = 4.0
"""Of soft outcomes: with fewer expected, none of them may come in 1 of 50 samples."""
NEAR, NEAR_ROWS, NEAR_CELLS = 0.1, 10.0, 64
"""A row's weight is that of the rows of its label within this distance of predictions, shrunk by so many rows
towards all rows: wide and few, as weights hardly depend on f beyond their label. And the grid for it."""


@dataclass(frozen=True, eq=False)
class ResidualCells:
    """Residuals of the rows in the non-empty cells of a grid, and their variances.

    Attributes
    ----------
    cell : int64[m]
        Of so many that the scale's grid has; the last, `nodes`, is a prediction of 1.
    prediction : float64[m]
        Mean prediction.
    mass : float64[m]
        Share of the weight.
    residual : float64[m]
        Σ w (f - y) / Σ w.
    null, observed : float64[m]
        Variance of the residual of independent rows if the predictions are calibrated, and
        Σ w² (f - y)² / (Σ w)².
    units : float
        Kish's effective number of rows or clusters, (Σ w)² / Σ w².
    row_units : float
        The same of the rows.
    nodes : int
        Cells of the grid.
    scale : Scale
    step : float
        E |r|³ / E r² of a row under calibration: the part of a residual that one event makes. 0 for clusters,
        whose signs are sub-Gaussian.
    degrees : float
        Degrees of freedom of the observed variance; infinite for rows of one weight.
    inflation : float
        Factor by which clusters make the standard error of the mean residual larger.
    soft : bool
        Whether outcomes lie between 0 and 1.
    rows : int64[m] or None
        Rows of each cell, where all have the same weight and an outcome of 0 or 1.
    scores : float64[k, m] or None
        Of k clusters: residuals that add up to `residual`; or k rows that have their covariance.
    signs : int or None
        Number of clusters whose signs are drawn; None where normal numbers are.
    """

    cell: Integers
    prediction: Floats
    mass: Floats
    residual: Floats
    null: Floats
    observed: Floats
    units: float
    row_units: float
    nodes: int
    scale: Scale
    step: float
    degrees: float = math.inf
    inflation: float = 1.0
    soft: bool = False
    rows: Integers | None = None
    scores: Floats | None = None
    signs: int | None = None

    @classmethod
    def of(
        cls, sketch: Sketch, nodes: int, clusters: ClusterResiduals | None = None
    ) -> ResidualCells:
        """The rows of a sketch on a coarser grid of so many cells."""
        total = sketch.total_weight
        place = cell_positions(sketch)
        f = sketch.scale.prediction(place).clip(0.0, 1.0)
        weights, squared = sketch.weights, sketch.squared_weights
        mass = over_outcomes(weights)
        variance, third = null_moments(sketch, f)
        seen = observed_variance(sketch, f)
        coarse = sketch.cells >> (sketch.nodes.bit_length() - nodes.bit_length())
        first = np.flatnonzero(np.diff(coarse, prepend=-1))
        step = float(third.sum()) / max(float(variance.sum()), 1e-300) / total
        columns = np.stack([mass, mass * f, mass * f - weights[:, 1], variance, seen])
        mass, sums, residual, null, observed = np.add.reduceat(columns, first, axis=1)
        cells = coarse[first]
        prediction = np.divide(sums, mass, out=f[first], where=mass > 0)
        units = float(total**2 / (over_outcomes(squared) + 2.0 * cross_weights(sketch)).sum())
        own = cls(
            cells,
            prediction,
            mass / total,
            residual / total,
            null / total**2,
            observed / total**2,
            units,
            units,
            nodes,
            sketch.scale,
            step,
        )
        own = replace(own, soft=is_soft(sketch))
        if clusters is not None:
            return own._of_clusters(clusters)
        if same_weights(sketch):
            rows = np.add.reduceat(over_outcomes(sketch.counts), first)
            return replace(own, rows=rows)
        # Student's factor: the design effects are estimated.
        from scipy.special import ndtri, stdtrit

        degrees = max(units - 1.0, 1.0)
        factor = 1.0 if own.soft else float(stdtrit(degrees, 0.975) / ndtri(0.975))
        return replace(own, degrees=degrees, null=own.null * factor**2)

    def _of_clusters(self, clusters: ClusterResiduals) -> ResidualCells:
        place = np.minimum((clusters.position * self.nodes).astype(np.int64), self.nodes)
        at = np.minimum(np.searchsorted(self.cell, place), self.cell.size - 1)
        few = clusters.number <= MOST_SIGNS
        if few:
            shape = (clusters.number, self.cell.size)
            sums = np.bincount(
                clusters.code * shape[1] + at, clusters.residual, shape[0] * shape[1]
            )
            scores = sums.reshape(shape).astype(np.float64, copy=False)
            # No draw depends on the order in which the clusters came.
            scores = scores[np.lexsort(np.round([scores @ self.position, scores.sum(axis=1)], 12))]
            residual, observed = scores.sum(axis=0), (scores**2).sum(axis=0)
        else:
            from scipy.sparse import csr_array

            sums = csr_array((clusters.residual, (clusters.code, at)))
            covariance = (sums.T @ sums).toarray()
            values, vectors = np.linalg.eigh(covariance)
            scores = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            residual, observed = np.asarray(sums.sum(axis=0)).ravel(), np.diag(covariance)
        return replace(
            self,
            residual=residual,
            observed=observed,
            units=clusters.units,
            step=0.0,
            degrees=max(clusters.units - 1.0, 1.0),
            inflation=clusters.inflation(float(self.observed.sum())),
            rows=None,
            scores=scores,
            signs=clusters.number if few else None,
        )

    @property
    def position(self) -> Floats:
        """Centre of each cell on the grid, from 0 to 1."""
        return np.minimum((self.cell + 0.5) / self.nodes, 1.0)

    @cached_property
    def surprises(self) -> float:
        """Number of equal events that would make the mean residual as uncertain, under calibration."""
        variance = float(self.null.sum()) * self.inflation**2
        one = max(1.0 / self.trials, self.step)
        return variance / one**2

    @property
    def trials(self) -> float:
        """Number of independent rows whose mean residual would be as uncertain."""
        return self.row_units / self.inflation**2

    def draws(self, number: int) -> Singles:
        """Residuals of calibrated samples [m, number]: always the same, so that no p-value has a seed."""
        if self.scores is not None:
            random = _fixed("normal", len(self.scores))[: len(self.scores), :number]
            random = random if self.signs is None else np.sign(random)
            return np.asarray(product(self.scores.T.astype(np.float32), random))
        size = self.cell.size
        noise = (
            np.sqrt(self.null).astype(np.float32)[:, None] * _fixed("normal", size)[:size, :number]
        )
        if self.rows is None:
            return noise
        odds = np.minimum(self.prediction, 1.0 - self.prediction)
        few = np.flatnonzero(self.rows * odds * (1.0 - odds) < NORMAL_VARIANCE)
        if few.size:
            events = _binomial(_fixed("uniform", size)[few, :number], self.rows[few], odds[few])
            side = np.where(self.prediction[few] > 0.5, 1.0, -1.0) / self.rows.sum()
            expected = (self.rows[few] * odds[few]).astype(np.float32)
            noise[few] = (events - expected[:, None]) * side.astype(np.float32)[:, None]
        return noise

    def coarsened(self, nodes: int) -> tuple[Integers, Integers]:
        """Cells of a coarser grid that are not empty, and where the cells of each begin here."""
        coarse = self.cell >> (self.nodes.bit_length() - nodes.bit_length())
        first = np.flatnonzero(np.diff(coarse, prepend=-1))
        return coarse[first], first

    def variances(self, functions: Floats, first: Integers) -> Floats:
        """Observed variance of ⟨r, g⟩ for functions g [coarse cells, k], from cells that begin there."""
        if self.scores is not None:
            sums = product(np.add.reduceat(self.scores, first, axis=1), functions)
            return np.asarray((sums**2).sum(axis=0))
        return np.asarray(np.add.reduceat(self.observed, first) @ functions**2)

    def null_variances(self, functions: Floats, first: Integers) -> tuple[Floats, Floats]:
        """Variances of ⟨r, g⟩ if calibrated: of the samples that are drawn, and one to judge the rows by.

        Where events are few and none came, residuals with random signs vary too little. So the variance of
        clusters is no less than that of calibrated rows times the design effect of the clusters; and that of
        soft outcomes, for which no variance is known, takes in a few rows as far off as can be.
        """
        rows = np.add.reduceat(self.null, first) @ functions**2
        if self.scores is None and not self.soft:
            return rows, rows
        drawn = self.variances(functions, first)
        if self.soft:
            unseen = (UNSEEN_ROWS / self.row_units**2) * np.abs(functions).max(
                axis=0, initial=0.0
            ) ** 2
            return drawn, drawn + self.inflation**2 * unseen
        return drawn, np.maximum(drawn, self.inflation**2 * rows)


def is_soft(sketch: Sketch) -> bool:
    """True where outcomes lie between 0 and 1: they have weight under labels that no row has."""
    alone = (sketch.weights > 0) & (sketch.counts == 0)
    return bool(sketch.weighted and (alone.any() or cross_weights(sketch).any()))


def has_weight(sketch: Sketch) -> bool:
    """True where some row has a weight whose square is not lost: there is nothing to assess otherwise."""
    return not sketch.weighted or bool((sketch.squared_weights > 1e-290).any())


def same_weights(sketch: Sketch) -> bool:
    """True where every row has one weight, be it 1 or any other number, and an outcome of 0 or 1."""
    if not sketch.weighted:
        return True
    one = sketch.total_weight / sketch.n
    pairs = ((sketch.weights, sketch.counts), (sketch.squared_weights, sketch.weights))
    return all(bool(np.allclose(each, one * of, 1e-9, 0.0)) for each, of in pairs)


def effective_rows(sketch: Sketch) -> Floats:
    """Kish's effective sample size of each non-empty cell, (Σw)² / Σw², at most its number of rows."""
    weights = over_outcomes(sketch.weights)
    if not sketch.weighted:
        return weights
    squared = over_outcomes(sketch.squared_weights)
    rows = np.divide(weights**2, squared, out=np.zeros_like(weights), where=squared > 0)
    return np.asarray(np.minimum(rows, over_outcomes(sketch.counts)))


def cross_weights(sketch: Sketch) -> Floats:
    """Σ y (1 - y) over the soft outcomes of each cell; 0 for outcomes of 0 and 1.

    A soft outcome has weight y under the label 1 and 1 - y under the label 0. Where soft rows have weights of
    their own the sums of a sketch do not tell, and 0 is on the safe side: variances are then too large.
    """
    if not sketch.weighted:
        return np.zeros(sketch.cells.size)
    negative, positive = (sketch.weights - sketch.squared_weights).T
    counted = np.allclose(over_outcomes(sketch.weights), over_outcomes(sketch.counts), rtol=1e-9)
    both = np.allclose(negative, positive, rtol=1e-6, atol=1e-9)
    return np.maximum(positive, 0.0) if counted and both else np.zeros(sketch.cells.size)


def null_variance(sketch: Sketch, f: Floats) -> Floats:
    """Variance of Σ w (f - y) in each cell if the predictions are calibrated; see `null_moments`."""
    return null_moments(sketch, f)[0]


def null_moments(sketch: Sketch, f: Floats) -> tuple[Floats, Floats]:
    """Σ E x² and Σ E |x|³ of x = w (f - y) in each cell if the predictions are calibrated.

    Σ w² (f - y)² for soft outcomes, of which nothing is known, and f (1 - f) for each row without weights.
    Weights may depend on the outcome, as where one in ten of the rows without the event was kept. With ω of
    `design_effects`, and W the weight that a calibrated cell of as many rows has, W f / ω₁ rows have the
    event and W (1 - f) / ω₀ have not, so

        Σ E x² = W f (1 - f) ((1 - f) ω₁ + f ω₀),   Σ E |x|³ = W f (1 - f) ((1 - f)² ω₁² + f² ω₀²).
    """
    weights, chance = sketch.weights, f * (1.0 - f)
    if not sketch.weighted:
        rows = over_outcomes(weights)
        return rows * chance, rows * chance * ((1.0 - f) ** 2 + f**2)
    squared = sketch.squared_weights
    if is_soft(sketch):
        seen = observed_variance(sketch, f)
        return seen, seen * (float(over_outcomes(squared).sum()) / sketch.total_weight)
    omega = design_effects(weights, squared, f)
    event, other = (1.0 - f) * omega[:, 1], f * omega[:, 0]
    rows = expected_weights(weights, omega, f) * chance
    return rows * (event + other), rows * (event**2 + other**2)


def observed_variance(sketch: Sketch, f: Floats) -> Floats:
    """Σ w² (f - y)² of the rows in each cell."""
    squared, chance = sketch.squared_weights, f * (1.0 - f)
    seen = squared[:, 0] * f**2 + squared[:, 1] * (1.0 - f) ** 2
    return np.asarray(np.maximum(seen - 2.0 * cross_weights(sketch) * chance, 0.0))


def design_effects(weights: Floats, squared: Floats, f: Floats) -> Floats:
    """ω = Σw² / Σw of the rows of each label near each prediction, [m, 2], shrunk towards all rows near it.

    It is the weight that a typical row of this label has: n ω / Σw is Kish's design effect.
    """
    near, centre = _near_cells()
    at = np.minimum((f * NEAR_CELLS).astype(np.int64), NEAR_CELLS - 1)

    def summed(values: Floats, kernel: Floats) -> Floats:
        return np.asarray(kernel @ np.bincount(at, values, NEAR_CELLS))

    one = [summed(weights[:, label], near) for label in (0, 1)]
    two = [summed(squared[:, label], near) for label in (0, 1)]
    every = (two[0] + two[1]) / np.maximum(one[0] + one[1], 1e-300)
    omega = np.empty((f.size, 2))
    for label in (0, 1):
        local = two[label] / np.maximum(one[label], 1e-300)
        rows = one[label] ** 2 / np.maximum(summed(squared[:, label], near**2), 1e-300)
        shrunk = np.maximum((rows * local + NEAR_ROWS * every) / (rows + NEAR_ROWS), local)
        omega[:, label] = np.interp(f, centre, shrunk)
    return np.maximum(omega, 1e-300)


@cache
def _near_cells() -> tuple[Floats, Floats]:
    centre = (np.arange(NEAR_CELLS) + 0.5) / NEAR_CELLS
    return np.exp(-0.5 * ((centre[:, None] - centre) / NEAR) ** 2), centre


def expected_weights(weights: Floats, omega: Floats, f: Floats) -> Floats:
    """Weight that each cell has on average if it is calibrated, given how many rows it has.

    Σ w / ω is the number of rows, of which f are events: where the rows without the event weigh a hundred
    times more, one of them by chance would make the cell seem a hundred times heavier.
    """
    rows = over_outcomes(weights / omega)
    return np.asarray(rows / (f / omega[:, 1] + (1.0 - f) / omega[:, 0]))


def _binomial(uniform: Singles, rows: Integers, odds: Floats) -> Singles:
    """Binomial counts [m, draws] by inversion of uniform numbers."""
    counts = np.zeros_like(uniform)
    chance = (1.0 - odds) ** rows
    below, left, k = chance.copy(), np.arange(rows.size), 0
    while left.size:
        counts[left] += uniform[left] > below[left, None].astype(np.float32)
        k += 1
        chance = chance * ((rows - k + 1) / k * odds / (1.0 - odds))
        left = left[(below[left] < 1.0 - 1e-8) & (rows[left] > k)]
        below = below + chance
    return counts


DRAWS = 999
"""Of which the first are enough where nothing is amiss; with the sample itself they make 1,000."""


def product(a: NDArray[Number], b: NDArray[Number]) -> NDArray[Number]:
    """The matrix product in blocks so small that BLAS starts no threads.

    On a machine with other work threads wait for one another a hundred times longer than these products take.
    """
    columns, rows = 64, max((1 << 12) // a.shape[1], 1)
    values = np.empty((len(a), b.shape[1]), dtype=np.result_type(a, b))
    for k in range(0, b.shape[1], columns):
        for i in range(0, len(a), rows):
            part = values[i : i + rows, k : k + columns]
            np.matmul(a[i : i + rows], b[:, k : k + columns], out=part)
    return values


@cache
def _numbers(kind: str, size: int) -> Singles:
    rng = np.random.default_rng(0)
    if kind == "uniform":
        return rng.random((size, DRAWS), dtype=np.float32)
    return rng.standard_normal((size, DRAWS), dtype=np.float32)


def _fixed(kind: str, size: int) -> Singles:
    """Random numbers [at least `size`, DRAWS], the same ones in every call."""
    return _numbers(kind, -(-size // MOST_CELLS) * MOST_CELLS)
