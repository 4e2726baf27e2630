"""Files opened for the command line: which columns they have, and their rows as arrays."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.data.arrays import as_array
from calibrant.errors import InputError
from calibrant.read.csv_lines import without_empty
from calibrant.read.csv_rows import rows_of
from calibrant.read.find_files import DataFile, reader_of
from calibrant.read.formats import ARROW_MAGIC

__all__ = ["columns_of", "joined", "read_each", "read_rows", "read_table"]

PEEK_BYTES = 1 << 20
PEEK_LINES = 200
CALLER = "the calibrant command"


def columns_of(file: DataFile) -> list[str]:
    """Names of the columns, partitions in the path included."""
    try:
        names = _names(file)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{file.path} is not a {file.format} file that can be read: {error}"
        ) from error
    return [*names, *(name for name in file.partitions if name not in names)]


def read_rows(
    files: Sequence[DataFile], wanted: Sequence[str], *, numbers: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The wanted columns of all files, one after the other; `numbers` are read as float64."""
    return joined(read_each(files, wanted, numbers=numbers))


def read_each(
    files: Sequence[DataFile],
    wanted: Sequence[str],
    *,
    numbers: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> list[dict[str, NDArray[Any]]]:
    """The wanted columns of each file; `groups` are objects, the values by which a scan groups."""
    names = list(dict.fromkeys(wanted))
    parts = [_read(file, names, set(numbers), set(groups)) for file in files]
    for name in groups if files[0].format == "csv" else ():
        values = {value for part in parts for value in part[name].tolist()}
        if all(value is None or isinstance(value, str) for value in values):
            read = reader_of(values)
            for part in parts:
                part[name] = _objects([read(value) for value in part[name].tolist()])
    return parts


def joined(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The rows of all files, one after the other."""
    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def read_table(files: Sequence[DataFile]) -> Any:
    """All columns of all files, as an Arrow table."""
    pyarrow = require("pyarrow", caller=CALLER)
    tables = [_opened(file, _stored_names(file)) for file in files]
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive")
    except ValueError as error:
        raise InputError(f"the files must have the same columns: {error}") from error


def _stored_names(file: DataFile) -> list[str]:
    return [name for name in columns_of(file) if name not in file.partitions]


def _names(file: DataFile) -> list[str]:
    if file.format == "parquet":
        parquet = require("pyarrow.parquet", caller=CALLER)
        return list(parquet.read_schema(file.open()).names)
    if file.format == "arrow":
        return list(_arrow_reader(file).schema.names)
    with file.stream() as stream:
        start = stream.read(PEEK_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(
            f"{file.path} must be written in UTF-8; it is in UTF-16. Save it again as UTF-8, or convert "
            "it with `iconv -f UTF-16 -t UTF-8`."
        )
    head = start.decode("utf-8-sig", errors="replace")
    if not head.strip():
        raise InputError(f"{file.path} must not be empty; it has no lines.")
    if file.format == "csv":
        names, _ = next(rows_of(head, file.delimiter))
        if len(names) == 1 and set(names[0]) & {";", "\t", "|"}:
            raise InputError(
                f"{file.path} must separate its columns by commas (by tabs, if it ends in .tsv); its "
                f"first line is {names[0][:60]!r}. Save it again with commas."
            )
        return names
    return list(dict.fromkeys(name for row in _peeked(file, head) for name in row))


def _arrow_reader(file: DataFile) -> Any:
    """Of an Arrow file, or of a stream, which has no table of contents."""
    ipc = require("pyarrow.ipc", caller=CALLER)
    with file.open() as handle:
        is_file = handle.read(len(ARROW_MAGIC)) == ARROW_MAGIC
    return ipc.open_file(file.open()) if is_file else ipc.open_stream(file.stream())


def _peeked(file: DataFile, head: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(head.splitlines()[:PEEK_LINES], start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if rows:
                break  # the last line of the piece that was read; the rows before it are enough
            raise InputError(f"{file.path}, line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"{file.path}, line {number} must be an object; it is {line[:60]!r}.")
        rows.append(row)
    return rows


def _read(
    file: DataFile, names: list[str], numbers: set[str], groups: set[str]
) -> dict[str, NDArray[Any]]:
    stored = [name for name in names if name not in file.partitions]
    try:
        table = _table(file, stored, numbers, groups)
        rows = {
            name: _objects(table[name].to_pylist())
            if name in groups
            else as_array(table[name], name)
            for name in stored
        }
        count = table.num_rows
    except (OSError, ValueError, KeyError) as error:
        rows = _read_slowly(file, stored, numbers, groups, error)
        count = len(next(iter(rows.values())))
    for name in names:
        if name in file.partitions:
            rows[name] = np.full(count, file.partitions[name], dtype=object)
    return rows


def _objects(values: list[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _read_slowly(
    file: DataFile, names: list[str], numbers: set[str], groups: set[str], error: Exception
) -> dict[str, NDArray[Any]]:
    """Columns in which text stands among numbers, read by Python; the text is left as it is."""
    if file.format not in ("csv", "jsonl") or not numbers:
        raise InputError(f"{file.path} cannot be read: {error}") from error
    columns: dict[str, list[Any]] = {name: [] for name in names}
    with file.stream() as stream:
        text = stream.read().decode("utf-8-sig", errors="replace")
    for row in _read_by_python(file, text):
        for name in names:
            value = row.get(name)
            if name not in groups:
                value = _number_or_text(value)
            elif value == "" and file.format == "csv":
                value = None
            columns[name].append(value)
    for name, values in columns.items():
        if name not in numbers | groups and any(isinstance(value, str) for value in values):
            columns[name] = [None if value is None else str(value) for value in values]
    return {
        name: _objects(values) if name in groups else as_array(values, name)
        for name, values in columns.items()
    }


def _read_by_python(file: DataFile, text: str) -> Iterator[Mapping[str, Any]]:
    if file.format == "jsonl":
        yield from (json.loads(line) for line in text.split("\n") if line.strip())
        return
    rows = (row for row, _ in rows_of(text, file.delimiter) if row)
    header = next(rows)
    for row in rows:
        yield dict(zip(header, row, strict=False))


def _number_or_text(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return float(value) if value.strip() else None
        except ValueError:
            return value
    return value


def _opened(file: DataFile, names: list[str]) -> Any:
    try:
        return _table(file, names, set(), set())
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{file.path} cannot be read: {error}") from error


def _table(file: DataFile, names: list[str], numbers: set[str], groups: set[str]) -> Any:
    if file.format == "parquet":
        return require("pyarrow.parquet", caller=CALLER).read_table(file.open(), columns=names)
    pyarrow = require("pyarrow", caller=CALLER)
    if file.format == "arrow":
        return _arrow_reader(file).read_all().select(names)
    kinds = {name: pyarrow.float64() for name in names if name in numbers}
    if file.format == "csv":
        return _csv_table(file, names, kinds | dict.fromkeys(groups, pyarrow.string()), groups)
    table = _json_table(file, kinds)
    dates = [n for n in groups if pyarrow.types.is_timestamp(table.schema.field(n).type)]
    if dates:  # JSON has none: this is text that reads like them
        table = _json_table(file, kinds | dict.fromkeys(dates, pyarrow.string()))
    return table.select(names)


def _csv_table(file: DataFile, names: list[str], kinds: dict[str, Any], groups: set[str]) -> Any:
    """The columns, in which words such as NA are missing values, but as groups are words."""
    reader = require("pyarrow.csv", caller=CALLER)
    compute = require("pyarrow.compute", caller=CALLER)
    options = reader.ConvertOptions(include_columns=names, column_types=kinds)
    with file.stream() as stream:
        table = reader.read_csv(
            stream,
            parse_options=reader.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            convert_options=options,
        )
    pyarrow = require("pyarrow", caller=CALLER)
    for place, name in enumerate(table.column_names):
        column = table[name]
        if name in groups:
            table = table.set_column(place, name, without_empty(column))
        elif pyarrow.types.is_string(column.type):
            missing = compute.is_in(column, value_set=pyarrow.array(options.null_values))
            nulls = pyarrow.nulls(len(column), column.type)
            table = table.set_column(place, name, compute.if_else(missing, nulls, column))
    return table


def _json_table(file: DataFile, kinds: dict[str, Any]) -> Any:
    reader = require("pyarrow.json", caller=CALLER)
    schema = require("pyarrow", caller=CALLER).schema(list(kinds.items())) if kinds else None
    with file.stream() as stream:
        return reader.read_json(stream, parse_options=reader.ParseOptions(explicit_schema=schema))


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    if len(pieces) == 1:
        return pieces[0]
    if len({piece.dtype.kind in "biuf" for piece in pieces}) > 1:
        pieces = [piece.astype(object) for piece in pieces]
    return np.concatenate(pieces)
