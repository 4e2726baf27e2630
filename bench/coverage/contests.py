"""Two models of the same rows: does the interval of their difference cover, and is the test honest?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

import calibrant as cal
from bench.coverage.populations import Floats, population, truth_at_support, truth_of
from bench.coverage.simulation import LEVEL, Runs

CHUNK = 10
RIVALS = ("the chance itself", "ten values, no error", "half the error", "the opposite error")
CELLS = (
    *((rival, truth, 1_000) for rival in RIVALS for truth in (0.05, 0.2)),
    *((rival, 0.05, 10_000) for rival in RIVALS),
    *((RIVALS[1], 0.0, n) for n in (1_000, 10_000)),
)
REDUCED = ((RIVALS[1], 0.0, 1_000),)


@dataclass(frozen=True)
class Contest(Runs):
    """Some runs of an overconfident model against a rival on the same rows."""

    rival: str
    truth: float
    n: int
    chunk: int
    runs: int = CHUNK

    @property
    def name(self) -> str:
        return f"{self.rival}, {self.truth:g}, {self.n}"


def predictions(rival: str, p: Floats, chance: Floats) -> Floats:
    """What the rival says of rows that the first model calls p and that happen with this chance."""
    if rival == "the chance itself":
        return chance
    if rival == "ten values, no error":  # p is uniform and the chance linear in it
        low, high = chance.min(), chance.max()
        tenth = np.minimum(np.floor(10.0 * p), 9.0)
        return low + (high - low) * (tenth + 0.5) / 10.0
    error = chance - p
    return p + 0.5 * error if rival == "half the error" else np.clip(p + 2.0 * error, 0.0, 1.0)


@cache
def difference(rival: str, truth: float) -> float:
    """The population's SmoothECE of the first model less that of the rival."""
    p, chance = truth_at_support(population("uniform", "overconfident", truth))
    first, second = (
        cal.smooth_ece(chance, given, labels="soft") for given in (p, predictions(rival, p, chance))
    )
    return first - second


def contend(task: Contest) -> dict[str, Any]:
    """Coverage of the interval, and how often the models are told apart, the right way and not."""
    drawn = population("uniform", "overconfident", task.truth)
    chance_of = truth_of(drawn.shape, drawn.distribution)
    rng = task.generator
    truth = difference(task.rival, task.truth)
    covered, found, wrong, width = np.zeros((4, task.runs))
    for run, seed in enumerate(task.seeds):
        y, p = drawn.draw(task.n, rng)
        rival = predictions(task.rival, p, chance_of(p, drawn.amplitude))
        (pair,) = cal.compare(y, {"first": p, "rival": rival}, seed=seed).differences
        sign = 1.0 if pair.first == "first" else -1.0
        covered[run] = pair.low <= sign * truth <= pair.high
        found[run] = pair.p_value <= LEVEL
        wrong[run] = pair.p_value <= LEVEL and sign * truth <= 1e-4
        width[run] = pair.high - pair.low
    return {
        **asdict(task),
        "difference": truth,
        "coverage": float(covered.mean()),
        "told_apart": float(found.mean()),
        "wrongly": float(wrong.mean()),
        "width": float(width.mean()),
    }
