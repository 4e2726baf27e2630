"""What rows with weights are worth, and whether their weights depend on the outcome."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.data.sketch import Sketch
from calibrant.inference.resampling import cell_predictions
from calibrant.inference.row_worth import cross_weights, worth_of_rows


def _rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 0.8, n)
    return (rng.random(n) < p**1.4).astype(int), p


def _worth(y: np.ndarray, p: np.ndarray, weight: np.ndarray) -> np.ndarray:
    sketch = Sketch.from_arrays(y, p, sample_weight=weight)
    return worth_of_rows(
        sketch.weights, sketch.squared_weights, sketch.counts, cell_predictions(sketch)
    )


def test_an_event_is_worth_what_any_row_is_unless_the_rows_say_otherwise() -> None:
    y, p = _rows(3000)
    weight = np.exp(np.random.default_rng(5).standard_normal(3000))
    sketch = Sketch.from_arrays(y, p, sample_weight=weight)
    both = sketch.squared_weights.sum(axis=1) / sketch.weights.sum(axis=1)
    assert np.array_equal(_worth(y, p, weight), np.stack([both, both], axis=1))


@pytest.mark.parametrize("other", [0.1, 3.0, 100.0])
def test_weights_of_the_outcomes_are_found(other: float) -> None:
    y, p = _rows(3000)
    worth = _worth(y, p, np.where(y == 1, 1.0, other))
    assert worth[:, 1] == pytest.approx(1.0, rel=0.2)
    assert worth[:, 0] == pytest.approx(other, rel=0.2)


def test_uneven_weights_of_an_outcome_are_taken_for_larger_than_they_look() -> None:
    """By as much as their heaviest rows may be missing, and ever less the more rows there are."""
    rng, factors = np.random.default_rng(0), []
    for n in (500, 5_000, 50_000):
        y, p = _rows(n)
        uneven = np.exp(0.7 * rng.standard_normal(n))
        even, found = (_worth(y, p, np.where(y == 1, 1.0, 30.0 * each)) for each in (1.0, uneven))
        expected = (uneven[y == 0] ** 2).sum() / uneven[y == 0].sum()
        factors.append(float(np.median(found[:, 0] / even[:, 0])) / expected)
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > 1.1 > factors[-1] > 0.95


def test_a_row_weighs_what_those_of_its_outcome_next_to_it_do() -> None:
    """Of the wrong calls one in twenty was kept: where none is in sight, the nearest one tells."""
    rng = np.random.default_rng(3)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    wrong = (p > 0.5) != y
    kept = ~wrong | (rng.random(3000) < 0.05)
    weight = np.where(wrong[kept], 20.0, 1.0)
    worth = _worth(y[kept], p[kept], weight)
    place = cell_predictions(Sketch.from_arrays(y[kept], p[kept], sample_weight=weight))
    clear = np.abs(place - 0.5) > 0.1
    for outcome in (0, 1):
        heavy = (place > 0.5) != outcome
        assert worth[clear & heavy, outcome] == pytest.approx(20.0, rel=0.35)
        own = weight[
            y[kept] == outcome
        ]  # the others are not taken for lighter than rows are on average
        assert worth[clear & ~heavy, outcome].min() >= 1.0
        assert worth[clear & ~heavy, outcome].max() <= 1.3 * (own**2).sum() / own.sum()


def test_heavy_rows_that_lie_anywhere_are_expected_everywhere() -> None:
    """Of the rows without the event, every other one was kept one time in 25, whatever its prediction."""
    rng = np.random.default_rng(4)
    p = rng.random(6000)
    y = (rng.random(6000) < p).astype(int)
    chance = np.where((y == 0) & (rng.random(6000) < 0.5), 0.04, 1.0)
    kept = rng.random(6000) < chance
    worth = _worth(y[kept], p[kept], 1.0 / chance[kept])
    expected = (1.0 + 1.0 / 0.04) / 2.0  # Σw² / Σw of those without the event
    assert np.quantile(worth[:, 0], 0.05) > 0.6 * expected
    assert worth[:, 1] == pytest.approx(1.0, abs=0.1)


def test_weights_are_not_taken_for_soft_outcomes() -> None:
    y, p = _rows(400)
    rng = np.random.default_rng(0)
    for weight in (np.ones(400), rng.uniform(0.5, 1.5, 400), rng.integers(1, 4, 400)):
        assert not cross_weights(Sketch.from_arrays(y, p, sample_weight=weight)).any()
    one = Sketch.from_arrays([0, 1, 0, 1], [0.3] * 4, sample_weight=[0.5, 1.5, 1.0, 1.0])
    assert not cross_weights(one).any()
    soft = Sketch.from_arrays([0.25, 0.5], [0.3, 0.3], labels="soft")
    assert cross_weights(soft) == pytest.approx(0.25 * 0.75 + 0.25)
