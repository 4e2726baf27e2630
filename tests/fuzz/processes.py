"""Processes that are killed while they write, children forked while threads update, threads that share."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import calibrant as cal

__all__ = ["try_forks", "try_kills", "try_threads"]

ROWS = 20_000
PATIENCE_SECONDS = 20.0
THREADS, BATCHES, BATCH_ROWS = 16, 60, 50
WRITING = f"""
import sys
import numpy as np
import calibrant as cal
rng = np.random.default_rng(0)
sketch = cal.Sketch.from_arrays(rng.integers(0, 2, {ROWS}), rng.random({ROWS}))
while True:
    cal.save(sketch, sys.argv[1] + "/sketch.parquet")
    with cal.Monitor.shared(sys.argv[1] + "/watch.json") as watch:
        watch.update([0, 1], [0.2, 0.7])
    print("written", flush=True)
"""
Result = tuple[str, list[str]]


def try_kills(kills: int, seed: int = 0) -> Result:
    """Kill writers at random moments; each time the files are whole."""
    moments, failures, looks = random.Random(seed), [], 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(kills):
            run = [sys.executable, "-c", WRITING, place]
            with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(moments.uniform(0.0, 0.1))
                process.send_signal(signal.SIGKILL)
            try:
                if (folder / "sketch.parquet").exists():
                    sketch = cal.load(folder / "sketch.parquet")
                    assert isinstance(sketch, cal.Sketch)
                    assert sketch.n == ROWS, "rows are missing"
                if (folder / "watch.json").exists():
                    look = cal.Monitor.load(folder / "watch.json").last.look
                    assert look >= looks, "looks are missing"
                    looks = look
            except Exception as error:
                failures.append(f"kill {number} of seed {seed}: {type(error).__name__}: {error}")
    return f"{kills} kills, {looks} looks", failures


def try_forks(forks: int) -> Result:
    """Fork children while threads update a sketch and a monitor; each child updates its own copy."""
    failures = []
    for kind in ("sketch", "monitor"):
        shared = cal.Sketch.empty() if kind == "sketch" else cal.Monitor()
        failures += _with_busy_threads(shared, lambda s=shared, k=kind: _forked(s, k, forks))
    return f"{2 * forks} forks, {len(failures)} hung or lost rows", failures


def _with_busy_threads(
    shared: cal.Sketch | cal.Monitor, work: Callable[[], list[str]]
) -> list[str]:
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            shared.update(y, p)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        return work()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _forked(shared: cal.Sketch | cal.Monitor, kind: str, forks: int) -> list[str]:
    statuses = [_child(shared) for _ in range(forks)]
    return [f"{kind}: fork {k} ended with {status}" for k, status in enumerate(statuses) if status]


def _child(shared: cal.Sketch | cal.Monitor) -> int:
    """The exit status of a child that adds rows once, or -9 where it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, on purpose
        child = os.fork()
    if child == 0:
        before = shared.n
        shared.update([0, 1], [0.2, 0.7])
        os._exit(0 if before % 3000 == 0 and shared.n == before + 2 else 1)
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -9


def try_threads() -> Result:
    """Sixteen threads add rows to one sketch and one monitor: none is lost."""
    sketch, monitor = cal.Sketch.empty(), cal.Monitor()
    rng = np.random.default_rng(0)
    p = rng.random((THREADS * BATCHES, BATCH_ROWS))
    y = (rng.random(p.shape) < p).astype(int)

    def add(first: int) -> None:
        for place in range(first, len(p), THREADS):
            sketch.update(y[place], p[place])
            monitor.update(cal.Sketch.from_arrays(y[place], p[place], nodes=256))

    threads = [threading.Thread(target=add, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures = [
        f"a {name} kept {kept:,} of {p.size:,} rows"
        for name, kept in (("sketch", sketch.n), ("monitor", monitor.n))
        if kept != p.size
    ]
    return f"{sketch.n:,} and {monitor.n:,} of {p.size:,} rows with {THREADS} threads", failures
