"""Quantile and distribution forecasts: against published definitions, and the size of their tests."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from tests.refusals import refused

from calibrant.outcomes import distributions, quantiles

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def normal_forecasts():
    rng = np.random.RandomState(0)
    mean = rng.randn(1000)
    return mean + rng.randn(1000), mean


def test_equals_uncertainty_toolbox():
    """MACE, RMSCE, miscalibration area and CRPS of uncertainty-toolbox 0.1.1, sd 0.7."""
    y, mean = normal_forecasts()
    found = distributions.assess(y, mean=mean, sd=0.7)
    values = (found.mace, found.rmsce, found.miscalibration_area, found.crps, found.pit.var())
    assert values == pytest.approx((0.096070, 0.109836, 0.0970404, 0.559502, 0.113853), abs=5e-7)
    assert found.verdict == "miscalibrated: p < 0.001; distributions are too narrow"
    assert found.parts.value == pytest.approx(found.crps, rel=0.01)


def test_a_cdf_is_as_good_as_its_parameters_and_samples_come_close():
    y, mean = normal_forecasts()
    exact = distributions.assess(y, mean=mean, sd=1.0)
    by_cdf = distributions.assess(y, cdf=lambda x: norm.cdf(x, mean))
    assert by_cdf.crps == pytest.approx(exact.crps, abs=1e-9)
    samples = mean[:, None] + np.random.default_rng(1).normal(size=(1000, 300))
    drawn = distributions.assess(y, samples=samples)
    assert drawn.crps == pytest.approx(exact.crps, rel=0.01)
    assert drawn.p_value > 0.01
    assert exact.p_value > 0.01


def test_samples_with_ties_have_a_uniform_pit():
    rng = np.random.default_rng(0)
    y, samples = rng.poisson(1.0, 4000), rng.poisson(1.0, (4000, 19))
    assert not distributions.assess(y, samples=samples).miscalibrated


@pytest.mark.parametrize("n", [100, 1000])
def test_sizes(n):
    rng = np.random.default_rng(0)
    rejected = np.zeros(2)
    for _ in range(200):
        y = rng.normal(size=n)
        forecasts = {level: np.full(n, norm.ppf(level)) for level in LEVELS}
        rejected[0] += quantiles.assess(y, forecasts).miscalibrated
        rejected[1] += distributions.assess(y, mean=0.0, sd=1.0).miscalibrated
    assert np.all(rejected <= 20)  # P(Binomial(200, .05) > 20) = .001


def least_loss_by_brute_force(y, level):
    """Dynamic programme over fitted values that are outcomes, forecasts in the order given."""
    values = np.unique(y)
    cost = np.zeros(values.size)
    for one in y:
        cost = np.minimum.accumulate(cost)
        cost = cost + (np.where(one <= values, 1.0, 0.0) - level) * (values - one)
    return cost.min() / y.size


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from([0.1, 0.37, 0.5, 0.9]))
def test_isotonic_quantiles_have_the_least_pinball_loss(outcomes, level):
    y = np.array(outcomes, dtype=float)
    forecast = np.arange(y.size, dtype=float)
    fitted = quantiles.isotonic_quantile(y, forecast, level)
    assert np.all(np.diff(fitted) >= 0)
    loss = quantiles.decompose(y, fitted, level).value
    assert loss == pytest.approx(least_loss_by_brute_force(y, level), abs=1e-12)


def test_parts_equal_model_diagnostics():
    """`decompose` of model-diagnostics 1.5 with PinballLoss on the same numbers."""
    y = np.array([0.1, -0.4, 1.3, 0.9, 2.2, -1.0, 0.3, 1.8])
    q = np.array([0.0, 0.0, 0.5, 0.7, 0.7, -0.5, 1.0, 1.2])
    loss = quantiles.decompose(y, q, 0.3)
    assert loss.value == pytest.approx(
        loss.miscalibration - loss.discrimination + loss.uncertainty, abs=1e-15
    )
    assert (
        loss.value,
        loss.miscalibration,
        loss.discrimination,
        loss.uncertainty,
    ) == pytest.approx(EXPECTED, abs=1e-9)


EXPECTED = (0.26, 0.125, 0.23, 0.365)


def test_results_are_plain_data():
    y, mean = normal_forecasts()
    found = quantiles.assess(y, {level: mean + norm.ppf(level) for level in LEVELS})
    assert json.loads(json.dumps(found.to_dict()))["p_value"] == found.p_value
    assert found.to_frame()["level"].tolist() == list(LEVELS)
    assert json.dumps(distributions.assess(y, mean=mean, sd=1.0).to_dict())


def test_recalibrated_distributions_are_calibrated():
    rng = np.random.default_rng(0)
    pit, fresh = norm.cdf(rng.normal(size=(2, 5000)) / 0.7)
    recalibrate = distributions.PITRecalibrator().fit(pit)
    after = recalibrate.transform(fresh)
    assert 12 * after.var() == pytest.approx(1, abs=0.05)
    assert 12 * fresh.var() > 1.3


def test_bad_input():
    y = np.zeros(3)
    with refused("forecasts", row=1, holds="np.sort"):
        quantiles.assess(y, {0.1: [0, 1, 0], 0.9: [0, 0, 0]})
    with refused("forecasts"):
        quantiles.assess(y, {10: [0, 1, 0]})
    with refused("forecasts", row=2):
        quantiles.assess(y, {0.5: [0, 1, np.nan]})
    with refused("sd", row=1):
        distributions.assess(y, mean=y, sd=[1, 0, 1])
    with refused():
        distributions.assess(y, mean=y, sd=y + 1, samples=np.zeros((3, 2)))
    with refused("cdf"):
        distributions.assess(y, cdf=lambda x: x + 2)
    with refused(holds="finite"):
        distributions.assess(
            y, cdf=lambda x: np.where(x < 0, 0.0, 1 - (1 + np.maximum(x, 0)) ** -0.2)
        )
