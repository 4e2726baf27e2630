"""The same rows by every way in give the bits of exact arithmetic, or are refused."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.fuzz.differential import ENGINES, WAYS, try_cases, try_rows
from tests.refusals import refused

import calibrant as cal


def test_every_way_in_gives_exact_sums():
    """`make fuzz` does the same many more times."""
    checks = try_rows(300, seed=4)
    assert not checks.failures
    assert set(checks.made) == set(WAYS)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_other_engines_give_exact_sums(engine):
    if not ENGINES[engine].is_installed:
        pytest.skip(f"{engine} could not be started: it is not installed")
    checks = try_cases(600, seed=3, ways=[engine])
    assert not checks.failures


@pytest.mark.parametrize("digits", range(1, 16))
@pytest.mark.parametrize("kind", [pa.decimal128, pa.decimal256])
def test_decimals_of_arrow_are_the_nearest_floats(kind, digits):
    """Those next to a border of a cell: Arrow's own cast puts some of 11 digits into another one."""
    halvings = min(digits, 10)
    edges = [Decimal(k) / 2**halvings for k in range(2**halvings + 1)]
    column = pa.array([*edges, None], kind(38, digits))
    table = pa.table({"y": [1] * len(column), "p": column})
    floats = cal.Sketch.from_arrays([1] * len(edges), [float(edge) for edge in edges])
    exact = cal.scan(table, y_true="y", y_prob="p", on_invalid="drop")
    assert exact.dropped == {"missing prediction": 1}
    for p in (column, column.slice(1), table["p"], table.to_pandas()["p"]):
        sketch = cal.Sketch.from_arrays([1] * len(p), p, on_invalid="drop")
        assert sketch.n + 1 == len(p)
        if len(p) == len(column):
            assert sketch == exact
    assert (exact.counts == floats.counts).all()
    assert (exact.cells == floats.cells).all()
    assert (exact.offsets == floats.offsets).all()


def test_decimal_weights_are_the_nearest_floats():
    """Also those with more digits than a float has."""
    weights = [Decimal(7), Decimal("12345678901234.123456"), Decimal(-1), Decimal("0.75"), None]
    for kind in (pa.decimal128(38, 15), pa.decimal256(60, 6)):
        table = pa.table({"y": [1] * 5, "p": [0.25] * 5, "w": pa.array(weights, kind)})
        sketch = cal.scan(table, y_true="y", y_prob="p", sample_weight="w", on_invalid="drop")
        assert sketch.dropped == {"invalid weight": 1, "missing weight": 1}
        assert sketch.weights.sum() == 7 + float(weights[1]) + 0.75


def test_what_is_missing_in_a_dictionary_of_arrow_is_missing():
    """Arrow itself hands over a value of the dictionary for it."""
    y = pa.chunked_array([pa.array([0, None, 1]).dictionary_encode()])
    p = pa.chunked_array([pa.array([0.5, 0.25, None]).dictionary_encode()])
    sketch = cal.Sketch.from_arrays(y, p, on_invalid="drop")
    assert sketch.n == 1
    assert sketch.dropped == {"missing prediction": 1, "missing label": 1}


@pytest.mark.parametrize("column", [pa.chunked_array, lambda c: pd.Series(c[0], dtype="UInt64")])
def test_integers_that_are_no_floats_are_read_beside_what_is_missing(column):
    y = column([pa.array([2**63 + 1, None, 1], pa.uint64())])
    sketch = cal.Sketch.from_arrays(y, [0.1, 0.2, 0.3], on_invalid="drop")
    assert (sketch.n, sketch.dropped) == (1, {"invalid label": 1, "missing label": 1})


def test_a_column_of_which_all_is_missing_has_any_type():
    """Of a batch of pandas, say, of which a later one has decimals."""
    rows = {"y": [0, None, 1], "p": [None, None, Decimal("0.5")]}
    frame = pd.DataFrame(rows, dtype=object)
    batches = iter([frame[:2], frame[2:]])
    for source in (batches, rows):
        sketch = cal.scan(source, y_true="y", y_prob="p", on_invalid="drop")
        assert (sketch.n, sketch.dropped) == (1, {"missing prediction": 2})


def test_decimals_that_engines_would_round_in_two_ways_are_refused():
    """One border of a cell: Arrow takes it for a little less, NumPy for what it is."""
    edge = Decimal(35837) / 65536
    for digits, is_read in ((16, False), (15, True)):
        value = round(edge, digits)
        table = pa.table({"y": [1], "p": pa.array([value], pa.decimal128(38, digits))})
        for source in (table, pl.from_arrow(table), duckdb.from_arrow(table), table.to_reader()):
            if is_read:
                found = cal.scan(source, y_true="y", y_prob="p")
                assert found == cal.Sketch.from_arrays([1], [float(value)])
            else:
                with refused("y_prob"):
                    cal.scan(source, y_true="y", y_prob="p")
