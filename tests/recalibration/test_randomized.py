"""κ: seeded, gated, within the theorem's bound, calibrated on fresh rows."""

import numpy as np
import pytest

from calibrant import CalibrationError, InputError, smooth_ece
from calibrant.recalibration.randomized import RandomizedRecalibrator


def sample(n=4000, power=1.8, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**power).astype(int)


def test_the_same_seed_gives_the_same_bytes():
    p, y = sample()
    kappa = RandomizedRecalibrator(seed=3).fit(p, y)
    assert np.array_equal(kappa.transform(p), kappa.transform(p))
    other = RandomizedRecalibrator(seed=4).fit(p, y)
    assert not np.array_equal(kappa.transform(p), other.transform(p))


@pytest.mark.parametrize("scale", ["probability", "logit", "logit/4"])
def test_expected_displacement_is_that_of_a_simulation_and_within_the_bound(scale):
    p, y = sample()
    kappa = RandomizedRecalibrator(scale=scale).fit(p, y)
    seen = []
    for kappa.seed in range(8):
        seen.append(np.abs(kappa.transform(p) - p).mean())
    assert kappa.expected_displacement == pytest.approx(np.mean(seen), rel=0.02)
    assert kappa.expected_displacement <= kappa.displacement_bound


def test_calibrates_fresh_rows():
    p, y = sample(20_000)
    kappa = RandomizedRecalibrator().fit(p[:10_000], y[:10_000])
    fresh = kappa.transform(p[10_000:])
    assert smooth_ece(y[10_000:], fresh) < 0.25 * smooth_ece(y[10_000:], p[10_000:])


def test_refuses_calibrated_predictions_unless_told_otherwise():
    p, y = sample(power=1.0)
    with pytest.raises(CalibrationError, match="no miscalibration"):
        RandomizedRecalibrator().fit(p, y)
    assert (
        RandomizedRecalibrator(require_miscalibration=False).fit(p, y).transform(p).size == p.size
    )


def test_refuses_one_class_and_transform_before_fit():
    with pytest.raises(InputError, match="outcome 0"):
        RandomizedRecalibrator().fit([0.2, 0.4], [0, 0])
    with pytest.raises(CalibrationError, match="fit"):
        RandomizedRecalibrator().transform([0.5])
    with pytest.raises(CalibrationError, match="fit"):
        _ = RandomizedRecalibrator().expected_displacement
