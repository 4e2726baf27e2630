"""Coverage of the interval of `assess`, and size and power of its test, by simulation.

python -m bench.coverage                # an hour or two on a free core
python -m bench.coverage --reduced      # for CI: two minutes, without the evidence
python -m bench.coverage --resume       # more samples, or a new page of those that there are (--minutes 0)

Every cell gets 100 samples in each of ten passes, those with fewest rows first.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

from bench import pages
from bench.coverage import single
from bench.coverage.populations import Cell, cells
from bench.coverage.study import LEVELS, Counts, simulate

PASSES, SAMPLES = 10, 100
BEFORE = Path(__file__).with_name("before.json")
"""Coverage, rejections and width in the study of the construction that this one replaced."""
CHANCE = 0.001
"""A cell fails if what it shows has no more than this chance where the promise is kept."""


def samples_of(cell: Cell) -> int:
    """Samples in a pass: fewer of a million rows."""
    return SAMPLES if cell.n <= 100_000 else SAMPLES // 10


def run(notes: Path, minutes: float) -> dict[str, Counts]:
    """The sums of each cell; every part is noted at once, and one that was noted stays."""
    notes.parent.mkdir(parents=True, exist_ok=True)
    lines = notes.read_text().splitlines() if notes.is_file() else []
    parts = {tuple(key): sums for key, sums in map(json.loads, lines)}
    end = time.monotonic() + 60.0 * minutes
    with notes.open("a") as file:
        for number in range(PASSES):
            for cell in cells():
                if (str(cell), number) in parts or time.monotonic() > end:
                    continue
                sums = simulate(cell, number, samples_of(cell))
                parts[str(cell), number] = sums
                file.write(json.dumps([[str(cell), number], sums]) + "\n")
                file.flush()
    totals: dict[str, Counts] = {}
    for (name, _), sums in parts.items():
        totals.setdefault(name, Counts(name, sums["truth"])).add(sums)
    return totals


def promises(cell: Cell, sums: Counts) -> tuple[float, float]:
    """Largest size and smallest coverage that are promised; weights and clusters estimate more."""
    if cell.kind in ("weights", "weighted", "clusters", "repeated"):
        few = sums.units / sums.samples < 40.0
        return (1.0, 0.0) if few else (0.065, 0.93)
    return 0.06, 0.94


def failures(totals: dict[str, Counts]) -> list[str]:
    """Cells that fall short of the promise, by a binomial test."""
    short = []
    for cell in filter(lambda one: str(one) in totals, cells()):
        sums = totals[str(cell)]
        size, coverage = promises(cell, sums)
        n, missed = sums.samples, sums.missed_above + sums.missed_below
        if sums.truth == 0.0 and binom.sf(sums.rejected - 1, n, size) < CHANCE:
            short.append(f"{cell}: size {sums.size:.3f}")
        if binom.sf(missed - 1, n, 1.0 - coverage) < CHANCE:
            short.append(f"{cell}: coverage {sums.coverage:.3f}")
        if sums.contradictions:
            short.append(f"{cell}: {sums.contradictions} contradictions")
    return short


TITLES = {
    "calibrated": "Calibrated predictions",
    "power": "Power at n = 1,000",
    "soft": "Soft outcomes",
    "rows": "Errors that are hard to find",
    "interval": "Two shapes of error",
    "weights": "Weights that depend on predictions, outcomes and chance",
    "weighted": "Weights that depend on the prediction",
    "clusters": "Clusters",
    "repeated": "Ten forecasts of every event",
    "scale": "Logit scale",
    "sketch": "Sketches of 4,096 cells",
    "classes": "Confidence in one of several classes",
}


def table(kind: str, totals: dict[str, Counts], before: dict[str, list[float]]) -> pages.Table:
    """Cells of one kind, with those of the construction before in brackets."""
    rows = []
    for cell in (one for one in cells() if one.kind == kind and str(one) in totals):
        sums, old = totals[str(cell)], before.get(str(cell))

        def beside(value: float, k: int, digits: int, old: list[float] | None = old) -> str:
            return f"{value:.{digits}f}" + (f" ({old[k]:.{digits}f})" if old else "")

        rows.append(
            [
                cell.population,
                f"{cell.n:,}",
                f"{sums.truth:.4f}",
                f"{sums.samples:,}",
                beside(sums.size, 1, 3),
                beside(sums.coverage, 0, 3),
                f"{sums.missed_above / sums.samples:.3f}",
                beside(sums.width, 2, 4),
                f"{sums.units / sums.samples:,.0f}",
            ]
        )
    if kind == "power" and rows:
        mean = np.mean([one.size for name, one in totals.items() if name.startswith("power,")])
        rows.append(["mean", "", "", "", f"{mean:.3f}", "", "", "", ""])
    header = [
        "population",
        "n",
        "truth",
        "samples",
        "rejected",
        "coverage",
        "misses above",
        "width",
    ]
    return pages.Table(TITLES[kind], [*header, "effective n"], rows)


def lead(totals: dict[str, Counts], short: list[str]) -> str:
    """What the study shows, in a few sentences."""
    samples = [one.samples for one in totals.values()]
    contradictions = sum(one.contradictions for one in totals.values())
    levels = ", ".join(f"{level:g}" for level in LEVELS)
    return (
        f"Samples of populations whose SmoothECE is known: {len(totals)} cells of {min(samples):,} to "
        f"{max(samples):,} samples ({sum(n >= 1_000 for n in samples)} cells have 1,000 or more). Rejected "
        "is the share in which the test at level .05 rejects calibration: its size where the truth is 0, its "
        "power elsewhere. Coverage is that of the nominal 95% interval. In brackets: the construction that "
        f"this one replaced. Test and interval contradicted each other in {contradictions} of "
        f"{sum(samples):,} samples at levels {levels}. Promised are a size of at most .06 and a coverage of "
        "at least .94, with weights and clusters .065 and .93 where their effective number is 40 or more; "
        f"{'none falls' if not short else f'{len(short)} fall'} significantly short of it (binomial test at "
        f"level {CHANCE:g}){': ' + '; '.join(short) if short else ''}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after these")
    parser.add_argument("--resume", action="store_true", help="keep what a run before has noted")
    parser.add_argument("--reduced", action="store_true", help="two minutes, for CI")
    given = parser.parse_args()
    notes = pages.RESULTS / f"coverage{'-reduced' if given.reduced else ''}.jsonl"
    if not given.resume:
        notes.unlink(missing_ok=True)
    totals = run(notes, 2.0 if given.reduced else given.minutes)
    short = failures(totals)
    made = partial(table, totals=totals, before=json.loads(BEFORE.read_text()))
    page = pages.Page(
        "coverage",
        "Coverage: do the intervals contain the truth?",
        "python -m bench.coverage",
        lead(totals, short),
        [one for one in map(made, TITLES) if one.rows] + [single.table()],
        {},
        timed=False,
    )
    print(page.write(pages.place(given.reduced)).read_text(encoding="utf-8"))
    for failure in short:
        print(f"NOT REACHED: {failure}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
