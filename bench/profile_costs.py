"""What the clinical profile costs, from rows and from sketches.

python -m bench.profile_costs              # half a minute
python -m bench.profile_costs --reduced    # fewer rows
"""

from __future__ import annotations

import argparse
import os
import time

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}  # a thread that waits costs time, too

import numpy as np

import calibrant as cal
from bench import pages
from bench.coverage.profiles import POPULATIONS, THRESHOLDS
from calibrant.profiles import clinical

ROWS, REDUCED_ROWS = 1_000_000, 100_000
REPEATS = 5


def costs(n: int) -> list[list[str]]:
    """Milliseconds of processor time, the least of several, with and without the clinical profile."""
    y, p, _ = POPULATIONS["over-confident"].draw(n, np.random.default_rng(0), clusters=False)
    sources = {
        f"{n:,} rows": (y, p),
        "their sketch": (cal.Sketch.from_arrays(y, p),),
        "their logit sketch": (cal.Sketch.from_arrays(y, p, scale="logit"),),
    }
    profile, table = clinical(thresholds=THRESHOLDS), []
    for name, source in sources.items():
        took: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(REPEATS):
            for own in took:
                start = time.process_time()
                cal.assess(*source, profile=profile if own else None)
                took[own].append(1e3 * (time.process_time() - start))
        without, whole = min(took[False]), min(took[True])
        cells = f"{source[0].cells.size:,}" if isinstance(source[0], cal.Sketch) else ""
        table.append([name, cells, f"{without:.0f}", f"{whole:.0f}", f"{whole - without:.0f}"])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="fewer rows, for CI")
    reduced = parser.parse_args().reduced
    page = pages.Page(
        "profile_costs",
        "Profiles: what they cost",
        "python -m bench.profile_costs",
        "Milliseconds of processor time for the assessment alone, for the assessment with the clinical "
        "profile, and for the profile alone: all its quantities with their intervals, and three net "
        "benefits.",
        [
            pages.Table(
                "The clinical profile",
                ["from", "cells", "assess", "with the profile", "the profile alone"],
                costs(REDUCED_ROWS if reduced else ROWS),
                [
                    f"Best of {REPEATS}, run in turn. The cost from a sketch does not depend on the "
                    "number of rows. A probability sketch gives no slope where predictions lie too "
                    "close to 0 or 1.",
                ],
            ),
        ],
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
