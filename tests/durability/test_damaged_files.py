"""Damaged files of every kind are errors: no crash, no foreign exception, never fewer rows."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fuzz.corruption import try_flips
from tests.fuzz.file_kinds import COLUMNS, KINDS, as_table, rows, scanned
from tests.refusals import refused as refused_with

import calibrant as cal
from calibrant import datasets
from calibrant.io import answer_logs, files
from calibrant.io import rows as io_rows
from calibrant.io.answers import read_answers
from calibrant.io.files import find_files
from calibrant.io.sums import Total

FLIPS = 8


def test_damage_is_seen_or_does_no_harm():
    """`make fuzz` does the same many more times."""
    for name, outcomes in try_flips(list(KINDS), FLIPS).items():
        assert not outcomes.failures
        assert outcomes.counts["refused"] > FLIPS // 8, name


@pytest.mark.parametrize("read", [scanned, as_table])
@pytest.mark.parametrize(
    "name", ["rows.parquet", "rows.arrow", "rows-stream.arrow", "rows.feather"]
)
def test_a_file_that_is_cut_short_anywhere_is_refused(name, read, tmp_path):
    path = tmp_path / name
    KINDS[name].write(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with refused_with(file=name):
            read(path)


def test_streams_that_were_joined_into_one_are_refused(tmp_path):
    """A reader stops at the first end: rows would be missing."""
    path = tmp_path / "rows-stream.arrow"
    KINDS[path.name].write(path)
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(cal.InputError):
        KINDS[path.name].read(path)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_arrow_files_of_other_writers_are_whole(compression, tmp_path):
    frame = pl.from_arrow(rows())
    frame.write_ipc(tmp_path / "file.arrow", compression=compression)
    frame.write_ipc_stream(tmp_path / "stream.arrow", compression=compression)
    for name in ("file.arrow", "stream.arrow"):
        assert scanned(tmp_path / name) == cal.scan(rows(), **COLUMNS)


def test_a_stream_that_lacks_its_last_batches_is_refused(tmp_path):
    """Cut where a message ends, which Arrow itself takes for the end."""
    path = tmp_path / "rows.arrow"
    lengths = []
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, rows().schema) as writer:
        for batch in rows().to_batches(max_chunksize=100):
            writer.write_batch(batch)
            lengths.append(sink.tell())
    whole = path.read_bytes()
    for wrong in (whole[: lengths[0]], whole[: lengths[1]], whole + b"x", whole[: lengths[2]]):
        path.write_bytes(wrong)
        for read in (scanned, as_table):
            with refused_with(file="rows.arrow"):
                read(path)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_nul_byte_in_text_is_refused(ending, tmp_path):
    path = tmp_path / f"rows.{ending}"
    KINDS[f"rows.{ending}"].write(path)
    lines = path.read_bytes().split(b"\n")
    for number in (1, 7, 200):
        wrong = [*lines[: number - 1], b"\0" * 30 + lines[number - 1], *lines[number:]]
        path.write_bytes(b"\n".join(wrong))
        for read in (scanned, as_table):
            with refused_with(file=path.name, holds="NUL"):
                read(path)


def test_names_and_values_of_json_lines_that_are_no_utf8_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    for line in (b'{"p": 0.5, "\xe7": 1}\n', b'{"p": 0.5, "g": "\xe7"}\n'):
        path.write_bytes(line)
        with refused_with(file="rows.jsonl"):
            as_table(path)


def test_a_file_that_is_replaced_during_a_scan_is_refused(tmp_path, monkeypatch):
    path, other = tmp_path / "rows.parquet", tmp_path / "other"
    monkeypatch.setattr(files, "GROUPED_JOB_ROWS", 50)
    pq.write_table(rows(), path, row_group_size=50)
    pq.write_table(rows().slice(0, 300), other, row_group_size=50)
    about = os.stat(path)
    os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))
    original = Total.add

    def replaced(total, part):
        if other.exists():
            os.replace(other, path)  # of the same size and time
        original(total, part)

    monkeypatch.setattr(Total, "add", replaced)
    with pytest.raises(cal.InputError) as refused:
        cal.scan(path, threads=1, **COLUMNS)
    assert refused.value.file == str(path)


def test_a_log_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """It is read twice, and the second time there would be more answers."""
    path = tmp_path / "answers.jsonl"
    KINDS["answers.jsonl"].write(path)
    original = answer_logs.json_lines

    def growing(file):
        yield from original(file)
        with path.open("a") as log:
            log.write('{"id": 99, "confidence": 0.5, "correct": true}\n')

    monkeypatch.setattr(answer_logs, "json_lines", growing)
    with refused_with(file="answers.jsonl"):
        read_answers(path)


def test_of_several_files_the_damaged_one_is_named(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        KINDS["rows.parquet"].write(tmp_path / name)
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:-20])
    with refused_with(file="b.parquet"):
        io_rows.read_table(find_files([tmp_path]))


def test_arrays_that_point_outside_are_refused_before_they_are_used():
    offsets = pa.py_buffer(np.array([0, 5, 1_000_000, 12], np.int32))
    words = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"hello worlds"))
    table = pa.table({"p": [0.1, 0.2, 0.3], "y": [0, 1, 0], "g": words})
    with pytest.raises(cal.InputError):
        cal.scan(table, **COLUMNS)


def test_json_lines_of_any_depth_are_read_or_refused(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"p":0.5,"y":1,"g":"a","x":' + "[" * 3000 + "]" * 3000 + "}\n")
    with suppress(cal.InputError):  # how deep is too deep depends on the version of Python
        assert cal.scan(path, **COLUMNS)["a"].n == 1
    path.write_text(path.read_text() + '{"p":0.25,"y":0,"g":"a"}\n')
    assert cal.scan(path, **COLUMNS)["a"].n == 2
    for depth in (800, 950, 990, 3000):
        deep = '{"a":' * depth + "1" + "}" * depth
        path.write_text(f'{{"s":{{"p":0.5}},"y":1,"x":{deep}}}\n' * 2)
        try:
            assert cal.scan(path, y_true="y", y_prob="s.p").n == 2
        except cal.InputError:
            assert depth > 800


@pytest.mark.parametrize("extra", ["", '"w": NaN, '], ids=["by Arrow", "by Python"])
def test_a_field_that_a_line_names_twice_is_refused_with_its_row(extra, tmp_path):
    """Which of the two was meant, nobody can say; Python's reader would take the last."""
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"p": 0.7, "y": 1}}\n{{"p": 0.2, {extra}"y": 0, "p": 0.9}}\n')
    with pytest.raises(cal.InputError) as refused:
        cal.scan(path, y_true="y", y_prob="p")
    assert (refused.value.row, refused.value.file) == (1, str(path))
    with pytest.raises(cal.InputError) as refused:
        as_table(path)
    assert refused.value.file == str(path)


def test_a_field_that_a_log_or_a_state_names_twice_is_refused(tmp_path):
    path = tmp_path / "answers.jsonl"
    line = '{"id": 1, "confidence": 0.2, "correct": true, "confidence": 0.9}\n'
    path.write_text('{"id": 0, "confidence": 0.7, "correct": true}\n' + line)
    with refused_with(holds="line 2 of"):
        read_answers(path)
    state = cal.Monitor().to_json()
    assert state.startswith("{")
    with pytest.raises(cal.InputError):
        cal.Monitor.from_json('{"level": 0.5,' + state[1:])


def test_groups_are_times_to_the_microsecond_as_pythons_are():
    times = np.array([1000, 2000], "datetime64[ns]")
    frame = pl.DataFrame({"p": [0.5, 0.25], "y": [0, 1], "g": times})
    keys = [datetime(1970, 1, 1) + timedelta(microseconds=k) for k in (1, 2)]
    rows = {"p": [0.5, 0.25], "y": [0, 1], "g": times}
    for source in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas(), rows):
        assert list(cal.scan(source, **COLUMNS)) == keys


def test_weights_that_grow_beyond_measure_are_refused(tmp_path: Path):
    sketch = cal.Sketch.from_arrays([0, 1], [0.2, 0.7])
    for _ in range(4):
        sketch = sketch.reweight(negative=1e30)
        assert cal.load(cal.save(sketch, tmp_path / "a.json")) == sketch
    with pytest.raises(cal.InputError):
        sketch.reweight(negative=1e30)


def test_names_that_no_file_has_are_refused(tmp_path):
    rows = {"p": [0.5], "y": [1]}
    uses = [
        lambda path: cal.save(cal.Sketch.empty(), path),
        cal.load,
        cal.load_recalibrator,
        cal.Monitor.load,
        lambda path: cal.Monitor.shared(path).__enter__(),
        lambda path: cal.scan(path, y_true="y", y_prob="p"),
        lambda path: cal.scan(written, y_true="y", y_prob="p", checkpoint=path),
    ]
    written = tmp_path / "rows.parquet"
    pq.write_table(pa.table(rows), written)
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in ("/tmp/a\0.json", "/tmp/a\ud800.json", folder, tmp_path / "none" / "a.json"):
        for use in uses:
            with pytest.raises(cal.InputError):
                use(path)


def test_junk_in_the_folder_of_data_sets_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    for ending in ("parquet", "npz"):
        (tmp_path / f"recidivism_broward.{ending}").write_bytes(b"junk")
        with pytest.raises(cal.CalibrantError):
            datasets.load("recidivism_broward")
        (tmp_path / f"recidivism_broward.{ending}").unlink()
