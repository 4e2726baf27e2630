from __future__ import annotations

import json

import pytest

from bench import guard
from calibrant import datasets


def test_more_than_the_allowance_is_over_and_less_is_not():
    rows = guard.verdicts({"a": 124.0, "b": 126.0, "new": 1.0}, {"a": 100.0, "b": 100.0})
    assert [row[-1] for row in rows] == ["", "**over**", "**over**"]


def test_one_more_evaluation_of_a_few_is_allowed_and_two_are_not():
    rows = guard.verdicts({"a": 4, "b": 5}, {"a": 3, "b": 3})
    assert [row[-1] for row in rows] == ["", "**over**"]


def test_what_has_a_budget_must_be_counted():
    assert guard.verdicts({}, {"a": 3.0}) == [["a", "", "3", "**not counted**"]]


@pytest.mark.parametrize("loop", guard.LOOPS)
def test_every_loop_that_is_counted_runs(loop):
    guard.LOOPS[loop][1]()


def test_the_solver_stays_within_its_budget_of_evaluations():
    budgets = json.loads(guard.BUDGETS.read_text())
    found = {f"evaluations: {shape}": guard.evaluations(shape) for shape in datasets.SHAPES}
    assert not any(
        row[-1] for row in guard.verdicts(found, {what: budgets[what] for what in found})
    )
    assert {f"instructions a row: {loop}" for loop in guard.LOOPS} <= set(budgets)
