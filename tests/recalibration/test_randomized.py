"""κ: seeded, gated, within the theorem's bound, calibrated on fresh rows."""

import numpy as np
import pytest
from scipy.stats import kstest
from tests.refusals import refused

from calibrant import CalibrantError, smooth_ece
from calibrant.recalibration.randomized import RandomizedRecalibrator, noise_of


def sample(n=4000, power=1.8, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**power).astype(int)


def test_rows_get_the_same_noise_in_any_order_and_in_any_calls():
    p, y = sample(500)
    kappa = RandomizedRecalibrator(random_state=3).fit(p, y)
    whole = kappa.transform(p)
    order = np.random.default_rng(0).permutation(p.size)
    assert np.array_equal(kappa.transform(p[order]), whole[order])
    assert np.array_equal(np.concatenate([kappa.transform([one]) for one in p]), whole)


@pytest.mark.parametrize(
    "p",
    [
        np.random.default_rng(1).random(20_000),
        np.full(20_000, 0.5),
        np.arange(20_000) / 20_000,
        0.5 + np.arange(20_000) * 2.0**-53,
        np.repeat([0.1, 0.3], 10_000),
    ],
    ids=["any", "one value", "a lattice", "neighbours", "two values"],
)
def test_the_noise_of_rows_is_normal_and_independent(p):
    noise = noise_of(p, 0)
    assert kstest(noise, "norm").pvalue > 0.001
    bound = 4.0 / np.sqrt(p.size)
    for other in (noise_of(p, 1), np.roll(noise, 1), np.roll(noise, p.size // 2)):
        assert abs(np.mean(noise * other)) < bound
        assert abs(np.mean((noise**2 - 1) * (other**2 - 1))) < 2 * bound
    assert abs(np.mean(noise * (p - p.mean()))) <= bound * p.std()
    assert np.array_equal(noise_of(np.array([0.0, 0.5]), 0), noise_of(np.array([-0.0, 0.5]), 0))


def test_calibrates_rows_that_come_one_at_a_time():
    """Noise that is the same for every call would be a fixed shift of all predictions."""
    p, y = sample(4000)
    kappa = RandomizedRecalibrator(bandwidth=0.2).fit(p, y)
    fresh, truth = sample(500, seed=1)
    for kappa.random_state in (0, 3):
        alone = np.concatenate([kappa.transform([one]) for one in fresh])
        assert smooth_ece(truth, alone) < 0.1


@pytest.mark.parametrize("scale", ["probability", "logit", "logit/4"])
def test_expected_displacement_is_that_of_a_simulation_and_within_the_bound(scale):
    p, y = sample()
    kappa = RandomizedRecalibrator(scale=scale).fit(p, y)
    seen = []
    for kappa.random_state in range(8):
        seen.append(np.abs(kappa.transform(p) - p).mean())
    assert kappa.expected_displacement == pytest.approx(np.mean(seen), rel=0.02)
    assert kappa.expected_displacement <= kappa.displacement_bound


def test_refuses_calibrated_predictions_unless_told_otherwise():
    p, y = sample(power=1.0)
    with refused(option="require_miscalibration", kind=CalibrantError):
        RandomizedRecalibrator().fit(p, y)
    assert (
        RandomizedRecalibrator(require_miscalibration=False).fit(p, y).transform(p).size == p.size
    )


def test_refuses_one_class():
    with refused("y_true", 0):
        RandomizedRecalibrator().fit([0.2, 0.4], [0, 0])
