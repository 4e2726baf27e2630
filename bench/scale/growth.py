"""What calibrant costs as rows and groups grow, and the least it could cost."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars

import calibrant
from calibrant import Sketch, datasets

BLOCK = 1 << 22


@dataclass(frozen=True)
class Growth:
    """Seconds of processor time at each size, beside the physical limit."""

    what: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    limit: Sequence[float]
    limit_is: str


def _best(call: Callable[[], Any], repeat: int) -> float:
    """Processor time of all threads together: what others do on the machine does not count."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def _tell(what: str, size: int) -> None:
    print(f"{what}: {size:,}", file=sys.stderr, flush=True)


def rows(sizes: Sequence[int]) -> Growth:
    """Blocks are drawn, summed and added to a sketch by turns; only the last two are timed."""
    seconds, limit = [], []
    truth = datasets.generate("overconfident", 1).truth
    for n in sizes:
        _tell("rows", n)
        repeats = 5 if n <= 1_000_000 else 3 if n <= 100_000_000 else 1
        tries = [_stream(n, truth) for _ in range(repeats)]
        seconds.append(min(own for own, _ in tries))
        limit.append(min(plain for _, plain in tries))
    return Growth("rows", sizes, seconds, limit, "the plain sum of both arrays")


def _stream(n: int, truth: Callable[[Any], Any]) -> tuple[float, float]:
    """A block is one call; more blocks are a sketch that grows and then one call."""
    rng = np.random.default_rng(0)
    sketch = Sketch.empty()
    own = plain = 0.0
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        p = rng.random(size)
        y = (rng.random(size) < truth(p)).astype(np.int64)
        plain += _best(lambda p=p, y=y: (p.sum(), y.sum()), 1)
        if n <= BLOCK:
            return _best(lambda p=p, y=y: calibrant.smooth_ece(y, p), 1), plain
        own += _best(lambda p=p, y=y: sketch.update(y, p), 1)
    own += _best(lambda: calibrant.smooth_ece(sketch), 1)
    assert sketch.n == n
    return own, plain


def groups(sizes: Sequence[int], n: int) -> Growth:
    """One scan of a polars frame by a column of so many values."""
    drawn = datasets.generate("overconfident", n)
    seconds, limit = [], []
    for count in sizes:
        _tell("groups", count)
        frame = polars.DataFrame(
            {"p": drawn.p, "y": drawn.y, "group": np.arange(n, dtype=np.int64) % count}
        )

        def scan(frame: polars.DataFrame = frame) -> None:
            calibrant.scan(frame, y_true="y", y_prob="p", by="group")

        def engine(frame: polars.DataFrame = frame) -> None:
            frame.group_by("group").agg(polars.col("p").sum(), polars.col("y").sum())

        seconds.append(_best(scan, 2))
        limit.append(_best(engine, 2))
    return Growth("groups", sizes, seconds, limit, "polars' own sum of both columns by group")


@dataclass(frozen=True)
class Constants:
    """What a cluster's cost is made of, measured here."""

    fill_ns: float
    merge_s: float
    solve_s: float
    sketch_bytes: int


def constants(filled: Growth) -> Constants:
    """Per row and core, per merge, per answer; the sketch is one with every cell in use."""
    drawn = datasets.generate("overconfident", 4_000_000)
    whole = Sketch.from_arrays(drawn.y, drawn.p)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sketch.parquet")
        calibrant.save(whole, path)
        size = path.stat().st_size
    return Constants(
        fill_ns=filled.seconds[-1] / filled.sizes[-1] * 1e9,
        merge_s=_best(lambda: whole + whole, 5),
        solve_s=_best(lambda: calibrant.smooth_ece(whole), 5),
        sketch_bytes=size,
    )
