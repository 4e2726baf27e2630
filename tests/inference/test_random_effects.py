"""All groups together: they say what none of them says alone, and nothing where there is nothing."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.inference.random_effects import random_effects


def _groups(number: int, rows: int, off: float, spread: float, seed: int) -> dict[int, Sketch]:
    rng = np.random.default_rng(seed)
    groups = {}
    for key in range(number):
        p = rng.uniform(0.2, 0.8, rows)
        chance = p - off - spread * rng.choice([-1.0, 1.0])
        groups[key] = Sketch.from_arrays(rng.random(rows) < chance, p, nodes=1 << 12)
    return groups


def test_calibrated_groups_are_seldom_called_off_or_different() -> None:
    pooled = [random_effects(_groups(20, 40, 0.0, 0.0, seed)) for seed in range(60)]
    assert sum(one.p_value <= 0.05 for one in pooled) <= 8
    assert sum(one.heterogeneity_p_value <= 0.05 for one in pooled) <= 8


def test_many_small_groups_say_together_what_none_says_alone() -> None:
    groups = cal.assess_by(cal.Sketches(_groups(300, 60, 0.024, 0.0, 1), by="site"))
    assert len(groups.miscalibrated) == 0
    assert groups.random_effects.p_value < 0.001
    assert groups.random_effects.heterogeneity_p_value > 0.05
    assert groups.random_effects.mean.low < 0.024 < groups.random_effects.mean.high
    held = [one.low <= 0.024 <= one.high for one in groups.random_effects.groups.values()]
    assert np.mean(held) >= 0.9
    assert len(groups.sentences) > 1
    document = json.loads(json.dumps(groups.to_dict(), allow_nan=False))
    assert document["random_effects"]["p_value"] == groups.random_effects.p_value
    assert document["random_effects"]["groups"][7]["group"] == "7"
    assert pickle.loads(pickle.dumps(groups.random_effects)) == groups.random_effects


def test_groups_that_err_in_opposite_ways_differ() -> None:
    pooled = random_effects(_groups(60, 100, 0.0, 0.06, 2))
    assert pooled.p_value < 0.01
    assert pooled.heterogeneity_p_value < 0.01
    assert pooled.mean.low < 0.0 < pooled.mean.high
    assert 0.03 < pooled.tau < 0.1


def test_a_group_is_drawn_the_more_the_fewer_rows_it_has() -> None:
    sketches = {
        "large": Sketch.from_counts([0.5], [4000], [2400]),
        "small": Sketch.from_counts([0.5], [20], [12]),
        "other": Sketch.from_counts([0.5], [4000], [1900]),
        "last": Sketch.from_counts([0.5], [4000], [2100]),
    }
    pooled = random_effects(sketches)
    drawn = [abs(pooled.groups[key].value - -0.1) for key in ("large", "small")]
    assert drawn[0] < 0.01 < drawn[1]


@pytest.mark.parametrize("k", [1, 7])
def test_weights_of_one_size_change_nothing(k: int) -> None:
    rng = np.random.default_rng(0)
    plain, weighted = {}, {}
    for key in range(5):
        p = rng.random(80)
        y = rng.random(80) < p
        plain[key] = Sketch.from_arrays(y, p)
        weighted[key] = Sketch.from_arrays(y, p, sample_weight=np.full(80, float(k)))
    one, other = random_effects(plain), random_effects(weighted)
    assert other.p_value == pytest.approx(one.p_value, rel=0.5)
    assert other.mean.value == pytest.approx(one.mean.value, abs=0.005)


def test_shrunken_errors_of_groups_hold_the_truth() -> None:
    """Over 400 samples the mean is .938: REML's estimate of tau is taken as known but for the mean."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        errors = 0.05 * rng.standard_normal(20)
        groups = {}
        for key, error in enumerate(errors):
            p = rng.uniform(0.3, 0.7, 200)
            groups[key] = Sketch.from_arrays(rng.random(200) < p - error, p, nodes=1 << 10)
        found = random_effects(groups).groups.values()
        held += [one.low <= error <= one.high for one, error in zip(found, errors, strict=True)]
    assert np.mean(held) >= 0.9


def test_a_new_group_lies_in_the_prediction_interval() -> None:
    """Higgins, Thompson and Spiegelhalter's interval, of 20 groups that differ."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        *errors, new = 0.02 + 0.05 * rng.standard_normal(21)
        groups = {}
        for key, error in enumerate(errors):
            p = rng.uniform(0.3, 0.7, 200)
            groups[key] = Sketch.from_arrays(rng.random(200) < p - error, p, nodes=1 << 10)
        model = random_effects(groups)
        assert model.new_group.low < model.mean.low < model.mean.high < model.new_group.high
        held.append(model.new_group.low <= new <= model.new_group.high)
    assert np.mean(held) >= 0.85  # of 400 samples, .915


def test_estimates_are_those_of_the_restricted_likelihood() -> None:
    """Groups of equal variance: REML's τ² is the sample variance less s², and the mean is the mean."""
    events = [30, 45, 50, 62, 70]
    groups = {k: Sketch.from_counts([0.5], [100], [e], nodes=1024) for k, e in enumerate(events)}
    model = random_effects(groups)
    errors = 0.5 - np.array(events) / 100
    assert model.mean.value == pytest.approx(errors.mean(), abs=1e-9)
    assert model.tau**2 == pytest.approx(errors.var(ddof=1) - 0.0025, abs=1e-6)
    q = ((errors - errors.mean()) ** 2).sum() / 0.0025
    assert model.i2 == pytest.approx(1 - 4 / q)
    half = 2.7764451 * errors.std(ddof=1) / np.sqrt(5)
    assert model.mean.high - model.mean.value == pytest.approx(half, rel=1e-6)


def test_the_frame_has_mean_spread_and_a_new_group_with_intervals() -> None:
    model = random_effects(_groups(20, 200, 0.05, 0.1, 0))
    (row,) = model.to_frame("pandas").to_dict("records")
    assert (row["mean"], row["mean_low"], row["mean_high"]) == tuple(vars(model.mean).values())
    assert row["tau"] == model.tau > 0
    assert (row["new_group"], row["new_group_low"]) == (model.new_group.value, model.new_group.low)
    assert row["p_value"] == model.p_value
