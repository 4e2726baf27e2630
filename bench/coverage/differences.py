"""Comparisons, groups and bands: size, power and coverage, by simulation.

python -m bench.coverage.differences                # some minutes on one core
python -m bench.coverage.differences --runs 40      # a rehearsal

It prints its tables; a rate of r from n runs has a standard error of √(r (1 - r) / n).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from bench import pages
from calibrant.data.pairs import as_pairs
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch
from calibrant.diagrams.bands import curve_bands
from calibrant.diagrams.kernel import KernelMatrix
from calibrant.inference.band import difference_band
from calibrant.inference.kernel_test import KernelError, difference_p_value
from calibrant.inference.pooling import pool_groups

Floats = NDArray[np.float64]
Generator = np.random.Generator
LEVEL = 0.05
SUPPORT = 1 << 18


def generators(name: str, runs: int) -> Iterator[Generator]:
    """A source of random numbers for each run, whatever else is run."""
    for run in range(runs):
        yield np.random.default_rng([crc32(name.encode()), run])


def overconfident(rng: Generator, n: int) -> tuple[Floats, Floats]:
    """Uniform predictions with SmoothECE .05."""
    p = rng.random(n)
    return p, 0.5 + 0.795 * (p - 0.5)


def local(rng: Generator, n: int) -> tuple[Floats, Floats]:
    """40% of predictions at 1, with events at .975 there, the rest calibrated: SmoothECE .01."""
    certain = rng.random(n) < 0.4
    p = np.where(certain, 1.0, rng.beta(2, 2, n))
    return p, np.where(certain, 0.975, p)


def ends(rng: Generator, n: int) -> tuple[Floats, Floats]:
    """30% at 0 and 30% at 1, each wrong in one of 60: SmoothECE .01."""
    u = rng.random(n)
    p = np.where(u < 0.3, 0.0, np.where(u < 0.6, 1.0, rng.beta(2, 2, n)))
    return p, np.where(u < 0.6, np.clip(p, 1 / 60, 59 / 60), p)


def rare(rng: Generator, n: int) -> tuple[Floats, Floats]:
    """Events in 2% of the rows, predicted a third too often."""
    p = rng.beta(0.5, 20.0, n)
    return p, 0.75 * p


def low(rng: Generator, n: int) -> tuple[Floats, Floats]:
    """Calibrated predictions below .02."""
    p = 0.02 * rng.random(n)
    return p, p


POPULATIONS = {f.__name__: f for f in (overconfident, local, ends, rare, low)}


def halves(rng: Generator, p: Floats, chance: Floats) -> tuple[Floats, Floats]:
    """Two models that are wrong on opposite halves of the rows: equals, whatever the measure."""
    side = rng.random(p.size) < 0.5
    return np.where(side, p, chance), np.where(side, chance, p)


def kernel_tests(runs: int) -> pages.Table:
    """Size on equals, and power against the chance itself and half of the error."""
    rows = []
    for name, draw in POPULATIONS.items():
        for n in (300, 1_000, 5_000):
            told = np.zeros(3)
            for rng in generators(f"kernel {name} {n}", runs):
                p, chance = draw(rng, n)
                y = rng.random(n) < chance
                pairs = (halves(rng, p, chance), (p, chance), (p, 0.5 * (p + chance)))
                for place, models in enumerate(pairs):
                    errors = [KernelError.of_rows(as_pairs(y, q), PROBABILITY) for q in models]
                    told[place] += difference_p_value(*errors, paired=True) <= LEVEL
            rows.append([name, f"{n:,}", *(f"{share:.3f}" for share in told / runs)])
    header = ["population", "n", "equals", "against none", "against half"]
    return pages.Table("Test of equal kernel error at level .05: told apart", header, rows)


@cache
def truth(name: str) -> float:
    """SmoothECE of the population."""
    p, chance = POPULATIONS[name](np.random.default_rng(0), SUPPORT)
    return cal.smooth_ece(chance, p, labels="soft")


def intervals(runs: int) -> pages.Table:
    """Coverage of the interval for the difference of SmoothECE."""
    rows = []
    for name, draw in POPULATIONS.items():
        for n in (1_000, 10_000):
            equal, against, width = 0, 0, 0.0
            for rng in generators(f"interval {name} {n}", runs):
                p, chance = draw(rng, n)
                y = rng.random(n) < chance
                (pair,) = cal.compare(y, {"a": p, "b": chance}).differences
                sign = 1.0 if pair.first == "a" else -1.0
                against += pair.low <= sign * truth(name) <= pair.high
                width += pair.high - pair.low
                one, other = halves(rng, p, chance)
                (pair,) = cal.compare(y, {"a": one, "b": other}).differences
                equal += pair.low <= 0.0 <= pair.high
            shares = (equal / runs, against / runs)
            rows.append([name, f"{n:,}", *(f"{x:.3f}" for x in shares), f"{width / runs:.4f}"])
    header = ["population", "n", "equals", "against none", "width"]
    return pages.Table("95% interval for the difference of SmoothECE: coverage", header, rows)


def bent(p: Floats) -> Floats:
    return np.clip(p + 0.2 * np.sin(2 * np.pi * p), 0.0, 1.0)


GROUPS: dict[str, Callable[[Generator, int], tuple[tuple[Floats, Floats], ...]]] = {
    "predictions apart, same error": lambda rng, n: tuple(
        (p, bent(p)) for p in (rng.beta(2, 5, n), rng.beta(5, 2, n))
    ),
    "both calibrated": lambda rng, n: tuple((p, p) for p in (rng.random(n), rng.beta(2, 2, n))),
    "tenths, same error": lambda rng, n: tuple(
        (p, bent(p)) for p in np.round([rng.beta(2, 5, n), rng.beta(5, 2, n)], 1)
    ),
    "rare": lambda rng, n: tuple((p, p) for p in (0.02 * rng.random(n), 0.1 * rng.random(n))),
    "DIFFERENT: .08 lower": lambda rng, n: (
        (p := rng.beta(2, 5, n), p), (q := rng.beta(3, 3, n), np.clip(q - 0.08, 0, 1)),
    ),
}  # fmt: skip


def group_tests(runs: int) -> pages.Table:
    """Size and power of the test of equal outcomes at equal predictions."""
    rows = []
    for name, draw in GROUPS.items():
        row = [name]
        for n in (300, 1_000, 5_000):
            rejected = 0
            for rng in generators(f"groups {name} {n}", runs):
                sketches = (Sketch.from_arrays(rng.random(n) < c, p) for p, c in draw(rng, n))
                rejected += difference_band(*sketches).p_value <= LEVEL
            row.append(f"{rejected / runs:.3f}")
        rows.append(row)
    header = ["two groups", "n = 300", "1,000", "5,000"]
    return pages.Table("Test of equal outcomes at equal predictions: rejected", header, rows)


def pooled(runs: int) -> pages.Table:
    """Many groups together: size, power, and coverage of each group's own error."""
    rows = []
    for number, n, off, spread in (
        (2, 100, 0.0, 0.0), (20, 50, 0.0, 0.0), (100, 20, 0.0, 0.0),
        (100, 50, 0.024, 0.0), (20, 200, 0.0, 0.05), (100, 30, 0.0, 0.1),
    ):  # fmt: skip
        any_off, differ, held = 0, 0, 0.0
        for rng in generators(f"pooled {number} {n} {off} {spread}", runs):
            errors = off + spread * rng.standard_normal(number)
            groups = {}
            for key, error in enumerate(errors):
                p = rng.uniform(0.3, 0.7, n)
                groups[key] = Sketch.from_arrays(rng.random(n) < p - error, p, nodes=1 << 10)
            found = pool_groups(groups)
            assert found is not None
            any_off += found.p_value <= LEVEL
            differ += found.differ_p_value <= LEVEL
            ends_of = zip(found.groups.values(), errors, strict=True)
            held += np.mean([one.low <= error <= one.high for one, error in ends_of])
        shares = (any_off / runs, differ / runs, held / runs)
        cells = [f"{number}", f"{n}", f"{off:g}", f"{spread:g}", *(f"{x:.3f}" for x in shares)]
        rows.append(cells)
    header = ["groups", "rows each", "off by", "spread", "any off", "differ", "coverage"]
    return pages.Table("Partial pooling of groups", header, rows)


def bands(runs: int) -> pages.Table:
    """Coverage of the population's smoothed curve at the diagram's own bandwidth."""
    rows = []
    for name, draw in POPULATIONS.items():
        p, chance = draw(np.random.default_rng(0), SUPPORT)
        population = Sketch.from_arrays(chance, p, labels="soft", nodes=1 << 12)
        for n in (300, 3_000):
            held, whole = 0.0, 0
            for rng in generators(f"bands {name} {n}", runs):
                p, chance = draw(rng, n)
                sketch = Sketch.from_arrays(rng.random(n) < chance, p)
                diagram = cal.reliability_diagram(sketch, resamples=1)
                shown = diagram.density > 0.05 * diagram.density.max()
                at = np.asarray(sketch.scale.locate(diagram.grid[shown]))
                kernel = KernelMatrix(population, at, diagram.bandwidth, labels=2)
                without, events = kernel(population.weights[None])[0]
                curve = events / (without + events)
                found = curve_bands(
                    sketch, diagram.regression[shown], at, diagram.bandwidth, confidence=0.95
                )
                inside = [
                    (one.low <= curve + 1e-9) & (curve - 1e-9 <= one.high)
                    for one in (found.pointwise, found.simultaneous)
                ]
                held += inside[0].mean()
                whole += inside[1].all()
            rows.append([name, f"{n:,}", f"{held / runs:.3f}", f"{whole / runs:.3f}"])
    header = ["population", "n", "pointwise", "simultaneous"]
    return pages.Table("95% bands of the smoothed curve: coverage", header, rows)


STUDIES = {"tests": kernel_tests, "groups": group_tests, "pooled": pooled, "bands": bands}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--only", choices=[*STUDIES, "intervals"], nargs="*")
    options = parser.parse_args()
    for name, study in {**STUDIES, "intervals": intervals}.items():
        if not options.only or name in options.only:
            print(study(options.runs).markdown(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
