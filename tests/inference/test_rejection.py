"""The test and the lower end are one construction: they cannot contradict each other, and they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi, norm

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.inference.assess import assess
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.dependence import DependenceWarning
from calibrant.inference.lower_bound import BUMP, ROUND
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.null_draws import null_residuals
from calibrant.inference.quantiles import log_tail
from calibrant.inference.witnesses import Cells, witnesses_of

CONFIDENCES = (0.5, 0.8, 0.95, 0.99, 0.999)


def _local(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """40% of the predictions are 1 and come true in 39 of 40 cases; SmoothECE is 0.01."""
    rng = np.random.default_rng(seed)
    top, middle = rng.random(n) < 0.4, rng.beta(2, 2, n)
    p = np.where(top, 1.0, middle)
    return (rng.random(n) < np.where(top, 0.975, middle)).astype(int), p


def _rows(n: int, slope: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    return (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int), p


@pytest.mark.filterwarnings("ignore::calibrant.data.sketch.HardLabelWarning")
@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "logit", "few", "certain"])
@pytest.mark.parametrize("slope", [1.0, 0.8])
def test_the_interval_leaves_0_exactly_where_the_test_rejects(kind: str, slope: float) -> None:
    for seed in range(2):
        y, p = _rows(40 if kind == "few" else 500, slope, seed)
        options: dict = {}
        if kind == "weights":
            options = {"sample_weight": np.where(y == 1, 1.0, 4.0)}
        if kind == "clusters":
            options = {"cluster": np.arange(500) // 10}
        if kind == "logit":
            options = {"scale": "logit"}
        if kind == "certain":
            p = np.round(p)
        for confidence in CONFIDENCES:
            found = assess(y, p, confidence=confidence, **options)
            assert (found.p_value <= 1 - confidence + 1e-12) == (found.interval.low > 0)
            assert found.miscalibrated == (found.interval.low > 0)
            assert found.interval.low <= found.interval.high


def test_the_lower_end_falls_with_confidence() -> None:
    y, p = _rows(2000, 0.7, 0)
    sketch = Sketch.from_arrays(y, p)
    rejection = Rejection.of(sketch, noise_floor(sketch).value)
    lows = [rejection.lower_end(confidence) for confidence in CONFIDENCES]
    assert lows == sorted(lows, reverse=True)
    sizes = np.linspace(0, rejection.bandwidth, 9)
    p_values = [rejection.p_value_of(float(size)) for size in sizes]
    assert p_values == sorted(p_values)


def test_errors_in_one_place_do_not_add_up_like_squares() -> None:
    lows = []
    for seed in range(12):
        sketch = Sketch.from_arrays(*_local(100_000, seed), nodes=1 << 12)
        lows.append(Rejection.of(sketch, noise_floor(sketch).value).lower_end(0.95))
    assert max(lows) <= 0.0105
    assert min(lows) > 0.007


def test_weights_that_depend_on_the_outcome_keep_the_size() -> None:
    """Of the rows without the event one in ten was kept, with weight 10."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(100):
        p = rng.beta(6, 2, 2000)
        y = rng.random(2000) < p
        kept = y | (rng.random(2000) < 0.1)
        found = assess(y[kept], p[kept], sample_weight=np.where(y[kept], 1.0, 10.0))
        rejected += found.p_value <= 0.05
    assert rejected <= 12  # the variance of equal weights rejects in 34


@pytest.mark.parametrize("keep", [
    lambda p, y: np.where((p > 0.5) == y, 1.0, 0.1),  # 44 of 100 where an outcome weighs the same everywhere
    lambda p, y: 0.05 + 0.95 * (1.0 - abs(y - p)),  # 30
    lambda p, y: 0.05 + 0.95 * abs(y - p),
])  # fmt: skip
def test_weights_may_depend_on_prediction_and_outcome_together(keep) -> None:
    rng = np.random.default_rng(11)
    assert _rejected_of_80(rng, keep, lambda: rng.beta(2, 2, 3000)) <= 11


def test_ten_rows_that_weigh_most_are_enough() -> None:
    """Of 210 rows nine weigh ten. Did an outcome weigh the same everywhere, 23 of 80 would be rejected."""
    rng = np.random.default_rng(12)

    def keep(p: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where((p > 0.5) == y, 1.0, 0.1)

    assert _rejected_of_80(rng, keep, lambda: rng.beta(2, 2, 300)) <= 11


def _rejected_of_80(rng, keep, predictions) -> int:
    rejected = 0
    for _ in range(80):
        p = predictions()
        y = (rng.random(p.size) < p).astype(int)
        chance = keep(p, y)
        kept = rng.random(p.size) < chance
        sketch = Sketch.from_arrays(
            y[kept], p[kept], sample_weight=1.0 / chance[kept], nodes=1 << 14
        )
        rejected += Rejection.of(sketch, noise_floor(sketch).value).p_value <= 0.05
    return rejected


def test_weights_do_not_hide_an_error() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(1, 19, 20_000)
    y = rng.random(20_000) < 1.3 * p
    kept = y | (rng.random(20_000) < 0.1)
    found = assess(y[kept], p[kept], sample_weight=np.where(y[kept], 1.0, 10.0))
    assert found.miscalibrated


def test_frequencies_are_rows() -> None:
    rng = np.random.default_rng(2)
    p, times = rng.random(300), rng.integers(0, 4, 300)
    y = (rng.random(300) < 0.2 + 0.6 * p).astype(int)
    counted = assess(y, p, sample_weight=times, weights="frequency")
    with pytest.warns(DependenceWarning):
        repeated = assess(np.repeat(y, times), np.repeat(p, times))
    assert counted.log_loss.value == pytest.approx(repeated.log_loss.value, rel=1e-14)
    assert replace(counted, log_loss=repeated.log_loss) == repeated
    assert counted.n == times.sum()
    assert assess(y, p, sample_weight=times).interval.width > counted.interval.width


def test_a_cluster_with_half_of_the_rows_widens_the_interval() -> None:
    y, p = _rows(1000, 0.8, 3)
    even = assess(y, p, cluster=np.arange(1000) // 20)
    one = assess(y, p, cluster=np.maximum(np.arange(1000) // 20, 25))
    assert one.interval.high > 1.05 * even.interval.high


def test_the_ratio_is_as_sure_as_predictions_make_it() -> None:
    rng = np.random.default_rng(4)
    p = rng.choice([0.02, 0.98], 2000)
    y = rng.random(2000) < p
    ratio = assess(y, p).observed_expected
    error = 1.96 * np.sqrt(0.02 * 0.98 / 2000) / p.mean()
    assert ratio.high - ratio.low == pytest.approx(2 * error, rel=0.15)
    assert ratio.low < 1 < ratio.high
    none = assess(np.zeros(500, int), np.full(500, 0.002)).observed_expected
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(3.84, rel=0.01)  # 3.69 events, exactly


@pytest.mark.parametrize(
    ("y", "p", "options"),
    [
        ([0, 1], [0.4, 0.6], {}),
        ([1], [0.5], {"sample_weight": [2], "weights": "frequency"}),
        ([0] * 9 + [1], [0.1] * 10, {}),
        ([0, 1] * 20, [0.3, 0.6] * 20, {"sample_weight": [1e9] + [1e-3] * 39}),
        ([0, 1] * 20, [0.3, 0.6] * 20, {"sample_weight": [1, 0] * 20}),
        ([0, 1] * 20, [0.3, 0.6] * 20, {"cluster": [0] * 38 + [1, 2]}),
        ([0, 1, 1, 0], [0.0, 1.0, 1.0, 1.0], {}),
    ],
)
def test_next_to_nothing_gives_wide_intervals(y: list, p: list, options: dict) -> None:
    found = assess(y, p, **options)
    assert found.interval.low < 0.2
    assert found.interval.high > 0.1
    assert found.miscalibrated == (found.interval.low > 0)


def test_a_prediction_of_1_that_fails_is_refuted() -> None:
    found = assess([0] + [1] * 19, [1.0] * 20)
    assert found.p_value == 0.0
    assert 0 < found.interval.low < 0.01
    assert assess([1] * 20, [1.0] * 20).p_value == 1.0


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.6])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_the_smoother_is_the_kernel(scale: str, bandwidth: float) -> None:
    rng = np.random.default_rng(5)
    cells = Cells.of(Sketch.from_arrays(rng.random(60) < 0.5, rng.random(60), scale=scale))
    smoother = cells.smoother(bandwidth)
    assert np.allclose(smoother.sum(axis=1), 1.0)
    assert smoother.min() > -1e-5
    place = cells.position[17] + bandwidth * norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    if scale == "probability":
        place = np.abs((place + 1) % 2 - 1)  # reflected at 0 and at 1
    share, _ = np.histogram(place, np.nan_to_num(cells.edges, posinf=1e9, neginf=-1e9))
    assert np.allclose(smoother[17], share / 200_000, atol=2e-5)


def test_no_witness_says_more_than_the_error_is() -> None:
    for seed in range(5):
        y, p = _rows(3000, 0.6, seed)
        sketch = Sketch.from_arrays(y, p)
        cells = Cells.of(sketch)
        for bandwidth in (0.02, 0.1, 0.3):
            smooth = witnesses_of(cells, bandwidth)[0] @ cells.smoother(bandwidth).T
            error = cal.smooth_ece(sketch, bandwidth=bandwidth)
            assert np.abs(smooth).max() <= 1 + 1e-9
            assert np.abs(smooth @ cells.residual).max() <= error * (1 + 1e-3)


def test_the_bump_outweighs_the_bias_of_a_size() -> None:
    z = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    for mean in np.linspace(0, 6, 61):
        x = mean + z
        lowered = np.abs(x) - BUMP * np.exp(-0.5 * (x / ROUND) ** 2)
        assert lowered.mean() <= mean + 2e-4


def test_log_tails_are_those_of_chi() -> None:
    x = np.array([0.0, 0.3, 1.7, 4.2, 9.0, 29.9, 35.0])
    for m in (1, 2, 3, 8, 13):
        found = log_tail(x[None], np.array([m]))[0]
        assert found == pytest.approx(chi.logsf(x, m), rel=2e-3, abs=1e-4)


@pytest.mark.parametrize("slope", [0.9, 0.7, 0.3])
def test_sizes_are_excluded_up_to_the_lower_end(slope: float) -> None:
    sketch = Sketch.from_arrays(*_rows(2000, slope, 6))
    rejection = Rejection.of(sketch, noise_floor(sketch).value)
    for confidence in CONFIDENCES:
        low = rejection.lower_end(confidence)
        near = 3e-3 * max(low, rejection.bandwidth)
        assert rejection.excludes(max(low - near, 0.0), confidence) == (low > 0)
        assert not rejection.excludes(low + near, confidence)


def test_few_large_clusters_that_agree_prove_more_than_nothing() -> None:
    y, p = _rows(6000, 0.5, 7)
    found = assess(y, p, cluster=np.arange(6000) // 500)
    assert found.interval.low > 0.01


def test_few_events_of_uneven_weights_keep_the_size() -> None:
    """Six events in 300 rows: by chance they may all weigh little, which is no reason to be surprised."""
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(80):
        p, weight = rng.beta(1, 49, 300), np.exp(1.5 * rng.standard_normal(300))
        sketch = Sketch.from_arrays(rng.random(300) < p, p, sample_weight=weight, nodes=1 << 12)
        rejected += Rejection.of(sketch, noise_floor(sketch).value).p_value <= 0.05
    assert rejected <= 10  # 18 where only those events say what an event weighs


@pytest.mark.parametrize(("n", "weigh"), [
    (2000, lambda rng, n: np.where(rng.random(n) < 0.01, 100.0, 1.0)),  # 41 of 100 where events weigh
    (1000, lambda rng, n: np.where(rng.random(n) < 0.1, 20.0, 1.0)),  # what those weigh that came: 17
    (5000, lambda rng, n: np.exp(1.5 * rng.standard_normal(n))),
])  # fmt: skip
def test_weights_that_have_nothing_to_do_with_the_outcome_keep_the_size(n, weigh) -> None:
    """Of rare events the heavy ones may be missing by chance, though heavy rows are there."""
    rng = np.random.default_rng(3)
    rejected = 0
    for _ in range(80):
        p, weight = rng.beta(1, 49, n), weigh(rng, n)
        sketch = Sketch.from_arrays(rng.random(n) < p, p, sample_weight=weight)
        rejected += Rejection.of(sketch, noise_floor(sketch).value).p_value <= 0.05
    assert rejected <= 10


@pytest.mark.parametrize("weigh", [
    lambda rng, y: np.where(rng.random(y.size) < 0.01, 100.0, 1.0),
    lambda rng, y: np.exp(1.5 * rng.standard_normal(y.size)),
    lambda rng, y: np.where(y, 1.0, 10.0),
])  # fmt: skip
def test_drawn_residuals_of_weighted_rows_vary_as_calibrated_ones(weigh) -> None:
    """Mean 0 and the null variance, in every cell, with heavy rows and without."""
    rng = np.random.default_rng(4)
    p = rng.beta(1, 9, 500)
    y = rng.random(500) < p
    sketch = Sketch.from_arrays(y, p, sample_weight=weigh(rng, y))
    cells = Rejection.of(sketch, noise_floor(sketch).value).cells
    drawn = null_residuals(cells).astype(float)
    assert np.abs(drawn.mean(axis=0)).max() < 5.0 * np.sqrt(cells.null.max() / len(drawn))
    assert drawn.var(axis=0).sum() == pytest.approx(cells.null.sum(), rel=0.1)
    at = np.argsort(cells.null)[-3:]
    assert drawn.var(axis=0)[at] == pytest.approx(cells.null[at], rel=0.3)


def test_heavy_rows_draw_steps_of_their_own_weight() -> None:
    """A row of weight 100 among light ones: the sum moves by 100, and not by what rows are worth."""
    rng = np.random.default_rng(6)
    p, weight = rng.uniform(0.02, 0.03, 200), np.ones(200)
    weight[:3] = 100.0
    sketch = Sketch.from_arrays(np.arange(200) % 50 == 7, p, sample_weight=weight)
    cells = Rejection.of(sketch, noise_floor(sketch).value).cells
    assert cells.heavy is not None
    assert cells.heavy.share == pytest.approx(np.full(3, 100.0 / weight.sum()), rel=1e-4)
    assert sorted(cells.heavy.prediction) == pytest.approx(sorted(p[:3]), abs=1e-5)
    others = cells.heavy.shares_of_others(cells.shares)
    assert others[:, 0].sum() == pytest.approx(197.0 / weight.sum(), rel=0.02)
    drawn = null_residuals(cells).astype(float).sum(axis=1) * weight.sum()
    far = drawn < -50.0  # where one of them came true
    assert far.mean() == pytest.approx(3 * 0.025, rel=0.2)
    assert np.median(drawn[far]) == pytest.approx(np.median(drawn[~far]) - 100.0, abs=1.5)


def test_few_rows_of_large_weight_keep_the_size() -> None:
    """One in a hundred of the rows without the event was kept: three or so, each of weight 100."""
    rng = np.random.default_rng(5)
    rejected = 0
    for _ in range(60):
        p = rng.beta(5, 1, 2000)
        y = rng.random(2000) < p
        kept = y | (rng.random(2000) < 0.01)
        weight = np.where(y[kept], 1.0, 100.0)
        sketch = Sketch.from_arrays(y[kept], p[kept], sample_weight=weight, nodes=1 << 12)
        rejected += Rejection.of(sketch, noise_floor(sketch).value).p_value <= 0.05
    assert rejected <= 10  # 20 where a cell weighs as much as the outcomes that came


def test_weights_that_are_all_the_same_change_nothing() -> None:
    """Few events, where outcomes are drawn: as many as there are rows, whatever each of them weighs."""
    rng = np.random.default_rng(9)
    p = rng.beta(1, 9, 60)
    y = rng.random(60) < p
    alone = assess(y, p)
    for weight in (1e-9, 7.3):
        found = assess(y, p, sample_weight=np.full(60, weight))
        assert found.p_value == pytest.approx(alone.p_value, rel=1e-9)
        assert found.interval.high == pytest.approx(alone.interval.high, rel=1e-6)
