"""Processes that are killed, or forked at a bad moment: no litter, no hang, no row lost."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.fuzz.processes import try_forks, try_kills, try_threads

import calibrant as cal
from calibrant._files import replaced_when_whole
from calibrant._locks import HIDDEN, held


def test_no_litter_stays_after_kills() -> None:
    result, failures = try_kills(5)
    assert not failures
    assert " 0 looks" not in result


def test_what_another_process_writes_is_no_litter(tmp_path: Path) -> None:
    with replaced_when_whole(tmp_path / "slow.txt") as slow:
        slow.write_text("slow")
        cal.save(cal.Sketch.empty(), tmp_path / "quick.json")
        assert slow.exists()
    dead = tmp_path / f"{HIDDEN}dead"
    dead.mkdir()
    (dead / "half").write_text("ha")
    cal.save(cal.Sketch.empty(), tmp_path / "quick.json")
    assert sorted(os.listdir(tmp_path)) == ["quick.json", "slow.txt"]


def test_one_at_a_time_holds_a_file(tmp_path: Path) -> None:
    inside, most = [], []

    def enter() -> None:
        for _ in range(20):
            with held(tmp_path / "state"):
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
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_during_an_update_does_not_hang() -> None:
    assert not try_forks(30)[1]


def test_no_row_is_lost_between_threads() -> None:
    assert not try_threads()[1]
