"""The same cells, asked of the peers that give an interval."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.coverage.populations import Population, truth_at_support
from bench.coverage.simulation import Cell
from bench.peers.adapters import PEERS
from bench.peers.asking import NoAnswer, ask
from bench.peers.populations import values

ASKED = ("relplot", "probcal")
LARGEST = 10_000


@dataclass(frozen=True)
class Question:
    """One sample of each of these cells, for one peer: all of a size, in one process."""

    peer: str
    cells: tuple[Cell, ...]
    run: int


def answer(question: Question) -> list[dict[str, Any]]:
    """Whether the interval held the population value of the peer's own measure, and its width.

    Samples that the peer refuses, such as those without an event, are left out.
    """
    samples = [_sample(cell, question.run) for cell in question.cells]
    with tempfile.TemporaryDirectory() as folder:
        p_file, y_file = Path(folder, "p.npy"), Path(folder, "y.npy")
        np.save(y_file, np.stack([y.astype(np.int64) for y, _ in samples]))
        np.save(p_file, np.stack([p for _, p in samples]))
        try:
            truths = _population_values(question.peer, question.cells)
            found = ask(question.peer, "intervals", p=str(p_file), y=str(y_file), limit=1800.0)
        except NoAnswer:
            return []
    answers = []
    for cell, truth, (low, high) in zip(question.cells, truths, found["intervals"], strict=True):
        if np.isnan(low):
            continue
        answers.append(
            {
                "peer": question.peer,
                "cell": cell.name,
                "coverage": float(low <= truth <= high),
                "width": high - max(low, 0.0),
                "runs": 1,
            }
        )
    return answers


def _sample(cell: Cell, run: int) -> tuple[Any, Any]:
    """The first samples of a cell are those that calibrant saw."""
    samples = cell.samples()
    for _ in range(run):
        next(samples)
    return next(samples)


def _population_values(peer: str, cells: tuple[Cell, ...]) -> list[float]:
    drawn = tuple(cell.population() for cell in cells)
    if PEERS[peer].target == "smooth":
        return [one.truth for one in drawn]
    own = _own_values(peer, drawn)
    return [value if one.truth else 0.0 for one, value in zip(drawn, own, strict=True)]


@cache
def _own_values(peer: str, drawn: tuple[Population, ...]) -> list[float]:
    return values(peer, [truth_at_support(one) for one in drawn])
