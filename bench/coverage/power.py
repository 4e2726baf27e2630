"""How often tests of calibration find what is there, and what is not: calibrant's, and six others.

The predictions of a sample decide all of calibrant's test but its residuals: cells, witnesses and null
distribution. So many outcomes are drawn for the same predictions, and tested together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bench import pages
from bench.coverage.simulation import LEVEL, Runs
from calibrant.data.sketch import Sketch
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.noise_floor import noise_floor

Floats = NDArray[np.float64]

SIZES = (300, 1_000, 5_000)
CHUNK = 200
COSINES = 12
PREDICTIONS: dict[str, tuple[float, float]] = {
    "overconfident": (2, 2), "shifted": (2, 2), "wiggle": (1, 1), "bump": (1, 1), "rare tail": (1, 9),
}  # fmt: skip
SETS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda draw, n: draw.random(n),
    "Beta(2, 5)": lambda draw, n: draw.beta(2, 5, n),
    "Beta(0.4, 0.4)": lambda draw, n: draw.beta(0.4, 0.4, n),
    "Beta(1, 49)": lambda draw, n: draw.beta(1, 49, n),
    "Beta(5, 1)": lambda draw, n: draw.beta(5, 1, n),
    "tenths": lambda draw, n: draw.integers(0, 11, n) / 10.0,
    "30 values": lambda draw, n: draw.choice(draw.random(30), n),
    "half at 1": lambda draw, n: np.minimum(2.0 * draw.random(n), 1.0),
}
SET_SIZES = (100, 300, 1_000, 10_000)
CELLS = [(name, n) for n in SIZES for name in PREDICTIONS]
CELLS += [(name, n) for n in SET_SIZES for name in SETS]
REDUCED = [(name, 300) for name in PREDICTIONS] + [("uniform", 1_000)]


def chance(alternative: str, p: Floats, n: int) -> Floats:
    """Of the event; errors shrink like 1/√n, so that no table is full of ones."""
    k = float(np.sqrt(1_000 / n))
    if alternative == "overconfident":
        return np.asarray(expit((1.0 - 0.22 * k) * logit(p)))
    if alternative == "shifted":
        return np.asarray(expit(logit(p) + 0.14 * k))
    if alternative == "wiggle":
        return np.clip(p + 0.05 * k * np.sin(4.0 * np.pi * p), 0.0, 1.0)
    if alternative == "bump":
        return np.clip(p - 0.14 * k * np.exp(-0.5 * ((p - 0.6) / 0.06) ** 2), 0.0, 1.0)
    return np.where(p > 0.3, np.clip(p - 0.2 * k, 0.0, 1.0), p)


def p_values(p: Floats, y: Floats) -> Floats:
    """What `assess` gives for each row of outcomes [samples, n] of sorted predictions [n]."""
    sketch = Sketch.from_arrays(np.zeros(p.size, dtype=np.uint8), p)
    rejection = Rejection.of(sketch, noise_floor(sketch).value)
    rows = rejection.cells.rows
    assert rows is not None
    first = np.cumsum(rows) - rows
    residual = np.add.reduceat(p - y, first, axis=1) / p.size
    return rejection.p_values(residual)


def spiegelhalter(y: Floats, p: Floats) -> Floats:
    """|Z| of the Brier score (Spiegelhalter, 1986)."""
    error = np.sqrt(((1.0 - 2.0 * p) ** 2 * p * (1.0 - p)).sum())
    return np.abs((p - y) @ (1.0 - 2.0 * p)) / error


def cox(y: Floats, p: Floats) -> Floats:
    """Likelihood ratio of intercept 0 and slope 1 (Cox, 1958)."""
    x = np.stack([np.ones_like(p), logit(np.clip(p, 1e-9, 1.0 - 1e-9))])
    b = np.tile([0.0, 1.0], (len(y), 1))

    def log_likelihood(b: Floats) -> Floats:
        z = b @ x
        return np.asarray((y * z - np.logaddexp(0.0, z)).sum(axis=1))

    start = log_likelihood(b)
    for _ in range(8):
        mean = expit(b @ x)
        weight = mean * (1.0 - mean)
        moments = weight @ np.stack([x[0], x[1], x[1] ** 2]).T
        a00, a01, a11 = moments.T
        g0, g1 = ((y - mean) @ x.T).T
        determinant = np.maximum(a00 * a11 - a01**2, 1e-12)
        step = np.stack([a11 * g0 - a01 * g1, a00 * g1 - a01 * g0], axis=1) / determinant[:, None]
        b = b + np.clip(step, -1.0, 1.0)
    return 2.0 * (log_likelihood(b) - start)


def hosmer_lemeshow(y: Floats, p: Floats) -> Floats:
    """χ² over ten groups of equal size (Hosmer and Lemeshow, 1980)."""
    first = np.arange(10) * p.size // 10
    missed = np.add.reduceat(y - p, first, axis=1)
    return np.asarray((missed**2 / np.add.reduceat(p * (1.0 - p), first)).sum(axis=1))


def kuiper(y: Floats, p: Floats) -> Floats:
    """Range of the cumulative differences (Tygert, 2023)."""
    sums = np.cumsum(y - p, axis=1)
    return np.maximum(sums.max(axis=1), 0.0) - np.minimum(sums.min(axis=1), 0.0)


def squared_kernel(y: Floats, p: Floats) -> Floats:
    """The unbiased squared kernel error, Laplace kernel of the median distance (Widmann et al., 2019)."""
    width = float(np.median(np.abs(p - p[::-1])))
    carried, total = np.zeros(len(y)), np.zeros(len(y))
    for fade, residual in zip(np.exp(-np.diff(p, prepend=p[0]) / width), (p - y).T, strict=True):
        carried *= fade
        total += residual * carried
        carried += residual
    return total


def adaptive_neyman(y: Floats, p: Floats) -> Floats:
    """The largest standardised sum of squared cosines of the variance's rank (Fan, 1996)."""
    variance = p * (1.0 - p)
    rank = (np.cumsum(variance) - 0.5 * variance) / variance.sum()
    waves = np.cos(np.pi * np.multiply.outer(np.arange(COSINES + 1), rank))
    waves[1:] *= np.sqrt(2.0)
    z = (y - p) @ waves.T / np.sqrt(variance.sum())
    m = np.arange(1, COSINES + 2)
    return np.asarray(((np.cumsum(z**2, axis=1) - m) / np.sqrt(2.0 * m)).max(axis=1))


RIVALS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "Spiegelhalter": spiegelhalter, "Cox": cox, "Hosmer–Lemeshow": hosmer_lemeshow, "Kuiper": kuiper,
    "SKCE": squared_kernel, "adaptive Neyman": adaptive_neyman,
}  # fmt: skip


@dataclass(frozen=True)
class Search(Runs):
    """Some runs of all tests on the same samples; without an alternative, of calibrant's alone."""

    alternative: str
    n: int
    chunk: int
    runs: int = CHUNK

    @property
    def name(self) -> str:
        return f"power, {self.alternative}, {self.n}"


def search(task: Search) -> dict[str, Any]:
    """How often each test rejects at level .05."""
    rng, n = task.generator, task.n
    if task.alternative in SETS:
        p = np.sort(SETS[task.alternative](rng, n))
        y = (rng.random((task.runs, n)) < p).astype(np.float64)
        return {**asdict(task), "found": [float((p_values(p, y) <= LEVEL).mean())]}
    p = np.sort(rng.beta(*PREDICTIONS[task.alternative], n))
    calibrated = (rng.random((task.runs, n)) < p).astype(np.float64)
    y = (rng.random((task.runs, n)) < chance(task.alternative, p, n)).astype(np.float64)
    found = [float((p_values(p, y) <= LEVEL).mean())]
    for statistic in RIVALS.values():
        limit = np.quantile(statistic(calibrated, p), 1.0 - LEVEL)
        found.append(float((statistic(y, p) > limit).mean()))
    return {**asdict(task), "found": found}


def _sums(searched: list[dict[str, Any]]) -> dict[tuple[int, str], list[Any]]:
    sums: dict[tuple[int, str], list[Any]] = {}
    for part in searched:
        one = sums.setdefault((part["n"], part["alternative"]), [0, 0.0])
        one[0] += part["runs"]
        one[1] = one[1] + part["runs"] * np.array(part["found"])
    return sums


def sizes(searched: list[dict[str, Any]]) -> list[tuple[str, int, float, int]]:
    """Of calibrated predictions: (which, n, share that is rejected, samples)."""
    sums = _sums(searched)
    cells = ((name, n) for name in SETS for n in SET_SIZES if (n, name) in sums)
    return [(a, n, float(sums[n, a][1][0] / sums[n, a][0]), sums[n, a][0]) for a, n in cells]


def tables(searched: list[dict[str, Any]]) -> list[pages.Table]:
    """Power by alternative and n, and the size of the test by prediction and n."""
    sums = _sums(searched)
    rows = []
    for n in SIZES:
        shares = {a: sums[n, a][1] / sums[n, a][0] for a in PREDICTIONS if (n, a) in sums}
        for name, share in shares.items():
            rows.append([f"{n:,}", name, f"{sums[n, name][0]:,}", *(f"{x:.2f}" for x in share)])
        if shares:
            mean = np.mean(list(shares.values()), axis=0)
            rows.append([f"{n:,}", "mean", "", *(f"{x:.3f}" for x in mean)])
    power = pages.Table(
        "Power of tests of calibration at level .05",
        ["n", "alternative", "samples", "calibrant", *RIVALS],
        rows,
        [
            "Each rival's critical value is the 95% quantile of its statistic over as many calibrated "
            "samples of the same predictions, so each rejects calibrated predictions in 5% of samples. "
            "calibrant uses the p-value from `assess`.",
            "The errors shrink like 1/√n. Overconfident and shifted: Beta(2, 2) predictions, with the "
            "wrong slope or intercept of the log-odds. Wiggle and bump: uniform predictions. Rare "
            "tail: Beta(1, 9) predictions, too high above 0.3.",
        ],
    )
    of_sets = [
        [name, f"{n:,}", f"{runs:,}", f"{share:.4f}"] for name, n, share, runs in sizes(searched)
    ]
    size = pages.Table(
        "How often calibrated predictions are rejected at level .05",
        ["predictions", "n", "samples", "rejected"],
        of_sets,
        [
            "With few events, only a few p-values are possible. Ties count in full, which makes the test "
            "cautious."
        ],
    )
    return [table for table in (power, size) if table.rows]
