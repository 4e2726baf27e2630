"""Processes that are killed, or forked at a bad moment: no litter, no hang, no row lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant._files import replaced_when_whole
from calibrant._locks import HIDDEN, held

KILLS = 6
FORKS = 40

WRITING = """
import sys
import numpy as np
import calibrant as cal
rng = np.random.default_rng(0)
sketch = cal.Sketch.from_arrays(rng.integers(0, 2, 20_000), rng.random(20_000))
print("ready", flush=True)
while True:
    cal.save(sketch, sys.argv[1] + "/sketch.parquet")
    with cal.Monitor.shared(sys.argv[1] + "/watch.json") as watch:
        watch.update([0, 1], [0.2, 0.7])
"""


def test_no_litter_stays_after_kills(tmp_path: Path) -> None:
    moments = random.Random(0)
    looks = 0
    for _ in range(KILLS):
        run = [sys.executable, "-c", WRITING, str(tmp_path)]
        with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(moments.uniform(0.0, 0.2))
            process.send_signal(signal.SIGKILL)
        if (tmp_path / "sketch.parquet").exists():
            assert cal.load(tmp_path / "sketch.parquet").n == 20_000
        if (tmp_path / "watch.json").exists():
            look = cal.Monitor.load(tmp_path / "watch.json").last
            assert look.look >= looks
            looks = look.look
    with cal.Monitor.shared(tmp_path / "watch.json") as watch:
        assert watch.update([0, 1], [0.2, 0.7]).look == looks + 1
    cal.save(cal.Sketch.empty(), tmp_path / "sketch.parquet")
    assert sorted(os.listdir(tmp_path)) == ["sketch.parquet", "watch.json"]


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
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", ["sketch", "monitor"])
def test_a_child_that_is_forked_during_an_update_does_not_hang(kind: str) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    shared = cal.Sketch.empty() if kind == "sketch" else cal.Monitor()
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            shared.update(y, p)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        statuses = [_forked(shared) for _ in range(FORKS)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [0] * FORKS


def _forked(shared: cal.Sketch | cal.Monitor) -> int:
    """The exit status of a child that adds rows once, or -1 where it hangs."""
    child = os.fork()
    if child == 0:
        before = shared.n
        shared.update([0, 1], [0.2, 0.7])
        os._exit(0 if before % 3000 == 0 and shared.n == before + 2 else 1)
    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def test_no_row_is_lost_between_threads() -> None:
    sketch, rows = cal.Sketch.empty(), 3000
    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, 2, 50), rng.random(50)) for _ in range(rows // 50)]

    def add(place: int) -> None:
        for y, p in batches[place::16]:
            sketch.update(y, p)

    threads = [threading.Thread(target=add, args=(place,)) for place in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sketch.n == rows
