"""Processes that are killed, or forked at a bad moment: no hang, no row lost, nothing deleted."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.fuzz.processes import try_forks, try_kills, try_threads

import calibrant as cal
from calibrant._files import file_lock


def test_files_are_whole_after_kills() -> None:
    result, failures = try_kills(3)
    assert not failures
    assert " 0 looks" not in result


def test_files_of_the_user_stay_whatever_they_are_called(tmp_path: Path) -> None:
    """Saving, and a scan with a checkpoint, take nothing away that they have not made."""
    folder, file = tmp_path / ".calibrant-notes", tmp_path / ".calibrant-lock-mine"
    folder.mkdir()
    (folder / "results.txt").write_text("a week of work")
    file.write_text("mine")
    rows = tmp_path / "rows.csv"
    rows.write_text("p,y\n0.5,1\n")
    cal.scan(rows, y_true="y", y_prob="p", checkpoint=tmp_path / "note")
    cal.save(cal.Sketch.empty(), tmp_path / "quick.json")
    with cal.Monitor.shared(tmp_path / "watch.json") as watch:
        watch.update([0, 1], [0.2, 0.7])
    assert (folder / "results.txt").read_text() == "a week of work"
    assert file.read_text() == "mine"


def test_one_at_a_time_holds_a_file(tmp_path: Path) -> None:
    inside, most = [], []

    def enter() -> None:
        for _ in range(20):
            with file_lock(tmp_path / "state"):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(most) == 120


def test_a_file_that_a_thread_holds_is_refused_to_it_again(tmp_path: Path) -> None:
    """By whichever name; a second block would wait for the first, and its evidence be overwritten."""
    path, link = tmp_path / "watch.json", tmp_path / "link.json"
    link.symlink_to(path)
    with cal.Monitor.shared(path) as outer:
        outer.update([0, 1], [0.2, 0.7])
        for name in (path, link):
            with pytest.raises(cal.InputError) as refused, cal.Monitor.shared(name):
                pass
            assert refused.value.file == str(path)
            assert refused.value.hint
    with cal.Monitor.shared(path) as again:
        assert again.n == 2


def test_a_state_that_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / ".watch.json.lock"
    lock.mkdir()
    with (
        pytest.raises(cal.CalibrantError) as refused,
        cal.Monitor.shared(tmp_path / "watch.json"),
    ):
        pass
    assert refused.value.file == str(tmp_path / "watch.json")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_in_a_block_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    with cal.Monitor.shared(path) as watch:
        child = os.fork()
        if child == 0:
            with cal.Monitor.shared(path) as own:
                own.update([0, 1], [0.2, 0.7])
            os._exit(0)
        time.sleep(0.05)
        watch.update([0, 1], [0.2, 0.7])
    assert os.waitpid(child, 0)[1] == 0
    assert cal.Monitor.load(path).n == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_during_an_update_does_not_hang() -> None:
    assert not try_forks(10)[1]


def test_no_row_is_lost_between_threads() -> None:
    assert not try_threads()[1]
