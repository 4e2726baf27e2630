"""The paper's theorems, run: Błasiok and Nakkiran, Smooth ECE, with its errata left out.

dCE is known within an interval, so a law that bounds it uses the end that makes the law hardest to
meet by luck: what must be at least dCE is compared with its proved lower end, and so on.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from calibrant import Sketch, smooth_ece, smooth_ece_result
from calibrant.data.scales import Scale
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.measures import distance_to_calibration, weak_calibration_error
from calibrant.measures.distance import distance_to_calibration_result, interval_calibration_error
from calibrant.measures.kernel import kernel_calibration_error
from calibrant.measures.weak_error import loss_gap
from calibrant.recalibration.randomized import RandomizedRecalibrator
from calibrant.recalibration.smooth import regression_on_knots
from calibrant.smoothing.curves import smooth_curves

ROUNDING = 1e-7
SQRT_2_PI = np.sqrt(2 / np.pi)
LAW = settings(max_examples=25, deadline=None, derandomize=True)

predictions = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.499, 0.501, 1e-6, 1 - 1e-6]),
    st.integers(0, 10).map(lambda k: k / 10),
)
rows = st.lists(st.tuples(predictions, st.integers(0, 1)), min_size=1, max_size=30)
bandwidths = st.floats(0.005, 1.0)


def split(data):
    p, y = zip(*data, strict=True)
    return np.array(y), np.array(p)


def distance(y, p, **chosen):
    return distance_to_calibration_result(y, p, nodes=200, **chosen)


@LAW
@given(rows)
def test_weak_calibration_error_is_between_half_and_twice_the_distance(data):
    y, p = split(data)
    d, w = distance(y, p), weak_calibration_error(y, p)
    assert 0.5 * d.low <= w + ROUNDING
    assert w <= 2 * d.high + ROUNDING


@LAW
@given(rows)
def test_smooth_ece_is_between_half_the_distance_and_twice_its_root(data):
    y, p = split(data)
    d, value = distance(y, p), smooth_ece(y, p)
    assert 0.5 * d.low <= value + ROUNDING
    assert value <= 2 * np.sqrt(d.high) + ROUNDING


@LAW
@given(rows, bandwidths)
def test_smoothing_at_any_bandwidth_bounds_distance_and_weak_error(data, sigma):
    y, p = split(data)
    d, value = distance(y, p), smooth_ece(y, p, bandwidth=sigma)
    assert value <= (1 + 1 / sigma) * d.high + ROUNDING
    assert d.low <= value + sigma + ROUNDING
    assert weak_calibration_error(y, p) <= value + SQRT_2_PI * sigma + ROUNDING


def against_the_diagonal(y, p, sigma):
    """smECE~: the smoothed regression against t itself instead of the smoothed predictions."""
    curves = smooth_curves(Sketch.from_arrays(y, p), sigma, points=1 << 13)
    gap = np.abs(curves.position * curves.density - curves.events)
    return trapezoid(gap, curves.position), curves


@LAW
@given(rows, st.floats(0.01, 1.0))
def test_the_diagonal_instead_of_smoothed_predictions_changes_little(data, sigma):
    y, p = split(data)
    other, _ = against_the_diagonal(y, p, sigma)
    assert abs(other - smooth_ece(y, p, bandwidth=sigma)) <= SQRT_2_PI * sigma + 1e-5


@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_the_error_against_the_diagonal_is_that_of_noisy_predictions(sigma):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p**2).astype(int)
    expected, curves = against_the_diagonal(y, p, sigma)
    noisy = np.repeat(p, 2000) + sigma * rng.standard_normal(800_000)
    noisy = 1 - np.abs(1 - np.mod(noisy, 2))
    mean_outcome = np.interp(noisy, curves.position, curves.regression)
    assert np.mean(np.abs(noisy - mean_outcome)) == pytest.approx(expected, rel=5e-3)


@LAW
@given(rows.filter(lambda data: len({y for _, y in data}) == 2), st.floats(0.01, 0.5))
def test_kappa_moves_predictions_by_the_error_and_the_bandwidth_at_most(data, sigma):
    y, p = split(data)
    kappa = RandomizedRecalibrator(bandwidth=sigma, require_miscalibration=False).fit(p, y)
    assert kappa.displacement_bound == pytest.approx(
        smooth_ece(y, p, bandwidth=sigma) + sigma, abs=1e-5
    )
    assert kappa.expected_displacement <= kappa.displacement_bound + 1e-3


def test_kappa_is_calibrated_on_fresh_rows_as_they_grow():
    """What is left on fresh rows is the error of a kernel regression: a constant over √(nσ).

    Given the noisy prediction t, κ says μ̂(t) where the truth is μ(t); |μ̂ - μ| has the mean of a normal
    variable with variance y's · ∫K² / (n σ δ). With uniform predictions and P(y = 1) = f², that gives
    √(2/π) · (2√π)^(-1/2) · ∫ f √(1 - f²) df.
    """
    sigma, constant = 0.1, np.sqrt(2 / np.pi) / np.sqrt(2 * np.sqrt(np.pi)) / 3
    at = (np.arange(4096) + 0.5) / 4096
    trials = np.full(at.size, 10**9)
    everybody = Sketch.from_counts(at, trials, np.rint(at**2 * trials).astype(int))
    density, truth = regression_on_knots(everybody, sigma)
    rng = np.random.default_rng(0)
    for n in (500, 5000, 50_000):
        errors = []
        for _ in range(8):
            p = rng.random(n)
            kappa = RandomizedRecalibrator(bandwidth=sigma).fit(p, rng.random(n) < p**2)
            errors.append(np.average(np.abs(kappa.state["values"] - truth), weights=density))
        assert np.mean(errors) * np.sqrt(n * sigma) == pytest.approx(constant, rel=0.3), n
    fresh = rng.random(400_000)
    seen = smooth_ece(rng.random(fresh.size) < fresh**2, kappa.transform(fresh))
    # SmoothECE of calibrated predictions is not 0 either: add what 400,000 rows show of themselves.
    calibrated = Sketch.from_arrays(rng.random(fresh.size) < fresh, fresh)
    floor = CalibrationTest.of(calibrated).noise_floor
    assert seen < errors[-1] + 1.5 * floor


def test_a_sample_gives_the_population_error_up_to_one_over_root_n_sigma():
    grid = np.linspace(0, 1, 201)
    truth = np.clip(grid + 0.15 * np.sin(6 * grid), 0, 1)
    trials = 10**6
    population = Sketch.from_counts(grid, np.full(201, trials), np.rint(truth * trials).astype(int))
    rng = np.random.default_rng(0)
    for sigma in (0.02, 0.1):
        exact = smooth_ece(population, bandwidth=sigma)
        for n in (400, 4000, 40_000):
            gaps = []
            for _ in range(10):
                at = rng.integers(0, 201, n)
                y = (rng.random(n) < truth[at]).astype(int)
                gaps.append(abs(smooth_ece(y, grid[at], bandwidth=sigma) - exact))
            assert np.mean(gaps) < 1 / np.sqrt(n * sigma)


@LAW
@given(rows)
def test_nearly_calibrated_means_that_little_loss_can_be_saved(data):
    y, p = split(data)
    w, gap = weak_calibration_error(y, p), loss_gap(y, p)
    assert w**2 <= gap + ROUNDING
    assert gap <= 2 * w + ROUNDING


moderate = st.lists(
    st.tuples(st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.0, 1.0])), st.integers(0, 1)),
    min_size=1,
    max_size=30,
)


@settings(LAW, max_examples=12)
@given(moderate, st.sampled_from(["logit", "unreflected"]))
def test_on_a_scale_with_flips_allowed(data, scale):
    """What stands where h' ≥ 1; logit has h' ≥ 4."""
    y, p = split(data)
    d = distance(y, p, scale=scale, flips="allowed")
    found, w = smooth_ece_result(y, p, scale=scale), weak_calibration_error(y, p, scale=scale)
    slack = found.certificate.total + ROUNDING
    assert w <= 2 * d.high + ROUNDING
    assert found.value <= 2 * np.sqrt(d.high) + slack
    assert d.low <= 3.6 * (found.value + slack)


@LAW
@given(rows)
def test_rivals_are_bounded_as_proved(data):
    y, p = split(data)
    d, w = distance(y, p), weak_calibration_error(y, p)
    kernel = kernel_calibration_error(y, p)
    assert kernel**2 <= w + ROUNDING
    assert w <= 3 * kernel + ROUNDING
    assert d.low <= interval_calibration_error(y, p) + ROUNDING


def test_the_distance_can_be_twice_the_weak_error():
    """The paper prints dCE ≤ wCE; this is why the law above has a half."""
    gap = 0.01
    y, p = [1, 0], [0.5 - gap, 0.5 + gap]
    ratio = weak_calibration_error(y, p) / distance_to_calibration_result(y, p, nodes=2000).value
    assert ratio == pytest.approx(0.5, abs=0.02)


def test_a_flat_scale_breaks_the_upper_bound():
    """Why a scale must be nowhere much flatter than the probability itself (erratum 4)."""
    cube = Scale(lambda p: p**3, np.cbrt, name="cube")
    p, y = np.full(100, 0.001), np.zeros(100, dtype=int)
    error = smooth_ece(y, p, scale=cube)
    distance = distance_to_calibration(y, p, scale=cube)
    assert error == pytest.approx(0.001, rel=1e-3)
    assert distance <= 1.001e-9
    assert error > 20 * np.sqrt(distance)


def test_kappa_can_move_far_on_a_scale_where_the_error_is_small():
    """Why the displacement of κ is bounded in |·| and not on the scale."""
    p = np.full(2000, 1 / (1 + np.exp(10)))
    y = (np.arange(2000) < 20).astype(int)
    assert smooth_ece(y, p, scale="logit") == pytest.approx(0.01, abs=1e-3)
    moved = RandomizedRecalibrator(scale="logit").fit(p, y).transform(p)
    assert moved == pytest.approx(0.01, abs=1e-3)
    assert abs(np.log(moved[0] / (1 - moved[0])) + 10) > 5
