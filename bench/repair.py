"""Recalibration of real predictions: learned from rows of a random half, judged on the other half.

python -m bench.repair              # every data set, 20 halves; about a quarter of an hour of one core
python -m bench.repair --reduced    # those with fewer than 20,000 rows, 3 halves
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench import map_bands, pages, trained
from bench.rows import Rows, sets
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

Floats = NDArray[np.float64]
Method = Callable[[Rows, Floats], Floats]

DEFAULT, NONE, CHOSEN = "adaptive (default)", "none", "choose_recalibrator"
RIVALS = (NONE, "platt", "temperature", "beta", "isotonic", "venn-abers")
SIZES = (100, 300, 1_000, None)
CUTS, REDUCED_CUTS = 20, 3
MOST_JUDGED = 100_000
LARGE = 20_000
TO_CHOOSE_FROM = 300
"""`choose_recalibrator` fits every map to every fold: it is tried with so many rows alone."""


@dataclass(frozen=True)
class Cell:
    """Means over the halves of one data set and number of rows learned from, by method.

    `error` is the standard error of the best loss on a half, `paired` that of the default's distance to it.
    """

    name: str
    n: int
    losses: dict[str, float]
    smooth_ece: dict[str, float]
    best: str
    error: float
    paired: float

    def excess(self, method: str) -> float:
        """Log loss above that of the best of the default and its rivals."""
        return self.losses[method] - self.losses[self.best]

    def ranks(self) -> dict[str, float]:
        """Ranks of the log losses among the rivals and the default, 1 for the smallest."""
        names = [*RIVALS, DEFAULT]
        values = np.array([self.losses[name] for name in names])
        smaller, equal = (values[:, None] > values).sum(1), (values[:, None] == values).sum(1)
        return dict(zip(names, (smaller + 0.5 * (equal + 1)).tolist(), strict=True))


def _choice(data: Rows, p: Floats) -> Floats:
    """The map that held-out rows choose; none where there are too few of one outcome to hold out."""
    try:
        return choose_recalibrator(data.y, data.p, cluster=data.event).recalibrator.transform(p)
    except TooFewRows:
        return p


def _of(made: type) -> Method:
    return lambda data, p: made().fit(data.p, data.y).transform(p)


METHODS: dict[str, Method] = {
    NONE: lambda data, p: p,
    "platt": _of(PlattRecalibrator),
    "temperature": _of(TemperatureRecalibrator),
    "beta": _of(BetaRecalibrator),
    "isotonic": _of(IsotonicRecalibrator),
    "venn-abers": _of(VennAbersRecalibrator),
    DEFAULT: _of(AdaptiveRecalibrator),
    "smooth": _of(SmoothRecalibrator),
    CHOSEN: _choice,
}


def measured(data: Rows, cuts: int, names: tuple[str, ...]) -> list[Cell]:
    """Methods learned from few rows of a half and from all of it, judged on the other half."""
    half = data.halves(0)[0].p.size
    return [_cell(data, cuts, names, n) for n in SIZES if n is None or n < half]


def _cell(data: Rows, cuts: int, names: tuple[str, ...], n: int | None) -> Cell:
    names = tuple(name for name in names if name != CHOSEN or n == TO_CHOOSE_FROM)
    losses, errors, apart, off = ([] for _ in range(4))
    for seed in range(cuts):
        first, second = data.halves(seed)
        learned = first if n is None else first.some(n, seed)
        second = second.at_most(MOST_JUDGED, seed)
        if not 0.0 < learned.y.mean() < 1.0:
            continue
        predicted = [np.clip(METHODS[name](learned, second.p), 0.0, 1.0) for name in names]
        lost = [log_losses(second.y, p) for p in predicted]
        default = lost[names.index(DEFAULT)]
        losses.append([each.mean() for each in lost])
        errors.append([second.standard_error(each) for each in lost])
        apart.append([second.standard_error(each - default) for each in lost])
        if n is None:
            off.append([smooth_ece(second.y, p) for p in predicted])
    mean = [
        dict(zip(names, np.mean(each, axis=0), strict=True)) if each else {}
        for each in (losses, errors, apart, off)
    ]
    best = min([*RIVALS, DEFAULT], key=lambda name: mean[0][name])
    size = n or data.halves(0)[0].p.size
    return Cell(data.name, size, mean[0], mean[3], best, mean[1][best], mean[2][best])


def ranked(cells: list[Cell]) -> list[pages.Table]:
    """Log loss of every method on every set at every size, and how often the default is near the best."""
    shown = [name for name in METHODS if any(name in cell.losses for cell in cells)]
    rows = [
        [
            cell.name,
            f"{cell.n:,}",
            *(f"{cell.losses[m]:.4f}" if m in cell.losses else "" for m in shown),
            cell.best,
            *(f"{value:.4f}" for value in (cell.excess(DEFAULT), cell.error, cell.paired)),
        ]
        for cell in cells
    ]
    header = ["data set", "rows fitted", *shown, "best", "default - best", "SE", "paired SE"]
    summary = []
    for name in (*RIVALS, DEFAULT):
        excess = np.array([cell.excess(name) for cell in cells])
        near = sum(cell.excess(name) <= cell.error for cell in cells)
        rank = np.mean([cell.ranks()[name] for cell in cells])
        near = f"{near} of {len(cells)}"
        summary.append([name, f"{rank:.2f}", near, f"{excess.mean():.4f}", f"{excess.max():.4f}"])
    strict = sum(cell.excess(DEFAULT) <= cell.paired for cell in cells)
    notes = [
        "Means over random splits into halves. Each map is fitted to a given number of rows of one "
        "half, or to all of them, and judged on all rows of the other half, or on about "
        f"{MOST_JUDGED:,} if it has more. Rows of one event stay together.",
        "Near the best: a mean loss at most one standard error above the best map's, as in the "
        "one-standard-error rule. The standard error is that of the best map's mean loss on a half, with "
        "events as clusters. With that of the paired difference instead, which shrinks as the judging half "
        f"grows, the default is near the best in {strict} of {len(cells)}.",
    ]
    return [
        pages.Table(
            "The default and its rivals",
            ["map", "mean rank", "near the best", "mean excess", "largest excess"],
            sorted(summary, key=lambda row: float(row[1])),
            notes,
        ),
        pages.Table("Log loss on the unseen half", header, rows),
    ]


def smooth_eces(cells: list[Cell]) -> pages.Table:
    """SmoothECE of every method learned from a whole half."""
    methods = [name for name in METHODS if name != CHOSEN]
    whole = [cell for cell in cells if cell.smooth_ece]
    return pages.Table(
        "SmoothECE on the unseen half, for maps fitted to a whole half",
        ["data set", "rows fitted", *methods],
        [[c.name, f"{c.n:,}", *(f"{c.smooth_ece[m]:.4f}" for m in methods)] for c in whole],
    )


def study(*, reduced: bool) -> list[pages.Table]:
    """The tables of every data set, and of models that played no part in making the default."""
    cuts = REDUCED_CUTS if reduced else CUTS
    few = [data for data in sets() if not reduced or data.p.size < LARGE]
    others = list(trained.sets())[:: 5 if reduced else 1]
    with ProcessPoolExecutor() as pool:
        each = list(pool.map(partial(measured, cuts=cuts, names=tuple(METHODS)), few))
        confirming = list(pool.map(partial(measured, cuts=cuts, names=(*RIVALS, DEFAULT)), others))
    cells = [cell for found in each for cell in found]
    summary, _ = ranked([cell for found in confirming for cell in found])
    confirmed = replace(summary, title=trained.TITLE, notes=[trained.NOTE, *summary.notes])
    return [*ranked(cells), smooth_eces(cells), confirmed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="small sets, 3 halves, for CI")
    reduced = parser.parse_args().reduced
    shown = [*study(reduced=reduced), *map_bands.study(reduced=reduced)]
    pages.save("repair", [asdict(table) for table in shown])
    page = pages.Page(
        "repair",
        "Recalibration",
        "python -m bench.repair",
        "Recalibration maps fitted to one half of real predictions and measured on the other half.",
        shown,
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
