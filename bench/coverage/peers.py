"""The same cells, asked of the peers that give an interval."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
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


def study(cells: list[Cell], runs: int) -> dict[str, dict[tuple[Any, ...], dict[str, float]]]:
    """Coverage and width of each peer in each cell, against the population value of its own measure."""
    by_rows: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.n <= LARGEST:
            by_rows[cell.n].append(cell)
    found: dict[str, dict[tuple[Any, ...], dict[str, float]]] = {name: {} for name in ASKED}
    with tempfile.TemporaryDirectory() as folder:
        p_file, y_file = Path(folder, "p.npy"), Path(folder, "y.npy")
        for n, group in by_rows.items():
            drawn = [sample for cell in group for sample in _first(cell, runs)]
            np.save(y_file, np.stack([y.astype(np.int64) for y, _ in drawn]))
            np.save(p_file, np.stack([p for _, p in drawn]))
            for name in ASKED:
                print(f"{name}: {len(drawn)} samples of {n} rows", file=sys.stderr, flush=True)
                try:
                    answer = ask(name, "intervals", p=str(p_file), y=str(y_file), limit=1800.0)
                except NoAnswer as error:
                    print(f"{name}: {error}", file=sys.stderr, flush=True)
                    continue
                low, high = np.array(answer["intervals"]).reshape(len(group), runs, 2).T
                for k, cell in enumerate(group):
                    truth = _population_value(name, cell)
                    found[name][key(cell)] = {
                        "coverage": float(((low[:, k] <= truth) & (truth <= high[:, k])).mean()),
                        "width": float((high[:, k] - np.maximum(low[:, k], 0.0)).mean()),
                    }
    return found


def key(cell: Cell) -> tuple[Any, ...]:
    return cell.distribution, cell.shape, cell.truth, cell.n


def _first(cell: Cell, runs: int) -> list[tuple[Any, Any]]:
    samples = cell.samples()
    return [next(samples) for _ in range(runs)]


def _population_value(name: str, cell: Cell) -> float:
    if PEERS[name].target == "smooth" or cell.truth == 0.0:
        return cell.population().truth
    p, chance = truth_at_support(cell.population())
    return float(exact_binned_ece(chance, p, BINS)[0])
