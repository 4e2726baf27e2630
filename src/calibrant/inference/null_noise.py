"""Residuals in cells of a grid, and the noise that they have if the predictions are calibrated.

Let r = Σ w (f - y) / Σ w in each cell. Under calibration E r = 0, and samples of r are drawn in one of four
ways:

- rows of one weight: y* ~ Bernoulli(f), exact but for the width of a cell;
- rows with weights: Gaussian, with the variance of `null_moments`;
- soft outcomes: Gaussian with variance Σ w² (f - y)². This is the law of residuals with random signs; of
  outcomes between 0 and 1 nothing is known but that they vary less than Bernoulli's;
- clusters: the residuals of each cluster with one random sign (wild cluster bootstrap; Cameron, Gelbach and
  Miller 2008).

Weights estimate their own variance, so their noise is widened by the ratio of Student's to the normal
quantile, at Kish's effective number less one degrees of freedom. Signs need no such factor, but both they and
soft outcomes know nothing of events that did not come: see `ResidualCells.null_variances`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.quantiles import normal_quantile
from calibrant.inference.residuals import LabelSums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Singles = NDArray[np.float32]

SCALES = 0.5 * 1.7 ** -np.arange(40.0)
"""Wider kernels see hardly more than the mean residual; adjacent scales correlate by about .9."""
MOST_CELLS = 256
"""Of rows at the finest scale: more would cost time and show errors that hardly any sample has."""
DRAWS = 499
"""Samples under calibration; with the sample itself they make 500, so that usual levels are whole numbers of
them. Davidson and MacKinnon (2000) recommend at least 399 at level .05."""
NORMAL_VARIANCE = 9.0
"""Of a count: from there on the usual rule of three standard deviations lets it be normal."""
MOST_SIGNS = 1024
"""Clusters. Of more, sums with random signs are normal, and are drawn so from their covariance."""
BLOCK, SINGLE_THREADED = 64, 1 << 18
"""Draws in a block, and multiplications of a matrix product that OpenBLAS leaves to one thread. On more
threads so small a product takes as long, and while these wait for the next one they keep every core busy."""
MANY_SURPRISES = 40.0
"""Fewest with which the signs of residuals know the variance; see `null_variances`."""
NEAR, NEAR_CELLS = 0.1, 64
"""Rows within this distance of predictions tell what a row weighs: wide, as weights hardly depend on f beyond
their label. And the grid for it."""
CLEAR = 4.0
"""z² of two standard errors, up to which a difference of the weights of the labels is chance."""


@dataclass(frozen=True, eq=False)
class ResidualCells:
    """Residuals of the rows in the non-empty cells of a grid, and their variances.

    Attributes
    ----------
    sums : LabelSums
        The rows themselves, in the cells of their sketch.
    scales : float64[k]
        Bandwidths that these cells resolve, the narrowest first.
    position, prediction : float64[m]
        Mean place on the scale's grid, from 0 to 1, and mean prediction.
    mass, residual : float64[m]
        Σ w and Σ w (f - y), divided by the weight of all rows.
    null, third, observed : float64[m]
        Variance and third absolute moment if calibrated (see `null_moments`), and Σ w² (f - y)².
    drawn : float64[m]
        Variance in the samples that are drawn: one of the two.
    surprises : float64[m]
        Σ f (1 - f) over the independent rows: the variance of their number of events.
    units : float
        Kish's effective number of rows or clusters.
    trials : float
        Number of independent rows whose mean residual would be as uncertain.
    scale : Scale
    degrees : float
        Of freedom of the estimated variance; infinite where it is known.
    design_effect : float
        Factor by which clusters multiply the variance of the mean residual; 1 without them.
    known : bool
        True where calibration itself gives the variance: of hard outcomes of independent rows.
    rows : int64[m] or None
        Rows of each cell, where all weigh the same.
    scores : float64[clusters, m] or None
        Residuals of each cluster; for more than 1,024, rows with the same covariance.
    clusters : int or None
        Their number, where each has its row of `scores`.
    """

    sums: LabelSums
    scales: Floats
    position: Floats
    prediction: Floats
    mass: Floats
    residual: Floats
    null: Floats
    third: Floats
    observed: Floats
    drawn: Floats
    surprises: Floats
    units: float
    trials: float
    scale: Scale
    degrees: float
    design_effect: float
    known: bool
    rows: Integers | None = None
    scores: Floats | None = None
    clusters: int | None = None

    @classmethod
    def of(cls, sketch: Sketch, clusters: ClusterResiduals | None = None) -> ResidualCells:
        """The rows of a sketch, which are independent unless clusters are given."""
        sums = LabelSums.of(sketch)
        f, mass, squared = sums.prediction, sums.mass, sums.squared
        total, known = float(mass.sum()), clusters is None and not sums.soft
        null, third = null_moments(sums)
        seen = squared[:, 0] * f**2 + squared[:, 1] * (1.0 - f) ** 2
        seen = np.maximum(seen - 2.0 * sums.cross * f * (1.0 - f), 0.0)
        effect = 1.0 if clusters is None else clusters.design_effect(float(seen.sum()) / total**2)
        cells, finest = sketch.cells, sketch.nodes
        variance = (seen if sums.soft else null) * (effect / total**2)
        scales, nodes = _resolved(cells, finest, sketch.scale.length, variance)
        first = _first_of_each(cells, finest // nodes)
        columns = [mass, mass * sums.position, mass * f, mass * f - sums.weights[:, 1]]
        parts = np.add.reduceat(np.stack([*columns, null, third, seen]), first, axis=1)
        parts[1:3] /= np.maximum(parts[0], 1e-300)
        parts[[0, 3]] /= total
        parts[[4, 6]] /= total**2
        parts[5] /= total**3
        mass, position, f, residual, null, third, observed = parts
        units = float(total**2 / (over_outcomes(squared) + 2.0 * sums.cross).sum())
        trials, degrees = units / effect, math.inf
        rows = scores = number = None
        if clusters is not None:
            units, third = clusters.units, np.zeros(third.size)  # signs are as often + as -
            residual, scores, number = _cluster_scores(
                clusters, cells[first] // (finest // nodes), nodes, position
            )
            observed, degrees = (scores**2).sum(axis=0), max(units - 1.0, 1.0)
        elif sums.alike:
            rows = np.add.reduceat(over_outcomes(sums.counts), first)
        else:
            degrees = max(units - 1.0, 1.0)
            if known:  # Student's factor: the design effects are estimated
                null = null * (normal_quantile(0.975, degrees) / normal_quantile(0.975)) ** 2
        return cls(
            sums=sums,
            scales=scales,
            position=position,
            prediction=f,
            mass=mass,
            residual=residual,
            null=null,
            third=third,
            observed=observed,
            drawn=null if known else observed,
            surprises=trials * mass * f * (1.0 - f),
            units=units,
            trials=trials,
            scale=sketch.scale,
            degrees=degrees,
            design_effect=effect,
            known=known,
            rows=rows,
            scores=scores,
            clusters=number,
        )

    def draws(self) -> Singles:
        """Residuals of calibrated samples [m, DRAWS]: always the same, so that no p-value has a seed."""
        rng = np.random.default_rng(0)
        if self.scores is not None:
            shape = (len(self.scores), DRAWS)
            random = rng.standard_normal(shape, dtype=np.float32)
            random = random if self.clusters is None else np.sign(random)
            return np.asarray(self.scores.T.astype(np.float32) @ random)
        noise = np.empty((self.position.size, DRAWS), dtype=np.float32)
        normal = np.ones(self.position.size, dtype=np.bool_)
        if self.rows is not None:
            f, total = self.prediction, self.rows.sum()
            normal = self.rows * f * (1.0 - f) >= NORMAL_VARIANCE
            n, chance = self.rows[~normal, None], f[~normal, None]
            noise[~normal] = (n * chance - rng.binomial(n, chance, (n.size, DRAWS))) / total
        error = np.sqrt(self.drawn[normal]).astype(np.float32)[:, None]
        noise[normal] = error * rng.standard_normal((error.size, DRAWS), dtype=np.float32)
        return noise

    @property
    def fewest_signs(self) -> float:
        """Share of one pattern of signs, and its opposite, among all that clusters can have."""
        return 0.0 if self.clusters is None else 2.0 ** (1.0 - self.clusters)

    def variances(self, functions: Floats) -> Floats:
        """Observed variance of ⟨r, g⟩ for functions g [m, k]."""
        if self.scores is not None:
            return np.asarray(((self.scores @ functions) ** 2).sum(axis=0))
        return weighted_sums(self.observed, functions**2)

    def null_variances(self, functions: Floats) -> tuple[Floats, Floats]:
        """Variances of ⟨r, g⟩ if calibrated: of the samples that are drawn, and one to judge the rows by.

        Residuals with random signs vary too little where events are few and none came. So the variance of
        clusters is no less than that of calibrated rows times the design effect of the clusters; nor is that
        of soft outcomes, unless there are many surprises.
        """
        rows = weighted_sums(self.null, functions**2)
        if self.known:
            return rows, rows
        drawn, least = self.variances(functions), self.design_effect * rows
        if self.sums.soft:
            least[self.surprises @ functions**2 >= MANY_SURPRISES] = 0.0
        return drawn, np.maximum(drawn, least)


def weighted_sums(weights: Floats, functions: Floats) -> Floats:
    """Sums Σ weight · function over the cells of each of the functions [m, k].

    By einsum: a product with a vector would be handed to several threads.
    """
    return np.asarray(np.einsum("i,ik->k", weights, functions))


def in_blocks(draws: Singles) -> Singles:
    """Draws [m, DRAWS] as blocks [blocks, m, BLOCK], the last one filled up with zeros."""
    blocks = np.zeros((len(draws), -(-DRAWS // BLOCK), BLOCK), dtype=np.float32)
    blocks.reshape(len(draws), -1)[:, :DRAWS] = draws
    return np.ascontiguousarray(blocks.swapaxes(0, 1))


def product(matrix: Floats, blocks: Singles) -> Singles:
    """Product of a matrix [k, m] with draws in blocks, [k, DRAWS]: the same for any number of threads."""
    size, cells = matrix.shape
    rows = min(max(SINGLE_THREADED // (BLOCK * cells), 1), size)
    parts = np.zeros((-(-size // rows), 1, rows, cells), dtype=np.float32)
    parts.reshape(-1, cells)[:size] = matrix
    return (parts @ blocks).swapaxes(1, 2).reshape(len(parts) * rows, -1)[:size, :DRAWS]


def _cluster_scores(
    clusters: ClusterResiduals, cells: Integers, nodes: int, position: Floats
) -> tuple[Floats, Floats, int | None]:
    """Residual of each cell, residuals of each cluster there, and the number of clusters if they are few."""
    place = np.minimum((clusters.position * nodes).astype(np.int64), nodes)
    at = np.minimum(np.searchsorted(cells, place), cells.size - 1)
    residual = np.bincount(at, clusters.residual, cells.size).astype(np.float64)
    if clusters.number <= MOST_SIGNS:
        scores = np.zeros((clusters.number, cells.size))
        np.add.at(scores, (clusters.code, at), clusters.residual)
        # No draw depends on the order in which the clusters came.
        order = np.lexsort(np.round([scores @ position, scores.sum(axis=1)], 12))
        return residual, scores[order], clusters.number
    from scipy.sparse import csr_array

    sums = csr_array((clusters.residual, (clusters.code, at)))
    values, vectors = np.linalg.eigh((sums.T @ sums).toarray())
    scores = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return residual, scores, None


def _resolved(cells: Integers, finest: int, length: float, variance: Floats) -> tuple[Floats, int]:
    """Bandwidths from half of the noise floor up, and the cells of a grid that resolves them."""
    narrowest = 0.5 * _approximate_floor(cells, finest, length, variance)
    k = min(int(np.searchsorted(-SCALES, -narrowest)), SCALES.size - 1)
    while True:
        nodes = min(_power_of_two(length / SCALES[k]), finest)
        if k == 0 or _first_of_each(cells, finest // nodes).size <= MOST_CELLS:
            return SCALES[: k + 1][::-1], nodes
        k -= 1


def _approximate_floor(cells: Integers, finest: int, length: float, variance: Floats) -> float:
    """Noise floor in closed form, b = (I² / π^{3/2})^{1/3} with I = ∫√v, by a histogram of cells b wide.

    v is the density of the null variance along the scale: the smoothed residual has variance v / (2√π b), and
    its mean absolute value, integrated, equals b.
    """
    b: float = (length * float(variance.sum()) / math.pi**1.5) ** (1.0 / 3.0)
    for _ in range(4):  # it changes by less than a tenth thereafter
        nodes = _power_of_two(min(max(length / max(b, 1e-12), 4.0), finest))
        roots = np.sqrt(np.add.reduceat(variance, _first_of_each(cells, finest // nodes)))
        b = (float(roots.sum()) ** 2 * length / nodes / math.pi**1.5) ** (1.0 / 3.0)
    return b


def _power_of_two(least: float) -> int:
    return 1 << max(math.ceil(math.log2(least)), 2)


def _first_of_each(cells: Integers, width: int) -> Integers:
    """Places of the cells at which the non-empty cells of a grid that is `width` times as coarse begin."""
    return np.flatnonzero(np.diff(cells // width, prepend=-1))


def has_weight(sketch: Sketch) -> bool:
    """True where some row has a weight whose square is not lost: there is nothing to assess otherwise."""
    return not sketch.weighted or bool((sketch.squared_weights > 1e-290).any())


def null_moments(sums: LabelSums) -> tuple[Floats, Floats]:
    """Σ E x² and Σ E |x|³ of x = w (f - y) in each cell if the predictions are calibrated.

    f (1 - f) for each row without weights, which is the most that soft outcomes can have; of these the third
    moment is left out, as residuals with random signs have none.
    Weights may depend on the outcome, as where one in ten of the rows without the event was kept. With ω of
    `design_effects`, and W the weight that a calibrated cell of as many rows has, W f / ω₁ rows have the
    event and W (1 - f) / ω₀ have not, so

        Σ E x² = W f (1 - f) ((1 - f) ω₁ + f ω₀),   Σ E |x|³ = W f (1 - f) ((1 - f)² ω₁² + f² ω₀²).
    """
    f = sums.prediction
    chance = f * (1.0 - f)
    if not sums.weighted:
        return sums.mass * chance, sums.mass * chance * ((1.0 - f) ** 2 + f**2)
    if sums.soft:
        return (over_outcomes(sums.squared) + 2.0 * sums.cross) * chance, np.zeros(f.size)
    omega = design_effects((sums.counts, sums.weights, sums.squared), f)
    event, other = (1.0 - f) * omega[:, 1], f * omega[:, 0]
    rows = expected_weights(sums.weights, omega, f) * chance
    return rows * (event + other), rows * (event**2 + other**2)


def design_effects(sums: tuple[Integers | Floats, Floats, Floats], f: Floats) -> Floats:
    """ω = Σw² / Σw of the rows of each label near each prediction, [m, 2]: the weight of a typical one.

    n ω / Σw is Kish's design effect. A label's own ω is that of all rows near it unless the mean weights of
    the two labels differ there: with z their standardised difference, it is moved by the positive part of
    1 - c / z² from that of all rows to its own (shrinkage of James and Stein). Where one row in a hundred
    weighs a hundred and few rows are events, there may be no heavy event by chance, and their own ω would
    be that of light rows.

    Parameters
    ----------
    sums : three arrays [m, 2]
        Number of rows, Σw and Σw² in each cell by label.
    f : float64[m]
        Prediction of each cell.
    """
    near, centre = _near_cells()
    at = np.minimum((f * NEAR_CELLS).astype(np.int64), NEAR_CELLS - 1)
    rows, one, two = (
        near @ np.stack([np.bincount(at, each[:, k], NEAR_CELLS) for k in (0, 1)], axis=1)
        for each in sums
    )
    many, weight, square = (np.maximum(each.sum(axis=1), 1e-300) for each in (rows, one, two))
    own, every = two / np.maximum(one, 1e-300), square / weight
    # The difference of mean weights, and its variance if the rows of both labels have weights of one law.
    rows = np.maximum(rows, 1e-100)
    difference = one[:, 1] / rows[:, 1] - one[:, 0] / rows[:, 0]
    variance = np.maximum(square / many - (weight / many) ** 2, 0.0) * (1.0 / rows).sum(axis=1)
    differs = np.maximum(1.0 - CLEAR * variance / np.maximum(difference**2, 1e-300), 0.0)
    differs *= np.minimum(rows.min(axis=1), 1.0)  # less than one row nearby tells nothing
    omega = np.maximum(every[:, None] + differs[:, None] * (own - every[:, None]), own)
    at_cells = np.stack([np.interp(f, centre, each) for each in omega.T], axis=1)
    return np.asarray(np.maximum(at_cells, 1e-300))


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
