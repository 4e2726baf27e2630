"""Groups of many files: of one type, however it is stored."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import calibrant as cal

STRING_VIEW = pa.string_view() if int(pa.__version__.split(".")[0]) >= 21 else pa.string()
"""Older Arrows have it, but write none to Parquet."""


def table(rows, **extra):
    return pa.table({"p": [0.5] * rows, "y": [1] * rows, **extra})


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


@pytest.mark.parametrize("noted", [False, True])
def test_groups_of_several_types_are_refused(tmp_path, noted):
    options = {"by": "g", "checkpoint": tmp_path / "note" if noted else None}
    pq.write_table(table(2, g=[1, 2]), tmp_path / "a.parquet")
    pq.write_table(table(2, g=["1", "2"]), tmp_path / "b.parquet")
    with refused("by", holds=("'g'", "1 and '1'")):
        scan(tmp_path, **options)
    (tmp_path / "a.jsonl").write_text('{"p": 0.5, "y": 1, "g": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"p": 0.5, "y": 1, "g": "1"}\n')
    with refused("by", holds=("'g'", "1 and '1'")):
        scan(str(tmp_path / "*.jsonl"), **options)
    (tmp_path / "g=x").mkdir()
    pq.write_table(table(2), tmp_path / "g=x" / "c.parquet")
    with refused("by", holds=("'g'", "1 and 'x'")):
        scan([tmp_path / "a.parquet", tmp_path / "g=x"], **options)


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (1, [pa.int64(), pa.uint8(), pa.float64(), pa.null()]),
        ("a", [pa.string(), pa.large_string(), STRING_VIEW, pa.null()]),
        (datetime(2026, 1, 1), [pa.timestamp("us"), pa.timestamp("ns"), pa.null()]),
    ],
    ids=["numbers", "text", "times"],
)
def test_types_that_hold_the_same_values_go_together(tmp_path, value, kinds):
    columns = [pa.array([None if pa.types.is_null(kind) else value], kind) for kind in kinds]
    columns.append(pa.array([value]).dictionary_encode())
    for k, column in enumerate(columns):
        pq.write_table(table(1, g=column), tmp_path / f"{k}.parquet")
    found = scan(tmp_path, by="g")
    assert {key: part.n for key, part in found.items()} == {value: len(kinds), None: 1}
