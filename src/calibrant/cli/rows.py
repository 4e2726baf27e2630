"""Files opened for the command line: which columns they have, and their rows as arrays."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.inputs.columns import as_array
from calibrant.sources.csv_rows import rows_of
from calibrant.sources.formats import ARROW_MAGIC
from calibrant.sources.store import DataFile

__all__ = ["columns_of", "read_rows", "read_table"]

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
    names = list(dict.fromkeys(wanted))
    parts = [_read(file, names, set(numbers)) for file in files]
    return {name: _joined([part[name] for part in parts]) for name in names}


def read_table(files: Sequence[DataFile]) -> Any:
    """All columns of all files, as an Arrow table."""
    pyarrow = require("pyarrow", caller=CALLER)
    tables = [_opened(file, _stored_names(file), set()) for file in files]
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


def _read(file: DataFile, names: list[str], numbers: set[str]) -> Mapping[str, NDArray[Any]]:
    stored = [name for name in names if name not in file.partitions]
    try:
        table = _table(file, stored, numbers)
        rows = {name: as_array(table[name], name) for name in stored}
        count = table.num_rows
    except (OSError, ValueError, KeyError) as error:
        rows = _read_slowly(file, stored, numbers, error)
        count = len(next(iter(rows.values())))
    for name in names:
        if name in file.partitions:
            rows[name] = np.full(count, file.partitions[name], dtype=object)
    return rows


def _read_slowly(
    file: DataFile, names: list[str], numbers: set[str], error: Exception
) -> dict[str, NDArray[Any]]:
    """Columns in which text stands among numbers, read by Python; the text is left as it is."""
    if file.format not in ("csv", "jsonl") or not numbers:
        raise InputError(f"{file.path} cannot be read: {error}") from error
    columns: dict[str, list[Any]] = {name: [] for name in names}
    with file.stream() as stream:
        text = stream.read().decode("utf-8-sig", errors="replace")
    for row in _read_by_python(file, text):
        for name in names:
            columns[name].append(_number_or_text(row.get(name)))
    for name, values in columns.items():
        if name not in numbers and any(isinstance(value, str) for value in values):
            columns[name] = [None if value is None else str(value) for value in values]
    return {name: as_array(values, name) for name, values in columns.items()}


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


def _opened(file: DataFile, names: list[str], numbers: set[str]) -> Any:
    try:
        return _table(file, names, numbers)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{file.path} cannot be read: {error}") from error


def _table(file: DataFile, names: list[str], numbers: set[str]) -> Any:
    if file.format == "parquet":
        return require("pyarrow.parquet", caller=CALLER).read_table(file.open(), columns=names)
    pyarrow = require("pyarrow", caller=CALLER)
    if file.format == "arrow":
        return _arrow_reader(file).read_all().select(names)
    kinds = {name: pyarrow.float64() for name in names if name in numbers}
    if file.format == "csv":
        reader = require("pyarrow.csv", caller=CALLER)
        with file.stream() as stream:
            return reader.read_csv(
                stream,
                parse_options=reader.ParseOptions(
                    delimiter=file.delimiter, newlines_in_values=True
                ),
                convert_options=reader.ConvertOptions(
                    include_columns=names, column_types=kinds, strings_can_be_null=True
                ),
            )
    reader = require("pyarrow.json", caller=CALLER)
    with file.stream() as stream:
        table = reader.read_json(
            stream,
            parse_options=reader.ParseOptions(
                explicit_schema=pyarrow.schema(list(kinds.items())) if kinds else None
            ),
        )
    return table.select(names)


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    if len(pieces) == 1:
        return pieces[0]
    if len({piece.dtype.kind in "biuf" for piece in pieces}) > 1:
        pieces = [piece.astype(object) for piece in pieces]
    return np.concatenate(pieces)
