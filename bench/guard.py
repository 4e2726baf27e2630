"""Instructions, not seconds: a guard against slower loops that a noisy machine cannot disturb.

python -m bench.guard             # compare with bench/guard.json, exit 1 where a loop got slower
python -m bench.guard --update    # accept today's counts

valgrind counts the instructions that each compiled loop spends on a row, and the solver's
evaluations are counted on shapes of every kind. Both are the same on every run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from bench import pages
from calibrant import datasets
from calibrant.measures.kernel import kernel_calibration_error
from calibrant.measures.weak_error import weak_calibration_error

BUDGETS = Path(__file__).with_suffix(".json")
ALLOWANCE = 0.25
"""Another compiler may need a few more instructions; a slower algorithm needs many."""
ROWS = 100_000
CLASSES = 100


THOUSANDS = [slice(first, first + ROWS // 100) for first in range(0, ROWS, ROWS // 100)]


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    return p, (rng.random(ROWS) < p).astype(np.int64)


def _tables(
    count: int, kind: type = np.int64, classes: tuple[int, ...] = (), bits: int = 16
) -> Any:
    return [np.zeros((*classes, (1 << bits) + 1, 2), dtype=kind) for _ in range(count)]


def _fill(p: np.ndarray, y: np.ndarray) -> None:
    _compiled("data._fill").fill_counts(p, y, 16, *_tables(2))


def _fill_weights(p: np.ndarray, y: np.ndarray) -> None:
    tables = [*_tables(2), *_tables(3, np.float64)]
    _compiled("data._fill").fill_weights(p, y.astype(np.float64), np.ones(ROWS), 16, *tables)


def _fill_classes(p: np.ndarray, y: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(CLASSES, 0.1), ROWS // CLASSES).astype(np.float32)
    labels = rng.integers(0, CLASSES, ROWS // CLASSES)
    _compiled("data._fill").fill_classes(
        probs, labels, 10, *_tables(2, classes=(CLASSES,), bits=10)
    )


def _squares(p: np.ndarray, y: np.ndarray) -> None:
    from calibrant.data.fill import sums_of_squares
    from calibrant.data.rows import as_rows

    sums_of_squares(as_rows(y, p), 15)


def _moments(p: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
    table = np.zeros((2049, 8))
    _compiled("data._fill").add_moments(p, y, weights, False, 0.0, 2048.0, table)


def _cells(p: np.ndarray, y: np.ndarray, *, moments: bool) -> None:
    from calibrant.smoothing.curves import smooth_curves
    from calibrant.smoothing.residuals import SketchResiduals

    sketch = cal.Sketch.from_arrays(y, p)
    SketchResiduals(sketch).spectrum(2048) if moments else smooth_curves(sketch, 0.01)


def _by_group(p: np.ndarray, y: np.ndarray) -> None:
    import pandas as pd

    group = np.random.default_rng(1).integers(0, 300, ROWS)
    cal.scan(pd.DataFrame({"p": p, "y": y, "g": group}), y_true="y", y_prob="p", by="g")


def _pool(p: np.ndarray, y: np.ndarray) -> None:
    sorted_outcomes = np.ascontiguousarray(y[np.argsort(p)], dtype=np.float64)
    _compiled("measures._chains").pooled(sorted_outcomes, np.ones(ROWS))


def _compiled(name: str) -> Any:
    return import_module(f"calibrant.{name}")


LOOPS: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], object]]] = {
    "fill, float64 and int64": ("_fill", _fill),
    "fill, float32 and uint8": (
        "_fill", lambda p, y: _fill(p.astype(np.float32), y.astype(np.uint8)),
    ),
    "fill, a thousand rows": (
        "_fill", lambda p, y: [cal.Sketch.from_arrays(y[part], p[part]) for part in THOUSANDS],
    ),
    "fill, weighted": ("_fill", _fill_weights),
    "sums of squares": ("_fill", _squares),
    "moments of residuals": ("_fill", lambda p, y: _moments(p, y, np.empty(0))),
    "moments of residuals, weighted": ("_fill", lambda p, y: _moments(p, y, np.ones(ROWS))),
    "fill, one class": ("_fill", _fill_classes),
    "sums by group": ("_fill", _by_group),
    "cells onto nodes": ("_nodes", lambda p, y: _cells(p, y, moments=False)),
    "moments of cells": ("_nodes", lambda p, y: _cells(p, y, moments=True)),
    "SmoothECE of a thousand rows, solver": (
        "_solver", lambda p, y: [cal.smooth_ece(y[part], p[part]) for part in THOUSANDS],
    ),
    "isotonic regression": ("_chains", _pool),
    "weak calibration error": ("_chains", lambda p, y: weak_calibration_error(y, p)),
    "Laplace kernel error": ("_chains", lambda p, y: kernel_calibration_error(y, p)),
}  # fmt: skip


def instructions_per_row(loop: str) -> float:
    """What valgrind counts inside the loop's own compiled module."""
    module, _ = LOOPS[loop]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "counts")
        counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        run = [sys.executable, "-m", "bench.guard", "--run", loop]
        subprocess.run([*counted, *run], check=True, capture_output=True, cwd=pages.ROOT)
        annotate = ["callgrind_annotate", "--threshold=100", str(out)]
        listed = subprocess.run(annotate, check=True, capture_output=True, text=True).stdout
    costs = re.findall(rf"^\s*([\d,]+) \(.*/{module}\.[^/]*\]$", listed, flags=re.MULTILINE)
    if not costs:
        sys.exit(f"{loop}: no instruction of {module} was counted")
    return sum(int(cost.replace(",", "")) for cost in costs) / ROWS


def evaluations(shape: str) -> int:
    """How many bandwidths the solver tries."""
    drawn = datasets.generate(shape, 20_000)
    return cal.smooth_ece_result(drawn.y, drawn.p).evaluations


def counts() -> dict[str, float]:
    found: dict[str, float] = {}
    if shutil.which("valgrind"):
        for loop in LOOPS:
            found[f"instructions a row: {loop}"] = round(instructions_per_row(loop), 1)
    else:
        print("valgrind is not installed: only the solver's evaluations are counted")
    for shape in datasets.SHAPES:
        found[f"evaluations: {shape}"] = evaluations(shape)
    return found


def verdicts(found: dict[str, float], budgets: dict[str, float]) -> list[list[str]]:
    """One row a count; the last cell is empty where it is within its budget."""
    rows = [
        [what, "", f"{budgets[what]:g}", "**not counted**"] for what in budgets if what not in found
    ]
    for what, count in found.items():
        budget = budgets.get(what)
        # A quarter of the solver's few evaluations is less than one of them.
        ok = budget is not None and count <= max(budget * (1 + ALLOWANCE), budget + 1)
        rows.append([what, f"{count:g}", "none" if budget is None else f"{budget:g}"])
        rows[-1].append("" if ok else "**over**")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="accept today's counts")
    parser.add_argument("--run", choices=LOOPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        LOOPS[options.run][1](*_rows())
        return
    found = counts()
    if options.update:
        BUDGETS.write_text(json.dumps(found, indent=2) + "\n")
    budgets = json.loads(BUDGETS.read_text())
    if not shutil.which("valgrind"):
        budgets = {what: budget for what, budget in budgets.items() if what in found}
    rows = verdicts(found, budgets)
    print(pages.Table("Counts", ["what", "now", "budget", ""], rows).markdown())
    if any(row[-1] for row in rows):
        sys.exit("a count is missing or over its budget: make it cheaper, or say why with --update")


if __name__ == "__main__":
    main()
