"""The compiled solver, against NumPy's transform, sums of cosines and the oracle without a grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.smooth import smooth_error

from calibrant import smooth_ece_result
from calibrant.smoothing._solver import transform

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
