from __future__ import annotations

import json

import pytest

from bench import guard
from calibrant import datasets


@pytest.mark.parametrize("loop", guard.LOOPS)
def test_every_loop_that_is_counted_runs(loop):
    guard.LOOPS[loop][1](*guard._rows())


def test_the_solver_stays_within_its_budget_of_evaluations():
    budgets = json.loads(guard.BUDGETS.read_text())
    found = {f"evaluations: {shape}": guard.evaluations(shape) for shape in datasets.SHAPES}
    assert not any(
        row[-1] for row in guard.verdicts(found, {what: budgets[what] for what in found})
    )
    assert {f"instructions a row: {loop}" for loop in guard.LOOPS} <= set(budgets)
