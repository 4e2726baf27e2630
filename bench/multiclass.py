"""Class probabilities: confidence against one argmax, and all classes in one pass.

python -m bench.multiclass
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

import calibrant as cal
from bench import pages

ROWS, CLASSES, REPEATS = 50_000, 1_000, 9


def best(work: Callable[[], object]) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    probs = rng.standard_normal((ROWS, CLASSES), dtype=np.float32)
    np.exp(2.0 * probs, out=probs)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = np.where(rng.random(ROWS) < 0.5, probs.argmax(axis=1), rng.integers(0, CLASSES, ROWS))
    argmax = best(lambda: probs.argmax(axis=1))
    whole = best(lambda: cal.smooth_ece(cal.confidence(labels, probs)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    cal.classwise(labels, probs)
    classwise = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = (peak - before) / 1024
    table = pages.Table(
        f"{ROWS:,} rows of {CLASSES:,} classes, float32",
        ["what", "took", "measured", "at most", ""],
        [
            [
                "confidence and `smooth_ece`: times one argmax",
                f"{whole * 1e3:.1f} ms",
                f"{whole / argmax:.2f}",
                "3",
                "kept" if whole <= 3 * argmax else "**not kept**",
            ],
            [
                "`classwise`: MB beyond the inputs",
                f"{classwise:.2f} s",
                f"{megabytes:.0f}",
                "1,000",
                "kept" if megabytes < 1000 else "**not kept**",
            ],
        ],
        [f"argmax alone: {argmax * 1e3:.1f} ms. The best of {REPEATS}."],
    )
    page = pages.Page(
        "multiclass",
        "The cost of many classes",
        "python -m bench.multiclass",
        "A row of class probabilities is read once, in the loop that finds the largest.",
        [table],
    )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
