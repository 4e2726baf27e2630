"""The coverage study must cover all cells, draw what it says, and add up its parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from bench.coverage import breaking, power, tables
from bench.coverage.__main__ import plan
from bench.coverage.contests import RIVALS, difference, predictions
from bench.coverage.populations import DISTRIBUTIONS, SHAPES, TRUTHS, population, truth_at_support
from bench.coverage.simulation import Cell, simulate
from scipy.optimize import minimize

import calibrant as cal
from calibrant.inference.rejection import calibration_p_value


@pytest.mark.parametrize("rival", RIVALS)
def test_a_rival_without_error_has_none(rival: str) -> None:
    p, chance = truth_at_support(population("uniform", "overconfident", 0.05))
    error = cal.smooth_ece(chance, predictions(rival, p, chance), labels="soft")
    assert error == pytest.approx(0.05 - difference(rival, 0.05), abs=1e-5)
    assert (error < 1e-5) == (rival in RIVALS[:2])


def test_the_plan_holds_every_cell_often_enough() -> None:
    runs: Counter[str] = Counter()
    for task in plan(False):
        if isinstance(task, Cell):
            runs[task.name] += task.runs
    cells = [
        Cell("interval", distribution, shape, truth, n, 0).name
        for n in (100, 300, 1_000, 10_000, 100_000)
        for distribution in DISTRIBUTIONS
        for shape in SHAPES
        for truth in TRUTHS
    ]
    assert len(set(cells)) == 200
    assert min(runs[name] for name in cells) >= 400
    nulls = [name for name in cells if ", 0, " in name]
    assert len(nulls) == 50
    assert all(runs[name] == 1_000 for name in nulls)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_population_has_the_error_it_says(shape: str) -> None:
    drawn = population("lattice", shape, 0.05)
    p, chance = truth_at_support(drawn)
    assert cal.smooth_ece(chance, p, labels="soft") == pytest.approx(0.05, abs=1e-5)
    y, sample = drawn.draw(50_000, np.random.default_rng(0))
    assert cal.smooth_ece(y, sample) == pytest.approx(0.05, abs=0.008)


def test_parts_of_a_cell_add_up() -> None:
    cells = [Cell("interval", "uniform", SHAPES[0], 0.0, 100, k, 4) for k in range(2)]
    parts = [simulate(cell) for cell in cells]
    (cell,) = tables.merged([(one.name, part) for one, part in zip(cells, parts, strict=True)])
    assert cell["runs"] == 8
    assert cell["coverage"] == pytest.approx(np.mean([part["coverage"] for part in parts]))
    assert simulate(Cell("interval", "uniform", SHAPES[0], 0.0, 100, 1, 4)) == parts[1]
    assert tables.failures([{**cell, "coverage": 0.5, "runs": 400}], [], [], {})[0].endswith(
        "coverage 0.500"
    )


@pytest.mark.parametrize("kind", ["rows", "scale", "weights", "clusters"])
def test_populations_that_break_intervals_are_tried_as_they_are_named(kind: str) -> None:
    name, n = next((name, n) for one, name, n in breaking.cells(False) if one == kind)
    trial = breaking.Trial(kind, name, min(n, 1_000), 0, 3)
    found = breaking.attempt(trial)
    assert found["contradictions"] == 0
    assert len(found["held"]) == len(breaking.CONFIDENCES)
    assert found == breaking.attempt(trial)
    missed = tables.failures([], [], [{**found, "name": "x", "contradictions": 2}], {})
    assert missed == ["x: 2 contradictions"]


def test_the_local_error_has_the_size_it_says() -> None:
    assert breaking.truth_of("rows", "40% at 1, wrong there") == pytest.approx(0.01, abs=1e-4)


def test_samples_that_are_tested_together_have_the_p_values_of_each() -> None:
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(700))
    y = (rng.random((3, 700)) < p).astype(np.float64)
    alone = [calibration_p_value(cal.Sketch.from_arrays(outcomes, p)) for outcomes in y]
    assert power.p_values(p, y) == pytest.approx(alone, rel=1e-3)


def test_rivals_have_the_statistics_that_they_are_named_for() -> None:
    rng = np.random.default_rng(1)
    p = np.sort(rng.random(60))
    y = (rng.random((1, 60)) < p).astype(np.float64)
    r, far = (p - y)[0], np.abs(p[:, None] - p)
    kernel = np.exp(-far / np.median(np.abs(p - p[::-1])))
    np.fill_diagonal(kernel, 0.0)
    assert power.squared_kernel(y, p)[0] == pytest.approx(0.5 * r @ kernel @ r)
    x = np.stack([np.ones(60), np.log(p / (1 - p))])

    def loss(b: np.ndarray) -> float:
        return float(np.logaddexp(0, b @ x).sum() - y[0] @ (b @ x))

    best = minimize(loss, [0.0, 1.0])
    assert power.cox(y, p)[0] == pytest.approx(
        2 * (loss(np.array([0.0, 1.0])) - best.fun), rel=1e-4
    )
