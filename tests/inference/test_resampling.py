"""Resampling a sketch must be resampling its rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    consistency_events,
    smoothed_weights,
)
from calibrant.sketch.table import Sketch
from calibrant.smoothing.curves import smooth_curves


def _rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 0.8, n)
    return (rng.random(n) < p**1.4).astype(int), p


def test_coarse_grid_keeps_the_curve() -> None:
    sketch = Sketch.from_arrays(*_rows(2000))
    for bandwidth in (0.2, 0.05, 0.01):
        coarse = coarse_sketch(sketch, bandwidth)
        assert coarse.nodes < sketch.nodes
        negative, positive = smoothed_weights(coarse, coarse.weights, bandwidth, 256)
        exact = smooth_curves(sketch, bandwidth, points=256)
        dense = exact.density > 0.05 * exact.density.max()
        found = (positive / (negative + positive))[dense]
        assert np.abs(found - exact.regression[dense]).max() < 0.01


def test_bootstrap_of_the_sketch_is_bootstrap_of_the_rows() -> None:
    y, p = _rows(200)
    bandwidth, points = 0.1, 64
    coarse = coarse_sketch(Sketch.from_arrays(y, p), bandwidth)
    (weights,) = bootstrap_weights(coarse, 4000, seed=0)
    curves = smoothed_weights(coarse, weights, bandwidth, points)
    sketched = curves[:, 1] / curves.sum(axis=1)

    rng = np.random.default_rng(1)
    by_rows = np.empty((1000, points + 1))
    for k in range(len(by_rows)):
        pick = rng.integers(0, 200, 200)
        by_rows[k] = smooth_curves(
            Sketch.from_arrays(y[pick], p[pick]), bandwidth, points=points
        ).regression
    assert np.abs(sketched.mean(axis=0) - by_rows.mean(axis=0)).max() < 0.01
    ratio = sketched.std(axis=0) / by_rows.std(axis=0)
    assert ratio.min() > 0.9
    assert ratio.max() < 1.1


def test_consistency_draws_have_the_predictions_as_their_mean() -> None:
    sketch = coarse_sketch(Sketch.from_arrays(*_rows(3000)), 0.05)
    (events,) = consistency_events(sketch, 4000, seed=3)
    rows = sketch.counts.sum(axis=1)
    p = cell_predictions(sketch)
    spread = np.sqrt(p * (1 - p) * rows)
    assert np.abs(events[..., 0].mean(axis=0) - rows * p).max() < 5 * spread.max() / np.sqrt(4000)
    assert np.allclose(events[..., 0].std(axis=0), spread, rtol=0.1, atol=0.05)


def test_weights_are_resampled_with_their_own_variance() -> None:
    y, p = _rows(3000)
    weight = np.random.default_rng(5).exponential(size=3000)
    sketch = Sketch.from_arrays(y, p, sample_weight=weight).rebin(64)
    (drawn,) = bootstrap_weights(sketch, 4000, seed=0)
    heavy = sketch.counts > 15
    assert np.allclose(drawn.mean(axis=0)[heavy], sketch.weights[heavy], rtol=0.05)
    assert np.allclose(drawn.var(axis=0)[heavy], sketch.squared_weights[heavy], rtol=0.2)


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = Sketch.from_arrays(*_rows(500)).rebin(64)
    whole = np.concatenate(list(bootstrap_weights(sketch, 50, seed=7)))
    monkeypatch.setattr("calibrant.inference.resampling._DRAWS_AT_ONCE", 300)
    blocks = list(bootstrap_weights(sketch, 50, seed=7))
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate(blocks), whole)
