"""Files: formats, folders, partitions, what cannot be read, and scans that are stopped."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.errors import CalibrantWarning, InvalidRows
from calibrant.io import files, text
from calibrant.io import scan as scanning
from calibrant.io.progress import Progress
from calibrant.io.sums import Total

STRING_VIEW = pa.string_view() if int(pa.__version__.split(".")[0]) >= 21 else pa.string()
"""Older Arrows have it, but write none to Parquet."""


def table(n=1000, seed=0, **extra):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return pa.table({"p": p, "y": (rng.random(n) < p).astype(np.int64), **extra})


def sketch_of(rows):
    return cal.Sketch.from_arrays(rows["y"].to_numpy(), rows["p"].to_numpy())


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


def jobs_read(patch):
    """The jobs that scans read from now on, one after the other."""
    jobs, original = [], scanning.sums_of
    patch.setattr(
        scanning, "sums_of", lambda job, request: (jobs.append(job), original(job, request))[1]
    )
    return jobs


@pytest.fixture
def small_jobs(monkeypatch):
    """Many small jobs, as a large file has many large ones."""
    monkeypatch.setattr(files, "JOB_ROWS", 50)
    monkeypatch.setattr(files, "GROUPED_JOB_ROWS", 50)
    monkeypatch.setattr(text, "BLOCK_BYTES", 400)


def test_hive_partitions_are_columns(tmp_path):
    for day in (1, 2):
        for model in ("a b", "c"):
            folder = tmp_path / f"day={day}" / f"model={model.replace(' ', '%20')}"
            folder.mkdir(parents=True)
            pq.write_table(table(seed=day + len(model)), folder / "part.parquet")
    (tmp_path / "day=1" / "_SUCCESS").write_text("")
    found = scan(tmp_path, by=["model", "day"])
    assert list(found) == [("a b", 1), ("a b", 2), ("c", 1), ("c", 2)]
    assert found["c", 2] == sketch_of(table(seed=3))
    assert list(scan(tmp_path, by="day")) == [1, 2]
    assert scan(str(tmp_path / "day=1" / "**" / "*.parquet"), by="model").total().n == 2000


def test_fsspec_addresses(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    sink = io.BytesIO()
    pq.write_table(table(), sink)
    for part in ("a", "b"):
        memory.pipe(f"/lake/model={part}/part.parquet", sink.getvalue())
    assert scan("memory://lake/**/*.parquet").n == 2000
    assert list(scan("memory://lake", by="model")) == ["a", "b"]
    with refused("data", "memory://lake/none.parquet"):
        scan("memory://lake/none.parquet")


def test_csv_with_quoted_line_breaks_and_gzip(tmp_path, small_jobs):
    rows = table(200)
    lines = ["note,p,y\r\n"]
    for p, y in zip(rows["p"].to_pylist(), rows["y"].to_pylist(), strict=True):
        lines.append(f'"a ""quoted""\nnote, with breaks",{p!r},{y}\r\n')
    path = tmp_path / "notes.csv"
    path.write_text("\ufeff" + "".join(lines), newline="")
    assert scan(path) == sketch_of(rows)
    (tmp_path / "notes.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert scan(tmp_path / "notes.csv.gz") == sketch_of(rows)


def test_groups_of_text_files(tmp_path, small_jobs):
    (tmp_path / "a.csv").write_text("p,y,year,code\n0.5,1,2020,01\n0.25,0,2021,02\n0.5,1,,02\n")
    assert list(scan(tmp_path / "a.csv", by=["year", "code"])) == [
        (2020, "01"),
        (2021, "02"),
        (None, "02"),
    ]
    (tmp_path / "a.tsv").write_text("p\ty\n0.5\ttrue\n0.25\tfalse\n")
    assert scan(tmp_path / "a.tsv") == cal.Sketch.from_arrays([1, 0], [0.5, 0.25])
    (tmp_path / "a.jsonl").write_text('{"p": 1, "y": true, "n": 3}\n\n{"p": 0.5, "y": false}\n')
    assert list(scan(tmp_path / "a.jsonl", by="n")) == [3, None]


def test_batches_of_an_iterator_may_differ_in_kind():
    pl = pytest.importorskip("polars")
    rows = table(30)
    parts = [
        rows.slice(0, 10),
        pl.from_arrow(rows.slice(10, 10)),
        {"p": rows["p"][20:].to_numpy(), "y": rows["y"][20:].to_pylist()},
    ]
    assert scan(iter(parts)) == sketch_of(rows)
    with refused("data", holds="ndarray"):
        scan(np.zeros((3, 2)))


# -- which files, and of which groups --------------------------------------------------------------


def test_a_folder_that_holds_more_than_can_be_read_says_what(tmp_path):
    pq.write_table(table(1000), tmp_path / "a.parquet")
    for name in ("report.html", "sketch.json", "c.csv.xz", "extensionless", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("")
    for source in (tmp_path, f"file://{tmp_path}"):
        with refused(holds="c.csv.xz, extensionless."):
            scan(source)
    assert scan(str(tmp_path / "*.parquet")).n == 1000
    (tmp_path / "deep").mkdir()
    with refused("data", str(tmp_path / "dee*"), holds="/dee*/**/*.parquet"):
        scan(str(tmp_path / "dee*"))


def test_a_file_under_several_names_is_counted_once(tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    path = tmp_path / "a.parquet"
    pq.write_table(table(1000), path)
    monkeypatch.chdir(tmp_path)
    assert scan(["a.parquet", "./a.parquet", path, "*.parquet", f"file://{path}"]).n == 1000
    fsspec.filesystem("memory").pipe(str(path), path.read_bytes())
    assert scan([path, f"memory://{path}"]).n == 2000


def test_paths_may_come_in_any_collection(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        pq.write_table(table(1000), path)
    for source in (paths, set(paths), iter(map(str, paths)), tmp_path.glob("*.parquet")):
        assert scan(source).n == 2000


def test_addresses_that_cannot_be_opened_say_why(monkeypatch):
    pytest.importorskip("fsspec")
    with refused("data", "none://a.parquet"):
        scan("none://a.parquet")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with refused(holds="s3fs", kind=cal.errors.MissingDependency):
        scan("s3://bucket/a.parquet")


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


def test_what_is_no_source_is_refused(tmp_path):
    frame = pd.DataFrame({"p": [0.5], "y": [1], "g": ["a"]})
    for source in (
        [frame, "a.parquet"],
        iter([tmp_path / "a.parquet", frame]),
        pl.DataFrame(frame).group_by("g"),
        frame.groupby("g"),
        frame["p"],
        [None],
    ):
        with refused("data"):
            scan(source)


def test_groups_are_given_one_way():
    batch = {"p": [0.5] * 5, "y": [1] * 5, "g": "abcde"}
    with refused(seen="abcde"):
        scan([batch], by="g")
    with refused("by"):
        scan(batch, by={})
    with refused("cluster", "x"):
        scan(batch, by={"x": "p"}, cluster={"x": "y"})


# -- what cannot be read ---------------------------------------------------------------------------------


def test_a_missing_file_and_an_unknown_ending(tmp_path):
    with refused("data", str(tmp_path / "none.parquet")):
        scan(tmp_path / "none.parquet")
    (tmp_path / "a.xlsx").write_text("")
    with refused("data", file="a.xlsx"):
        scan(tmp_path / "a.xlsx")
    with refused("data"):
        scan([])


def test_a_folder_of_mixed_schemas_names_the_file_that_differs(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(pa.table({"prob": [0.5], "y": [1]}), tmp_path / "b.parquet")
    with refused(holds=("b.parquet", "'p'", "prob")):
        scan(tmp_path)
    pq.write_table(pa.table({"p": ["0.5"], "y": [1]}), tmp_path / "b.parquet")
    with refused("y_prob", holds="String", column="p", file="b.parquet"):
        scan(tmp_path)
    (tmp_path / "b.parquet").rename(tmp_path / "b.csv")
    with refused("data", holds="csv, parquet"):
        scan(tmp_path)


def test_dates_that_python_does_not_have_are_refused_as_groups(tmp_path):
    rows = table(1, g=pa.array([4_000_000], pa.date32()))
    pq.write_table(rows, tmp_path / "a.parquet")
    for source in (tmp_path, pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())):
        with refused(holds="date32"):
            scan(source, by="g")


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("0.5,1,extra", {"holds": "got 3"}),
        ("high,1", {"argument": "y_prob", "column": "p", "seen": "high"}),
        ("0.5,maybe", {"argument": "y_true", "column": "y", "seen": "maybe"}),
    ],
)
def test_an_unreadable_row_of_a_csv_is_named_by_file_and_row(tmp_path, small_jobs, line, fields):
    good = [f"0.{k:03},1" for k in range(1, 300)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["p,y", *good[:200], line, *good[200:]]) + "\n")
    with refused(row=200, file="a.csv", **fields):
        scan(path)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ('{"p": 0.5', {}),
        ("[1, 2]", {"holds": "list"}),
        ('{"p": "high", "y": 1}', {"argument": "y_prob", "column": "p", "seen": "high"}),
    ],
)
def test_an_unreadable_line_of_jsonl_is_named_by_file_and_row(tmp_path, small_jobs, line, fields):
    good = ['{"p": 0.25, "y": 1}'] * 300
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*good[:200], line, *good[200:]]) + "\n")
    with refused(row=200, file="a.jsonl", **fields):
        scan(path)


def test_an_empty_result_is_an_error(tmp_path):
    pq.write_table(table(0), tmp_path / "a.parquet")
    with refused("data"):
        scan(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("p,y\n,1\n,0\n")
    with refused(holds="2", kind=cal.errors.TooFewRows):
        scan(tmp_path / "a.csv", on_invalid="drop")
    (tmp_path / "b.csv").write_text("")
    with refused(file="b.csv"):
        scan(tmp_path / "b.csv")


# -- scans that are stopped --------------------------------------------------------------------------------


def weighted_parts(folder: Path, parts=12):
    rng = np.random.default_rng(5)
    for part in range(parts):
        rows = table(300, seed=part, w=rng.exponential(size=300), g=rng.integers(0, 40, 300))
        pq.write_table(rows, folder / f"{part:02}.parquet")


OPTIONS = [{}, {"sample_weight": "w"}, {"by": "g"}, {"by": "g", "sample_weight": "w"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_stopped_scan_goes_on_to_the_same_bits(tmp_path, small_jobs, monkeypatch, options):
    weighted_parts(tmp_path)
    whole = scan(tmp_path, threads=1, **options)
    note = tmp_path / "scan.checkpoint"
    monkeypatch.setattr(scanning, "CHECKPOINT_SECONDS", 0.0)
    original = Total.add
    added = []

    def stop_after_seven(total, part):
        if len(added) == 7:
            raise RuntimeError("the power went out")
        added.append(part)
        original(total, part)

    monkeypatch.setattr(Total, "add", stop_after_seven)
    with pytest.raises(RuntimeError, match="power"):
        scan(tmp_path, checkpoint=note, **options)
    assert note.exists()
    monkeypatch.setattr(Total, "add", original)
    added = jobs_read(monkeypatch)
    resumed = scan(tmp_path, checkpoint=note, **options)
    assert resumed == whole
    assert 0 < len(added) < 12
    added.clear()
    assert scan(tmp_path, checkpoint=note, **options) == whole  # until it is saved, at no cost
    assert not added
    cal.save(resumed, tmp_path / "sketch.json", checkpoint=note)
    assert not note.exists()


@pytest.mark.parametrize("options", [{}, {"by": "g"}], ids=str)
@pytest.mark.parametrize("is_added", [False, True])
def test_an_interrupt_at_any_time_counts_no_row_twice(tmp_path, monkeypatch, options, is_added):
    """Jobs of several parts, interrupted before or after each of these is added."""
    monkeypatch.setattr(files, "JOB_ROWS", 700)
    monkeypatch.setattr(files, "GROUPED_JOB_ROWS", 700)
    weighted_parts(tmp_path, parts=8)
    whole = scan(tmp_path, threads=1, **options)
    note = tmp_path / "scan.checkpoint"
    original = Total.add
    for last in range(8 if options else 3):
        parts = []

        def interrupted(total, part, last=last, parts=parts):
            if len(parts) < last or is_added:
                original(total, part)
            if len(parts) == last:
                raise KeyboardInterrupt
            parts.append(part)

        with monkeypatch.context() as patch:
            patch.setattr(Total, "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                scan(tmp_path, checkpoint=note, threads=1, **options)
        assert scan(tmp_path, checkpoint=note, **options) == whole
        note.unlink()


@pytest.mark.parametrize("options", [{}, {"by": "g"}], ids=str)
def test_a_scan_whose_rows_are_refused_can_be_had_without_them(tmp_path, monkeypatch, options):
    (tmp_path / "a.csv").write_text("p,y,g\n0.5,1,1\n2,1,1\n0.25,0,2\n")
    note = tmp_path / "scan.checkpoint"
    with pytest.raises(InvalidRows) as caught:
        scan(tmp_path, checkpoint=note, **options)
    assert (caught.value.rows, caught.value.counts) == (3, {"prediction out of range": 1})
    assert (caught.value.row, os.path.basename(caught.value.file)) == (1, "a.csv")
    assert note.exists()
    whole = scan(tmp_path / "a.csv", on_invalid="drop", **options)
    read = jobs_read(monkeypatch)
    assert scan(tmp_path, checkpoint=note, on_invalid="drop", **options) == whole
    assert not read


KILLED = """
import sys, time
import calibrant as cal
from calibrant.errors import CalibrantWarning
from calibrant.io import files, scan as scanning, text
from calibrant.io.sums import Total
files.JOB_ROWS = files.GROUPED_JOB_ROWS = 50
text.BLOCK_BYTES = 400
scanning.CHECKPOINT_SECONDS = 0.0
original = Total.add
def slow(total, part):
    original(total, part)
    print("added", flush=True)
    time.sleep(0.2)
Total.add = slow
cal.scan(sys.argv[1], y_true="y", y_prob="p", by="g", sample_weight="w", checkpoint=sys.argv[2])
"""


def test_a_scan_killed_with_9_is_resumed_to_the_same_bits(tmp_path, small_jobs):
    weighted_parts(tmp_path)
    note = tmp_path / "scan.checkpoint"
    run = [sys.executable, "-c", KILLED, str(tmp_path), str(note)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(4):
            assert process.stdout.readline() == "added\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert note.exists()
    options = {"by": "g", "sample_weight": "w"}
    assert scan(tmp_path, checkpoint=note, **options) == scan(tmp_path, **options)


FILLING_UP = """
import resource, sys
import calibrant as cal
from calibrant.errors import CalibrantWarning
from calibrant.io import files, scan as scanning, text
from calibrant.io.sums import Total
files.JOB_ROWS = files.GROUPED_JOB_ROWS = 50
text.BLOCK_BYTES, scanning.CHECKPOINT_SECONDS = 400, 0.0
if int(sys.argv[3]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    cal.scan(sys.argv[1], y_true="y", y_prob="p", by="g", checkpoint=sys.argv[2])
except cal.CalibrantError as error:
    print(error)
"""


@pytest.fixture(params=["a limit on files", "a full disk"])
def small_disk(request, tmp_path):
    """A folder in which no file can grow past 60 kB, and the limit that the process must set for it."""
    folder = tmp_path / "small"
    folder.mkdir()
    if request.param == "a limit on files":
        yield folder, 60_000
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a full disk could not be started: mounting one needs root")
    yield folder, 0
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_keeps_the_checkpoint_before(tmp_path, small_disk, small_jobs):
    lake = tmp_path / "lake"
    lake.mkdir()
    for part in range(12):  # new groups in every part, so that checkpoints grow
        rows = table(300, seed=part, g=np.arange(300) // 3 + 100 * part)
        pq.write_table(rows, lake / f"{part:02}.parquet")
    folder, limit = small_disk
    note = folder / "scan.checkpoint"
    run = [sys.executable, "-c", FILLING_UP, str(lake), str(note), str(limit)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    said = r"cannot be written: .*(No space left|too large).*before is intact"
    assert re.search(said, done.stdout), done.stdout + done.stderr
    assert [path.name for path in folder.iterdir()] == [note.name]
    with pytest.MonkeyPatch.context() as patch:
        parts = jobs_read(patch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrantWarning)  # there may be no room for the last
            resumed = scan(lake, by="g", checkpoint=note)
    assert 0 < len(parts) < 12
    assert resumed == scan(lake, by="g")


def test_a_place_where_no_checkpoint_can_be_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"not Parquet")
    (tmp_path / "file").write_text("")
    with refused("checkpoint", 5):
        scan(tmp_path / "broken.parquet", checkpoint=5)
    for place in (tmp_path, tmp_path / "none" / "note", tmp_path / "file" / "note"):
        with refused("checkpoint", holds=str(place)):
            scan(tmp_path / "broken.parquet", checkpoint=place)


def test_a_checkpoint_of_another_scan_is_refused(tmp_path, small_jobs, monkeypatch):
    weighted_parts(tmp_path)
    note = tmp_path / "scan.checkpoint"
    note.write_bytes(b"not a checkpoint")
    with refused(file="scan.checkpoint"):
        scan(tmp_path, checkpoint=note)
    note.unlink()
    monkeypatch.setattr(scanning, "CHECKPOINT_SECONDS", 0.0)
    scan(tmp_path, checkpoint=note)
    with refused(file="scan.checkpoint"):
        scan(tmp_path, checkpoint=note, by="g")
    with refused("checkpoint"):
        scan(table(), checkpoint=note)
    note.unlink()
    steep, flat = (
        cal.data.Scale(lambda p, k=k: p**k, lambda z, k=k: z ** (1 / k)) for k in (2.0, 0.5)
    )
    assert steep.name == flat.name
    kept = scan(tmp_path, checkpoint=note, scale=steep)
    assert scan(tmp_path, checkpoint=note, scale=steep) == kept
    with refused(file="scan.checkpoint"):
        scan(tmp_path, checkpoint=note, scale=flat)


def test_a_checkpoint_notices_that_remote_files_have_changed(tmp_path, small_jobs, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(scanning, "CHECKPOINT_SECONDS", 0.0)
    note = tmp_path / "scan.checkpoint"
    address = "memory://checkpoints/rows.csv"
    with fsspec.open(address, "w") as sink:
        sink.write("p,y\n" + "0.25,1\n" * 200)
    whole = scan(address, checkpoint=note)
    assert scan(address, checkpoint=note) == whole
    with fsspec.open(address, "w") as sink:
        sink.write("p,y\n" + "0.75,0\n" * 200)
    with refused(file=note.name):
        scan(address, checkpoint=note)


def test_the_bar_is_drawn_only_where_it_is_wanted(tmp_path, capsys):
    pq.write_table(table(), tmp_path / "a.parquet")
    scan(tmp_path)
    assert capsys.readouterr().err == ""
    scan(tmp_path, progress=True)
    drawn = capsys.readouterr().err
    assert "100%  1.0k rows" in drawn
    assert drawn.endswith("rows/s\n")
    bar = Progress(10, show=True)
    time.sleep(0.01)
    bar.advance(3, 7)
    assert "30%  7 rows" in capsys.readouterr().err
