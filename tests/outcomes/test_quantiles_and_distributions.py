"""Quantile and distribution forecasts: against published definitions, and the size of their tests."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, poisson
from tests.refusals import refused

import calibrant as cal
from calibrant import plotting
from calibrant.outcomes import distributions, quantiles

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9)


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
    assert vars(by_cdf.parts) == pytest.approx(vars(exact.parts), abs=1e-9)
    samples = mean[:, None] + np.random.default_rng(1).normal(size=(1000, 300))
    drawn = distributions.assess(y, samples=samples)
    assert drawn.crps == pytest.approx(exact.crps, rel=0.01)
    assert drawn.p_value > 0.01
    assert exact.p_value > 0.01


@pytest.mark.parametrize(("center", "sd"), [(1e6, 0.1), (0.0, 1e-6), (1e3, 50.0)])
def test_the_crps_of_a_cdf_has_any_location_and_scale(center, sd):
    y = center + 0.1 * np.random.default_rng(0).normal(size=300)
    exact = distributions.assess(y, mean=center, sd=sd).crps
    by_cdf = distributions.assess(y, cdf=lambda x: norm.cdf((x - center) / sd)).crps
    assert by_cdf == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "cdf",
    [
        lambda x: poisson.cdf(np.floor(x), 2),
        lambda x: np.where(x < 0, 0.0, np.where(x < 1, 0.3, 1.0)),
        lambda x: poisson.cdf(np.floor(x), 40),
    ],
)
def test_one_forecast_for_all_rows_discriminates_nothing(cdf):
    y = np.random.default_rng(0).poisson(2, 500)
    found = distributions.assess(y, cdf=cdf)
    support = np.arange(200.0)
    exact = np.mean([np.sum((cdf(support) - (support >= one)) ** 2) for one in y])
    assert found.crps == pytest.approx(exact, rel=1e-4)
    assert found.parts.discrimination == 0.0
    own = np.mean([np.abs(y - one).mean() for one in y]) / 2  # of the distribution of the outcomes
    assert found.parts.uncertainty == pytest.approx(own, rel=0.01)


def test_samples_with_ties_have_a_uniform_pit():
    rng = np.random.default_rng(0)
    y, samples = rng.poisson(1.0, 4000), rng.poisson(1.0, (4000, 19))
    assert not distributions.assess(y, samples=samples).miscalibrated


def test_a_cdf_with_jumps_has_a_uniform_pit():
    rng = np.random.default_rng(0)
    rate = rng.gamma(3.0, 1.0, 2000)
    y = rng.poisson(rate)
    found = distributions.assess(y, cdf=lambda x: poisson.cdf(np.floor(x), rate))
    assert not found.miscalibrated
    assert 12 * found.pit.var() == pytest.approx(1.0, abs=0.05)


def test_ties_show_the_shares_on_both_sides():
    y = np.random.default_rng(0).poisson(2, 1000)
    found = quantiles.assess(y, {0.5: np.full(1000, 2), 0.9: np.full(1000, 5)})
    one = found.levels[0]
    assert (one.coverage, one.below) == (np.mean(y <= 2), np.mean(y < 2))
    assert one.low < one.below < 0.5 < one.coverage < one.high
    assert f"{one.coverage:.4f} ({one.below:.4f} below)" in str(found)
    assert found.to_dict()["levels"][0]["below"] == one.below
    wrong = found.levels[1]  # of 0.9 the quantile is 4
    assert wrong.deviation == wrong.below - 0.9 > 0
    assert f"at level 0.9, where coverage is {wrong.coverage:.3g} (" in found.verdict
    without = quantiles.assess(y, {0.5: np.full(1000, 1.5)}).levels[0]
    assert without.coverage == without.below == one.below


@pytest.mark.parametrize("n", [100, 400])
def test_sizes(n):
    rng = np.random.default_rng(0)
    rejected = np.zeros(2)
    for _ in range(25):
        y = rng.normal(size=n)
        forecasts = {level: np.full(n, norm.ppf(level)) for level in LEVELS}
        rejected[0] += quantiles.assess(y, forecasts).miscalibrated
        rejected[1] += distributions.assess(y, mean=0.0, sd=1.0).miscalibrated
    assert np.all(rejected <= 5)  # P(Binomial(25, .05) > 5) = .001


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


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.1, (0.4962250297, 0.3526108152, 0.1004178570, 0.2440320715)),
        (0.5, (0.5104519022, 0.0597031977, 0.1434108959, 0.5941596004)),
        (0.83, (0.5221890719, 0.3010662702, 0.1518311344, 0.3729539361)),
    ],
)
def test_parts_equal_model_diagnostics(level, expected):
    """`decompose` of model-diagnostics 1.5.0 with `PinballLoss(level)` on the same numbers."""
    k = np.arange(300)
    q = np.round(2 * np.sin(k * 0.37) + np.cos(k * 1.3), 1)
    y = q * 0.6 + 1.5 * np.sin(k * k * 0.11)
    loss = quantiles.decompose(y, q, level)
    parts = (loss.value, loss.miscalibration, loss.discrimination, loss.uncertainty)
    assert parts == pytest.approx(expected, abs=1e-9)
    assert loss.value == pytest.approx(parts[1] - parts[2] + parts[3], abs=1e-15)


def test_steps_of_a_level_give_its_recalibrated_loss():
    y, mean = normal_forecasts()
    (one,) = quantiles.assess(y, {0.9: 1.5 * mean}).levels
    mapped = np.interp(1.5 * mean, one.forecast, one.recalibrated)
    loss = quantiles.pinball_loss(y, mapped, 0.9)
    assert loss == pytest.approx(one.pinball.value - one.pinball.miscalibration, abs=1e-12)


def test_pictures_and_pages():
    y, mean = normal_forecasts()
    found = quantiles.assess(y, {level: mean + norm.ppf(level) for level in LEVELS})
    dist = distributions.assess(y, mean=mean, sd=0.7)
    all_levels, one = (plotting.quantile_diagram(found, level=level) for level in (None, 0.9))
    assert list(all_levels.columns()["level"]) == list(LEVELS)
    for diagram in (all_levels, one, plotting.pit_diagram(dist)):
        assert diagram.to_svg().startswith("<svg")
        assert json.dumps(diagram.to_dict())
    assert "too narrow" in cal.report(dist).html
    page = cal.report((y > 0) * 1, norm.cdf(mean)).with_outcomes(found, dist)
    assert page.to_dict()["outcomes"][1]["crps"] == dist.crps
    assert "## Quantile forecasts" in page.markdown
    with refused("found"):
        page.with_outcomes(3)
    with refused("level"):
        plotting.quantile_diagram(found, level=0.3)


def test_results_are_plain_data():
    y, mean = normal_forecasts()
    found = quantiles.assess(y, {level: mean + norm.ppf(level) for level in LEVELS})
    assert json.loads(json.dumps(found.to_dict()))["p_value"] == found.p_value
    assert found.to_frame("pandas")["level"].tolist() == list(LEVELS)
    assert json.dumps(distributions.assess(y, mean=mean, sd=1.0).to_dict())


def test_recalibrated_distributions_are_calibrated():
    rng = np.random.default_rng(0)
    pit, fresh = norm.cdf(rng.normal(size=(2, 5000)) / 0.7)
    recalibrate = distributions.PITRecalibrator().fit(pit)
    after = recalibrate.transform(fresh)
    assert 12 * after.var() == pytest.approx(1, abs=0.05)
    assert 12 * fresh.var() > 1.3


def test_recalibration_keeps_atoms():
    recalibrate = distributions.PITRecalibrator().fit(np.r_[np.zeros(90), np.full(10, 0.5)])
    assert recalibrate.transform([0.0, 0.25, 0.5, 1.0]).tolist() == [0.9, 0.9, 1.0, 1.0]
    assert recalibrate.levels([0.5, 0.9, 0.95]).tolist() == [0.0, 0.0, 0.5]


def test_coverage_of_few_samples_is_said_to_be_that_of_the_pit():
    rng = np.random.default_rng(0)
    y, samples = rng.normal(size=4000), rng.normal(size=(4000, 5))
    found = distributions.assess(y, samples=samples)
    assert found.coverage[0.95][0] == pytest.approx(0.95, abs=0.02)
    assert np.mean((samples.min(axis=1) <= y) & (y <= samples.max(axis=1))) < 0.7
    assert "PIT coverage of 95%" in str(found)


def test_columns_of_different_indexes():
    y = pd.Series([3.0, 1.0, 2.0])
    moved = y.sort_values()
    for forms in ({"mean": moved, "sd": 1.0}, {"mean": y, "sd": moved}):
        with refused(holds=("have different indexes", ".loc[y.index]")):
            distributions.assess(y, **forms)
    with refused("samples", holds="have different indexes"):
        distributions.assess(y, samples=pd.DataFrame({"a": moved, "b": moved}, index=moved.index))
    with refused("forecasts", holds="`forecasts[0.5].loc[y.index]`"):
        quantiles.assess(y, {0.5: moved})
    table = {"y": y, "q": moved}
    with refused("data", holds="`data['q'].loc[data['y'].index]`"):
        quantiles.assess("y", {0.5: "q"}, data=table)
    with refused("data", holds="have different indexes"):
        distributions.assess("y", mean="q", sd=1.0, data=table)


def test_bad_input():
    y, recalibrator = np.zeros(3), distributions.PITRecalibrator().fit([0.5])
    with refused("forecasts", row=1, holds="np.sort"):
        quantiles.assess(y, {0.1: [0, 1, 0], 0.9: [0, 0, 0]})
    with refused("forecasts"):
        quantiles.assess(y, {10: [0, 1, 0]})
    with refused("forecasts", row=2):
        quantiles.assess(y, {0.5: [0, 1, np.nan]})
    assert quantiles.assess(y, {np.float32(0.5): [0, 1, 0]}).levels[0].level == 0.5
    with refused(holds="learned nothing"):
        distributions.PITRecalibrator().transform([0.5])
    for call in (distributions.PITRecalibrator().fit, recalibrator.transform):
        with refused("pit", row=0):
            call([2.0])
    with refused("mean", np.inf):
        distributions.assess(y, mean=np.inf, sd=1.0)
    with refused(holds="CRPS of the distributions must be finite"):
        distributions.assess(y, mean=0.0, sd=1e308)
    with refused("samples", row=1):
        distributions.assess(y, samples=[[0, 1], [np.nan, 0], [0, 1]])
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
