"""Groups that nobody named: cells and pairs of cells of columns in which predictions are wrong on average.

Every cell of every column, and every pair of cells of two columns, is a group; groups overlap. The statistic
of a group is its gap, the mean of outcome less prediction, as a normal score. The p-value of the largest is
its rank among the largest of samples under calibration (max-T, Westfall & Young 1993), so that the worst of a
thousand groups is not a winner of noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from calibrant._arguments import CONFIDENCE, require_confidence, require_count
from calibrant._format import aligned, decimals, p_equation, p_text
from calibrant.data.arrays import as_column, categories
from calibrant.data.cells import MOST_BINS, Cells, Codes, crossed, require_groups
from calibrant.data.rows import InputOptions, as_rows, require_same_index_in
from calibrant.errors import InputError, TooFewRows, invalid, show_value
from calibrant.inference.bias import binomial_score, wilson_interval
from calibrant.measures.result_record import Record, frame_of
from calibrant.measures.smooth_ece import smooth_ece

Floats = NDArray[np.float64]

DRAWS = 1999
"""Null samples: adjusted p-values are resolved to 1/2000."""
BLOCKS = 1024
"""Random blocks of rows whose sums stand for the null covariance of groups: known to 1/sqrt(1024), 3%."""
LEAST_VARIANCE = 4.0
"""Least sum of f (1 - f) of a group: with fewer expected surprises a gap cannot be told from noise."""
MOST_CATEGORIES = 10
"""Categories of a column that have cells of their own; the rarer are pooled as "other"."""
POWER = 0.8
"""Of the smallest gap that could have been seen."""


@dataclass(frozen=True)
class FoundGroup(Record):
    """A group and its gap.

    Attributes
    ----------
    conditions : dict
        The cell of each column that defines the group.
    n : int
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
    n: int
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
        return _label(self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"group": self.label, **super().to_dict()}


@dataclass(frozen=True)
class SurprisingGroup(Record):
    """A group whose predictions are so near 0 or 1 that it has no normal score, and whose outcomes differ.

    Attributes
    ----------
    label : str
        The conditions in words.
    n : int
        Number of rows.
    expected, observed : float
        Events.
    p_value : float
        Hoeffding's bound (1956): of a binomial law with the mean prediction; by Bonferroni for all groups
        that have no score.
    """

    label: str
    n: int
    expected: float
    observed: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.label} ({self.n:,} rows): predictions are near 0 or 1; observed {self.observed:,.0f}, "
            f"expected {self.expected:,.1f} events, {p_equation(self.p_value)}"
        )


@dataclass(frozen=True, repr=False)
class FoundGroups(Sequence[FoundGroup], Record):
    """Groups whose gap is shown, and the largest of the others, from the smallest p-value on.

    Attributes
    ----------
    groups : tuple of FoundGroup
        A pair of cells is listed where it adds to what its cells show alone.
    p_value : float
        Of "no group has a gap", of those that were tested.
    tested, too_few : int
        Number of groups that were tested, and of those with too few expected events to be.
    surprising : tuple of SurprisingGroup
        Of these, the ones whose outcomes differ all the same: a family of tests of its own.
    dropped : mapping
        Rows that were left out, by reason.
    """

    groups: tuple[FoundGroup, ...]
    p_value: float
    tested: int
    too_few: int
    surprising: tuple[SurprisingGroup, ...]
    dropped: Mapping[str, int]
    confidence: float

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, place: Any) -> Any:
        return self.groups[place]

    @property
    def shown(self) -> tuple[FoundGroup, ...]:
        """Groups with a gap at the level 1 - confidence."""
        return tuple(one for one in self.groups if one.p_value <= 1.0 - self.confidence + 1e-12)

    @property
    def miscalibrated(self) -> bool:
        """True where a group has a gap."""
        return bool(self.shown or self.surprising)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.surprising and not self.shown:
            return f"{len(self.surprising)} of {self.too_few:,} groups without a score; {self.surprising[0]}"
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
        lines = [self.verdict]
        if self.too_few:
            lines.append(f"{self.too_few:,} more have too few rows or events.")
        lines += [
            f"{count:,} rows were dropped: {reason}" for reason, count in self.dropped.items()
        ]
        return "\n".join([*lines, "", aligned(self.rows())])

    def rows(self) -> list[list[str]]:
        """The groups as a table of text, header first; those without a score have no interval."""
        table = [["group", "n", "gap", "interval", "p", "detectable"]]
        for other in self.surprising:
            gap = (other.observed - other.expected) / other.n
            table.append(
                [other.label, f"{other.n:,}", f"{gap:+.4f}", "", p_text(other.p_value), ""]
            )
        for one in self.groups:
            interval = f"{one.low:+.4f} to {one.high:+.4f}"
            p, least = p_text(one.p_value), decimals(one.detectable)
            table.append([one.label, f"{one.n:,}", f"{one.gap:+.4f}", interval, p, least])
        return table

    def plot(self, ax: Any = None, **look: Any) -> Any:
        """Forest plot of the groups, as `calibrant.plotting.gap_plot` draws it."""
        import calibrant  # the facade, which loads the room of pictures when it is first asked for

        return calibrant.plotting.gap_plot(self).plot(ax, **look)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"verdict": self.verdict, **super().to_dict()}

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each group."""
        _, *names = (item.name for item in fields(FoundGroup))
        columns = {name: [getattr(one, name) for one in self.groups] for name in ("label", *names)}
        return frame_of({"group": columns.pop("label"), **columns}, backend)


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
        How predictions and outcomes are read (see `calibrant.data.InputOptions`); rows cannot have weights,
        and are taken to be independent.

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
    require_count("n_bins", n_bins, least=2, most=MOST_BINS)
    require_count("most", most)
    require_confidence(confidence)
    if options.get("sample_weight") is not None:
        raise InputError(
            "`sample_weight` is not taken by the search for groups.", argument="sample_weight"
        )
    columns = as_column(columns, "columns").tolist()
    roles = [("y_true", y_true), ("y_prob", y_prob), *(("columns", name) for name in columns)]
    for argument, name in roles:
        if not isinstance(name, str):
            raise invalid(argument, "name a column", name)
    require_same_index_in(data, y_true, y_prob, *columns)
    rows = as_rows(
        categories(y_true, "y_true", data), categories(y_prob, "y_prob", data), **options
    )
    cells: dict[str, Cells] = {}
    codes = []
    for name in columns:
        if name in (y_true, y_prob) or name in cells:
            role = "named twice" if name in cells else "the outcome or the prediction"
            raise InputError(f"`columns`: {show_value(name)} is {role}.", argument="columns")
        values = rows.entries(categories(name, "columns", data), "columns")
        cells[name] = Cells.of(values, n_bins, MOST_CATEGORIES)
        codes.append(cells[name].codes(values))
        require_groups(name, cells[name], codes[-1], values, rows.y, "columns")
    names, sizes = list(cells), [len(one) for one in cells.values()]
    family = _Family.of(rows.p, rows.y, codes, sizes, depth)
    level = 1.0 - confidence

    def conditions_of(key: Key) -> dict[str, str]:
        return {names[c]: cells[names[c]].labels[code] for c, code in key}

    surprising = [
        SurprisingGroup(
            _label(conditions_of(key)), int(n), float(expected), float(observed), p_value
        )
        for key, n, expected, observed, p_value in family.surprises(level + 1e-12)
    ]
    if not (family.keys or surprising):
        raise TooFewRows(
            "`columns` make no group with enough rows.",
            argument="columns",
            hint="Pass more rows, or columns with fewer cells.",
        )
    p_values, critical = family.p_values(family.score), family.critical(level)
    groups = []
    for k in family.listed(p_values, level + 1e-12, most):
        inside = np.ones(rows.n, dtype=np.bool_)
        for column, code in family.keys[k]:
            inside &= codes[column] == code
        own, n = rows.select(inside), float(family.n[k])
        gap, score = float(family.gap[k]), float(family.score[k])
        mean, observed = float(family.predicted[k]) / n, float(family.observed[k]) / n**2
        low, high = wilson_interval(gap, mean, score, observed, 1.0 / n, critical)
        groups.append(
            FoundGroup(
                conditions=conditions_of(family.keys[k]),
                n=int(n),
                mean_prediction=mean,
                event_rate=float(family.events[k]) / n,
                gap=gap,
                low=low,
                high=high,
                p_value=float(p_values[k]),
                smooth_ece=float(smooth_ece(own)),
                detectable=float((critical + norm.ppf(POWER)) * family.spread[k]) / n,
            )
        )
    return FoundGroups(
        tuple(groups),
        float(p_values.min(initial=1.0)),
        len(family.keys),
        len(family.few),
        tuple(surprising),
        rows.dropped,
        confidence,
    )


def _label(conditions: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {cell}" for name, cell in conditions.items())


Key = tuple[tuple[int, int], ...]
"""Columns of a group, by place, and its cell of each."""


@dataclass(frozen=True, eq=False)
class _Family:
    """All groups: sums, gaps, normal scores; and the largest score of each sample under calibration."""

    keys: list[Key]
    n: Floats
    predicted: Floats
    events: Floats
    observed: Floats
    variance: Floats
    gap: Floats
    score: Floats
    largest: Floats
    few: list[Key]
    few_sums: Floats

    @classmethod
    def of(
        cls, p: Floats, y: Floats, codes: Sequence[Codes], sizes: Sequence[int], depth: int
    ) -> _Family:
        chance = p * (1.0 - p)
        rng = np.random.default_rng(0)
        blocks = min(BLOCKS, p.size)
        block = rng.permutation(p.size) % blocks
        null = np.sqrt(chance) * rng.choice([-1.0, 1.0], p.size)  # residuals under calibration
        normal = rng.standard_normal((DRAWS, blocks))
        rows = [np.bincount(code, minlength=size) for code, size in zip(codes, sizes, strict=True)]
        weights = (np.ones(p.size), p, y, chance, chance * p, (y - p) ** 2)
        keys: list[Key] = []
        few: list[Key] = []
        sums, few_sums, largest = [], [], np.zeros(DRAWS)
        for columns, code, size in crossed(codes, sizes, depth):
            part = np.array([np.bincount(code, w, size) for w in weights])
            cell = np.unravel_index(np.arange(size), [sizes[k] for k in columns])
            parents = np.min([rows[k][own] for k, own in zip(columns, cell, strict=True)], axis=0)
            new = part[0] > 0
            if len(columns) > 1:
                new &= part[0] < parents  # otherwise the pair is a cell
            enough = part[3] >= LEAST_VARIANCE
            kept, left = np.flatnonzero(new & enough), np.flatnonzero(new & ~enough)
            few += [
                tuple(zip(columns, one, strict=True))
                for one in np.stack(cell, axis=1)[left].tolist()
            ]
            few_sums.append(part[:3, left])
            sums.append(part[:, kept])
            if not kept.size:
                continue
            table = np.bincount(block * size + code, null, blocks * size)
            draws = normal @ (table.reshape(blocks, size)[:, kept] / np.sqrt(part[3][kept]))
            draws /= draws.std(axis=0)  # the blocks give correlations; the variances are known
            np.maximum(largest, np.abs(draws).max(axis=1), out=largest)
            cells = np.stack(cell, axis=1)[kept].tolist()
            keys += [tuple(zip(columns, one, strict=True)) for one in cells]
        n, predicted, events, variance, skewed, squares = np.concatenate(sums, axis=1)
        gap = (events - predicted) / n
        observed = squares - n * gap**2
        score = binomial_score(events, n, predicted, variance, skewed / variance, observed)
        return cls(
            keys,
            n,
            predicted,
            events,
            observed,
            variance,
            gap,
            score,
            np.sort(largest),
            few,
            np.concatenate(few_sums, axis=1),
        )

    def surprises(self, level: float) -> list[tuple[Key, float, float, float, float]]:
        """Groups without a score and with a p-value of at most `level`: key, n, expected and observed events.

        A number of unlike trials is beyond its mean by one or more at most as often as that of alike ones
        (Hoeffding 1956).
        """
        n, expected, observed = self.few_sums
        mean = expected / n
        above = np.where(observed >= expected + 1, binom.sf(np.floor(observed) - 1, n, mean), 1.0)
        below = np.where(observed <= expected - 1, binom.cdf(np.ceil(observed), n, mean), 1.0)
        p_values = np.minimum(2.0 * np.minimum(above, below) * n.size, 1.0)
        order = np.lexsort((-np.abs(observed - expected), p_values)).tolist()
        numbers = np.stack([n, expected, observed, p_values], axis=1).tolist()
        return [(self.few[k], *numbers[k]) for k in order if p_values[k] <= level]

    @property
    def spread(self) -> Floats:
        """Standard deviation of the sum of each group's residuals, under calibration or observed."""
        return np.sqrt(np.maximum(self.variance, self.observed))

    def p_values(self, score: Floats) -> Floats:
        """Single-step max-T p-values; beyond all draws, Bonferroni's bound."""
        beyond = DRAWS - np.searchsorted(self.largest, np.abs(score) - 1e-12)
        bound = np.minimum(2.0 * norm.sf(np.abs(score)) * len(self.keys), 1.0 / (DRAWS + 1))
        return np.where(beyond > 0, (1 + beyond) / (DRAWS + 1), bound)

    def critical(self, level: float) -> float:
        """Score beyond which the p-value is at most `level`."""
        number = int(level * (DRAWS + 1) + 1e-9)
        if number:
            return float(self.largest[-number])
        return max(float(self.largest[-1]), float(norm.isf(0.5 * level / max(len(self.keys), 1))))

    def listed(self, p_values: Floats, level: float, most: int) -> list[int]:
        """Groups to report: a pair only for what it adds to its cells."""
        place = {key: k for k, key in enumerate(self.keys)}
        listed: list[int] = []
        for k in np.lexsort((-np.abs(self.score), p_values)).tolist():
            shown = p_values[k] <= level
            key = self.keys[k]
            parents = [place[(one,)] for one in key if len(key) > 1 and (one,) in place]
            explained = [self.gap[one] for one in parents if p_values[one] <= level]
            if explained:
                left = (self.gap[k] - max(explained, key=abs)) * self.n[k]
                if self.p_values(left / self.spread[k]) > level:
                    continue
            elif parents and not shown:
                continue
            if not shown and len(listed) >= most:
                break
            listed.append(k)
        return listed
