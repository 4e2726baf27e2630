"""A power cut at any step leaves the old file or the new one, and nothing that was there is lost."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant import _files
from calibrant.io import file_jobs, files
from calibrant.recalibration import PlattRecalibrator, TemperatureRecalibrator

Y, P = [0, 1, 0, 1, 1, 0], [0.2, 0.3, 0.6, 0.8, 0.9, 0.4]


@dataclass
class Recorder(_files.Disk):
    """Does what it is asked, and notes each step with what the file held then."""

    steps: list[tuple] = field(default_factory=list)

    def write(self, path, content):
        super().write(path, content)
        self.steps.append(("write", path, content))

    def sync(self, path):
        self.steps.append(("sync", path, path.read_bytes()))
        super().sync(path)

    def replace(self, made, final):
        super().replace(made, final)
        self.steps.append(("replace", made, final))

    def remove(self, path):
        super().remove(path)
        self.steps.append(("remove", path))

    def sync_folder(self, folder):
        super().sync_folder(folder)
        self.steps.append(("sync folder", folder))


def after_a_cut(before: dict[Path, bytes], steps: list[tuple]) -> Iterator[dict[Path, bytes]]:
    """Every state in which a disk may be found when the power goes after these steps.

    What was synced is there. Of the rest, names and contents reach the disk in any order or not at all:
    a renamed file that was not synced may be found whole, cut short or empty.
    """
    for names_kept, content_kept in product((True, False), (1.0, 0.5, 0.0)):
        held: dict[Path, bytes] = dict(before)  # content by name, in memory
        safe: dict[Path, bytes] = dict(before)  # names as on the disk
        synced = set(before.values())
        for step in steps:
            if step[0] == "write":
                held[step[1]] = step[2]
            elif step[0] == "sync":
                held[step[1]] = step[2]
                synced.add(step[2])
            elif step[0] == "replace":
                held[step[2]] = held.pop(step[1])
            elif step[0] == "remove":
                held.pop(step[1], None)
            else:
                inside = {path: content for path, content in held.items() if path.parent == step[1]}
                others = {path: content for path, content in safe.items() if path.parent != step[1]}
                safe = others | inside
        found = held if names_kept else safe
        yield {
            path: content if content in synced else content[: int(len(content) * content_kept)]
            for path, content in found.items()
        }


def sketch(path: Path, seed: int) -> object:
    rng = np.random.default_rng(seed)
    cal.save(cal.Sketch.from_arrays(rng.integers(0, 2, 9), rng.random(9)), path)
    return cal.load(path)


def monitor(path: Path, seed: int) -> object:
    rng = np.random.default_rng(seed)
    with cal.Monitor.shared(path) as watch:
        watch.update(rng.integers(0, 2, 9), rng.random(9))
    return cal.Monitor.load(path).last


def recalibrator(path: Path, seed: int) -> object:
    (TemperatureRecalibrator() if seed else PlattRecalibrator()).fit(P, Y).save(path)
    return read_map(path)


def read_map(path: Path) -> object:
    return cal.load_recalibrator(path).to_dict()


KINDS: dict[str, tuple[Callable[[Path, int], object], Callable[[Path], object]]] = {
    "sketch.json": (sketch, cal.load),
    "sketch.parquet": (sketch, cal.load),
    "monitor.json": (monitor, lambda path: cal.Monitor.load(path).last),
    "map.json": (recalibrator, read_map),
}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(_files, "DISK", recorder)
    return recorder


@pytest.mark.parametrize("name", KINDS)
def test_a_cut_leaves_the_old_file_or_the_new_one(name, recorder, tmp_path):
    write, read = KINDS[name]
    path = tmp_path / name
    old = write(path, 0)
    before = {path: path.read_bytes()}
    recorder.steps.clear()
    new = write(path, 1)
    assert new != old
    replayed = tmp_path / "replayed"
    replayed.mkdir()
    for length in range(len(recorder.steps) + 1):
        for found in after_a_cut(before, recorder.steps[:length]):
            (replayed / name).write_bytes(found[path])
            seen = read(replayed / name)
            assert seen in (old, new)
            if length == len(recorder.steps):
                assert seen == new


class Full(_files.Disk):
    """Refuses one step, as a disk does that is full, or that one may not write to."""

    def __init__(self, step: str, reason: int) -> None:
        self.step, self.reason = step, reason

    def __getattribute__(self, name: str):
        if name in ("write", "sync", "replace") and name == self.step:
            raise OSError(self.reason, os.strerror(self.reason))
        return super().__getattribute__(name)


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("step", ["write", "sync", "replace"])
def test_a_full_disk_is_an_error_that_names_the_file(step, reason, monkeypatch, tmp_path):
    """The old file stays, and nothing else does."""
    old = {name: write(tmp_path / name, 0) for name, (write, _) in KINDS.items()}
    monkeypatch.setattr(_files, "DISK", Full(step, reason))
    for name, (write, read) in KINDS.items():
        if (step, name) != ("write", "sketch.parquet"):  # which Arrow writes
            with refused(file=name, kind=cal.CalibrantError):
                write(tmp_path / name, 1)
        assert read(tmp_path / name) == old[name]
    assert sorted(os.listdir(tmp_path)) == sorted(KINDS)


def test_the_replay_notices_a_file_that_was_not_synced(recorder, tmp_path):
    """Else it would prove nothing."""
    path = tmp_path / "sketch.json"
    sketch(path, 0)
    before = {path: path.read_bytes()}
    recorder.steps.clear()
    sketch(path, 1)
    careless = [step for step in recorder.steps if step[0] != "sync"]
    contents = {found[path] for found in after_a_cut(before, careless)}
    assert b"" in contents


def test_a_cut_at_any_step_of_a_scan_loses_no_finished_work(recorder, tmp_path, monkeypatch):
    """At every moment there is the output, or a checkpoint that leads to it, once there was one."""
    monkeypatch.setattr(file_jobs, "JOB_ROWS", 50)
    monkeypatch.setattr(files, "CHECKPOINT_SECONDS", 0.0)
    lake = tmp_path / "lake"
    lake.mkdir()
    rng = np.random.default_rng(0)
    for part in range(3):
        rows = {"p": rng.random(60), "y": rng.integers(0, 2, 60), "g": rng.integers(0, 4, 60)}
        pq.write_table(pa.table(rows), lake / f"{part}.parquet")
    options = {"y_true": "y", "y_prob": "p", "by": "g"}
    whole = cal.scan(lake, **options)
    note, output = tmp_path / "note", tmp_path / "sketch.parquet"
    cal.save(cal.scan(lake, checkpoint=note, **options), output, checkpoint=note)
    assert not note.exists()
    steps = recorder.steps
    first = next(k for k, step in enumerate(steps) if step[0] == "sync folder") + 1
    for length in range(first, len(steps) + 1):
        for found in after_a_cut({}, steps[:length]):
            assert output in found or note in found
            if output in found:
                output.write_bytes(found[output])
                assert cal.load(output) == whole
            if note in found:
                note.write_bytes(found[note])
                assert cal.scan(lake, checkpoint=note, **options) == whole
                note.unlink()


def test_the_log_of_a_write_is_short_and_in_order(recorder, tmp_path):
    path = tmp_path / "map.json"
    recalibrator(path, 0)
    assert [step[0] for step in recorder.steps] == ["write", "sync", "replace", "sync folder"]
    assert json.loads(recorder.steps[0][2])["format"] == "calibrant.recalibrator"
