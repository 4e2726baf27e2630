"""Populations that break intervals: local errors, certainty, lattices, odd weights, few clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, softmax

import calibrant as cal
from bench.coverage.simulation import NODES, TOLERANCE, Runs
from calibrant.data.rows import as_rows
from calibrant.data.sketch import Sketch
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.interval import Spread, row_spread, upper_end
from calibrant.inference.noise_floor import noise_floor
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
    "1 only": _of(lambda draw, n: np.ones(n), lambda p: p - 0.01),
    "upside down": _of(_uniform, lambda p: 1.0 - p),
    "close together, too low": _of(_beta(200, 200), lambda p: p + 0.03),
    "two values, each towards the other": _of(
        lambda draw, n: np.where(draw.random(n) < 0.5, 0.3, 0.7), lambda p: p + 0.25 * (0.5 - p)
    ),
}
SIZES = (300, 1_000, 5_000, 100_000)
LARGEST = ("40% at 1, wrong there", "calibrated, Beta(2, 5)", "wrong above 0.85")
SCALES = {"slope, Beta(2, 5)": "logit", "calibrated, Beta(2, 5)": "logit", "four waves": "logit"}
COARSE = 1 << 12
SKETCHED = ("calibrated, Beta(2, 5)", "40% at 1, wrong there", "slope, Beta(2, 5)")
CLASSES = {"5 classes, calibrated": (5, 1.0), "5 classes, too sure": (5, 0.7)}
"""Classes, and the factor of the logits that makes the predictions right."""
SAMPLED = {  # predictions, the slope of the chance in log-odds, and how rows come by their weight
    "1 in 10 without the event, Beta(6, 2)": (6, 2, 1.0, "1 in 10"),
    "1 in 10 without the event, Beta(1, 19)": (1, 19, 1.0, "1 in 10"),
    "1 in 10 without the event, Beta(6, 2), slope .8": (6, 2, 0.8, "1 in 10"),
    "1 in 100 without the event, uniform": (1, 1, 1.0, "1 in 100"),
    "1 in 100 without the event, Beta(.1, .1)": (0.1, 0.1, 1.0, "1 in 100"),
    "1 in 10 without the event, uneven, uniform": (1, 1, 1.0, "uneven"),
    "1 in 10 of the wrong calls, Beta(2, 2)": (2, 2, 1.0, "wrong calls"),
    "1 in 10 of the wrong calls, Beta(.3, .3)": (0.3, 0.3, 1.0, "wrong calls"),
    "1 in 10 of the wrong calls, Beta(2, 2), slope .6": (2, 2, 0.6, "wrong calls"),
    "the more surprising the rarer, Beta(2, 2)": (2, 2, 1.0, "surprises"),
    "the more surprising the rarer, Beta(.3, .3)": (0.3, 0.3, 1.0, "surprises"),
    "1 in 10 without the event around .6, Beta(2, 2)": (2, 2, 1.0, "around .6"),
    "1 in 25 by chance without the event, uniform": (1, 1, 1.0, "by chance"),
    "1 in 25 by chance without the event, Beta(2, 5), slope .7": (2, 5, 0.7, "by chance"),
    "log-normal, Beta(1, 49)": (1, 49, 1.0, "log-normal"),
    "log-normal, Beta(6, 2), slope .6": (6, 2, 0.6, "log-normal"),
    "few of 100, Beta(1, 49)": (1, 49, 1.0, "few of 100"),
}
CLUSTERED = {  # rows in each cluster, and the slope of the chance in log-odds
    "100 of 10 rows": ((10,) * 100, 1.0),
    "20 of 50 rows": ((50,) * 20, 1.0),
    "one holds half of the rows": ((500, *(10,) * 50), 1.0),
    "one holds half of the rows, slope .6": ((500, *(10,) * 50), 0.6),
    "100 of 10 rows, slope .6": ((10,) * 100, 0.6),
    "8 of 100 rows, slope .6": ((100,) * 8, 0.6),
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
            ("classes", "5 classes, too sure", 1_000),
            ("weights", next(iter(SAMPLED)), 1_000),
            ("clusters", "one holds half of the rows", 1_000),
        ]
    found = [("rows", name, n) for n in SIZES for name in ROWS]
    found += [("rows", name, 1_000_000) for name in LARGEST]
    found += [("scale", name, n) for n in (1_000, 5_000) for name in SCALES]
    found += [("sketch", name, n) for n in (1_000, 5_000) for name in SKETCHED]
    found += [("classes", name, n) for n in (1_000, 5_000) for name in CLASSES]
    found += [("weights", name, n) for n in (1_000, 5_000) for name in SAMPLED]
    return found + [("clusters", name, 1_000) for name in CLUSTERED]


def top_label(rng: np.random.Generator, population: str, n: int) -> tuple[Floats, Floats, Floats]:
    """Predicted probabilities [n, classes], the true ones, and the chance that the top label is right."""
    classes, factor = CLASSES[population]
    logits = 1.5 * rng.standard_normal((n, classes))
    said, true = softmax(logits, axis=1), softmax(factor * logits, axis=1)
    return said, true, true[np.arange(n), said.argmax(axis=1)]


@cache
def truth_of(kind: str, population: str) -> float:
    """The population's SmoothECE, from a million chances in place of outcomes."""
    rng = np.random.default_rng(1)
    if kind == "classes":
        said, _, chance = top_label(rng, population, LARGE)
        p = said.max(axis=1)
    elif kind in ("rows", "scale", "sketch"):
        p, chance = ROWS[population](rng, LARGE)
    else:
        slope = SAMPLED[population][2] if kind == "weights" else CLUSTERED[population][1]
        a, b = SAMPLED[population][:2] if kind == "weights" else (2, 2)
        p = rng.beta(a, b, LARGE)
        chance = p if slope == 1.0 else expit(slope * logit(p))
    if np.array_equal(p, chance):
        return 0.0
    scale = SCALES[population] if kind == "scale" else "probability"
    return cal.smooth_ece(chance, p, labels="soft", scale=scale)


def weights_by(design: str, rng: np.random.Generator, p: Floats, y: NDArray[np.bool_]) -> Floats:
    """What each row weighs; 0 if it is not in the sample."""
    if design == "log-normal":
        return np.exp(1.5 * rng.standard_normal(y.size))
    if design == "few of 100":
        return np.where(rng.random(y.size) < 0.01, 100.0, 1.0)
    chance = np.where(y, 1.0, 0.01 if design == "1 in 100" else 0.1)
    if design == "wrong calls":
        chance = np.where((p > 0.5) == y, 1.0, 0.1)
    if design == "surprises":
        chance = 1.0 - 0.95 * np.abs(p - y)
    if design == "around .6":
        chance = np.where(y | (np.abs(p - 0.6) > 0.1), 1.0, 0.1)
    if design == "by chance":
        chance = np.where(y | (rng.random(y.size) < 0.5), 1.0, 0.04)
    if design == "uneven":
        chance = chance * expit(rng.standard_normal(y.size))
    return np.where(rng.random(y.size) < chance, 1.0 / chance, 0.0)


def samples(trial: Trial) -> Iterator[dict[str, Any]]:
    """What `assess` is given, run by run."""
    rng = trial.generator
    for _ in range(trial.runs):
        if trial.kind == "weights":
            a, b, slope, design = SAMPLED[trial.population]
            p = rng.beta(a, b, 4 * trial.n)
            y = rng.random(p.size) < expit(slope * logit(p))
            weight = weights_by(design, rng, p, y)
            kept = np.flatnonzero(weight)[: trial.n]
            yield {"y": y[kept], "p": p[kept], "w": weight[kept]}
        elif trial.kind == "clusters":
            sizes, slope = CLUSTERED[trial.population]
            cluster = np.repeat(np.arange(len(sizes)), sizes)
            # a cluster shares what its predictions do not know of the outcome
            shift = rng.standard_normal(len(sizes))[cluster]
            p = rng.beta(2, 2, cluster.size)
            u = ndtr(0.5 * shift + np.sqrt(0.75) * rng.standard_normal(cluster.size))
            yield {"y": u < expit(slope * logit(p)), "p": p, "cluster": cluster}
        elif trial.kind == "classes":
            said, true, _ = top_label(rng, trial.population, trial.n)
            below = rng.random((trial.n, 1)) < np.cumsum(true, axis=1)
            correct, p = cal.confidence(below.argmax(axis=1), said)
            yield {"y": correct, "p": p}
        else:
            p, chance = ROWS[trial.population](rng, trial.n)
            yield {"y": rng.random(trial.n) < chance, "p": p}


def attempt(trial: Trial) -> dict[str, Any]:
    """How often the intervals hold the truth, and whether they agree with the test."""
    truth = truth_of(trial.kind, trial.population)
    low, high, p_values = np.empty((3, trial.runs))
    held = np.empty((trial.runs, len(CONFIDENCES)), dtype=bool)
    for run, sample in enumerate(samples(trial)):
        value, spread, rejection = _uncertainty(trial, sample)
        high[run] = upper_end(value, spread, NOMINAL)
        low[run] = min(rejection.lower_end(NOMINAL), high[run])
        p_values[run] = rejection.p_value
        held[run] = [
            truth <= upper_end(value, spread, confidence) + 1e-12
            and not rejection.excludes(truth, confidence)
            for confidence in CONFIDENCES
        ]
    rejected = p_values <= 1.0 - NOMINAL + 1e-12
    covered = (low <= truth + 1e-12) & (truth <= high + 1e-12)
    return {
        **asdict(trial),
        "truth": truth,
        "coverage": float(covered.mean()),
        "missed_low": float((high < truth - 1e-12).mean()),
        "missed_high": float((low > truth + 1e-12).mean()),
        "width": float((high - low).mean()),
        "rejected": float(rejected.mean()),
        "contradictions": int((rejected != (low > 0.0)).sum()),
        "held": held.mean(axis=0).tolist(),
    }


def _uncertainty(trial: Trial, sample: dict[str, Any]) -> tuple[float, Spread, Rejection]:
    """What `assess` works out before it knows the confidence."""
    y, p = sample["y"].astype(np.uint8), sample["p"]
    scale = SCALES[trial.population] if trial.kind == "scale" else "probability"
    nodes = COARSE if trial.kind == "sketch" else NODES
    sketch = Sketch.from_arrays(y, p, sample_weight=sample.get("w"), nodes=nodes, scale=scale)
    value = max(cal.smooth_ece(sketch, tolerance=TOLERANCE), 1e-5)
    floor, grid = noise_floor(sketch).value, ResidualGrid.of(sketch, value)
    spread = row_spread(grid, value)
    if trial.kind == "clusters":
        fine = grid if floor >= value else ResidualGrid.of(sketch, floor)
        number = int(sample["cluster"].max()) + 1
        clusters = ClusterResiduals.of(fine, as_rows(y, p), (sample["cluster"], number))
        spread = clusters.spread(value, spread)
        rejection = clusters.rejection(clusters.noise_floor(value).value)
    else:
        rejection = Rejection.of(sketch, floor)
    return value, spread, rejection
