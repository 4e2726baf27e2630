"""Sketches as files: one long table that any engine can write, in Parquet or JSON.

The table is that of `calibrant.data.sketches`. A header names format, version, scale, number of nodes
and group columns, and holds a checksum of header and table. In Parquet it stands in the metadata under
"calibrant"; whoever writes such a file by other means, from SQL for instance, says `"checksum": null`.
Files of every past version stay readable.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import date, time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._files import (
    damaged,
    decoding,
    dump_versioned,
    json_of,
    load_versioned,
    read_bytes,
    remove_file,
    require_path,
    require_version,
    write_whole,
)
from calibrant._optional import require
from calibrant.data.cell_sums import require_nodes
from calibrant.data.scales import as_scale, name_for_file
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import (
    FLOAT_COLUMNS,
    INTEGER_COLUMNS,
    Sketches,
    Table,
    from_table,
    is_summed,
    plain_values,
    to_table,
)
from calibrant.errors import InputError, MergeError, show_value

FORMAT = "calibrant.sketch"
VERSION = 2
UNSIGNED = 1
"""The last version whose files need not have a checksum."""
WHAT = "a sketch"


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
    target = require_path(path)
    if not is_summed(sketch):
        message = f"`sketch` must be a Sketch or Sketches; it is a {type(sketch).__name__}."
        raise InputError(message)
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
        Path of a `.parquet` or `.json` file.

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
    source = require_path(path)
    if source.suffix not in (".json", ".parquet"):
        raise _unknown_suffix(source)
    content = read_bytes(source, WHAT)
    try:
        return _from_parquet(content) if source.suffix == ".parquet" else from_json(content)
    except (InputError, MergeError) as error:
        raise error.at(file=str(source)) from error.__cause__


def to_json(sketch: Sketch | Sketches) -> str:
    """The table as JSON text; floats keep every bit."""
    columns = {name: plain_values(values) for name, values in to_table(sketch).items()}
    try:
        return dump_versioned(FORMAT, VERSION, {**_header(sketch), "columns": columns})
    except TypeError as error:
        message = f"A group in JSON must be text, a number or None: {error}."
        raise InputError(message, hint="Save to a .parquet file.") from error


def from_json(text: str | bytes) -> Sketch | Sketches:
    """Read what `to_json` wrote."""
    content = load_versioned(text, FORMAT, VERSION, WHAT, oldest=1, unsigned=UNSIGNED)
    columns = content.get("columns")
    if not isinstance(columns, dict) or not all(isinstance(c, list) for c in columns.values()):
        raise InputError('the JSON of a sketch must be an object with lists under "columns"')
    return _from_header(content, columns)


def _header(sketch: Sketch | Sketches) -> dict[str, Any]:
    sample = next(iter(sketch.groups.values()), Sketch.empty())
    cure = "Save the sketch of the same rows on another scale."
    return {
        "scale": name_for_file(sample.scale, "a sketch", cure),
        "nodes": sample.nodes,
        "by": list(sketch.by),
    }


def _from_header(header: Mapping[str, Any], columns: Table) -> Sketch | Sketches:
    by, nodes, scale = header.get("by"), header.get("nodes"), header.get("scale")
    if not isinstance(by, list) or not all(isinstance(name, str) for name in by):
        raise InputError(f'The "by" of a sketch must be a list of names; got {show_value(by)}.')
    if not isinstance(scale, str):
        raise InputError(f'The "scale" of a sketch must be a name; got {show_value(scale)}.')
    if not as_scale(scale).has_grid:
        raise InputError(f"A sketch must be on a scale that has a grid; got {show_value(scale)}.")
    return from_table(columns, by=by, nodes=require_nodes(nodes), scale=scale)  # type: ignore[arg-type]


def _to_parquet(sketch: Sketch | Sketches) -> bytes:
    pyarrow = require("pyarrow", caller="calibrant.save")
    parquet = require("pyarrow.parquet", caller="calibrant.save")
    columns = to_table(sketch)
    columns["label"] = np.asarray(columns["label"], np.int8)
    try:
        table = pyarrow.table(dict(columns))
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
        message = f"The groups of a column in Parquet must be of one type: {error}."
        raise InputError(message) from error
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
        header = None if metadata is None else json_of(metadata)
    if header is None:
        message = 'A sketch in Parquet must have a header, "calibrant" in its metadata.'
        hint = "A table from a query loads with `calibrant.data.sketches.from_table`."
        raise InputError(message, hint=hint)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f'The header of a sketch must say "format": "{FORMAT}".')
    version = require_version(header.get("version"), VERSION, WHAT, oldest=1)
    stated = header.pop("checksum", "missing" if version > UNSIGNED else None)
    if stated is not None and stated != _table_checksum(header, columns):
        raise damaged(WHAT)
    return _from_header(header, columns)


def _columns_of(table: Any) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in table.column_names}


def _table_checksum(header: Mapping[str, Any], columns: Mapping[str, list[Any]]) -> str:
    """Checksum of the values alone, which no engine changes: not of how a file holds them."""
    digest = hashlib.sha256(json.dumps(header, separators=(",", ":")).encode())
    for name, values in columns.items():
        digest.update(f"\n{name!a} {len(values)}\n".encode())
        if name in INTEGER_COLUMNS or name in FLOAT_COLUMNS:
            kind = "<i8" if name in INTEGER_COLUMNS else "<f8"
            try:
                digest.update(np.array(values, dtype=kind).tobytes())
            except (TypeError, ValueError, OverflowError) as error:  # such as a null
                message = f"The column {name!r} of sums must hold numbers: {error}."
                raise InputError(message) from error
        else:
            digest.update("\n".join(map(_spelled, values)).encode())
    return digest.hexdigest()


def _spelled(value: Any) -> str:
    """A group in ASCII, the same for the same value in every version of Python and Arrow."""
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{type(value).__name__} {value!a}"


def _unknown_suffix(path: Path) -> InputError:
    message = f"A file of sketches must end in .parquet or .json; got {show_value(path.name)}."
    return InputError(message, argument="path")
