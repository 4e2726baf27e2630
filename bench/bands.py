"""Bands of the reliability diagram: how often the curve leaves them, on drawn rows.

python -m bench.bands              # five minutes on a free core
python -m bench.bands --reduced    # for CI: seconds, without the evidence
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import calibrant as cal
from bench import pages
from calibrant.data.points import as_points
from calibrant.plotting.neighborhoods import neighborhoods

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, int], Floats]

SAMPLES, REDUCED_SAMPLES = 400, 2
SHAPES: dict[str, Shape] = {
    "uniform": lambda rng, n: rng.random(n),
    "around ½: beta(5, 5)": lambda rng, n: rng.beta(5, 5, n),
    "near 0 and 1: beta(.1, .1)": lambda rng, n: rng.beta(0.1, 0.1, n),
    "1% events: beta(.1, 9.9)": lambda rng, n: rng.beta(0.1, 9.9, n),
    "0.1% events: beta(1, 999)": lambda rng, n: rng.beta(1, 999, n),
    "narrow: .42 to .55": lambda rng, n: rng.uniform(0.42, 0.55, n),
    "a gap": lambda rng, n: rng.normal(rng.choice([0.3, 0.8], n), 0.05).clip(0.01, 0.99),
    "eleven values": lambda rng, n: np.round(rng.beta(1, 2, n), 1),
}
CALIBRATED = (
    *(("uniform", n) for n in (60, 300, 3_000, 30_000)),
    *(("around ½: beta(5, 5)", n) for n in (300, 3_000)),
    *(("near 0 and 1: beta(.1, .1)", n) for n in (300, 3_000, 30_000)),
    *(("1% events: beta(.1, 9.9)", n) for n in (3_000, 30_000)),
    *(("0.1% events: beta(1, 999)", n) for n in (30_000,)),
    *(("narrow: .42 to .55", n) for n in (300, 3_000)),
    *(("a gap", n) for n in (1_000,)),
    *(("eleven values", n) for n in (300, 3_000)),
)
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "overconfident: 0.7 of the log-odds": lambda p: expit(0.7 * logit(p.clip(1e-9, 1 - 1e-9))),
    "too high: 0.8 p": lambda p: 0.8 * p,
    "a dip of .15 near .7": lambda p: (p - 0.15 * np.exp(-200 * (p - 0.7) ** 2)).clip(0.0),
}


def shares(
    shape: Shape, n: int, samples: int, truth: Callable[[Floats], Floats] = lambda p: p
) -> tuple[float, float, float, float]:
    """Shares of samples that leave the consistency band, are rejected, and do one of both only.

    The last is the share of the drawn curve where the confidence band holds the population's.
    """
    left, rejected, covered = [], [], []
    for seed in range(samples):
        rng = np.random.default_rng([seed, n])
        p = shape(rng, n)
        chance = truth(p)
        diagram = cal.reliability_diagram((rng.random(n) < chance).astype(int), p)
        curve, clumps, drawn = diagram.curve, diagram.points, diagram.curve.drawn
        beyond = [-1.0]
        for of, shown in ((curve, drawn), (clumps, slice(None))):
            beyond += (of.observed - of.consistency_high)[shown].tolist()
            beyond += (of.consistency_low - of.observed)[shown].tolist()
        left.append(max(beyond) > 1e-9)
        rejected.append(diagram.assessment.miscalibrated)
        if drawn.any():
            expected, _ = neighborhoods(
                as_points(chance, p, labels="soft"),
                max(diagram.smooth_ece.bandwidth, 1e-5),
                widen=True,
                confidence=diagram.confidence,
            )
            rate = np.interp(
                curve.prediction[drawn],
                expected.prediction[expected.drawn],
                expected.observed[expected.drawn],
            )
            covered.append(np.mean((curve.low[drawn] <= rate) & (rate <= curve.high[drawn])))
    one_only = np.mean(np.not_equal(left, rejected))
    share = np.mean(covered) if covered else np.nan
    return float(np.mean(left)), float(np.mean(rejected)), float(one_only), float(share)


def table(title: str, rows: list[tuple[str, int, tuple[float, ...]]], note: str) -> pages.Table:
    """A line for each population and number of rows."""
    header = ["predictions", "rows", "leave the band", "test rejects", "one of both", "confidence"]
    lines = [
        [name, f"{n:,}", *("" if np.isnan(one) else f"{one:.3f}" for one in found)]
        for name, n, found in rows
    ]
    return pages.Table(title, header, lines, [note])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="seconds, for CI")
    reduced = parser.parse_args().reduced
    samples = REDUCED_SAMPLES if reduced else SAMPLES
    null = [(name, n, shares(SHAPES[name], n, samples)) for name, n in CALIBRATED]
    off = [
        (f"{name}; {kind}", n, shares(SHAPES[kind], n, samples, truth))
        for name, truth in TRUTHS.items()
        for kind, n in (("uniform", 300), ("uniform", 3_000), ("1% events: beta(.1, 9.9)", 30_000))
    ]
    left = [found[0] for _, _, found in null]
    page = pages.Page(
        "bands",
        "Bands of the reliability diagram",
        "python -m bench.bands",
        f"{samples} samples of each population. The simultaneous 95% consistency band should be left "
        "somewhere by at most .05 of calibrated samples; it is by "
        f"{min(left):.3f} to {max(left):.3f} (standard error {np.sqrt(0.05 * 0.95 / samples):.3f}).",
        [
            table(
                "Calibrated predictions",
                null,
                "Leave the band: share of samples whose curve or points lie outside the consistency band "
                "anywhere. Test rejects: p ≤ .05 in `assess`. One of both: share in which picture and "
                "test differ. Confidence: share of the curve where the pointwise 95% confidence band "
                "holds the population's curve; empty where there are points only.",
            ),
            table("Miscalibrated predictions", off, "Columns as above."),
        ],
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
