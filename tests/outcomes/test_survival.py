"""Risks at a horizon: against lifelines, Kaplan-Meier and simulated truth."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.data.sketch import as_sketch
from calibrant.errors import CalibrantWarning, TooFewRows
from calibrant.outcomes import survival

ROSSI = np.genfromtxt(
    Path(__file__).parents[2] / "docs" / "data" / "rossi.csv", delimiter=",", names=True
)
"""Recidivism of 432 men (Rossi, Berk & Lenihan 1980), with the risks of lifelines' Cox model."""

ICI = {25: 0.0102525, 40: 0.0024350}
"""`survival_probability_calibration` of lifelines 0.30.3."""


@pytest.mark.parametrize(
    ("weeks", "observed", "expected", "ratio"),
    [(25, 0.1180556, 0.1179475, 1.00092), (40, 0.1967593, 0.1968240, 0.99967)],
)
def test_equals_lifelines_on_rossi(weeks, observed, expected, ratio):
    found = survival.observed_expected("week", "arrest", f"risk{weeks}", horizon=weeks, data=ROSSI)
    assert (found.observed, found.expected) == pytest.approx((observed, expected), abs=5e-8)
    assert found.ratio == pytest.approx(ratio, abs=5e-6)
    assert found.low < 1 < found.high
    assert found.ici == pytest.approx(ICI[weeks], abs=0.0025)  # lifelines smooths by another spline
    rows = survival.at_horizon("week", "arrest", f"risk{weeks}", horizon=weeks, data=ROSSI)
    assert rows.n == 432
    assert cal.assess(rows).event_rate == pytest.approx(observed, abs=5e-8)


def censored(seed, n=800, shift=1.0):
    rng = np.random.default_rng(seed)
    risk = rng.beta(2, 3, n)
    died = rng.exponential(-1 / np.log1p(-risk * shift))
    left = rng.exponential(1.2, n)
    return np.minimum(died, left), (died <= left).astype(int), risk


def kaplan_meier(time, event, horizon):
    survival_, variance = 1.0, 0.0
    for t in np.unique(time[(event == 1) & (time <= horizon)]):
        at_risk, events = np.sum(time >= t), np.sum((time == t) & (event == 1))
        survival_ *= 1 - events / at_risk
        variance += events / (at_risk * (at_risk - events))
    return 1 - survival_, survival_ * np.sqrt(variance)


def test_subjects_whose_outcome_is_not_known_are_counted():
    time, event, risk = censored(0, 500)
    rows = survival.at_horizon(time, event, risk, horizon=1.0)
    gone = int(np.sum((time < 1.0) & (event == 0)))
    assert gone > 100
    assert rows.n + gone == 500
    reason = {"censored before the horizon": gone}
    found = cal.assess(rows)
    assert found.dropped == reason
    assert f"{gone} rows were dropped: {gone} censored before the horizon." in cal.report(rows).html
    # Other columns name every subject, and one that names each alone changes nothing.
    assert cal.assess(rows, cluster=np.arange(500)).clusters == rows.n
    assert survival.at_horizon(time, event | 1, risk, horizon=1.0).dropped == {}


def test_rows_are_compared_and_maps_judged_on_them_as_on_their_parts():
    time, event, risk = censored(0, 500)
    mine, other, later = (
        survival.at_horizon(time, event, each, horizon=end)
        for each, end in ((risk, 1.0), (risk**2, 1.0), (risk, 2.0))
    )
    found = cal.compare({"mine": mine, "other": other})
    parts = {"mine": mine.p, "other": other.p}
    by_parts = cal.compare(mine.y, parts, sample_weight=mine.weight)
    assert found.differences == by_parts.differences
    platt = cal.recalibration.PlattRecalibrator().fit(other.p, other.y, other.weight)
    judged = cal.recalibration.evaluate(platt, mine)
    assert judged == cal.recalibration.evaluate(platt, mine.y, mine.p, sample_weight=mine.weight)
    with refused("y_true", holds="calibrant.compare({name: rows"):
        cal.compare(mine, other)
    with refused(holds="'mine' and 'later' differ"):
        cal.compare({"mine": mine, "later": later})


def test_sketches_of_survival_keep_the_reason_in_files(tmp_path):
    rows = survival.at_horizon(*censored(0, 500), horizon=1.0)
    cal.save(as_sketch(rows), tmp_path / "rows.parquet")
    assert cal.load(tmp_path / "rows.parquet").dropped == rows.dropped


@pytest.mark.parametrize("ties", [False, True])
def test_weights_give_kaplan_meier_and_its_standard_error(ties):
    time, event, risk = censored(0)
    time = np.ceil(time * 20) / 20 if ties else time
    wanted, se = kaplan_meier(time, event, 1.0)
    rows = survival.at_horizon(time, event, risk, horizon=1.0)
    assert np.average(rows.y, weights=rows.weight) == pytest.approx(wanted, abs=1e-12)
    assert rows.weight.sum() == pytest.approx(time.size)
    found = survival.observed_expected(time, event, risk, horizon=1.0)
    half = (found.high - found.low) * found.expected / 2
    assert half == pytest.approx(1.96 * se, rel=0.06)


def aalen_johansen(time, event, cause, horizon):
    survival_, risk = 1.0, 0.0
    for t in np.unique(time[(event > 0) & (time <= horizon)]):
        at_risk, now = np.sum(time >= t), time == t
        risk += survival_ * np.sum(now & (event == cause)) / at_risk
        survival_ *= 1 - np.sum(now & (event > 0)) / at_risk
    return risk


def test_competing_causes_give_aalen_johansen():
    time, event, risk = censored(4)
    time = np.ceil(time * 20) / 20
    cause = np.where((event == 1) & (risk > 0.4), 2, event)
    for one in (1, 2):
        found = survival.observed_expected(time, cause, risk, horizon=1.0, cause=one)
        wanted = aalen_johansen(time, cause, one, 1.0)
        assert found.observed == pytest.approx(wanted, abs=1e-12)
        for text in (str(found.rows()), cal.report(found).markdown):
            assert "Aalen–Johansen" in text
            assert "Kaplan" not in text
    alone = survival.observed_expected(time, event, risk, horizon=1.0)
    assert alone.to_dict()["estimator"] == "Kaplan–Meier"
    assert "observed risk (Kaplan–Meier)" in cal.report(alone).markdown


def test_weights_taken_as_known_make_errors_too_large_never_too_small():
    """Of the mean residual, and of its means over parts of the predictions: see Notes of `at_horizon`."""
    means, errors = [], []
    for seed in range(300):
        time, event, risk = censored(seed, n=400, shift=0.8)
        rows = survival.at_horizon(time, event, risk, horizon=1.0)
        functions = np.array([np.ones(rows.n), 1 - 2 * rows.p, rows.p < 0.3, rows.p > 0.5])
        parts = rows.weight / rows.weight.sum() * (rows.y - rows.p) * functions
        means.append(parts.sum(axis=1))
        errors.append(np.sqrt((parts**2).sum(axis=1)))
    ratio = np.std(means, axis=0) / np.mean(errors, axis=0)
    assert np.all(ratio > 0.7)
    assert np.all(ratio < 1.0)


def test_competing_causes_share_the_risk():
    time, event, risk = censored(1)
    cause = np.where((event == 1) & (np.arange(time.size) % 3 == 0), 2, event)
    parts = [
        survival.observed_expected(time, cause, risk, horizon=1.0, cause=c).observed for c in (1, 2)
    ]
    assert sum(parts) == pytest.approx(kaplan_meier(time, event, 1.0)[0], abs=1e-12)


def test_strata_are_weighted_apart():
    time, event, risk = censored(2)
    stratum = np.repeat(["a", "b"], 400)
    rows = survival.at_horizon(time, event, risk, horizon=0.8, strata=stratum)
    apart = [
        survival.at_horizon(time[s], event[s], risk[s], horizon=0.8).weight
        for s in (slice(400), slice(400, 800))
    ]
    assert rows.weight.tolist() == np.concatenate(apart).tolist()


def test_the_interval_covers_with_half_of_the_subjects_censored():
    missed = 0
    for seed in range(25):
        time, event, risk = censored(seed, shift=0.8)
        rows = survival.at_horizon(time, event, risk, horizon=1.0)
        interval = cal.assess(rows).interval
        missed += (
            not interval.low <= 0.0800 <= interval.high
        )  # SmoothECE of 0.2 Beta(2, 3), at large n
    assert missed <= 3  # of .95 intervals, P(Binomial(25, .05) > 3) = .03; they cover .98


def test_bad_input():
    time, event, risk = censored(3)
    with refused("time", row=0):
        survival.at_horizon(np.append(0.0, time[1:]), event, risk, horizon=1.0)
    with refused("horizon"):
        survival.at_horizon(time, event, risk, horizon=time.max() + 1)
    for wrong in (event - 1, event / 2):
        with refused("event", holds="number of a cause"):
            survival.at_horizon(time, wrong, risk, horizon=1.0)
    with refused("strata", holds="was censored at"):
        survival.at_horizon(time, event, risk, horizon=1.0, strata=np.arange(800))
    with pytest.warns(CalibrantWarning, match="No event of cause 2"):
        none = survival.observed_expected(time, event, risk, horizon=1.0, cause=2)
    assert none.low == none.ratio == 0.0 < none.high < 0.05
    with refused("event", kind=TooFewRows):
        survival.at_horizon(time, event * 0, risk, horizon=1.0)
    with refused("risk", row=2):
        survival.at_horizon(time, event, np.where(np.arange(800) == 2, 1.5, risk), horizon=1.0)
    with refused("risk", row=5):
        survival.at_horizon(time, event, np.where(np.arange(800) == 5, np.nan, risk), horizon=1.0)
    with refused("risk"):
        survival.at_horizon(time, event, risk[:-1], horizon=1.0)
    with pytest.warns(CalibrantWarning, match="weights are above 1.5"):
        survival.at_horizon(time, event, risk, horizon=1.0, max_weight=1.5)
    for name in ("time", "event", "risk"):
        columns = {"time": time, "event": event, "risk": risk, "strata": np.zeros(800)}
        columns = {key: pd.Series(value) for key, value in columns.items()}
        columns[name] = columns[name].sort_values()
        with refused(holds=("have different indexes", ".loc[time.index]")):
            survival.at_horizon(**columns, horizon=1.0)
        with refused("data", holds=("have different indexes", ".loc[data['time'].index]")):
            survival.at_horizon("time", "event", "risk", horizon=1.0, strata="strata", data=columns)
    with pytest.warns(CalibrantWarning, match="No event"):
        two = survival.observed_expected([1, 2], [0, 1], [0.5, 0.2], horizon=1.5)
    assert np.isnan(two.ici)
