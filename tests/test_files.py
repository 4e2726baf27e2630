"""Whoever writes a file: it appears whole or not at all, and belongs to no one but its owner."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bench.originals import download
from sklearn.exceptions import NotFittedError
from tests.refusals import refused

import calibrant as cal
from calibrant.recalibration import PlattRecalibrator

Y, P = [0, 1, 0, 1, 1, 0], [0.2, 0.3, 0.6, 0.8, 0.9, 0.4]


def fetched(path: Path) -> None:
    origin = path.with_name("origin")
    origin.write_text("rows")
    download(origin.as_uri(), path)
    origin.unlink()


WRITERS = {
    "sketch.json": lambda path: cal.save(cal.Sketch.from_arrays(Y, P), path),
    "sketch.parquet": lambda path: cal.save(cal.Sketch.from_arrays(Y, P), path),
    "platt.json": PlattRecalibrator().fit(P, Y).save,
    "monitor.json": cal.Monitor().save,
    "report.json": cal.report(Y, P).save,
    "diagram.svg": cal.reliability_diagram(Y, P).save,
    "rows.csv": fetched,
}


@pytest.fixture(params=[0o022, 0o027, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("name", WRITERS)
def test_a_new_file_has_the_permissions_of_any_other(name, umask, tmp_path):
    WRITERS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o666 & ~umask
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_replaced_keeps_its_permissions_and_its_link(name, tmp_path):
    target = tmp_path / "kept" / name
    target.parent.mkdir()
    target.write_text("before")
    target.chmod(0o640)
    (tmp_path / name).symlink_to(target)
    WRITERS[name](tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.read_bytes() != b"before"
    assert os.listdir(target.parent) == [name]


@pytest.mark.parametrize(
    "fail",
    [
        lambda path: PlattRecalibrator().save(path),
        lambda path: cal.save(cal.Sketches({(1, 2): cal.Sketch.empty()}, by="g"), path),
        lambda path: download("file:///nowhere/at/all", path),
    ],
)
def test_what_fails_leaves_what_was_there(fail, tmp_path):
    target = tmp_path / "kept.json"
    target.write_text("before")
    with pytest.raises((cal.CalibrantError, NotFittedError)):
        fail(target)
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["kept.json"]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "rows.csv"])
def test_a_folder_that_is_not_there_is_named(name, tmp_path):
    with refused("path", holds="nowhere"):
        WRITERS[name](tmp_path / "nowhere" / name)


def test_a_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        do = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, do=do, name=name: (steps.append(name), do(*given))[1]
        )
    cal.save(cal.Sketch.from_arrays(Y, P), tmp_path / "sketch.json")
    assert steps == ["fsync", "replace", "fsync"]


FULL = """
import resource, sys
import calibrant as cal
rows = [0, 1, 0, 1, 1, 0] * 50, [k / 300 for k in range(300)]
made = cal.reliability_diagram(*rows) if sys.argv[2] == "diagram" else cal.Sketch.from_arrays(*rows)
save = made.save if sys.argv[2] == "diagram" else lambda path: cal.save(made, path)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
try:
    save(sys.argv[1])
except cal.CalibrantError as error:
    print(error.file, error)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
@pytest.mark.parametrize("name", ["a.pdf", "a.json"])
def test_a_full_disk_is_an_error_that_names_the_target(name, tmp_path):
    """Also where matplotlib fails with another error while it closes the file."""
    target = tmp_path / name
    target.write_text("before")
    kind = "diagram" if name == "a.pdf" else "sketch"
    run = [sys.executable, "-c", FULL, str(target), kind]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{target} The file {target} cannot be written"), done.stderr
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_a_link_to_a_full_device_is_an_error_that_names_the_link(ending, tmp_path):
    target = tmp_path / f"a.{ending}"
    target.symlink_to("/dev/full")
    with pytest.raises(cal.CalibrantError, match="cannot be written: No space left") as refused:
        cal.reliability_diagram(Y, P).save(target)
    assert refused.value.file == str(target)


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_a_circle_of_links_and_a_name_that_is_too_long_are_refused(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    uses = [
        lambda path: cal.save(cal.Sketch.from_arrays(Y, P), path),
        cal.load,
        cal.load_recalibrator,
        PlattRecalibrator().fit(P, Y).save,
        cal.report(Y, P).save,
        cal.Monitor().save,
        lambda path: cal.Monitor.shared(path).__enter__(),
        lambda path: cal.scan(path, y_true="y", y_prob="p"),
        lambda path: cal.scan(tmp_path / "rows.csv", y_true="y", y_prob="p", checkpoint=path),
    ]
    (tmp_path / "rows.csv").write_text("p,y\n0.5,1\n")
    for path in (tmp_path / "a.json", tmp_path / ("x" * 300 + ".json")):
        for use in uses:
            with pytest.raises(cal.InputError) as caught:
                use(path)
            assert caught.value.file == str(path) or path.name[:40] in str(caught.value)
            assert "calibrant-" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.json", "rows.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_a_pipe_is_written_to_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        PlattRecalibrator().fit(P, Y).save(tmp_path / "pipe")
        assert '"kind":"platt"' in read.result(timeout=10)
    assert (tmp_path / "pipe").is_fifo()
