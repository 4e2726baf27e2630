"""Groups of rows that forecast the same cases, lined up by what names a case (`--by model --on id`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.output import count, note, quoted, shown
from calibrant.errors import InputError
from calibrant.io.group_keys import indexed, sort_key

__all__ = ["rows_of_cases"]

Rows = NDArray[np.int64]


def rows_of_cases(
    groups: Mapping[str, NDArray[Any]], by: Sequence[str], on: str, label: NDArray[Any], named: str
) -> dict[str, Rows]:
    """Of each group of `by` the rows of the cases that all groups have, in one order.

    `label` holds the outcome of each row, from a column that is `named` so; one case has one outcome.
    """
    cases = groups[on]
    places: dict[str, dict[Any, int]] = {}
    for name, members in _members([groups[name] for name in by]):
        places[name] = dict(zip(cases[members].tolist(), members.tolist(), strict=True))
        if len(places[name]) < members.size:
            raise InputError(
                "column {on} must name each case of {group} once",
                seen=members.size - len(places[name]),
                saying="{} are repeated",
                on=quoted(on),
                group=name,
                cure="Name the column that identifies a case, or leave out the repeats.",
            )
    common = set.intersection(*(set(of_group) for of_group in places.values()))
    most = max(map(len, places.values()))
    if not common:
        raise InputError(
            "must name a column whose values the groups share; no value is in all",
            argument="on",
            seen=on,
            cure="Name the column that identifies a case.",
        )
    if len(common) < most:
        note(f"Comparing on the {count(len(common), 'case')} that all have, of {most:,}.")
    shared = [case for case in next(iter(places.values())) if case in common]
    rows = {name: np.array([of[case] for case in shared]) for name, of in places.items()}
    _require_one_outcome(rows, label, named, on)
    return rows


def _require_one_outcome(
    rows: Mapping[str, Rows], label: NDArray[Any], named: str, on: str
) -> None:
    first = next(iter(rows.values()))
    for name, own in rows.items():
        if not np.array_equal(label[own], label[first], equal_nan=label.dtype.kind == "f"):
            raise InputError(
                "one case has one outcome; {group} and the first group differ in column {label}",
                group=name,
                label=quoted(named),
                cure="Is {on} what names a case?",
                on=quoted(on),
            )


def _members(columns: Sequence[NDArray[Any]]) -> list[tuple[str, Rows]]:
    """The name of each group, in their order, and its rows."""
    place, keys = indexed(zip(*(column.tolist() for column in columns), strict=True))
    order = sorted(range(len(keys)), key=lambda k: sort_key(keys[k]))
    return [
        (", ".join(shown(value) for value in keys[k]), np.flatnonzero(place == k)) for k in order
    ]
