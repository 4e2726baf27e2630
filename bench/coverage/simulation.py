"""The simulations: each cell is a population and a number of rows, drawn again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np

import calibrant as cal
from bench.coverage.populations import Population, population
from calibrant.data.sketch import Sketch
from calibrant.inference.assess import assess
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.interval import row_spread, upper_end
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.cumulative import cumulative_differences

CHUNK = 50
LEVEL = 0.05
CONFIDENCE = 0.95
NODES = 1 << 14
TOLERANCE = 1e-5


class Runs(ABC):
    """A part of the runs of what is named, with random numbers of its own."""

    chunk: int
    runs: int

    @property
    @abstractmethod
    def name(self) -> str:
        """What is run, whichever part of it this is."""

    @property
    def generator(self) -> np.random.Generator:
        """Of these runs, whatever else is run."""
        return np.random.default_rng([crc32(self.name.encode()), self.chunk])

    @property
    def seeds(self) -> range:
        """Of the draws inside calibrant, one for each run."""
        return range(self.chunk * self.runs, (self.chunk + 1) * self.runs)


@dataclass(frozen=True)
class Cell(Runs):
    """Some runs of one cell of the study: what is drawn, and how many rows."""

    kind: str
    distribution: str
    shape: str
    truth: float
    n: int
    chunk: int
    runs: int = CHUNK

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.distribution}, {self.shape}, {self.truth:g}, {self.n}"

    def samples(self) -> Iterator[tuple[Any, Any]]:
        rng, drawn = self.generator, self.population()
        for _ in range(self.runs):
            yield drawn.draw(self.n, rng)

    def population(self) -> Population:
        return population(self.distribution, self.shape, self.truth)


def simulate(cell: Cell) -> dict[str, Any]:
    """The results of these runs, as plain numbers."""
    study = {"interval": _intervals, "weights": _weighted, "clusters": _clustered}
    return {**asdict(cell), **study[cell.kind](cell)}


def _intervals(cell: Cell) -> dict[str, Any]:
    truth = cell.population().truth
    low, high, rejected, ecce = np.empty((4, cell.runs))
    for run, (y, p) in enumerate(cell.samples()):
        sketch = Sketch.from_arrays(y, p, nodes=NODES)
        value = cal.smooth_ece(sketch, tolerance=TOLERANCE)
        rejection = Rejection.of(sketch, noise_floor(sketch).value)
        spread = row_spread(ResidualGrid.of(sketch, value), value)
        high[run] = upper_end(value, spread, CONFIDENCE)
        low[run] = min(rejection.lower_end(CONFIDENCE), high[run])
        rejected[run] = rejection.p_value <= LEVEL
        ecce[run] = cumulative_differences(sketch).range_p_value <= LEVEL
    return {
        **_covered(low, high, truth),
        **_rejected(rejected, low),
        "ecce": float(ecce.mean()),
    }


def _weighted(cell: Cell) -> dict[str, Any]:
    """Rows drawn too often where p is large, with the weights that undo it."""
    rng, drawn = cell.generator, cell.population()
    low, high, rejected = np.empty((3, cell.runs))
    for run, seed in enumerate(cell.seeds):
        y, p = drawn.draw(4 * cell.n, rng)
        kept = rng.random(4 * cell.n) < 0.1 + 0.3 * p
        found = assess(y[kept], p[kept], sample_weight=1 / (0.1 + 0.3 * p[kept]), seed=seed)
        low[run], high[run] = found.interval.low, found.interval.high
        rejected[run] = found.p_value <= LEVEL
    return {**_covered(low, high, drawn.truth), **_rejected(rejected, low)}


def _clustered(cell: Cell) -> dict[str, Any]:
    """Ten forecasts of every event, close to one another; the interval by cluster and by row."""
    rng, drawn = cell.generator, cell.population()
    by_cluster, by_row = np.empty((2, cell.runs, 2))
    rejected = np.empty(cell.runs)
    repeats = 10
    cluster = np.repeat(np.arange(cell.n // repeats), repeats)
    for run, seed in enumerate(cell.seeds):
        y, p = drawn.draw(cell.n // repeats, rng)
        y, p = np.repeat(y, repeats), np.repeat(p, repeats)
        sketch = Sketch.from_arrays(y, p, nodes=NODES)
        found = assess(y, p, cluster=cluster, seed=seed)
        rejected[run] = found.p_value <= LEVEL
        by_cluster[run] = found.interval.low, found.interval.high
        alone = assess(sketch, seed=seed).interval
        by_row[run] = alone.low, alone.high
    rows = _covered(*by_row.T, drawn.truth)
    return {
        **_covered(*by_cluster.T, drawn.truth),
        **_rejected(rejected, by_cluster[:, 0]),
        "coverage_by_row": rows["coverage"],
        "width_by_row": rows["width"],
    }


def _rejected(rejected: Any, low: Any) -> dict[str, float]:
    return {
        "rejected": float(rejected.mean()),
        "contradictions": int((rejected.astype(bool) != (low > 0.0)).sum()),
    }


def _covered(low: Any, high: Any, truth: float) -> dict[str, float]:
    return {
        "population": truth,
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
        "missed_low": float((low > truth).mean()),
        "missed_high": float((high < truth).mean()),
        "width": float((high - low).mean()),
    }
