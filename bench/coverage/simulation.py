"""The simulations: each cell is a population and a number of rows, drawn again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np

import calibrant as cal
from bench.coverage.populations import Population, population
from calibrant.inference.assess import assess
from calibrant.inference.hypothesis import calibration_p_value
from calibrant.inference.interval import bounds, row_spread
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.cumulative import cumulative_differences
from calibrant.sketch.table import Sketch

LEVEL = 0.05
CONFIDENCE = 0.95
NODES = 1 << 14
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Cell:
    """One cell of the study: what is drawn, how many rows, how often."""

    kind: str
    distribution: str
    shape: str
    truth: float
    n: int
    runs: int

    @property
    def seed(self) -> list[int]:
        """Of all draws of this cell, whatever else is run."""
        name = f"{self.kind} {self.distribution} {self.shape} {self.truth} {self.n}"
        return [crc32(name.encode()), self.runs]

    def samples(self) -> Iterator[tuple[Any, Any]]:
        rng = np.random.default_rng(self.seed)
        drawn = self.population()
        for _ in range(self.runs):
            yield drawn.draw(self.n, rng)

    def population(self) -> Population:
        return population(self.distribution, self.shape, self.truth)


def simulate(cell: Cell) -> dict[str, Any]:
    """The results of one cell, as plain numbers."""
    study = {"interval": _intervals, "weights": _weighted, "clusters": _clustered}
    return {**asdict(cell), **study[cell.kind](cell)}


def _intervals(cell: Cell) -> dict[str, Any]:
    truth = cell.population().truth
    low, high, rejected, ecce = np.empty((4, cell.runs))
    for run, (y, p) in enumerate(cell.samples()):
        sketch = Sketch.from_arrays(y, p, nodes=NODES)
        value = cal.smooth_ece(sketch, tolerance=TOLERANCE)
        p_value = calibration_p_value(sketch, value, seed=run)
        spread = row_spread(ResidualGrid.of(sketch, value), value)
        floor = noise_floor(sketch, seed=run).value
        found = bounds(value, spread, floor, p_value, confidence=CONFIDENCE)
        low[run], high[run] = found.low, found.high
        rejected[run] = p_value <= LEVEL
        ecce[run] = cumulative_differences(sketch).range_p_value <= LEVEL
    return {
        **_covered(low, high, truth),
        "rejected": float(rejected.mean()),
        "ecce": float(ecce.mean()),
    }


def _weighted(cell: Cell) -> dict[str, Any]:
    """Rows drawn too often where p is large, with the weights that undo it."""
    rng = np.random.default_rng(cell.seed)
    drawn = cell.population()
    low, high = np.empty((2, cell.runs))
    for run in range(cell.runs):
        y, p = drawn.draw(4 * cell.n, rng)
        kept = rng.random(4 * cell.n) < 0.1 + 0.3 * p
        found = assess(y[kept], p[kept], sample_weight=1 / (0.1 + 0.3 * p[kept]), seed=run)
        low[run], high[run] = found.interval.low, found.interval.high
    return _covered(low, high, drawn.truth)


def _clustered(cell: Cell) -> dict[str, Any]:
    """Ten forecasts of every event, close to one another; the interval by cluster and by row."""
    rng = np.random.default_rng(cell.seed)
    drawn = cell.population()
    by_cluster, by_row = np.empty((2, cell.runs, 2))
    repeats = 10
    cluster = np.repeat(np.arange(cell.n // repeats), repeats)
    for run in range(cell.runs):
        y, p = drawn.draw(cell.n // repeats, rng)
        y, p = np.repeat(y, repeats), np.repeat(p, repeats)
        sketch = Sketch.from_arrays(y, p, nodes=NODES)
        for found, kind in (
            (assess(y, p, cluster=cluster, seed=run), by_cluster),
            (assess(sketch, seed=run), by_row),
        ):
            kind[run] = found.interval.low, found.interval.high
    rows = _covered(*by_row.T, drawn.truth)
    return {
        **_covered(*by_cluster.T, drawn.truth),
        "coverage_by_row": rows["coverage"],
        "width_by_row": rows["width"],
    }


def _covered(low: Any, high: Any, truth: float) -> dict[str, float]:
    return {
        "population": truth,
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
        "missed_low": float((low > truth).mean()),
        "missed_high": float((high < truth).mean()),
        "width": float((high - low).mean()),
    }
