"""The benchmarks' exact SmoothECE against closed forms and a sum over images."""

from __future__ import annotations

import numpy as np
import pytest
from bench.exact import Exact, exact_binned_ece, exact_smooth_ece

import calibrant


def test_rows_at_one_prediction_have_a_closed_form():
    y = np.array([1.0, 0.0, 0.0, 0.0])
    for p in (0.0, 0.3, 0.7, 1.0):
        exact = Exact(y, np.full(4, p))
        for bandwidth in (0.01, 0.1, 0.5):
            assert exact.at(bandwidth) == pytest.approx(abs(p - 0.25), abs=1e-12)


def test_the_series_equals_the_sum_over_reflected_images():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(40), [0.0, 1.0]])
    y = rng.integers(0, 2, p.size).astype(float)
    bandwidth = 0.05
    t = (np.arange(100_000) + 0.5) / 100_000
    r = np.zeros_like(t)
    for shift in (-2, 0, 2):
        for sign in (-1, 1):
            z = (t[:, None] - (sign * p + shift)) / bandwidth
            r += np.exp(-0.5 * z**2) @ ((p - y) / p.size) / (bandwidth * np.sqrt(2 * np.pi))
    assert Exact(y, p).at(bandwidth) == pytest.approx(np.abs(r).mean(), abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_fixed_point_is_calibrants_within_its_certificate(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    result = calibrant.smooth_ece_result(y, p)
    assert abs(result.value - exact_smooth_ece(y, p)) <= result.certificate.total + 1e-12


def test_binned_ece_puts_an_edge_on_either_side():
    p = np.array([0.5, 0.5, 0.25, 0.75])
    y = np.array([1, 1, 0, 0])
    upper, lower = exact_binned_ece(y, p, 2)
    assert upper == pytest.approx((abs(0.25) + abs(0.5 - 1 + 0.5 - 1 + 0.75)) / 4)
    assert lower == pytest.approx((abs(0.5 - 1 + 0.5 - 1 + 0.25) + abs(0.75)) / 4)
    same, other = exact_binned_ece(y, p, 2, span="range")
    assert (same, other) == (upper, lower)
