"""The certificate is at least the true error, always, and small where that is promised."""

import math
import warnings

import numpy as np
import pytest
from tests.oracles.data import SHAPES, all_wrong, ends_of_cells, skewed_cells, unequal_weights
from tests.oracles.smooth import fixed_point, smooth_error

from calibrant import Sketch, smooth_ece_result
from calibrant.smoothing.spectrum import INTERPOLATION, SLOPE_NORMS

BANDWIDTHS = [0.3, 0.05, 0.005, 0.001]
ROUNDING_OF_ORACLE = 5e-15


def measured(shape, seed=3):
    y, p, weight = shape(np.random.default_rng(seed))
    options = {} if weight is None else {"sample_weight": weight}
    return y, p, weight, options


def assert_certified(result, truth):
    assert abs(result.value - truth) <= result.certificate.total + ROUNDING_OF_ORACLE


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_certificate_bounds_the_error_at_a_bandwidth(shape, bandwidth):
    y, p, weight, options = measured(shape)
    truth = smooth_error(y, p, bandwidth, weight)
    from_arrays = smooth_ece_result(y, p, bandwidth=bandwidth, tolerance=1e-6, **options)
    assert_certified(from_arrays, truth)
    assert from_arrays.certificate.total <= 1e-6
    sketch = Sketch.from_arrays(y, p, **options)
    from_sketch = smooth_ece_result(sketch, bandwidth=bandwidth)
    assert_certified(from_sketch, truth)
    if bandwidth >= 0.005:
        assert from_sketch.certificate.total <= 1e-6
    for nodes in (256, 2):
        assert_certified(smooth_ece_result(sketch.rebin(nodes), bandwidth=bandwidth), truth)


@pytest.mark.parametrize("shape", SHAPES)
def test_certificate_bounds_the_error_of_the_fixed_point(shape):
    y, p, weight, options = measured(shape)
    truth = fixed_point(y, p, weight)
    from_arrays = smooth_ece_result(y, p, **options)
    assert_certified(from_arrays, truth)
    assert from_arrays.certificate.total <= 1e-6
    assert from_arrays.bandwidth == from_arrays.value
    sketch = Sketch.from_arrays(y, p, **options)
    assert_certified(smooth_ece_result(sketch), truth)
    for nodes in (256, 2):
        assert_certified(smooth_ece_result(sketch.rebin(nodes)), truth)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_rows_summed_up_in_cells_are_certified_too(shape, monkeypatch):
    """The table of counts, means and variances: by itself where it does, and with the rows where not."""
    monkeypatch.setattr("calibrant.smoothing.residuals.ROWS_WORTH_A_CELL", 0)
    y, p, weight, options = measured(shape)
    for bandwidth in (0.05, 0.002):
        truth = smooth_error(y, p, bandwidth, weight)
        rough = smooth_ece_result(y, p, bandwidth=bandwidth, tolerance=1e-3, **options)
        assert_certified(rough, truth)
        fine = smooth_ece_result(y, p, bandwidth=bandwidth, tolerance=1e-10, **options)
        assert_certified(fine, truth)
        assert fine.certificate.total <= 1e-10
    assert_certified(smooth_ece_result(y, p, **options), fixed_point(y, p, weight))


def test_cells_of_a_table_leave_open_what_the_bound_says(monkeypatch):
    """Three rows whose third moment is far from the middle of its range, in cells of the table."""
    monkeypatch.setattr("calibrant.smoothing.residuals.ROWS_WORTH_A_CELL", 0)
    y = np.ones(160, int)
    for log2_cells, bandwidth in ((12, 1e-2), (15, 1e-3)):
        cell = np.random.default_rng(0).integers(0, 1 << log2_cells, 40)
        p = np.concatenate([cell, cell, cell, cell + 0.9]) / (1 << log2_cells)
        result = smooth_ece_result(y, p, bandwidth=bandwidth, tolerance=1e-2)
        truth = smooth_error(y, p, bandwidth)
        assert abs(result.value - truth) <= result.certificate.total
        assert result.certificate.total > 1e-9  # no row was read for this


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bandwidth", [20.0, 0.3, 0.02])
def test_certificate_holds_where_rounding_is_all_there_is(shape, bandwidth):
    """Where nothing lies, the noise of a transform must not add up over the mesh."""
    y, p, weight, options = measured(shape)
    result = smooth_ece_result(y, p, bandwidth=bandwidth, tolerance=1e-13, **options)
    assert result.certificate.total < 1e-11
    assert_certified(result, smooth_error(y, p, bandwidth, weight))


@pytest.mark.parametrize("shape", [ends_of_cells, skewed_cells, all_wrong, unequal_weights])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bandwidth", [1e-3, 1e-4])
def test_certificate_holds_down_to_bandwidths_of_few_cells(shape, seed, bandwidth):
    y, p, weight, options = measured(shape, seed)
    result = smooth_ece_result(Sketch.from_arrays(y, p, **options), bandwidth=bandwidth)
    assert_certified(result, smooth_error(y, p, bandwidth, weight))


def test_certificate_of_the_worst_sketch():
    """Every cell half full at both ends and every residual near 1: the spread term in full."""
    p = np.repeat(np.arange(200) / 2**16, 2) + np.tile([0, 1 / 2**16 - 2.0**-36], 200)
    result = smooth_ece_result(Sketch.from_arrays(np.ones(400), p), bandwidth=0.005)
    assert 4e-7 < result.certificate.total <= 1e-6
    assert_certified(result, smooth_error(np.ones(400), p, 0.005))


def test_many_rows_at_one_place_are_added_up_within_the_certificate():
    """Adding a float a million times rounds to the same side every time."""
    n = 1 << 20
    y, p = np.zeros(n), np.full(n, 0.1)
    result = smooth_ece_result(y, p, bandwidth=0.05, tolerance=1e-12)
    assert abs(result.value - 0.1) <= result.certificate.total
    weighted = Sketch.from_arrays(y, p, sample_weight=np.full(n, 0.1))
    result = smooth_ece_result(weighted, bandwidth=0.05)
    assert abs(result.value - 0.1) <= result.certificate.total


@pytest.mark.parametrize("labels", [[0, 0], [0, 1]])
def test_calibrated_to_the_last_bit_is_zero_within_the_certificate(labels):
    result = smooth_ece_result(labels, [0.0, 1.0] if labels == [0, 1] else [0.0, 0.0])
    assert result.value <= result.certificate.total <= 1e-4


def test_huge_counts():
    counts = Sketch.from_counts([0.3, 0.7], [10**12, 10**12], [4 * 10**11, 6 * 10**11])
    truth = fixed_point(np.repeat([1, 0, 1, 0], [4, 6, 6, 4]), np.repeat([0.3, 0.7], 10))
    assert_certified(smooth_ece_result(counts), truth)


def test_evaluations_give_no_warnings_at_any_bandwidth():
    """A residual of the size of the smallest floats divides by almost nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bandwidth in [*np.linspace(11, 13, 21), 1e3, 1e6]:
            value = smooth_ece_result([0, 1], [0.25, 0.75], bandwidth=bandwidth).value
            assert value == pytest.approx(0.0, abs=1e-15)


def test_norms_of_the_proof():
    """The norms in the bound are those of the Gaussian's derivatives."""
    x = np.linspace(-14, 14, 2_000_001)
    density = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)

    def l1(order):
        derivative = np.polynomial.hermite_e.hermeval(x, [0] * order + [1]) * density
        return np.abs(derivative).sum() * (x[1] - x[0])

    for order, norm in enumerate(SLOPE_NORMS, 1):
        assert l1(order) - 1e-9 <= norm <= l1(order) + 1e-6
    widest = np.prod([0.5, 1.5, 2.5, 3.5]) ** 2  # between the fourth and the fifth of eight nodes
    exact = widest / math.factorial(8) * l1(8)
    assert exact - 1e-12 <= INTERPOLATION <= exact + 1e-6
