"""Populations for `bench.certify`: where confidences lie, and how often an answer of each is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FINE = (np.arange(200_000) + 0.5) / 200_000


@dataclass(frozen=True)
class Shape:
    """A population.

    `lattice` rounds confidences to so many values, `spread` makes them of uniform ones; `repeats` is the
    size of clusters that share their outcome, with `mixed` sizes from 1 to that, larger ones more often
    wrong; `sizes` are sizes and their shares, risk in proportion to the size; `apart`: rows of a cluster
    have confidences of their own.
    """

    wrong: Callable[[Floats], Floats]
    n: int
    risk: float = 0.1
    lattice: int | None = None
    repeats: int = 1
    mixed: bool = False
    side: str = "above"
    credit: bool = False
    spread: Callable[[Floats], Floats] | None = None
    sizes: tuple[tuple[int, ...], tuple[float, ...]] | None = None
    apart: bool = False

    def confidence(self, u: Floats) -> Floats:
        if self.spread is not None:
            return self.spread(u)
        return u if self.lattice is None else np.floor(u * self.lattice) / self.lattice

    def draw(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        size = self.n // self.repeats
        p = self.confidence(rng.random(size))
        chance = self.wrong(p)
        if self.credit and self.repeats == 1:
            return 1.0 - rng.beta(2.0 * chance, 2.0 * (1.0 - chance)), p, None
        times: Any = self.repeats
        if self.mixed:
            times = rng.integers(1, self.repeats + 1, size)
            chance = chance * (0.5 + times / (self.repeats + 1))
        if self.sizes is not None:
            times = rng.choice(self.sizes[0], size, p=self.sizes[1])
            chance = chance * times / self._mean_size
        right: Any = rng.random(size) >= chance
        if self.credit:
            right = 1.0 - rng.beta(2.0 * chance, 2.0 * (1.0 - chance))
        if self.side == "below":
            right = ~right
        if self.repeats == 1 and self.sizes is None:
            return right, p, None
        cluster = np.repeat(np.arange(size), times)
        if self.apart:
            return right[cluster], self.confidence(rng.random(cluster.size)), cluster
        return right[cluster], p[cluster], cluster

    @property
    def _mean_size(self) -> float:
        """Of the cluster that a row is in."""
        assert self.sizes is not None
        values, shares = map(np.array, self.sizes)
        return float((values**2 * shares).sum() / (values * shares).sum())

    @cached_property
    def _wrong_beyond(self) -> tuple[Floats, Floats]:
        """Confidences on a fine grid, the first to be acted on first, and the risk up to each."""
        sign = 1.0 if self.side == "below" else -1.0
        place = np.sort(sign * self.confidence(FINE))
        return place, np.cumsum(self.wrong(sign * place)) / np.arange(1, place.size + 1)

    def true_risk(self, threshold: float) -> float:
        place, risks = self._wrong_beyond
        last = (
            np.searchsorted(place, threshold if self.side == "below" else -threshold, "right") - 1
        )
        risk = float(risks[last] if last >= 0 else self.wrong(np.array([threshold]))[0])
        if not self.mixed:
            return risk
        sizes = np.arange(1, self.repeats + 1)
        return risk * float((sizes * (0.5 + sizes / (self.repeats + 1))).sum() / sizes.sum())


def flat(risk: float) -> Callable[[Floats], Floats]:
    return lambda p: np.full_like(p, risk)


SHAPES = {
    "wrong at .105 everywhere": Shape(flat(0.105), 400),
    "at the limit everywhere": Shape(flat(0.1), 400),
    "at the limit everywhere, many rows": Shape(flat(0.1), 5_000),
    "wrong at .105, few rows": Shape(flat(0.105), 60),
    "at the limit, hardly enough rows": Shape(flat(0.1), 30),
    "calibrated": Shape(lambda p: 1 - p, 400),
    "calibrated, many rows": Shape(lambda p: 1 - p, 5_000),
    "over-confident": Shape(lambda p: 1 - p**2, 1_000),
    "under-confident": Shape(lambda p: (1 - p) ** 2, 1_000),
    "the most confident twentieth is bad": Shape(lambda p: np.where(p > 0.95, 0.3, 0.09), 1_000),
    "confidence points the wrong way": Shape(lambda p: 0.05 + 0.1 * p, 1_000),
    "a wave around the limit": Shape(lambda p: 0.1 + 0.05 * np.cos(8 * np.pi * p), 1_000),
    "at the limit above one half, worse below": Shape(lambda p: np.where(p > 0.5, 0.1, 0.2), 1_000),
    "three values": Shape(lambda p: np.where(p > 0.6, 0.05, 0.13), 400, lattice=3),
    "ten values": Shape(lambda p: 0.4 * (1 - p), 1_000, lattice=10),
    "one value, at the limit": Shape(flat(0.1), 200, lattice=1),
    "rare errors, limit .01": Shape(flat(0.0101), 2_000, risk=0.01),
    "rare errors, limit .001": Shape(lambda p: 0.002 * (1 - p) + 0.0005, 10_000, risk=0.001),
    "clusters of 4 that agree, at the limit": Shape(flat(0.1), 800, repeats=4),
    "clusters of 1 to 10, larger ones worse": Shape(flat(0.088), 4_000, repeats=10, mixed=True),
    "below a threshold": Shape(lambda p: p, 1_000, side="below"),
    "partial credit, at the limit": Shape(flat(0.1), 1_000, credit=True),
    "the least confident tenth is always right": Shape(
        lambda p: np.where(p < 0.1, 0.0, 0.1), 1_000
    ),
    "the least confident tenth is always wrong": Shape(
        lambda p: np.where(p < 0.1, 1.0, 0.1), 1_000
    ),
    "at the limit, the surest twentieth bad": Shape(lambda p: _made_up_for(p), 2_000),
    "a fast wave around the limit": Shape(lambda p: 0.1 + 0.1 * np.sin(60 * np.pi * p), 1_000),
    "most say 100%, at the limit": Shape(
        flat(0.1), 500, spread=lambda u: np.where(u > 0.4, 1.0, np.round(2.0 * u, 1))
    ),
    "five words, the surest at the limit": Shape(
        lambda p: np.where(p > 0.9, 0.1, 0.3), 300, spread=lambda u: _words(u)
    ),
    "five words, the middle one best": Shape(
        lambda p: np.where(p > 0.9, 0.14, np.where(p > 0.6, 0.06, 0.3)),
        800,
        spread=lambda u: _words(u),
    ),
    "limit .5, wrong half of the time": Shape(flat(0.5), 100, risk=0.5),
    "limit .02, just above it": Shape(flat(0.0202), 5_000, risk=0.02),
    "46 rows, at the limit": Shape(flat(0.1), 46),
    "questions with answers of unlike confidence": Shape(flat(0.1), 1_500, repeats=5, apart=True),
    "clusters of 1 to 100, most are small": Shape(
        flat(0.1), 1_000, sizes=((1, 3, 10, 30, 100), (0.7, 0.2, 0.06, 0.03, 0.01))
    ),
    "two large clusters in a hundred": Shape(flat(0.1), 400, sizes=((1, 50), (0.98, 0.02))),
    "partial credit in clusters, at the limit": Shape(flat(0.1), 2_000, repeats=4, credit=True),
    "below a threshold, at the limit": Shape(flat(0.1), 1_000, side="below"),
    "at the limit in the surest sixth, worse below": Shape(
        lambda p: np.where(p > 5 / 6, 0.1, 0.4), 5_000
    ),
    "at the limit in the surest half, always wrong below": Shape(
        lambda p: np.where(p > 0.5, 0.1, 1.0), 2_000
    ),
    "worse in steps, the surest fifth at the limit": Shape(
        lambda p: np.select([p > 0.8, p > 0.6, p > 0.4], [0.1, 0.25, 0.5], 0.9), 4_000
    ),
    "right and wrong by turns, back at the limit": Shape(lambda p: _back_and_forth(p), 5_000),
    "half of a lattice of 40 at the limit": Shape(
        lambda p: np.where(p >= 0.5, 0.1, 0.45), 3_000, lattice=40
    ),
    "falls late, above the limit": Shape(lambda p: 0.1 + 0.4 * (1 - p**8), 5_000),
    "limit .02, at it in the surest quarter": Shape(
        lambda p: np.where(p > 0.75, 0.02, 0.1), 8_000, risk=0.02
    ),
    "below a threshold, at the limit in the lowest fifth": Shape(
        lambda p: np.where(p < 0.2, 0.1, 0.5), 4_000, side="below"
    ),
}


def _made_up_for(p: Floats) -> Floats:
    """Wrong at .3 in the surest twentieth, at .06 in the next quarter, at .1 below: .1 from there on."""
    return np.where(p > 0.95, 0.3, np.where(p > 0.7, 0.06, 0.1))


def _back_and_forth(p: Floats) -> Floats:
    """Good, and then so bad that the risk beyond is at the limit again, four times; bad at the end."""
    place = 1.0 - p
    good = np.floor(place * 40) % 2 == 0
    return np.where(place > 0.2, 0.5, np.where(good, 0.02, 0.18))


def _words(u: Floats) -> Floats:
    """Confidences as people write them, each with its own share."""
    values = np.array([0.5, 0.7, 0.8, 0.9, 0.95])
    return values[np.searchsorted([0.1, 0.3, 0.45, 0.75], u, side="right")]


FALLING = {
    "calibrated": lambda p: 1 - p,
    "over-confident": lambda p: 1 - p**2,
    "under-confident": lambda p: (1 - p) ** 2,
    "a step": lambda p: np.where(p > 0.6, 0.02, 0.5),
    "below the limit everywhere": lambda p: 0.08 - 0.02 * p,
    "never far below the limit": lambda p: 0.35 - 0.3 * p,
    "two steps": lambda p: np.where(p > 0.9, 0.01, np.where(p > 0.4, 0.09, 0.4)),
    "a logistic curve": lambda p: 1 / (1 + np.exp(12 * (p - 0.5))),
    "falls late": lambda p: 0.4 * (1 - p**8),
    "hardly falls": lambda p: 0.11 - 0.04 * p,
    "falls, then stays": lambda p: np.maximum(0.5 - 0.8 * p, 0.05),
    "stays, then falls": lambda p: np.minimum(0.3, 1.2 * (1 - p)),
    "halves with each tenth": lambda p: 0.5 ** (10 * p) + 0.03,
    "three steps": lambda p: np.select([p > 0.85, p > 0.6, p > 0.3], [0.03, 0.12, 0.3], 0.6),
    "a tenth knows": lambda p: np.where(p > 0.9, 0.02, 0.2),
    "a square root": lambda p: 0.3 * np.sqrt(1 - p),
}
