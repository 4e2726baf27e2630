"""The same rows by every way in, against their exact sums: the same bits, or a refusal, on every engine."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.draws import CASE, Rows, drawn, drawn_kinds
from tests.fuzz.engines import ENGINES
from tests.fuzz.exact import Sums, exact_sums
from tests.fuzz.ways import WAYS, Way

import calibrant as cal

__all__ = ["ENGINES", "WAYS", "Checks", "try_cases", "try_rows"]

NODES = [2, 256, 1 << 16, 1 << 20]
CASES = 200
"""How many cases an engine that is slow to start is given in one table."""


@dataclass
class Checks:
    """How many comparisons were made, how many refusals there were, and what differed."""

    made: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{sum(self.made.values()):,} checks over {len(self.made)} ways in, "
            f"{sum(self.refused.values()):,} refusals; {len(self.failures)} failures"
        )

    def compare(self, name: str, way: Way, rows: Rows, nodes: int, exact: Sums, case: str) -> None:
        """Take the rows one way in; note what differs from their exact sums."""
        with tempfile.TemporaryDirectory() as folder:
            sums = taken(way, rows, nodes, Path(folder))
        cases = len({group[0] for group in exact}) if len(rows.by) > 1 else len(exact)
        many = CASE in rows.by and not isinstance(sums, Exception)
        self.made[name] += cases if many else 1
        if isinstance(sums, cal.InputError):
            self.refused[name] += 1
            if _may_be_refused(rows, exact):
                return
        if sums != exact:
            what = f"{name}, {case}, {rows.kinds}, {nodes} nodes: {_difference(sums, exact)}"
            self.failures.append(what[:900])


def try_rows(least: int, seed: int = 0, ways: Iterable[str] = tuple(WAYS)) -> Checks:
    """Draw rows and take each by every way in, until so many comparisons are made."""
    checks = Checks()
    for number in count():
        if sum(checks.made.values()) >= least:
            break
        rng = np.random.default_rng([seed, number])
        rows, nodes = drawn(rng, drawn_kinds(rng)), int(rng.choice(NODES))
        exact = _exact(rows, nodes)
        for name in ways:
            way = (WAYS | ENGINES)[name]
            if way.has(rows, nodes):
                checks.compare(name, way, rows, nodes, exact, f"case {number} of seed {seed}")
    return checks


def try_cases(least: int, seed: int = 0, ways: Iterable[str] = tuple(ENGINES)) -> Checks:
    """The same for engines that are slow to start: many cases in one table, and a few alone."""
    checks = Checks()
    for name in ways:
        way = (WAYS | ENGINES)[name]
        for number in count():
            if checks.made[name] >= least:
                break
            rng = np.random.default_rng([seed, number])
            kinds, nodes = drawn_kinds(rng), int(rng.choice(NODES))
            many = way.groups and number % 4 > 0
            rows = drawn(rng, kinds, CASES if many else None)
            if way.has(rows, nodes):
                exact = _exact(rows, nodes)
                case = f"{'cases' if many else 'case'} {number} of seed {seed}"
                checks.compare(name, way, rows, nodes, exact, case)
    return checks


def _exact(rows: Rows, nodes: int) -> Sums:
    percent = rows.kinds.percent
    return exact_sums(
        rows.lists["y"], rows.lists["p"], nodes, rows.weights, rows.groups, percent=percent
    )


def taken(way: Way, rows: Rows, nodes: int, folder: Path) -> Sums | Exception:
    """The sums by one way in, or the refusal; anything else that is raised is a failure."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the engine, about the rows
            source = way.make(rows, folder)
            return sums_of(way.take(source, rows, nodes))
    except cal.InputError as refusal:
        return refusal
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")


def sums_of(result: cal.Sketch | cal.Sketches) -> Sums:
    groups = result.items() if isinstance(result, cal.Sketches) else [(None, result)]
    return {group: (_sums_of(sketch), dict(sketch.dropped)) for group, sketch in groups}


def _sums_of(sketch: cal.Sketch) -> dict[tuple[int, int], tuple[Fraction, ...]]:
    columns = [sketch.counts, sketch.offsets]
    if sketch.weighted:
        columns += [sketch.weights, sketch.squared_weights, sketch.weighted_offsets]
    return {
        (int(cell), label): tuple(Fraction(column[row, label].item()) for column in columns)
        for row, cell in enumerate(sketch.cells)
        for label in range(2)
        if sketch.counts[row, label]
    }


def _may_be_refused(rows: Rows, exact: Sums) -> bool:
    """Whether there is nothing to sum, decimals that engines round in two ways, or columns exchanged."""
    weights = (sums[2] for cells, _ in exact.values() for sums in cells.values() if len(sums) > 2)
    none = not any(cells for cells, _ in exact.values())
    weightless = rows.weights is not None and not any(weights)
    y, p = rows.lists["y"], rows.lists["p"]
    exchanged = {*p} <= {0, 1} and any(label is not None and 0 < label < 1 for label in y)
    return none or weightless or exchanged or "wide decimal" in rows.kinds


def _difference(sums: Sums | Exception, exact: Sums) -> str:
    """The first group that differs."""
    if isinstance(sums, Exception):
        return repr(sums)
    missing: Any = "no such group"
    for group in [*exact, *sums]:
        pair = sums.get(group, missing), exact.get(group, missing)
        if pair[0] != pair[1]:
            return f"group {group!r}: {pair[0]} in place of {pair[1]}"
    return "other groups"
