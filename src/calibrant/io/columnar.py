"""Parquet, Arrow and ORC files: a piece at a time, checked, and never fewer rows than they declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant._optional import require
from calibrant.io.arrow import Batch, require_types, validated
from calibrant.io.files import DataFile, GroupTypes, Job, damaged_file, file_format, layout
from calibrant.io.request import Request

__all__ = ["ArrowFile", "OrcFile", "ParquetFile"]

BATCH_ROWS, GROUPED_BATCH_ROWS = 1 << 20, 1 << 19
"""Rows of a batch; those of groups are sorted, which takes eight more columns of memory."""
BATCH_VALUES = 1 << 23
"""Values of a batch of many columns, 64 MB."""
SEARCHED_BYTES = 1 << 26
"""Parquet files up to this size, 64 MB, are searched for the end of another file: 40 ms."""


@dataclass(frozen=True)
class _Piece:
    """Part of a file with so many rows; `read` takes the names of columns."""

    rows: int
    read: Callable[[list[str]], Iterator[Any]]


class _ColumnarFile:
    """File of typed columns; a format says its schema and how to read its pieces."""

    schema: Any
    counts_rows = False
    """The rows of a piece are known before it is read; otherwise they are an estimate."""

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.open()

    def open(self) -> None:
        """Read the schema, and check that the file is whole."""
        raise NotImplementedError

    def pieces(self, rows: int) -> Iterator[_Piece]:
        """Parts in order, in batches of at most so many rows."""
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def jobs(self, request: Request, groups: GroupTypes) -> Iterator[Job]:
        """Jobs in order, one a piece."""
        pyarrow = require("pyarrow", caller="scan")
        with damaged_file(self.file):
            names, constants = layout(self.file, self.names, request)
            require_types(self.schema, names, request)
            of_path = {a: pyarrow.array([value]).type for a, value in constants.items()}
            types = {a: self.schema.field(name).type for a, name in names.items()} | of_path
        aliases = zip(request.groups, request.group_aliases, strict=True)
        groups.require(self.file, {name: types[alias] for name, alias in aliases})
        wanted = sorted(set(names.values()))
        most = GROUPED_BATCH_ROWS if request.by else BATCH_ROWS
        pieces = list(self.pieces(min(most, max(1 << 12, BATCH_VALUES // len(wanted)))))
        total = sum(piece.rows for piece in pieces) or 1

        def rows_before(number: int, row: int) -> int:
            if self.counts_rows:
                return row + sum(piece.rows for piece in pieces[:number])
            batches = (b for piece in pieces[:number] for b in piece.read(wanted[:1]))
            return row + sum(int(batch.num_rows) for batch in batches)

        def read(number: int) -> Iterator[Batch]:
            with damaged_file(self.file):
                row = 0
                for batch in pieces[number].read(wanted):
                    columns = {a: validated(batch.column(name)) for a, name in names.items()}
                    first = partial(rows_before, number, row)
                    yield Batch({**columns, **constants}, first, self.file.path)
                    row += batch.num_rows

        for number, piece in enumerate(pieces):
            size = self.file.size * piece.rows // total
            yield Job(partial(read, number), size, piece.rows)

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""
        pyarrow = require("pyarrow", caller="reading rows")
        with damaged_file(self.file):
            pieces = self.pieces(BATCH_ROWS)
            batches = [b for piece in pieces for b in piece.read(self.names)]
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

    counts_rows = True

    def open(self) -> None:
        """Read the schema, and check that the counts of rows agree."""
        parquet = require("pyarrow.parquet", caller="scan of Parquet")
        self.metadata = parquet.ParquetFile(self.file.open(), pre_buffer=False).metadata
        self.schema = self.metadata.schema.to_arrow_schema()
        self.groups = [
            self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)
        ]
        _require_rows(sum(self.groups), self.metadata.num_rows)
        if self.file.is_local and self.file.size <= SEARCHED_BYTES:
            _require_one_file(self.file.open())

    def pieces(self, rows: int) -> Iterator[_Piece]:
        """Row groups."""
        parquet = require("pyarrow.parquet", caller="scan of Parquet")

        def read(group: int, columns: list[str]) -> Iterator[Any]:
            with self.file.open() as handle:
                reader = parquet.ParquetFile(
                    handle,
                    metadata=self.metadata,
                    pre_buffer=False,  # it would hold the whole file in memory
                    page_checksum_verification=True,
                )
                seen = 0
                for batch in reader.iter_batches(rows, [group], columns, use_threads=False):
                    seen += batch.num_rows
                    yield batch
                _require_rows(seen, self.groups[group])

        for group, size in enumerate(self.groups):
            yield _Piece(size, partial(read, group))


def _require_one_file(handle: Any) -> None:
    """Refuse Parquet files that were joined into one, of which readers see the rows of the last.

    Between two of them, the mark at the end of one is followed by that at the beginning of the other; text
    may hold the same letters, but no contents whose length stands before them.
    """
    with handle:
        content = handle.read()
    for mark in (match.start() for match in re.finditer(rb"PAR1(?=PAR1)", content)):
        first = mark - 4 - int.from_bytes(content[mark - 4 : mark], "little")
        # Contents begin with a version and a list.
        if first >= 4 and content[first] == 0x15 and content[first + 2] == 0x19:
            raise ValueError("several Parquet files were joined into it")


@file_format("arrow", ".arrow", ".feather", ".ipc")
class ArrowFile(_ColumnarFile):
    """Arrow, with a table of contents or as a stream: a batch at a time."""

    MAGIC = b"ARROW1"

    def open(self) -> None:
        """Read the schema, and check that the contents list every batch."""
        ipc = require("pyarrow.ipc", caller="scan of Arrow files")
        with self.file.open() as handle:
            self.is_stream = handle.read(len(self.MAGIC)) != self.MAGIC
        if self.is_stream:
            with self.file.stream() as handle:
                self.schema = ipc.open_stream(handle).schema
            return
        reader = ipc.open_file(self.file.open())
        self.schema, self.batches = reader.schema, reader.num_record_batches
        self._require_all_messages(ipc)

    def _require_all_messages(self, ipc: Any) -> None:
        """Refuse a file that lists fewer batches than lie before its contents, one behind the other.

        The end of the stream of messages takes 8 bytes, which some writers of files leave out.
        """
        pyarrow = require("pyarrow", caller="scan of Arrow files")
        path = self.file.path
        with pyarrow.memory_map(path) if self.file.is_local else self.file.open() as handle:
            tail = handle.size() - len(self.MAGIC) - 4
            handle.seek(tail)
            contents = tail - int.from_bytes(handle.read(4), "little")
            handle.seek(8)
            if (
                handle.read(4) != b"\xff\xff\xff\xff"
            ):  # polars frames its messages in a way of its own
                return
            handle.seek(8)
            messages = ipc.MessageReader.open_stream(handle)
            batches = 0
            while handle.tell() < contents - 8:
                message = messages.read_next_message()
                batches += message.type == "record batch"
            if batches != self.batches or handle.tell() > contents:
                raise ValueError("its contents lack a message")

    def pieces(self, rows: int) -> Iterator[_Piece]:
        """Batches; the rows of each are known only once it is read: a share of the size stands for them."""
        ipc = require("pyarrow.ipc", caller="scan of Arrow files")
        if self.is_stream:
            yield _Piece(self.file.size // 16, lambda columns: self._stream(ipc, columns))
            return

        def read(number: int, columns: list[str]) -> Iterator[Any]:
            fields = [self.schema.get_field_index(name) for name in columns]
            options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            with self.file.open() as handle:
                yield ipc.open_file(handle, options=options).get_batch(number)

        for number in range(self.batches):
            size = self.file.size // (16 * self.batches)
            yield _Piece(size, partial(read, number))

    def _stream(self, ipc: Any, columns: list[str]) -> Iterator[Any]:
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
        self.reader = require("pyarrow.orc", caller="scan of ORC").ORCFile(self.file.open())
        self.schema = self.reader.schema

    def pieces(self, rows: int) -> Iterator[_Piece]:
        """Stripes."""
        orc = require("pyarrow.orc", caller="scan of ORC")

        def read(stripe: int, columns: list[str]) -> Iterator[Any]:
            with self.file.open() as handle:
                yield orc.ORCFile(handle).read_stripe(stripe, columns)

        stripes = self.reader.nstripes
        for stripe in range(stripes):
            size = self.reader.nrows // stripes
            yield _Piece(size, partial(read, stripe))
