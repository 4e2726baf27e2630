"""One sample, one object: its numbers agree with one another and with what made them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from tests.refusals import refused

import calibrant as cal
from calibrant.data.rows import as_rows
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import assess
from calibrant.inference.dependence import warn_of_repeated_rows
from calibrant.inference.scores import ProperScores


def _rows(n: int, slope: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int), p


def test_parts_agree() -> None:
    y, p = _rows(3000, 0.7)
    found = assess(y, p)
    assert found.smooth_ece == pytest.approx(cal.smooth_ece(y, p), abs=1e-6)
    assert found.mean_prediction == pytest.approx(p.mean(), abs=1e-6)
    assert found.event_rate == pytest.approx(y.mean())
    assert found.observed_expected.value == pytest.approx(y.mean() / p.mean(), rel=1e-4)
    assert (
        found.observed_expected.low < found.observed_expected.value < found.observed_expected.high
    )
    assert found.brier.value == pytest.approx(np.mean((p - y) ** 2), abs=1e-6)
    assert found.log_loss.value == pytest.approx(
        -np.mean(np.where(y == 1, np.log(p), np.log(1 - p))), abs=1e-4
    )
    for score in (found.brier, found.log_loss):
        assert score.value == pytest.approx(score.calibration + score.refinement)
        assert score.calibration > 0
    assert 0 < found.interval.low < found.smooth_ece < found.interval.high
    assert found.relative == pytest.approx(found.smooth_ece / y.mean())


def test_predictions_that_rank_weighted_outcomes_perfectly_have_an_area_of_one_at_most() -> None:
    rng = np.random.default_rng(0)
    p = np.linspace(0.05, 0.95, 30)
    areas = [
        assess(p > 0.5, p, sample_weight=rng.lognormal(0.0, 1.0, 30)).direction.auc
        for _ in range(20)
    ]
    assert max(areas) <= 1.0
    assert areas == pytest.approx(np.ones(20))


def test_a_sketch_gives_the_same_as_its_rows() -> None:
    y, p = _rows(3000, 0.7)
    rows, sketched = assess(y, p), assess(Sketch.from_arrays(y, p))
    # Positions are known to 2**-36 only.
    assert sketched.log_loss.value == pytest.approx(rows.log_loss.value, rel=1e-5)
    assert (sketched, sketched.brier) == (rows, rows.brier)


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (lambda p: 0.5 + 0.5 * (p - 0.5), "overconfident"),
        (lambda p: np.clip(0.5 + 1.8 * (p - 0.5), 0, 1), "underconfident"),
        (lambda p: p**2, "predictions are too high"),
        (lambda p: np.sqrt(p), "predictions are too low"),
        (lambda p: p, "no clear direction"),
    ],
)
def test_direction(truth, words: str) -> None:
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    found = assess((rng.random(5000) < truth(p)).astype(int), p)
    assert words in str(found.direction)
    if words == "predictions are too high":
        (region,) = found.direction.regions
        assert (region.low, region.high) == pytest.approx((p.min(), p.max()), abs=0.01)
        assert region.gap == pytest.approx(1 / 6, abs=0.03)


@pytest.mark.parametrize(
    ("low", "high", "rate", "said"),
    [
        (0.7, 0.7, 0.5, "of 0.70 are too high by"),
        (0.0, 0.05, 0.2, "from 0.00 to 0.05 are too low by"),
        (0.996, 0.999, 0.9, "from 0.9960 to 0.9990 are too high by"),
        (0.0002, 0.0002, 0.01, "of 0.00020 are too low by"),
        (1.0, 1.0, 0.5, "of 1.00 are too high by"),
        (0.0, 0.0, 0.5, "of 0.00 are too low by"),
    ],
)
def test_regions_are_ranges_of_predictions(low: float, high: float, rate: float, said: str) -> None:
    p = np.linspace(low, high, 2000)
    y = np.arange(2000) * 0.618034 % 1 < rate
    (region,) = assess(y, p).direction.regions
    assert p.min() - 1e-9 <= region.low <= region.high <= p.max() + 1e-9
    assert str(region).startswith(f"predictions {said}")


def test_regions_leave_out_what_lies_between_rows() -> None:
    p = np.repeat([0.1, 0.2, 0.8, 0.9], 1000)
    y = np.arange(4000) * 0.618034 % 1 < np.where(p < 0.5, p + 0.1, p - 0.1)
    found = {(round(r.low, 9), round(r.high, 9)) for r in assess(y, p).direction.regions}
    assert found == {(0.1, 0.2), (0.8, 0.9)}


def test_rare_events_ten_times_too_high_are_noticed() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 24.5, 20_000)
    found = assess((rng.random(20_000) < p / 10).astype(int), p)
    assert found.smooth_ece < 0.03
    assert found.relative > 5
    assert found.observed_expected.high < 0.2
    assert found.miscalibrated


def test_margin_decides() -> None:
    y, p = _rows(20_000, 0.7)
    assert assess(y, p, margin=0.2).decision == "within"
    assert assess(y, p, margin=0.01).decision == "beyond"
    held = assess(y, p).interval
    middle = 0.5 * (held.low + held.high)
    assert assess(y, p, margin=middle).decision == "inconclusive"
    assert assess(y, p).decision is None
    assert assess(y, p, margin=0.2).verdict.startswith("within the margin")


@pytest.mark.parametrize("invalid", [np.nan, 1.5, "unsure"])
def test_dropped_rows_are_counted_and_clusters_stay_aligned(invalid: object) -> None:
    y, p = _rows(600, 0.6)
    cluster = np.repeat(np.arange(200), 3)
    kept = np.delete(np.arange(600), [0, 100])
    holes = [invalid if row in (0, 100) else value for row, value in enumerate(p)]
    found = assess(y, holes, cluster=cluster, on_invalid="drop")
    assert sum(found.dropped.values()) == 2
    assert found.interval == assess(y[kept], p[kept], cluster=cluster[kept]).interval
    pairs = as_rows(y, holes, on_invalid="drop")
    assert assess(pairs, cluster=cluster).interval == found.interval
    again = as_rows(pairs.select(np.arange(598)), on_invalid="drop")
    assert again.kept is not None
    assert again.kept.tolist() == kept.tolist()


def test_clusters_of_classes_stay_aligned_with_the_rows_that_are_kept() -> None:
    rng = np.random.default_rng(0)
    probs, y = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    cluster, weight = rng.integers(0, 40, 300), rng.random(300)
    kept = np.delete(np.arange(300), [3, 7, 50])
    holes, weights = probs.copy(), weight.copy()
    holes[[3, 7]], weights[50] = np.nan, -1.0
    found = assess(
        cal.confidence(y, holes, sample_weight=weights, on_invalid="drop"), cluster=cluster
    )
    of_kept = cal.confidence(y[kept], probs[kept], sample_weight=weight[kept])
    assert found.interval == assess(of_kept, cluster=cluster[kept]).interval
    with refused("cluster", 297, holds="300"):
        assess(cal.confidence(y, holes, on_invalid="drop"), cluster=cluster[kept])


def test_weights_widen_the_interval() -> None:
    y, p = _rows(2000, 0.7)
    plain = assess(y, p)
    even = assess(y, p, sample_weight=np.full(2000, 3.0))
    uneven = assess(y, p, sample_weight=np.random.default_rng(1).pareto(1.5, 2000))
    assert even.interval.low == pytest.approx(plain.interval.low, rel=1e-6)
    assert even.interval.high == pytest.approx(plain.interval.high, rel=1e-6)
    assert uneven.interval.width > 1.5 * plain.interval.width
    assert uneven.noise_floor.value > plain.noise_floor.value


def test_small_samples_give_wide_intervals() -> None:
    found = assess([0, 1], [0.4, 0.6])
    assert found.interval.low == 0.0
    assert found.interval.width > 0.5
    only_events = assess(np.ones(20, int), np.full(20, 0.9))
    assert np.isnan(only_events.brier.skill)


@pytest.mark.parametrize(("rate", "n"), [(0.01, 20), (0.004, 400)])
def test_the_lower_end_of_certain_predictions_is_honest(rate: float, n: int) -> None:
    above = 0.0
    for events in range(12):
        sketch = Sketch.from_counts([1.0], [n], [events])
        low = assess(sketch).interval.low
        above += float(binom.pmf(events, n, rate)) * (low > 1 - rate)
    assert above <= 0.05


def test_where_no_event_was_seen_nothing_is_claimed() -> None:
    found = assess([0] * 1000, [0.001] * 1000)
    assert found.interval.low == 0.0
    assert str(found.direction) == "no clear direction"


def test_scores_of_a_table() -> None:
    scores = ProperScores(Sketch.from_counts([0.2, 0.8], [10, 10], [5, 5]))
    assert scores.brier.refinement == pytest.approx(0.25)
    assert scores.brier.calibration == pytest.approx(0.09)
    assert scores.log_loss.refinement == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("options", "argument", "seen"),
    [
        ({"confidence": 0.99999}, "confidence", 0.99999),
        ({"confidence": 95}, "confidence", 95),
        ({"margin": -1}, "margin", -1),
        ({"margin": 5}, "margin", 5),
        ({"weight_type": "replication"}, "weight_type", "replication"),
        ({"sample_weight": [0.5] * 10, "weight_type": "frequency"}, "sample_weight", 0.5),
        ({"cluster": [1, 2, 3]}, "cluster", 3),
        ({"cluster": ["a"] * 10}, "cluster", "'a'"),
        ({"cluster": np.array(["2020-01-01"] * 10, "datetime64[D]")}, "cluster", "2020-01-01"),
        ({"cluster": [1, 2] * 5, "sample_weight": [1, 0] * 5}, "cluster", "1"),
    ],
)
def test_bad_input(options: dict, argument: str, seen: object) -> None:
    with pytest.raises(InputError) as error:
        assess([0, 1] * 5, [0.3] * 10, **options)
    assert error.value.argument == argument
    assert str(seen) in str(error.value)


@pytest.mark.parametrize(
    "cluster", [[None] + ["a"] * 9, np.array(["NaT"] * 10, "datetime64[D]")], ids=["None", "NaT"]
)
def test_clusters_must_be_known(cluster: object) -> None:
    with refused("cluster", row=0):
        assess([0, 1] * 5, [0.3] * 10, cluster=cluster)


def test_too_few_rows_and_clusters_of_a_sketch() -> None:
    with refused(holds="there is 1", kind=TooFewRows):
        assess([1], [0.4])
    with refused("cluster"):
        assess(Sketch.from_arrays([0, 1], [0.2, 0.7]), cluster=[1, 2])
    with refused("y_prob"):
        assess([0, 1])


@pytest.mark.parametrize(
    "given",
    [
        {"scale": "logit"},
        {"percent": True},
        {"sample_weight": [1, 2]},
        {"y_prob": [0.1, 0.2]},
        {"cluster": None},
        {"cluster": "match"},
        {"weight_type": "frequency"},
    ],
)
def test_what_sketches_have_settled_is_refused(given: dict) -> None:
    y, p = _rows(60)
    days = {day: Sketch.from_arrays(y[day::3], p[day::3]) for day in range(3)}
    with refused(next(iter(given))):
        assess(cal.Sketches(days, by="day"), **({"cluster": "day"} | given))


@pytest.mark.parametrize("power", [1.0, 3.0, 0.2])
@pytest.mark.parametrize("values", [11, 101, "a tree's"])
def test_forecasts_that_repeat_by_nature_are_not(values: object, power: float) -> None:
    rng = np.random.default_rng(0)
    for n in (60, 2000):
        levels = rng.random(80) if values == "a tree's" else np.linspace(0, 1, values)
        p = rng.choice(levels, n)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_repeated_rows(as_rows(rng.random(n) < p**power, p), stacklevel=2)


@pytest.mark.parametrize(
    ("cluster", "clusters"),
    [
        (np.arange("2020-01-01", "2020-01-06", dtype="datetime64[D]").repeat(4), 5),
        (pl.Series(np.arange("2020-01-01", "2020-01-06", dtype="datetime64[D]").repeat(4)), 5),
        ([pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")] * 10, 2),
        (pd.Series(pd.date_range("2020-01-01", periods=20, tz="UTC")), 20),
        ([1, "1", "a", 2.5] * 5, 4),
    ],
)
def test_clusters_of_any_kind(cluster: object, clusters: int) -> None:
    y, p = _rows(20)
    assert assess(y, p, cluster=cluster).clusters == clusters


def test_clusters_without_weight_do_not_count() -> None:
    y, p = _rows(300)
    cluster, weight = np.arange(300) // 30, (np.arange(300) >= 90) * 1.0
    kept = weight > 0
    found = assess(y, p, cluster=cluster, sample_weight=weight)
    alone = assess(y[kept], p[kept], cluster=cluster[kept])
    assert found.clusters == alone.clusters == 7
    assert found.interval.high == pytest.approx(alone.interval.high, abs=1e-9)


def test_what_is_not_finite_is_null_in_json_and_words_in_the_table() -> None:
    none_expected = assess([1, 0, 1], [0.0, 0.0, 0.0], margin=np.float32(0.1))
    only_events = assess(np.ones(7, int), np.linspace(0.1, 0.9, 7))
    no_event = assess(np.zeros(7, int), np.linspace(0.1, 0.9, 7))
    for found in (none_expected, only_events, no_event):
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert "nan" not in str(found).split("\n", 2)[2]
    assert plain["relative"] is None
    assert none_expected.to_dict()["observed_expected"]["value"] is None
    assert "events seen, none expected" in str(none_expected)
    assert "no event seen" in str(no_event)
    assert np.isnan(only_events.brier.skill)
    assert np.isnan(only_events.log_loss.skill)


def test_clusters_cover_where_rows_do_not() -> None:
    rng = np.random.default_rng(0)
    by_cluster, by_row = 0, 0
    runs, clusters, repeats = 20, 60, 10
    for _ in range(runs):
        level = rng.random(clusters)
        event = (rng.random(clusters) < level).astype(int)
        p = np.clip(
            np.repeat(level, repeats) + 0.02 * rng.standard_normal(clusters * repeats), 0, 1
        )
        y, cluster = np.repeat(event, repeats), np.repeat(np.arange(clusters), repeats)
        by_cluster += 0.0 in assess(y, p, cluster=cluster).interval
        by_row += 0.0 in assess(y, p).interval
    assert by_cluster >= 0.9 * runs
    assert by_row <= 0.5 * runs


def test_observed_over_expected_holds_for_confident_predictions() -> None:
    """One or two surprises are to be: how many came, and of which kind, must not narrow the interval."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(200):
        p = rng.beta(0.1, 0.1, 30)
        found = assess((rng.random(30) < p).astype(int), p).observed_expected
        missed += not found.low <= 1.0 <= found.high
    assert missed <= 18  # 42 where the spread that was seen is taken as it is


def test_a_row_with_nearly_all_weight_says_nothing_of_the_ratio() -> None:
    weight = [1e9] + [1.0] * 299
    found = assess([1, 0, 1] * 100, np.tile([0.3, 0.2, 0.5], 100), sample_weight=weight)
    assert (found.observed_expected.low, found.observed_expected.value) == (
        0.0,
        pytest.approx(1 / 0.3),
    )
