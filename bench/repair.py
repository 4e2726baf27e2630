"""Repair on real predictions: learned from rows of a random half, measured on the other half.

python -m bench.repair              # every data set, 20 halves; about a quarter of an hour of one core
python -m bench.repair --resume     # the same; sets that an interrupted run has finished are not done again
python -m bench.repair --reduced    # those with fewer than 20,000 rows, 3 halves
"""

from __future__ import annotations

import argparse
import importlib.metadata
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import map_bands, pages, trained
from bench.rows import EVENTS, SAME_ORDER, Rows, sets
from calibrant import smooth_ece
from calibrant.errors import TooFewRows
from calibrant.recalibration import (
    AdaptiveRecalibrator,
    BetaRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    SmoothRecalibrator,
    TemperatureRecalibrator,
    VennAbersRecalibrator,
)
from calibrant.recalibration.choice import choose_recalibrator
from calibrant.recalibration.effect import log_losses
from calibrant.recalibration.learned_map import Recalibrator
from calibrant.recalibration.logistic import NEAREST_TO_THE_ENDS

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

DEFAULT, NONE, CHOSEN = "adaptive (default)", "none", "choose_recalibrator"
RIVALS = (NONE, "platt", "temperature", "beta", "isotonic", "venn-abers")
SIZES = (100, 300, 1_000, None)
LEVEL = 0.05
CUTS, REDUCED_CUTS = 20, 3
MOST_JUDGED = 100_000
PARTS: Path = pages.RESULTS / "repair"
LARGE = 20_000
TO_CHOOSE_FROM = 300
"""`choose_recalibrator` fits every map to every fold: it is tried with so many rows alone."""


@dataclass(frozen=True)
class Found:
    """What a map did on a half that it had not seen; `rise` and `noise` are of the change of its loss."""

    smooth_ece: float
    log_loss: float
    rise: float
    noise: float

    @property
    def within_noise(self) -> bool:
        """Whether the log loss rose by no more than two standard errors."""
        return self.rise <= 2.0 * self.noise


@dataclass(frozen=True)
class Cell:
    """One data set and number of rows: means over the halves of the log loss of every method.

    `error` is the standard error of the best loss on a half, `paired` that of the default's distance to it.
    """

    name: str
    n: int
    halves: int
    losses: dict[str, float]
    best: str
    error: float
    paired: float

    @property
    def excess(self) -> float:
        """How far the default is above the best of all rivals."""
        return self.losses[DEFAULT] - self.losses[self.best]

    def ranks(self) -> dict[str, float]:
        """1 for the smallest loss among the rivals and the default."""
        names = [*RIVALS, DEFAULT]
        values = np.array([self.losses[name] for name in names])
        ranks = (values[:, None] > values).sum(axis=1) + 0.5 * (
            (values[:, None] == values).sum(axis=1) + 1
        )
        return dict(zip(names, ranks.tolist(), strict=True))


@dataclass(frozen=True)
class Result:
    """A data set, the p-values of all its rows and of the first half, and every method on every cut."""

    name: str
    size: int
    p_value: float
    p_value_of_half: float
    found: dict[str, list[Found]]
    cells: list[Cell]

    def mean(self, method: str, what: str) -> float:
        """Of one figure over the cuts."""
        return float(np.mean([getattr(one, what) for one in self.found[method]]))


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


def of_calibrant(made: Callable[[], Recalibrator]) -> Callable[[Rows], Map]:
    """A map of ours, learned from rows."""
    return lambda data: made().fit(data.p, data.y).transform


def of_choice(data: Rows) -> Map:
    """The map that held-out rows choose; none where there are too few of one outcome to hold out."""
    try:
        return choose_recalibrator(data.y, data.p, cluster=data.event).recalibrator.transform
    except TooFewRows:
        return lambda p: p


METHODS: dict[str, Callable[[Rows], Map]] = {
    NONE: lambda data: lambda p: p,
    "platt": of_calibrant(PlattRecalibrator),
    "temperature": of_calibrant(TemperatureRecalibrator),
    "beta": of_calibrant(BetaRecalibrator),
    "isotonic": of_calibrant(IsotonicRecalibrator),
    "venn-abers": of_calibrant(VennAbersRecalibrator),
    DEFAULT: of_calibrant(AdaptiveRecalibrator),
    "smooth": of_calibrant(SmoothRecalibrator),
    CHOSEN: of_choice,
    "sklearn sigmoid": of_scikit_learn("sigmoid"),
}


@dataclass
class Tried:
    """Of every method, one number for each half: its mean loss, the standard error of that, and of its
    distance to the default.
    """

    means: dict[str, list[float]]
    errors: dict[str, list[float]]
    apart: dict[str, list[float]]

    def add(self, second: Rows, losses: dict[str, Floats]) -> None:
        """What all methods lost on one half."""
        for name, values in losses.items():
            self.means.setdefault(name, []).append(float(values.mean()))
            self.errors.setdefault(name, []).append(second.standard_error(values))
            apart = second.standard_error(values - losses[DEFAULT])
            self.apart.setdefault(name, []).append(apart)

    def cell(self, name: str, n: int) -> Cell:
        """Their means over the halves, and the best of them."""
        means = {method: float(np.mean(each)) for method, each in self.means.items()}
        best = min([*RIVALS, DEFAULT], key=lambda method: means[method])
        error, paired = float(np.mean(self.errors[best])), float(np.mean(self.apart[best]))
        return Cell(name, n, len(self.means[best]), means, best, error, paired)


def measured(data: Rows, cuts: int, names: tuple[str, ...]) -> Result:
    """Methods on the halves that they have not seen, learned from few rows of the others and from all."""
    found: dict[str, list[Found]] = {}
    half = data.halves(0)[0].p.size
    cells = []
    for n in SIZES:
        if n is not None and n >= half:
            continue
        tried = Tried({}, {}, {})
        for seed in range(cuts):
            first, second = data.halves(seed)
            learned = first if n is None else first.some(n, seed)
            second = second.at_most(MOST_JUDGED, seed)
            if not 0.0 < learned.y.mean() < 1.0:
                continue
            predicted = _predicted(learned, second.p, names)
            losses = {name: log_losses(second.y, p) for name, p in predicted.items()}
            tried.add(second, losses)
            if n is not None:
                continue
            for name, p in predicted.items():
                rise = losses[name] - losses[NONE]
                error, noise = smooth_ece(second.y, p), second.standard_error(rise)
                one = Found(error, float(losses[name].mean()), float(rise.mean()), noise)
                found.setdefault(name, []).append(one)
        cells.append(tried.cell(data.name, n or half))
    size = data.p.size
    return Result(data.name, size, data.p_value, data.halves(0)[0].p_value, found, cells)


def _predicted(learned: Rows, p: Floats, names: tuple[str, ...]) -> dict[str, Floats]:
    return {
        name: np.clip(METHODS[name](learned)(p), 0.0, 1.0)
        for name in names
        if name != CHOSEN or learned.p.size == TO_CHOOSE_FROM
    }


def tables(results: list[Result]) -> list[pages.Table]:
    """The default beside its rivals; what was promised; and all methods beside each other."""
    shown = [*ranked([cell for r in results for cell in r.cells]), promise(results, DEFAULT)]
    methods = [name for name in METHODS if name != CHOSEN]
    rows = [[r.name, f"{r.size:,}", *(_mean(r, m, "smooth_ece") for m in methods)] for r in results]
    title = "SmoothECE on the unseen half, for maps fitted to a whole half"
    return [*shown, pages.Table(title, ["data set", "rows", *methods], rows)]


def _mean(result: Result, method: str, what: str) -> str:
    return f"{result.mean(method, what):.4f}" if method in result.found else ""


def ranked(cells: list[Cell]) -> list[pages.Table]:
    """Log loss of every method on every set at every size, and how often the default is near the best."""
    rows = []
    shown = [m for m in METHODS if any(m in cell.losses for cell in cells)]
    for cell in cells:
        losses = [f"{cell.losses[m]:.4f}" if m in cell.losses else "" for m in shown]
        errors = [f"{cell.excess:+.4f}", f"{cell.error:.4f}", f"{cell.paired:.4f}"]
        rows.append([cell.name, f"{cell.n:,}", *losses, cell.best, *errors])
    header = ["data set", "rows fitted", *shown, "best", "default - best", "SE", "paired SE"]
    ranks = {m: np.array([cell.ranks()[m] for cell in cells]) for m in (*RIVALS, DEFAULT)}
    excess = {m: [c.losses[m] - c.losses[c.best] for c in cells] for m in (*RIVALS, DEFAULT)}
    near = {
        m: sum(e <= c.error for e, c in zip(excess[m], cells, strict=True))
        for m in (*RIVALS, DEFAULT)
    }
    summary = [
        [m, f"{ranks[m].mean():.2f}", f"{near[m]} of {len(cells)}", f"{np.mean(excess[m]):.4f}",
         f"{np.max(excess[m]):.4f}"]
        for m in sorted(ranks, key=lambda m: float(ranks[m].mean()))
    ]  # fmt: skip
    strict = sum(cell.excess <= cell.paired for cell in cells)
    notes = [
        "Means over random splits into halves. Each map is fitted to a given number of rows of one "
        "half, or to all of them, and judged on all rows of the other half, or on about "
        f"{MOST_JUDGED:,} if it has more.",
        "Near the best: a mean loss at most one standard error above the best map's, as in the "
        "one-standard-error rule. The standard error is that of the best map's mean loss on a half. "
        "Rows of one event count as one cluster.",
        "If we use the standard error of the paired difference instead, which shrinks as the judging "
        f"half grows, the default is near the best in {strict} of {len(cells)}.",
    ]
    return [
        pages.Table(
            "The default and its rivals",
            ["map", "mean rank", "near the best", "mean excess", "largest excess"],
            summary,
            notes,
        ),
        pages.Table("Log loss on the unseen half", header, rows),
    ]


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
                r.name,
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
            "p, fitted half",
            "SmoothECE, first split",
            "",
            "log loss, first split",
            "",
            "splits where SmoothECE falls",
            "splits where log loss is kept",
        ],
        rows,
        [
            _counted("sets that test as miscalibrated", seen),
            _counted(
                "of these whose fitted half also tests as miscalibrated",
                [one for one in seen if one[0]],
            ),
            "The protocol: split each data set in two at random (seed 0), fit to one half, measure on "
            f"the other. On the sets that test as miscalibrated (p ≤ {LEVEL}), SmoothECE must fall, and "
            "log loss must be kept: it must not rise by more than two standard errors of its change "
            "over the rows, or over the events.",
            "The last two columns repeat this with other splits. Half of a few hundred rows says "
            "little: with the same map, the error can rise in one split and still fall on average.",
            "Forecasts of the same event are tested and split together; "
            f"{', '.join((*EVENTS, *SAME_ORDER))} have such rows.",
        ],
    )


def _counted(which: str, seen: list[tuple[bool, bool, bool]]) -> str:
    _, fell, kept = np.reshape(seen, (-1, 3)).astype(int).sum(axis=0)
    return f"Of the {len(seen)} {which}, SmoothECE falls on {fell} and log loss is kept on {kept}."


def kept(data: Rows, cuts: int, names: tuple[str, ...], resume: bool) -> Result:
    """What `measured` finds, which is also left in a file for a run that takes up this one."""
    path = PARTS / f"{data.name} {cuts}.pickle"
    if resume and path.is_file():
        return pickle.loads(path.read_bytes())
    result = measured(data, cuts, names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(result))
    return result


def study(*, reduced: bool, resume: bool, workers: int | None) -> list[pages.Table]:
    """The tables of every data set, and of models that played no part in making the default."""
    cuts = REDUCED_CUTS if reduced else CUTS
    few = [data for data in sets() if not reduced or data.p.size < LARGE]
    others = list(trained.sets())[:: 5 if reduced else 1]
    rivals = (*RIVALS, DEFAULT)
    with ProcessPoolExecutor(workers) as pool:
        of_all = partial(kept, cuts=cuts, names=tuple(METHODS), resume=resume)
        of_rivals = partial(kept, cuts=cuts, names=rivals, resume=resume)
        results = list(pool.map(of_all, few))
        confirming = list(pool.map(of_rivals, others))
    cells = [cell for result in confirming for cell in result.cells]
    return [*tables(results), *trained.tables(cells, ranked)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--workers", type=int, help="processes; as many as there are cores")
    options = parser.parse_args()
    shown = study(reduced=options.reduced, resume=options.resume, workers=options.workers)
    shown += map_bands.study(reduced=options.reduced)
    pages.save("repair", [asdict(table) for table in shown])
    page = pages.Page(
        "repair",
        "Repair",
        "python -m bench.repair",
        "Recalibration maps fitted to one half of real predictions and measured on the other half.",
        shown,
        {"scikit-learn": importlib.metadata.version("scikit-learn")},
        timed=not options.resume,
    )
    print(page.write(pages.place(options.reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
