"""Laws of the test of calibration and of its interval."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantWarning
from calibrant.inference.calibration_test import CalibrationTest

LEVELS = (0.01, 0.05, 0.2)
KINDS = ("rows", "weights", "clusters", "soft", "logit")


def _sample(kind: str, seed: int, n: int = 200, slope: float = 1.0) -> dict:
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    y = rng.random(n) < 0.5 + slope * (p - 0.5)
    more = {
        "rows": {},
        "weights": {"sample_weight": np.exp(0.5 * rng.standard_normal(n))},
        "clusters": {"cluster": rng.integers(0, n // 3, n)},
        "soft": {"labels": "soft"},
        "logit": {"scale": "logit"},
    }[kind]
    if kind == "soft":
        y = np.clip(0.8 * y + 0.2 * p, 0, 1)
    return {"y_true": y, "y_prob": p, **more}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(0, 10**6),
    st.integers(12, 400),
    st.sampled_from([1.0, 0.9, 0.6]),
    st.sampled_from(LEVELS),
)
def test_p_is_at_most_the_level_exactly_where_the_interval_leaves_0(kind, seed, n, slope, level):
    found = cal.assess(**_sample(kind, seed, n, slope), confidence=1.0 - level)
    assert (found.p_value <= level + 1e-12) == (found.interval.low > 0.0) == found.miscalibrated
    assert 0.0 <= found.interval.low <= found.smooth_ece <= found.interval.high <= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_depends_on_the_order_of_the_rows(kind: str) -> None:
    sample = _sample(kind, 1, slope=0.7)
    order = np.random.default_rng(2).permutation(200)
    shuffled = {k: v[order] if isinstance(v, np.ndarray) else v for k, v in sample.items()}
    one, other = cal.assess(**sample), cal.assess(**shuffled)
    for value in (lambda a: a.p_value, lambda a: a.noise_floor.value, lambda a: a.interval.high):
        assert value(other) == pytest.approx(value(one), rel=1e-6)
    assert other.interval.low == pytest.approx(one.interval.low, rel=1e-6, abs=1e-12)


def test_merged_sketches_give_what_the_rows_give() -> None:
    rows = _sample("rows", 3, 1_000, 0.8)
    whole = cal.assess(**rows)
    y, p = rows["y_true"], rows["y_prob"]
    merged = Sketch.from_arrays(y[:300], p[:300]) + Sketch.from_arrays(y[300:], p[300:])
    found = cal.assess(merged)
    assert found.p_value == whole.p_value
    assert found.interval == whole.interval


def test_only_the_ratio_of_weights_matters() -> None:
    sample = _sample("weights", 4, slope=0.7)
    scaled = sample | {"sample_weight": 1e3 * sample["sample_weight"]}
    one, other = cal.assess(**sample), cal.assess(**scaled)
    assert other.p_value == pytest.approx(one.p_value, rel=1e-9)
    assert other.interval.high == pytest.approx(one.interval.high, rel=1e-6)
    rows = _sample("rows", 4)
    equal = cal.assess(**rows, sample_weight=np.full(200, 0.1))
    assert equal.p_value == cal.assess(**rows).p_value


@pytest.mark.filterwarnings("ignore::calibrant.inference.dependence.DependenceWarning")
def test_frequency_weights_are_repeated_rows() -> None:
    rows, times = _sample("rows", 5, slope=0.7), np.random.default_rng(5).integers(0, 4, 200)
    repeated = cal.assess(
        Sketch.from_arrays(*(np.repeat(rows[name], times) for name in ("y_true", "y_prob")))
    )
    found = cal.assess(**rows, sample_weight=times, weight_type="frequency")
    assert found.p_value == repeated.p_value
    assert found.interval.low == pytest.approx(repeated.interval.low, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "largest"), [("rows", 0.06), ("weights", 0.065), ("clusters", 0.065), ("soft", 0.06)]
)
def test_calibrated_predictions_are_seldom_rejected(kind: str, largest: float) -> None:
    rejected = covered = 0
    for seed in range(200):
        found = cal.assess(**_sample(kind, 100 + seed, 300))
        rejected += found.p_value <= 0.05
        covered += found.interval.low == 0.0
    assert rejected <= binom.ppf(0.999, 200, largest)
    assert covered == 200 - rejected


def test_the_interval_holds_the_error_of_the_population() -> None:
    rng, held, found = np.random.default_rng(0), 0, 0
    p = rng.random(200_000)
    truth = cal.smooth_ece(0.5 + 0.8 * (p - 0.5), p, labels="soft")
    for _ in range(150):
        p = rng.random(1_000)
        one = cal.assess(rng.random(1_000) < 0.5 + 0.8 * (p - 0.5), p)
        held += truth in one.interval
        found += one.miscalibrated
    assert held >= binom.ppf(0.001, 150, 0.94)
    assert found >= 120


def test_an_error_beyond_one_half_has_a_lower_end_near_it() -> None:
    prediction = np.random.default_rng(0).beta(50, 1, 2000)
    found = cal.assess(np.zeros(2000), prediction)
    assert 0.97 < found.interval.low <= found.smooth_ece <= found.interval.high


def test_a_tiny_p_value_needs_no_draws() -> None:
    p = np.linspace(0.0005, 0.9995, 1_000)
    assert CalibrationTest.of(Sketch.from_arrays(p > 0.5, p)).p_value < 1e-15
    few = CalibrationTest.of(Sketch.from_counts([0.001], [1_000], [8]))  # Poisson: 1e-6
    assert 1e-7 < few.p_value <= 1e-3


def test_a_failure_refutes_certain_predictions() -> None:
    found = cal.assess([0] + [1] * 99, [1.0] * 100)
    assert 0.0 < found.p_value < 1e-300  # never 0, which no sample can show
    assert 0.0 < found.interval.low < 0.01 < found.interval.high


def test_few_independent_units_are_pointed_out() -> None:
    rows = _sample("rows", 6, 100)
    heavy = np.ones(100)
    heavy[0] = 99.0
    with pytest.warns(CalibrantWarning, match="effective number of rows"):
        found = cal.assess(**rows, sample_weight=heavy)
    assert not found.miscalibrated
    assert found.finding == "too few rows"
    with pytest.warns(CalibrantWarning, match="effective number of clusters"):
        cal.assess(**rows, cluster=np.arange(100) // 10)
    models = {"a": rows["y_prob"], "b": np.sqrt(rows["y_prob"])}
    with pytest.warns(CalibrantWarning, match="effective number of clusters"):
        cal.compare(rows["y_true"], models, cluster=np.arange(100) // 10)
    with pytest.warns(CalibrantWarning, match="effective number of rows with weights of group 0"):
        cal.assess_by(**rows, by=np.arange(100) % 2, sample_weight=heavy)


@pytest.mark.parametrize("kind", ["clusters", "soft"])
def test_no_event_where_few_are_expected_is_no_evidence(kind: str) -> None:
    p = np.linspace(0.01, 0.03, 80)
    more = {"labels": "soft"} if kind == "soft" else {"cluster": np.arange(80)}
    found = cal.assess(np.full(80, 1e-4 if kind == "soft" else 0.0), p, **more)
    assert found.p_value > 0.05
    assert found.interval.low == 0.0


def test_one_outcome_alone_is_no_verdict() -> None:
    assert cal.assess([0] * 20, [0.1] * 20).finding == "too few rows"
    assert cal.assess([1] * 3, [0.9] * 3).finding == "too few rows"


def test_the_result_is_a_row_of_a_frame() -> None:
    found = cal.assess(**_sample("rows", 7))
    frame = found.to_frame("polars")
    assert frame.shape[0] == 1
    assert frame["smooth_ece"][0] == found.smooth_ece
    assert frame["finding"][0] == found.finding


def test_a_large_error_of_few_rows_has_a_p_value_below_that_of_the_draws() -> None:
    p = np.linspace(0.05, 0.95, 400)
    events = np.cumsum(p - 0.7 * p * (1 - p))
    found = cal.assess(np.diff(np.floor(events), prepend=0.0), p)
    alone = 2.0 * norm.sf(found.direction.bias * 400 / np.sqrt((p * (1 - p)).sum()))
    assert 0.1 < found.smooth_ece < 0.14
    assert alone < found.p_value < 1e-4


def test_soft_outcomes_that_vary_little_show_small_errors() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 1_000)
    y = p + rng.uniform(-0.05, 0.05, 1_000)
    assert cal.assess(y, p, labels="soft").p_value > 0.05
    assert cal.assess(y + 0.01, p, labels="soft").p_value < 1e-4


def test_a_noise_floor_is_no_larger_than_an_error_can_be() -> None:
    with pytest.warns(CalibrantWarning, match="effective number"):
        found = cal.assess([0, 1, 1], [0.3, 0.4, 0.6], sample_weight=[1.0, 1e-9, 1e-9])
    assert 0.0 < found.noise_floor.value <= 1.0


@pytest.mark.parametrize("failures", [3, 10, 40])
def test_the_interval_of_certain_predictions_is_as_wide_as_wilsons(failures: int) -> None:
    found = cal.assess(np.arange(1_000) >= failures, np.ones(1_000))
    wilson = binomtest(failures, 1_000).proportion_ci(0.95, method="wilson")
    assert found.interval.low == pytest.approx(wilson.low, rel=0.25)
    assert found.interval.high == pytest.approx(wilson.high, rel=0.05)


def test_an_assessment_of_rows_has_the_same_bits_on_any_number_of_threads() -> None:
    code = """if True:
        import numpy as np, calibrant as cal
        rng = np.random.default_rng(0)
        p = rng.random(3000)
        print(cal.assess(rng.random(3000) < p**1.1, p).to_dict())
    """
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "4")
    }
    assert len(found) == 1
