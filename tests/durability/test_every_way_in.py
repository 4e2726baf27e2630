"""The same rows by every way in give the bits of exact arithmetic, or are refused."""

from __future__ import annotations

from decimal import Decimal
from importlib.util import find_spec

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from tests.fuzz.differential import CLUSTERS, WAYS, try_rows

import calibrant as cal


def test_every_way_in_gives_exact_sums():
    """`make fuzz` does the same many more times."""
    checks = try_rows(250, seed=2)
    assert not checks.failures
    assert set(checks.made) == set(WAYS)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("engine", CLUSTERS)
def test_clusters_give_exact_sums(engine):
    if find_spec(CLUSTERS[engine]) is None:
        pytest.skip(f"{engine} could not be started: it is not installed")
    checks = try_rows(10, seed=3, ways=[engine])
    assert not checks.failures


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
