"""CSV and JSON lines: quotes, line ends, and files that do not say what they hold at once."""

from __future__ import annotations

import csv
import io
import json
import math

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused

import calibrant as cal
from calibrant.io import text


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 40)


notes = st.text(st.sampled_from('ab",\n\r '), max_size=12)


def written(rows, line_end):
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, lineterminator=line_end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([["p", "y", "note"], *rows])
    return sink.getvalue()


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(notes, min_size=1, max_size=12), line_end=st.sampled_from(["\n", "\r\n"]))
def test_quoted_notes_do_not_change_the_rows(tmp_path_factory, rows, line_end):
    path = tmp_path_factory.mktemp("notes") / "a.csv"
    whole = written([[0.25, 1, note] for note in rows], line_end)
    path.write_text(whole, newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", 16)
        found = scan(path, by="note")
    assert found.total().n == len(rows)
    assert set(found) == {note or None for note in rows}


@settings(max_examples=40, deadline=None)
@given(data=st.data(), line_end=st.sampled_from(["\n", "\r\n"]))
def test_a_quote_that_was_lost_loses_no_rows(tmp_path_factory, data, line_end):
    lines = data.draw(st.lists(st.text(st.sampled_from("ab\n "), max_size=6), min_size=2))
    rows = [[0.25, 1, f"n{note}"] for note in lines]
    whole = written(rows, line_end)
    places = [place for place, mark in enumerate(whole) if mark == '"'][6:]  # after the header
    lost = data.draw(st.sampled_from(places))
    path = tmp_path_factory.mktemp("notes") / "a.csv"
    path.write_text(whole[:lost] + whole[lost + 1 :], newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", data.draw(st.sampled_from([16, 1 << 24])))
        try:
            named = scan(path).n == len(rows)
        except cal.InputError as error:
            named = error.file == str(path)
    assert named


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "broken",
    ['0.5,1,"open', '0.5,1,"open"ed'],
)
def test_a_quote_that_would_swallow_rows_is_named(tmp_path, line_end, broken, small_blocks):
    good = ["0.5,1,plain", '0.5,0,"two\nlines"', '0.5,0,5" wide'] * 4
    path = tmp_path / "a.csv"
    path.write_text(line_end.join(["p,y,note", *good, broken, *good[:1]]) + line_end, newline="")
    with refused(file="a.csv", holds='"open'):
        scan(path)


def test_a_quote_at_the_very_end_and_a_quote_inside_a_field(tmp_path, small_blocks):
    path = tmp_path / "a.csv"
    path.write_text('\ufeff"p","y",note\n0.5,1,5" wide\n0.5,0,"a""b"\n0.5,1,"last"')
    assert list(scan(path, by="note")) == ['5" wide', 'a"b', "last"]
    path.write_text('p,y,note\n0.5,1,"a"\n0.5,1,"')
    with refused(file="a.csv", holds="never closed"):
        scan(path)


def test_an_open_quote_does_not_read_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 100)
    monkeypatch.setattr(text, "LONGEST_LINE", 400)
    path = tmp_path / "a.csv"
    path.write_text('p,y,note\n0.5,1,"open\n' + "0.5,1,plain\n" * 200 + "\xff")
    with refused(file="a.csv", holds='"open'):
        scan(path)
    path.write_text("p,y\r" + "0.5,1\r" * 200)
    with refused(file="a.csv", holds="line feed"):
        scan(path)


@pytest.mark.parametrize("rows", [3, 3000])
def test_a_label_that_is_no_number_is_named_wherever_it_stands(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_text("p,y\n" + "0.5,1\n" * rows + "0.5,maybe\n" + "0.5,0\n" * 3)
    with refused("y_true", "maybe", row=rows, column="y", option="pos_label"):
        scan(path)


WORDED = {
    "csv": ("p,y\n", "0.1,true\n0.9,False\n", "0.5,maybe\n", "0.5,1\n"),
    "jsonl": (
        "",
        '{"p": 0.1, "y": true}\n{"p": 0.9, "y": false}\n',
        '{"p": 0.5, "y": "maybe"}\n',
        '{"p": 0.5, "y": 1}\n',
    ),
}


@pytest.mark.parametrize("block", [40, 1 << 24])
@pytest.mark.parametrize("ending", WORDED)
def test_one_bad_label_among_true_and_false_is_one_row(tmp_path, monkeypatch, ending, block):
    monkeypatch.setattr(text, "BLOCK_BYTES", block)
    header, words, bad, number = WORDED[ending]
    good, broken = tmp_path / f"2.{ending}", tmp_path / f"1.{ending}"
    good.write_text(header + words * 50)
    broken.write_text(header + words * 50 + bad)
    found = scan([broken, good], on_invalid="drop")
    assert (found.n, found.dropped) == (200, {"invalid label": 1})
    with refused("y_true", "maybe", row=100, column="y", option="pos_label"):
        scan(broken)
    for mixed in (words + number, number + words):
        good.write_text(header + mixed)
        again = cal.Sketch.from_arrays([1, 0, 1], [0.1, 0.9, 0.5])
        assert scan(good) == again


def test_only_an_empty_cell_is_a_missing_group(tmp_path, small_blocks):
    rows = [(0.5, 1, name) for name in ("NA", "null", "nan", "N/A", "", "x")]
    path = tmp_path / "a.csv"
    path.write_text(written(rows, "\n"))
    assert set(scan(path, by="note")) == {"NA", "null", "nan", "N/A", None, "x"}
    path.write_text("p,y,note\n50%,1,NA\n40,0,\nNA,0,x\n")
    found = scan(path, by="note", percent=True, on_invalid="drop")
    assert list(found) == ["NA", "x", None]
    assert found["x"].dropped == {"missing prediction": 1}


# -- JSON lines --------------------------------------------------------------------------------------


def test_a_column_that_begins_late(tmp_path, monkeypatch):
    rows = [{"p": 0.5, "g": None}] * (text.PEEK_LINES + 50)
    rows += [{"p": 0.5, "y": 1, "g": 7}, {"p": 0.25, "y": 0, "g": None}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = scan(path, by="g", on_invalid="drop")
    assert {key: part.n for key, part in found.items()} == {7: 1, None: 1}
    assert found[None].dropped == {"missing label": text.PEEK_LINES + 50}
    monkeypatch.setattr(text, "BLOCK_BYTES", 400)
    with refused(holds="'y'"):
        scan(path)  # nowhere in the first block


@pytest.mark.parametrize("late", [[1, 2], ["a", "b"], [1.5, 2], [True, False]])
def test_groups_that_are_null_for_a_whole_block(tmp_path, small_blocks, late):
    rows = [{"p": 0.5, "y": 1, "g": None}] * 30
    rows += [{"p": 0.5, "y": 1, "g": value} for value in late]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {key: part.n for key, part in scan(path, by="g").items()} == {
        None: 30,
        **dict.fromkeys(late, 1),
    }


@pytest.mark.parametrize(
    ("nulls", "late", "holds"),
    [
        (0, [1, "a"], "type"),
        (0, [1] * 40 + ["a"], "'a'"),
        (0, [[1]], "list"),
        (30, [[1]], "list"),
        (30, [{"a": 1}], "struct"),
    ],
)
def test_groups_of_several_kinds_are_refused(tmp_path, small_blocks, nulls, late, holds):
    rows = [{"p": 0.5, "y": 1, "g": value} for value in [None] * nulls + late]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with refused(holds=holds):
        scan(path, by="g")


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({"percent": True}, lambda p: 100 * p),
        ({"from_logits": True}, lambda p: math.log(p / (1 - p))),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_other_forms_are_converted_as_they_are_read(tmp_path, small_blocks, options, read, ending):
    p = [k / 50 + 0.01 for k in range(50)]
    table = pyarrow.table({"y": [k % 2 for k in range(50)], "p": [read(value) for value in p]})
    path = tmp_path / f"x.{ending}"
    (pyarrow.csv.write_csv if ending == "csv" else pyarrow.parquet.write_table)(table, path)
    found = scan(path, **options)
    assert found == cal.Sketch.from_arrays(table["y"].to_numpy(), table["p"].to_numpy(), **options)
    assert scan(table, **options) == found


@pytest.mark.parametrize("form", [{}, {"percent": True}, {"from_logits": True}])
def test_text_is_out_of_range_where_rows_may_be_dropped(tmp_path, small_blocks, form):
    path = tmp_path / "x.csv"
    path.write_text("p,y,w\n2,1,1\nhigh,0,1\n0.3,perhaps,1\n0.3,0,heavy\n0.3,,1\n0.4,0,1\n")
    found = scan(path, sample_weight="w", on_invalid="drop", **form)
    valid = 1 if not form else 2
    assert (found.n, sum(found.dropped.values())) == (valid, 6 - valid)
    assert found.dropped["invalid weight"] == found.dropped["missing label"] == 1


@pytest.mark.parametrize(
    "lines", ['{"p": 0.5, "y": 1}{"p": 0.5, "y": 1}', '{\n"p": 0.5}', "no JSON"]
)
def test_a_file_that_does_not_begin_with_objects_is_named_by_its_line(tmp_path, lines):
    (tmp_path / "a.jsonl").write_text("\n" + lines + "\n")
    with refused(row=0, file="a.jsonl"):
        scan(tmp_path / "a.jsonl")


def test_text_that_is_not_utf8_is_named_by_its_line(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"p,y,g,z\n0.5,1,a,\xe9\n0.5,0,\xe9,b\n")
    with refused(file="a.csv", holds="UTF"):
        scan(tmp_path / "a.csv", by="g")
    assert scan(tmp_path / "a.csv").n == 2  # the column is not read
    (tmp_path / "a.csv").write_bytes(b"p,y,g\n50%,1,a\n40,0,\xe9\n")
    with refused(row=1, file="a.csv", holds="UTF"):
        scan(tmp_path / "a.csv", by="g", percent=True)


def test_a_folder_whose_log_says_which_files_count_is_refused(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("{}", encoding="utf-8")
    (tmp_path / "part.csv").write_text("y,p\n1,0.5\n", encoding="utf-8")
    with refused("data", holds=("_delta_log", "Delta Lake")):
        cal.scan(tmp_path, y_true="y", y_prob="p")
