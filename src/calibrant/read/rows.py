"""Rows as arrays, for what a sketch is not enough for: models on the same rows, columns to add to."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.data.arrays import as_array
from calibrant.errors import CalibrationError, InputError, Where
from calibrant.read.arrow import Batch, batches_of, column_of
from calibrant.read.arrow_contents import ARROW_MAGIC, require_all_messages, require_end
from calibrant.read.checkpoint import unchanged
from calibrant.read.csv_rows import has_decimal_commas, rows_of
from calibrant.read.file_jobs import jobs_of
from calibrant.read.find_files import DataFile, find_files, reader_of
from calibrant.read.frames import arrow_stream, is_frame, select
from calibrant.read.json_reader import flat
from calibrant.read.request import Request, make_request
from calibrant.read.source_columns import LABEL, PROB, WEIGHT, no_rows, require_columns
from calibrant.read.text import empty_file, text_blocks

__all__ = ["Rows", "columns_of", "read_rows", "read_table"]

PEEK_BYTES = 1 << 20
PEEK_LINES = 200
CALLER = "reading rows"


@dataclass(frozen=True)
class Rows:
    """Columns of a table or of files, as arrays of one length.

    Attributes
    ----------
    y_true : array
        Outcomes, as they are written.
    y_probs : dict
        From the name of each column of predictions to its values.
    sample_weight : array or None
        Weights.
    groups : dict
        From the name of every other column that was asked for to its values.
    """

    y_true: NDArray[Any]
    y_probs: Mapping[str, NDArray[Any]]
    sample_weight: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]


def read_rows(
    data: Any,
    *,
    y_true: str,
    y_prob: str | Sequence[str],
    sample_weight: str | None = None,
    columns: Sequence[str] = (),
    named_labels: bool = False,
    sep: str | None = None,
) -> Rows:
    """The columns of these names, of a frame, a dict of arrays, or files; predictions as they are written."""
    names = [y_prob] if isinstance(y_prob, str) else list(y_prob)
    request = make_request(
        y_true=y_true,
        y_prob=names,
        sample_weight=sample_weight,
        by=list(columns) or None,
        cluster=None,
        nodes=1 << 16,
        scale="probability",
        on_invalid="raise",
        pos_label="" if named_labels else None,  # labels that are text stay text
    )
    arrays = _arrays(data, request, sep)
    groups = dict(zip(columns, (arrays[a] for a in request.group_aliases), strict=True))
    probs = {name: arrays[f"{PROB}_{k}"] for k, name in enumerate(names)}
    return Rows(arrays[LABEL], probs, arrays.get(WEIGHT), groups)


def _arrays(data: Any, request: Request, sep: str | None) -> dict[str, NDArray[Any]]:
    if isinstance(data, Mapping):
        require_columns(request.names(), data, "the data")
        return {alias: as_array(data[name], name) for alias, name in request.selection.items()}
    if is_frame(data):
        batches = batches_of(arrow_stream(select(data, request)), request.selected())
        return _joined(batches, request)
    files = find_files(data, separator=sep)
    with unchanged(files):
        jobs = jobs_of(files, request).jobs
        arrays = _joined((batch for job in jobs for batch in job.read()), request)
    if files[0].format == "csv":
        for alias in request.group_aliases:
            values = arrays[alias].tolist()
            if all(value is None or isinstance(value, str) for value in values):
                read = reader_of(values)
                arrays[alias] = _objects([read(value) for value in values])
    return arrays


def _joined(batches: Iterable[Batch], request: Request) -> dict[str, NDArray[Any]]:
    pieces: dict[str, list[NDArray[Any]]] = {alias: [] for alias in request.selection}
    for batch in batches:
        rows = max(len(c) for c in batch.columns.values() if hasattr(c, "dictionary_encode"))
        for alias, parts in pieces.items():
            column = batch.columns[alias]
            if not hasattr(column, "dictionary_encode"):  # it stands in the path
                parts.append(_objects([column] * rows))
            elif alias in request.group_aliases:
                parts.append(_objects(column.to_pylist()))
            else:
                parts.append(column_of(alias, column, request))
    if not next(iter(pieces.values())):
        raise no_rows()
    return {alias: _concatenated(parts) for alias, parts in pieces.items()}


def _concatenated(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    if len({piece.dtype.kind in "biuf" for piece in pieces}) > 1:
        pieces = [piece.astype(object) for piece in pieces]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _objects(values: list[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def columns_of(file: DataFile) -> list[str]:
    """Names of the columns of a file, partitions in the path included."""
    try:
        names = _names(file)
    except CalibrationError:
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
    with file.stream() as stream:
        start = stream.read(PEEK_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(
            "the file must be in UTF-8",
            seen="UTF-16",
            where=Where(file=file.path),
            cure="Save it again as UTF-8, or convert it with {command}.",
            command="`iconv -f UTF-16 -t UTF-8`",
        )
    head = start.decode("utf-8-sig", errors="replace")
    if not head.strip():
        raise empty_file(file)
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
            row = json.loads(line)
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
    except CalibrationError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise _unreadable(file, error) from error
    return table


def _table(file: DataFile) -> Any:
    if file.format == "parquet":
        parquet = require("pyarrow.parquet", caller=CALLER)
        table = parquet.read_table(file.open(), page_checksum_verification=True)
        told = parquet.read_metadata(file.open()).num_rows
        if table.num_rows != told:
            raise ValueError(f"it tells of {told} rows and holds {table.num_rows}")
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
