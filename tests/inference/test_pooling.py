"""All groups together: they say what none of them says alone, and nothing where there is nothing."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.inference.pooling import pool_groups


def _groups(number: int, rows: int, off: float, spread: float, seed: int) -> dict[int, Sketch]:
    rng = np.random.default_rng(seed)
    groups = {}
    for key in range(number):
        p = rng.uniform(0.2, 0.8, rows)
        chance = p - off - spread * rng.choice([-1.0, 1.0])
        groups[key] = Sketch.from_arrays(rng.random(rows) < chance, p, nodes=1 << 12)
    return groups


def test_calibrated_groups_are_seldom_called_off_or_different() -> None:
    pooled = [pool_groups(_groups(20, 40, 0.0, 0.0, seed)) for seed in range(60)]
    assert sum(one.p_value <= 0.05 for one in pooled) <= 8
    assert sum(one.differ_p_value <= 0.05 for one in pooled) <= 8


def test_many_small_groups_say_together_what_none_says_alone() -> None:
    groups = cal.assess_by(cal.Sketches(_groups(300, 60, 0.024, 0.0, 1), by="site"))
    assert len(groups.miscalibrated) == 0
    assert groups.pooling.p_value < 0.001
    assert groups.pooling.differ_p_value > 0.05
    assert groups.pooling.typical.low < 0.024 < groups.pooling.typical.high
    held = [one.low <= 0.024 <= one.high for one in groups.pooling.groups.values()]
    assert np.mean(held) >= 0.9
    assert len(groups.sentences) > 1
    document = json.loads(json.dumps(groups.to_dict(), allow_nan=False))
    assert document["pooling"]["p_value"] == groups.pooling.p_value
    assert pickle.loads(pickle.dumps(groups.pooling)) == groups.pooling


def test_groups_that_err_in_opposite_ways_differ() -> None:
    pooled = pool_groups(_groups(60, 100, 0.0, 0.06, 2))
    assert pooled.p_value < 0.01
    assert pooled.differ_p_value < 0.01
    assert pooled.typical.low < 0.0 < pooled.typical.high
    assert 0.03 < pooled.spread < 0.1


def test_a_group_is_drawn_the_more_the_fewer_rows_it_has() -> None:
    sketches = {
        "large": Sketch.from_counts([0.5], [4000], [2400]),
        "small": Sketch.from_counts([0.5], [20], [12]),
        "other": Sketch.from_counts([0.5], [4000], [1900]),
        "last": Sketch.from_counts([0.5], [4000], [2100]),
    }
    pooled = pool_groups(sketches)
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
    one, other = pool_groups(plain), pool_groups(weighted)
    assert other.p_value == pytest.approx(one.p_value, rel=0.5)
    assert other.typical.value == pytest.approx(one.typical.value, abs=0.005)


def test_one_group_or_certain_predictions_are_not_pooled() -> None:
    alone = Sketch.from_counts([0.5], [10], [4])
    assert pool_groups({"a": alone}) is None
    assert pool_groups({"a": alone, "b": Sketch.from_counts([1.0], [10], [10])}) is None


def test_intervals_of_groups_hold_whatever_the_estimate_of_their_spread_is() -> None:
    """A single estimate of the spread is too small in half of the samples, and then covers .91."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        errors = 0.05 * rng.standard_normal(20)
        groups = {}
        for key, error in enumerate(errors):
            p = rng.uniform(0.3, 0.7, 200)
            groups[key] = Sketch.from_arrays(rng.random(200) < p - error, p, nodes=1 << 10)
        found = pool_groups(groups).groups.values()
        held += [one.low <= error <= one.high for one, error in zip(found, errors, strict=True)]
    assert np.mean(held) >= 0.93


def test_one_event_of_next_to_none_is_no_evidence() -> None:
    groups = {k: Sketch.from_counts([5e-5], [100], [int(k == 0)], nodes=1024) for k in range(20)}
    found = pool_groups(groups)
    assert found is not None
    assert min(found.p_value, found.differ_p_value) > 0.09  # one event in 2,000 rows: 1 - exp(-.1)
