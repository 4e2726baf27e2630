"""The same rows by every way in give the bits of exact arithmetic, or are refused."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from tests.fuzz.differential import WAYS, try_rows

import calibrant as cal


def test_every_way_in_gives_exact_sums():
    """`make fuzz` does the same many more times."""
    checks = try_rows(25, seed=2)
    assert not checks.failures
    assert set(checks.made) == set(WAYS)


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
                with pytest.raises(cal.InputError) as refused:
                    cal.scan(source, y_true="y", y_prob="p")
                assert refused.value.argument == "y_prob"
