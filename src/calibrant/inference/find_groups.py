"""Groups that nobody named: cells and pairs of cells of columns in which predictions are wrong on average.

Every cell of every column, and every pair of cells of two columns, is a group; groups overlap. The statistic
of a group is its gap, the mean of outcome less prediction, as a normal score. The p-value of the largest is
its rank among the largest of samples under calibration (max-T, Westfall & Young 1993), so that the worst of a
thousand groups is not a winner of noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc
from scipy.stats import norm

from calibrant._arguments import CONFIDENCE, require_confidence, require_count
from calibrant._format import p_equation
from calibrant.data.arrays import is_missing
from calibrant.data.columns import categories
from calibrant.data.rows import InputOptions, as_rows
from calibrant.errors import InputError, TooFewRows, show_value
from calibrant.measures.result_record import frame_of
from calibrant.measures.smooth_ece import smooth_ece

__all__ = ["FoundGroup", "FoundGroups", "find_groups"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

DRAWS = 1999
"""Null samples: adjusted p-values are resolved to 1/2000."""
BLOCKS = 2048
"""Random blocks of rows whose sums stand for the null covariance of groups: known to 1/sqrt(2048), 2%."""
LEAST_VARIANCE = 4.0
"""Least sum of f (1 - f) of a group: with fewer expected surprises a gap cannot be told from noise."""
MOST_CATEGORIES = 10
"""Categories of a column that have cells of their own; the rarer are pooled as "other"."""
POWER = 0.8
"""Of the smallest gap that could have been seen."""


@dataclass(frozen=True)
class FoundGroup:
    """A group and its gap.

    Attributes
    ----------
    conditions : dict
        The cell of each column that defines the group.
    rows : int
        Number of rows.
    mean_prediction, event_rate, gap : float
        `gap` is event rate less mean prediction.
    low, high : float
        Simultaneous interval of the gap, over all groups.
    p_value : float
        Adjusted for all groups (single-step max-T).
    smooth_ece : float
        Of the group's rows.
    detectable : float
        Gap that would have been found with a probability of 80%.
    """

    conditions: dict[str, str]
    rows: int
    mean_prediction: float
    event_rate: float
    gap: float
    low: float
    high: float
    p_value: float
    smooth_ece: float
    detectable: float

    @property
    def label(self) -> str:
        """The conditions in words."""
        return " and ".join(f"{name} {cell}" for name, cell in self.conditions.items())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"label": self.label, **self.__dict__}


@dataclass(frozen=True)
class FoundGroups:
    """Groups whose gap is shown, and the largest of the others, from the smallest p-value on.

    Attributes
    ----------
    groups : tuple of FoundGroup
        A pair of cells is listed where it adds to what its cells show alone.
    p_value : float
        Of "no group has a gap".
    tested : int
        Number of groups.
    """

    groups: tuple[FoundGroup, ...]
    p_value: float
    tested: int
    confidence: float

    def __iter__(self) -> Iterator[FoundGroup]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, place: int) -> FoundGroup:
        return self.groups[place]

    @property
    def shown(self) -> tuple[FoundGroup, ...]:
        """Groups with a gap at the level 1 - confidence."""
        return tuple(one for one in self.groups if one.p_value <= 1.0 - self.confidence + 1e-12)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if not self.shown:
            return f"no group with a gap detected among {self.tested:,}: {p_equation(self.p_value)}"
        worst = self.groups[0]
        side = "too low" if worst.gap > 0 else "too high"
        return (
            f"{len(self.shown)} of {self.tested:,} groups have a gap, {p_equation(self.p_value)}; worst: "
            f"{worst.label}, predictions {abs(worst.gap):.3g} {side}"
        )

    def __repr__(self) -> str:
        return f"FoundGroups({len(self.shown)} of {self.tested} groups, {p_equation(self.p_value)})"

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        lines += [
            f"{one.gap:+.4f} ({one.low:+.4f} to {one.high:+.4f})  {p_equation(one.p_value)}  "
            f"{one.rows:,} rows  {one.label}"
            for one in self.groups
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "verdict": self.verdict,
            "p_value": self.p_value,
            "tested": self.tested,
            "confidence": self.confidence,
            "groups": [one.to_dict() for one in self.groups],
        }

    def to_frame(self) -> Any:
        """A data frame with a row for each group."""
        rows = [one.to_dict() for one in self.groups]
        return frame_of([{k: v for k, v in row.items() if k != "conditions"} for row in rows])


def find_groups(
    *,
    data: Any,
    y_true: str,
    y_prob: str,
    columns: Sequence[str],
    depth: int = 2,
    n_bins: int = 5,
    most: int = 20,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> FoundGroups:
    """Groups of rows, by cells of columns and pairs of cells, whose predictions are wrong on average.

    Parameters
    ----------
    data : frame or mapping
        Table of columns.
    y_true, y_prob : str
        Columns of outcomes and predictions.
    columns : sequence of str
        Columns that may define groups: numbers are cut at quantiles, rare categories are pooled as "other",
        and missing values have a cell of their own.
    depth : {1, 2}
        Cells alone, or pairs of cells too.
    n_bins : int
        Cells of a numeric column.
    most : int
        Groups listed; all that have a gap are.
    confidence : float
        Of the simultaneous intervals; the test's level is 1 - `confidence`.
    **options
        How predictions and outcomes are read (see `InputOptions`); rows cannot have weights.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b, p = rng.integers(0, 2, (2, 20_000)).tolist() + [rng.uniform(0.2, 0.8, 20_000)]
    >>> y = rng.random(20_000) < p + np.where(np.equal(a, b), 0.1, -0.1)
    >>> found = find_groups(data={"a": a, "b": b, "p": p, "y": y}, y_true="y", y_prob="p",
    ...                     columns=["a", "b"])
    >>> sorted(one.label for one in found.shown)
    ['a 0 and b 0', 'a 0 and b 1', 'a 1 and b 0', 'a 1 and b 1']
    """
    require_count("depth", depth, most=2)
    require_count("n_bins", n_bins, least=2)
    require_count("most", most)
    require_confidence(confidence)
    if options.get("sample_weight") is not None:
        raise InputError(
            "`sample_weight` is not taken by the search for groups.", argument="sample_weight"
        )
    rows = as_rows(_column(data, y_true, "y_true"), _column(data, y_prob, "y_prob"), **options)
    names = _names(columns, (y_true, y_prob))
    cells = []
    for name in names:
        values = _column(data, name, "columns")
        values = values if rows.kept is None else values[rows.kept]
        cells.append(_cells(values, name, n_bins, rows.y))
    family = _Family(rows.p, rows.y, cells, depth)
    return family.found(names, most, confidence)


class _Family:
    """Sums of all groups, and normal scores of samples under calibration."""

    def __init__(
        self, p: Floats, y: Floats, cells: list[tuple[Codes, list[str]]], depth: int
    ) -> None:
        self.p, self.y, self.cells = p, y, cells
        variance = p * (1.0 - p)
        rng = np.random.default_rng(0)
        blocks = min(BLOCKS, p.size)
        block = rng.permutation(p.size) % blocks
        null = (rng.random(p.size) < p) - p  # residuals of one sample under calibration
        single = [(k,) for k in range(len(cells))]
        sets = single + (list(combinations(range(len(cells)), 2)) if depth == 2 else [])
        noise, keys, sums = [], [], []
        for columns in sets:
            code, size = self._codes(columns)
            part = np.array([np.bincount(code, w, size) for w in (np.ones(p.size), p, y, variance)])
            kept = np.flatnonzero(part[3] >= LEAST_VARIANCE)
            if len(columns) == 2:  # a pair that is a whole cell is that cell
                parents = [
                    np.bincount(self.cells[k][0])[self._digit(columns, k, kept)] for k in columns
                ]
                kept = kept[part[0][kept] < np.minimum(*parents)]
            if kept.size == 0:
                continue
            table = np.bincount(block * size + code, null, blocks * size).reshape(blocks, size)
            noise.append(table[:, kept] / np.sqrt(part[3][kept]))
            keys += [(columns, int(one)) for one in kept]
            sums.append(part[:, kept])
        if not keys:
            raise TooFewRows(
                "`columns` make no group with enough rows.",
                argument="columns",
                hint="Pass more rows, or columns with fewer cells.",
            )
        self.keys = keys
        self.rows, self.predicted, self.observed, self.variance = np.concatenate(sums, axis=1)
        scores = np.concatenate(noise, axis=1)
        draws = rng.standard_normal((DRAWS, blocks)) @ scores
        draws /= draws.std(axis=0)  # the covariance is that of the blocks, the variances are known
        self.largest = np.sort(np.abs(draws).max(axis=1))
        self.score = _normal_score(self.observed, self.predicted, self.variance)

    def _codes(self, columns: tuple[int, ...]) -> tuple[Codes, int]:
        code, labels = self.cells[columns[0]]
        size = len(labels)
        for k in columns[1:]:
            code, size = (
                code * len(self.cells[k][1]) + self.cells[k][0],
                size * len(self.cells[k][1]),
            )
        return code, size

    def _digit(self, columns: tuple[int, ...], column: int, code: Any) -> Any:
        """The cell of one column in the code of a group."""
        if len(columns) == 1:
            return code
        size = len(self.cells[columns[1]][1])
        return code // size if column == columns[0] else code % size

    def p_values(self, score: Floats) -> Floats:
        """Single-step max-T p-values; beyond all draws, Bonferroni's bound."""
        beyond = DRAWS - np.searchsorted(self.largest, np.abs(score) - 1e-12)
        bound = np.minimum(2.0 * norm.sf(np.abs(score)) * len(self.keys), 1.0 / (DRAWS + 1))
        return np.where(beyond > 0, (1 + beyond) / (DRAWS + 1), bound)

    def found(self, names: list[str], most: int, confidence: float) -> FoundGroups:
        """The groups that are shown, and the largest of the others."""
        p_value = self.p_values(self.score)
        level = 1.0 - confidence + 1e-12
        gap = (self.observed - self.predicted) / self.rows
        place = {key: k for k, key in enumerate(self.keys)}
        listed: list[int] = []
        for k in np.lexsort((-np.abs(self.score), p_value)):
            columns, code = self.keys[k]
            parents = [
                place[(column,), int(self._digit(columns, column, code))]
                for column in columns
                if len(columns) == 2
                and ((column,), int(self._digit(columns, column, code))) in place
            ]
            explained = [gap[q] for q in parents if p_value[q] <= level]
            if explained:
                left = gap[k] - max(explained, key=abs)
                if (
                    self.p_values(np.array([left * self.rows[k] / np.sqrt(self.variance[k])]))[0]
                    > level
                ):
                    continue
            elif parents and p_value[k] > level:
                continue
            if p_value[k] > level and len(listed) >= most:
                break
            listed.append(int(k))
        critical = float(np.quantile(self.largest, confidence))
        groups = tuple(self._group(k, names, float(p_value[k]), critical) for k in listed)
        return FoundGroups(groups, float(p_value.min()), len(self.keys), confidence)

    def _group(self, k: int, names: list[str], p_value: float, critical: float) -> FoundGroup:
        columns, code = self.keys[k]
        inside = self._codes(columns)[0] == code
        n = float(self.rows[k])
        gap = float(self.observed[k] - self.predicted[k]) / n
        rate = float(self.observed[k]) / n
        half = critical * np.sqrt(max(float(np.var(self.y[inside] - self.p[inside])), 1e-12) / n)
        return FoundGroup(
            {names[c]: self.cells[c][1][int(self._digit(columns, c, code))] for c in columns},
            int(n),
            float(self.predicted[k]) / n,
            rate,
            gap,
            float(gap - half),
            float(gap + half),
            p_value,
            float(smooth_ece(self.y[inside], self.p[inside])),
            float((critical + norm.ppf(POWER)) * np.sqrt(self.variance[k]) / n),
        )


def _normal_score(observed: Floats, predicted: Floats, variance: Floats) -> Floats:
    """Normal score of the number of events, by the binomial law of the same mean and variance.

    The law of a sum of unlike Bernoulli outcomes lies close to that binomial one, where a normal law would
    make few rare events too significant. The tail is a mid-p-value.
    """
    p = np.clip(1.0 - variance / predicted, 1e-12, 1 - 1e-12)
    n = predicted / p
    upper = 0.5 * (_at_least(observed, n, p) + _at_least(observed + 1.0, n, p))
    tiny = 1e-300
    above = norm.isf(np.clip(upper, tiny, 0.5))
    below = norm.ppf(np.clip(1.0 - upper, tiny, 0.5))
    score: Floats = np.where(upper <= 0.5, above, below)
    return score


def _at_least(count: Floats, n: Floats, p: Floats) -> Floats:
    """P(X >= count) of a binomial law whose n need not be whole."""
    inside = np.clip(count, 1e-9, None)
    return np.where(
        count <= 0,
        1.0,
        np.where(count > n, 0.0, betainc(inside, np.maximum(n - count + 1.0, 1e-9), p)),
    )


def _column(data: Any, name: Any, argument: str) -> NDArray[Any]:
    try:
        column = data[name]
    except Exception as error:  # frames have errors of their own for a missing column
        raise InputError(
            f"`{argument}` must name columns of the data; {show_value(name)} is none.",
            argument=argument,
        ) from error
    return categories(column, argument)


def _names(columns: Any, taken: tuple[str, str]) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InputError("`columns` must be a list of names.", argument="columns")
    for name in columns:
        if not isinstance(name, str):
            raise InputError(
                f"`columns` must be names; one is {show_value(name)}.", argument="columns"
            )
        if name in taken:
            raise InputError(
                f"`columns` must not hold the outcome or the prediction, {show_value(name)}.",
                argument="columns",
            )
    return list(dict.fromkeys(columns))


def _cells(values: NDArray[Any], name: str, n_bins: int, y: Floats) -> tuple[Codes, list[str]]:
    """Cell of each row and the labels of cells."""

    def refuse(fault: str, hint: str) -> InputError:
        return InputError(f"`columns`: {name!r} {fault}.", argument="columns", hint=hint)

    if values.shape != y.shape:
        raise refuse("has another number of rows than the outcomes", "Pass columns of one table.")
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        missing = ~np.isfinite(numbers)
        distinct = np.unique(numbers[~missing])
        if distinct.size == 2 and np.array_equal(numbers == distinct[1], y == 1):
            raise refuse("is the outcome itself", "Leave it out.")
    else:
        missing = is_missing(values)
        values = np.where(missing, "", values.astype(str))
        distinct = np.unique(values[~missing])
    if distinct.size == 0:
        raise refuse("has no values", "Leave it out.")
    if distinct.size == 1 and not missing.any():
        raise refuse("has one value alone", "Leave it out.")
    if values.dtype.kind in "biuf" and distinct.size > max(n_bins, 2):
        edges = np.unique(np.quantile(numbers[~missing], np.linspace(0, 1, n_bins + 1)))
        code = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, edges.size - 2)
        labels = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
    else:
        if distinct.size > max(0.5 * values.size, MOST_CATEGORIES):
            raise refuse("has a value of its own in most rows", "A column of names is no group.")
        place = np.searchsorted(distinct, np.where(missing, distinct[0], values))
        counts = np.bincount(place[~missing], minlength=distinct.size)
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(distinct.size, dtype=np.int64)
        rank[order] = np.arange(distinct.size)
        code = np.minimum(rank[place], MOST_CATEGORIES)
        labels = [
            f"{one:g}" if values.dtype.kind in "biuf" else str(one)
            for one in distinct[order][:MOST_CATEGORIES].tolist()
        ]
        labels += ["other"] if distinct.size > MOST_CATEGORIES else []
    if missing.any():
        code, labels = np.where(missing, len(labels), code), [*labels, "missing"]
    return code.astype(np.int64), labels
