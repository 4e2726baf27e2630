"""Certified thresholds: how often the promise is broken, and what it costs; intervals of AURC.

python -m bench.certify              # some minutes
python -m bench.certify --reduced    # for CI: fails if a promise is broken too often
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy.special import betainc, betaincc

import calibrant as cal
from bench import pages
from bench.certify_shapes import FALLING, FINE, SHAPES, Shape
from calibrant.decisions.certify import least_rows

RUNS, REDUCED_RUNS, CHUNK = 2_000, 200, 200
CONFIDENCE = 0.95
ORACLE_ROWS, ORACLE_RUNS, REDUCED_ORACLE_RUNS = 5_000, 1_000, 50
BEFORE = Path(__file__).with_name("certify_before.json")
"""Mean coverage of `certify` in the study of its former rule, whose starts were tuned."""


def falsely(name: str, chunk: int) -> dict[str, float]:
    """Of some samples, how many have a threshold beyond which too many are wrong, by three rules."""
    shape = SHAPES[name]
    limit = shape.risk
    counts = dict.fromkeys(("certified", "certify", "bound", "plug-in"), 0)
    at_limit = limit * (1.0 - 1e-9)  # exactly the limit counts as false too: the hardest case
    for run in range(CHUNK):
        rng = np.random.default_rng([crc32(name.encode()), chunk, run])
        y, p, cluster = shape.draw(rng)
        labels = {"labels": "soft"} if shape.credit else {}
        found = cal.certify(
            y, p, risk=limit, cluster=cluster, confidence=CONFIDENCE, side=shape.side, **labels
        )
        counts["certified"] += found.threshold is not None
        chosen = {"certify": found.threshold, **naive(shape, y, p)}
        for rule, threshold in chosen.items():
            counts[rule] += threshold is not None and shape.true_risk(threshold) > at_limit
    return counts


def naive(shape: Shape, y: Any, p: Any) -> dict[str, float | None]:
    """The threshold of most coverage with an observed risk, or an upper bound, within the limit."""
    if shape.side == "below":
        y, p = 1 - np.asarray(y, dtype=float), -p
    order = np.argsort(-p, kind="stable")
    wrong, rows = np.cumsum(1.0 - np.asarray(y, dtype=float)[order]), np.arange(1.0, p.size + 1)
    last = np.append(np.diff(p[order]) != 0, True)
    with np.errstate(all="ignore"):  # the exact bound is within the limit where this holds
        bounded = (wrong < rows) & (betainc(wrong + 1, rows - wrong, shape.risk) >= CONFIDENCE)
    sign = -1.0 if shape.side == "below" else 1.0
    chosen: dict[str, float | None] = {}
    for rule, holds in (("bound", bounded), ("plug-in", wrong / rows <= shape.risk)):
        within = np.flatnonzero(holds & last)
        chosen[rule] = sign * float(p[order][within[-1]]) if within.size else None
    return chosen


def coverages(name: str, runs: int) -> tuple[float, float, float]:
    """Coverage of an oracle in a shape in which risk falls, that of a single start, and `certify`'s."""
    risk, n, wrong = 0.1, ORACLE_ROWS, FALLING[name]
    true = np.cumsum(wrong(1 - FINE)) / np.arange(1, FINE.size + 1)
    enough = np.flatnonzero(true <= risk - 2 * np.sqrt(risk * (1 - risk) / (n * FINE)))
    rows = np.arange(least_rows(risk, 1.0 - CONFIDENCE), n + 1)
    had, single = [], []
    for run in range(runs):
        rng = np.random.default_rng([crc32(name.encode()), run])
        p = rng.random(n)
        right = rng.random(n) >= wrong(p)
        had.append(cal.certify(right, p, risk=risk).coverage)
        errors = np.cumsum(~right[np.argsort(-p)])[rows - 1]
        failed = np.flatnonzero(betaincc(errors + 1.0, rows - errors, risk) > 1.0 - CONFIDENCE)
        last = failed[0] - 1 if failed.size else rows.size - 1
        single.append(rows[last] / n if last >= 0 else 0.0)
    return float(FINE[enough[-1]]), float(np.mean(single)), float(np.mean(had))


def intervals(n: int, repeats: int, runs: int) -> tuple[float, float]:
    """How often the intervals of AURC and AUGRC hold the truth, risk falling in a straight line."""
    held = np.zeros(2)
    for run in range(runs):
        rng = np.random.default_rng([n, repeats, run])
        p = rng.random(n // repeats)
        y, cluster = rng.random(p.size) < p, np.repeat(np.arange(p.size), repeats)
        found = cal.selective(y[cluster], p[cluster], cluster=cluster if repeats > 1 else None)
        held += [0.25 in found.aurc_interval, 1 / 6 in found.augrc_interval]
    return float(held[0] / runs), float(held[1] / runs)


def study(runs: int) -> tuple[list[pages.Table], list[str]]:
    """The tables, and the shapes in which the promise is broken."""
    tasks = [(name, chunk) for name in SHAPES for chunk in range(runs // CHUNK)]
    shares = {name: Counter[str]() for name in SHAPES}
    with ProcessPoolExecutor() as pool:
        for (name, _), counts in zip(
            tasks, pool.map(falsely, *zip(*tasks, strict=True)), strict=True
        ):
            shares[name].update(counts)
        samples = ORACLE_RUNS if runs == RUNS else REDUCED_ORACLE_RUNS
        had = dict(
            zip(FALLING, pool.map(coverages, FALLING, [samples] * len(FALLING)), strict=True)
        )
        cells = [(100, 1), (1_000, 1), (10_000, 1), (1_000, 5)]
        held = list(pool.map(intervals, *zip(*cells, strict=True), [runs] * len(cells)))
    level = 1 - CONFIDENCE
    allowed = level + (3 * np.sqrt(level * (1 - level) / runs) if runs < RUNS else 0.0)
    broken = [name for name, counts in shares.items() if counts["certify"] / runs > allowed]
    rules = ("certify", "bound", "plug-in", "certified")
    promises = pages.Table(
        "False certificates",
        ["shape", "rows", "limit", "certify", "naive bound", "plug-in", "any certificate"],
        [
            [
                name,
                f"{shape.n:,}",
                f"{shape.risk:g}",
                *(f"{shares[name][rule] / runs:.3f}" for rule in rules),
            ]
            for name, shape in SHAPES.items()
        ],
        [
            f"Share of {runs:,} samples in which each rule picks a threshold whose true risk is at or "
            f"above the limit; the level is {level:.2f}. A risk exactly at the limit counts as false here, "
            "which is the hardest case. Any certificate: the share in which `certify` gives a threshold.",
            "Naive bound: the threshold with the most coverage whose exact bound is within the limit, "
            "ignoring that it was picked from many. Plug-in: the same, with the observed risk instead "
            "of the bound.",
        ],
    )
    before = json.loads(BEFORE.read_text())
    cost = pages.Table(
        f"What the promise costs: coverage with {ORACLE_ROWS:,} rows",
        ["shape", "oracle", "one start", "certify", "÷ oracle", "before"],
        [
            [
                name,
                *(f"{one:.3f}" for one in all_of),
                f"{all_of[2] / all_of[0]:.2f}",
                f"{before[name]:.3f}",
            ]
            for name, all_of in had.items()
        ],
        [
            f"Mean coverage of `certify` at limit .1, over {samples:,} samples. Before: with the former "
            "rule, whose starts were tuned on most of these shapes. Oracle: knows the true risk and stops "
            "two standard errors below the limit, which no rule that sees only outcomes can do.",
            "One start: the same exact tests, each at the full level, from the fewest rows that can certify "
            "anything. Where one error more than chance allows is among these, nothing is certified, however "
            "good the model is. `certify` has a start there and at every doubling of the rows, fixed "
            "beforehand, each with an equal share of the level (Learn-then-Test with several starts).",
        ],
    )
    areas = pages.Table(
        "Intervals for AURC and AUGRC",
        ["rows", "rows per cluster", "AURC", "AUGRC"],
        [
            [f"{n:,}", str(repeats), f"{one:.3f}", f"{other:.3f}"]
            for (n, repeats), (one, other) in zip(cells, held, strict=True)
        ],
        [f"Share of {runs:,} samples whose 95% interval contains the truth."],
    )
    return [promises, cost, areas], broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="fewer samples, for CI")
    reduced = parser.parse_args().reduced
    tables, broken = study(REDUCED_RUNS if reduced else RUNS)
    page = pages.Page(
        "certify",
        "Certified thresholds",
        "python -m bench.certify",
        "How often `certify` promises too much when the truth is known, and what its caution costs.",
        tables,
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    for name in broken:
        print(f"NOT KEPT: {name}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
