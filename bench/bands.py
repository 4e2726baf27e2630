"""Bands of the reliability diagram: how often the curve leaves them, on drawn rows.

python -m bench.bands              # ten minutes
python -m bench.bands --reduced    # for CI: seconds, without the evidence
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import calibrant as cal
from bench import pages
from calibrant.data.points import as_points
from calibrant.plotting.neighborhoods import neighborhoods

Floats = NDArray[np.float64]

SAMPLES, REDUCED_SAMPLES = 1_000, 4
SHAPES: dict[str, tuple[Callable[[np.random.Generator, int], Floats], tuple[int, ...]]] = {
    "uniform": (lambda rng, n: rng.random(n), (60, 300, 3_000, 30_000)),
    "in the middle: beta(5, 5)": (lambda rng, n: rng.beta(5, 5, n), (300, 3_000)),
    "near 0 and 1: beta(.1, .1)": (lambda rng, n: rng.beta(0.1, 0.1, n), (300, 3_000, 30_000)),
    "1% events: beta(.1, 9.9)": (lambda rng, n: rng.beta(0.1, 9.9, n), (3_000, 30_000)),
    "0.1% events: beta(1, 999)": (lambda rng, n: rng.beta(1, 999, n), (30_000,)),
    "narrow: .42 to .55": (lambda rng, n: rng.uniform(0.42, 0.55, n), (300, 3_000)),
    "a gap": (
        lambda rng, n: rng.normal(rng.choice([0.3, 0.8], n), 0.05).clip(0.01, 0.99),
        (1_000,),
    ),
    "tenths": (lambda rng, n: np.round(rng.beta(1, 2, n), 1), (300, 3_000)),
}
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda p: p,
    "overconfident: 0.7 of the log-odds": lambda p: expit(0.7 * logit(p.clip(1e-9, 1 - 1e-9))),
    "too high: 0.8 p": lambda p: 0.8 * p,
    "a dip of .15 near .7": lambda p: p - 0.15 * np.exp(-0.5 * ((p - 0.7) / 0.05) ** 2),
}


def left(
    shape: Callable[[np.random.Generator, int], Floats],
    truth: Callable[[Floats], Floats],
    n: int,
    samples: int,
) -> list[float]:
    """Shares of samples whose curve or points leave the consistency band, that are rejected, and that differ.

    The last is the share of the drawn positions where the confidence band holds the population's curve.
    """
    seen, rejected, covered = [], [], []
    for seed in range(samples):
        rng = np.random.default_rng([seed, n])
        p = shape(rng, n)
        chance = truth(p)
        diagram = cal.reliability_diagram((rng.random(n) < chance).astype(int), p)
        curve, clumps, drawn = diagram.curve, diagram.points, diagram.curve.drawn
        above = np.concatenate(
            [(curve.observed - curve.consistency_high)[drawn], clumps.observed - clumps.consistency_high]
        )
        below = np.concatenate(
            [(curve.consistency_low - curve.observed)[drawn], clumps.consistency_low - clumps.observed]
        )
        seen.append(np.max(above, initial=-1.0) > 1e-9 or np.max(below, initial=-1.0) > 1e-9)
        rejected.append(diagram.assessment.miscalibrated)
        expected, _ = neighborhoods(
            as_points(chance, p, labels="soft"),
            max(diagram.smooth_ece.bandwidth, 1e-5),
            widen=True,
            confidence=diagram.confidence,
        )
        if drawn.any() and expected.observed.size == curve.observed.size:
            inside = (curve.low <= expected.observed) & (expected.observed <= curve.high)
            covered.append(np.mean(inside[drawn]))
    differ = np.mean(np.not_equal(seen, rejected))
    return [float(np.mean(seen)), float(np.mean(rejected)), float(differ), float(np.mean(covered or np.nan))]
