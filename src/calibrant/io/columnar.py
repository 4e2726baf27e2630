"""Parquet, Arrow and ORC files: a piece at a time, checked, and never fewer rows than they declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant._optional import require
from calibrant.io.arrow import batch_of_arrow, require_types, validated
from calibrant.io.batches import BATCH_ROWS, Batch
from calibrant.io.files import DataFile, Job, damaged_file, file_format, layout
from calibrant.io.request import Request

BATCH_VALUES = 1 << 23
"""Values of a batch of many columns, 64 MB."""


@dataclass(frozen=True)
class _Piece:
    """Part of a file with about so many rows; `read` takes names of columns and the most rows of a batch."""

    rows: int
    read: Callable[[list[str], int], Iterator[Any]]


class _ColumnarFile:
    """File of typed columns; a format says its schema and its pieces."""

    schema: Any
    pieces: list[_Piece]

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.open()

    def open(self) -> None:
        """Read the schema and where the pieces lie."""
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def jobs(self, request: Request) -> Iterator[Job]:
        """Jobs in order, one a piece."""
        with damaged_file(self.file):
            names, constants = layout(self.file, self.names, request)
            require_types(self.schema, names, request)
        wanted = sorted(set(names.values()))
        # Rows of groups are sorted, which takes eight more columns of memory.
        most = min(BATCH_ROWS >> bool(request.by), max(1 << 12, BATCH_VALUES // len(wanted)))
        total = sum(piece.rows for piece in self.pieces) or 1

        def rows_before(number: int, row: int) -> int:
            batches = (b for piece in self.pieces[:number] for b in piece.read(wanted[:1], most))
            return row + sum(int(batch.num_rows) for batch in batches)

        def read(number: int) -> Iterator[Batch]:
            with damaged_file(self.file):
                row = 0
                for batch in self.pieces[number].read(wanted, most):
                    columns = {a: validated(batch.column(name)) for a, name in names.items()}
                    first = partial(rows_before, number, row)
                    yield batch_of_arrow({**columns, **constants}, request, first, self.file.path)
                    row += batch.num_rows

        for number, piece in enumerate(self.pieces):
            yield Job(partial(read, number), self.file.size * piece.rows // total, piece.rows)

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""
        pyarrow = require("pyarrow", caller="reading rows")
        with damaged_file(self.file):
            batches = [b for piece in self.pieces for b in piece.read(self.names, BATCH_ROWS)]
            table = pyarrow.Table.from_batches(batches, self.schema)
            table.validate(full=True)
            return table


def _require_rows(seen: int, declared: int) -> None:
    if seen != declared:
        raise ValueError(f"it declares {declared} rows and holds {seen}")


@file_format("parquet", ".parquet", ".pq")
class ParquetFile(_ColumnarFile):
    """Parquet: a row group at a time.

    Column metadata of a damaged footer end the process when Arrow is asked for them: only counts of rows
    are read.
    """

    def open(self) -> None:
        """Read the schema, and check that the counts of rows agree."""
        parquet = require("pyarrow.parquet", caller="scan of Parquet")
        metadata = parquet.ParquetFile(self.file.open(), pre_buffer=False).metadata
        self.schema = metadata.schema.to_arrow_schema()
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        _require_rows(sum(sizes), metadata.num_rows)

        def read(group: int, columns: list[str], most: int) -> Iterator[Any]:
            with self.file.open() as handle:
                reader = parquet.ParquetFile(
                    handle,
                    metadata=metadata,
                    pre_buffer=False,  # it would hold the whole file in memory
                    page_checksum_verification=True,
                )
                seen = 0
                for batch in reader.iter_batches(most, [group], columns, use_threads=False):
                    seen += batch.num_rows
                    yield batch
                _require_rows(seen, sizes[group])

        self.pieces = [_Piece(size, partial(read, group)) for group, size in enumerate(sizes)]


@file_format("arrow", ".arrow", ".feather", ".ipc")
class ArrowFile(_ColumnarFile):
    """Arrow, with a table of contents or as a stream: a batch at a time.

    The rows of a batch are known only once it is read: a share of the file's size stands for them.
    """

    def open(self) -> None:
        """Read the schema."""
        ipc = require("pyarrow.ipc", caller="scan of Arrow files")
        handle = self.file.open()
        if handle.read(6) != b"ARROW1":
            with self.file.stream() as handle:
                self.schema = ipc.open_stream(handle).schema
            self.pieces = [_Piece(self.file.size // 16, partial(self._stream, ipc))]
            return

        def read(number: int, columns: list[str], most: int) -> Iterator[Any]:
            fields = [self.schema.get_field_index(name) for name in columns]
            options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            with self.file.open() as handle:
                yield ipc.open_file(handle, options=options).get_batch(number)

        reader = ipc.open_file(handle)
        self.schema, batches = reader.schema, reader.num_record_batches
        size = self.file.size // (16 * max(batches, 1))
        self.pieces = [_Piece(size, partial(read, number)) for number in range(batches)]

    def _stream(self, ipc: Any, columns: list[str], most: int) -> Iterator[Any]:
        """Batches of a stream, up to its end: Arrow takes the end of the file for that of the stream."""
        with self.file.stream() as handle:
            for batch in ipc.open_stream(handle):
                yield batch.select(columns)
            if handle.read(1):
                raise ValueError("something follows its end")
        if self.file.compression is None:
            with self.file.open() as handle:
                handle.seek(max(0, self.file.size - 8))
                if handle.read() != b"\xff\xff\xff\xff\0\0\0\0":
                    raise ValueError("it ends before the end of its stream")


@file_format("orc", ".orc")
class OrcFile(_ColumnarFile):
    """ORC: a stripe at a time."""

    def open(self) -> None:
        """Read the schema."""
        orc = require("pyarrow.orc", caller="scan of ORC")

        def read(stripe: int, columns: list[str], most: int) -> Iterator[Any]:
            with self.file.open() as handle:
                yield orc.ORCFile(handle).read_stripe(stripe, columns)

        reader = orc.ORCFile(self.file.open())
        self.schema, stripes = reader.schema, reader.nstripes
        size = reader.nrows // max(stripes, 1)
        self.pieces = [_Piece(size, partial(read, stripe)) for stripe in range(stripes)]
