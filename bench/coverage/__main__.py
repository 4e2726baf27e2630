"""Coverage of intervals, size and power of tests, false alarms of the monitor, by simulation.

python -m bench.coverage              # under an hour on two cores
python -m bench.coverage --reduced    # about two minutes, for CI: fails if coverage or size is off
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from bench import pages
from bench.coverage import monitoring, peers, tables
from bench.coverage.populations import DISTRIBUTIONS, SHAPES, TRUTHS
from bench.coverage.simulation import Cell, simulate

SIZES = (100, 300, 1_000, 10_000, 100_000)


def cells(reduced: bool, runs: int, null_runs: int) -> list[Cell]:
    sizes = (100, 1_000) if reduced else SIZES
    truths = (0.0, 0.05) if reduced else TRUTHS
    found = [
        Cell("interval", distribution, shape, truth, n, runs if truth else null_runs // len(SHAPES))
        for n in sizes
        for distribution in DISTRIBUTIONS
        for shape in SHAPES
        for truth in truths
    ]
    for kind in ("weights", "clusters"):
        found += [
            Cell(kind, "uniform", SHAPES[0], truth, n, runs)
            for n in ((1_000,) if reduced else (1_000, 10_000))
            for truth in truths
        ]
    return found


def watches(reduced: bool) -> list[monitoring.Watch]:
    return [
        monitoring.Watch(truth, 200 if reduced else 1_000, first, 20)
        for truth in monitoring.TRUTHS
        for first in range(0, 20 if reduced else 200, 20)
    ]


def run(work: Any, tasks: list[Any], workers: int, what: str, resume: bool) -> list[Any]:
    """All results, in the order of the tasks; the longest first, so that no core waits at the end.

    Each is noted in bench/results as soon as it is there, for a run that goes on after a break.
    """
    pages.RESULTS.mkdir(parents=True, exist_ok=True)
    notes = pages.RESULTS / f"coverage-{what}.jsonl"
    if not resume:
        notes.unlink(missing_ok=True)
    lines = notes.read_text().splitlines() if notes.is_file() else []
    done: dict[str, Any] = dict(json.loads(line) for line in lines)
    start = time.monotonic()
    left = sorted((t for t in tasks if str(t) not in done), key=lambda t: -getattr(t, "n", 0))
    with ProcessPoolExecutor(workers) as pool, notes.open("a") as file:
        futures = {pool.submit(work, task): str(task) for task in left}
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            file.write(json.dumps([futures[future], future.result()]) + "\n")
            file.flush()
            spent = f"{time.monotonic() - start:.0f} s"
            print(f"{what}: {len(done)} of {len(tasks)}, {spent}", file=sys.stderr, flush=True)
    return [done[str(task)] for task in tasks]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="fewer cells and runs, for CI")
    parser.add_argument("--runs", type=int, help="samples a cell (400; reduced: 100)")
    parser.add_argument("--null-runs", type=int, help="samples a null cell (2000; reduced: 200)")
    parser.add_argument(
        "--peer-runs", type=int, help="samples a cell for the peers (20; reduced: 0)"
    )
    parser.add_argument("--resume", action="store_true", help="keep what a run before has noted")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    reduced, started = given.reduced, time.monotonic()
    runs = given.runs or (100 if reduced else 400)
    null_runs = given.null_runs or (200 if reduced else 2_000)
    peer_runs = given.peer_runs if given.peer_runs is not None else (0 if reduced else 20)
    tasks = cells(reduced, runs, null_runs)
    found = run(simulate, tasks, given.workers, "cells", given.resume)
    alarms = run(monitoring.watch, watches(reduced), given.workers, "monitor", given.resume)
    watched = monitoring.summary([outcome for part in alarms for outcome in part])
    asked = [cell for cell in tasks if cell.kind == "interval"]
    beside = peers.study(asked, peer_runs) if peer_runs else {}
    minutes = (time.monotonic() - started) / 60
    named = {name: {str(k): v for k, v in by.items()} for name, by in beside.items()}
    pages.save("coverage", {"cells": found, "monitor": watched, "peers": named})
    page = pages.Page(
        "coverage",
        "How sure: do the intervals cover?",
        "python -m bench.coverage" + (" --reduced" if reduced else ""),
        tables.lead(found, watched, minutes),
        tables.sections(found, beside, watched, peer_runs),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    failures = tables.failures(found, watched)
    for failure in failures:
        print(f"NOT REACHED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
