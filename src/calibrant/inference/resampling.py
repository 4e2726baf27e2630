"""Resampling on the sketch: new rows, or new outcomes, at a cost that does not depend on n.

A bootstrap of the rows only changes how many of them lie in each (cell, label), and smoothing is
linear in these numbers. So a resample is one draw per non-empty (cell, label) of a grid as coarse as
the bandwidth allows, and all resamples are smoothed by one batch of cosine transforms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.data.stacked import Stacked
from calibrant.inference._cells import mean_positions
from calibrant.inference._draws import counts_below
from calibrant.smoothing.curves import smoothed_series
from calibrant.smoothing.spectrum import cosine_coefficients

__all__ = [
    "bootstrap_weights",
    "cell_positions",
    "cell_predictions",
    "coarse_sketch",
    "consistency_events",
    "cross_weights",
    "effective_rows",
    "expected_weights",
    "outcome_variances",
    "smoothed_weights",
    "worth_of_rows",
]

Floats = NDArray[np.float64]

# A grid of this many cells to a bandwidth widens the kernel by less than half a per cent.
_CELLS_PER_BANDWIDTH = 6
_FEWEST_CELLS = 64
_NORMAL_VARIANCE = 9.0
_FEW_TRIALS = 16.0
_BORROWED = 5.0
"""So many rows of all cells stand behind what a row of one cell is worth."""
_NEIGHBOURHOODS, _ROWS_OF_NEIGHBOURHOOD = 32, 200
_DRAWS_AT_ONCE = 1 << 19


def coarse_sketch(sketch: Sketch, bandwidth: float) -> Sketch:
    """The same rows on the coarsest grid that smoothing at `bandwidth` does not notice."""
    cells = _FEWEST_CELLS
    while cells < sketch.nodes and cells * bandwidth < _CELLS_PER_BANDWIDTH * sketch.scale.length:
        cells *= 2
    return sketch if cells >= sketch.nodes else sketch.rebin(cells)


def bootstrap_weights(sketch: Sketch, resamples: int, *, seed: int) -> Iterator[Floats]:
    """Weights per (cell, label) of bootstrapped rows, in blocks of shape [some resamples, m, 2].

    Every row is taken a Poisson(1) number of times, so a (cell, label) with n rows gets Poisson(n) of
    them. With weights, the draw is scaled so that mean and variance are those of the resampled sum:
    Σw and Σw². A soft outcome lies under both labels, which then go together.

    Examples
    --------
    >>> sketch = Sketch.from_arrays([0, 1, 1], [0.2, 0.7, 0.7])
    >>> blocks = list(bootstrap_weights(sketch, 9000, seed=0))
    >>> float(np.concatenate(blocks).mean(axis=0)[1, 1].round(1))
    2.0
    """
    rng = generator(seed, 1)
    weights, squared = sketch.weights, sketch.squared_weights
    if cross_weights(sketch).any():
        rows = over_outcomes(weights)
        rate = weights[:, 1] / rows
        spread = np.sqrt(np.maximum(squared[:, 1] - rate * weights[:, 1], 0.0))
        for size in _block_sizes(resamples, weights.size):
            drawn = rng.poisson(rows, size=(size, rows.size)).astype(np.float64)
            events = rate * drawn + spread * rng.standard_normal(drawn.shape)
            events = np.clip(events, 0.0, drawn)
            yield np.stack([drawn - events, events], axis=-1)
        return
    unit = np.divide(squared, weights, out=np.ones_like(weights), where=weights > 0)
    expected = weights / unit
    for size in _block_sizes(resamples, weights.size):
        yield np.asarray(rng.poisson(expected, size=(size, *weights.shape)) * unit)


def consistency_events(
    sketch: Sketch, resamples: int, *, seed: int, at_once: int | None = None
) -> Iterator[Floats]:
    """Weight of events per cell if the predictions were calibrated, in blocks [some, m, 1].

    Predictions stay; every outcome is drawn again as y ~ Bernoulli(f) with f the mean prediction of
    its cell, or, where outcomes are soft, with their own spread around it. With weights, as many
    outcomes of equal weight are drawn as there are effective rows, and the deviation from their mean
    is scaled so that its variance is that of `outcome_variances`. No block has more than `at_once`
    resamples: for those who may stop early.

    Examples
    --------
    >>> sketch = Sketch.from_arrays([0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25])
    >>> float(np.concatenate(list(consistency_events(sketch, 4000, seed=0))).mean().round(1))
    1.0
    """
    rng = generator(seed, 2)
    weights = over_outcomes(sketch.weights)
    rows = effective_rows(sketch)
    trials = np.maximum(np.rint(rows), 1.0)
    predictions = np.clip(cell_predictions(sketch), 0.0, 1.0)
    drawn = trials * predictions * (1.0 - predictions)
    unit = np.ones_like(weights)
    if sketch.weighted:
        ratio = np.divide(
            outcome_variances(sketch), drawn, out=np.zeros_like(drawn), where=drawn > 0
        )
        unit = np.sqrt(ratio)
    if cross_weights(sketch).any():
        spread = np.sqrt(outcome_variances(sketch))
        for size in _block_sizes(resamples, weights.size, at_once):
            draws = weights * predictions + spread * rng.standard_normal((size, weights.size))
            yield np.clip(draws, 0.0, weights)[..., None]
        return
    mean = (weights - unit * trials) * predictions  # 0 where the rows are whole
    for size in _block_sizes(resamples, weights.size, at_once):
        yield np.asarray(_binomial(rng, trials, predictions, size) * unit + mean)[..., None]


def _binomial(rng: np.random.Generator, trials: Floats, chance: Floats, size: int) -> Floats:
    """Binomial draws [size, m]; normal ones where their variance is above 9.

    Smoothing adds up a dozen cells, so the normal's error vanishes in what is made of the draws; it is
    many times faster to draw. Cells with few rows draw an outcome for each.
    """
    variance = trials * chance * (1.0 - chance)
    wide = variance > _NORMAL_VARIANCE
    few = ~wide & (trials <= _FEW_TRIALS)
    middle = ~wide & ~few
    shape = (size, trials.size)
    draws = np.empty(shape)
    if wide.any():
        draws = rng.standard_normal(shape)
        draws *= np.sqrt(variance)
        draws += trials * chance
    if few.any():
        rows = trials[few].astype(np.int64)
        draws[:, few] = counts_below(rng.random((size, int(rows.sum()))), rows, chance[few])
    if middle.any():
        rows = trials[middle].astype(np.int64)
        draws[:, middle] = rng.binomial(rows, chance[middle], size=(size, rows.size))
    return draws


def smoothed_weights(sketch: Sketch, weights: Floats, bandwidth: float, points: int) -> Floats:
    """Smooth weights of shape [..., m, labels] into curves of shape [..., labels, points + 1].

    `labels` is 2, or 1 for weights that do not tell the outcomes apart. Rows sit at the mean position
    of their (cell, label), or of their cell, and are split over the two nearest nodes.
    """
    mass, moment = sketch.weights, sketch.weighted_offsets
    if weights.shape[-1] == 1:
        mass, moment = mass.sum(axis=1, keepdims=True), moment.sum(axis=1, keepdims=True)
    offset = np.divide(moment, mass, out=np.zeros_like(mass), where=mass > 0)
    right = weights * (offset * 2.0**-sketch.offset_bits)
    nodes = np.zeros((*weights.shape[:-2], weights.shape[-1], sketch.nodes + 2))
    nodes[..., sketch.cells] += np.swapaxes(weights - right, -1, -2)
    nodes[..., sketch.cells + 1] += np.swapaxes(right, -1, -2)
    coefficients = cosine_coefficients(nodes[..., :-1])
    return smoothed_series(coefficients, bandwidth / sketch.scale.length, points)


def effective_rows(sketch: Sketch) -> Floats:
    """(Σw)² / Σw² in each non-empty cell: the number of equal rows with the same variance.

    A soft outcome is split over both labels, which makes Σw² too small; there are never more than the
    rows themselves.
    """
    weights = over_outcomes(sketch.weights)
    if not sketch.weighted:
        return weights
    squared = over_outcomes(sketch.squared_weights)
    rows = np.divide(weights**2, squared, out=np.zeros_like(weights), where=squared > 0)
    return np.asarray(np.minimum(rows, over_outcomes(sketch.counts)))


def cross_weights(sketch: Sketch) -> Floats:
    """Σ y(1 - y) over the soft outcomes of each cell: how far its two labels go together.

    0 for outcomes of 0 and 1. Where soft rows have weights of their own the sums of a sketch do not tell,
    and 0 is on the safe side: bands and intervals are then wider than they need be.
    """
    if not sketch.weighted:
        return np.zeros(sketch.cells.size)
    negative, positive = (sketch.weights - sketch.squared_weights).T
    counted = np.allclose(over_outcomes(sketch.weights), over_outcomes(sketch.counts), rtol=1e-9)
    both = np.allclose(negative, positive, rtol=1e-6, atol=1e-9)
    return np.maximum(positive, 0.0) if counted and both else np.zeros(sketch.cells.size)


def outcome_variances(sketch: Sketch, predictions: Floats | None = None) -> Floats:
    """Variance of the weight of events in each cell, were the predictions, if known already, calibrated.

    Outcomes of 0 and 1 are Bernoulli; soft ones stray less, as far as they do in the data. Weights may
    depend on the outcome, as where only one in ten of the rows without the event was kept: with
    ω = Σw² / Σw of each label, W f and W (1 - f) the weights that events and the others should have,

        Var Σ w (f - y)  =  Σ w² (f - y)²  ≈  W f (1 - f) ((1 - f) ω₁ + f ω₀),

    where W is that of `expected_weights`.
    """
    f = (cell_predictions(sketch) if predictions is None else predictions).clip(0.0, 1.0)
    weight = over_outcomes(sketch.weights)
    if not sketch.weighted:
        return np.asarray(weight * f * (1.0 - f))
    cross = cross_weights(sketch)
    soft = bool(cross.any())
    worth = worth_of_rows(sketch.weights, sketch.squared_weights + cross[:, None], sketch.counts)
    expected = weight if soft else expected_weights(sketch.weights, worth, f)
    chance = expected * f * (1.0 - f) * ((1.0 - f) * worth[:, 1] + f * worth[:, 0])
    if soft:
        events, squared = sketch.weights[:, 1], sketch.squared_weights[:, 1]
        chance = np.minimum(chance, squared - 2.0 * f * events + weight * f**2)
    return np.asarray(np.maximum(chance, 0.0))


def expected_weights(weights: Floats, worth: Floats, f: Floats) -> Floats:
    """The weight of each cell, judged by how many rows it has and not by which outcomes came.

    A calibrated cell of weight W holds W f / ω₁ events and W (1 - f) / ω₀ others on average. Where the
    others weigh a hundred times more, one of them by chance would make the cell seem a hundred times
    heavier; the number of rows hardly changes. Where both weigh the same, it is the weight itself.
    """
    rows = over_outcomes(weights / worth)
    return np.asarray(rows / (f / worth[:, 1] + (1.0 - f) / worth[:, 0]))


def worth_of_rows(weights: Floats, squared: Floats, counts: NDArray[Any]) -> Floats:
    """Σw² / Σw of each cell and label [m, 2]: what one of its rows counts for, with so many of them.

    Weights that have nothing to do with the outcome are those of all rows of a cell: an event would weigh
    what any row does, however much those weigh that happened to come. So it is unless the rows show that
    events weigh more than the others near them, or less; then each label speaks for itself, in each of a
    few neighbourhoods: weights may depend on predictions and outcomes together.
    """
    weight = over_outcomes(weights)
    alike = np.divide(over_outcomes(squared), weight, out=np.ones_like(weight), where=weight > 0)
    worth = np.repeat(np.maximum(alike, 1e-300)[:, None], 2, axis=1)
    if np.any((weights > 0) & (counts == 0)):  # soft outcomes lie under both labels
        return worth
    first = _neighbourhoods(counts)
    apart = _dependence_on_outcome(weights, squared, counts, first)
    if apart == 0.0:
        return worth
    own = _worth_by_label(weights, squared, first)
    larger = np.exp(2.0 * _errors_of_worth(weights, squared, counts))
    return np.asarray(worth ** (1.0 - apart) * (own * larger) ** apart)


def _neighbourhoods(counts: NDArray[Any]) -> NDArray[np.intp]:
    """Where runs of cells begin that hold about equally many rows, a hundred or more."""
    rows = over_outcomes(counts).astype(np.float64)
    parts = min(_NEIGHBOURHOODS, max(int(rows.sum()) // _ROWS_OF_NEIGHBOURHOOD, 1))
    place = (np.cumsum(rows) - 0.5 * rows) * (parts / rows.sum())
    return np.flatnonzero(np.diff(np.minimum(np.floor(place), parts - 1), prepend=-1))


def _dependence_on_outcome(
    weights: Floats, squared: Floats, counts: NDArray[Any], first: NDArray[np.intp]
) -> float:
    """Whether events weigh more or less than the other rows near them: from 0, as far as is known, to 1.

    By how many standard errors the weight of the events is off, were outcomes dealt to rows at random in
    each neighbourhood: over all of them, or by the sum of squares; from 3, where it begins to tell, to 5. A
    difference that could be chance must not count: where events are light by chance, too little happened by
    weight, and to take them for light by nature would turn that into evidence.
    """
    columns = (
        over_outcomes(counts).astype(np.float64),
        over_outcomes(weights),
        over_outcomes(squared),
    )
    n, w, q = (np.add.reduceat(each, first) for each in columns)
    events, drawn = np.add.reduceat(counts[:, 1], first), np.add.reduceat(weights[:, 1], first)
    spread = np.maximum(q / np.maximum(n, 1.0) - (w / np.maximum(n, 1.0)) ** 2, 0.0)
    variance = events * (n - events) / np.maximum(n - 1.0, 1.0) * spread
    known = variance > 1e-12 * q
    if not known.any():
        return 0.0
    off = (drawn - events * w / np.maximum(n, 1.0))[known]
    together = abs(float(off.sum())) / math.sqrt(float(variance[known].sum()))
    squares = float((off**2 / variance[known]).sum())
    errors = max(together, (squares - off.size) / math.sqrt(2.0 * off.size))
    return float(min(max((errors - 3.0) / 2.0, 0.0), 1.0))


def _worth_by_label(weights: Floats, squared: Floats, first: NDArray[np.intp]) -> Floats:
    """What a row of each cell and label counts for, judged by the rows of this label near it.

    Where a cell holds few rows of a label, those of its neighbourhood speak for it, times what the rows of
    the cell, of either label, weigh in comparison; where that holds few, those of all cells; and where there
    are few in all, those of the other label do. So weights may depend on predictions, on outcomes and on
    both, and yet outcomes that did not come are not taken for ones that cannot.
    """
    totals, squares = weights.sum(axis=0), squared.sum(axis=0)
    overall = np.divide(squares, totals, out=np.zeros(2), where=totals > 0)
    # A few rows of a label, which may have small weights by chance, do not speak for it alone.
    rows = np.divide(totals**2, squares, out=np.zeros(2), where=squares > 0)
    of_all = max(float(squares.sum() / totals.sum()), 1e-300)
    overall = np.maximum(overall, _BORROWED * of_all / (rows + _BORROWED))
    around, around_squared = (np.add.reduceat(each, first) for each in (weights, squared))
    near = _with_borrowed(around, around_squared, overall, 1.0)
    near = np.repeat(near, np.diff(first, append=len(weights)), axis=0)
    here = over_outcomes(squared / near**2) + _BORROWED
    here /= over_outcomes(weights / near) + _BORROWED
    return _with_borrowed(weights, squared, near * here[:, None])


def _with_borrowed(
    weights: Floats, squared: Floats, worth: Floats, rows: float = _BORROWED
) -> Floats:
    """Σw² / Σw, with so many rows more that are each worth this."""
    return np.asarray((squared + rows * worth**2) / (weights + rows * worth))


def _errors_of_worth(weights: Floats, squared: Floats, counts: NDArray[Any]) -> Floats:
    """Standard error of each label's Σw² / Σw, in units of itself.

    Where the weights of a label are uneven, the heaviest are seldom in the sample, and the ratio is mostly
    too small: it is taken two of these larger. The square of each is Σw² (w - ω)² / (Σw²)². Sums of w³ and
    w⁴ in a cell are those of log-normal weights with its sums of w and w², and exact where it has one row,
    or rows of one weight.
    """
    known = (squared > 0) & (counts > 0)
    n, s, q = (np.where(known, each, 1.0) for each in (counts, weights, squared))
    third = n * (q / s) ** 3
    fourth = np.minimum(q**2, n * (q / n) ** 6 / (s / n) ** 8)
    squares = np.where(known, q, 0.0).sum(axis=0)
    ratio = squares / np.where(known, s, 1e-300).sum(axis=0)
    strayed = np.where(known, fourth - 2.0 * ratio * third + ratio**2 * q, 0.0).sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(strayed, 0.0)) / np.maximum(squares, 1e-300))


def cell_positions(
    sketch: Sketch | Stacked,
    *,
    by_label: bool = False,
    some: NDArray[np.intp] | slice = slice(None),
) -> Floats:
    """Mean place of the rows in each non-empty cell, or (cell, label), on the scale's grid from 0 to 1.

    Of some of them, where these are named by where they come among the non-empty ones.
    """
    cells, weights, moments = (
        sketch.cells[some],
        sketch.weights[some],
        sketch.weighted_offsets[some],
    )
    return mean_positions(cells, weights, moments, sketch.nodes, 2.0**FRACTION_BITS, by_label)


def cell_predictions(sketch: Sketch, some: NDArray[np.intp] | slice = slice(None)) -> Floats:
    """Mean prediction of the rows in each non-empty cell, or in some of them."""
    return np.asarray(sketch.scale.prediction(cell_positions(sketch, some=some)))


def _block_sizes(resamples: int, draws_each: int, at_once: int | None = None) -> Iterator[int]:
    most = max(1, _DRAWS_AT_ONCE // max(draws_each, 1))
    most = most if at_once is None else min(most, at_once)
    for first in range(0, resamples, most):
        yield min(most, resamples - first)
