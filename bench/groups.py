"""Assessments and sketches of many groups, as ratios of peers in the same run.

python -m bench.groups              # up to 10,000 groups
python -m bench.groups --reduced    # up to 1,000
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import calibrant
from bench import costs, pages

ROWS = 300
GROUPS = 1_000
LIMIT = 0.5
"""Of the time in which relplot gives its number for one group."""
SCAN_LIMIT = 8.0
"""Of the engine's own sum of both columns by group."""


def rows_of(groups: int, bad: float, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, predictions and groups; a share `bad` of these is over-confident by half."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(groups), rows)
    p = rng.random(group.size)
    worse = group % 100 < 100 * bad
    y = rng.random(group.size) < np.where(worse, 0.5 + 0.5 * (p - 0.5), p)
    return y.astype(np.int64), p, group


def processor(call: Callable[[], object], repeats: int = 1) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def assessments(groups: int) -> pages.Table:
    """Everything that an assessment holds, for each group, against one number of a peer."""
    measured = costs.measure(["relplot"], [ROWS])["relplot"][ROWS]
    theirs = measured.get("cpu")
    rows = []
    for what, bad in (("all calibrated", 0.0), ("a quarter over-confident", 0.25)):
        y, p, group = rows_of(groups, bad)
        own = processor(lambda y=y, p=p, g=group: calibrant.assess_by(y, p, by=g), 3) / groups
        cells = [what, f"{groups:,}", f"{1e3 * own:.2f} ms"]
        if theirs is None:
            rows.append([*cells, measured["none"], "", f"{LIMIT:g}", ""])
            continue
        ratio = own / theirs
        verdict = "kept" if ratio <= LIMIT else "**not kept**"
        rows.append([*cells, f"{1e3 * theirs:.2f} ms", f"{ratio:.2f}", f"{LIMIT:g}", verdict])
    header = [
        "groups",
        "number of groups",
        "`assess_by`, per group",
        "relplot's SmoothECE",
        "ratio",
        "at most",
        "",
    ]
    notes = [
        f"Processor time for a group of {ROWS} rows. `assess_by` gives value, interval, noise floor, "
        "test, detectable error, direction and scores; relplot gives SmoothECE alone for as many rows. "
        "Best of three runs, and of many calls to relplot.",
        f"Machine load while this was written: {os.getloadavg()[0]:.1f}.",
    ]
    return pages.Table("Assessments", header, rows, notes)


def growth(sizes: list[int]) -> pages.Table:
    """Time and memory against the number of groups, a quarter of them bad."""
    rows, first = [], None
    for groups in sizes:
        y, p, group = rows_of(groups, 0.25, rows=100)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        each = processor(lambda y=y, p=p, g=group: calibrant.assess_by(y, p, by=g)) / groups
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        first = first or each
        rows.append([f"{groups:,}", f"{1e3 * each:.2f} ms", f"{each / first:.2f}", f"{grown:.0f}"])
    header = ["groups", "per group", "× the first", "extra MB"]
    notes = ["100 rows per group. Extra MB: peak resident memory minus that before the call."]
    return pages.Table("Cost by number of groups", header, rows, notes)


def scans() -> pages.Table:
    """Sketches by group of a pandas frame, against its own group-by sum, by turns."""
    y, p, _ = rows_of(GROUPS, 0.0)
    group = np.random.default_rng(0).integers(0, GROUPS, y.size)
    names = np.array([f"group {k}" for k in range(GROUPS)])[group]
    rows = []
    for what, column in (("whole numbers", group), ("text", names)):
        frame = pd.DataFrame({"y": y, "p": p, "g": column})

        def own(frame: pd.DataFrame = frame) -> object:
            return calibrant.scan(frame, y_true="y", y_prob="p", by="g")

        def engine(frame: pd.DataFrame = frame) -> object:
            return frame.groupby("g")[["y", "p"]].sum()

        turns = [(processor(own), processor(engine)) for _ in range(9)]
        ours, theirs = (min(turn[k] for turn in turns) for k in range(2))
        ratio = ours / theirs
        verdict = "kept" if ratio <= SCAN_LIMIT else "**not kept**"
        times = [f"{1e3 * ours:.1f} ms", f"{1e3 * theirs:.1f} ms", f"{ratio:.1f}"]
        rows.append([what, *times, f"{SCAN_LIMIT:g}", verdict])
    header = ["group column", "`scan(..., by=)`", "pandas' sum by group", "ratio", "at most", ""]
    notes = [f"{y.size:,} rows in {GROUPS:,} groups. Processor time, best of nine, run in turn."]
    return pages.Table("Sketches by group", header, rows, notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="up to 1,000 groups, for CI")
    reduced = parser.parse_args().reduced
    sizes = [100, 300, 1_000] if reduced else [100, 1_000, 10_000]
    page = pages.Page(
        "groups",
        "Many groups",
        "python -m bench.groups" + (" --reduced" if reduced else ""),
        "What a thousand groups cost, compared with one number from a peer and with a plain sum by "
        "group.",
        [assessments(200 if reduced else GROUPS), growth(sizes), scans()],
        {},
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
