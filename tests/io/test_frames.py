"""Frames: columns of one name, columns coded by a dictionary, groups of their own types."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import calibrant as cal


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


def sources_of(rows, folder):
    """One Arrow table as everything that keeps its types, and its repeated names."""
    duckdb = pytest.importorskip("duckdb")
    pq.write_table(rows, folder / "rows.parquet")
    listed = ", ".join(f"a{k} AS {name}" for k, name in enumerate(rows.column_names))
    numbered = rows.rename_columns([f"a{k}" for k in range(rows.num_columns)])
    frame = numbered.to_pandas()
    frame.columns = rows.column_names
    arrow_frame = numbered.to_pandas(types_mapper=pd.ArrowDtype)
    arrow_frame.columns = rows.column_names
    return {
        "table": rows,
        "reader": rows.to_reader(),
        "batches": iter(rows.to_batches()),
        "parquet": folder / "rows.parquet",
        "pandas": frame,
        "pandas arrow": arrow_frame,
        "duckdb": duckdb.from_arrow(numbered).project(listed),
    }


def test_a_name_that_several_columns_have_is_refused_in_the_same_words(tmp_path):
    rows = pa.Table.from_arrays([pa.array([0.5]), pa.array([1]), pa.array([0])], ["p", "y", "y"])
    (tmp_path / "rows.csv").write_text("p,y,y\n0.5,1,0\n")
    sources = sources_of(rows, tmp_path) | {"csv": tmp_path / "rows.csv"}
    for name, source in sources.items():
        with refused(seen=2, holds="'y'"):
            print(name, scan(source))


@pytest.mark.parametrize("options", [{}, {"by": "g"}, {"by": "g", "scale": "logit"}], ids=str)
def test_columns_coded_by_a_dictionary(tmp_path, options):
    plain = pa.table({"p": [0.5, 0.25, 0.75], "y": [1, 0, None], "g": ["a", None, "b"]})
    coded = pa.table({name: plain[name].dictionary_encode() for name in plain.column_names})
    expected = scan(plain, on_invalid="drop", **options)
    for name, source in sources_of(coded, tmp_path).items():
        assert scan(source, on_invalid="drop", **options) == expected, name


def test_groups_of_views_of_text_and_bytes():
    pl = pytest.importorskip("polars")
    rows = {"p": [0.5, 0.25, 0.75], "y": [1, 0, 1]}
    for values in (["a", None, "b"], [b"a", None, b""]):
        frame = pl.DataFrame(rows | {"g": values})
        assert set(scan(frame, by="g", scale="logit")) == set(values)
    frame = frame.with_columns(g=pl.Series(["a", None, "b"], dtype=pl.Categorical))
    assert set(scan(frame, by="g", scale="logit")) == {"a", None, "b"}


def test_duckdb_hands_over_the_values_that_it_holds():
    duckdb = pytest.importorskip("duckdb")
    kinds = {
        "DATE '2026-01-31'": date(2026, 1, 31),
        "TIMESTAMP '2026-01-31 12:00:00'": datetime(2026, 1, 31, 12),
        "TIMESTAMP_NS '2026-01-31 12:00:00'": datetime(2026, 1, 31, 12),
        "TIMESTAMPTZ '2026-01-31 12:00:00+02'": datetime(2026, 1, 31, 10, tzinfo=UTC),
        "TIME '12:00:00'": time(12),
        "'\\xff'::BLOB": b"\xff",
        "0.10::DECIMAL(6, 2)": Decimal("0.10"),
        "(1::HUGEINT << 80)": 1 << 80,
        "'a'::ENUM('a', 'b')": "a",
        "3::UTINYINT": 3,
    }
    for text, value in kinds.items():
        found = scan(duckdb.sql(f"SELECT 0.5 AS p, 1 AS y, {text} AS g"), by="g")
        assert [*found] == [value]
        assert type(next(iter(found))) is type(value)
        nothing = duckdb.sql(f"SELECT 0.5 AS p, 1 AS y, CASE WHEN 1 = 2 THEN {text} END AS g")
        assert [*scan(nothing, by="g")] == [None]


def test_groups_of_a_dict_of_arrays_stay_what_they_are():
    rows = {"p": np.array([0.5, 0.25]), "y": np.array([1, 0])}
    kinds = [
        (np.array([True, False]), [False, True]),
        (np.array(["2026-01-31", "NaT"], "datetime64[ns]"), [datetime(2026, 1, 31), None]),
        (
            np.array(["2026-01-31", "2026-02-01"], "datetime64[D]"),
            [date(2026, 1, 31), date(2026, 2, 1)],
        ),
        ([Decimal("0.1"), None], [Decimal("0.1"), None]),
        (np.array([1 << 62, 3]), [3, 1 << 62]),
    ]
    for values, expected in kinds:
        found = list(scan(rows | {"g": values}, by="g"))
        assert found == expected
        assert [type(key) for key in found] == [type(key) for key in expected]


def test_what_an_arrow_table_can_compute():
    import narwhals as nw
    import pyarrow.compute as pc

    rows = pa.table({"p": [0.5, 0.25], "y": [1, 0], "g": ["a", "b"]})
    expected = cal.scan({"p": [0.25, 0.125], "y": [1, 0]}, y_true="y", y_prob="p")
    halves = pc.field("p") / 2, pc.divide(rows["p"], 2), nw.col("p") / 2
    for source in (rows, nw.from_native(rows)):
        for half in halves:
            assert cal.scan(source, y_true="y", y_prob=half) == expected
            assert cal.scan(source, y_true="y", y_prob=half, by="g").total() == expected
    for wrong in ([0.5], pc.field("q")):
        with refused(holds="0.5" if isinstance(wrong, list) else "q"):
            cal.scan(rows, y_true="y", y_prob=wrong)


def test_names_that_are_no_text_are_columns_of_pandas():
    expected = cal.Sketch.from_arrays([0, 1, 1], [0.1, 0.6, 0.9])
    frame = pd.DataFrame({0: [0.1, 0.6, 0.9], 1: [0, 1, 1], 2: list("aab")})
    assert cal.scan(frame, y_true=1, y_prob=0) == expected
    assert list(cal.scan(frame, y_true=1, y_prob=0, by={"g": 2})) == ["a", "b"]
    layered = frame[[0, 1]].set_axis(pd.MultiIndex.from_product([["a"], ["p", "y"]]), axis=1)
    assert cal.scan(layered, y_true=("a", "y"), y_prob=("a", "p")) == expected
    with refused(holds=("'0'", "0, 1, 2")):
        cal.scan(frame, y_true=1, y_prob="0")
    with refused(holds=("5", "0, 1, 2")):
        cal.scan(frame, y_true=5, y_prob=0)
    with refused(seen=True):
        cal.scan(frame, y_true=True, y_prob=0)


@pytest.mark.parametrize(
    "columns",
    [{"y_true": True}, {"y_prob": 0.5}, {"y_prob": ("p",)}, {"by": {"x": date(2026, 1, 1)}}],
    ids=str,
)
def test_a_constant_is_no_column(tmp_path, columns):
    rows = pa.table({"p": [0.5, 0.25], "y": [1, 0]})
    pl = pytest.importorskip("polars")
    more = {"polars": pl.from_arrow(rows), "dataset": pa.dataset.dataset(rows)}
    (value,) = columns.values()
    value = value["x"] if isinstance(value, dict) else value
    for name, source in (sources_of(rows, tmp_path) | more).items():
        with refused() as caught:
            print(name, cal.scan(source, **({"y_true": "y", "y_prob": "p"} | columns)))
        shown = str(caught.value)
        assert repr(value) in shown or type(value).__name__ in shown, shown
