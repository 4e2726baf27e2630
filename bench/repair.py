"""Repair on real predictions: learned from a random half, measured on the other, beside scikit-learn.

python -m bench.repair              # every data set
python -m bench.repair --reduced    # those with fewer than 20,000 rows
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import pages
from calibrant import InputError, Sketch, datasets, smooth_ece
from calibrant.inference.hypothesis import calibration_p_value
from calibrant.inputs.pairs import as_pairs
from calibrant.recalibration.choice import choose_recalibrator, log_losses
from calibrant.recalibration.parametric import NEAREST_TO_THE_ENDS, BetaRecalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

LEVEL = 0.05
CUTS = 8
LARGE = 20_000


@dataclass(frozen=True)
class Rows:
    """Predictions and outcomes of one data set."""

    name: str
    p: Floats
    y: Floats

    @property
    def p_value(self) -> float:
        """Of the test of calibration."""
        sketch = Sketch.from_arrays(self.y, self.p)
        return calibration_p_value(sketch, smooth_ece(sketch))

    def halves(self, seed: int) -> tuple[Rows, Rows]:
        """Cut in two at random."""
        order = np.random.default_rng(seed).permutation(self.p.size)
        first, second = order[: self.p.size // 2], order[self.p.size // 2 :]
        return (
            Rows(self.name, self.p[first], self.y[first]),
            Rows(self.name, self.p[second], self.y[second]),
        )


@dataclass(frozen=True)
class Found:
    """What a map did on halves that it had not seen, on average over the cuts."""

    smooth_ece: float
    log_loss: float
    rise: float
    noise: float

    @property
    def within_noise(self) -> bool:
        """Whether the log loss rose by no more than two standard errors."""
        return self.rise <= 2.0 * self.noise


def sets() -> Iterator[Rows]:
    """Every set of predictions of one event that needs no cleaning."""
    for name, p, y in _columns():
        try:
            pairs = as_pairs(y, p)
            yield Rows(name, pairs.p, pairs.y)
        except InputError:
            continue


def _columns() -> Iterator[tuple[str, Any, Any]]:
    for name in datasets.names():
        found = datasets.load(name)
        if {"p", "y"} <= set(found.columns):
            yield name, found.p, found.y
    folder = Path(os.environ.get("CALIBRANT_DATA", "."))
    for path in sorted(folder.glob("*.parquet")):
        if path.stem not in datasets.names():
            import pyarrow.parquet as parquet

            table = parquet.read_table(path)
            if {"p", "y"} <= set(table.column_names):
                yield path.stem, table["p"].to_numpy(), table["y"].to_numpy()


def of_scikit_learn(method: str) -> Callable[[Rows], Map]:
    """CalibratedClassifierCV around a classifier whose scores are the log-odds given."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Scores(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, X: Any, y: Any) -> Scores:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def decision_function(self, X: Any) -> Floats:
            return np.asarray(X[:, 0])

        def predict(self, X: Any) -> NDArray[np.int64]:
            return (X[:, 0] > 0).astype(np.int64)

    def logits(p: Floats) -> Floats:
        inside = np.clip(p, NEAREST_TO_THE_ENDS, 1.0 - NEAREST_TO_THE_ENDS)
        return np.asarray(np.log(inside) - np.log1p(-inside))[:, None]

    def learn(data: Rows) -> Map:
        fitted = CalibratedClassifierCV(FrozenEstimator(Scores()), method=method)
        fitted.fit(logits(data.p), data.y.astype(int))
        return lambda p: np.asarray(fitted.predict_proba(logits(p))[:, 1], dtype=np.float64)

    return learn


METHODS: dict[str, Callable[[Rows], Map]] = {
    "none": lambda data: lambda p: p,
    "calibrant smooth": lambda data: SmoothRecalibrator().fit(data.p, data.y).transform,
    "calibrant smooth, logit/4": lambda data: (
        SmoothRecalibrator(scale="logit/4").fit(data.p, data.y).transform
    ),
    "calibrant beta": lambda data: BetaRecalibrator().fit(data.p, data.y).transform,
    "calibrant chosen": lambda data: choose_recalibrator(data.p, data.y).recalibrator.transform,
    "sklearn sigmoid": of_scikit_learn("sigmoid"),
    "sklearn isotonic": of_scikit_learn("isotonic"),
    "sklearn temperature": of_scikit_learn("temperature"),
}


def measured(data: Rows, cuts: int) -> dict[str, Found]:
    """Every method on the halves that it has not seen."""
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in METHODS}
    for seed in range(cuts):
        first, second = data.halves(seed)
        before = log_losses(second.y, second.p)
        for name, learn in METHODS.items():
            p = np.clip(learn(first)(second.p), 0.0, 1.0)
            losses = log_losses(second.y, p)
            risen = losses - before
            noise = float(risen.std() / np.sqrt(risen.size))
            error = smooth_ece(second.y, p)
            found[name].append((error, float(losses.mean()), float(risen.mean()), noise))
    return {name: Found(*map(float, np.mean(rows, axis=0))) for name, rows in found.items()}


Results = list[tuple[Rows, float, dict[str, Found]]]


def tables(results: Results) -> list[pages.Table]:
    """SmoothECE and log loss by data set and method, and what was promised of them."""
    shown = []
    for title, cell in (
        ("SmoothECE on the unseen half", lambda f: f"{f.smooth_ece:.4f}"),
        ("Log loss on the unseen half", lambda f: f"{f.log_loss:.4f}"),
    ):
        rows = [
            [data.name, f"{data.p.size:,}", f"{p_value:.2g}", *map(cell, found.values())]
            for data, p_value, found in results
        ]
        shown.append(pages.Table(title, ["data set", "rows", "p-value", *METHODS], rows))
    return [*shown, promises(results)]


def promises(results: Results) -> pages.Table:
    """Where a data set tests as miscalibrated: does the smooth map repair the unseen half?"""
    rows = []
    for data, p_value, found in results:
        if p_value <= LEVEL:
            none, smooth = found["none"], found["calibrant smooth"]
            rows.append(
                [
                    data.name,
                    f"{none.smooth_ece:.4f} -> {smooth.smooth_ece:.4f}",
                    "falls" if smooth.smooth_ece < none.smooth_ece else "RISES",
                    f"{smooth.rise:+.4f} ± {smooth.noise:.4f}",
                    "kept" if smooth.within_noise else "BROKEN",
                ]
            )
    return pages.Table(
        "The promise: SmoothECE falls wherever the test finds miscalibration",
        ["data set", "SmoothECE", "", "change of log loss", ""],
        rows,
        [
            f"Data sets with p ≤ {LEVEL} in the test of calibration.",
            "Means over random cuts: 8 below 20,000 rows, 1 above. The noise is one standard error of "
            "the change over the rows of a half; two are allowed.",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true")
    reduced = parser.parse_args().reduced
    results = [
        (data, data.p_value, measured(data, cuts=CUTS if data.p.size < LARGE else 1))
        for data in sets()
        if not reduced or data.p.size < LARGE
    ]
    page = pages.Page(
        "repair",
        "Repair",
        "python -m bench.repair",
        "Recalibration maps learned from a random half of real predictions and measured on the other.",
        tables(results),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
