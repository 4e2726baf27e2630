"""The compiled loops over cells, against the same in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import Sketch
from calibrant.inference._cells import (
    log_loss_bounds,
    mean_positions,
    score_sums,
    starts_of_runs,
    strayed_sums,
    sums_of_runs,
    witness_rows,
)
from calibrant.inference.residuals import Strayed
from calibrant.smoothing._solver import mean_root, series_sizes, series_values

RNG = np.random.default_rng(3)
M = 40
WEIGHTS = RNG.random((M, 2)) * (RNG.random((M, 2)) < 0.7)
SQUARED = WEIGHTS**2
F = np.sort(RNG.random(M))


def test_means_of_cells_and_of_their_labels() -> None:
    cells, moments = np.arange(M), WEIGHTS * RNG.random((M, 2)) * 4.0
    with np.errstate(invalid="ignore"):
        offset = np.nan_to_num(moments / WEIGHTS) / 256
        together = np.nan_to_num(moments.sum(axis=1) / WEIGHTS.sum(axis=1)) / 256
    by_label = mean_positions(cells, WEIGHTS, moments, 64.0, 256.0, True)
    assert by_label == pytest.approx(cells[:, None] / 64 + offset)
    assert mean_positions(cells, WEIGHTS, moments, 64.0, 256.0, False) == pytest.approx(
        cells / 64 + together
    )


def test_sums_of_what_outcomes_stray() -> None:
    sums = Strayed(*strayed_sums(WEIGHTS, SQUARED, F))
    residual, side = np.stack([F, F - 1], axis=1), np.sign(F - 0.5)[:, None]
    total = WEIGHTS.sum()
    assert sums.bias == pytest.approx((WEIGHTS * residual).sum() / total)
    assert sums.gap == pytest.approx((WEIGHTS * residual * side).sum() / total)
    assert sums.above == pytest.approx(WEIGHTS[F > 0.5].sum() / total)
    assert sums.second == pytest.approx((SQUARED * residual**2).sum())
    assert sums.of_bias == pytest.approx((SQUARED * (residual - sums.bias) ** 2).sum())
    assert sums.of_gap == pytest.approx((SQUARED * (residual * side - sums.gap) ** 2).sum())
    ratio = WEIGHTS[:, 1].sum() / (WEIGHTS.sum(axis=1) @ F)
    strayed = np.stack([-ratio * F, 1 - ratio * F], axis=1)
    assert sums.variance == pytest.approx((SQUARED * strayed**2).sum())
    assert sums.third == pytest.approx((SQUARED * strayed**3).sum())
    worth = SQUARED.sum(axis=0) / WEIGHTS.sum(axis=0)
    assert sums.units == pytest.approx(min(total**2 / SQUARED.sum(), total / worth.max()))


def test_sums_of_losses_and_their_bounds() -> None:
    f = np.stack([F, F], axis=1)
    brier, least, surprise = score_sums(WEIGHTS, f, F)
    logs = np.stack([-np.log1p(-F), -np.log(F)], axis=1)
    assert (brier, least) == pytest.approx(((WEIGHTS * (f - [0, 1]) ** 2).sum(),) * 2)
    assert surprise == pytest.approx((WEIGHTS * logs).sum())
    steps = np.repeat(F[::4], 4)[:M]  # the same for runs of cells
    runs = np.stack([-np.log1p(-steps), -np.log(steps)], axis=1)
    assert score_sums(WEIGHTS, f, steps) == pytest.approx(
        (brier, (WEIGHTS * (steps[:, None] - [0, 1]) ** 2).sum(), (WEIGHTS * runs).sum())
    )
    ends = np.stack([F - 0.01 * F, F + 0.01 * (1 - F)], axis=1)
    counts = np.full((M, 2), 5)
    low, high = log_loss_bounds(counts, WEIGHTS, f, ends, 0, M)
    assert low == pytest.approx(surprise)
    assert low < high < 1.1 * low
    assert log_loss_bounds(np.ones((M, 2), int), WEIGHTS, f, ends, 0, M) == (low, low)
    some = np.stack([np.arange(M) < 30, np.arange(M) >= 5], axis=1)
    known, _ = log_loss_bounds(counts, WEIGHTS, f, ends, 5, 30)
    assert known == pytest.approx((WEIGHTS * logs * some).sum())


def test_runs_of_cells_add_up() -> None:
    weight, variance = RNG.random(500), RNG.random(500)
    first = starts_of_runs(weight, variance, weight.sum(), variance.sum(), 50)
    assert first.size <= 51
    assert first[:2].tolist() == [0, 1]
    assert first[-1] == 499
    weights, f = RNG.random((500, 2)), RNG.random(500)
    counts = RNG.integers(0, 5, (500, 2))
    sums, rows = sums_of_runs(first, weights, weights**2, f, f, variance, counts)
    assert rows == pytest.approx(np.add.reduceat(counts.sum(axis=1), first))
    assert sums[:, :2] == pytest.approx(np.add.reduceat(weights, first))
    assert sums[:, 5] == pytest.approx(np.add.reduceat(weights.sum(axis=1) * f, first))
    second = (weights**2 * np.stack([f, 1 - f], axis=1) ** 2).sum(axis=1)
    assert sums[:, 7] == pytest.approx(np.add.reduceat(second, first))


def test_witnesses_are_the_functions_that_they_are_named_for() -> None:
    null = RNG.random(M)
    rows = witness_rows(F, F, null, null.sum(), 2, 0.1, 6.0, 4)
    rank = (np.cumsum(null) - 0.5 * null) / null.sum()
    odds = np.log(F / (1 - F)).clip(-6, 6)
    odds -= null @ odds / null.sum()
    low, high = F[0] + 0.1 >= F, F[-1] - 0.1 <= F
    boxes = [np.floor(rank * size) == k for size in (2, 4) for k in range(size)]
    waves = [np.cos(np.pi * k * rank) for k in (2, 3, 4)]
    ends = [low, high, low | high, low.astype(float) - high]
    expected = [np.ones(M), 1 - 2 * F, odds / np.abs(odds).max(), *boxes, *ends, *waves]
    assert rows == pytest.approx(np.array(expected, dtype=float))


def test_series_are_sums_of_cosines() -> None:
    coefficients, t = RNG.standard_normal((3, 20)), np.arange(65) / 64
    k, bandwidths = np.arange(20), np.array([0.02, 0.1, 0.5])
    damped = coefficients * np.exp(-0.5 * (np.pi * 0.1 * k) ** 2)
    curves = 2 * damped @ np.cos(np.pi * np.multiply.outer(k, t)) - damped[:, :1]
    assert series_values(coefficients, 0.1, 16, 64) == pytest.approx(curves[:, ::4])
    root = np.sqrt(np.maximum(curves[1, ::4], 0.0)).mean()
    assert mean_root(coefficients[1], 0.1, 16, 64) == pytest.approx(root)
    sizes = (np.abs(curves).sum(axis=1) - 0.5 * np.abs(curves[:, [0, -1]]).sum(axis=1)) / 64
    assert series_sizes(coefficients, bandwidths, 64)[1] == pytest.approx(sizes[1])


def test_wider_cells_hold_the_same_rows() -> None:
    p = RNG.random(3000)
    y = RNG.random(3000) < p
    for weight in (None, RNG.random(3000)):
        fine = Sketch.from_arrays(y, p, sample_weight=weight)
        wide, coarse = Sketch.from_arrays(y, p, sample_weight=weight, nodes=256), fine.rebin(256)
        assert coarse.cells.tolist() == wide.cells.tolist()
        assert coarse.counts.tolist() == wide.counts.tolist()
        assert coarse.offsets.tolist() == wide.offsets.tolist()
        assert coarse.weights == pytest.approx(wide.weights)
        assert coarse.weighted_offsets == pytest.approx(wide.weighted_offsets, rel=1e-9)
