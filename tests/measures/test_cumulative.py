"""Cumulative measures against loops over rows, simulation and SciPy's splines."""

import numpy as np
import pytest

from calibrant.measures.cumulative import (
    cumulative_differences,
    cutoff_calibration_error,
    ecce_mad,
    ecce_range,
    spline_ks_error,
    truthful_atb,
)


def sample(n=2000, power=1.2, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.choice(rng.random(n), n)
    return (rng.random(n) < p**power).astype(int), p


def cumulative(y, p, w=None):
    w = np.ones(p.size) if w is None else w
    at = [np.sum((w * (p - y))[p <= t]) / w.sum() for t in np.unique(p)]
    return np.array([0.0, *at])


def test_equals_the_extremes_of_the_cumulative_residual():
    y, p = sample(500)
    at = cumulative(y, p)
    assert ecce_mad(y, p) == pytest.approx(np.abs(at).max(), abs=1e-14)
    assert ecce_range(y, p) == pytest.approx(at.max() - at.min(), abs=1e-14)


def test_p_values_are_uniform_for_calibrated_predictions():
    rng = np.random.default_rng(0)
    mad, spread = [], []
    for _ in range(400):
        p = rng.random(2000)
        w = rng.choice([1.0, 3.0], 2000)
        both = cumulative_differences((rng.random(2000) < p).astype(int), p, sample_weight=w)
        mad.append(both.mad_p_value)
        spread.append(both.range_p_value)
    for values in (mad, spread):
        for level in (0.05, 0.25, 0.5, 0.75):
            assert np.mean(np.array(values) < level) == pytest.approx(level, abs=0.07)


def test_p_values_are_small_where_predictions_are_off():
    both = cumulative_differences(*sample(power=1.5))
    assert max(both.mad_p_value, both.range_p_value) < 1e-4
    assert cumulative_differences([1], [0.0]).mad_p_value == 0.0
    assert cumulative_differences([0], [0.0]).mad_p_value == 1.0


def test_atb_is_the_mean_over_random_cuts():
    y, p = sample(300)
    cuts = (np.arange(200_000) + 0.5) / 200_000
    order = np.sort(p)
    sums = np.concatenate([[0.0], np.cumsum((p - y)[np.argsort(p, kind="stable")])]) / p.size
    below = sums[np.searchsorted(order, cuts, side="right")]
    expected = np.mean(below**2 + (sums[-1] - below) ** 2)
    assert truthful_atb(y, p) == pytest.approx(expected, abs=1e-6)


def test_atb_is_truthful_in_expectation():
    rng = np.random.default_rng(4)
    truth = rng.random(30)
    ys = (rng.random((4000, 30)) < truth).astype(int)
    honest = np.mean([truthful_atb(y, truth) for y in ys])
    hedged = np.mean([truthful_atb(y, 0.8 * truth + 0.1) for y in ys])
    assert honest < hedged


def spline_on_rows(y, p, knots=6):
    """The plain fit on rows; A is straight where rows have the same prediction."""
    from scipy.interpolate import CubicSpline

    counts = np.unique(p, return_counts=True)[1]
    ends = np.concatenate([[0], np.cumsum(counts)]) / p.size
    share, places = np.arange(1, p.size + 1) / p.size, np.linspace(0, 1, knots)
    at = np.interp(share, ends, cumulative(y, p))
    basis = CubicSpline(places, np.eye(knots), bc_type="natural")
    heights = np.linalg.lstsq(basis(share), at, rcond=None)[0]
    return np.abs(basis(np.linspace(0, 1, 513)) @ heights).max()


def rounded(n, decimals, seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.3, 8, n), decimals)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize(
    ("y", "p"),
    [
        sample(400),
        rounded(1000, 1, 9),
        rounded(1000, 3, 9),
        rounded(1000, 16, 9),
        rounded(20_000, 1, 2),
        (np.tile([0, 1], 500), np.repeat([0.1, 0.5, 0.9], [800, 150, 50])),
        (np.repeat([0, 1], [26, 3]), np.array([0.1] * 25 + [0.2, 0.3, 0.5, 0.9])),
    ],
)
def test_spline_equals_scipys_natural_least_squares_on_rows(y, p):
    value = spline_ks_error(y, p)
    assert value == pytest.approx(spline_on_rows(y, p), abs=1e-7)
    assert value <= 1.0
    assert spline_ks_error(y, p, sample_weight=np.full(p.size, 3.0)) == pytest.approx(value)


@pytest.mark.parametrize("n", [2, 4, 6, 40])
def test_spline_is_at_most_what_the_cumulative_residual_can_be(n):
    for seed in range(30):
        y, p = sample(n, seed=seed)
        for w in (np.ones(n), np.r_[1e3, np.ones(n - 1)], np.geomspace(1e-6, 1.0, n)):
            most = max(w @ (p * (1 - y)), w @ ((1 - p) * y)) / w.sum()
            assert spline_ks_error(y, p, sample_weight=w) <= most + 1e-12


def test_the_cutoff_calibration_error_of_the_reference_sample():
    """Rossellini et al. 2025 (arXiv 2502.19851): the largest |mean (f - y) 1(a ≤ f ≤ b)| over intervals."""
    y, p = np.loadtxt("tests/reference/over_confident.csv", delimiter=",", skiprows=1, unpack=True)
    assert cutoff_calibration_error(y, p) == pytest.approx(0.0482781, abs=5e-8)
