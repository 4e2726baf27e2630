"""Checks on a table of sums that comes from outside: a file, a query, another program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.data.cell_sums import LARGEST_SUM, bits_of_offsets
from calibrant.data.rows import LEFT_OUT
from calibrant.errors import InputError, Where

__all__ = ["checked_dropped", "checked_long_table", "wrong_type"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def checked_long_table(
    *,
    nodes: int,
    cells: Any,
    labels: Any,
    counts: Any,
    offsets: Any,
    weights: Any = None,
    squared_weights: Any = None,
    weighted_offsets: Any = None,
) -> tuple[NDArray[Any], ...]:
    """The columns as int64 and float64, or an InputError that names the column and the row."""
    integers = {
        "cell": _integers(cells, "cell"),
        "label": _integers(labels, "label"),
        "count": _integers(counts, "count"),
        "offset": _integers(offsets, "offset"),
    }
    given = {
        "weight": weights,
        "squared_weight": squared_weights,
        "weighted_offset": weighted_offsets,
    }
    missing = [name for name, values in given.items() if values is None]
    if 0 < len(missing) < len(given):
        raise InputError(
            "a weighted table needs the columns {columns}",
            columns=", ".join(given),
            where=Where(column=missing[0]),
            saying="{where} is missing",
        )
    floats = {name: _floats(values, name) for name, values in given.items() if values is not None}
    columns: dict[str, NDArray[Any]] = {**integers, **floats}
    lengths = {name: values.size for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("the columns must have equal lengths", seen=lengths)
    _check_integers(nodes, **integers)
    if floats:
        _check_weights(nodes, cell=integers["cell"], **floats)
    return tuple(columns.values())


def checked_dropped(dropped: Mapping[str, int] | None) -> Mapping[str, int]:
    """Rows left out by reason, or an InputError: a file has a place for these reasons alone."""
    for reason, count in (dropped or {}).items():
        if reason not in LEFT_OUT:
            raise InputError(
                "must count rows under the reasons {reasons}",
                argument="dropped",
                seen=reason,
                reasons=", ".join(map(repr, LEFT_OUT)),
            )
        if not isinstance(count, int | np.integer) or count < 0:
            raise InputError(
                "must hold whole numbers that are not negative",
                argument="dropped",
                seen=count,
                saying="{reason} has {}",
                reason=reason,
            )
    return dropped or {}


def _check_integers(
    nodes: int, cell: Integers, label: Integers, count: Integers, offset: Integers
) -> None:
    _refuse("cell", cell, (cell < 0) | (cell > nodes), f"a cell must lie between 0 and {nodes}")
    _refuse("label", label, (label != 0) & (label != 1), "a label must be 0 or 1")
    _refuse("count", count, count < 0, "a count must not be negative")
    total = count.sum(dtype=np.float64)
    if total >= 2.0**63:
        raise InputError(
            "counts must add up to fewer than 2**63 rows", seen=total, where=Where(column="count")
        )
    least = -(-offset // ((1 << bits_of_offsets(nodes)) - 1))  # rows that it takes to come so far
    # Rows with p = 1 have a cell of their own, in which the only offset is 0.
    outside = (offset < 0) | (least > count) | ((cell == nodes) & (offset > 0))
    _refuse("offset", offset, outside, "an offset must fit into its cell")


def _check_weights(
    nodes: int, cell: Integers, weight: Floats, squared_weight: Floats, weighted_offset: Floats
) -> None:
    widest = np.where(cell == nodes, 0.0, 2.0 ** bits_of_offsets(nodes))
    # Sums of floats are rounded, so a mean offset may come out a little wider than the cell.
    broken = weighted_offset > 1.000001 * weight * widest
    _refuse("weighted_offset", weighted_offset, broken, "an offset must fit into its cell")
    alone = (squared_weight > 0) & (weight == 0)
    _refuse("squared_weight", squared_weight, alone, "a squared weight must go with a weight")


def _integers(values: Any, name: str) -> Integers:
    column = as_array(values, name)
    if column.ndim == 1 and column.size == 0:
        return np.empty(0, np.int64)
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise wrong_type(name, column, "whole numbers")
    if column.dtype.kind == "f":
        broken = ~(np.abs(column) < 2.0**53) | (column != np.round(column))
        _refuse(name, column, broken, "a column of sums of rows must hold whole numbers")
    if column.dtype == np.uint64:
        _refuse(name, column, column >= 1 << 63, "a number must fit into 64 bits with a sign")
    return column.astype(np.int64)


def _floats(values: Any, name: str) -> Floats:
    column = as_array(values, name)
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise wrong_type(name, column, "numbers")
    column = column.astype(np.float64)
    broken = ~((column >= 0) & (column <= LARGEST_SUM))
    _refuse(name, column, broken, f"a sum must lie between 0 and {LARGEST_SUM:g}")
    return column


def wrong_type(name: str, column: NDArray[Any], needed: str) -> InputError:
    """What to raise of a column whose values are of another kind."""
    return InputError(
        "a column of sums must hold {needed}",
        seen=str(column.dtype),
        where=Where(column=name),
        saying="the type of {where} is {}",
        needed=needed,
    )


def _refuse(name: str, column: NDArray[Any], broken: NDArray[np.bool_], rule: str) -> None:
    rows = np.flatnonzero(broken)
    if rows.size:
        row = int(rows[0])
        raise InputError(rule, seen=column[row].item(), where=Where(row=row, column=name))
