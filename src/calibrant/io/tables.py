"""The table of a file, as it stands there: the names of its columns, or all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import CalibrantError, InputError, Where
from calibrant.io.arrow_contents import ARROW_MAGIC, require_all_messages, require_end
from calibrant.io.checkpoint import unchanged
from calibrant.io.csv_rows import has_decimal_commas, rows_of
from calibrant.io.find_files import DataFile
from calibrant.io.json_reader import flat
from calibrant.io.parquet_contents import require_one_file
from calibrant.io.text import head_of_text, text_blocks

__all__ = ["columns_of", "read_table"]

PEEK_BYTES = 1 << 20
PEEK_LINES = 200
CALLER = "reading rows"


def columns_of(file: DataFile) -> list[str]:
    """Names of the columns of a file, partitions in the path included."""
    try:
        names = _names(file)
    except CalibrantError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise _unreadable(file, error) from error
    return [*names, *(name for name in file.partitions if name not in names)]


def _unreadable(file: DataFile, error: Exception) -> InputError:
    return InputError(
        "this is not a {format} file that can be read: {error}",
        where=Where(file=file.path),
        cure="It is damaged, or of another format: write it again, or give it the ending of its format.",
        format=file.format,
        error=str(error),
    )


def _names(file: DataFile) -> list[str]:
    if file.format == "parquet":
        parquet = require("pyarrow.parquet", caller=CALLER)
        return list(parquet.read_schema(file.open()).names)
    if file.format == "arrow":
        with _arrow_reader(file) as (reader, _):
            return list(reader.schema.names)
    head = head_of_text(file, PEEK_BYTES)
    if file.format == "csv":
        names, _ = next(rows_of(head, file.delimiter))
        return names
    rows = _peeked(file, head)
    return list(dict.fromkeys(name for row in rows for name in {**row, **flat(row)}))


@contextmanager
def _arrow_reader(file: DataFile) -> Iterator[tuple[Any, Any]]:
    """Of an Arrow file; or of a stream, which has no table of contents, and the handle behind it."""
    ipc = require("pyarrow.ipc", caller=CALLER)
    with file.open() as handle:
        if handle.read(len(ARROW_MAGIC)) == ARROW_MAGIC:
            require_all_messages(handle, handle.size())
            yield ipc.open_file(handle), None
            return
    with file.stream() as handle:
        yield ipc.open_stream(handle), handle


def _peeked(file: DataFile, head: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(head.splitlines()[:PEEK_LINES], start=1):
        if not line.strip():
            continue
        try:
            row = json_of(line)
        except (ValueError, RecursionError) as error:
            if rows:
                break  # the last line of the piece that was read; the rows before it are enough
            raise InputError(
                "each line must hold a JSON object: {error}",
                where=Where(line=number, file=file.path),
                error=str(error),
                cure="Write one object a line, or check the line.",
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                "each line must hold a JSON object",
                seen=line[:60],
                where=Where(line=number, file=file.path),
                cure="Write one object a line, or check the line.",
            )
        rows.append(row)
    return rows


def read_table(files: Sequence[DataFile]) -> Any:
    """All columns of all files, as an Arrow table; every row that they tell of, or an InputError."""
    pyarrow = require("pyarrow", caller=CALLER)
    with unchanged(files):
        tables = [_validated_table(file) for file in files]
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive")
    except ValueError as error:
        raise InputError(
            "the files must have the same columns: {error}",
            cure="Read files of other columns by themselves.",
            error=str(error),
        ) from error


def _validated_table(file: DataFile) -> Any:
    try:
        table = _table(file)
        table.validate(full=True)
    except CalibrantError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise _unreadable(file, error) from error
    return table


def _table(file: DataFile) -> Any:
    if file.format == "parquet":
        parquet = require("pyarrow.parquet", caller=CALLER)
        table = parquet.read_table(file.open(), page_checksum_verification=True)
        with file.open() as handle:
            metadata = parquet.read_metadata(handle)
            require_one_file(handle, handle.size())
        if table.num_rows != metadata.num_rows:
            raise ValueError(f"it tells of {metadata.num_rows} rows and holds {table.num_rows}")
        return table
    if file.format == "arrow":
        with _arrow_reader(file) as (reader, stream):
            table = reader.read_all()
            if stream is not None:
                require_end(file, stream)
        return table
    pyarrow = require("pyarrow", caller=CALLER)
    content = b"".join(block for block, _ in text_blocks(file))
    text = pyarrow.BufferReader(content)
    if file.format == "jsonl":
        return require("pyarrow.json", caller=CALLER).read_json(text)
    reader = require("pyarrow.csv", caller=CALLER)
    options = reader.ParseOptions(delimiter=file.delimiter, newlines_in_values=True)
    head = content[:PEEK_BYTES].decode("utf-8", errors="replace")
    cells = [
        cell for row, _ in islice(rows_of(head, file.delimiter), 1, PEEK_LINES) for cell in row
    ]
    point = "," if has_decimal_commas(cells, file.delimiter) else "."
    return reader.read_csv(
        text, parse_options=options, convert_options=reader.ConvertOptions(decimal_point=point)
    )
