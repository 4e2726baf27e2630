"""Coverage of intervals, size and power of tests, false alarms of the monitor, by simulation.

python -m bench.coverage              # some two hours on two free cores
python -m bench.coverage --reduced    # about two minutes, for CI: fails if coverage or size is off

The cells are run in passes, a part of the runs of every cell at a time; those with most rows, and the
peers, come last. `--minutes` ends the study when its time is up, with as many runs as there are by then;
`--resume` goes on from there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from bench import environments, pages
from bench.coverage import breaking, differences, monitoring, peers, power, single, tables
from bench.coverage.populations import DISTRIBUTIONS, SHAPES, TRUTHS
from bench.coverage.simulation import CHUNK, Cell, simulate

SIZES = (300, 1_000, 10_000, 100, 100_000)
"""The first two are what most users have, and come first."""
RUNS, PEER_RUNS, WATCHES, LARGEST_RUNS = 1_000, 20, 200, 100
SEARCHED = 10_000


def plan(reduced: bool) -> list[Any]:
    """All tasks, in passes over the cells; those with most rows, and the peers, at the end."""
    share = 10 if reduced else 1
    sizes, truths = ((1_000,), (0.0, 0.05)) if reduced else (SIZES, TRUTHS)
    order: list[tuple[float, Any]] = []

    def add(tasks: list[Any], after: float = 0.0) -> None:
        order.extend((after + place / len(tasks), task) for place, task in enumerate(tasks))

    def parts(runs: int, chunk: int) -> range:
        return range(max(runs // share // chunk, 1))

    first = []
    for place, n in enumerate(sizes):
        for distribution in DISTRIBUTIONS:
            for shape, truth in ((s, t) for s in SHAPES for t in truths if t or s == SHAPES[0]):
                cell = ("interval", distribution, shape, truth, n)
                add([Cell(*cell, chunk) for chunk in parts(RUNS, CHUNK)], max(place, 1))
                first.append(Cell(*cell, 0))
    dependent = [("clusters", name, truth) for name in DISTRIBUTIONS for truth in truths]
    weighted = [("weights", name, truth) for name in DISTRIBUTIONS for truth in truths]
    some = len(truths) if reduced else None
    for kind, distribution, truth in dependent[:some] + weighted[:some]:
        cell = (kind, distribution, SHAPES[0], truth, 1_000)
        add([Cell(*cell, chunk) for chunk in parts(RUNS, CHUNK)], 2.0)
    for kind, name, n in breaking.cells(reduced):
        runs = RUNS if n <= 100_000 else LARGEST_RUNS
        tasks = [breaking.Trial(kind, name, n, k) for k in parts(runs, breaking.CHUNK)]
        add(tasks, 3.0 if n >= 100_000 else 0.0)
    for name, n in power.REDUCED if reduced else power.CELLS:
        add([power.Search(name, n, k) for k in parts(SEARCHED, power.CHUNK)])
    for study, name, n in differences.cells(reduced):
        chunks = parts(RUNS, differences.CHUNK)
        late = float(differences.STUDIES[study].late)
        add([differences.Contrast(study, name, n, chunk) for chunk in chunks], late)
    for truth in monitoring.TRUTHS:
        looks, runs = (200, 20) if reduced else (1_000, WATCHES)
        watches = range(runs // monitoring.CHUNK)
        add([monitoring.Watch(truth, looks, k) for k in watches], 2.0)
    for n in () if reduced else (size for size in sizes if size <= peers.LARGEST):
        for peer in peers.ASKED:
            same = tuple(cell for cell in first if cell.n == n)
            add([peers.Question(peer, same, run) for run in range(PEER_RUNS)], after=4.0)
    return [task for _, task in sorted(order, key=lambda pair: pair[0])]


def perform(task: Any) -> Any:
    if isinstance(task, Cell):
        return simulate(task)
    if isinstance(task, breaking.Trial):
        return breaking.attempt(task)
    if isinstance(task, power.Search):
        return power.search(task)
    if isinstance(task, differences.Contrast):
        return differences.contrast(task)
    return peers.answer(task) if isinstance(task, peers.Question) else monitoring.watch(task)


def take_one_core() -> None:
    """The cores are shared out among the workers, so a peer that a worker asks has one thread."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def run(given: argparse.Namespace) -> tuple[list[tuple[Any, Any]], bool]:
    """(task, result) of all that was done in time, each noted in bench/results at once; if it was all."""
    tasks, minutes, resume = plan(given.reduced), given.minutes, given.resume
    pages.RESULTS.mkdir(parents=True, exist_ok=True)
    notes = pages.RESULTS / f"coverage{'-reduced' * given.reduced}.jsonl"
    if not resume:
        notes.unlink(missing_ok=True)
    lines = notes.read_text().splitlines() if notes.is_file() else []
    done: dict[str, Any] = dict(json.loads(line) for line in lines)
    start = time.monotonic()
    waiting = [task for task in tasks if str(task) not in done]
    with (
        ProcessPoolExecutor(given.workers, initializer=take_one_core) as pool,
        notes.open("a") as file,
    ):
        futures = {pool.submit(perform, task): str(task) for task in waiting}
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            file.write(json.dumps([futures[future], future.result()]) + "\n")
            file.flush()
            spent = time.monotonic() - start
            print(f"{len(done)} of {len(tasks)}, {spent:.0f} s", file=sys.stderr, flush=True)
            if spent > 60 * minutes:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    ended = [(task, done[str(task)]) for task in tasks if str(task) in done]
    return ended, len(ended) == len(tasks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="fewer cells and runs, for CI")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after these")
    parser.add_argument("--resume", action="store_true", help="keep what a run before has noted")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    done, whole = run(given)
    found, tried, contrasted = (
        tables.merged([(task.name, part) for task, part in done if isinstance(task, kind)])
        for kind in (Cell, breaking.Trial, differences.Contrast)
    )
    searched = [part for task, part in done if isinstance(task, power.Search)]
    asked = [one for task, part in done if isinstance(task, peers.Question) for one in part]
    watched = monitoring.summary(
        [one for task, part in done if isinstance(task, monitoring.Watch) for one in part]
    )
    results = {
        "cells": found,
        "breaking": tried,
        "differences": contrasted,
        "power": searched,
        "monitor": watched,
        "peers": tables.by_peer(asked),
    }
    pages.save("coverage", results)
    failures = tables.failures(found, tried, contrasted, searched, watched)
    page = pages.Page(
        "coverage",
        "Coverage: do the intervals contain the truth?",
        "python -m bench.coverage" + (" --reduced" if given.reduced else ""),
        tables.lead(found, tried, contrasted, failures, whole=whole),
        [
            *power.tables(searched),
            *tables.sections(found, tables.by_peer(asked), tried, watched),
            *differences.tables(contrasted),
            single.table(),
        ],
        environments.pinned(*peers.ASKED) if asked else {},
        timed=not given.resume,
    )
    print(page.write(pages.place(given.reduced)).read_text(encoding="utf-8"))
    for failure in failures:
        print(f"NOT REACHED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
