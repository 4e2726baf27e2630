"""What the command reads, how it finds columns, and what it says when it cannot."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.cli.output import printable

CSV = b"p,y\n0.2,0\n0.7,1\n0.9,1\n"


def scanned(calibrant, path, *words, **more):
    """The sketch that `calibrant scan` prints."""
    done = calibrant("scan", path, "-o", "-", *words, **more)
    assert done.code == 0, done.err
    return cal.data.sketch_file.from_json(done.out)


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
    for name in ("a.parquet", "a.csv", "a.arrow", "stream.arrow", "a.jsonl", "a.jsonl.gz", "a.tsv"):
        assert scanned(calibrant, tmp_path / name) == expected, name
    for name in ("a.parquet", "a.csv", "a.arrow", "stream.arrow", "a.jsonl", "a.tsv"):
        stdin = (tmp_path / name).read_bytes()
        assert scanned(calibrant, "-", stdin=stdin) == expected, name


def test_it_says_which_columns_it_chose(calibrant, parquet) -> None:
    done = calibrant("scan", parquet, "-o", "-")
    assert "predictions from column 'p' and outcomes from 'y'" in done.err
    assert calibrant("scan", parquet, "-o", "-", "--prob", "p", "--label", "y").err.startswith(
        "Wrote"
    )


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("a,b", ("x.csv", "predictions", "'a', 'b'", "--prob NAME")),
        ("p,score,y", ("predictions", "'p', 'score'", "--prob NAME")),
        ("p,b", ("outcomes", "'b'", "--label NAME")),
    ],
)
def test_columns_that_are_not_obvious_are_listed(calibrant, tmp_path, header, named) -> None:
    path = tmp_path / "x.csv"
    path.write_text(header + "\n" + ",".join("1" * len(header.split(","))) + "\n")
    done = calibrant("scan", path, "-o", "-")
    assert done.code == 2
    for piece in named:
        assert piece in done.err


def test_a_column_that_does_not_exist(calibrant, parquet) -> None:
    done = calibrant("scan", parquet, "-o", "-", "--by", "modell")
    assert done.code == 2
    assert "'modell'" in done.err
    assert "'model'" in done.data


def test_values_that_need_an_option(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"

    def refused(text: str, cure: str) -> None:
        path.write_text(text)
        done = calibrant("scan", path, "-o", "-")
        assert (done.code, done.out) == (2, "")
        assert done.err.count("Error") == 1
        assert cure in done.err
        assert "Traceback" not in done.err

    refused("p,y\n40,0\n70,1\n", "`--percent`")
    refused("p,y\n-3.2,0\n2.5,1\n0.1,0\n", "`--from-logits`")
    refused("p,y\n0.5,no\n0.7,yes\n", "--pos-label")
    refused("p,y\n0.5,-1\n0.7,1\n", "--pos-label")
    refused("p,y\n0.5,0.5\n0.7,1\n0.7,0\n", "`--outcomes soft`")
    refused("p,y\n,0\n0.7,1\n", "`--on-invalid drop`")
    refused("p,y\n0.5,0\nhigh,1\n", "line 3")
    refused("p,y\n0.5,0\n0.7,1,1\n", "line 3")
    refused("p,y\n", "`FILES`")
    refused("", "x.csv")


def test_options_that_read_values(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    expected = cal.Sketch.from_arrays([0, 1], [0.25, 0.75])
    for text, words in [
        ("p,y\n25,0\n75,1\n", ["--percent"]),
        ("p,y\n0.25,no\n0.75,yes\n", ["--pos-label", "yes"]),
        ("p,y\n0.25,-1\n0.75,1\n", ["--pos-label", "1"]),
        ("p,y\n0.25,false\n0.75,true\n", ["--pos-label", "true"]),
    ]:
        path.write_text(text)
        assert scanned(calibrant, path, *words) == expected, words
    path.write_text("p,y\n0,0\n1.0986122886681098,1\n")
    assert scanned(calibrant, path, "--from-logits").n == 2
    path.write_text("p,y\n0.5,0.5\n0.7,1\n")
    assert scanned(calibrant, path, "--outcomes", "soft").weighted
    path.write_text("p,y\n0.25,0\n,1\n0.75,1\n7,1\n")
    sketch = scanned(calibrant, path, "--on-invalid", "drop")
    assert dict(sketch.dropped) == {"missing prediction": 1, "prediction out of range": 1}
    assert "2 rows dropped" in calibrant("scan", path, "-o", "-", "--on-invalid", "drop").err


@pytest.mark.parametrize(
    ("name", "good", "odd"),
    [("x.csv", "{},{}\n", "{},{}\n"), ("x.jsonl", '{{"p":{},"y":{}}}\n', '{{"p":"{}","y":{}}}\n')],
)
@pytest.mark.parametrize("more", [(), ("--outcomes", "soft")])
def test_text_among_numbers(calibrant, tmp_path, name, good, odd, more) -> None:
    path = tmp_path / name
    head = "p,y\n" if name == "x.csv" else ""
    rows = [(0.2, 0), (0.9, 1), (0.4, 1), (0.3, 0)]
    path.write_text(head + "".join(good.format(*row) for row in rows) + odd.format("85%", 1))
    done = calibrant("assess", path, *more)
    assert (done.code, "85%" in done.err, "`--percent`" in done.err) == (2, True, True), done.err
    if name == "x.jsonl" and not more:
        assert "`--log jsonl`" in done.err
    done = calibrant("assess", path, *more, "--on-invalid", "drop", "--json")
    found = json.loads(done.out)["results"][0]
    assert (found["n"], found["dropped"]) == (4, {"prediction out of range": 1})


def test_percentages_with_and_without_their_signs(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p,y,g\n20%,0,a\n85 %,1,b\n30,0,\n")
    found = scanned(calibrant, path, "--percent", "--by", "g")
    assert {name: round(sketch.cells[0] / sketch.nodes, 3) for name, sketch in found.items()} == {
        "a": 0.2,
        "b": 0.85,
        None: 0.3,
    }
    path.write_text("p,y\n0.2,0\n0.85,1\n")
    for more in ((), ("--outcomes", "soft")):
        assert "`--percent`" in calibrant("assess", path, "--percent", *more).err


def test_options_that_would_do_nothing_are_refused(calibrant, parquet, tmp_path) -> None:
    def refused(*words, said: str) -> None:
        done = calibrant(*words)
        assert (done.code, said in done.err) == (2, True), done.err

    refused("assess", parquet, "--filter", "x", said="`--filter`")
    refused("assess", parquet, "--prob", "p", "--label", "p", said="`--label`")
    refused("assess", parquet, "--label", "y", "--by", "y", said="`--by`")
    refused("assess", parquet, "--prob", "p", "--prob", "p", said="`--prob`")
    refused("assess", parquet, "--json", "--details", said="`--details`")


def test_a_label_that_does_not_occur(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(CSV)
    done = calibrant("scan", path, "-o", "-", "--pos-label", "yes")
    assert done.code == 2
    assert "`--pos-label`" in done.err


def test_classes(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p_cat,p_dog,p_owl,label\n.7,.2,.1,cat\n.2,.5,.3,owl\n")
    words = ["--prob", "p_*", "--multiclass"]
    assert scanned(calibrant, path, *words, "confidence").n == 2
    assert list(scanned(calibrant, path, *words, "classwise")) == ["cat", "dog", "owl"]
    assert list(scanned(calibrant, path, *words, "top-label")) == ["cat", "dog"]
    lines = tmp_path / "x.jsonl"
    lines.write_text(
        '{"probs": [0.7, 0.2, 0.1], "label": 0}\n{"probs": [0.2, 0.5, 0.3], "label": 2}\n'
    )
    assert scanned(calibrant, lines, "--multiclass", "confidence").n == 2
    done = calibrant("scan", path, "-o", "-", "--prob", "p_cat", "--multiclass", "confidence")
    assert done.code == 2, done.err
    done = calibrant("scan", path, "-o", "-", *words, "confidence", "--percent")
    assert "`--percent`" in done.err


@pytest.mark.parametrize(
    ("columns", "cut"),
    [
        (columns, cut)
        for columns, shared in [
            ("p_dog,p_deer", 3),
            ("dog,deer", 1),
            ("pdog,pdeer", 2),
            ("a.a,a.ab", 2),
        ]
        for cut in range(shared + 1)
    ],
)
def test_classes_are_named_as_the_labels_are(calibrant, tmp_path, columns, cut) -> None:
    """Of what all columns begin with, the labels may lack any part."""
    first, second = columns.split(",")
    path = tmp_path / "x.csv"
    path.write_text(
        f"{columns},label\n.7,.3,{first[cut:]}\n.2,.8,{second[cut:]}\n.6,.4,{first[cut:]}\n"
    )
    found = scanned(calibrant, path, "--prob", first, "--prob", second, "--multiclass", "classwise")
    assert list(found) == [first[cut:], second[cut:]]


@pytest.mark.parametrize(
    "wrong", ["[0.7, 0.3]", "null", '"0.7, 0.2, 0.1"', "[[1], [2], [3]]", "0.5"]
)
def test_rows_that_are_no_list_like_the_others(calibrant, tmp_path, wrong) -> None:
    path = tmp_path / "x.jsonl"
    good = '{"probs": [0.7, 0.2, 0.1], "label": 0}\n'
    if wrong in ("null", "[0.7, 0.3]"):  # Arrow reads columns of one type
        path.write_text(f'{good}{good}{{"probs": {wrong}, "label": 1}}\n')
        done = calibrant("scan", path, "-o", "-", "--multiclass", "confidence")
        assert (done.code, "line 3 of" in done.err) == (2, True), done.err
        dropped = scanned(calibrant, path, "--multiclass", "confidence", "--on-invalid", "drop")
        assert dropped.n == 2
        assert sum(dropped.dropped.values()) == 1
    else:
        path.write_text(f'{{"probs": {wrong}, "label": 1}}\n' * 3)
        done = calibrant("scan", path, "-o", "-", "--multiclass", "confidence")
        assert (done.code, done.refusal is not None) == (2, True), done.err


@pytest.mark.parametrize("kind", ["confidence", "top-label", "classwise"])
def test_classes_with_weights(calibrant, tmp_path, kind) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p_cat,p_dog,label,w\n.7,.3,cat,2\n.2,.8,cat,1\n.9,.1,dog,3\n")
    found = scanned(calibrant, path, "--prob", "p_*", "--multiclass", kind, "--weight", "w")
    parts = [found] if isinstance(found, cal.Sketch) else found.values()
    assert sum(part.weights.sum() for part in parts) == (12 if kind == "classwise" else 6)


def test_groups_weights_and_several_models(calibrant, parquet, rows) -> None:
    sketches = scanned(calibrant, parquet, "--by", "model,day")
    assert sketches.by == ("model", "day")
    assert len(sketches) == 8
    assert scanned(calibrant, parquet, "--weight", "w").weighted
    path = parquet.with_name("wide.parquet")
    pyarrow.parquet.write_table(
        pyarrow.table({"y": rows["y"], "a": rows["p"], "b": rows["p"] / 2}), path
    )
    wide = scanned(calibrant, path, "--prob", "a", "--prob", "b")
    assert list(wide) == ["a", "b"]
    assert wide["b"] == cal.Sketch.from_arrays(rows["y"], rows["p"] / 2)


def test_files_apart_or_together(calibrant, tmp_path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(CSV)
    assert scanned(calibrant, tmp_path / "*.csv").n == 6
    assert list(scanned(calibrant, tmp_path, "--per-file")) == ["a.csv", "b.csv"]


def test_files_of_one_name_stay_apart(calibrant, tmp_path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_bytes(CSV)
    paths = [tmp_path / "one" / "x.csv", tmp_path / "two" / "x.csv"]
    for more in ((), ("--outcomes", "soft")):
        found = scanned(calibrant, *paths, "--per-file", *more)
        assert list(found) == [str(path) for path in paths]


def test_it_says_where_models_may_have_been_mixed(calibrant, parquet, tmp_path) -> None:
    assert "`--by model` gives a line for each" in calibrant("assess", parquet).err
    done = calibrant("report", parquet, "-o", tmp_path / "r.json")
    assert "`--by model`" in done.err
    for words in (("--by", "model"), ("--by", "day"), ("--cluster", "model")):
        assert "gives a line for each" not in calibrant("assess", parquet, *words).err


def test_groups_are_named_as_people_would(calibrant, tmp_path) -> None:
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
    named = [line.partition("  ")[0] for line in done.out.splitlines()[1:]]
    assert set(named[:4]) == {"(empty)", "' '", "a\\x1b[31m", "(missing)"}
    calibrant("report", path, "--by", "name", "-o", tmp_path / "r.json")
    groups = json.loads((tmp_path / "r.json").read_text())["groups"]
    assert {group["name"] for group in groups} == {"(empty)", "' '", "a�[31m", "(missing)"}
    assert "'a\\x1b[31m'" in calibrant("assess", path, "--by", "a\x1b[31m").err


def test_a_group_of_which_all_rows_were_dropped_is_kept_in_a_sketch(calibrant, tmp_path) -> None:
    path, one = tmp_path / "rows.csv", tmp_path / "one.json"
    path.write_text("p,y,g\n0.2,0,a\n0.7,1,a\n0.3,2,b\n0.3,7,b\n")
    written = cal.scan(path, y_true="y", y_prob="p", by="g", on_invalid="drop")
    done = calibrant("scan", path, "--by", "g", "--on-invalid", "drop", "-o", one)
    assert "2 rows dropped" in done.err
    assert cal.load(one) == written
    assert calibrant("merge", one, "-o", tmp_path / "two.parquet").code == 0
    assert cal.load(tmp_path / "two.parquet") == written
    assert calibrant("assess", one).code == 0


def test_sketches_merge(calibrant, tmp_path, parquet, rows) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.json"
    assert calibrant("scan", parquet, "--by", "model", "-o", one).code == 0
    assert calibrant("scan", parquet, "--by", "model", "-o", two).code == 0
    done = calibrant("merge", one, two, "-o", "-")
    both = cal.data.sketch_file.from_json(done.out)
    assert both["good"].n == 400
    assert "800 rows in 2 groups" in done.err
    done = calibrant("merge", one, parquet, "-o", "-")
    assert (done.code, parquet.name in done.data) == (2, True)
    done = calibrant("merge", one, "-o", tmp_path / "x.txt")
    assert (done.code, "x.txt" in done.data) == (2, True)
    done = calibrant("scan", one, "-o", "-", "--percent")
    assert (done.code, done.refusal is not None) == (2, True)
    assert list(scanned(calibrant, one, "--by", "model")) == ["good", "halved"]
    other, both = tmp_path / "3.json", tmp_path / "4.json"
    assert calibrant("scan", parquet, "--by", "day", "-o", other).code == 0
    assert calibrant("scan", parquet, "--by", "day,model", "-o", both).code == 0
    done = calibrant("merge", one, other, "-o", "-")
    assert (done.code, "model" in done.data, "day" in done.data) == (2, True, True)
    done = calibrant("merge", one, both, "-o", "-")
    assert (done.code, "`--by model`" in done.err) == (2, True)
    done = calibrant("merge", one, both, "--by", "model", "-o", "-")
    assert cal.data.sketch_file.from_json(done.out)["good"].n == 400
    done = calibrant("assess", one, "--by", "day")
    assert (done.code, "roll_up" in done.err, "model" in done.data) == (2, False, True)
    assert calibrant("scan", parquet, "--by", "day", "--scale", "logit", "-o", both).code == 0
    done = calibrant("merge", other, both, "-o", "-")
    assert (done.code, "`--scale`" in done.err, "rebin" in done.err) == (2, True, False)
    done = calibrant("scan", one, parquet, "-o", "-")
    assert (done.code, len(done.refusal.seen)) == (2, 2)


def test_what_is_not_there_or_not_readable(calibrant, tmp_path, parquet) -> None:
    done = calibrant("scan", tmp_path / "nothing.csv", "-o", "-")
    assert (done.code, "`FILES`" in done.err) == (2, True)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(parquet.read_bytes()[:500])
    done = calibrant("scan", cut, "-o", "-")
    assert (done.code, "cut.parquet" in done.err) == (2, True)
    done = calibrant("scan", "-", "-o", "-", stdin=b"")
    assert (done.code, done.refusal is not None) == (2, True)
    done = calibrant("scan", "-", "-o", "-", stdin=b"p;y\n0,2;0\n")
    assert (done.code, "separated by ';'" in done.err) == (0, True)
    assert cal.data.sketch_file.from_json(done.out) == cal.Sketch.from_arrays([0], [0.2])
    done = calibrant("scan", "-", "-", "-o", "-", stdin=CSV)
    assert (done.code, done.refusal is not None) == (2, True)
    done = calibrant("scan", "-", "-o", "-", stdin=gzip.compress(CSV))
    assert (done.code, done.refusal is not None) == (2, True)
    done = calibrant("scan", parquet, "-o", tmp_path / "no" / "such" / "folder.json")
    assert (done.code, "such" in done.data) == (2, True)


def test_debug_shows_the_traceback_and_keeps_the_message(calibrant, tmp_path) -> None:
    for words in (["--debug", "scan"], ["scan", "--debug"]):
        done = calibrant(*words, tmp_path / "nothing.csv", "-o", "-")
        assert done.code == 2
        assert "Traceback" in done.err
        assert done.err.splitlines()[-1].startswith("Error: ")


def test_wrong_options_are_refused(calibrant, parquet) -> None:
    for words in (["scan", parquet], ["scam"], ["scan", parquet, "-o", "-", "--on-invalid", "x"]):
        done = calibrant(*words)
        assert done.code == 2
        assert "Traceback" not in done.err
    assert calibrant("--version").out.startswith("calibrant 0.")
    assert "Exit codes" in calibrant("--help").out


@pytest.mark.parametrize(
    "name", ["\x1b]0;owned\x07", "\x1b[2Jgone", "a\rb", "\u202egnp", "x" * 10_000_000]
)
def test_names_cannot_touch_the_terminal(calibrant, tmp_path, name) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({name: [0.5], "y": np.array([1]), "g": [name]}), path)
    done = calibrant("scan", path, "-o", "-")
    assert done.code == 2
    assert len(done.err) < 6000
    assert all(c.isprintable() or c == "\n" for c in done.err)


def test_text_for_terminals() -> None:
    assert printable("\x9b31m") == "\\x9b31m"
    assert printable("naïve 模型") == "naïve 模型"


def test_datasets(calibrant, tmp_path: Path, monkeypatch) -> None:
    listed = calibrant("datasets", "--json")
    assert "imagenet_resnet34" in [each["name"] for each in json.loads(listed.out)["datasets"]]
    assert "solar_flares_daffs_c1" in calibrant("datasets").out
    assert "licence" in calibrant("datasets", "solar_flares_daffs_c1").out
    done = calibrant("datasets", "solar_flare")
    assert (done.code, "'solar_flares" in done.data) == (2, True)
    done = calibrant("datasets", "-o", tmp_path / "x.csv")
    assert (done.code, done.refusal is not None) == (2, True)
    done = calibrant("datasets", "solar_flares_daffs_c1", "-o", tmp_path / "x.xlsx")
    assert (done.code, "x.xlsx" in done.data) == (2, True)


def test_utf_16_is_named(calibrant, tmp_path) -> None:
    (tmp_path / "x.csv").write_text("p,y\n0.5,1\n0.6,0\n", encoding="utf-16")
    done = calibrant("assess", tmp_path / "x.csv")
    assert (done.code, "UTF-16" in done.err, len(done.err.splitlines())) == (2, True, 1)


def test_text_and_lists_among_predictions_come_with_their_cure(calibrant, tmp_path) -> None:
    (tmp_path / "x.csv").write_text("p,y\n0.5,1\nabc,0\n")
    assert "`--on-invalid drop`" in calibrant("assess", tmp_path / "x.csv").err
    table = pyarrow.table({"p": [[0.2, 0.8], [0.5, 0.5]], "y": [1, 0]})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert "`--multiclass confidence`" in calibrant("assess", tmp_path / "x.parquet").err


@pytest.mark.parametrize(
    "more", [[], ["--pos-label", "1"], ["--percent"], ["--on-invalid", "drop"]]
)
@pytest.mark.parametrize("odd", ["", "50%"])
def test_answers_of_any_length_stand_beside_the_rows(calibrant, tmp_path, more, odd) -> None:
    """Python's reader of CSV stops at 131,072 characters."""
    folder = tmp_path / "not.tsv"
    folder.mkdir()
    path = folder / "x.csv"
    long = "word, " * 40_000
    path.write_text(f'p,y,answer\n0.5,1,a\n0.25,0,"{long}"\n0.75,1,b\n{odd},0,c\n')
    done = calibrant("scan", path, "-o", tmp_path / "out.json", *more)
    assert "fault" not in done.err
    if "drop" in more or (odd and "--percent" in more):
        assert done.code == 0, done.err
        assert cal.load(tmp_path / "out.json").n == (4 if odd and "--percent" in more else 3)
    else:
        assert (done.code, "line 5" in done.err or "row 3" in done.err) == (2, True), done.err


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        "",
        "--by g",
        "--per-file",
        "--cluster g",
        "--pos-label 1",
        "--pos-label 1 --by g",
        "--percent",
        "--outcomes soft --per-file",
    ],
)
def test_what_is_wrong_in_one_of_several_files_is_named_with_it(
    calibrant, write_rows, tmp_path, words, ending
) -> None:
    """By the row in that file, not in a group or in all of them together."""
    for name, last in (("a", 0.75), ("b", 700.0), ("c", 0.75)):
        table = pyarrow.table({"p": [0.5, 0.25, last], "y": [1, 0, 1], "g": ["u", "u", "v"]})
        write_rows(table, tmp_path / f"{name}{ending}")
    done = calibrant("assess", tmp_path, *words.split())
    place = {".parquet": "row 2", ".csv": "line 4", ".jsonl": "line 3"}[ending]
    assert (done.code, place in done.err, f"b{ending}" in done.err) == (2, True, True), done.err
    assert float(done.refusal.seen) == 700
    assert "Note" not in done.err


def test_clusters_of_classes_follow_the_rows_that_are_kept(calibrant, tmp_path) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    rows = {
        "p_a": p,
        "p_b": 1 - p,
        "y": np.where(rng.random(300) < p, "a", "b"),
        "day": np.arange(300) // 5,
    }
    frame = pl.DataFrame(rows)
    whole, holed = tmp_path / "whole.parquet", tmp_path / "holed.parquet"
    frame.filter(pl.col("day") != 7).write_parquet(whole)
    hole = pl.when(pl.col("day") == 7).then(None).otherwise(pl.col("p_a"))
    frame.with_columns(p_a=hole).write_parquet(holed)
    words = ("--prob", "p_*", "--multiclass", "confidence", "--cluster", "day", "--json")
    meant = calibrant("assess", whole, *words)
    found = calibrant("assess", holed, *words, "--on-invalid", "drop")
    assert found.code == meant.code == 0
    meant, found = (json.loads(done.out)["results"][0] for done in (meant, found))
    for name in ("smooth_ece", "interval", "p_value", "clusters"):
        assert found[name] == meant[name]
