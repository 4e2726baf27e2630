"""The interval, the noise floor and the test must hold what they promise on simulated data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.calibration_test import calibration_p_value
from calibrant.inference.clusters import rows_on_nodes
from calibrant.inference.interval import interval, row_spread, upper_end
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.smooth_ece import smooth_ece


def _calibrated(n: int, seed: int, *, lattice: int = 0) -> Sketch:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    if lattice:
        p = np.round(p * lattice) / lattice
    return Sketch.from_arrays((rng.random(n) < p).astype(int), p)


@pytest.mark.parametrize(("n", "lattice"), [(300, 0), (3000, 0), (300, 10), (3000, 10)])
def test_noise_floor_is_the_mean_of_calibrated_samples(n: int, lattice: int) -> None:
    values = [smooth_ece(_calibrated(n, seed, lattice=lattice)) for seed in range(120)]
    standard_error = np.std(values) / np.sqrt(len(values))
    floor = noise_floor(_calibrated(n, 999, lattice=lattice))
    assert abs(floor.value - np.mean(values)) < 3 * standard_error + 0.03 * floor.value
    assert floor.method == ("simulated" if lattice else "closed form")


def test_noise_floor_of_certain_predictions_is_zero() -> None:
    assert noise_floor(Sketch.from_arrays([0, 1, 1], [0.0, 1.0, 1.0])).value == 0.0


def test_noise_floor_of_weighted_rows_is_that_of_fewer() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < p).astype(int)
    weight = np.where(np.arange(4000) < 1000, 1.0, 1e-9)
    heavy = noise_floor(Sketch.from_arrays(y, p, sample_weight=weight)).value
    assert heavy == pytest.approx(
        noise_floor(Sketch.from_arrays(y[:1000], p[:1000])).value, rel=0.02
    )


def test_batched_fixed_points_equal_the_solver() -> None:
    for seed, n in enumerate((50, 500, 5000)):
        sketch = _calibrated(n, seed)
        value = smooth_ece(sketch)
        grid = ResidualGrid.of(sketch, 0.5 * value)
        (found,) = grid.fixed_points(grid.observed[None], start=0.1)
        assert found == pytest.approx(value, rel=5e-3)


def test_a_part_of_the_grid_equals_the_whole() -> None:
    rng = np.random.default_rng(4)
    p = 0.4 + 0.02 * rng.random(2000)
    sketch = Sketch.from_arrays((rng.random(2000) < p).astype(int), p)
    grid = ResidualGrid.of(sketch, 0.004)
    whole = ResidualGrid(grid.sketch, 0, grid.sketch.nodes, 1.0)
    assert grid.cells < whole.cells
    value = float(whole.errors(whole.observed, 0.004))
    assert float(grid.errors(grid.observed, 0.004)) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("bandwidth", [0.0005, 0.002])
@pytest.mark.parametrize("ends", [[], [0.0], [1.0], [0.0, 1.0]])
def test_wide_gaps_are_left_out_and_change_nothing(ends: list[float], bandwidth: float) -> None:
    rng = np.random.default_rng(6)
    p = np.concatenate([np.repeat(ends, 20), 0.3 + 0.001 * rng.random(300), np.full(40, 0.7)])
    sketch = Sketch.from_arrays((rng.random(p.size) < 0.1 + 0.7 * p).astype(int), p)
    grid = ResidualGrid.of(sketch, bandwidth)
    whole = ResidualGrid(grid.sketch, 0, grid.sketch.nodes, 1.0)
    assert grid.cells <= whole.cells / 4
    place = grid.positions[grid.places(grid.sketch.cells)] * grid.sketch.nodes
    assert np.allclose(place, grid.sketch.cells)
    for width in (bandwidth, 3 * bandwidth):  # the grid serves wider bandwidths too
        values = [float(each.errors(each.observed, width)) for each in (grid, whole)]
        assert values[0] == pytest.approx(values[1], rel=1e-5)
    spreads = [row_spread(each, bandwidth).standard_error for each in (grid, whole)]
    assert spreads[0] == pytest.approx(spreads[1], rel=1e-6)
    rows = rows_on_nodes(grid, p, np.ones(p.size), np.zeros(p.size, dtype=np.int64), 1)[0]
    assert np.allclose(rows, grid.on_nodes(grid.sketch.weights.sum(axis=1)), atol=1e-6)


def test_predictions_of_zero_and_one_alone_take_a_short_grid() -> None:
    sketch = Sketch.from_arrays([0, 1], [0.0, 1.0])
    assert ResidualGrid.of(sketch, 1e-5).cells == 64
    for scale in ("logit", "relative:0.5"):
        certain = Sketch.from_arrays([0, 1, 1], [0.0, 1.0, 0.0], scale=scale, nodes=1 << 20)
        assert ResidualGrid.of(certain, 0.01).cells <= 4096
        assert noise_floor(certain).value == 0.0


def test_the_witness_attains_the_error_and_its_steepness_is_the_derivative() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(3000)
    sketch = Sketch.from_arrays((rng.random(3000) < 0.2 + 0.6 * p).astype(int), p)
    value = smooth_ece(sketch)
    grid = ResidualGrid.of(sketch, value)
    counts = grid.sketch.counts
    residual = counts.sum(axis=1) * grid.predictions - counts[:, 1]
    assert (
        residual * grid.at_cells(grid.witness(grid.observed, value))
    ).sum() / 3000 == pytest.approx(value, rel=5e-3)
    up, down = (smooth_ece(sketch, bandwidth=value * k) for k in (1.01, 0.99))
    assert grid.steepness(value) == pytest.approx((down - up) / (0.02 * value), rel=0.1)


def test_no_witness_has_a_larger_standard_error() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < 0.2 + 0.6 * p).astype(int)
    sketch = Sketch.from_arrays(y, p)
    value = smooth_ece(sketch)
    largest = row_spread(ResidualGrid.of(sketch, value), value).standard_error
    signs = [np.ones(1000), np.sign(p - 0.5), np.sign(np.sin(40 * p)), rng.uniform(-1, 1, 1000)]
    errors = [np.sqrt((((p - y) * sign) ** 2).mean() - value**2) / np.sqrt(1000) for sign in signs]
    assert max(errors) == pytest.approx(largest, rel=1e-3)


@pytest.mark.parametrize(("n", "slope"), [(200, 1.0), (200, 0.6), (2000, 1.0), (2000, 0.6)])
def test_interval_covers(n: int, slope: float) -> None:
    grid = (np.arange(1 << 16) + 0.5) / (1 << 16)
    truth = smooth_ece(0.5 + slope * (grid - 0.5), grid, labels="soft", tolerance=1e-3)
    truth = 0.0 if slope == 1.0 else truth
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(60):
        p = rng.random(n)
        y = (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int)
        sketch = Sketch.from_arrays(y, p, nodes=1 << 12)
        covered += truth in interval(sketch, smooth_ece(sketch))
    assert covered >= 54  # 60 at 95% fall below with probability .008


def test_no_event_seen_is_not_certainty() -> None:
    p = np.full(100, 0.002)
    sketch = Sketch.from_arrays(np.zeros(100, int), p)
    found = interval(sketch, smooth_ece(sketch))
    assert found.low == 0.0
    assert 0.02 < found.high < 0.06  # Clopper and Pearson: 0.036


@pytest.mark.parametrize("sketch", [_calibrated(300, 1), _calibrated(3000, 2, lattice=10)])
def test_the_upper_end_is_as_far_from_its_own_error_as_wilson_says(sketch: Sketch) -> None:
    value, z = smooth_ece(sketch), 1.959963984540054
    spread = row_spread(ResidualGrid.of(sketch, value), value)
    m = spread.units
    error = z**2 / (2 * m) + z * np.sqrt(spread.standard_error**2 + z**2 / (4 * m**2))
    end = upper_end(value, spread, 0.95)
    assert end - smooth_ece(sketch, bandwidth=end) == pytest.approx(error, rel=5e-3)


def test_the_upper_end_holds_where_all_predictions_err_alike_and_lie_close_together() -> None:
    """By chance their residuals may change sign, and then vary less than those of the population."""
    rng = np.random.default_rng(5)
    below = 0
    for _ in range(150):
        p = rng.beta(200, 200, 1000)
        sketch = Sketch.from_arrays((rng.random(1000) < p + 0.03).astype(int), p, nodes=1 << 12)
        value = smooth_ece(sketch, tolerance=1e-4)
        spread = row_spread(ResidualGrid.of(sketch, value), value)
        below += upper_end(value, spread, 0.95) < 0.03
    assert below <= 9  # of 150, at 2.5%, more with probability .006


@pytest.mark.parametrize(
    ("said", "rate", "n"),
    [(0.02, 0.002, 300), (0.2, 0.002, 300), (0.5, 0.01, 100), (1.0, 0.004, 400), (0.7, 0.997, 300)],
)
def test_agreeing_outcomes_are_not_certainty(said: float, rate: float, n: int) -> None:
    """Of one prediction the chance of every table is known, and with it the coverage."""
    covered = 0.0
    for events in range(n + 1):
        chance = float(binom.pmf(events, n, rate))
        if chance < 1e-4:
            continue
        sketch = Sketch.from_counts([said], [n], [events])
        covered += chance * (abs(said - rate) in interval(sketch, smooth_ece(sketch)))
    assert covered >= 0.93


@pytest.mark.parametrize(
    ("said", "n"), [(0.01, 30), (0.02, 10), (0.002, 100), (0.5, 20), (0.5, 10), (0.04, 2)]
)
def test_the_p_value_of_one_prediction_is_that_of_the_binomial(said: float, n: int) -> None:
    chances = binom.pmf(np.arange(n + 1), n, said)
    away = np.abs(np.arange(n + 1) - n * said)
    size = 0.0
    for events in range(n + 1):
        sketch = Sketch.from_counts([said], [n], [events])
        found = calibration_p_value(sketch)
        exact = float(chances[away >= away[events] - 1e-9].sum())
        # 4,000 draws stray by a few per cent; beyond the last of them p falls more slowly than it could.
        assert 0.93 * exact - 0.001 <= found <= 1.15 * exact + 0.005
        size += float(chances[events]) * (found <= 0.05)
    assert size <= 0.05


def test_what_every_draw_does_is_no_evidence() -> None:
    y = np.array([0, 1] * 10)
    assert calibration_p_value(Sketch.from_arrays(y, y.astype(float))) == 1.0


def test_size_of_the_test() -> None:
    rejected = [calibration_p_value(_calibrated(200, seed)) <= 0.05 for seed in range(200)]
    assert 2 <= sum(rejected) <= 22


def test_small_p_values_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < p**2).astype(int)
    some, more = (calibration_p_value(Sketch.from_arrays(y[:n], p[:n])) for n in (2000, 4000))
    assert more < some**1.5 < 1e-12


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.1, float("nan"), "0.95", True])
def test_confidence_must_be_a_share(confidence: float) -> None:
    with pytest.raises(InputError) as error:
        interval(_calibrated(100, 0), 0.05, confidence=confidence)
    assert error.value.argument == "confidence"


def test_one_heavy_failure_is_one_failure() -> None:
    """Predictions of 1 that failed once: the lower end grows with its weight, and not faster."""
    y, weight = np.r_[0, np.ones(999)], np.r_[10.0, np.ones(999)]
    ends = [
        interval(sketch, smooth_ece(sketch))
        for sketch in (
            Sketch.from_arrays(y, np.ones(1000)),
            Sketch.from_arrays(y, np.ones(1000), sample_weight=weight),
        )
    ]
    assert 0.0 < ends[1].low <= 0.05 * 10 / weight.sum()  # one failure at level .05
    assert ends[1].high >= 5 * ends[0].high
