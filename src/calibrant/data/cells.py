"""Columns of a table and their cells, which make groups of rows: quantile intervals or categories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import is_missing
from calibrant.errors import InputError, show_value

Codes = NDArray[np.int64]

MOST_BINS = 100
"""Intervals of a numeric column; more have no rows to speak of, and take memory in pairs."""


@dataclass(frozen=True)
class Cells:
    """Partition of a column's values.

    Attributes
    ----------
    edges : tuple of float
        Of intervals between quantiles, if the column has more numbers than intervals; else empty.
    values : tuple of str or float
        Categories with a cell of their own, numbers in order and texts by their frequency.
    other, missing : bool
        True where there is a cell of the rarer categories, and of missing values.
    """

    edges: tuple[float, ...] = ()
    values: tuple[str | float, ...] = ()
    other: bool = False
    missing: bool = False

    @classmethod
    def of(cls, column: NDArray[Any], n_bins: int, most: int) -> Cells:
        """Cells of a column of numbers or categories, of `most` of which each has one of its own."""
        values, missing = _values(column)
        gone = bool(missing.any())
        distinct, counts = np.unique(values[~missing], return_counts=True)
        if distinct.dtype.kind == "f" and distinct.size > n_bins:
            cuts = np.unique(np.quantile(values[~missing], np.linspace(0, 1, n_bins + 1)))
            if (
                cuts.size == 2 and n_bins > 1
            ):  # nearly all are the least or the largest: these, and the others
                most_are_least = counts[0] >= counts[-1]
                cuts = np.insert(cuts, 1, distinct[1] if most_are_least else distinct[-1])
            return cls(edges=tuple(cuts.tolist()), missing=gone)
        kept = np.argsort(-counts, kind="stable")[:most]
        if distinct.dtype.kind == "f":
            kept = np.sort(kept)
        return cls(values=tuple(distinct[kept].tolist()), other=distinct.size > most, missing=gone)

    @property
    def labels(self) -> list[str]:
        """The cells in words: numbers with the digits that tell them apart, and no two alike."""
        ends = pairwise(_texts(self.edges, 4))
        labels = [low if low == high else f"{low} to {high}" for low, high in ends]
        rest = ["other"] * self.other + ["missing"] * self.missing
        if self.is_numeric:
            return [*labels, *_texts(self.values, 6), *rest]
        return [*(repr(one) if one in rest else str(one) for one in self.values), *rest]

    @property
    def is_numeric(self) -> bool:
        """True for cells of numbers, False for those of texts."""
        return not any(isinstance(one, str) for one in self.values)

    def __len__(self) -> int:
        return max(len(self.edges) - 1, 0) + len(self.values) + self.other + self.missing

    def codes(self, column: NDArray[Any]) -> Codes:
        """Cell of each value; -1 where it has none."""
        values, missing = _values(column)
        if self.edges:
            code = np.searchsorted(self.edges[1:-1], values, side="right").astype(np.int64)
        else:
            place = {value: k for k, value in enumerate(self.values)}
            distinct, inverse = np.unique(values, return_inverse=True)
            rest = len(self.values) if self.other else -1
            each = [place.get(value, rest) for value in distinct.tolist()]
            code = np.array(each, dtype=np.int64)[inverse]
        return np.where(missing, len(self) - 1 if self.missing else -1, code)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {
            name: value if isinstance(value, bool) else list(value)
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Cells:
        """Inverse of `to_dict`."""
        return cls(tuple(state["edges"]), tuple(state["values"]), state["other"], state["missing"])


def require_groups(
    name: Any, cells: Cells, code: Codes, values: NDArray[Any], y: NDArray[Any], argument: str
) -> None:
    """Refuse a column that can make no groups, or that knows the outcome."""
    fault = ""
    if not (cells.edges or cells.values):
        fault = "has no values"
    elif len(cells) == 1:
        fault = "has one value alone"
    elif _determines(code, y):
        fault = "determines the outcome"
    elif cells.other and np.unique(values.astype(str)).size > 0.5 * values.size:
        fault = "has a value of its own in most rows"
    if fault:
        message = f"`{argument}`: {show_value(name)} {fault}."
        raise InputError(message, hint="Leave it out.")


def _determines(code: Codes, y: NDArray[Any]) -> bool:
    """True where the outcomes of every cell are all alike, and there are several of both kinds."""
    rows, events = np.bincount(code), np.bincount(code, y)
    alike = np.all((events == 0) | (events == rows))
    return bool(alike and (events > 1).any() and (rows - events > 1).any())


def column_sets(columns: int, depth: int) -> list[tuple[int, ...]]:
    """Places of single columns, then of pairs."""
    return [one for k in range(1, depth + 1) for one in combinations(range(columns), k)]


def crossed(
    codes: Sequence[Codes], sizes: Sequence[int], depth: int
) -> Iterator[tuple[tuple[int, ...], Codes, int]]:
    """Columns that cross, code of each row, and number of codes: of single columns, then of pairs."""
    for columns in column_sets(len(codes), depth):
        code, size = codes[columns[0]], sizes[columns[0]]
        for k in columns[1:]:
            code = np.where((code >= 0) & (codes[k] >= 0), code * sizes[k] + codes[k], -1)
            size *= sizes[k]
        yield columns, code, size


def _texts(numbers: Sequence[Any], digits: int) -> list[str]:
    """Numbers with at least this many significant digits, and as many as tell them apart."""
    while len({f"{one:.{digits}g}" for one in numbers}) < len(set(numbers)):
        digits += 1
    return [f"{one:.{digits}g}" for one in numbers]


def _values(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Numbers as floats, anything else as text; and the rows in which it is missing."""
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        return numbers, ~np.isfinite(numbers)
    missing = is_missing(column)
    return np.where(missing, "", column.astype(str)), missing
