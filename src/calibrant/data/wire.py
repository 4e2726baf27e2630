"""Sketches as files: one long table that any engine can write, in Parquet or JSON.

The table has a row for each (group, cell, label) with its sums:

    <group columns>, cell, label, count, offset [, weight, squared_weight, weighted_offset]

Rows that were left out are counted under negative cells: -1 for the first of
`calibrant.data.pairs.REASONS`, -2 for the second, and so on, with label and offset 0. A header names
format, version, scale, number of nodes and group columns, and holds a checksum of header and table. In
Parquet it stands in the metadata under "calibrant"; whoever writes such a file by other means, from SQL
for instance, says `"checksum": null`. Files of every past version stay readable.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from datetime import date, time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._files import (
    damaged,
    decoding,
    read_bytes,
    remove_file,
    require_version,
    sealed,
    unsealed,
    write_whole,
)
from calibrant._optional import require
from calibrant.data.arrays import as_array
from calibrant.data.cell_checks import checked_long_table
from calibrant.data.cell_sums import Columns, bits_of_offsets
from calibrant.data.pairs import REASONS
from calibrant.data.scales import Scale, as_scale, name_for_file
from calibrant.data.sketch import Sketch, require_nodes
from calibrant.data.sketches import Sketches
from calibrant.errors import Function, InputError, MergeError, TypeName

__all__ = ["from_json", "from_table", "load", "save", "to_json", "to_table"]

FORMAT = "calibrant.sketch"
VERSION = 2
UNSIGNED = 1
"""The last version whose files need not have a checksum."""
WHAT = "a sketch"
INTEGER_COLUMNS = ("cell", "label", "count", "offset")
FLOAT_COLUMNS = ("weight", "squared_weight", "weighted_offset")

Table = Mapping[str, Any]
_NAN = float("nan")
"""One NaN for all: a mapping takes two of them for different keys."""


def save(
    sketch: Sketch | Sketches, path: str | os.PathLike[str], *, checkpoint: Any = None
) -> Path:
    """Write a sketch, or sketches by group, to a `.parquet` or `.json` file, all or nothing.

    Parameters
    ----------
    sketch : Sketch or Sketches
        On a scale that calibrant knows by name.
    path : str or path
        Its ending chooses the format.
    checkpoint : path, optional
        Of the `scan` that made the sketch: removed when the file is on the disk, so that a power cut or
        a full disk at the very end loses nothing.

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> import tempfile, os
    >>> sketch = Sketch.from_arrays([0, 1], [0.2, 0.7])
    >>> path = save(sketch, os.path.join(tempfile.mkdtemp(), "monday.json"))
    >>> load(path) == sketch
    True
    """
    target = Path(path)
    if not isinstance(sketch, Sketch | Sketches):
        raise InputError(
            "must be a Sketch or Sketches",
            argument="sketch",
            seen=TypeName.of(sketch),
            saying="it is a {}",
        )
    if target.suffix not in (".json", ".parquet"):
        raise _unknown_suffix(target)
    write_whole(target, to_json(sketch) if target.suffix == ".json" else _to_parquet(sketch))
    if checkpoint is not None:
        remove_file(checkpoint)
    return target


def load(path: str | os.PathLike[str]) -> Sketch | Sketches:
    """Read what `save` wrote. Everything in the file is checked.

    Parameters
    ----------
    path : str or path
        Of a `.parquet` or `.json` file.

    Returns
    -------
    Sketch or Sketches
        Equal to what was saved.

    Examples
    --------
    >>> import tempfile, os
    >>> days = Sketches({"mon": Sketch.from_arrays([0, 1], [0.2, 0.7])}, by="day")
    >>> load(save(days, os.path.join(tempfile.mkdtemp(), "days.json")))
    <Sketches of 1 group by day: 'mon'>
    """
    source = Path(path)
    if source.suffix not in (".json", ".parquet"):
        raise _unknown_suffix(source)
    content = read_bytes(source, WHAT)
    try:
        return _from_parquet(content) if source.suffix == ".parquet" else from_json(content)
    except (InputError, MergeError) as error:
        raise error.at(file=str(source)) from error.__cause__


def to_json(sketch: Sketch | Sketches) -> str:
    """The table as JSON text; floats keep every bit."""
    columns = {name: _plain(values) for name, values in to_table(sketch).items()}
    try:
        return sealed(FORMAT, VERSION, {**_header(sketch), "columns": columns})
    except TypeError as error:
        raise InputError(
            f"JSON holds groups of text, numbers and None ({error}). Save to a `.parquet` file."
        ) from error


def from_json(text: str | bytes) -> Sketch | Sketches:
    """Read what `to_json` wrote."""
    content = unsealed(text, FORMAT, VERSION, WHAT, oldest=1, unsigned=UNSIGNED)
    columns = content.get("columns")
    if not isinstance(columns, dict) or not all(isinstance(c, list) for c in columns.values()):
        raise InputError('the JSON of a sketch must be an object with lists under "columns"')
    return _from_header(content, columns)


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
                f"a group must be a plain value; {name!r} has tuples. Name their columns in `by=`."
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
        Of the grid on which the cells were counted.
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
        needed = ", ".join((*by, *names))
        raise InputError(f"the table must have the columns {needed}; {missing[0]!r} is missing.")
    dropped_rows, sums = _checked(table, names, require_nodes(nodes))
    resolved = as_scale(scale)

    def build(rows: NDArray[np.int64]) -> Sketch:
        kept = rows[~dropped_rows[rows]]
        gone = rows[dropped_rows[rows]]
        dropped: dict[str, int] = {}
        for cell, count in zip(sums[0][gone], sums[2][gone], strict=True):
            reason = REASONS[-1 - int(cell)]
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
    columns = [list(_plain(table[name])) for name in by]
    if any(len(column) != everything.size for column in columns):
        raise InputError("the group columns must be as long as the others.")
    for row, values in enumerate(zip(*columns, strict=True)):
        key = tuple(_NAN if value != value else value for value in values)
        try:
            members.setdefault(key if len(by) > 1 else key[0], []).append(row)
        except TypeError as error:
            raise InputError(f"a group must be a plain value; row {row} has {key!r}.") from error
    return Sketches({key: build(np.asarray(rows)) for key, rows in members.items()}, by=by)


def _require_group_names(by: tuple[str, ...]) -> None:
    for place, name in enumerate(by):
        if name in (*INTEGER_COLUMNS, *FLOAT_COLUMNS, *by[:place]):
            raise InputError(
                f"a group column must have a name of its own; {name!r} is that of another column of "
                "the table. Rename it first."
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
            raise InputError(f"column 'cell' must hold whole numbers; its type is {cells.dtype}.")
        cells = columns["cells"] = np.empty(0, np.int64)
    dropped = np.asarray((cells < 0) & (cells >= -len(REASONS)))
    columns["cells"] = np.where(dropped, 0, cells)
    sums = checked_long_table(nodes=nodes, **columns)
    sums[0][dropped] = cells[dropped]
    return dropped, sums


def _long_columns(sketch: Sketch, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    codes = sorted((REASONS.index(reason), count) for reason, count in sketch.dropped.items())
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


def _header(sketch: Sketch | Sketches) -> dict[str, Any]:
    by = list(sketch.by) if isinstance(sketch, Sketches) else []
    sample = next(iter(sketch.values()), Sketch.empty()) if isinstance(sketch, Sketches) else sketch
    cure = "Save the sketch of the same rows on another scale."
    return {
        "scale": name_for_file(sample.scale, "a sketch", cure),
        "nodes": sample.nodes,
        "by": by,
    }


def _from_header(header: Mapping[str, Any], columns: Table) -> Sketch | Sketches:
    by, nodes, scale = header.get("by"), header.get("nodes"), header.get("scale")
    if not isinstance(by, list) or not all(isinstance(name, str) for name in by):
        raise InputError('the "by" of a sketch must be a list of names', seen=by)
    if not isinstance(scale, str):
        raise InputError('the "scale" of a sketch must be a name', seen=scale)
    if not as_scale(scale).has_grid:
        raise InputError("a sketch must be on a scale that has a grid", seen=scale)
    return from_table(columns, by=by, nodes=require_nodes(nodes), scale=scale)  # type: ignore[arg-type]


def _to_parquet(sketch: Sketch | Sketches) -> bytes:
    pyarrow = require("pyarrow", caller="calibrant.save")
    parquet = require("pyarrow.parquet", caller="calibrant.save")
    columns = to_table(sketch)
    columns["label"] = np.asarray(columns["label"], np.int8)
    try:
        table = pyarrow.table(dict(columns))
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"Parquet holds groups of one type in each column ({error}).") from error
    header = {"format": FORMAT, "version": VERSION, **_header(sketch)}
    header["checksum"] = _table_checksum(header, _columns_of(table))
    content = BytesIO()
    parquet.write_table(
        table.replace_schema_metadata({"calibrant": json.dumps(header)}),
        content,
        write_page_checksum=True,
    )
    return content.getvalue()


def _from_parquet(content: bytes) -> Sketch | Sketches:
    pyarrow = require("pyarrow", caller="calibrant.load")
    parquet = require("pyarrow.parquet", caller="calibrant.load")
    with decoding("a sketch in Parquet"):
        table = parquet.read_table(pyarrow.BufferReader(content), page_checksum_verification=True)
        table.validate(full=True)
        columns = _columns_of(table)
        metadata = (table.schema.metadata or {}).get(b"calibrant")
        header = None if metadata is None else json.loads(metadata)
    if header is None:
        raise InputError(
            'a sketch in Parquet must have a header, "calibrant" in its metadata',
            cure="A table from a query loads with {function}.",
            function=Function("from_table"),
        )
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError('the header of a sketch must say "format": {form}', form=FORMAT)
    version = require_version(header.get("version"), VERSION, WHAT, oldest=1)
    stated = header.pop("checksum", "missing" if version > UNSIGNED else None)
    if stated is not None and stated != _table_checksum(header, columns):
        raise damaged(WHAT)
    return _from_header(header, columns)


def _columns_of(table: Any) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in table.column_names}


def _table_checksum(header: Mapping[str, Any], columns: Mapping[str, list[Any]]) -> str:
    """Of the values alone, which no engine changes: not of how a file holds them."""
    digest = hashlib.sha256(json.dumps(header, separators=(",", ":")).encode())
    for name, values in columns.items():
        digest.update(f"\n{name!a} {len(values)}\n".encode())
        if name in INTEGER_COLUMNS or name in FLOAT_COLUMNS:
            kind = "<i8" if name in INTEGER_COLUMNS else "<f8"
            try:
                digest.update(np.array(values, dtype=kind).tobytes())
            except (TypeError, ValueError, OverflowError) as error:  # such as a null
                raise InputError(f"column {name!r} must hold numbers ({error}).") from error
        else:
            digest.update("\n".join(map(_spelled, values)).encode())
    return digest.hexdigest()


def _spelled(value: Any) -> str:
    """A group in ASCII, the same for the same value in every version of Python and Arrow."""
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{type(value).__name__} {value!a}"


def _plain(values: Any) -> list[Any]:
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in plain]


def _unknown_suffix(path: Path) -> InputError:
    return InputError(
        f"a sketch file ends in .parquet or .json; got {path.name!r}. Rename it, or choose one."
    )
