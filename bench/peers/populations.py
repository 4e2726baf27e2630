"""What a peer's own measure is on a population, so that its interval can be held against it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.peers.asking import ask

Floats = NDArray[np.float64]


def values(peer: str, populations: Sequence[tuple[Floats, Floats]]) -> list[float]:
    """Of each population, given as equally likely predictions in order and the chance at each."""
    with tempfile.TemporaryDirectory() as folder:
        p_file, y_file = Path(folder, "p.npy"), Path(folder, "y.npy")
        np.save(p_file, np.stack([p for p, _ in populations]))
        np.save(y_file, np.stack([even_outcomes(chance) for _, chance in populations]))
        found = ask(peer, "target of intervals", p=str(p_file), y=str(y_file))
    return [float(value) for value in found["values"]]


def even_outcomes(chance: Floats) -> NDArray[np.int64]:
    """Outcomes as even as they can be: in any run of rows they miss the chances by less than one.

    Examples
    --------
    >>> even_outcomes(np.full(8, 0.25))
    array([0, 0, 0, 1, 0, 0, 0, 1])
    """
    return np.diff(np.floor(np.cumsum(chance)), prepend=0.0).astype(np.int64)
