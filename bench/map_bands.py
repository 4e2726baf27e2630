"""How often the interval of the default map holds the true chance of the event, on drawn rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bench import pages
from calibrant.recalibration import AdaptiveRecalibrator

Floats = NDArray[np.float64]

SIZES = (100, 1_000, 5_000)
TRIALS, REDUCED_TRIALS = 200, 5
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda p: p,
    "too sure: half the log-odds": lambda p: expit(0.5 * logit(p)),
    "too high: log-odds less 0.7": lambda p: expit(logit(p) - 0.7),
    "too high: p²": lambda p: p**2,
    "wavy: p + sin(8πp) / 10": lambda p: np.clip(p + 0.1 * np.sin(8.0 * np.pi * p), 0.0, 1.0),
}


def covered(truth: Callable[[Floats], Floats], n: int, trials: int) -> tuple[float, float]:
    """Share of rows whose true chance lies in the interval, and its mean width."""
    inside, width = [], []
    for seed in range(trials):
        rng = np.random.default_rng([seed, n])
        p = expit(rng.normal(0.0, 1.5, n))
        chance = truth(p)
        low, high = AdaptiveRecalibrator().fit(p, rng.random(n) < chance).interval(p)
        inside.append(np.mean((low <= chance + 1e-12) & (chance - 1e-12 <= high)))
        width.append(np.mean(high - low))
    return float(np.mean(inside)), float(np.mean(width))


def study(*, reduced: bool) -> list[pages.Table]:
    """A line for each true curve and number of rows."""
    trials = REDUCED_TRIALS if reduced else TRIALS
    rows = []
    for name, truth in TRUTHS.items():
        for n in SIZES:
            share, width = covered(truth, n, trials)
            rows.append([name, f"{n:,}", f"{share:.3f}", f"{width:.3f}"])
    notes = [
        f"Share of rows whose true chance lies in `AdaptiveRecalibrator.interval` at 95%, over {trials} "
        "draws of normal log-odds with standard deviation 1.5. The intervals come from a prior that "
        "expects smooth maps. It smooths over a curve with four waves, and the intervals do not allow "
        "for that.",
    ]
    title = "The interval of the default map"
    return [pages.Table(title, ["true curve", "rows", "share inside", "mean width"], rows, notes)]
