"""Coverage of the interval, and size and power of the test, by simulation of each cell."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np

from bench.coverage.populations import Cell, sample, scale_of, truth_of
from calibrant.data.rows import as_rows
from calibrant.data.sketch import Sketch
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.clusters import ClusterResiduals
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.smooth_ece import smooth_ece

LEVELS = (0.01, 0.05, 0.2)
CONFIDENCE = 0.95
COARSE = 1 << 12
"""Cells of a sketch that was made elsewhere."""


@dataclass
class Counts:
    """Sums over the samples of a cell; those of several parts add up."""

    cell: str
    truth: float
    samples: int = 0
    rejected: int = 0
    missed_above: int = 0
    missed_below: int = 0
    contradictions: int = 0
    low: float = 0.0
    high: float = 0.0
    units: float = 0.0
    seconds: float = 0.0

    def add(self, other: dict[str, Any]) -> None:
        """Add the sums of another part."""
        for name, value in other.items():
            if name not in ("cell", "truth"):
                setattr(self, name, getattr(self, name) + value)

    @property
    def coverage(self) -> float:
        """Share of the intervals that hold the truth."""
        return 1.0 - (self.missed_above + self.missed_below) / self.samples

    @property
    def size(self) -> float:
        """Share of the samples in which calibration is rejected."""
        return self.rejected / self.samples

    @property
    def width(self) -> float:
        """Mean length of the interval."""
        return (self.high - self.low) / self.samples


def simulate(cell: Cell, part: int, samples: int) -> dict[str, Any]:
    """The sums of some samples of a cell, with random numbers of their own."""
    rng = np.random.default_rng([crc32(str(cell).encode()), part])
    sums, start = Counts(str(cell), truth_of(cell)), time.process_time()
    for _ in range(samples):
        _add_sample(sums, cell, sample(cell, rng))
    sums.seconds = time.process_time() - start
    return asdict(sums)


def _add_sample(sums: Counts, cell: Cell, drawn: dict[str, Any]) -> None:
    """What `assess` does for the test and the interval."""
    cluster = drawn.pop("cluster", None)
    rows = as_rows(**drawn)
    nodes = {"nodes": COARSE} if cell.kind == "sketch" else {}
    sketch = Sketch.from_rows(rows, scale=scale_of(cell), **nodes)
    clusters = None
    if cluster is not None:
        clusters = ClusterResiduals.of(sketch.scale, rows, (cluster, int(cluster.max()) + 1))
    test = CalibrationTest.of(sketch, clusters)
    value = smooth_ece(sketch)
    at = max(value, 0.1 * test.noise_floor, 1e-5 * sketch.scale.length)
    high = max(test.upper_end(CONFIDENCE, ResidualGrid(sketch, at).error, at), value)
    low = min(test.lower_end(CONFIDENCE), value)
    sums.samples += 1
    sums.rejected += test.p_value <= 1.0 - CONFIDENCE + 1e-12
    sums.missed_above += low > sums.truth + 1e-12
    sums.missed_below += high < sums.truth - 1e-12
    sums.low += low
    sums.high += high
    sums.units += test.cells.units
    for level in LEVELS:
        sums.contradictions += (test.p_value <= level + 1e-12) != (
            test.lower_end(1.0 - level) > 0.0
        )
