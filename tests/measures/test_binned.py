"""Binned errors against scikit-learn's bins, loops over rows, and the bounds of sketches."""

import itertools

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from tests.refusals import refused

from calibrant import Sketch
from calibrant.data.points import as_points
from calibrant.measures.binned import (
    bins_of,
    bounded_ece,
    cross_validated_ece,
    debiased_ece,
    ece,
    sweep_ece,
)


def sample(n=3000, power=1.4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_equals_the_curve_of_scikit_learn(strategy):
    y, p = sample()
    table = bins_of(as_points(y, p), 10, strategy)
    outcome, prediction = calibration_curve(y, p, n_bins=10, strategy=strategy)
    assert table.prediction == pytest.approx(
        prediction, abs=2e-3 if strategy == "quantile" else 1e-12
    )
    if strategy == "uniform":
        assert table.outcome == pytest.approx(outcome, abs=1e-12)


def test_norms_equal_loops_over_bins_closed_on_the_right():
    y, p = sample()
    p = np.round(p, 2)
    edges = np.linspace(0, 1, 16)
    gaps, weights = [], []
    for low, high in itertools.pairwise(edges):
        inside = (p > low) & (p <= high) if low > 0 else p <= high
        gaps.append(np.mean(p[inside]) - np.mean(y[inside]))
        weights.append(np.mean(inside))
    gaps, weights = np.abs(gaps), np.array(weights)
    assert ece(y, p) == pytest.approx(weights @ gaps)
    assert ece(y, p, norm="l2") == pytest.approx(np.sqrt(weights @ gaps**2))
    assert ece(y, p, norm="max") == pytest.approx(gaps.max())


def test_tenths_fall_into_the_bins_they_name():
    p = np.array([0.1, 0.2, 1 - 0.8, 0.3, 0.7, 1.0, 0.0])
    table = bins_of(as_points(np.zeros(7), p), 10, "uniform")
    assert table.weight == pytest.approx(np.array([2, 2, 1, 1, 1]) / 7)


def test_weights_count_as_duplicates():
    y, p = sample(300)
    w = np.random.default_rng(0).integers(1, 4, 300)
    for strategy in ("uniform", "quantile"):
        weighted = ece(y, p, sample_weight=w, strategy=strategy)
        repeated = ece(np.repeat(y, w), np.repeat(p, w), strategy=strategy)
        assert weighted == pytest.approx(repeated)


def test_debiased_equals_its_formula_and_is_unbiased():
    y, p = sample(1500)
    total = 0.0
    order = np.argsort(p)
    for part in np.array_split(order, 15):
        gap = np.mean(p[part]) - np.mean(y[part])
        mean = np.mean(y[part])
        total += (gap**2 - mean * (1 - mean) / (part.size - 1)) / 15
    assert debiased_ece(y, p) == pytest.approx(np.sqrt(max(0, total)))
    rng = np.random.default_rng(0)
    plain, corrected = [], []
    for _ in range(50):
        p = rng.random(600)
        y = (rng.random(600) < p).astype(int)
        plain.append(ece(y, p, norm="l2", strategy="quantile"))
        corrected.append(debiased_ece(y, p))
    assert np.mean(corrected) < 0.6 * np.mean(plain)


def test_sweep_stops_before_the_first_disorder():
    y, p = sample(1200)
    order = np.argsort(p)
    best = 1
    for bins in range(2, 200):
        index = ((np.arange(1200) + 0.5) / 1200 * bins).astype(int)
        means = [y[order][index == b].mean() for b in range(bins)]
        if np.any(np.diff(means) < 0):
            break
        best = bins
    assert sweep_ece(y, p) == pytest.approx(ece(y, p, n_bins=best, strategy="quantile"))


def test_cross_validation_leaves_out_each_row():
    y, p = sample(200)
    order = np.argsort(p)
    errors = {}
    for bins in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96):
        index = ((np.arange(200) + 0.5) / 200 * bins).astype(int)
        error = 0.0
        for b in range(bins):
            rows = y[order][index == b].astype(float)
            for i, row in enumerate(rows):
                others = np.delete(rows, i)
                error += (row - others.mean()) ** 2 if others.size else 0.25
        errors[bins] = error
    best = min(errors, key=errors.get)
    expected = ece(y, p, n_bins=best, strategy="quantile")
    assert cross_validated_ece(y, p) == pytest.approx(expected)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_a_sketch_gives_it_within_its_bound(strategy, norm):
    y, p = sample(20_000)
    exact = bounded_ece(as_points(y, p), strategy=strategy, norm=norm)
    rough = bounded_ece(
        as_points(Sketch.from_arrays(y, p, nodes=1 << 12)), strategy=strategy, norm=norm
    )
    assert exact.error == 0.0
    assert 0 < rough.error < 0.3
    assert abs(rough.value - exact.value) <= rough.error


@pytest.mark.parametrize(("norm", "expected"), [("l1", 0.1875), ("max", 0.25), ("l2", 0.2165064)])
def test_weighted_bins_have_the_values_of_the_issue_of_scikit_learn(norm, expected):
    """Two bins: one calibrated, and one with three quarters of the weight and a gap of 1/4 (#11096)."""
    y, p, weight = [0, 0, 0, 1, 1, 1, 1, 1], [0.25] * 4 + [0.75] * 4, [1] * 4 + [3] * 4
    value = ece(y, p, sample_weight=weight, n_bins=2, strategy="uniform", norm=norm)
    assert value == pytest.approx(expected, abs=5e-8)


def test_the_cube_root_of_the_rows_is_rounded_up():
    for n, bins in ((2, 2), (8, 2), (9, 3), (1000, 10), (1001, 11)):
        y, p = sample(n)
        assert ece(y, p, n_bins="cube_root") == ece(y, p, n_bins=bins)
    with refused("n_bins", "sqrt"):
        ece([0, 1], [0.1, 0.9], n_bins="sqrt")


def test_refuses_weights_where_rows_are_counted():
    with refused("sample_weight"):
        cross_validated_ece([0, 1], [0.1, 0.9], sample_weight=[1.0, 2.0])
    weighted = Sketch.from_arrays([0, 1], [0.1, 0.9], sample_weight=[1.0, 2.0])
    for rows in (([0.5, 1], [0.1, 0.9]), (weighted, None)):
        with refused("y_true", option="y_prob"):
            debiased_ece(*rows, **({"labels": "soft"} if rows[1] else {}))


def test_bins_of_one_row_have_no_noise_to_subtract_and_are_left_out():
    assert np.isnan(debiased_ece([0, 1], [0.5, 0.500001]))
    y, p = [0, 1, 0, 1, 1], [0.4, 0.41, 0.42, 0.43, 0.99]
    alone = debiased_ece(y[:4], p[:4], n_bins=2, strategy="uniform")
    assert debiased_ece(y, p, n_bins=2, strategy="uniform") == alone


def test_the_debiased_error_of_weighted_rows_subtracts_their_noise():
    """Equal weights change nothing, and unequal ones leave the estimate of the noise unbiased."""
    y, p = sample(1500)
    assert debiased_ece(y, p, sample_weight=np.full(1500, 0.3)) == pytest.approx(debiased_ece(y, p))
    rng = np.random.default_rng(0)
    w = rng.exponential(size=60) ** 2
    squares = []
    for _ in range(4000):
        y = (rng.random(60) < 0.3).astype(int)
        mean = w @ y / w.sum()
        table = bins_of(as_points(y, np.full(60, 0.3), sample_weight=w), 1, "uniform")
        noise = mean * (1 - mean) / (table.weight**2 / table.squared - 1)
        squares.append((mean - 0.3) ** 2 - noise[0])
    assert abs(np.mean(squares)) < 4 * np.std(squares) / np.sqrt(len(squares))
