"""What a profile gives: a number with its interval and source, a table, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from calibrant._format import decimals, p_text
from calibrant.errors import InputError
from calibrant.measures.result_record import plain

__all__ = ["Quantity", "Table", "Unavailable"]

UNSEEN = 1e-6
"""A bound up to this changes no digit that a table shows."""


class Unavailable(InputError):
    """A quantity that the sample cannot give; the profile shows the reason in its place.

    Examples
    --------
    >>> try:
    ...     raise Unavailable("there is no event")
    ... except Unavailable as reason:
    ...     print(reason)
    there is no event...
    """


@dataclass(frozen=True)
class Quantity:
    """A number, how sure it is, and where it comes from.

    Attributes
    ----------
    name : str
        As tables show it.
    value : float
        NaN where the sample cannot give it; `note` says why.
    low, high : float
        Ends of the interval; NaN where there is none.
    p_value, standard_error : float
        NaN where there is none.
    bound : float
        How far the value of the rows can lie from this one, which comes from a sketch; 0 from rows.
    source : str
        The paper that defines it.
    note : str
        What a reader must know beside the number.

    Examples
    --------
    >>> gap = Quantity("gap", 0.03, low=0.01, high=0.05)
    >>> gap.value, gap.low, gap.high
    (0.03, 0.01, 0.05)
    """

    name: str
    value: float = nan
    low: float = nan
    high: float = nan
    p_value: float = nan
    standard_error: float = nan
    bound: float = 0.0
    source: str = ""
    note: str = ""

    def cells(self) -> list[str]:
        """Name, value, interval and p-value, as a table shows them."""
        value = decimals(self.value)
        if self.bound > UNSEEN and not isnan(self.value):
            value += f" ± {self.bound:.1g}"
        unknown = isnan(self.low) and isnan(self.high)
        interval = "" if unknown else f"{decimals(self.low)} to {decimals(self.high)}"
        return [self.name, value, interval, "" if isnan(self.p_value) else p_text(self.p_value)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities as "inf" and "-inf", since they are findings here."""
        return {name: _number(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Table:
    """Several numbers for each of several rows, such as grades.

    Attributes
    ----------
    name : str
        As a heading.
    columns : mapping
        From the name of a column to its values, one for each row; the first column names the rows.
    source, note : str
        As for `Quantity`.

    Examples
    --------
    >>> grades = Table("Grades", {"grade": ["A", "B"], "rows": [120, 80]})
    >>> list(grades.columns)
    ['grade', 'rows']
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    source: str = ""
    note: str = ""

    def cells(self) -> list[list[str]]:
        """Header and rows, as they are shown."""
        values = zip(*self.columns.values(), strict=True)
        return [list(self.columns), *([_shown(value) for value in row] for row in values)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the rows as a list of mappings."""
        values = zip(*self.columns.values(), strict=True)
        rows = [dict(zip(self.columns, map(_number, row), strict=True)) for row in values]
        return {"name": self.name, "rows": rows, "source": self.source, "note": self.note}


def _number(value: Any) -> Any:
    if isinstance(value, float | np.floating) and np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return plain(value)


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return decimals(float(value))
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)
