"""Speed of reliability diagrams: against relplot in the same run, and from 10³ to 10⁷ rows.

python -m bench.diagrams
python -m bench.diagrams --reduced    # fewer rounds, without relplot unless its environment is there

Both libraries are timed in turn on the same rows, in wall time and in time of the processor (which a
busy machine disturbs less), and the best of each counts.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import environments, pages
from calibrant.data.sketch import Sketch
from calibrant.plotting.reliability import reliability_diagram

ROWS = 50_000
RELPLOT = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import relplot
f, y = np.load(sys.argv[1])
relplot.prepare_rel_diagram(f[:2000], y[:2000])
for _ in sys.stdin:
    wall, processor = time.perf_counter(), time.process_time()
    relplot.prepare_rel_diagram(f, y)
    print(time.perf_counter() - wall, time.process_time() - processor, flush=True)
"""


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident predictions of a known shape."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 0.9, n)
    return (rng.random(n) < 0.12 + 0.72 * p).astype(np.int64), p


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Wall time and processor time of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def against_relplot(python: Path, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of relplot and of calibrant, in turn: arrays [calls, (wall, processor)]."""
    y, p = rows(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.stack([p, y.astype(float)]))
        theirs = subprocess.Popen(
            [str(python), "-c", RELPLOT, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert theirs.stdin is not None
        assert theirs.stdout is not None
        reliability_diagram(y, p)
        ours, peer = [], []
        for _ in range(rounds):
            print(file=theirs.stdin, flush=True)
            peer.append([float(text) for text in theirs.stdout.readline().split()])
            ours += [seconds(lambda: reliability_diagram(y, p)) for _ in range(3)]
        theirs.stdin.close()
        theirs.wait()
    return np.array(peer), np.array(ours)


def comparison(python: Path, rounds: int) -> pages.Table:
    peer, ours = against_relplot(python, rounds)
    lines = []
    for name, of in (("best", np.min), ("median", np.median)):
        for column, kind in enumerate(("wall", "processor")):
            a, b = float(of(peer[:, column])), float(of(ours[:, column]))
            lines.append([f"{name}, {kind}", f"{a:.3f} s", f"{b:.3f} s", f"{a / b:.1f}"])
    return pages.Table(
        f"A diagram with its bands, {ROWS:,} rows",
        ["time", "relplot, 200 + 100 resamples", "calibrant", "ratio"],
        lines,
        [
            "relplot: `prepare_rel_diagram` with its defaults. calibrant: `reliability_diagram` from "
            "arrays, with the pointwise band, the band for the whole curve, the consistency band, the "
            "number and its interval."
        ],
    )


def by_size(powers: range) -> pages.Table:
    lines = []
    for power in powers:
        y, p = rows(10**power)
        sketch = Sketch.from_arrays(y, p)
        made = min(seconds(lambda y=y, p=p: Sketch.from_arrays(y, p))[1] for _ in range(3))
        beyond = min(seconds(lambda s=sketch: reliability_diagram(s))[1] for _ in range(5))
        width = reliability_diagram(sketch).smooth_ece.bandwidth
        lines.append(
            [f"{10**power:,}", f"{1000 * made:.1f} ms", f"{1000 * beyond:.0f} ms", f"{width:.4f}"]
        )
    return pages.Table(
        "Cost by number of rows",
        ["rows", "making the sketch", "everything else", "bandwidth"],
        lines,
        ["Processor time, summed over threads."],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="fewer rounds and rows, for CI")
    reduced = parser.parse_args().reduced
    there = environments.python_of("relplot").is_file()
    sections = [by_size(range(3, 6 if reduced else 8))]
    if there or not reduced:
        sections.insert(0, comparison(environments.make("relplot"), 2 if reduced else 7))
    page = pages.Page(
        "diagrams",
        "The cost of a diagram",
        "python -m bench.diagrams" + (" --reduced" if reduced else ""),
        "Bands are resampled from the sketch, so their cost is bounded, however many rows there are.",
        sections,
        environments.pinned("relplot"),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
