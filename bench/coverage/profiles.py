"""Coverage of every interval that a profile or a decision curve gives, by simulation.

python -m bench.coverage.profiles              # about ten minutes on two free cores
python -m bench.coverage.profiles --reduced    # a minute, for CI: fails if an interval covers too little
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

import calibrant as cal
from bench import pages
from bench.coverage.simulation import Runs
from calibrant.data.rows import as_rows
from calibrant.decisions import decision_curve as curves
from calibrant.decisions.folds import FOLDS, deal_pairs
from calibrant.decisions.net_benefit import Acting
from calibrant.inference.profile import Profile, Sample
from calibrant.profiles import clinical, weather
from calibrant.profiles.credit import pluto_tasche
from calibrant.profiles.gaps import gap_quantile

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
PROMISE = 0.93
ERRORS = 3.0
RUNS, CHUNK = 400, 25
THRESHOLDS = (0.1, 0.2, 0.5)
CURVE = np.arange(1, 20) / 20.0
POINTS = 40_001
CLUSTER = 4
GRADES = ((100, 400, 300), (0.001, 0.003, 0.01))


@dataclass(frozen=True)
class Population:
    """Log-odds of predictions that are normal, and outcomes with log-odds a + b z."""

    mean: float
    spread: float
    intercept: float
    slope: float

    def draw(self, n: int, rng: np.random.Generator, *, clusters: bool) -> tuple[Any, Floats, Any]:
        if not clusters:
            z = rng.normal(self.mean, self.spread, n)
            return (rng.random(n) < self.chance(z)).astype(int), expit(z), None
        groups = np.arange(n) // CLUSTER
        shared, own = (
            rng.standard_normal((2, n // CLUSTER + 1))[:, groups],
            rng.standard_normal((2, n)),
        )
        mixed = np.sqrt(0.6) * shared + np.sqrt(0.4) * own
        z = self.mean + self.spread * mixed[0]
        return (ndtr(mixed[1]) < self.chance(z)).astype(int), expit(z), groups

    def chance(self, z: Floats) -> Floats:
        return np.asarray(expit(self.intercept + self.slope * z))

    def rows(self) -> tuple[Floats, Floats, Floats]:
        """Chance of the event, prediction and weight on a fine grid: the population itself."""
        u = np.linspace(-7.0, 7.0, POINTS)
        z = self.mean + self.spread * u
        return self.chance(z), expit(z), np.exp(-0.5 * u * u)


POPULATIONS = {
    "calibrated": Population(-0.5, 1.5, 0.0, 1.0),
    "over-confident": Population(-0.5, 2.0, 0.3, 0.6),
    "rare and shifted": Population(-3.0, 1.0, -0.7, 1.1),
}
CELLS = [
    (name, n, clusters)
    for name in POPULATIONS
    for n, clusters in ((200, False), (1_000, False), (1_000, True))
]


@dataclass(frozen=True)
class Trial(Runs):
    """Some samples of one population."""

    population: str
    n: int
    clusters: bool
    chunk: int
    runs: int = CHUNK

    @property
    def name(self) -> str:
        kind = f" in clusters of {CLUSTER}" if self.clusters else ""
        return f"{self.population}, {self.n}{kind}"


@cache
def truths(name: str) -> tuple[dict[str, float], Any]:
    """The value of each quantity in the population, and its assessment."""
    chance, p, weight = POPULATIONS[name].rows()
    y, p = np.repeat([1, 0], p.size), np.tile(p, 2)
    options = {"sample_weight": np.concatenate([weight * chance, weight * (1.0 - chance)])}
    values: dict[str, float] = {}
    for profile in (clinical(thresholds=THRESHOLDS), weather()):
        kept = {k: m for k, m in profile.measures.items() if k not in LEFT_OUT}
        found = cal.assess(y, p, profile=Profile(profile.name, kept), **options)
        values |= {quantity.name: quantity.value for quantity in found.profile.quantities}
    return values, (cal.Sketch.from_arrays(y, p, **options), found)


LEFT_OUT = ("E50, E90, Emax", "mean gap (ICI)")
"""These have a truth of their own, or the study of assessments covers them."""

GAPS = ("E50", "E90", "Emax")
"""Compared with the population at the bandwidth of the sample."""


def perform(trial: Trial) -> dict[str, list[float]]:
    """For each interval: runs in which it held the truth, runs in which there was one, and its width."""
    held: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    rng, population = trial.generator, POPULATIONS[trial.population]
    exact, (sketch, whole) = truths(trial.population)

    def note(name: str, low: float, high: float, truth: float) -> None:
        if not np.isnan(low + high) and np.isfinite(truth):
            row = held[name]
            row[0] += low - 1e-12 <= truth <= high + 1e-12
            row[1] += 1
            row[2] += min(high - low, 10.0)

    for seed in trial.seeds:
        y, p, groups = population.draw(trial.n, rng, clusters=trial.clusters)
        if not 2 <= y.sum() <= trial.n - 2:
            continue
        for profile in (clinical(thresholds=THRESHOLDS), weather()):
            found = cal.assess(y, p, cluster=groups, profile=profile, seed=seed)
            for quantity in found.profile.quantities:
                if quantity.name in exact and quantity.name not in GAPS:
                    note(quantity.name, quantity.low, quantity.high, exact[quantity.name])
            if profile.name == "clinical":
                smoothed = replace(whole, bandwidth=found.bandwidth, noise_floor=found.noise_floor)
                sample = Sample(sketch, smoothed)
                for name in GAPS:
                    ours, truth = found.profile[name], gap_quantile(sample, name)
                    note(name, ours.low, ours.high, truth.value)
        _decide(y, p, groups, seed, population, note)
    return dict(held)


def _decide(y: Any, p: Floats, groups: Any, seed: int, population: Population, note: Any) -> None:
    """Does each band hold its whole curve? What is lost is that of the maps that were learned."""
    found = curves.net_benefit(y, p, cluster=groups, thresholds=CURVE, seed=seed)
    chance, at, weight = population.rows()
    share, acting = weight / weight.sum(), Acting(CURVE)

    def benefit(predicted: Floats) -> Floats:
        reached = acting.reached(predicted)
        table = np.stack(
            [np.bincount(reached, share * part, CURVE.size + 1) for part in (1.0 - chance, chance)],
            axis=1,
        )
        return np.einsum("cl,clt->t", table, acting.worth())

    raw = benefit(at)
    inside = np.all((found.low <= raw) & (raw <= found.high))
    note("net benefit, whole curve", *_as_interval(inside), 0.0)
    pairs = as_rows(y, p)
    codes = None if groups is None else (groups, int(groups.max()) + 1)
    dealt = deal_pairs(pairs, codes, seed)
    maps, _ = curves._maps(dealt.parts, None)
    if not maps:
        return
    sizes = [float(np.mean(dealt.entries.fold == k)) for k in range(FOLDS)]
    after = sum(size * benefit(one.transform(at)) for size, one in zip(sizes, maps, strict=True))
    lost = after - raw
    inside = np.all((found.lost_low <= lost) & (lost <= found.lost_high))
    note("lost to miscalibration, whole curve", *_as_interval(inside), 0.0)


def _as_interval(inside: bool) -> tuple[float, float]:
    return (-0.5, 0.5) if inside else (1.0, 2.0)


def upper_bounds(runs: int) -> list[list[str]]:
    """How often Pluto and Tasche's bounds hold the rates of grades."""
    n, rates = GRADES
    defaults = np.random.default_rng(crc32(b"grades")).binomial(n, rates, (runs, len(n)))
    held = np.mean([pluto_tasche(n, row, CONFIDENCE) >= rates for row in defaults], axis=0)
    return [
        [f"rate {rate:g}, {size} rows", f"{share:.3f}"]
        for rate, size, share in zip(rates, n, held, strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="fewer cells and runs, for CI")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    cells = CELLS[1:4] if given.reduced else CELLS
    runs = 50 if given.reduced else given.runs
    trials = [Trial(*cell, chunk) for chunk in range(runs // CHUNK) for cell in cells]
    totals: dict[str, dict[str, Floats]] = defaultdict(dict)
    with ProcessPoolExecutor(given.workers) as pool:
        for trial, held in zip(trials, pool.map(perform, trials), strict=True):
            for name, row in held.items():
                own = totals[name]
                own[trial.name] = own.get(trial.name, np.zeros(3)) + np.array(row)
            print(trial.name, trial.chunk, file=sys.stderr, flush=True)
    names = [Trial(*cell, 0).name for cell in cells]
    rows = [[name, *(_shown(totals[name].get(cell)) for cell in names)] for name in totals]
    pages.save(
        "profiles", {k: {c: v.tolist() for c, v in own.items()} for k, own in totals.items()}
    )
    page = pages.Page(
        "profiles",
        "Profiles: do their intervals contain the truth?",
        "python -m bench.coverage.profiles"
        + (" --reduced" if given.reduced else f" --runs {runs}" if runs != RUNS else ""),
        f"Share of {runs} samples whose 95% interval contains the population's value. The log-odds z of "
        "the predictions are normal; those of the outcomes are a + b z. The rows of a cluster share "
        "60% of the variance of z and of the hidden variable that decides the outcome. A band for a "
        "decision curve counts only if it contains the whole curve, at 19 thresholds. E50, E90 and "
        "Emax are those of the population's curve at the sample's bandwidth. The interval for the "
        "calibration intercept uses the profile likelihood of a model with slope 1, as in R. "
        "Over-confident predictions do not fit that model, so coverage can be lower for them.",
        [
            pages.Table("Coverage of 95% intervals", ["interval", *names], rows),
            pages.Table(
                "Pluto and Tasche's upper bounds at 95%", ["grade", "covered"], upper_bounds(20_000)
            ),
        ],
        {},
    )
    print(page.write(pages.place(given.reduced)).read_text(encoding="utf-8"))
    failures = [
        f"{name}, {cell}: {row[0] / row[1]:.3f}"
        for name, own in totals.items()
        for cell, row in own.items()
        if row[0] / row[1] < PROMISE - ERRORS * np.sqrt(PROMISE * (1 - PROMISE) / row[1])
    ]
    for failure in failures:
        print(f"NOT REACHED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _shown(row: Floats | None) -> str:
    return "–" if row is None or row[1] == 0 else f"{row[0] / row[1]:.3f}"


if __name__ == "__main__":
    sys.exit(main())
