"""Certified thresholds: how often the promise is broken, and what it costs; intervals of AURC.

python -m bench.certify              # some minutes
python -m bench.certify --reduced    # for CI: fails if a promise is broken too often
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

import calibrant as cal
from bench import pages

Floats = NDArray[np.float64]

RUNS, REDUCED_RUNS, CHUNK = 2_000, 200, 200
CONFIDENCE = 0.95
ORACLE_ROWS, ORACLE_RUNS = 5_000, 400
LEAST = 0.9  # of the coverage of the oracle
FINE = (np.arange(200_000) + 0.5) / 200_000


@dataclass(frozen=True)
class Shape:
    """A population: where confidences lie, and how often an answer of each is wrong.

    `lattice` rounds confidences to so many values; `repeats` is the size of clusters that share their
    outcome, with `mixed` sizes from 1 to that, larger ones more often wrong.
    """

    wrong: Callable[[Floats], Floats]
    n: int
    risk: float = 0.1
    lattice: int | None = None
    repeats: int = 1
    mixed: bool = False
    side: str = "above"
    credit: bool = False

    def confidence(self, u: Floats) -> Floats:
        return u if self.lattice is None else np.floor(u * self.lattice) / self.lattice

    def draw(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        size = self.n // self.repeats
        p = self.confidence(rng.random(size))
        chance = self.wrong(p)
        if self.credit:
            return 1.0 - rng.beta(2.0 * chance, 2.0 * (1.0 - chance)), p, None
        times = rng.integers(1, self.repeats + 1, size) if self.mixed else self.repeats
        if self.mixed:
            chance = chance * (0.5 + times / (self.repeats + 1))
        right = rng.random(size) >= chance
        if self.side == "below":
            right = ~right
        if self.repeats == 1:
            return right, p, None
        cluster = np.repeat(np.arange(size), times)
        return right[cluster], p[cluster], cluster

    def true_risk(self, threshold: float) -> float:
        p = self.confidence(FINE)
        beyond = p <= threshold if self.side == "below" else p >= threshold
        risk = float(self.wrong(p[beyond] if beyond.any() else np.array([threshold])).mean())
        if not self.mixed:
            return risk
        sizes = np.arange(1, self.repeats + 1)
        return risk * float((sizes * (0.5 + sizes / (self.repeats + 1))).sum() / sizes.sum())


def flat(risk: float) -> Callable[[Floats], Floats]:
    return lambda p: np.full_like(p, risk)


SHAPES = {
    "wrong at .105 everywhere": Shape(flat(0.105), 400),
    "at the limit everywhere": Shape(flat(0.1), 400),
    "at the limit everywhere, many rows": Shape(flat(0.1), 5_000),
    "wrong at .105, few rows": Shape(flat(0.105), 60),
    "at the limit, hardly enough rows": Shape(flat(0.1), 30),
    "calibrated": Shape(lambda p: 1 - p, 400),
    "calibrated, many rows": Shape(lambda p: 1 - p, 5_000),
    "over-confident": Shape(lambda p: 1 - p**2, 1_000),
    "under-confident": Shape(lambda p: (1 - p) ** 2, 1_000),
    "the most confident twentieth is bad": Shape(lambda p: np.where(p > 0.95, 0.3, 0.09), 1_000),
    "confidence points the wrong way": Shape(lambda p: 0.05 + 0.1 * p, 1_000),
    "a wave around the limit": Shape(lambda p: 0.1 + 0.05 * np.cos(8 * np.pi * p), 1_000),
    "at the limit above one half, worse below": Shape(lambda p: np.where(p > 0.5, 0.1, 0.2), 1_000),
    "three values": Shape(lambda p: np.where(p > 0.6, 0.05, 0.13), 400, lattice=3),
    "ten values": Shape(lambda p: 0.4 * (1 - p), 1_000, lattice=10),
    "one value, at the limit": Shape(flat(0.1), 200, lattice=1),
    "rare errors, limit .01": Shape(flat(0.0101), 2_000, risk=0.01),
    "rare errors, limit .001": Shape(lambda p: 0.002 * (1 - p) + 0.0005, 10_000, risk=0.001),
    "clusters of 4 that agree, at the limit": Shape(flat(0.1), 800, repeats=4),
    "clusters of 1 to 10, larger ones worse": Shape(flat(0.088), 4_000, repeats=10, mixed=True),
    "below a threshold": Shape(lambda p: p, 1_000, side="below"),
    "partial credit, at the limit": Shape(flat(0.1), 1_000, credit=True),
}
FALLING = {
    "calibrated": lambda p: 1 - p,
    "over-confident": lambda p: 1 - p**2,
    "under-confident": lambda p: (1 - p) ** 2,
    "a step": lambda p: np.where(p > 0.6, 0.02, 0.5),
    "below the limit everywhere": lambda p: 0.08 - 0.02 * p,
    "never far below the limit": lambda p: 0.35 - 0.3 * p,
}


def falsely(name: str, chunk: int) -> dict[str, float]:
    """Of some samples, how many have a threshold beyond which too many are wrong, by three rules."""
    shape, limit = SHAPES[name], SHAPES[name].risk
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
    with np.errstate(all="ignore"):
        bound = np.where(wrong < rows, betaincinv(wrong + 1, rows - wrong, CONFIDENCE), 1.0)
    sign = -1.0 if shape.side == "below" else 1.0
    chosen: dict[str, float | None] = {}
    for rule, value in (("bound", bound), ("plug-in", wrong / rows)):
        within = np.flatnonzero((value <= shape.risk) & last)
        chosen[rule] = sign * float(p[order][within[-1]]) if within.size else None
    return chosen


def efficiency(name: str) -> tuple[float, float]:
    """Coverage of an oracle at the risk less two standard errors, and the mean share that is had."""
    risk, n, wrong = 0.1, ORACLE_ROWS, FALLING[name]
    rows = n * FINE
    true = np.cumsum(wrong(1 - FINE)) / np.arange(1, FINE.size + 1)
    enough = np.flatnonzero(true <= risk - 2 * np.sqrt(risk * (1 - risk) / rows))
    oracle = float(FINE[enough[-1]]) if enough.size else 0.0
    coverages = []
    for run in range(ORACLE_RUNS):
        rng = np.random.default_rng([crc32(name.encode()), run])
        p = rng.random(n)
        coverages.append(cal.certify(rng.random(n) >= wrong(p), p, risk=risk).coverage)
    return oracle, float(np.mean(coverages))


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
    """The tables, and the shapes in which the promise is broken or costs too much."""
    tasks = [(name, chunk) for name in SHAPES for chunk in range(runs // CHUNK)]
    with ProcessPoolExecutor() as pool:
        counted = list(pool.map(falsely, *zip(*tasks, strict=True)))
        had = dict(zip(FALLING, pool.map(efficiency, FALLING), strict=True))
        cells = [(100, 1), (1_000, 1), (10_000, 1), (1_000, 5)]
        held = list(pool.map(intervals, *zip(*cells, strict=True), [runs] * len(cells)))
    rows, broken = [], []
    level = 1 - CONFIDENCE
    allowed = level + (3 * np.sqrt(level * (1 - level) / runs) if runs < RUNS else 0.0)
    for name, shape in SHAPES.items():
        own = [counts for (task, _), counts in zip(tasks, counted, strict=True) if task == name]
        share = {rule: sum(counts[rule] for counts in own) / runs for rule in own[0]}
        if share["certify"] > allowed:
            broken.append(name)
        cells_of = [f"{share[rule]:.3f}" for rule in ("certify", "bound", "plug-in", "certified")]
        rows.append([name, f"{shape.n:,}", f"{shape.risk:g}", *cells_of])
    promise = pages.Table(
        "False certificates",
        ["shape", "rows", "limit", "certify", "bound of the best", "plug-in", "certified at all"],
        rows,
        [
            f"Share of {runs:,} samples whose threshold has a true risk at or above the limit; the level is "
            f"{level:.2f}. Exactly at the limit counts as false here, which is the hardest case.",
            "Bound of the best: the threshold of most coverage whose exact bound is within the limit, "
            "without regard to the choice. Plug-in: whose observed risk is.",
        ],
    )
    broken += [f"coverage, {name}" for name, (oracle, mean) in had.items() if mean < LEAST * oracle]
    cost = pages.Table(
        f"What the promise costs, {ORACLE_ROWS:,} rows",
        ["shape", "oracle's coverage", "certify's, on average", "share"],
        [
            [name, f"{oracle:.3f}", f"{mean:.3f}", f"{mean / oracle:.2f}" if oracle else "none"]
            for name, (oracle, mean) in had.items()
        ],
        [
            f"Means of {ORACLE_RUNS} samples, limit .1. The oracle knows the true risk and stops two "
            "standard errors below the limit.",
        ],
    )
    areas = pages.Table(
        "Intervals of AURC and AUGRC",
        ["rows", "clusters of", "AURC", "AUGRC"],
        [
            [f"{n:,}", str(repeats), f"{one:.3f}", f"{other:.3f}"]
            for (n, repeats), (one, other) in zip(cells, held, strict=True)
        ],
        [f"Share of {runs:,} samples whose 95% interval holds the truth."],
    )
    return [promise, cost, areas], broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="fewer samples, for CI")
    reduced = parser.parse_args().reduced
    tables, broken = study(REDUCED_RUNS if reduced else RUNS)
    page = pages.Page(
        "certify",
        "Certified thresholds",
        "python -m bench.certify",
        "How often `certify` promises too much, in samples whose truth is known, and what its caution costs.",
        tables,
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    for name in broken:
        print(f"NOT KEPT: {name}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
