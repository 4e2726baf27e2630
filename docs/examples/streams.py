"""Many writers, one total: each process keeps a sketch and writes it now and then; a reader adds them up.

A file is replaced in one step, so the reader sees a whole sketch or the one before, never half of one.

    python docs/examples/streams.py
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cal

WRITERS, BATCHES, ROWS = 3, 20, 500


def batch(writer: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and outcomes as they arrive."""
    rng = np.random.default_rng([writer, number])
    p = rng.random(ROWS)
    return (rng.random(ROWS) < p**1.2).astype(int), p


def write(folder: Path, writer: int) -> None:
    """Serve predictions, and save the sketch of all so far after every few batches."""
    sketch = cal.Sketch.empty()
    for number in range(BATCHES):
        sketch.update(*batch(writer, number))
        if number % 5 == 4:
            cal.save(sketch, folder / f"writer-{writer}.parquet")


def read(folder: Path) -> cal.Sketch | None:
    """The total of what the writers have saved so far."""
    sketches = [cal.load(path) for path in sorted(folder.glob("writer-*.parquet"))]
    return sum(sketches) if sketches else None


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writers = [
            multiprocessing.get_context("spawn").Process(target=write, args=(folder, number))
            for number in range(WRITERS)
        ]
        for process in writers:
            process.start()
        while any(process.is_alive() for process in writers):
            total = read(folder)
            if total is not None:
                print(f"{total.n:>6} rows so far, smooth ECE {cal.smooth_ece(total):.4f}")
            writers[0].join(timeout=0.2)
            for process in writers:
                process.join(timeout=0.05)
        total = read(folder)
        everything = [batch(w, k) for w in range(WRITERS) for k in range(BATCHES)]
        y, p = (np.concatenate(column) for column in zip(*everything, strict=True))
        assert total == cal.Sketch.from_arrays(y, p)
        print(f"{total.n:>6} rows in all,  smooth ECE {cal.smooth_ece(total):.4f}")


if __name__ == "__main__":
    main()
