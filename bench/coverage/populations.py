"""Populations with a known SmoothECE, and samples of them as `assess` takes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, softmax
from scipy.stats import beta

import calibrant as cal

Floats = NDArray[np.float64]
Generator = np.random.Generator
Draw = Callable[[Generator, int], tuple[Floats, Floats]]
"""Predictions and the chance of the event at each."""

DISTRIBUTIONS = ("uniform", "U-shaped", "rare events", "lattice", "half at 1")
SHAPES = ("overconfident", "bent")
TRUTHS = (0.0, 0.01, 0.05, 0.2)
LARGE = 1 << 18


def quantile(distribution: str, rank: Floats) -> Floats:
    """Predictions at these ranks in (0, 1)."""
    if distribution == "uniform":
        return rank
    if distribution == "U-shaped":
        return np.asarray(beta.ppf(rank, 0.4, 0.4))
    if distribution == "rare events":  # events in 0.2% of the rows
        return np.asarray(beta.ppf(rank, 0.5, 249.5))
    if distribution == "lattice":
        return np.floor(rank * 11.0) / 10.0
    return np.minimum(2.0 * rank, 1.0)  # half at 1


@cache
def support(distribution: str) -> Floats:
    """Predictions at equal ranks."""
    return quantile(distribution, (np.arange(LARGE) + 0.5) / LARGE)


@cache
def with_error(distribution: str, shape: str, truth: float) -> Draw:
    """A population of this SmoothECE: overconfident or bent by an amplitude that bisection finds."""
    p, sign = support(distribution), -1.0 if distribution == "half at 1" else 1.0

    def chance(f: Floats, a: float) -> Floats:
        off = 0.5 - f if shape == "overconfident" else sign * np.cos(2.0 * np.pi * f)
        return np.clip(f + a * off, 0.0, 1.0)

    low, high = 0.0, 8.0 if truth else 0.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        error = cal.smooth_ece(chance(p, middle), p, labels="soft", tolerance=1e-4)
        low, high = (middle, high) if error < truth else (low, middle)

    def draw(rng: Generator, n: int) -> tuple[Floats, Floats]:
        f = p[rng.integers(0, LARGE, n)]
        return f, chance(f, high)

    return draw


def _of(predictions: Callable[..., Floats], chance: Callable[[Floats], Floats]) -> Draw:
    def draw(rng: Generator, n: int) -> tuple[Floats, Floats]:
        p = predictions(rng, n)
        return p, np.clip(chance(p), 0.0, 1.0)

    return draw


def _beta(a: float, b: float) -> Callable[..., Floats]:
    return lambda rng, n: rng.beta(a, b, n)


def _uniform(rng: Generator, n: int) -> Floats:
    return rng.random(n)


def _tenths(rng: Generator, n: int) -> Floats:
    return rng.integers(0, 11, n) / 10.0


def _some_at_one(rng: Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.4, 1.0, rng.beta(2, 2, n))


def _ends(rng: Generator, n: int) -> Floats:
    place = rng.random(n)
    return np.where(place < 0.3, 0.0, np.where(place < 0.6, 1.0, rng.beta(2, 2, n)))


def _itself(p: Floats) -> Floats:
    return p


def _bump(p: Floats) -> Floats:
    return p - 0.12 * np.exp(-0.5 * ((p - 0.6) / 0.06) ** 2)


ROWS: dict[str, Draw] = {
    "calibrated, Beta(2, 5)": _of(_beta(2, 5), _itself),
    "calibrated, 30 values": _of(lambda rng, n: np.sqrt(rng.integers(1, 31, n) / 31), _itself),
    "40% at 1, wrong there": _of(_some_at_one, lambda p: np.where(p == 1.0, 0.975, p)),
    "60% at 0 and 1, wrong there": _of(_ends, lambda p: np.clip(p, 1 / 60, 59 / 60)),
    "wrong above 0.85": _of(_beta(2, 2), lambda p: np.where(p > 0.85, p - 0.075, p)),
    "wrong in the middle": _of(_uniform, lambda p: np.where(abs(p - 0.5) < 0.1, p - 0.05, p)),
    "four waves": _of(_uniform, lambda p: p + 0.06 * np.sin(8 * np.pi * p)),
    "tenths, alternating": _of(
        _tenths, lambda p: p + 0.035 * np.where(np.rint(10 * p).astype(int) % 2, -1.0, 1.0)
    ),
    "slope, Beta(2, 5)": _of(_beta(2, 5), lambda p: expit(0.7 * logit(p))),
    "half too rare, Beta(1, 49)": _of(_beta(1, 49), lambda p: 0.5 * p),
    "0 and 1 only": _of(lambda rng, n: (rng.random(n) < 0.5) * 1.0, lambda p: 0.01 + 0.98 * p),
    "one value": _of(lambda rng, n: np.full(n, 0.5), lambda p: p + 0.02),
    "1 only": _of(lambda rng, n: np.ones(n), lambda p: p - 0.01),
    "upside down": _of(_uniform, lambda p: 1.0 - p),
    "close together, too low": _of(_beta(200, 200), lambda p: p + 0.03),
    "two values, each towards the other": _of(
        lambda rng, n: np.where(rng.random(n) < 0.5, 0.3, 0.7), lambda p: p + 0.25 * (0.5 - p)
    ),
}
CALIBRATED: dict[str, Callable[..., Floats]] = {
    "uniform": _uniform,
    "Beta(2, 5)": _beta(2, 5),
    "Beta(.2, .2)": _beta(0.2, 0.2),
    "Beta(1, 99)": _beta(1, 99),
    "tenths": _tenths,
}
ALTERNATIVES: dict[str, Draw] = {  # for power at n = 1,000
    "overconfident, Beta(2, 5)": _of(_beta(2, 5), lambda p: expit(0.78 * logit(p))),
    "shift of .03": _of(_uniform, lambda p: p - 0.03),
    "wiggle": _of(_uniform, lambda p: p + 0.06 * np.sin(4 * np.pi * p)),
    "bump": _of(_uniform, _bump),
    "rare tail": _of(_beta(1, 9), lambda p: np.where(p > 0.3, p - 0.12, p)),
    "overconfident, uniform": _of(_uniform, lambda p: 0.5 + 0.89 * (p - 0.5)),
    "rare, 1.5 times as many": _of(_beta(1, 99), lambda p: 1.5 * p),
    "saturated, overconfident": _of(_beta(0.3, 0.3), lambda p: expit(0.78 * logit(p))),
}
SCALED = ("slope, Beta(2, 5)", "calibrated, Beta(2, 5)", "four waves")
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
    "log-normal (1), uniform": (1, 1, 1.0, "log-normal (1)"),
    "hidden stratum 1 : 100, uniform": (1, 1, 1.0, "hidden"),
}
CLUSTERED = {  # rows in each cluster, the slope of the chance in log-odds, correlation within a cluster
    "100 of 10 rows": ((10,) * 100, 1.0, 0.25),
    "50 of 20 rows": ((20,) * 50, 1.0, 0.25),
    "20 of 50 rows": ((50,) * 20, 1.0, 0.25),
    "one holds half of the rows": ((500, *(10,) * 50), 1.0, 0.25),
    "one holds half of the rows, slope .6": ((500, *(10,) * 50), 0.6, 0.25),
    "100 of 10 rows, slope .6": ((10,) * 100, 0.6, 0.25),
    "8 of 100 rows, slope .6": ((100,) * 8, 0.6, 0.25),
    "200 of 5 rows, independent": ((5,) * 200, 1.0, 0.0),
    "15 of 60 rows, strongly dependent": ((60,) * 15, 1.0, 0.8),
    "8 of 100 rows, strongly dependent": ((100,) * 8, 1.0, 0.8),
}
SOFT: dict[str, Callable[[Generator, Floats], Floats]] = {
    "Beta(.2f, .2(1 - f))": lambda rng, f: rng.beta(0.2 * f + 1e-9, 0.2 * (1 - f) + 1e-9),
    "Beta(2f, 2(1 - f))": lambda rng, f: rng.beta(2 * f + 1e-9, 2 * (1 - f) + 1e-9),
    "Beta(20f, 20(1 - f))": lambda rng, f: rng.beta(20 * f + 1e-9, 20 * (1 - f) + 1e-9),
    "mean of five raters": lambda rng, f: rng.binomial(5, f) / 5,
    "f ± .05": lambda rng, f: np.clip(
        f + rng.uniform(-1, 1, f.size) * np.minimum(0.05, np.minimum(f, 1 - f)), 0, 1
    ),
}


class Cell(NamedTuple):
    """A population, and the number of rows of a sample."""

    kind: str
    population: str
    n: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.population}, {self.n}"


def cells() -> list[Cell]:
    """All cells of the study, the smallest samples first."""
    errors = [
        f"{distribution}, {shape}, {truth:g}"
        for distribution in DISTRIBUTIONS
        for shape in SHAPES
        for truth in TRUTHS
        if truth or shape == SHAPES[0]
    ]
    found = [
        Cell("interval", name, n) for n in (100, 300, 1_000, 10_000, 100_000) for name in errors
    ]
    found += [Cell("rows", name, n) for n in (300, 1_000, 5_000, 100_000) for name in ROWS]
    found += [Cell("rows", name, 1_000_000) for name in list(ROWS)[:5:2]]
    found += [Cell("scale", name, n) for n in (1_000, 5_000) for name in SCALED]
    found += [Cell("sketch", name, n) for n in (1_000, 5_000) for name in SKETCHED]
    found += [Cell("classes", name, n) for n in (1_000, 5_000) for name in CLASSES]
    found += [Cell("weights", name, n) for n in (1_000, 5_000) for name in SAMPLED]
    found += [Cell("clusters", name, 1_000) for name in CLUSTERED]
    smooth = [name for name in errors if "bent" not in name]
    for kind in ("weighted", "repeated"):
        found += [Cell(kind, name.replace("overconfident, ", ""), 1_000) for name in smooth]
    found += [Cell("calibrated", name, n) for n in (10, 20, 200, 1_000) for name in CALIBRATED]
    found += [Cell("power", name, 1_000) for name in ALTERNATIVES]
    found += [Cell("soft", name, n) for n in (200, 1_000) for name in SOFT]
    return sorted(found, key=lambda cell: cell.n)


def draw_of(cell: Cell) -> Draw:
    """The population of a cell: predictions and chances."""
    if cell.kind == "interval":
        distribution, shape, truth = cell.population.rsplit(", ", 2)
        return with_error(distribution, shape, float(truth))
    if cell.kind in ("weighted", "repeated"):
        distribution, truth = cell.population.rsplit(", ", 1)
        return with_error(distribution, SHAPES[0], float(truth))
    if cell.kind in ("rows", "scale", "sketch"):
        return ROWS[cell.population]
    if cell.kind == "power":
        return ALTERNATIVES[cell.population]
    if cell.kind == "calibrated":
        return _of(CALIBRATED[cell.population], _itself)
    if cell.kind == "soft":
        return _of(_uniform, _itself)
    if cell.kind == "classes":
        return lambda rng, n: _top_label(rng, cell.population, n)[:2]
    a, b, slope = (
        (2, 2, CLUSTERED[cell.population][1])
        if cell.kind == "clusters"
        else SAMPLED[cell.population][:3]
    )
    return _of(_beta(a, b), _itself if slope == 1.0 else lambda p: expit(slope * logit(p)))


@cache
def truth_of(cell: Cell) -> float:
    """The population's SmoothECE, from chances in place of outcomes."""
    cell = cell._replace(n=0)
    if cell.kind in ("interval", "weighted", "repeated"):
        return float(cell.population.rsplit(", ", 1)[1])
    p, chance = draw_of(cell)(np.random.default_rng(1), 4 * LARGE)
    if np.array_equal(p, chance):
        return 0.0
    return cal.smooth_ece(chance, p, labels="soft", scale=scale_of(cell))


def scale_of(cell: Cell) -> str:
    """Where the smoothing happens."""
    return "logit" if cell.kind == "scale" else "probability"


def _top_label(rng: Generator, population: str, n: int) -> tuple[Floats, Floats]:
    """Confidence in the top label, and the chance that it is right."""
    classes, factor = CLASSES[population]
    logits = 1.5 * rng.standard_normal((n, classes))
    said, true = softmax(logits, axis=1), softmax(factor * logits, axis=1)
    return said.max(axis=1), true[np.arange(n), said.argmax(axis=1)]


def weights_by(design: str, rng: Generator, p: Floats, y: NDArray[np.bool_]) -> Floats:
    """Weight of each row; 0 if it is not in the sample."""
    if design.startswith("log-normal"):
        return np.exp((1.0 if design.endswith("(1)") else 1.5) * rng.standard_normal(y.size))
    if design in ("few of 100", "hidden"):
        share = 0.01 if design == "few of 100" else 0.1
        return np.where(rng.random(y.size) < share, 100.0, 1.0)
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


def sample(cell: Cell, rng: Generator) -> dict[str, Any]:
    """One sample, as the arguments of `assess`."""
    draw, n = draw_of(cell), cell.n
    if cell.kind == "weights":
        p, chance = draw(rng, 4 * n)
        y = rng.random(p.size) < chance
        weight = weights_by(SAMPLED[cell.population][3], rng, p, y)
        kept = np.flatnonzero(weight)[:n]
        return {"y_true": y[kept], "y_prob": p[kept], "sample_weight": weight[kept]}
    if (
        cell.kind == "weighted"
    ):  # rows drawn too often where p is large, with the weights that undo it
        p, chance = draw(rng, 4 * n)
        kept = rng.random(p.size) < 0.1 + 0.3 * p
        p, y = p[kept], (rng.random(p.size) < chance)[kept]
        return {"y_true": y, "y_prob": p, "sample_weight": 1 / (0.1 + 0.3 * p)}
    if cell.kind == "repeated":  # ten forecasts of every event
        p, chance = draw(rng, n // 10)
        y = rng.random(p.size) < chance
        repeated = (np.repeat(each, 10) for each in (y, p, np.arange(p.size)))
        return dict(zip(("y_true", "y_prob", "cluster"), repeated, strict=True))
    if cell.kind == "clusters":  # a cluster shares what its predictions do not know of the outcome
        sizes, _, correlation = CLUSTERED[cell.population]
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        p, chance = draw(rng, cluster.size)
        shared = rng.standard_normal(len(sizes))[cluster]
        own = rng.standard_normal(cluster.size)
        u = ndtr(np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own)
        return {"y_true": u < chance, "y_prob": p, "cluster": cluster}
    p, chance = draw(rng, n)
    if cell.kind == "soft":
        return {"y_true": SOFT[cell.population](rng, p), "y_prob": p, "labels": "soft"}
    return {"y_true": rng.random(n) < chance, "y_prob": p}
