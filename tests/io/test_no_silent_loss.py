"""Sources that once gave wrong answers, or none, without a word: names, digits, weights, replaced files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.io import answer_logs
from calibrant.io.answers import read_answers

THREES = "".join(unicodedata.lookup(f"ARABIC-INDIC DIGIT {name}") for name in ("ONE", "THREE"))


def scan(source, **options):
    return cal.scan(source, **{"y_true": "y", "y_prob": "p", **options})


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", ["^p.*$", "*"])
def test_a_column_of_polars_is_selected_by_its_exact_name(name, lazy):
    frame = pl.DataFrame({"pp": [0.9, 0.9], name: [0.2, 0.7], "y": [0, 1]})
    source = frame.lazy() if lazy else frame
    expected = cal.Sketch.from_arrays([0, 1], [0.2, 0.7])
    assert scan(source, y_prob=name) == expected
    assert scan(source, y_prob=name, scale="logit").n == 2
    assert list(scan(source, y_prob="pp", by=name)) == [0.2, 0.7]
    assert scan(source, y_prob=["pp", name])[name] == expected


def test_only_ascii_digits_make_numbers_of_groups(tmp_path):
    for name in ("13", THREES, "5" * 50):
        (tmp_path / f"m={name}").mkdir()
        pq.write_table(pa.table({"p": [0.5], "y": [1]}), tmp_path / f"m={name}" / "a.parquet")
    assert set(scan(tmp_path, by="m")) == {"13", THREES, "5" * 50}
    for group in ("13", "5" * 5000):
        (tmp_path / "a.csv").write_text(f"p,y,m\n0.5,1,{group}\n0.5,1,{THREES}\n0.5,1,x\n")
        assert set(scan(tmp_path / "a.csv", by="m")) == {group, THREES, "x"}
    (tmp_path / "a.csv").write_text(f"p,y,m\n0.5,1,13\n0.5,1,{THREES}\n")
    assert set(scan(tmp_path / "a.csv", by="m")) == {"13", THREES}


@pytest.mark.parametrize("weight", [1e-120, 0.0])
@pytest.mark.parametrize("source", ["dict", "pandas", "polars", "parquet", "csv", "jsonl"])
def test_weights_that_leave_nothing_are_refused_as_for_arrays(source, weight, tmp_path):
    rows = {"p": [0.2, 0.7], "y": [0, 1], "w": [weight] * 2, "g": ["a", "b"]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(rows).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    data = {"dict": rows, "pandas": pd.DataFrame(rows), "polars": pl.DataFrame(rows)}
    with refused("sample_weight"):
        cal.Sketch.from_arrays(rows["y"], rows["p"], sample_weight=rows["w"])
    for by in (None, "g"):
        with refused("sample_weight"):
            scan(data.get(source, tmp_path / f"a.{source}"), sample_weight="w", by=by)


def test_a_checkpoint_is_that_of_the_file_and_not_of_one_in_its_place(tmp_path):
    path, other, note = (tmp_path / name for name in ("a.csv", "b", "note"))
    path.write_text("p,y\n0.25,1\n")
    other.write_text("p,y\n0.75,0\n")
    scan(path, checkpoint=note)
    about = os.stat(path)
    os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))
    os.replace(other, path)
    with refused(file="note"):
        scan(path, checkpoint=note)
    note.unlink()
    scan(path, checkpoint=note)
    path.write_text("p,y\n0.50,0\n")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    with refused(file="note"):
        scan(path, checkpoint=note)


@pytest.mark.parametrize(
    "text", ["1" * 20_000, "confidence " * 5000, "5 " * 10_000, "9" * 9_000 + "." + "9" * 9_000]
)
def test_no_completion_takes_long_to_read(text, tmp_path):
    path = tmp_path / "samples_sums.jsonl"
    texts = (text, "It is 4. Confidence: 50%")
    rows = [
        {"doc_id": k, "resps": [[said]], "filtered_resps": [said], "exact_match": 1.0}
        for k, said in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    start = time.process_time()
    answers = read_answers(path)
    assert time.process_time() - start < 1.0
    assert answers.y_prob[1] == 0.5


def test_a_line_of_a_log_has_at_most_64_megabytes(tmp_path, monkeypatch):
    assert answer_logs.LONGEST_LINE == 64 << 20
    monkeypatch.setattr(answer_logs, "LONGEST_LINE", 1 << 20)
    long = b'"' + b"x" * (1 << 20) + b'"'
    content = b'{"id": 1, "confidence": 0.5, "correct": 1, "text": ' + long + b"}"
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(content, 1))
    with refused(holds="1 MB"):
        read_answers(tmp_path / "x.jsonl.gz")


MEMORY = """
import re, sys
import calibrant as cal
models = [f"p{k}" for k in range(3000)]
source, options = sys.argv[1], {"y_prob": models} if sys.argv[2] == "wide" else {"by": "g"}
found = cal.scan(source, **{"y_true": "y", "y_prob": "p", **options})
columns = found.stacked().entries
size = sum(column.nbytes for column in (columns.cells, columns.counts, columns.offsets))
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) << 10
print((peak - 2 * size) >> 20)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak from Linux")
@pytest.mark.parametrize("kind", ["wide", "groups"])
def test_many_groups_take_twice_the_memory_of_the_result_and_300_megabytes(kind, tmp_path):
    rng = np.random.default_rng(0)
    rows = 20 if kind == "wide" else 1_500_000
    y = rng.integers(0, 2, rows)
    if kind == "wide":
        columns = {f"p{k}": rng.random(rows) for k in range(3000)}
    else:
        columns = {"p": rng.random(rows), "g": rng.integers(0, 1000, rows)}
    pq.write_table(pa.table({"y": y, **columns}), tmp_path / "a.parquet", row_group_size=1 << 19)
    run = [sys.executable, "-c", MEMORY, str(tmp_path / "a.parquet"), kind]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300 + 60  # 60 for reading columns of one batch at a time


def test_text_among_numbers_is_dropped_by_every_source_that_has_types(tmp_path):
    rows = {"p": [0.25, "0.5", 0.75], "y": [0, 1, 1]}
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"p": p, "y": y}) + "\n" for p, y in zip(*rows.values(), strict=True))
    )
    arrays = np.array(rows["p"], dtype=object)
    expected = cal.Sketch.from_arrays(rows["y"], arrays, on_invalid="drop")
    assert (expected.n, dict(expected.dropped)) == (2, {"prediction out of range": 1})
    typed = {**rows, "p": arrays}
    for source in (typed, pd.DataFrame(rows), tmp_path / "a.jsonl", [typed]):
        found = scan(source, on_invalid="drop")
        assert (found, dict(found.dropped)) == (expected, dict(expected.dropped))
        with refused("y_prob", "0.5"):
            scan(source)
    (tmp_path / "a.csv").write_text("p,y\n0.25,0\n0.5,1\n0.75,1\n")
    assert scan(tmp_path / "a.csv", on_invalid="drop").n == 3  # all of a CSV is text


def test_a_line_break_in_the_header_of_a_csv_is_part_of_the_name(tmp_path):
    (tmp_path / "a.csv").write_text('"p\nof rain",y\n0.25,0\n0.5,1\n')
    expected = cal.Sketch.from_arrays([0, 1], [0.25, 0.5])
    assert scan(tmp_path / "a.csv", y_prob="p\nof rain") == expected
    with refused(holds="'p\\nof rain'"):
        scan(tmp_path / "a.csv")


def test_orc_is_a_format_like_any_other(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"p": rng.random(5000), "y": rng.integers(0, 2, 5000), "g": ["a", "b"] * 2500})
    orc.write_table(table, tmp_path / "a.orc", stripe_size=10_000)
    for options in ({}, {"by": "g"}, {"scale": "logit"}):
        assert scan(tmp_path / "a.orc", **options) == scan(table, **options)
    whole = (tmp_path / "a.orc").read_bytes()
    (tmp_path / "a.orc").write_bytes(whole[:-40])
    with refused(file="a.orc"):
        scan(tmp_path / "a.orc")
