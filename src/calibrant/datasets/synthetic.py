"""Predictions whose true calibration curve is known, for tests and studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_choice, require_count, require_seed
from calibrant.errors import InputError

__all__ = ["SHAPES", "Synthetic", "generate"]

Floats = NDArray[np.float64]
Curve = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Synthetic:
    """Drawn predictions and outcomes, with the curve E[y | p] they were drawn from.

    Attributes
    ----------
    shape : str
        Name of the shape.
    p, y : ndarray
        Predictions and 0/1 outcomes.
    truth : callable
        The true curve: `truth(t)` is the probability of an event where the prediction is t.
    cluster : ndarray or None
        Which rows share one draw of chance (the clustered shape), else None.
    seed : int
        What it was drawn with.

    Examples
    --------
    >>> drawn = generate("overconfident", 100, random_state=1)
    >>> drawn.n, float(drawn.truth(np.array([0.5]))[0])
    (100, 0.5)
    """

    shape: str
    p: Floats
    y: NDArray[np.int8]
    truth: Curve = field(repr=False)
    cluster: NDArray[np.int64] | None
    seed: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    def calibration_gap(self) -> float:
        """Mean distance of the true curve from the predictions drawn: the true ECE of the rows."""
        return float(np.abs(self.truth(self.p) - self.p).mean())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values."""
        return {
            "shape": self.shape,
            "n": self.n,
            "seed": self.seed,
            "calibration_gap": self.calibration_gap(),
        }

    def __repr__(self) -> str:
        return f"Synthetic({self.shape!r}, n={self.n:,}, seed={self.seed})"


def _identity(t: Floats) -> Floats:
    return np.asarray(t, dtype=np.float64)


def _sine(t: Floats) -> Floats:
    """The paper's example: E[y | f] = f + 0.1 sin(8πf), as f + 0.1 sin(4π(2f - 1))."""
    t = np.asarray(t, dtype=np.float64)
    return np.asarray(t + 0.1 * np.sin(4 * np.pi * (2 * t - 1)))


def _overconfident(t: Floats) -> Floats:
    """Every prediction is a quarter too far from one half."""
    return np.asarray(0.5 + 0.75 * (np.asarray(t, dtype=np.float64) - 0.5))


def _twice_as_rare(t: Floats) -> Floats:
    return np.asarray(0.5 * np.asarray(t, dtype=np.float64))


def _lattice_predictions(rng: np.random.Generator, n: int) -> Floats:
    """Tenths as forecasters write them, half of them as 1 - k/10 with its float residue."""
    tenths = rng.integers(0, 11, n) / 10
    return np.where(rng.random(n) < 0.5, tenths, 1 - tenths)


def _end_heavy_predictions(rng: np.random.Generator, n: int) -> Floats:
    """Like a deep network's confidence: half of the rows at exactly 1, the rest crowd the ends."""
    drawn = rng.beta(0.2, 0.2, n)
    return np.where(rng.random(n) < 0.5, 1.0, drawn)


def _uniform(rng: np.random.Generator, n: int) -> Floats:
    return rng.random(n)


def _rare_predictions(rng: np.random.Generator, n: int) -> Floats:
    """Event rates of about 0.2%."""
    return rng.beta(0.5, 125.0, n)


_DRAWN: Mapping[str, tuple[Callable[[np.random.Generator, int], Floats], Curve]] = {
    "calibrated": (_uniform, _identity),
    "sine": (_uniform, _sine),
    "overconfident": (_uniform, _overconfident),
    "lattice": (_lattice_predictions, _overconfident),
    "rare_events": (_rare_predictions, _twice_as_rare),
    "end_heavy": (_end_heavy_predictions, _overconfident),
}

SHAPES: tuple[str, ...] = ("paper_sine", *_DRAWN, "clustered")


def generate(shape: str, n: int = 1000, *, random_state: int = 0) -> Synthetic:
    """Draw predictions and outcomes of a shape whose true curve is known.

    Parameters
    ----------
    shape : str
        ``"paper_sine"`` is the very sample of the paper's synthetic figure when n is 1000 and
        `random_state` is 0; ``"sine"`` has the same law. ``"calibrated"``, ``"overconfident"``,
        ``"lattice"`` (tenths), ``"rare_events"`` (0.2%, predicted at twice that), ``"end_heavy"``
        (half of the rows at exactly 1), ``"clustered"`` (groups of rows that share one outcome).
    n : int
        Rows.
    random_state : int
        The same shape, n and number give the same bytes.

    Returns
    -------
    Synthetic
        With p, y and the true curve.

    Examples
    --------
    >>> from calibrant import datasets
    >>> drawn = datasets.generate("overconfident", 10_000)
    >>> round(drawn.calibration_gap(), 2)
    0.06
    >>> float(drawn.truth(1.0))
    0.875
    """
    require_choice("shape", shape, tuple(SHAPES))
    require_count("n", n)
    seed = require_seed(random_state, "random_state")
    if shape == "paper_sine":
        return _paper_sine(n, seed)
    if shape == "clustered":
        return _clustered(n, seed)
    predictions, truth = _DRAWN[shape]
    rng = generator(seed)
    p = predictions(rng, n)
    return _frozen(shape, p, rng.random(n) < truth(p), truth, None, seed)


def _paper_sine(n: int, seed: int) -> Synthetic:
    # The paper's notebook draws with the legacy generator, prediction and chance by turns.
    if seed >= 1 << 32:
        raise InputError("`random_state` must be below 2**32 for 'paper_sine'.")
    drawn = np.random.RandomState(seed).rand(n, 2)
    p = np.ascontiguousarray(drawn[:, 0])
    return _frozen("paper_sine", p, drawn[:, 1] > 1 - _sine(p), _sine, None, seed)


def _clustered(n: int, seed: int) -> Synthetic:
    """Several forecasts of one event, as when eight models forecast the same day."""
    rng = generator(seed)
    cluster = np.arange(n) // 8
    p = rng.random(cluster[-1] + 1)[cluster]
    chance = rng.random(cluster[-1] + 1)[cluster]
    return _frozen("clustered", p, chance < _overconfident(p), _overconfident, cluster, seed)


def _frozen(
    shape: str,
    p: Floats,
    event: NDArray[np.bool_],
    truth: Curve,
    cluster: NDArray[np.int64] | None,
    seed: int,
) -> Synthetic:
    y = event.astype(np.int8)
    for values in (p, y) if cluster is None else (p, y, cluster):
        values.flags.writeable = False
    return Synthetic(shape, p, y, truth, cluster, seed)
