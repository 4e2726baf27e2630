"""Where files lie: folders, several names for one file, and addresses."""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import calibrant as cal


def table(rows, **extra):
    return pa.table({"p": [0.5] * rows, "y": [1] * rows, **extra})


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


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
