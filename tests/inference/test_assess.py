"""One sample, one object: its numbers agree with one another and with what made them."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.inference.assess import assess
from calibrant.inference.clusters import DependenceWarning
from calibrant.inference.hypothesis import honest_lower_bound
from calibrant.inference.scores import brier_score, log_loss
from calibrant.sketch.table import Sketch


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
    assert found.debiased < found.smooth_ece
    assert found.interval.low <= found.debiased <= found.interval.high
    assert found.relative == pytest.approx(found.smooth_ece / y.mean())


def test_a_sketch_gives_the_same_as_its_rows() -> None:
    y, p = _rows(3000, 0.7)
    assert assess(Sketch.from_arrays(y, p)) == assess(y, p)


def test_deterministic_by_seed() -> None:
    y, p = _rows(400)
    assert assess(y, p, seed=4) == assess(y, p, seed=4)
    assert assess(y, p, seed=4).p_value != assess(y, p, seed=5).p_value


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (lambda p: 0.5 + 0.5 * (p - 0.5), "over-confident"),
        (lambda p: np.clip(0.5 + 1.8 * (p - 0.5), 0, 1), "under-confident"),
        (lambda p: p**2, "over-forecasting"),
        (lambda p: np.sqrt(p), "under-forecasting"),
        (lambda p: p, "no clear direction"),
    ],
)
def test_direction(truth, words: str) -> None:
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    found = assess((rng.random(5000) < truth(p)).astype(int), p)
    assert words in str(found.direction)
    if words == "over-forecasting":
        (region,) = found.direction.regions
        assert (region.low, region.high) == (0.0, 1.0)
        assert region.gap == pytest.approx(1 / 6, abs=0.03)


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
    assert assess(y, p, margin=0.0735).decision == "inconclusive"
    assert assess(y, p).decision is None
    assert assess(y, p, margin=0.2).verdict.endswith("within the margin 0.2")


def test_how_it_reads() -> None:
    found = assess(*_rows(2000, 0.7))
    assert found.verdict.startswith("miscalibrated: 0.0")
    assert "p < 0.001" in found.verdict
    assert assess(*_rows(2000)).verdict.startswith("no evidence of miscalibration: 0.0")
    text = str(found)
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 100
    assert "<table>" in found._repr_html_()
    assert "\n" not in repr(found)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["interval"]["low"] == found.interval.low
    assert plain["direction"]["confidence"] == "over-confident"


def test_dropped_rows_are_counted_and_clusters_stay_aligned() -> None:
    y, p = _rows(600, 0.6)
    cluster = np.repeat(np.arange(200), 3)
    holes = p.copy()
    holes[[0, 100]] = np.nan
    found = assess(y, holes, cluster=cluster, on_invalid="drop")
    kept = np.isfinite(holes)
    assert found.dropped == {"missing prediction": 2}
    assert found.interval == assess(y[kept], p[kept], cluster=cluster[kept]).interval


def test_weights_widen_the_interval() -> None:
    y, p = _rows(2000, 0.7)
    plain = assess(y, p)
    even = assess(y, p, sample_weight=np.full(2000, 3.0))
    uneven = assess(y, p, sample_weight=np.random.default_rng(1).pareto(1.5, 2000))
    assert even.interval.low == pytest.approx(plain.interval.low, rel=1e-6)
    assert even.interval.high == pytest.approx(plain.interval.high, rel=1e-6)
    assert uneven.interval.width > 1.5 * plain.interval.width
    assert uneven.noise_floor.value > plain.noise_floor.value


def test_scale_is_kept() -> None:
    y, p = _rows(2000, 0.7)
    found = assess(y, p, scale="logit")
    assert found.scale == "logit"
    assert found.smooth_ece == pytest.approx(cal.smooth_ece(y, p, scale="logit"), rel=0.01)
    assert found.miscalibrated
    assert 0 < found.noise_floor.value < found.smooth_ece


def test_small_samples_give_wide_intervals() -> None:
    found = assess([0, 1], [0.4, 0.6])
    assert found.interval.low == 0.0
    assert found.interval.width > 0.5
    only_events = assess(np.ones(20, int), np.full(20, 0.9))
    assert np.isnan(only_events.brier.skill)


def test_certain_and_wrong() -> None:
    found = assess([0, 1, 1, 1], [1.0, 1.0, 1.0, 1.0])
    assert found.noise_floor.value == 0.0
    assert found.miscalibrated
    assert np.isinf(found.log_loss.value)


def test_honest_lower_bound_is_below_the_truth() -> None:
    truth = cal.smooth_ece(
        0.5 + 0.6 * (np.linspace(0, 1, 1 << 14) - 0.5),
        np.linspace(0, 1, 1 << 14),
        labels="soft",
        tolerance=1e-3,
    )
    lows = []
    for seed in range(100):
        sketch = Sketch.from_arrays(*_rows(500, 0.6, seed), nodes=1 << 12)
        lows.append(honest_lower_bound(sketch, cal.smooth_ece(sketch), seed=seed))
    assert np.mean(np.array(lows) <= truth) >= 0.9
    assert np.mean(lows) > 0.2 * truth
    null = [honest_lower_bound(Sketch.from_arrays(*_rows(500, 1.0, s)), 0.03) for s in range(60)]
    assert np.mean(np.array(null) <= 0.0) >= 0.85


def test_scores_of_a_table() -> None:
    table = Sketch.from_counts([0.2, 0.8], [10, 10], [5, 5])
    assert brier_score(table).refinement == pytest.approx(0.25)
    assert brier_score(table).calibration == pytest.approx(0.09)
    assert log_loss(table).refinement == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 95}, "`confidence` must lie between 0 and 1; got 95. For 95 per cent"),
        ({"margin": -1}, "`margin` must be a positive number; got -1"),
        ({"cluster": [1, 2, 3]}, "`cluster` must have one entry per row; it has 3 for 10 rows"),
        ({"cluster": ["a"] * 10}, "at least two clusters; all 10 rows are in 'a'"),
        ({"cluster": [None] + ["a"] * 9}, "`cluster` must not hold missing values; row 0"),
    ],
)
def test_bad_input(options: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        assess([0, 1] * 5, [0.3] * 10, **options)
    assert message in str(error.value)


def test_too_few_rows_and_clusters_of_a_sketch() -> None:
    with pytest.raises(InputError, match="at least two rows; there is 1"):
        assess([1], [0.4])
    with pytest.raises(InputError, match="`cluster` needs rows"):
        assess(Sketch.from_arrays([0, 1], [0.2, 0.7]), cluster=[1, 2])
    with pytest.raises(InputError, match="`y_prob` is missing"):
        assess([0, 1])


def test_repeated_rows_are_pointed_out() -> None:
    y, p = _rows(300)
    with pytest.warns(DependenceWarning, match=r"occurs 5\.0 times"):
        assess(np.repeat(y, 5), np.repeat(p, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assess(np.repeat(y, 5), np.round(np.repeat(p, 5), 2))


def test_clusters_cover_where_rows_do_not() -> None:
    rng = np.random.default_rng(0)
    by_cluster, by_row = 0, 0
    runs, clusters, repeats = 20, 60, 10
    for seed in range(runs):
        level = rng.random(clusters)
        event = (rng.random(clusters) < level).astype(int)
        p = np.clip(
            np.repeat(level, repeats) + 0.02 * rng.standard_normal(clusters * repeats), 0, 1
        )
        y, cluster = np.repeat(event, repeats), np.repeat(np.arange(clusters), repeats)
        by_cluster += 0.0 in assess(y, p, cluster=cluster, seed=seed).interval
        by_row += 0.0 in assess(y, p, seed=seed).interval
    assert by_cluster >= 0.9 * runs
    assert by_row <= 0.5 * runs


def test_a_million_rows_cost_little_more_than_the_value() -> None:
    def seconds(call) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        return min(times)

    y, p = _rows(1_000_000)
    value = seconds(lambda: cal.smooth_ece(y, p))
    assert seconds(lambda: assess(y, p)) <= 3 * value + 0.3
