"""Repair on real predictions: learned from a random half, measured on the other, beside scikit-learn.

python -m bench.repair              # every data set
python -m bench.repair --reduced    # those with fewer than 20,000 rows
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import choice, pages
from calibrant import InputError, Sketch, assess, datasets, smooth_ece
from calibrant.data.pairs import as_pairs
from calibrant.inference.hypothesis import calibration_p_value
from calibrant.recalibration.choice import choose_recalibrator, log_losses
from calibrant.recalibration.parametric import NEAREST_TO_THE_ENDS, BetaRecalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

DEFAULT, PAPER = "calibrant smooth", "the paper's smooth map"
LEVEL = 0.05
CUTS = 8
LARGE = 20_000

EVENTS = {
    "precip_niamey_2016": ("date",),
    "solar_flares_all_models": ("date",),
    "llm_token_confidence": ("qset", "question_id"),
    "fivethirtyeight_all": ("project", "date"),
}
"""Columns that tell which rows forecast one event, where there are several: they stay together."""

SAME_ORDER = {"recidivism_broward": "model"}
"""Where every value of a column has rows of the same events, in the same order."""


@dataclass(frozen=True)
class Rows:
    """Predictions and outcomes of one data set; the event of each row, where rows share one."""

    name: str
    p: Floats
    y: Floats
    event: NDArray[np.int64] | None = None

    @property
    def p_value(self) -> float:
        """Of the test of calibration, which takes the rows of an event together."""
        if self.event is not None:
            return assess(self.y, self.p, cluster=self.event).p_value
        sketch = Sketch.from_arrays(self.y, self.p)
        return calibration_p_value(sketch, smooth_ece(sketch))

    def standard_error(self, of_rows: Floats) -> float:
        """Of the mean of a figure of every row; the rows of an event err together."""
        event = np.arange(self.p.size) if self.event is None else self.event
        errors = np.bincount(event, of_rows - of_rows.mean())
        return float(np.linalg.norm(errors)) / self.p.size

    def halves(self, seed: int) -> tuple[Rows, Rows]:
        """Cut in two at random, events as a whole."""
        event = np.arange(self.p.size) if self.event is None else self.event
        order = np.random.default_rng(seed).permutation(int(event.max()) + 1)
        first = order[event] < order.size // 2
        return self._where(first), self._where(~first)

    def _where(self, kept: NDArray[np.bool_]) -> Rows:
        event = None if self.event is None else self.event[kept]
        return Rows(self.name, self.p[kept], self.y[kept], event)


@dataclass(frozen=True)
class Found:
    """What a map did on a half that it had not seen."""

    smooth_ece: float
    log_loss: float
    rise: float
    noise: float

    @property
    def within_noise(self) -> bool:
        """Whether the log loss rose by no more than two standard errors."""
        return self.rise <= 2.0 * self.noise


@dataclass(frozen=True)
class Result:
    """A data set, the p-values of all its rows and of the first half, and every method on every cut."""

    rows: Rows
    p_value: float
    p_value_of_half: float
    found: dict[str, list[Found]]

    def mean(self, method: str, what: str) -> float:
        """Of one figure over the cuts."""
        return float(np.mean([getattr(one, what) for one in self.found[method]]))


def sets() -> Iterator[Rows]:
    """Every set of predictions of one event that needs no cleaning."""
    for name, columns in _columns():
        try:
            pairs = as_pairs(columns["y"], columns["p"])
            yield Rows(name, pairs.p, pairs.y, _events(name, columns))
        except InputError:
            continue


def _events(name: str, columns: Mapping[str, Any]) -> NDArray[np.int64] | None:
    if name in SAME_ORDER:
        groups, group = np.unique(columns[SAME_ORDER[name]].astype(str), return_inverse=True)
        place = np.empty(group.size, dtype=np.int64)
        for k in range(groups.size):
            place[group == k] = np.arange(np.sum(group == k))
        return place
    if name not in EVENTS:
        return None
    code = np.zeros(len(columns["y"]), dtype=np.int64)
    for column in EVENTS[name]:
        values, part = np.unique(columns[column].astype(str), return_inverse=True)
        code = np.unique(code * values.size + part.ravel(), return_inverse=True)[1].ravel()
    return code.astype(np.int64)


def _columns() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in datasets.names():
        found = datasets.load(name)
        if {"p", "y"} <= set(found.columns):
            yield name, found.columns
    toy = datasets.generate("paper_sine", 1_000)
    yield "the paper's sine", {"p": toy.p, "y": toy.y}


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
    DEFAULT: lambda data: SmoothRecalibrator().fit(data.p, data.y).transform,
    PAPER: lambda data: (
        SmoothRecalibrator(scale="probability", pseudo_rows=0).fit(data.p, data.y).transform
    ),
    "calibrant beta": lambda data: BetaRecalibrator().fit(data.p, data.y).transform,
    "calibrant chosen": lambda data: (
        choose_recalibrator(data.p, data.y, cluster=data.event).recalibrator.transform
    ),
    "sklearn sigmoid": of_scikit_learn("sigmoid"),
    "sklearn isotonic": of_scikit_learn("isotonic"),
    "sklearn temperature": of_scikit_learn("temperature"),
}


def measured(data: Rows, cuts: int) -> Result:
    """Every method on the halves that it has not seen."""
    found: dict[str, list[Found]] = {name: [] for name in METHODS}
    for seed in range(cuts):
        first, second = data.halves(seed)
        before = log_losses(second.y, second.p)
        for name, learn in METHODS.items():
            p = np.clip(learn(first)(second.p), 0.0, 1.0)
            losses = log_losses(second.y, p)
            risen = losses - before
            noise = second.standard_error(risen)
            error = smooth_ece(second.y, p)
            found[name].append(Found(error, float(losses.mean()), float(risen.mean()), noise))
    return Result(data, data.p_value, data.halves(0)[0].p_value, found)


def tables(results: list[Result]) -> list[pages.Table]:
    """What was promised, for the default and for the paper's map; and all methods beside each other."""
    shown = [promise(results, method) for method in (DEFAULT, PAPER)]
    for title, what in (
        ("SmoothECE on the unseen half", "smooth_ece"),
        ("Log loss on the unseen half", "log_loss"),
    ):
        rows = [
            [r.rows.name, f"{r.rows.p.size:,}", *(f"{r.mean(m, what):.4f}" for m in METHODS)]
            for r in results
        ]
        shown.append(pages.Table(title, ["data set", "rows", *METHODS], rows, [OF_CUTS]))
    return shown


OF_CUTS = f"Means over random cuts into halves: {CUTS} below {LARGE:,} rows, one above."


def promise(results: list[Result], method: str) -> pages.Table:
    """Of every data set that tests as miscalibrated, the first cut, and how many of all cuts agree."""
    rows = []
    seen: list[tuple[bool, bool, bool]] = []
    for r in results:
        if r.p_value > LEVEL:
            continue
        none, done = r.found["none"], r.found[method]
        fell = [b.smooth_ece < a.smooth_ece for a, b in zip(none, done, strict=True)]
        kept = [one.within_noise for one in done]
        seen.append((r.p_value_of_half <= LEVEL, fell[0], kept[0]))
        rows.append(
            [
                r.rows.name,
                f"{r.p_value:.2g}",
                f"{r.p_value_of_half:.2g}",
                f"{none[0].smooth_ece:.4f} -> {done[0].smooth_ece:.4f}",
                "falls" if fell[0] else "RISES",
                f"{done[0].rise:+.4f} ± {done[0].noise:.4f}",
                "kept" if kept[0] else "BROKEN",
                f"{sum(fell)} of {len(fell)}",
                f"{sum(kept)} of {len(kept)}",
            ]
        )
    return pages.Table(
        f"One held-out half, where the test finds miscalibration: {method}",
        [
            "data set",
            "p, all rows",
            "p, learned half",
            "SmoothECE, first cut",
            "",
            "log loss, first cut",
            "",
            "cuts where SmoothECE falls",
            "cuts where log loss is kept",
        ],
        rows,
        [
            _counted("Of the sets whose rows test as miscalibrated", seen),
            _counted("Of those whose learned half does so too", [one for one in seen if one[0]]),
            f"The protocol: cut each data set in two at random (seed 0), learn from one half, measure the "
            f"other; for the sets whose rows test as miscalibrated (p ≤ {LEVEL}), SmoothECE must fall "
            "and log loss must not rise by more than two standard errors of its change over the rows, or "
            "over the events.",
            "The last two columns repeat it with other cuts. Of a few hundred rows one half tells little: "
            "the same map can rise on one cut and fall on the mean of all.",
            f"Forecasts of one event ({', '.join((*EVENTS, *SAME_ORDER))}) are tested and cut together.",
        ],
    )


def _counted(which: str, seen: list[tuple[bool, bool, bool]]) -> str:
    _, fell, kept = np.reshape(seen, (-1, 3)).astype(int).sum(axis=0)
    return f"{which}, {len(seen)}, SmoothECE falls on {fell} and log loss is kept on {kept}."


def study(*, reduced: bool) -> list[pages.Table]:
    """The tables of every data set; several data sets at a time."""
    few = [data for data in sets() if not reduced or data.p.size < LARGE]
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(measured, few, [CUTS if d.p.size < LARGE else 1 for d in few]))
    return tables(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true")
    options = parser.parse_args()
    shown = [*study(reduced=options.reduced), *choice.study(reduced=options.reduced)]
    pages.save("repair", [asdict(table) for table in shown])
    page = pages.Page(
        "repair",
        "Repair",
        "python -m bench.repair",
        "Recalibration maps learned from a random half of real predictions and measured on the other.",
        shown,
        {"scikit-learn": importlib.metadata.version("scikit-learn")},
    )
    print(page.write(pages.place(options.reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
