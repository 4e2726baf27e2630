"""Kernel calibration errors against the double sum over all pairs of rows."""

import numpy as np
import pytest
from tests.refusals import refused

from calibrant import Sketch
from calibrant.data.scales import as_scale
from calibrant.measures.kernel import (
    kernel_calibration_error,
    mmce,
    squared_kernel_calibration_error,
)

KERNELS = {
    "laplace": lambda d, b: np.exp(-np.abs(d) / b),
    "rbf": lambda d, b: np.exp(-0.5 * (d / b) ** 2),
}


def sample(n=800, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.choice(np.linspace(0, 1, 400), n)
    return (rng.random(n) < p**1.3).astype(int), p


def double_sum(z, r, kernel, bandwidth):
    with np.errstate(invalid="ignore"):
        d = np.nan_to_num(z[:, None] - z[None], nan=0.0, posinf=np.inf, neginf=-np.inf)
    return r @ KERNELS[kernel](d, bandwidth) @ r


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [1.0, 0.2, 0.01])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_equals_the_double_sum(kernel, bandwidth, scale):
    y, p = sample()
    z, r = as_scale(scale).z(p), p - y
    whole, itself, n = double_sum(z, r, kernel, bandwidth), r @ r, p.size
    chosen = {"kernel": kernel, "bandwidth": bandwidth, "scale": scale}
    got = squared_kernel_calibration_error(y, p, **chosen)
    assert got == pytest.approx(whole / n**2, abs=1e-10)
    got = squared_kernel_calibration_error(y, p, unbiased=True, **chosen)
    assert got == pytest.approx((whole - itself) / (n * (n - 1)), abs=1e-10)
    assert kernel_calibration_error(y, p, **chosen) == pytest.approx(np.sqrt(whole) / n, abs=1e-9)


def test_weights_enter_the_double_sum():
    y, p = sample(200)
    w = np.random.default_rng(3).exponential(size=200)
    r = w * (p - y) / w.sum()
    expected = np.sqrt(double_sum(p, r, "laplace", 0.2))
    assert mmce(y, p, sample_weight=w) == pytest.approx(expected, abs=1e-12)
    soft = np.clip(y + 0.1, 0, 0.9)
    for outcome, labels in ((y, "binary"), (soft, "soft")):
        r = w * (p - outcome)
        pairs = double_sum(p, r, "laplace", 1.0) - r @ r
        unbiased = squared_kernel_calibration_error(
            outcome, p, sample_weight=w, labels=labels, unbiased=True
        )
        assert unbiased == pytest.approx(pairs / (w.sum() ** 2 - w @ w), abs=1e-12)
    with refused("unbiased", option="y_prob"):
        squared_kernel_calibration_error(Sketch.from_arrays(y, p, sample_weight=w), unbiased=True)
    with refused("unbiased"):
        squared_kernel_calibration_error([0, 1], [0.1, 0.9], sample_weight=[0, 1], unbiased=True)


def test_unbiased_estimate_is_zero_on_average_for_calibrated_predictions():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(400):
        p = rng.random(50)
        y = (rng.random(50) < p).astype(int)
        values.append(squared_kernel_calibration_error(y, p, unbiased=True))
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(len(values))
