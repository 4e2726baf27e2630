"""Rows of CSV are those of Python's reader, and fields may be of any length."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.io import csv_rows
from calibrant.io.csv_rows import rows_of

TEXTS = st.text(alphabet='ab,\t"\r\n', max_size=40)


def by_python(text, delimiter):
    reader, line = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), 1
    for row in reader:
        yield row, line
        line = reader.line_num + 1


@given(text=TEXTS, delimiter=st.sampled_from(",\t"))
def test_cell_by_cell_gives_what_python_gives(text, delimiter):
    expected = list(by_python(text, delimiter))
    assert list(csv_rows._any_length(text, delimiter)) == expected
    assert list(rows_of(text, delimiter)) == expected


@pytest.mark.parametrize("long", ['a"b,\n' * 50_000, "x" * 200_000])
@pytest.mark.parametrize("at", range(4))
def test_a_long_field_is_a_field(long, at):
    rows = [["p", "note"], [".5", "short"], [".6", ""], [".7", "two\nlines"]]
    rows[at][1] = long
    sink = io.StringIO()
    csv.writer(sink).writerows(rows)
    limit = csv.field_size_limit()
    assert [row for row, _ in rows_of(sink.getvalue(), ",")] == rows
    assert csv.field_size_limit() == limit
