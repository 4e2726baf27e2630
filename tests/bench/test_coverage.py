"""The coverage study must cover all cells, draw what it says, and add up its parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from bench.coverage import breaking, differences, power, tables
from bench.coverage.__main__ import plan
from bench.coverage.populations import DISTRIBUTIONS, SHAPES, TRUTHS, population, truth_at_support
from bench.coverage.simulation import Cell, Runs, simulate
from scipy.optimize import minimize

import calibrant as cal
from calibrant.inference.calibration_test import calibration_p_value


def test_the_plan_holds_every_cell_often_enough() -> None:
    runs: Counter[str] = Counter()
    for task in plan(False):
        if isinstance(task, Runs):
            runs[task.name] += task.runs
    cells = [
        Cell("interval", distribution, shape, truth, n, 0).name
        for n in (100, 300, 1_000, 10_000, 100_000)
        for distribution in DISTRIBUTIONS
        for shape in SHAPES
        for truth in TRUTHS
        if truth or shape == SHAPES[0]
    ]
    cells += [breaking.Trial(*cell, 0).name for cell in breaking.cells(False) if cell[2] <= 100_000]
    cells += [differences.Contrast(*cell, 0).name for cell in differences.cells(False)]
    assert len(set(cells)) == len(cells) > 250
    assert min(runs[name] for name in cells) >= 1_000
    few = sum(task.runs for task in plan(True) if isinstance(task, Runs))
    assert few < 0.05 * sum(runs.values())


@pytest.mark.parametrize("study", differences.STUDIES)
def test_every_study_of_differences_asks_what_its_table_says(study: str) -> None:
    asked = differences.STUDIES[study]
    population, n = min(asked.cells, key=lambda cell: cell[1])
    tasks = [differences.Contrast(study, population, min(n, 300), k, 2) for k in range(2)]
    parts = [differences.contrast(task) for task in tasks]
    (cell,) = tables.merged([(task.name, part) for task, part in zip(tasks, parts, strict=True)])
    assert cell["runs"] == 4
    assert cell["shares"] == pytest.approx(np.mean([part["shares"] for part in parts], axis=0))
    (table,) = differences.tables([cell])
    assert table.rows[0][0] == population
    promised = [*asked.covers, *asked.sizes(population)]
    wrong = [1.0 - float(k in asked.covers) for k in range(len(asked.columns))]
    missed = tables.failures([], [], [{**cell, "shares": wrong, "runs": 100}], [], {})
    assert len(missed) == len(promised) > 0


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
    missed = tables.failures([{**cell, "coverage": 0.5, "runs": 400}], [], [], [], {})
    assert missed[0].endswith("coverage 0.500")


@pytest.mark.parametrize("kind", ["rows", "scale", "sketch", "classes", "weights", "clusters"])
def test_populations_that_break_intervals_are_tried_as_they_are_named(kind: str) -> None:
    name, n = next((name, n) for one, name, n in breaking.cells(False) if one == kind)
    trial = breaking.Trial(kind, name, min(n, 1_000), 0, 3)
    found = breaking.attempt(trial)
    assert found["contradictions"] == 0
    assert len(found["held"]) == len(breaking.CONFIDENCES)
    assert found == breaking.attempt(trial)
    whole = {**found, "name": "x", "coverage": 1.0, "rejected": 0.0, "contradictions": 2}
    missed = tables.failures([], [whole], [], [], {})
    assert missed == ["x: 2 contradictions"]


def test_the_local_error_has_the_size_it_says() -> None:
    assert breaking.truth_of("rows", "40% at 1, wrong there") == pytest.approx(0.01, abs=1e-4)


def test_samples_that_are_tested_together_have_the_p_values_of_each() -> None:
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(700))
    y = (rng.random((3, 700)) < p**1.4).astype(np.float64)
    alone = [calibration_p_value(cal.Sketch.from_arrays(outcomes, p)) for outcomes in y]
    assert max(alone) < 0.2  # beyond, fewer draws are enough
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
