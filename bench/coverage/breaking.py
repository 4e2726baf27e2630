"""Populations that break intervals: local errors, certainty, lattices, odd weights, few clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import calibrant as cal
from bench.coverage.simulation import NODES, TOLERANCE, Runs
from calibrant.data.sketch import Sketch
from calibrant.inference.interval import row_spread, upper_end
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.rejection import Rejection
from calibrant.inference.residuals import ResidualGrid

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]

CONFIDENCES = (0.5, 0.8, 0.95, 0.99, 0.999)
NOMINAL = 0.95
CHUNK = 50
LARGE = 1 << 20


def _ends(draw: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    place, middle = draw.random(n), draw.beta(2, 2, n)
    p = np.where(place < 0.3, 0.0, np.where(place < 0.6, 1.0, middle))
    return p, np.where(p == 0.0, 0.01 / 0.6, np.where(p == 1.0, 1.0 - 0.01 / 0.6, p))


def _some_at_one(draw: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    top, middle = draw.random(n) < 0.4, draw.beta(2, 2, n)
    return np.where(top, 1.0, middle), np.where(top, 0.975, middle)


def _of(predictions: Callable[..., Floats], chance: Callable[[Floats], Floats]) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        p = predictions(rng, n)
        return p, np.clip(chance(p), 0.0, 1.0)

    return draw


def _uniform(draw: np.random.Generator, n: int) -> Floats:
    return draw.random(n)


def _beta(a: float, b: float) -> Callable[..., Floats]:
    return lambda draw, n: draw.beta(a, b, n)


def _tenths(draw: np.random.Generator, n: int) -> Floats:
    return draw.integers(0, 11, n) / 10.0


def _alternating(p: Floats) -> Floats:
    return p + 0.035 * np.where(np.rint(10 * p).astype(int) % 2, -1.0, 1.0)


ROWS: dict[str, Draw] = {
    "calibrated, Beta(2, 5)": _of(_beta(2, 5), lambda p: p),
    "calibrated, 30 values": _of(
        lambda draw, n: np.sqrt(draw.integers(1, 31, n) / 31), lambda p: p
    ),
    "40% at 1, wrong there": _some_at_one,
    "60% at 0 and 1, wrong there": _ends,
    "wrong above 0.85": _of(_beta(2, 2), lambda p: np.where(p > 0.85, p - 0.075, p)),
    "wrong in the middle": _of(_uniform, lambda p: np.where(abs(p - 0.5) < 0.1, p - 0.05, p)),
    "four waves": _of(_uniform, lambda p: p + 0.06 * np.sin(8 * np.pi * p)),
    "tenths, alternating": _of(_tenths, _alternating),
    "slope, Beta(2, 5)": _of(_beta(2, 5), lambda p: expit(0.7 * logit(p))),
    "half too rare, Beta(1, 49)": _of(_beta(1, 49), lambda p: 0.5 * p),
    "0 and 1 only": _of(lambda draw, n: (draw.random(n) < 0.5) * 1.0, lambda p: 0.01 + 0.98 * p),
    "one value": _of(lambda draw, n: np.full(n, 0.5), lambda p: p + 0.02),
    "upside down": _of(_uniform, lambda p: 1.0 - p),
}
SIZES = (100, 1_000, 10_000, 100_000)
LARGEST = {"40% at 1, wrong there": 1_000_000, "calibrated, Beta(2, 5)": 1_000_000}
SCALES = {"slope, Beta(2, 5)": "logit", "calibrated, Beta(2, 5)": "logit", "four waves": "logit"}
SAMPLED = {  # predictions, and the slope of the chance in log-odds
    "1 in 10 without the event, Beta(6, 2)": (6, 2, 1.0),
    "1 in 10 without the event, Beta(1, 19)": (1, 19, 1.0),
    "1 in 10 without the event, Beta(6, 2), slope .8": (6, 2, 0.8),
}
CLUSTERED = {  # rows in each cluster, and the slope of the chance in log-odds
    "100 of 10 rows": ((10,) * 100, 1.0),
    "20 of 50 rows": ((50,) * 20, 1.0),
    "one holds half of the rows": ((500, *(10,) * 50), 1.0),
    "one holds half of the rows, slope .6": ((500, *(10,) * 50), 0.6),
    "100 of 10 rows, slope .6": ((10,) * 100, 0.6),
}


@dataclass(frozen=True)
class Trial(Runs):
    """Some runs of one of these populations."""

    kind: str
    population: str
    n: int
    chunk: int
    runs: int = CHUNK

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.population}, {self.n}"


def cells(reduced: bool) -> list[tuple[str, str, int]]:
    """What is tried: (kind, population, rows)."""
    if reduced:
        hard = ("40% at 1, wrong there", "tenths, alternating", "0 and 1 only")
        return [("rows", name, 1_000) for name in hard] + [
            ("weights", next(iter(SAMPLED)), 1_000),
            ("clusters", "one holds half of the rows", 1_000),
        ]
    rows = [("rows", name, n) for n in SIZES for name in ROWS]
    rows += [("rows", name, n) for name, n in LARGEST.items()]
    rows += [("scale", name, n) for n in (1_000, 10_000) for name in SCALES]
    rows += [("weights", name, n) for n in (1_000, 10_000) for name in SAMPLED]
    return rows + [("clusters", name, 1_000) for name in CLUSTERED]


@cache
def truth_of(kind: str, population: str) -> float:
    """The population's SmoothECE, from a million chances in place of outcomes."""
    rng = np.random.default_rng(1)
    if kind == "rows" or kind == "scale":
        p, chance = ROWS[population](rng, LARGE)
    else:
        a, b, slope = SAMPLED[population] if kind == "weights" else (2, 2, CLUSTERED[population][1])
        p = rng.beta(a, b, LARGE)
        chance = expit(slope * logit(p))
    if np.array_equal(p, chance):
        return 0.0
    scale = SCALES[population] if kind == "scale" else "probability"
    return cal.smooth_ece(chance, p, labels="soft", scale=scale)


def samples(trial: Trial) -> Iterator[dict[str, Any]]:
    """What `assess` is given, run by run."""
    rng = trial.generator
    for _ in range(trial.runs):
        if trial.kind == "weights":
            a, b, slope = SAMPLED[trial.population]
            p = rng.beta(a, b, 4 * trial.n)
            y = rng.random(p.size) < expit(slope * logit(p))
            kept = np.flatnonzero(y | (rng.random(p.size) < 0.1))[: trial.n]
            yield {"y": y[kept], "p": p[kept], "w": np.where(y[kept], 1.0, 10.0)}
        elif trial.kind == "clusters":
            sizes, slope = CLUSTERED[trial.population]
            cluster = np.repeat(np.arange(len(sizes)), sizes)
            # a cluster shares what its predictions do not know of the outcome
            shift = rng.standard_normal(len(sizes))[cluster]
            p = rng.beta(2, 2, cluster.size)
            u = _uniform_of(0.5 * shift + np.sqrt(0.75) * rng.standard_normal(cluster.size))
            yield {"y": u < expit(slope * logit(p)), "p": p, "cluster": cluster}
        else:
            p, chance = ROWS[trial.population](rng, trial.n)
            yield {"y": rng.random(trial.n) < chance, "p": p}


def _uniform_of(normal: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(normal))


def attempt(trial: Trial) -> dict[str, Any]:
    """How often the intervals hold the truth, and whether they agree with the test."""
    truth = truth_of(trial.kind, trial.population)
    low, high = np.empty((2, trial.runs, len(CONFIDENCES)))
    p_values = np.empty(trial.runs)
    for run, sample in enumerate(samples(trial)):
        low[run], high[run], p_values[run] = _bounds(trial, sample)
    at = CONFIDENCES.index(NOMINAL)
    rejected = p_values[:, None] <= 1.0 - np.array(CONFIDENCES) + 1e-12
    held = (low <= truth + 1e-12) & (truth <= high + 1e-12)
    return {
        **asdict(trial),
        "truth": truth,
        "coverage": float(held[:, at].mean()),
        "missed_low": float((high[:, at] < truth - 1e-12).mean()),
        "missed_high": float((low[:, at] > truth + 1e-12).mean()),
        "width": float((high - low)[:, at].mean()),
        "rejected": float(rejected[:, at].mean()),
        "contradictions": int((rejected != (low > 0.0)).sum()),
        "held": held.mean(axis=0).tolist(),
    }


def _bounds(trial: Trial, sample: dict[str, Any]) -> tuple[list[float], list[float], float]:
    y, p = sample["y"].astype(np.uint8), sample["p"]
    if trial.kind == "clusters":
        each = [cal.assess(y, p, cluster=sample["cluster"], confidence=c) for c in CONFIDENCES]
        ends = [(one.interval.low, one.interval.high) for one in each]
        return [low for low, _ in ends], [high for _, high in ends], each[0].p_value
    scale = SCALES[trial.population] if trial.kind == "scale" else "probability"
    sketch = Sketch.from_arrays(y, p, sample_weight=sample.get("w"), nodes=NODES, scale=scale)
    value = max(cal.smooth_ece(sketch, tolerance=TOLERANCE), 1e-5)
    rejection = Rejection.of(sketch, noise_floor(sketch).value)
    spread = row_spread(ResidualGrid.of(sketch, value), value)
    high = [upper_end(value, spread, confidence) for confidence in CONFIDENCES]
    return [rejection.lower_end(c) for c in CONFIDENCES], high, rejection.p_value
