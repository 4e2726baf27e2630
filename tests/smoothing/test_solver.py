"""The compiled solver, against NumPy's transform, sums of cosines and the oracle without a grid."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.smooth import smooth_error

from calibrant import smooth_ece_result
from calibrant.data._fill import add_moments
from calibrant.smoothing._solver import Transform, transform

EPSILON = np.finfo(float).eps
ROUNDING_OF_ORACLE = 5e-15


@pytest.mark.parametrize("log2_length", [0, 1, 2, 3, 6, 7, 13, 14, 17])
def test_transform_equals_numpys(log2_length):
    """Within the error that the proof allows each of the two, in the 2-norm; tables of both kinds."""
    rng = np.random.default_rng(log2_length)
    z = rng.normal(size=(2, 1 << log2_length))
    own = transform(z[0], z[1])
    expected = np.fft.ifft(z[0] + 1j * z[1], norm="forward")
    error = np.linalg.norm(own - expected) / np.linalg.norm(expected)
    assert error <= EPSILON * max(1, log2_length)


@pytest.mark.parametrize("log2_length", [5, 14])
def test_transform_of_one_point_is_a_root_of_unity(log2_length):
    n = 1 << log2_length
    for k in (1, n // 8, n // 3, n - 1):
        re = np.zeros(n)
        re[k] = 1.0
        angle = 2 * np.pi * ((np.arange(n) * k) % n / n)
        assert np.abs(transform(re, np.zeros(n)) - np.exp(1j * angle)).max() <= 8 * EPSILON


def moments_of(y, p, cells):
    moments = np.zeros((cells, 8))
    invalid, total, absolute = add_moments(p, y, np.empty(0), False, 0.0, float(cells), moments)
    assert (invalid, total) == (-1, p.size)
    assert absolute == pytest.approx(np.abs(p - y).sum())
    return moments


def test_coefficients_are_sums_of_cosines():
    """To the eighth order in the width of a cell, ends included."""
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(50), [0.0, 1.0, 0.5]])
    y = rng.integers(0, 2, p.size)
    k = np.arange(40)
    exact = np.cos(np.pi * np.outer(k, p)) @ (p - y) / p.size
    errors = []
    for cells in (64, 128, 256):
        found = Transform(moments_of(y, p, cells), 1.0 / p.size)
        assert found.bias == pytest.approx(np.mean(p - y), abs=1e-15)
        errors.append(np.abs(found.coefficients[:40] - exact).max())
    assert errors[0] < 1e-2
    assert all(fine < coarse / 100 for coarse, fine in pairwise(errors))


@pytest.mark.parametrize("step", [1, 3])
def test_a_wave_is_integrated_within_its_bound(step):
    """r = 2 c cos(πkt) damped: ∫|r| = 2 |c| 2/π, with zeros on nodes of the mesh or between them."""
    p = np.array([0.25, 0.75])
    spectrum = Transform(moments_of(np.array([0, 1]), p, 1024), 0.5)
    for bandwidth in (0.2, 0.05 / step, 0.011):
        value, slope, quadrature, rounding = spectrum.evaluate(bandwidth, 1e-14)
        truth = smooth_error([0, 1], p, bandwidth)
        assert abs(value - truth) <= quadrature + rounding + 1e-12
        assert rounding < 1e-12
        nearby = smooth_error([0, 1], p, bandwidth * (1 + 1e-4))
        assert slope == pytest.approx((nearby - truth) / (1e-4 * bandwidth), rel=2e-3, abs=1e-9)


rows_on_a_lattice = st.lists(
    st.tuples(st.integers(0, 64), st.integers(0, 1)), min_size=1, max_size=12
)


def assert_brackets_the_fixed_point(result, y, p):
    """smECE_σ falls with σ, so the fixed point lies within the certificate if these two inequalities hold."""
    slack = result.certificate.total + ROUNDING_OF_ORACLE
    low, high = result.value - slack, result.value + slack
    assert smooth_error(y, p, high) <= high
    assert low <= 1e-4 or smooth_error(y, p, low) >= low


@settings(max_examples=40)
@given(rows=rows_on_a_lattice, width=st.sampled_from([1.0, 0.1, 0.01]), start=st.floats(0, 0.9))
def test_few_rows_anywhere(rows, width, start):
    """Ties, gaps, ends, zeros on nodes, one row: the fixed point lies within the certificate."""
    at, y = np.array(rows).T
    p = np.minimum(start + width * at / 64, 1.0) if width < 1.0 else at / 64
    result = smooth_ece_result(y, p)
    if result.value > 1e-4:
        assert_brackets_the_fixed_point(result, y, p)
        assert result.certificate.total <= 1e-7
    assert result.value >= abs(np.mean(p - y)) - result.certificate.total


@pytest.mark.parametrize("gap", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("signs", [(0, 1), (1, 0), (1, 1)])
def test_signs_change_across_gaps_in_which_nothing_lies(gap, signs):
    low, high = 0.5 - gap / 2, 0.5 + gap / 2
    p = np.concatenate([np.full(20, low), np.full(20, high)])
    y = np.repeat(signs, 20)
    for bandwidth in (0.003, 0.05):
        result = smooth_ece_result(y, p, bandwidth=bandwidth)
        truth = smooth_error(y, p, bandwidth)
        assert abs(result.value - truth) <= result.certificate.total + ROUNDING_OF_ORACLE
    assert_brackets_the_fixed_point(smooth_ece_result(y, p), y, p)


def test_rare_and_calibrated_rows_have_a_window_of_their_own():
    rng = np.random.default_rng(5)
    p = 0.01 * rng.random(600) ** 2
    y = (rng.random(600) < p).astype(int)
    for flip in (False, True):
        pair = (1 - y, 1 - p) if flip else (y, p)
        result = smooth_ece_result(*pair)
        assert result.certificate.total <= 1e-7
        assert_brackets_the_fixed_point(result, *pair)


def test_the_same_bits_on_any_number_of_cores(monkeypatch):
    rng = np.random.default_rng(2)
    p = rng.random(1 << 20)
    y = (rng.random(p.size) < p).astype(np.int8)
    results = []
    for cores in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        results.append(smooth_ece_result(y, p))
    assert results[0] == results[1] == results[2]
