"""Parquet and Arrow files: a row group or a batch at a time, checked, and never fewer rows than they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from calibrant._optional import require
from calibrant.errors import CalibrantError, InputError, Where
from calibrant.io.arrow_batches import Batch, require_types, validated
from calibrant.io.arrow_contents import ARROW_MAGIC, require_all_messages, require_end
from calibrant.io.file_layout import GroupKinds, layout
from calibrant.io.find_files import DataFile
from calibrant.io.parquet_contents import require_one_file
from calibrant.io.scan_request import Request

__all__ = ["arrow_pieces", "parquet_pieces"]

BATCH_ROWS = 1 << 20
Batches = Iterator[Batch]


def parquet_pieces(
    file: DataFile, request: Request, kinds: GroupKinds
) -> Iterator[tuple[Callable[[], Batches], int]]:
    """How to read each row group, and how many rows it has."""
    parquet = require("pyarrow.parquet", caller="scan of Parquet")
    metadata = _opened(file, lambda: parquet.ParquetFile(file.open(), pre_buffer=False).metadata)
    with file.open() as handle:
        _opened(file, lambda: require_one_file(handle, handle.size()))
    schema = _opened(file, metadata.schema.to_arrow_schema)
    names, constants = _layout(file, schema, request, kinds)
    wanted = sorted(set(names.values()))
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    _opened(file, lambda: _require_rows(sum(groups), metadata.num_rows))
    starts = [0, *accumulate(groups)]

    def read_group(group: int) -> Batches:
        # `pre_buffer` would hold the whole file in memory.
        with file.open() as handle:
            reader = parquet.ParquetFile(
                handle, metadata=metadata, pre_buffer=False, page_checksum_verification=True
            )
            batches = reader.iter_batches(BATCH_ROWS, [group], columns=wanted, use_threads=False)
            row = starts[group]
            for batch in batches:
                columns = {a: validated(batch.column(name)) for a, name in names.items()}
                yield Batch(columns | constants, partial(_row_of, file.path, row))
                row += batch.num_rows
            _require_rows(row - starts[group], groups[group])

    for group, rows in enumerate(groups):
        yield _explained(file, read_group, group), rows


def arrow_pieces(
    file: DataFile, request: Request, kinds: GroupKinds
) -> Iterator[tuple[Callable[[], Batches], int]]:
    """How to read each batch, and about how many rows it has."""
    ipc = require("pyarrow.ipc", caller="scan of Arrow files")
    with file.open() as handle:
        if handle.read(len(ARROW_MAGIC)) != ARROW_MAGIC:
            yield from _stream_piece(file, request, kinds)
            return
    reader = _opened(file, lambda: ipc.open_file(file.open()))
    with file.open() as handle:
        _opened(file, lambda: require_all_messages(handle, handle.size()))
    names, constants = _layout(file, reader.schema, request, kinds)
    wanted = sorted({reader.schema.get_field_index(name) for name in names.values()})
    options = ipc.IpcReadOptions(included_fields=wanted, use_threads=False)

    def read_batch(number: int) -> Batches:
        with file.open() as handle:
            batch = ipc.open_file(handle, options=options).get_batch(number)
            batch.validate(full=True)
            columns = {a: batch.column(name) for a, name in names.items()} | constants
            yield Batch(columns, partial(_row_of_batch, file.path, number))

    for number in range(reader.num_record_batches):
        yield _explained(file, read_batch, number), file.size // (16 * reader.num_record_batches)


def _stream_piece(
    file: DataFile, request: Request, kinds: GroupKinds
) -> Iterator[tuple[Callable[[], Batches], int]]:
    """An Arrow stream, which has no table of contents: one piece, read from front to back."""
    ipc = require("pyarrow.ipc", caller="scan of Arrow files")
    with file.stream() as handle:
        schema = _opened(file, lambda: ipc.open_stream(handle)).schema
    names, constants = _layout(file, schema, request, kinds)

    def read(_: int) -> Batches:
        row = 0
        with file.stream() as handle:
            for batch in ipc.open_stream(handle):
                batch.validate(full=True)
                columns = {a: batch.column(name) for a, name in names.items()} | constants
                yield Batch(columns, partial(_row_of, file.path, row))
                row += batch.num_rows
            require_end(file, handle)

    yield _explained(file, read, 0), file.size // 16


def _row_of(path: str, first: int, row: int) -> Where:
    return Where(row=first + row, file=path)


def _row_of_batch(path: str, number: int, row: int) -> Where:
    """How many rows the batches of an Arrow file have is known only once they are read."""
    return Where(row=row, file=path if number == 0 else f"batch {number} of {path}")


def _opened(file: DataFile, opened: Callable[[], Any]) -> Any:
    try:
        return opened()
    except CalibrantError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise InputError(
            "this is not a complete {format} file: {error}",
            where=Where(file=file.path),
            cure="It is damaged, or of another format: write it again, or give it the ending of its format.",
            format=file.format,
            error=str(error),
        ) from error


def _explained(
    file: DataFile, read: Callable[[int], Batches], number: int
) -> Callable[[], Batches]:
    def explained() -> Batches:
        try:
            yield from read(number)
        except CalibrantError:
            raise
        except Exception as error:  # damaged bytes may raise anything
            raise InputError(
                "the file cannot be read: {error}",
                where=Where(file=file.path),
                cure="It is damaged: copy it again, or leave it out.",
                error=str(error),
            ) from error

    return explained


def _require_rows(seen: int, told: int) -> None:
    if seen != told:
        raise ValueError(f"it tells of {told} rows and holds {seen}")


def _layout(
    file: DataFile, schema: Any, request: Request, kinds: GroupKinds
) -> tuple[dict[str, str], dict[str, Any]]:
    """Which columns to read, and which groups stand in the path; refuses what does not fit."""
    names, constants = layout(file, _opened(file, lambda: schema.names), request)
    require_types(schema, names, file.path, request)
    kinds.require(file, {a: schema.field(name).type for a, name in names.items()}, constants)
    return names, constants
