"""Coverage of every interval that a profile or a decision curve gives, by simulation.

python -m bench.coverage.profiles              # about half an hour on two free cores
python -m bench.coverage.profiles --ratios     # observed/expected, intercept and slope alone; writes no page
python -m bench.coverage.profiles --reduced    # a minute, for CI: fails if an interval covers too little
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

import calibrant as cal
from bench import pages
from calibrant.data.rows import as_rows
from calibrant.decisions.net_benefit import net_benefit, split_rows
from calibrant.inference.assess import read_clustered
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.observed_expected import observed_expected
from calibrant.inference.profile import Profile, Sample
from calibrant.inference.residuals import LabelSums
from calibrant.profiles import clinical, weather
from calibrant.profiles.clinical import gap_quantiles
from calibrant.profiles.logistic import calibration_intercept, calibration_slope
from calibrant.recalibration.halves import maps_of_others

Floats = NDArray[np.float64]
Held = dict[str, Floats]

CONFIDENCE, PROMISE, ERRORS = 0.95, 0.93, 3.0
RUNS, REDUCED_RUNS, CHUNK = 1_000, 50, 25
THRESHOLDS, CURVE = (0.1, 0.2, 0.5), np.arange(1, 20) / 20.0
CLUSTER, POINTS, ATTEMPTS = 4, 40_001, 5_000


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


def cell_name(name: str, n: int, clusters: bool) -> str:
    return f"{name}, {n}{f' in clusters of {CLUSTER}' if clusters else ''}"


def note(held: Held, name: str, low: float, high: float, truth: float) -> None:
    """Count an interval, if there is one, and whether it holds the truth."""
    if not np.isnan(low + high) and np.isfinite(truth):
        held[name] = held.get(name, np.zeros(2))
        held[name] += [low - 1e-12 <= truth <= high + 1e-12, 1.0]


# -- every quantity of two profiles, and decision curves -------------------------------------------

OWN_TRUTH = ("E50", "E90", "Emax", "mean gap (ICI)")
"""Compared with the population at the bandwidth of the sample; the last is in the study of assessments."""


@cache
def truths(name: str) -> tuple[dict[str, float], Any]:
    """Value of each quantity in the population, and its sketch with an assessment."""
    chance, p, weight = POPULATIONS[name].rows()
    y, p = np.repeat([1, 0], p.size), np.tile(p, 2)
    options = {"sample_weight": np.concatenate([weight * chance, weight * (1.0 - chance)])}
    values: dict[str, float] = {}
    for profile in (clinical(thresholds=THRESHOLDS), weather()):
        kept = {k: m for k, m in profile.measures.items() if k not in OWN_TRUTH}
        whole = cal.assess(y, p, profile=Profile(profile.name, kept), **options)
        values |= {quantity.name: quantity.value for quantity in whole.profile.quantities}
    return values, (cal.Sketch.from_arrays(y, p, **options), whole)


def perform(cell: tuple[str, int, bool], chunk: int) -> Held:
    """Intervals of some samples, and how many held the truth."""
    held: Held = {}
    name, n, clusters = cell
    population, (exact, (sketch, whole)) = POPULATIONS[name], truths(name)
    rng = np.random.default_rng([crc32(cell_name(*cell).encode()), chunk])
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        y, p, groups = population.draw(n, rng, clusters=clusters)
        if not 2 <= y.sum() <= n - 2:
            continue
        for profile in (clinical(thresholds=THRESHOLDS), weather()):
            found = cal.assess(y, p, cluster=groups, profile=profile)
            for one in found.profile.quantities:
                if one.name in exact and one.name not in OWN_TRUTH:
                    note(held, one.name, one.low, one.high, exact[one.name])
            if profile.name == "clinical":
                smoothed = replace(whole, bandwidth=found.bandwidth, noise_floor=found.noise_floor)
                for gap, truth in gap_quantiles(Sample(sketch, smoothed)).items():
                    note(held, gap, found.profile[gap].low, found.profile[gap].high, truth.value)
        _decide(held, y, p, groups, seed, population)
    return held


def _decide(held: Held, y: Any, p: Floats, groups: Any, seed: int, population: Population) -> None:
    """Does each band hold its whole curve? What is lost is that of the maps that were learned."""
    found = net_benefit(y, p, cluster=groups, thresholds=CURVE, random_state=seed)
    chance, at, weight = population.rows()
    share = weight / weight.sum()
    worth = share * (chance - (1.0 - chance) * (CURVE / (1.0 - CURVE))[:, None])

    def benefit(predicted: Floats) -> Floats:
        return np.asarray((worth * (predicted >= CURVE[:, None])).sum(axis=1))

    raw = benefit(at)
    outside = np.any((raw < found.low) | (raw > found.high))
    note(held, "net benefit, whole curve", 0.0, 1.0, 2.0 * outside)
    codes = None if groups is None else (groups, int(groups.max()) + 1)
    split = split_rows(as_rows(y, p), codes, seed)
    maps = maps_of_others(split.parts)
    if maps:
        sizes = np.bincount(split.fold, minlength=len(maps)) / split.fold.size
        lost = sum(k * benefit(one.transform(at)) for k, one in zip(sizes, maps, strict=True)) - raw
        outside = np.any((lost < found.lost_low) | (lost > found.lost_high))
        note(held, "lost to miscalibration, whole curve", 0.0, 1.0, 2.0 * outside)


# -- observed/expected, intercept and slope: rare events, few rows, clusters and weights -----------

Draw = Callable[[np.random.Generator], tuple[Floats, Floats, dict[str, Any]]]


def _rows(n: int, predict: Any, chance: Any, per_cluster: int = 0, share: float = 0.0) -> Draw:
    """Samples of n rows; `share` of the variance of what decides outcome and prediction is the cluster's."""

    def draw(rng: np.random.Generator) -> tuple[Floats, Floats, dict[str, Any]]:
        if not per_cluster:
            p = predict(rng.random(n))
            return (rng.random(n) < chance(p)).astype(float), p, {}
        cluster = np.arange(n) // per_cluster
        shared = rng.standard_normal((2, cluster[-1] + 1))[:, cluster]
        u, v = ndtr(np.sqrt(share) * shared + np.sqrt(1.0 - share) * rng.standard_normal((2, n)))
        p = predict(u)
        return (v < chance(p)).astype(float), p, {"cluster": cluster}

    return draw


def _weighted(draw: Draw, weigh: Any) -> Draw:
    def weighted(rng: np.random.Generator) -> tuple[Floats, Floats, dict[str, Any]]:
        y, p, _ = draw(rng)
        return y, p, {"sample_weight": weigh(rng, y)}

    return weighted


def _beta(a: float, b: float) -> Any:
    from scipy.special import betaincinv

    return lambda u: betaincinv(a, b, u)


def _same(p: Floats) -> Floats:
    return p


def _logistic(slope: float) -> Any:
    return lambda p: expit(slope * np.log(p / (1.0 - p)))


def _case_control(rng: np.random.Generator, y: Floats) -> Floats:
    """Weights as where one in ten of the others was kept: the rows' own are 1, the others' 10."""
    return np.where(y > 0.0, 1.0, 10.0) * rng.uniform(0.5, 1.5, y.size)


RATIOS: dict[str, tuple[float, Draw]] = {
    "always .5, truth .98, 50 rows": (
        1.96,
        _rows(50, lambda u: 0 * u + 0.5, lambda p: 0 * p + 0.98),
    ),
    "always .5, truth .98, 400 rows": (
        1.96,
        _rows(400, lambda u: 0 * u + 0.5, lambda p: 0 * p + 0.98),
    ),
    "Beta(2, 2), truth .9 + .1 p, 50 rows": (1.9, _rows(50, _beta(2, 2), lambda p: 0.9 + 0.1 * p)),
    "Beta(2, 2), calibrated, 50 rows": (1.0, _rows(50, _beta(2, 2), _same)),
    "Beta(1, 19), calibrated, 200 rows": (1.0, _rows(200, _beta(1, 19), _same)),
    "Beta(1, 99), calibrated, 200 rows": (1.0, _rows(200, _beta(1, 99), _same)),
    "Beta(1, 19), 40 independent clusters of 25": (1.0, _rows(1000, _beta(1, 19), _same, 25)),
    "Beta(1, 19), 100 independent clusters of 10": (1.0, _rows(1000, _beta(1, 19), _same, 10)),
    "Beta(2, 2), 5 dependent clusters of 50": (1.0, _rows(250, _beta(2, 2), _same, 50, 0.2)),
    "Beta(2, 2), 10 dependent clusters of 50": (1.0, _rows(500, _beta(2, 2), _same, 50, 0.2)),
    "Beta(2, 2), 20 dependent clusters of 50": (1.0, _rows(1000, _beta(2, 2), _same, 50, 0.2)),
    "Beta(2, 2), 40 dependent clusters of 25": (1.0, _rows(1000, _beta(2, 2), _same, 25, 0.2)),
    "Beta(1, 9), 20 dependent clusters of 50": (1.0, _rows(1000, _beta(1, 9), _same, 50, 0.1)),
    "Beta(1, 9), 40 dependent clusters of 25": (1.0, _rows(1000, _beta(1, 9), _same, 25, 0.1)),
    "Beta(1, 9), log-normal weights, 500 rows": (
        1.0,
        _weighted(_rows(500, _beta(1, 9), _same), lambda rng, y: rng.lognormal(0.0, 1.0, y.size)),
    ),
    "Beta(5, 5), weights by outcome, 500 rows": (
        np.nan,
        _weighted(_rows(500, _beta(5, 5), _same), _case_control),
    ),
}
SLOPES: dict[str, tuple[float, Draw]] = {
    f"slope {slope:g}, {kind}": (
        slope,
        _rows(n, _beta(2, 2), _logistic(slope), size, 0.2 if size else 0.0),
    )
    for slope in (1.0, 0.6)
    for kind, n, size in (
        ("100 rows", 100, 0),
        ("5 dependent clusters of 50", 250, 50),
        ("10 dependent clusters of 50", 500, 50),
        ("20 dependent clusters of 50", 1000, 50),
        ("40 dependent clusters of 25", 1000, 25),
    )
}
FEW = ("5 dependent", "10 dependent")
"""Cells below the 20 clusters from which on intervals are promised to cover."""


def intervals(name: str, chunk: int) -> Held:
    """Intervals of O/E, or of slope and intercept, in some samples of a cell."""
    held: Held = {}
    truth, draw = {**RATIOS, **SLOPES}[name]
    rng = np.random.default_rng([crc32(name.encode()), chunk])
    for _ in range(CHUNK):
        y, p, options = draw(rng)
        rows, codes = read_clustered(y, p, options.pop("cluster", None), **options)
        sketch = cal.Sketch.from_rows(rows)
        if name in SLOPES:  # the assessment itself would cost most of the time
            level: Any = SimpleNamespace(confidence=CONFIDENCE)
            sample = Sample(sketch, level, rows, codes)
            one = calibration_slope(sample)
            note(held, "slope", one.low, one.high, truth)
            if truth == 1.0:
                one = calibration_intercept(sample)
                note(held, "intercept", one.low, one.high, 0.0)
            continue
        clusters = None if codes is None else ClusterResiduals.of(sketch.scale, rows, codes)
        ratio = observed_expected(LabelSums.of(sketch), CONFIDENCE, clusters)
        value = truth
        if np.isnan(truth):  # weights by outcome: E[wy] / E[wp]
            chance = _beta(5, 5)((np.arange(20_000) + 0.5) / 20_000)
            value = float(np.mean(chance) / np.mean(chance * (10.0 - 9.0 * chance)))
        note(held, "observed / expected", ratio.low, ratio.high, value)
    return held


def crashes(chunk: int) -> Counter[str]:
    """Exceptions of the clinical profile where 5 to 50 rows have 0 to 3 events."""
    rng = np.random.default_rng([7, chunk])
    kinds: Counter[str] = Counter()
    for k in range(CHUNK):
        n = int(rng.integers(5, 51))
        p = [
            rng.random(n),
            rng.beta(1, 19, n),
            expit(rng.normal(0, 20, n)),
            rng.choice([0.0, 0.3, 1.0], n),
        ][k % 4]
        y = np.zeros(n)
        y[rng.permutation(n)[: rng.integers(0, 4)]] = 1.0
        options = [{}, {"cluster": np.arange(n) // 2}, {"sample_weight": rng.lognormal(0, 1, n)}][
            k % 3
        ]
        try:
            cal.assess(y, p, profile=clinical(thresholds=0.1), **options)
            kinds["none"] += 1
        except Exception as error:
            kinds[type(error).__name__] += 1
    return kinds


# -- the page --------------------------------------------------------------------------------------


def counted(pool: Any, work: Any, cells: Iterable[Any], runs: int) -> dict[Any, Held]:
    """Sums of the runs by cell."""
    tasks = [(cell, chunk) for chunk in range(runs // CHUNK) for cell in cells]
    totals: dict[Any, Held] = defaultdict(dict)
    for (cell, _), held in zip(tasks, pool.map(work, *zip(*tasks, strict=True)), strict=True):
        for name, row in held.items():
            totals[cell][name] = totals[cell].get(name, np.zeros(2)) + row
    return totals


def share(row: Floats | None) -> str:
    return "–" if row is None or row[1] == 0 else f"{row[0] / row[1]:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="fewer cells and runs, for CI")
    parser.add_argument("--ratios", action="store_true", help="O/E, intercept and slope alone")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    runs = REDUCED_RUNS if given.reduced else given.runs
    cells = [] if given.ratios else CELLS[1:4] if given.reduced else CELLS
    with ProcessPoolExecutor(given.workers) as pool:
        few = counted(pool, intervals, [*RATIOS, *SLOPES], runs)
        attempts = runs if given.reduced else ATTEMPTS
        kinds = sum(pool.map(crashes, range(attempts // CHUNK)), Counter())
        totals = counted(pool, perform, cells, runs) if cells else {}
    names = dict.fromkeys(name for held in totals.values() for name in held)
    tables = [
        pages.Table(
            "Coverage of 95% intervals",
            ["interval", *(cell_name(*cell) for cell in totals)],
            [[name, *(share(totals[cell].get(name)) for cell in totals)] for name in names],
        ),
        pages.Table(
            "Observed / expected",
            ["population", "covered"],
            [[name, share(few[name]["observed / expected"])] for name in RATIOS],
        ),
        pages.Table(
            "Calibration slope and intercept",
            ["population", "slope covered", "intercept covered"],
            [
                [name, share(few[name]["slope"]), share(few[name].get("intercept"))]
                for name in SLOPES
            ],
            [
                "Predictions are Beta(2, 2). Dependent clusters share a fifth of the variance of what "
                "decides prediction and outcome. With fewer than 20 clusters the sandwich estimate of the "
                "variance is too small, and a note in the profile says so."
            ],
        ),
        pages.Table(
            "Exceptions of the clinical profile",
            ["exception", "samples"],
            [[kind, f"{number:,}"] for kind, number in kinds.items()],
            [
                "Samples of 5 to 50 rows with 0 to 3 events, a third with clusters, a third with weights."
            ],
        ),
    ]
    if given.ratios:
        print(*(table.markdown() for table in tables[1:]), sep="\n")
    else:
        page = pages.Page(
            "profiles",
            "Profiles: do their intervals contain the truth?",
            "python -m bench.coverage.profiles",
            f"Share of {runs:,} samples whose 95% interval contains the population's value. In the first "
            "table the log-odds z of the predictions are normal; those of the outcomes are a + b z. The rows "
            "of a cluster share 60% of the variance of z and of the hidden variable that decides the outcome."
            " A band for a decision curve counts only if it contains the whole curve, at 19 thresholds. E50, "
            "E90 and Emax are those of the population's curve at the sample's bandwidth. The interval for "
            "the calibration intercept uses the profile likelihood of a model with slope 1, as in R. "
            "Over-confident predictions do not fit that model, so coverage can be lower for them.",
            tables,
            {},
        )
        print(page.write(pages.place(given.reduced)).read_text(encoding="utf-8"))
    failures = [f"{kind}: {number} samples" for kind, number in kinds.items() if kind != "none"]
    failures += [
        f"{name}, {cell}: {row[0] / row[1]:.3f}"
        for cell, held in {**totals, **few}.items()
        for name, row in held.items()
        if row[0] / row[1] < PROMISE - ERRORS * np.sqrt(PROMISE * (1 - PROMISE) / row[1])
        and not any(few in str(cell) for few in FEW)
    ]
    for failure in failures:
        print(f"NOT REACHED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
