"""Files and columns that the command reads, and its messages where it cannot."""

from __future__ import annotations

import gzip
import json

import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.data.sketch_file import from_json
from calibrant.io.files import DataFile

CSV = b"p,y\n0.2,0\n0.7,1\n0.9,1\n"


def scanned(calibrant, path, *words, **more):
    """The sketch that `calibrant scan` prints."""
    done = calibrant("scan", path, "-o", "-", *words, **more)
    assert done.code == 0, done.err
    return from_json(done.out)


def test_every_format_gives_the_same_sketch(calibrant, tmp_path, rows) -> None:
    table = pyarrow.table({"p": rows["p"], "y": rows["y"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    pyarrow.feather.write_feather(table, tmp_path / "a.arrow", compression="uncompressed")
    with pyarrow.ipc.new_stream(str(tmp_path / "stream.arrow"), table.schema) as stream:
        stream.write_table(table)
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "a.tsv").write_text((tmp_path / "a.csv").read_text().replace(",", "\t"))
    expected = cal.Sketch.from_arrays(rows["y"], rows["p"])
    for name in ("a.parquet", "a.csv", "a.arrow", "stream.arrow", "a.jsonl", "a.tsv"):
        assert scanned(calibrant, tmp_path / name) == expected, name
        stdin = (tmp_path / name).read_bytes()
        assert scanned(calibrant, "-", stdin=stdin) == expected, name
    assert scanned(calibrant, tmp_path / "a.jsonl.gz") == expected


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize(
    "words", ["assess", "assess --by model", "scan -o -", "monitor", "audit --column w"]
)
def test_a_file_is_opened_for_its_columns_and_for_its_rows(
    calibrant, write_rows, tmp_path, rows, monkeypatch, words, ending
) -> None:
    path, opened = tmp_path / f"rows{ending}", []
    write_rows(pyarrow.table(rows), path)
    for name in ("open", "stream"):
        original = getattr(DataFile, name)
        monkeypatch.setattr(DataFile, name, lambda f, o=original: (opened.append(f.path), o(f))[1])
    assert calibrant(*words.split(), path).code == 0
    assert opened == [str(path)] * 2


def test_chosen_columns_are_told(calibrant, parquet) -> None:
    done = calibrant("scan", parquet, "-o", "-")
    assert "predictions from column 'p' and outcomes from 'y'" in done.err
    for prob, label in (("--prob", "--label"), ("--y-prob", "--y-true")):
        done = calibrant("scan", parquet, "-o", "-", prob, "p", label, "y")
        assert done.err.startswith("Wrote")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p,y\n25,0\n75,1\n", ["--percent"]),
        ("p,y\n0.25,no\n0.75,yes\n", ["--pos-label", "yes"]),
        ("p,y\n0.25,-1\n0.75,1\n", ["--pos-label", "1"]),
        ("p;y\n0.25;0\n0.75;1\n", ["--sep", ";"]),
        ("p,y\n0.25,0\n0.75,1\n7,1\n", ["--on-invalid", "drop"]),
    ],
)
def test_options_that_read_values(calibrant, tmp_path, text, words) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    sketch = scanned(calibrant, path, *words)
    assert sketch.n == 2
    assert cal.smooth_ece(sketch) == cal.smooth_ece([0, 1], [0.25, 0.75])


def test_rows_that_were_dropped_are_counted(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p,y\n0.25,0\n,1\n0.75,1\n7,1\n")
    assert "2 rows dropped" in calibrant("scan", path, "-o", "-", "--on-invalid", "drop").err
    done = calibrant("assess", path, "--on-invalid", "drop")
    assert "Dropped: 1 row, missing prediction; 1 row, prediction out of range." in done.err


def test_classes(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p_cat,p_dog,p_owl,label,w\n.7,.2,.1,cat,2\n.2,.5,.3,owl,1\n")
    words = ["--prob", "p_*", "--multiclass"]
    assert scanned(calibrant, path, *words, "confidence").n == 2
    assert list(scanned(calibrant, path, *words, "classwise")) == ["cat", "dog", "owl"]
    joined = ["--prob", "p_cat,p_dog,p_owl", "--multiclass", "classwise"]
    assert list(scanned(calibrant, path, *joined)) == ["cat", "dog", "owl"]
    assert list(scanned(calibrant, path, *words, "top-label")) == ["cat", "dog"]
    weighted = scanned(calibrant, path, *words, "confidence", "--weight", "w")
    assert weighted.total_weight == 3
    lines = tmp_path / "x.jsonl"
    lines.write_text('{"probs": [0.7, 0.3], "label": 0}\n{"probs": [0.2, 0.8], "label": 1}\n')
    assert scanned(calibrant, lines, "--multiclass", "confidence").n == 2


def test_groups_weights_and_several_models(calibrant, parquet, rows) -> None:
    sketches = scanned(calibrant, parquet, "--by", "model,day")
    assert (sketches.by, len(sketches)) == (("model", "day"), 8)
    assert scanned(calibrant, parquet, "--weight", "w").weighted
    assert scanned(calibrant, parquet, "--sample-weight", "w").weighted
    path = parquet.with_name("wide.parquet")
    table = pyarrow.table({"y": rows["y"], "a": rows["p"], "b": rows["p"] / 2})
    pyarrow.parquet.write_table(table, path)
    wide = scanned(calibrant, path, "--prob", "a", "--prob", "b")
    assert list(wide) == ["a", "b"]
    assert list(scanned(calibrant, path, "--prob", "a, b")) == ["a", "b"]
    assert wide["b"] == cal.Sketch.from_arrays(rows["y"], rows["p"] / 2)


def test_files_apart_or_together(calibrant, tmp_path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(CSV)
    assert scanned(calibrant, tmp_path / "*.csv").n == 6
    assert list(scanned(calibrant, tmp_path, "--per-file")) == ["a.csv", "b.csv"]


def test_group_names(calibrant, tmp_path) -> None:
    table = {
        "p": [0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.1, 0.9],
        "y": [0, 1, 0, 1, 1, 1, 0, 1],
        "season": [2016.0, 2016.0, None, None, 2017.0, 2017.0, 2017.0, 2017.0],
        "name": ["", "", None, None, "a\x1b[31m", "a\x1b[31m", " ", " "],
    }
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    done = calibrant("monitor", path, "--batch", "season")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["2016", "2017", "(missing)"]
    done = calibrant("assess", path, "--by", "name")
    named = {line.partition("  ")[0] for line in done.out.splitlines()[1:5]}
    assert named == {"(empty)", "' '", "a\\x1b[31m", "(missing)"}


def test_a_group_whose_rows_were_all_dropped_stays_in_a_sketch(calibrant, tmp_path) -> None:
    path, one = tmp_path / "rows.csv", tmp_path / "one.json"
    path.write_text("p,y,g\n0.2,0,a\n0.7,1,a\n0.3,2,b\n0.3,7,b\n")
    written = cal.scan(path, y_true="y", y_prob="p", by="g", on_invalid="drop")
    assert calibrant("scan", path, "--by", "g", "--on-invalid", "drop", "-o", one).code == 0
    assert cal.load(one) == written
    assert calibrant("merge", one, "-o", tmp_path / "two.parquet").code == 0
    assert cal.load(tmp_path / "two.parquet") == written
    done = calibrant("assess", one)
    assert (done.code, "Left out 1 group without a valid row." in done.err) == (0, True)


def test_sketches_merge(calibrant, tmp_path, parquet) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.json"
    for path in (one, two):
        assert calibrant("scan", parquet, "--by", "model", "-o", path).code == 0
    done = calibrant("merge", one, two, "-o", "-")
    assert from_json(done.out)["good"].n == 400
    assert "800 rows in 2 groups" in done.err
    both = tmp_path / "4.json"
    assert calibrant("scan", parquet, "--by", "day,model", "-o", both).code == 0
    done = calibrant("merge", one, both, "--by", "model", "-o", "-")
    assert from_json(done.out)["good"].n == 400


@pytest.mark.parametrize(
    ("words", "stdin", "text"),
    [
        (["-"], b"", "standard input is empty"),
        (["-"], gzip.compress(CSV, mtime=0), "standard input is compressed"),
        (["-", "-"], CSV, "twice"),
    ],
)
def test_standard_input_that_cannot_be_read(calibrant, words, stdin, text) -> None:
    done = calibrant("scan", *words, "-o", "-", stdin=stdin)
    assert (done.code, text in done.err, "calibrant-" in done.err) == (2, True, False), done.err


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("words", ["", "--by g", "--per-file", "--pos-label 1"])
def test_a_wrong_value_is_named_with_its_file(
    calibrant, write_rows, tmp_path, words, ending
) -> None:
    for name, last in (("a", 0.75), ("b", 700.0), ("c", 0.75)):
        table = pyarrow.table({"p": [0.5, 0.25, last], "y": [1, 0, 1], "g": ["u", "u", "v"]})
        write_rows(table, tmp_path / f"{name}{ending}")
    done = calibrant("assess", tmp_path, *words.split())
    assert (done.code, f"b{ending}" in done.err, "700" in done.err) == (2, True, True), done.err
    assert "column 'p'" in done.err


def test_a_query_result_is_assessed(calibrant, parquet, tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = calibrant("sql", "preds", "--by", "model").out
    preds = pyarrow.parquet.read_table(parquet)  # noqa: F841  (the query names it)
    pyarrow.parquet.write_table(duckdb.sql(query).to_arrow_table(), tmp_path / "result.parquet")
    found = calibrant("assess", tmp_path / "result.parquet", "--json").json
    expected = calibrant("assess", parquet, "--by", "model", "--json").json
    errors = [
        {one["group"]: one["smooth_ece"] for one in each["groups"]} for each in (found, expected)
    ]
    assert errors[0] == errors[1]
