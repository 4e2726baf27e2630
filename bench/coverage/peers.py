"""The same cells, asked of the peers that give an interval."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.coverage.populations import truth_at_support
from bench.coverage.simulation import Cell
from bench.exact import exact_binned_ece
from bench.peers.adapters import BINS, PEERS
from bench.peers.asking import NoAnswer, ask

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
            found = ask(question.peer, "intervals", p=str(p_file), y=str(y_file), limit=1800.0)
        except NoAnswer:
            return []
    answers = []
    for cell, (low, high) in zip(question.cells, found["intervals"], strict=True):
        if np.isnan(low):
            continue
        truth = _population_value(question.peer, cell)
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


def _population_value(name: str, cell: Cell) -> float:
    if PEERS[name].target == "smooth" or cell.truth == 0.0:
        return cell.population().truth
    p, chance = truth_at_support(cell.population())
    return float(exact_binned_ece(chance, p, BINS)[0])
