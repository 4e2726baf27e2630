"""Certified thresholds: how often the promise is broken, and what it costs; intervals of AURC.

python -m bench.certify              # some minutes
python -m bench.certify --reduced    # for CI: fails if a promise is broken too often
python -m bench.certify --unseen     # only the shapes that no constant was tuned on; writes no page
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from scipy.special import betainc, betaincc
from scipy.stats import binom

import calibrant as cal
from bench import pages
from bench.certify_shapes import FALLING, FINE, SHAPES, UNSEEN, UNSEEN_FALLING, Shape

RUNS, REDUCED_RUNS, CHUNK = 2_000, 200, 200
CONFIDENCE = 0.95
ORACLE_ROWS, ORACLE_RUNS = 5_000, 1_000
LEAST = 0.9  # of the coverage of the oracle, or of the best start if even that has less
FEWEST = 20  # rows with which tests that know the shape start
ALL_SHAPES = SHAPES | UNSEEN
ALL_FALLING = FALLING | UNSEEN_FALLING


def falsely(name: str, chunk: int) -> dict[str, float]:
    """Of some samples, how many have a threshold beyond which too many are wrong, by three rules."""
    shape = ALL_SHAPES[name]
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


@dataclass(frozen=True)
class Coverages:
    """Coverages in a shape: the oracle's, the best that those who know it can do, and certify's."""

    oracle: float
    one_test: float
    best_start: float
    certify: float

    @property
    def enough(self) -> bool:
        return self.certify >= LEAST * min(self.oracle, self.best_start)

    def cells(self) -> list[str]:
        shares = (self.certify / self.oracle, self.certify / self.best_start)
        values = (self.oracle, self.one_test, self.best_start, self.certify)
        return [f"{value:.3f}" for value in values] + [f"{share:.2f}" for share in shares]


def efficiency(name: str) -> Coverages:
    """What can be had of a shape in which risk falls, and what is had on average."""
    risk, n, wrong = 0.1, ORACLE_ROWS, ALL_FALLING[name]
    true = np.cumsum(wrong(1 - FINE)) / np.arange(1, FINE.size + 1)
    enough = np.flatnonzero(true <= risk - 2 * np.sqrt(risk * (1 - risk) / (n * FINE)))
    rows = np.unique(np.ceil(np.geomspace(FEWEST, n, 600)))
    passes = np.empty((ORACLE_RUNS, rows.size), dtype=bool)
    coverages = []
    for run in range(ORACLE_RUNS):
        rng = np.random.default_rng([crc32(name.encode()), run])
        p = rng.random(n)
        right = rng.random(n) >= wrong(p)
        coverages.append(cal.certify(right, p, risk=risk).coverage)
        errors = np.cumsum(~right[np.argsort(-p)])[rows.astype(int) - 1]
        passes[run] = betaincc(errors + 1.0, rows - errors, risk) <= 1 - CONFIDENCE
    allowed = binom.ppf(1 - CONFIDENCE, rows, risk)
    allowed -= binom.cdf(allowed, rows, risk) > 1 - CONFIDENCE
    power = binom.cdf(allowed, rows, np.interp(rows / n, FINE, true))
    return Coverages(
        float(FINE[enough[-1]]),
        float((power * rows / n).max()),
        best_start(passes, rows) / n,
        float(np.mean(coverages)),
    )


def best_start(passes: Any, rows: Any) -> float:
    """Mean rows that one sequence of tests decides, if it starts where that is most for this shape."""
    means = []
    for first in range(0, rows.size, 5):
        failed = ~passes[:, first:]
        before = np.where(failed.any(axis=1), failed.argmax(axis=1), rows.size - first)
        means.append(np.where(before > 0, rows[first + before - 1], 0.0).mean())
    return float(max(means))


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


def promise(
    title: str, shapes: dict[str, Shape], shares: dict[str, dict[str, float]], runs: int
) -> pages.Table:
    """How often each rule promises too much in each of these shapes."""
    rules = ("certify", "bound", "plug-in", "certified")
    return pages.Table(
        title,
        ["shape", "rows", "limit", "certify", "naive bound", "plug-in", "any certificate"],
        [
            [name, f"{shape.n:,}", f"{shape.risk:g}", *(f"{shares[name][r]:.3f}" for r in rules)]
            for name, shape in shapes.items()
        ],
        [
            f"Share of {runs:,} samples in which each rule picks a threshold whose true risk is at or "
            f"above the limit; the level is {1 - CONFIDENCE:.2f}. A risk exactly at the limit counts as "
            "false here, which is the hardest case. Any certificate: the share in which `certify` "
            "gives a threshold at all.",
            "Naive bound: the threshold with the most coverage whose exact bound is within the limit, "
            "ignoring that it was picked from many. Plug-in: the same, with the observed risk instead "
            "of the bound.",
        ],
    )


def unseen(runs: int) -> tuple[pages.Table, list[str]]:
    """The shapes that no constant was tuned on, and those of them in which the promise is broken."""
    names = [name for name in UNSEEN for _ in range(runs // CHUNK)]
    chunks = [chunk for _ in UNSEEN for chunk in range(runs // CHUNK)]
    with ProcessPoolExecutor() as pool:
        counted = list(pool.map(falsely, names, chunks))
    shares = shares_of(names, counted, runs)
    return promise("Shapes not used for tuning", UNSEEN, shares, runs), [
        name for name, share in shares.items() if share["certify"] > 1 - CONFIDENCE
    ]


def shares_of(
    names: list[str], counted: list[dict[str, float]], runs: int
) -> dict[str, dict[str, float]]:
    """By shape, the share of its samples in which each rule promised too much."""
    shares: dict[str, dict[str, float]] = {}
    for name, counts in zip(names, counted, strict=True):
        own = shares.setdefault(name, dict.fromkeys(counts, 0.0))
        for rule, count in counts.items():
            own[rule] += count / runs
    return shares


def study(runs: int) -> tuple[list[pages.Table], list[str]]:
    """The tables, and the shapes in which the promise is broken or costs too much."""
    tasks = [(name, chunk) for name in ALL_SHAPES for chunk in range(runs // CHUNK)]
    with ProcessPoolExecutor() as pool:
        counted = list(pool.map(falsely, *zip(*tasks, strict=True)))
        had = dict(zip(ALL_FALLING, pool.map(efficiency, ALL_FALLING), strict=True))
        cells = [(100, 1), (1_000, 1), (10_000, 1), (1_000, 5)]
        held = list(pool.map(intervals, *zip(*cells, strict=True), [runs] * len(cells)))
    shares = shares_of([name for name, _ in tasks], counted, runs)
    level = 1 - CONFIDENCE
    allowed = level + (3 * np.sqrt(level * (1 - level) / runs) if runs < RUNS else 0.0)
    broken = [name for name, share in shares.items() if share["certify"] > allowed]
    promises = [
        promise("False certificates", SHAPES, shares, runs),
        promise("Shapes not used for tuning", UNSEEN, shares, runs),
    ]
    low = [name for name, coverages in had.items() if not coverages.enough]
    broken += [f"coverage, {name}" for name in low if name in FALLING]
    for name in low:  # those that nothing was tuned on are told, and stand on the page
        print(f"less than {LEAST:g} of the coverage that is wanted: {name}", file=sys.stderr)
    cost = pages.Table(
        f"What the promise costs: coverage with {ORACLE_ROWS:,} rows",
        [
            "shape",
            "oracle",
            "one test",
            "best start",
            "certify",
            "÷ oracle",
            "÷ best start",
        ],
        [[name, *coverages.cells()] for name, coverages in had.items()],
        [
            f"Mean coverage at limit .1; for certify and best start, over {ORACLE_RUNS:,} samples. "
            "Oracle: knows the true risk and stops two standard errors below the limit, which no rule "
            "that sees only outcomes can do. One test: a single exact test at the best threshold for "
            "the shape. Best start: tests from few rows to many, each at the full level, from the best "
            "start for the shape. Both know the shape; certify does not.",
            f"Target: {LEAST:g} of the oracle's coverage, or of the best start's where that is smaller. "
            f"The last {len(UNSEEN_FALLING)} shapes were not used for tuning.",
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
    return [*promises, cost, areas], broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="fewer samples, for CI")
    parser.add_argument("--unseen", action="store_true", help="only shapes it was not tuned on")
    asked = parser.parse_args()
    reduced = asked.reduced
    if asked.unseen:
        table, broken = unseen(REDUCED_RUNS if reduced else RUNS)
        print(table.markdown(), *broken, sep="\n")
        return 1 if broken else 0
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
