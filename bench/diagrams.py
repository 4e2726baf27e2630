"""Speed of reliability diagrams: against relplot in the same run, and from 10³ to 10⁷ rows.

    python bench/diagrams.py [--relplot PYTHON]

PYTHON is an interpreter of an environment that has relplot 1.0.3 (it needs older neighbours than
calibrant does). Both libraries are timed in turn on the same rows, and the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from calibrant.diagrams.smooth import reliability_diagram
from calibrant.sketch.table import Sketch

ROWS = 50_000
REPEATS = 7
RELPLOT = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import relplot
f, y = np.load(sys.argv[1])
relplot.prepare_rel_diagram(f[:2000], y[:2000])
for _ in sys.stdin:
    start = time.perf_counter()
    relplot.prepare_rel_diagram(f, y)
    print(time.perf_counter() - start, flush=True)
"""


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident predictions of a known shape."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 0.9, n)
    return (rng.random(n) < 0.12 + 0.72 * p).astype(np.int64), p


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def against_relplot(python: str) -> None:
    y, p = rows(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.stack([p, y.astype(float)]))
        theirs = subprocess.Popen(
            [python, "-c", RELPLOT, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert theirs.stdin is not None
        assert theirs.stdout is not None
        reliability_diagram(y, p)
        ours, peer = [], []
        for _ in range(REPEATS):
            print(file=theirs.stdin, flush=True)
            peer.append(float(theirs.stdout.readline()))
            ours.extend(seconds(lambda: reliability_diagram(y, p)) for _ in range(3))
        theirs.stdin.close()
        theirs.wait()
    ratios = {"best": min(peer) / min(ours), "median": np.median(peer) / np.median(ours)}
    print(f"{ROWS} rows, diagram with bands, seconds (best of {REPEATS} rounds)")
    print(f"  relplot 1.0.3 prepare_rel_diagram, 200 + 100 resamples  {min(peer):8.3f}")
    print(f"  calibrant reliability_diagram, 1000 + 1000 resamples    {min(ours):8.3f}")
    print(f"  ratio  {ratios['best']:.1f} (of medians {ratios['median']:.1f})")
    print(json.dumps({k: round(float(v), 2) for k, v in ratios.items()}))


def by_size() -> None:
    print("\nseconds by number of rows: the sketch, and everything after it")
    print(f"  {'rows':>12} {'sketch':>9} {'beyond':>9}  bandwidth")
    for power in range(3, 8):
        y, p = rows(10**power)
        sketch = Sketch.from_arrays(y, p)
        made = min(seconds(lambda y=y, p=p: Sketch.from_arrays(y, p)) for _ in range(3))
        beyond = min(seconds(lambda s=sketch: reliability_diagram(s)) for _ in range(5))
        width = reliability_diagram(sketch, resamples=0).bandwidth
        print(f"  {10**power:>12,} {made:9.4f} {beyond:9.4f}  {width:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--relplot", metavar="PYTHON", help="interpreter that has relplot")
    arguments = parser.parse_args()
    if arguments.relplot:
        against_relplot(arguments.relplot)
    by_size()
