"""Resampling on the sketch: new rows, or new outcomes, at a cost that does not depend on n.

A bootstrap of the rows only changes how many of them lie in each (cell, label), and smoothing is
linear in these numbers. So a resample is one draw per non-empty (cell, label) of a grid as coarse as
the bandwidth allows, and all resamples are smoothed by one batch of cosine transforms.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Stacked
from calibrant.inference.null_noise import cross_weights, effective_rows, null_variance
from calibrant.smoothing.curves import smoothed_series
from calibrant.smoothing.spectrum import cosine_coefficients

__all__ = [
    "bootstrap_weights",
    "cell_positions",
    "cell_predictions",
    "coarse_sketch",
    "consistency_events",
    "smoothed_weights",
]

Floats = NDArray[np.float64]

# A grid of this many cells to a bandwidth widens the kernel by less than half a per cent.
_CELLS_PER_BANDWIDTH = 6
_FEWEST_CELLS = 64
_NORMAL_VARIANCE = 9.0
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
    is scaled so that its variance is that of `null_variance`. No block has more than `at_once`
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
            null_variance(sketch, predictions), drawn, out=np.zeros_like(drawn), where=drawn > 0
        )
        unit = np.sqrt(ratio)
    if cross_weights(sketch).any():
        spread = np.sqrt(null_variance(sketch, predictions))
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
    many times faster to draw.
    """
    variance = trials * chance * (1.0 - chance)
    wide = variance > _NORMAL_VARIANCE
    middle = ~wide
    shape = (size, trials.size)
    draws = np.empty(shape)
    if wide.any():
        draws = rng.standard_normal(shape)
        draws *= np.sqrt(variance)
        draws += trials * chance
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
    if not by_label:
        weights, moments = over_outcomes(weights), over_outcomes(moments)
    offset = np.divide(moments, weights, out=np.zeros_like(moments), where=weights > 0)
    left = cells / sketch.nodes
    return np.asarray((left[:, None] if by_label else left) + offset * 2.0**-FRACTION_BITS)


def cell_predictions(sketch: Sketch, some: NDArray[np.intp] | slice = slice(None)) -> Floats:
    """Mean prediction of the rows in each non-empty cell, or in some of them."""
    return np.asarray(sketch.scale.prediction(cell_positions(sketch, some=some)))


def _block_sizes(resamples: int, draws_each: int, at_once: int | None = None) -> Iterator[int]:
    most = max(1, _DRAWS_AT_ONCE // max(draws_each, 1))
    most = most if at_once is None else min(most, at_once)
    for first in range(0, resamples, most):
        yield min(most, resamples - first)
