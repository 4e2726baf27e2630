"""The oracles agree with each other, and with what can be done by hand."""

import numpy as np
import pytest
from tests.oracles.data import SHAPES, touching
from tests.oracles.smooth import fixed_point, smooth_error, smooth_error_by_cosines


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bandwidth", [2.0, 0.3, 0.02])
def test_reflections_equal_cosines(shape, bandwidth):
    y, p, weight = shape(np.random.default_rng(5))
    expected = smooth_error_by_cosines(y, p, bandwidth, weight)
    assert smooth_error(y, p, bandwidth, weight) == pytest.approx(expected, abs=5e-12)


def test_a_row_that_is_wrong_by_a_half_has_error_one_half():
    assert smooth_error([0], [0.5], 0.07) == pytest.approx(0.5, abs=1e-15)
    assert fixed_point([0], [0.5]) == pytest.approx(0.5, abs=1e-12)


def test_two_rows_far_apart_do_not_cancel():
    assert smooth_error([1, 0], [0.1, 0.9], 0.01) == pytest.approx(0.9, abs=1e-14)


def test_known_fixed_point():
    y, p, _ = touching(None)
    assert smooth_error(y, p, 0.5) == pytest.approx(0.1, abs=1e-14)
    assert smooth_error(y, p, 0.1) == pytest.approx(0.123, abs=5e-4)
