"""SmoothECE and sketches at every size, as ratios of scikit-learn's calibration curve in the same run.

python -m bench.sizes              # 100 to 10,000,000 rows; bench.speed has the same table
python -m bench.sizes --reduced    # to 100,000 rows
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.calibration import calibration_curve

import calibrant
from bench import pages
from calibrant import Sketch

COMPARISON = ["what", "compared with", "ratio", "at most", ""]
LIMITS = {100: 0.3, 1_000: 0.5, 10_000: 0.4, 100_000: 0.2, 1_000_000: 0.09}
"""The most that `smooth_ece` may cost, in calibration curves of the same rows."""
RARE_LIMIT = 0.7
SECONDS_EACH = 0.4


def compared(what: str, own: float, other: str, theirs: float | None, most: float) -> list[str]:
    """A row of a comparison: what, with what, the ratio of processor times and the most it may be."""
    if theirs is None:
        return [what, other, "not measured", f"{most:g}", ""]
    verdict = "kept" if own <= most * theirs else "**not kept**"
    return [what, other, f"{own / theirs:.2g}", f"{most:g}", verdict]


def shapes(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows of each kind that has been slow somewhere."""
    rng = np.random.default_rng(0)
    u = rng.random(n)
    tenths = np.round(10 * u) / 10
    ends = np.where(rng.random(n) < 0.5, np.round(u), u)
    rare = 0.02 * u**2
    outcomes = {
        "overconfident": (u, 0.5 + 0.7 * (u - 0.5)),
        "calibrated": (u, u),
        "tenths": (tenths, 0.5 + 0.8 * (tenths - 0.5)),
        "saturated": (ends, 0.02 + 0.9 * ends),
        "rare and calibrated": (rare, rare),
    }
    return {
        name: ((rng.random(n) < truth).astype(np.int64), p) for name, (p, truth) in outcomes.items()
    }


def by_turns(*calls: Callable[[], object]) -> list[float]:
    """The shortest processor time of each call, taken by turns, so that a busy machine slows all alike."""
    best = [np.inf] * len(calls)
    times = []
    for call in calls:
        call()  # the first imports what it needs
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    repeats = [max(1, min(500, int(0.01 / max(seconds, 1e-6)))) for seconds in times]
    until = time.perf_counter() + SECONDS_EACH * len(calls)
    while time.perf_counter() < until or not np.all(np.isfinite(best)):
        for i, call in enumerate(calls):
            start = time.process_time()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.process_time() - start) / repeats[i])
    return best


def values(sizes: list[int]) -> pages.Table:
    """SmoothECE from arrays and of sketches, and the making of these, beside scikit-learn's curve."""
    rows = []
    for n in sizes:
        for name, (y, p) in shapes(n).items():
            own, curve = by_turns(
                lambda y=y, p=p: calibrant.smooth_ece(y, p),
                lambda y=y, p=p: calibration_curve(y, p, n_bins=15),
            )
            limit = LIMITS.get(n, min(LIMITS.values()))
            limit = max(limit, RARE_LIMIT) if name.startswith("rare") else limit
            what = f"`smooth_ece`, {n:,} rows, {name}"
            rows.append(compared(what, own, "curve of these", curve, limit))
    few_y, few = shapes(1_000)["overconfident"]
    for n, most in ((11, 0.5), (10_000, 0.5), (1_000_000, 4.0)):
        y, p = shapes(n)["overconfident"]
        sketch = Sketch.from_arrays(y, p)
        making, own, curve, of_few = by_turns(
            lambda y=y, p=p: Sketch.from_arrays(y, p),
            lambda sketch=sketch: calibrant.smooth_ece(sketch),
            lambda y=y, p=p: calibration_curve(y, p, n_bins=15),
            lambda: calibration_curve(few_y, few, n_bins=15),
        )
        if n > 1_000:
            what = f"`Sketch.from_arrays`, {n:,} rows"
            rows.append(compared(what, making, "curve of these", curve, 0.25))
        what = f"`smooth_ece` of a sketch with {sketch.cells.size:,} cells"
        rows.append(compared(what, own, "curve of 1,000 rows", of_few, most))
    note = (
        "Processor time, the least of many calls, by turns in one process. float64 predictions and int64 "
        "labels. The curve is `calibration_curve(n_bins=15)` of scikit-learn."
    )
    return pages.Table("SmoothECE and sketches", COMPARISON, rows, [note])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="up to 100,000 rows, for CI")
    powers = range(2, 6 if parser.parse_args().reduced else 8)
    print(values([10**power for power in powers]).markdown())


if __name__ == "__main__":
    main()
