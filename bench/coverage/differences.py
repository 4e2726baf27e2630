"""Comparisons, groups and pooling: size, power and coverage.

python -m bench.coverage.differences [SAMPLES]    # of each cell, 1,000 unless told; prints the tables

Each study is a function that draws one sample and says, of each column of its table, whether it happened.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from bench import pages
from calibrant.data.sketch import Sketch
from calibrant.inference.group_difference import group_difference
from calibrant.inference.random_effects import random_effects

Floats = NDArray[np.float64]
Generator = np.random.Generator
SUPPORT = 1 << 18
LEVEL = 0.05


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


@cache
def truth(name: str) -> float:
    """SmoothECE of the population."""
    p, chance = POPULATIONS[name](np.random.default_rng(0), SUPPORT)
    return cal.smooth_ece(chance, p, labels="soft")


def intervals(rng: Generator, name: str, n: int) -> list[float]:
    """Test and interval of the difference of SmoothECE, of equal models and against the true chance."""
    p, chance = POPULATIONS[name](rng, n)
    y = rng.random(n) < chance
    one, other = halves(rng, p, chance)
    (equal,) = cal.compare(y, {"a": one, "b": other}).differences
    (pair,) = cal.compare(y, {"a": p, "b": chance}).differences
    difference = truth(name) if pair.first == "a" else -truth(name)
    contradicts = any(
        (one.p_value_adjusted <= LEVEL) != (one.low > 0.0 or one.high < 0.0)
        for one in (equal, pair)
    )
    return [
        float(equal.p_value_adjusted <= LEVEL),
        float(pair.p_value_adjusted <= LEVEL),
        float(equal.low <= 0.0 <= equal.high),
        float(pair.low <= difference <= pair.high),
        pair.high - pair.low,
        float(contradicts),
    ]


def bent(p: Floats) -> Floats:
    return np.clip(p + 0.2 * np.sin(2 * np.pi * p), 0.0, 1.0)


def oscillating(rng: Generator, n: int) -> tuple[tuple[Floats, Floats], ...]:
    """Two groups whose shares and errors go up and down ten times along the predictions, together."""
    p = rng.random(2 * n)
    first = rng.random(2 * n) < 0.5 + 0.4 * np.sin(20 * np.pi * p)
    chance = np.clip(p + 0.25 * np.sin(20 * np.pi * p), 0.0, 1.0)
    return (p[first], chance[first]), (p[~first], chance[~first])


GROUPS: dict[str, Callable[[Generator, int], tuple[tuple[Floats, Floats], ...]]] = {
    "predictions apart, same error": lambda rng, n: tuple(
        (p, bent(p)) for p in (rng.beta(2, 5, n), rng.beta(5, 2, n))
    ),
    "both calibrated": lambda rng, n: tuple((p, p) for p in (rng.random(n), rng.beta(2, 2, n))),
    "tenths, same error": lambda rng, n: tuple(
        (p, bent(p)) for p in np.round([rng.beta(2, 5, n), rng.beta(5, 2, n)], 1)
    ),
    "shares and errors oscillate": lambda rng, n: oscillating(rng, n),
    "rare": lambda rng, n: tuple((p, p) for p in (0.02 * rng.random(n), 0.1 * rng.random(n))),
    "different: .08 lower in one": lambda rng, n: (
        (p := rng.beta(2, 5, n), p), (q := rng.beta(3, 3, n), np.clip(q - 0.08, 0, 1)),
    ),
}  # fmt: skip


def group_tests(rng: Generator, name: str, n: int) -> list[float]:
    """Is "as frequent at equal predictions" rejected?"""
    sketches = (Sketch.from_arrays(rng.random(p.size) < c, p) for p, c in GROUPS[name](rng, n))
    return [float(group_difference(*sketches).p_value <= LEVEL)]


POOLED = {  # groups, what all are off by, and how far they differ
    "2 groups": (2, 0.0, 0.0),
    "20 groups": (20, 0.0, 0.0),
    "100 groups": (100, 0.0, 0.0),
    "100 groups, all off by .024": (100, 0.024, 0.0),
    "20 groups, off by .05 or so": (20, 0.0, 0.05),
    "100 groups, off by .1 or so": (100, 0.0, 0.1),
}


def pooled(rng: Generator, name: str, n: int) -> list[float]:
    """Is any group found to be off, are they found to differ, and what share of intervals hold?"""
    number, off, spread = POOLED[name]
    errors = off + spread * rng.standard_normal(number)
    groups = {}
    for key, error in enumerate(errors):
        p = rng.uniform(0.3, 0.7, n)
        groups[key] = Sketch.from_arrays(rng.random(n) < p - error, p, nodes=1 << 10)
    found = random_effects(groups)
    assert found is not None
    held = [one.low <= e <= one.high for one, e in zip(found.groups.values(), errors, strict=True)]
    return [
        float(found.p_value <= LEVEL), float(found.heterogeneity_p_value <= LEVEL), float(np.mean(held)),
    ]  # fmt: skip


def _each(populations: Any, *sizes: int) -> list[tuple[str, int]]:
    return [(name, n) for n in sizes for name in populations]


class Study(NamedTuple):
    """What is asked of each sample of some populations, a column for each answer."""

    title: str
    ask: Callable[[Generator, str, int], list[float]]
    cells: list[tuple[str, int]]
    columns: tuple[str, ...]
    note: str


STUDIES = (
    Study(
        "Two models on the same rows: test and 95% interval of the difference in SmoothECE",
        intervals,
        _each(POPULATIONS, 1_000, 5_000, 20_000),
        (
            "rejected, equal models",
            "rejected, against the true chance",
            "coverage, equal models",
            "coverage, against the true chance",
            "width",
            "contradictions",
        ),
        "Equal models are wrong on opposite halves of the rows; in the other columns the second "
        "model predicts the true chance. Overconfident: SmoothECE .05, uniform. Local: 40% at 1, wrong "
        "in 1 of 40. Ends: 30% at 0 and 30% at 1, wrong in 1 of 60. Rare: 2% events, predicted a third "
        "too often. Low: calibrated, below .02. A contradiction is a p-value at most .05 with an "
        "interval that holds 0, or the other way round.",
    ),
    Study(
        "Two groups: test of equal outcomes at equal predictions, level .05",
        group_tests,
        _each(GROUPS, 300, 1_000, 5_000),
        ("rejected",),
        "n: rows in each group.",
    ),
    Study(
        "Many groups: tests at level .05 and 95% intervals",
        pooled,
        list(zip(POOLED, (100, 50, 20, 50, 200, 30), strict=True)),
        ("found miscalibrated", "found to differ", "coverage of groups' intervals"),
        "n: rows in each group. The last column is the mean share of groups whose interval contains the "
        "truth.",
    ),
)


def table(study: Study, samples: int, most: int | None = None) -> pages.Table:
    """Share of samples of each cell in which each thing happened; n is at most `most`."""
    rows = []
    for population, n in study.cells:
        rng = np.random.default_rng(crc32(f"{study.title}, {population}, {n}".encode()))
        answers = [study.ask(rng, population, min(n, most or n)) for _ in range(samples)]
        shares = np.mean(answers, axis=0)
        rows.append([population, f"{n:,}", f"{samples:,}", *(f"{share:.3f}" for share in shares)])
    header = ["population", "n", "samples", *study.columns]
    return pages.Table(study.title, header, rows, [study.note])


if __name__ == "__main__":
    for study in STUDIES:
        print(table(study, int(sys.argv[1]) if len(sys.argv) > 1 else 1_000).markdown(), flush=True)
