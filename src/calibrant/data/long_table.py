"""The long table of a sketch: a row for each (group, cell, label) with its sums, on any engine.

    <group columns>, cell, label, count, offset [, weight, squared_weight, weighted_offset]

Rows that were left out are counted under negative cells: -1 for the first of
`calibrant.data.rows.LEFT_OUT`, -2 for the second, and so on, with label and offset 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.data.cell_checks import checked_long_table, wrong_type
from calibrant.data.cell_sums import Columns, bits_of_offsets, require_nodes
from calibrant.data.named_scales import as_scale
from calibrant.data.rows import LEFT_OUT
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option, Where

__all__ = ["FLOAT_COLUMNS", "INTEGER_COLUMNS", "Table", "from_table", "plain_values", "to_table"]

INTEGER_COLUMNS = ("cell", "label", "count", "offset")
FLOAT_COLUMNS = ("weight", "squared_weight", "weighted_offset")

Table = Mapping[str, Any]
_NAN = float("nan")
"""One NaN for all: a mapping takes two of them for different keys."""


def to_table(sketch: Sketch | Sketches) -> dict[str, NDArray[Any] | list[Any]]:
    """The long table as columns: group by group, as they come, each sorted by cell and label."""
    groups = sketch if isinstance(sketch, Sketches) else Sketches({(): sketch}, by=())
    _require_group_names(groups.by)
    weighted = any(part.weighted for part in groups.values())
    names = INTEGER_COLUMNS + (FLOAT_COLUMNS if weighted else ())
    parts = [_long_columns(part, names) for part in groups.values()]
    lengths = [part["cell"].size for part in parts]
    table: dict[str, NDArray[Any] | list[Any]] = {}
    for place, name in enumerate(groups.by):
        values = [key[place] if len(groups.by) > 1 else key for key in groups]
        if any(isinstance(value, tuple) for value in values):
            raise InputError(
                "a group in a file must be a plain value",
                seen=next(value for value in values if isinstance(value, tuple)),
                where=Where(column=name),
                cure="Name the columns of its parts in {by}.",
                by=Option("by", ...),
            )
        table[name] = [v for v, k in zip(values, lengths, strict=True) for _ in range(k)]
    for name in names:
        dtype = np.int64 if name in INTEGER_COLUMNS else np.float64
        table[name] = np.concatenate([np.empty(0, dtype), *(part[name] for part in parts)])
    return table


def from_table(
    table: Table, *, by: Iterable[str] = (), nodes: int, scale: str | Scale = "probability"
) -> Sketch | Sketches:
    """Sketches out of a long table, as `to_table` or a group-by on any engine gives it.

    Parameters
    ----------
    table : mapping of str to sequence
        The columns; repeated rows are summed.
    by : iterable of str
        Names of the group columns; none gives one Sketch.
    nodes : int
        Nodes of the grid on which the cells were counted.
    scale : str or Scale
        Of that grid.
    """
    by = tuple(by)
    _require_group_names(by)
    names = INTEGER_COLUMNS + (
        FLOAT_COLUMNS if any(name in table for name in FLOAT_COLUMNS) else ()
    )
    missing = [name for name in (*by, *names) if name not in table]
    if missing:
        raise InputError(
            "the table must have the columns {columns}",
            columns=", ".join((*by, *names)),
            where=Where(column=missing[0]),
            saying="{where} is missing",
        )
    dropped_rows, sums = _checked(table, names, require_nodes(nodes))
    resolved = as_scale(scale)

    def build(rows: NDArray[np.int64]) -> Sketch:
        kept = rows[~dropped_rows[rows]]
        gone = rows[dropped_rows[rows]]
        dropped: dict[str, int] = {}
        for cell, count in zip(sums[0][gone], sums[2][gone], strict=True):
            reason = LEFT_OUT[-1 - int(cell)]
            dropped[reason] = dropped.get(reason, 0) + int(count)
        parts = (values[kept] for values in sums)
        columns = (
            Columns.from_long(*parts, offset_bits=bits_of_offsets(nodes))
            if kept.size
            else Columns.empty()
        )
        return Sketch(columns, nodes=nodes, scale=resolved, dropped=dropped)

    everything = np.arange(sums[0].size)
    if not by:
        return build(everything)
    members: dict[Any, list[int]] = {}
    columns = [list(plain_values(table[name])) for name in by]
    if any(len(column) != everything.size for column in columns):
        raise InputError(
            "the columns of groups must be as long as the others",
            seen={name: len(column) for name, column in zip(by, columns, strict=True)},
            saying="they have {}, the others {rows} rows",
            rows=everything.size,
        )
    for row, values in enumerate(zip(*columns, strict=True)):
        key = tuple(_NAN if value != value else value for value in values)
        try:
            members.setdefault(key if len(by) > 1 else key[0], []).append(row)
        except TypeError as error:
            raise InputError(
                "a group must be a plain value", seen=key, where=Where(row=row)
            ) from error
    return Sketches({key: build(np.asarray(rows)) for key, rows in members.items()}, by=by)


def _require_group_names(by: tuple[str, ...]) -> None:
    for place, name in enumerate(by):
        if name in (*INTEGER_COLUMNS, *FLOAT_COLUMNS, *by[:place]):
            raise InputError(
                "a column of groups must have a name of its own, which no other column of the table has",
                seen=name,
                cure="Rename it first.",
            )


def _checked(
    table: Table, names: tuple[str, ...], nodes: int
) -> tuple[NDArray[np.bool_], tuple[NDArray[Any], ...]]:
    """The columns, checked; negative cells apart, since they are reasons and not places."""
    plural = {"cell": "cells", "label": "labels", "count": "counts", "offset": "offsets"}
    plural |= {"weight": "weights", "squared_weight": "squared_weights"}
    plural |= {"weighted_offset": "weighted_offsets"}
    columns = {plural[name]: as_array(table[name], name) for name in names}
    cells = columns["cells"]
    if cells.ndim != 1 or cells.dtype.kind not in "iuf":
        if cells.size:
            raise wrong_type("cell", cells, "whole numbers")
        cells = columns["cells"] = np.empty(0, np.int64)
    dropped = np.asarray((cells < 0) & (cells >= -len(LEFT_OUT)))
    columns["cells"] = np.where(dropped, 0, cells)
    sums = checked_long_table(nodes=nodes, **columns)
    sums[0][dropped] = cells[dropped]
    return dropped, sums


def _long_columns(sketch: Sketch, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    codes = sorted((LEFT_OUT.index(reason), count) for reason, count in sketch.dropped.items())
    used = sketch.counts.ravel() > 0
    values: dict[str, NDArray[Any]] = {"cell": np.repeat(sketch.cells, 2)}
    values["label"] = np.tile(np.array([0, 1]), sketch.cells.size)
    values["count"], values["offset"] = sketch.counts.ravel(), sketch.offsets.ravel()
    if "weight" in names:
        values["weight"] = sketch.weights.ravel()
        values["squared_weight"] = sketch.squared_weights.ravel()
        values["weighted_offset"] = sketch.weighted_offsets.ravel()
        used = used | (values["weight"] > 0)  # a soft row weighs under both labels
    before = {"cell": [-1 - code for code, _ in codes], "count": [count for _, count in codes]}
    return {
        name: np.concatenate(
            [np.asarray(before.get(name, [0] * len(codes)), column.dtype), column[used]]
        )
        for name, column in values.items()
    }


def plain_values(values: Any) -> list[Any]:
    """A column as Python's own values."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in plain]
