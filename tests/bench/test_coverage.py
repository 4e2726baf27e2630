"""The coverage study draws what it says, and adds up its parts."""

from __future__ import annotations

import numpy as np
import pytest
from bench.coverage import differences
from bench.coverage.__main__ import TITLES, failures, table
from bench.coverage.populations import Cell, cells, sample, truth_of
from bench.coverage.study import Counts, simulate

import calibrant as cal

SMALL = {cell.kind: cell._replace(n=min(cell.n, 300)) for cell in cells()}


def test_every_cell_is_of_a_kind_that_has_a_table() -> None:
    names = [str(cell) for cell in cells()]
    assert len(set(names)) == len(names) > 326
    assert {cell.kind for cell in cells()} == set(TITLES)


@pytest.mark.parametrize("kind", SMALL)
def test_parts_of_a_cell_add_up(kind: str) -> None:
    parts = [simulate(SMALL[kind], part, 2) for part in range(2)]
    assert simulate(SMALL[kind], 0, 2) | {"seconds": 0} == parts[0] | {"seconds": 0}
    total = Counts(str(SMALL[kind]), parts[0]["truth"])
    for part in parts:
        total.add(part)
    assert total.samples == 4
    assert total.contradictions == 0
    assert total.high == pytest.approx(parts[0]["high"] + parts[1]["high"])


@pytest.mark.parametrize("name", ["uniform, bent, 0.05", "lattice, overconfident, 0.01"])
def test_a_population_has_the_error_it_says(name: str) -> None:
    drawn = sample(Cell("interval", name, 100_000), np.random.default_rng(0))
    assert cal.smooth_ece(**drawn) == pytest.approx(truth_of(Cell("interval", name, 0)), abs=0.006)


def test_a_cell_that_falls_short_is_named() -> None:
    cell = next(one for one in cells() if one.kind == "calibrated")
    sums = Counts(str(cell), 0.0, samples=1_000, rejected=90, missed_above=90, units=1e6)
    assert failures({str(cell): sums}) == [f"{cell}: size 0.090", f"{cell}: coverage 0.910"]
    assert table(cell.kind, {str(cell): sums}, {}).rows[0][4] == "0.090"


@pytest.mark.parametrize("study", differences.STUDIES, ids=lambda study: study.ask.__name__)
def test_every_study_of_differences_answers_its_columns(study: differences.Study) -> None:
    first = study._replace(cells=study.cells[:1])
    (row,) = differences.table(first, 2, most=300).rows
    assert row[0] == study.cells[0][0]
    assert all(0.0 <= float(share) <= 1.0 for share in row[3:])
