"""Resampling a sketch must be resampling its rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.data.sketch import Sketch
from calibrant.inference.interval import row_spread
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.resampling import (
    bootstrap_weights,
    cell_predictions,
    coarse_sketch,
    consistency_events,
    smoothed_weights,
)
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.smooth_ece import smooth_ece
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


@pytest.mark.parametrize("other", [0.25, 0.33, 0.9])
def test_calibrated_outcomes_of_weighted_rows_have_their_own_variance(other: float) -> None:
    p, weight = np.array([0.3, 0.3]), np.array([1.0, other])
    sketch = Sketch.from_arrays([0, 0], p, sample_weight=weight)
    drawn = np.concatenate(list(consistency_events(sketch, 40_000, seed=0))).ravel()
    assert drawn.mean() == pytest.approx(0.3 * weight.sum(), rel=0.02)
    assert drawn.var() == pytest.approx(0.21 * (weight**2).sum(), rel=0.03)


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = Sketch.from_arrays(*_rows(500)).rebin(64)
    whole = np.concatenate(list(bootstrap_weights(sketch, 50, seed=7)))
    monkeypatch.setattr("calibrant.inference.resampling._DRAWS_AT_ONCE", 300)
    blocks = list(bootstrap_weights(sketch, 50, seed=7))
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate(blocks), whole)


def _soft(n: int, seed: int = 0, noise: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 0.8, n)
    true = 0.15 + 0.6 * p
    return rng.beta(noise * true, noise * (1 - true)), p


def test_soft_outcomes_are_resampled_as_rows() -> None:
    y, p = _soft(300)
    bandwidth, points = 0.1, 64
    coarse = coarse_sketch(Sketch.from_arrays(y, p, labels="soft"), bandwidth)
    curves = smoothed_weights(
        coarse, np.concatenate(list(bootstrap_weights(coarse, 2000, seed=0))), bandwidth, points
    )
    sketched = curves[:, 1] / curves.sum(axis=1)
    rng = np.random.default_rng(1)
    kernel = smoothed_weights(
        coarse := coarse_sketch(Sketch.from_arrays(np.ones(300), p), bandwidth),
        np.eye(coarse.cells.size)[:, :, None],
        bandwidth,
        points,
    )[:, 0]
    cell = np.searchsorted(coarse.cells, np.floor(p * coarse.nodes))
    picks = rng.multinomial(300, np.full(300, 1 / 300), size=2000)
    by_rows = (picks * y) @ kernel[cell] / (picks @ kernel[cell])
    ratio = sketched.std(axis=0) / by_rows.std(axis=0)
    assert 0.85 < ratio.min() <= ratio.max() < 1.15
    assert np.abs(sketched.mean(axis=0) - by_rows.mean(axis=0)).max() < 0.02


@pytest.mark.parametrize("noise", [2.0, 20.0, 1e6])
def test_calibrated_soft_outcomes_stray_as_far_as_soft_ones_do(noise: float) -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, 4000)
    y = rng.beta(noise * p, noise * (1 - p))
    coarse = coarse_sketch(Sketch.from_arrays(y, p, labels="soft"), 0.1)
    events = np.concatenate(list(consistency_events(coarse, 1000, seed=0)))[..., 0]
    found = events.var(axis=0).sum()
    assert found == pytest.approx((p * (1 - p)).sum() / (noise + 1), rel=0.15, abs=0.3)
    hard = noise_floor(Sketch.from_arrays(rng.random(4000) < p, p)).value
    soft = noise_floor(Sketch.from_arrays(y, p, labels="soft")).value
    assert soft == pytest.approx(hard / (noise + 1) ** (1 / 3), rel=0.1, abs=2e-4)


def test_the_spread_of_soft_rows_is_that_of_their_residuals() -> None:
    y, p = _soft(2000)
    sketch = Sketch.from_arrays(y, p, labels="soft")
    value = smooth_ece(sketch)
    grid = ResidualGrid.of(sketch, value)
    exact = np.sqrt((((p - y) ** 2).mean() - value**2) / p.size)
    assert row_spread(grid, value).standard_error == pytest.approx(exact, rel=0.01)
