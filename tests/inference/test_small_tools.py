"""A judge corrected by human labels, Riley's sample sizes, bias by feature: against published values."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refused

from calibrant.inference.bias import bias_by
from calibrant.inference.judge import judged_mean, judged_rate
from calibrant.inference.monitor import Monitor
from calibrant.inference.planning import validation_size


def test_sizes_of_riley():
    """Riley et al. 2021, and pmvalsampsize 0.1 (whose slope rests on a simulated sample of its own)."""
    assert validation_size(0.018, se_log_oe=0.051).rows == 20975
    log_odds = np.random.default_rng(0).normal(-5, 2.5, 1_000_000)
    with refused("c_statistic", holds="did you mean 0.8?"):
        validation_size(0.018, c_statistic=0.2)
    found = validation_size(0.018, log_odds=log_odds, c_statistic=0.8, se_log_oe=0.2456)
    assert (found.observed_expected, found.c_statistic) == (905, 4252)
    assert found.slope == pytest.approx(4544, rel=0.01)
    assert (int(found), found.events) == (found.slope, 82)
    rates = {"sensitivity": 0.8, "specificity": 0.8, "threshold": 0.08}
    assert validation_size(0.018, **rates, se_net_benefit=0.051).net_benefit == 24408


def test_the_size_for_net_benefit_gives_its_standard_error():
    rate, sensitivity, specificity, threshold = 0.2, 0.7, 0.8, 0.25
    n = validation_size(
        rate, sensitivity=sensitivity, specificity=specificity, threshold=threshold
    ).net_benefit
    rng = np.random.default_rng(0)
    y = rng.random((4000, n)) < rate
    positive = rng.random(y.shape) < np.where(y, sensitivity, 1 - specificity)
    odds = threshold / (1 - threshold)
    true, false = (y & positive).mean(axis=1), (~y & positive).mean(axis=1)
    standardised = (true - odds * false) / y.mean(axis=1)
    assert standardised.std() == pytest.approx(0.2 / 3.92, rel=0.05)


@pytest.mark.parametrize("q0", [0.7, 0.95])
@pytest.mark.parametrize("q1", [0.7, 0.95])
def test_a_judged_rate_is_covered(q0, q1):
    rng, missed = np.random.default_rng(0), 0
    human = np.arange(100) < 50
    for _ in range(200):
        truth = rng.random(600) < 0.3
        judged = np.where(truth, rng.random(600) < q1, rng.random(600) > q0)
        seen = np.where(human, rng.random(100) < q1, rng.random(100) > q0)
        found = judged_rate(judged, human=human, judged_of_human=seen)
        assert found.low <= found.value <= found.high
        missed += not found.low <= 0.3 <= found.high
    assert missed <= 21  # P(Binomial(200, .06) > 21) = .003


def test_a_prediction_powered_mean_is_covered_and_shorter_than_without_judge():
    rng, missed, widths = np.random.default_rng(0), 0, []
    for _ in range(200):
        truth = rng.gamma(2.0, 1.0, 1000)
        judge = truth + rng.normal(0.5, 0.5, 1000)
        found = judged_mean(judge[60:], human=truth[:60], judged_of_human=judge[:60])
        missed += not found.low <= 2 <= found.high
        widths.append((found.high - found.low) / (3.92 * truth[:60].std() / np.sqrt(60)))
    assert missed <= 21
    assert np.mean(widths) < 0.7


def test_labels_that_are_all_alike_say_nothing_of_their_spread():
    with refused("human"):
        judged_mean([1, 0] * 50, human=[1] * 20, judged_of_human=[1] * 20)
    with refused("judged", holds="has 1"):
        judged_mean([1], human=[1, 0] * 5, judged_of_human=[1, 0] * 5)


def shifted(seed=0, n=6000):
    rng = np.random.default_rng(seed)
    age, site = rng.uniform(20, 80, n), rng.choice(["a", "b", "c"], n)
    p = rng.beta(2, 3, n)
    return age, site, p, rng


def test_bias_is_found_where_it_is():
    age, _, p, rng = shifted()
    y = rng.random(age.size) < np.clip(p + 0.15 * (age > 65), 0, 1)
    found = bias_by(age, y, p, name="age", n_bins=4)
    assert [one.low > 0 for one in found.bins] == [False, False, False, True]
    assert found.p_value < 1e-6
    assert sum(one.rows for one in found.bins) == age.size
    total = sum(one.rows * one.bias for one in found.bins) / age.size
    assert total == pytest.approx(float((y - p).mean()), abs=1e-12)
    assert json.loads(json.dumps(found.to_dict()))["bins"][3]["label"] == found.bins[3].label
    assert found.to_frame().shape == (4, 8)


@pytest.mark.parametrize("shape", [(2, 3), (1, 200), (30, 1)])
def test_calibrated_predictions_show_no_bias_too_often(shape):
    """Also of rare events, and of rare others: of a normal law, .15 of the samples with Beta(1, 200)."""
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.beta(*shape, 1000)
        found = bias_by(rng.random(1000), rng.random(1000) < p, p)
        rejected += found.p_value <= 0.05
        assert all((one.p_value <= 0.05) == (one.low > 0 or one.high < 0) for one in found.bins)
    assert rejected <= 20


def test_a_bias_of_nearly_nothing_has_an_interval_like_others():
    """Rates of .3 where .1 and .5 were predicted: the residuals vary more than f (1 - f) says."""
    p, y = np.repeat([0.1, 0.5], 5000), np.tile(np.arange(5000) < 1500, 2)
    y[4990:4993] = True
    (one,) = bias_by(np.zeros(10_000), y, p).bins
    assert one.bias == pytest.approx(0.0003)
    assert (one.bias - one.low, one.high - one.bias) == pytest.approx((0.0098, 0.0098), rel=0.02)


def test_bias_with_weights_that_depend_on_the_outcome():
    """One in ten rows without the event was kept, with weight 10."""
    rejected = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 5, 3000)
        y = rng.random(3000) < p
        kept = y | (rng.random(3000) < 0.1)
        weight = np.where(y, 1.0, 10.0)[kept]
        rejected += bias_by(p[kept] % 0.1, y[kept], p[kept], sample_weight=weight).p_value <= 0.05
    assert rejected <= 12


@pytest.mark.parametrize("feature", [np.arange(1000) / 7, np.arange(1000) % 2])
def test_one_bin_is_one_bin(feature):
    y = np.arange(1000) % 3 == 0
    assert [one.rows for one in bias_by(feature, y, np.full(1000, 0.3), n_bins=1).bins] == [1000]


def test_rows_of_another_index_are_refused():
    y, p = pd.Series([0, 1, 1, 0]), pd.Series([0.2, 0.7, 0.6, 0.4])
    with refused("feature", holds="different indexes"):
        bias_by(y[::-1], y, p)
    for estimate in (judged_rate, judged_mean):
        with refused("judged_of_human", holds="different indexes"):
            estimate([0, 1, 1], human=y, judged_of_human=y[::-1])
    with refused("by", holds="different indexes"):
        Monitor().update(y, p, by=y[::-1])


def test_missing_values_and_rare_categories_have_bins():
    age, _, p, rng = shifted(0, 500)
    y = rng.random(500) < p
    age[:50] = np.nan
    assert bias_by(age, y, p).bins[-1].label == "missing"
    many = np.array([f"c{k}" for k in rng.integers(0, 60, 500)], dtype=object)
    many[0] = None
    labels = [one.label for one in bias_by(many, y, p).bins]
    assert labels[-2:] == ["other", "missing"]
    assert len(labels) == 22
    with refused("feature"):
        bias_by(age[:-1], y, p)
