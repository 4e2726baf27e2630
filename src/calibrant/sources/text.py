"""CSV and JSON lines: blocks of whole lines, parsed in parallel, with the line of what is unreadable."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.sources.request import LABEL, PROB, WEIGHT, Request, require_columns
from calibrant.sources.store import DataFile

__all__ = ["text_jobs"]

BLOCK_BYTES = 1 << 24
PEEK_LINES = 200
Batches = Iterator[Mapping[str, Any]]


def text_jobs(
    files: Sequence[DataFile], request: Request
) -> Iterator[tuple[Callable[[], Batches], int]]:
    """A reader and a size in bytes for each block of each file."""
    for file in files:
        parser: CsvParser | JsonParser | None = None
        line = 1
        for block in _blocks(file):
            if parser is None:
                parser = (CsvParser if file.format == "csv" else JsonParser)(file, block, request)
            yield _job(parser, block, line), len(block)
            line += block.count(b"\n")
        if parser is None:
            raise InputError(f"{file.path} must not be empty; it has no lines.")


def _job(parser: CsvParser | JsonParser, block: bytes, line: int) -> Callable[[], Batches]:
    def read() -> Batches:
        try:
            yield parser.parse(block, line == 1)
        except (ValueError, OSError) as error:
            yield parser.read_slowly(block, line, error)

    return read


def _blocks(file: DataFile) -> Iterator[bytes]:
    """The file in blocks that end with a line; a line break inside quotes ends no line of a CSV."""
    quote = b'"' if file.format == "csv" else b""
    with file.stream() as stream:
        rest = b""
        while True:
            piece = stream.read(BLOCK_BYTES)
            block = rest + piece
            if not piece:
                if block.strip():
                    yield block
                return
            end = _last_line_end(block, quote)
            rest = block[end:]
            if end:
                yield block[:end]


def _last_line_end(block: bytes, quote: bytes) -> int:
    """Where the last whole line ends, or 0: before it, quotes must be even in number."""
    end = block.rfind(b"\n") + 1
    if not quote:
        return end
    odd = block.count(quote, 0, end) % 2 == 1
    while end and odd:
        before = block.rfind(b"\n", 0, end - 1) + 1
        odd ^= block.count(quote, before, end) % 2 == 1
        end = before
    return end


class CsvParser:
    """Reads blocks of one CSV file; the first block says the names and kinds of the columns."""

    def __init__(self, file: DataFile, block: bytes, request: Request) -> None:
        self.file = file
        self.csv = require("pyarrow.csv", caller="scan of CSV")
        self.delimiter = "\t" if ".tsv" in file.path.lower() else ","
        head = block.removeprefix(b"\xef\xbb\xbf")
        first = io.StringIO(head[: 1 << 20].decode("utf-8", errors="replace"), newline="")
        self.header = next(csv.reader(first, delimiter=self.delimiter))
        self.names, self.constants = layout(file, self.header, request)
        self.kinds = dict.fromkeys(self.names.values(), "string")
        for alias in (PROB, LABEL, WEIGHT):
            if alias in self.names:
                self.kinds[self.names[alias]] = "float64"
        label = self.names[LABEL]
        self.kinds[label] = self._label_kind(label, head)

    def _label_kind(self, name: str, block: bytes) -> str:
        options = self.csv.ConvertOptions(include_columns=[name])
        end = _last_line_end(block[: 1 << 20], b'"') or len(block)
        try:
            inferred = str(self._table(block[:end], True, options)[name].type)
        except ValueError:
            return "float64"  # a broken line is reported with its number when the block is read
        if inferred == "string":
            raise InputError(
                f"column {name!r} of {self.file.path} must hold numbers; it holds text. Turn it into "
                "0 and 1 first."
            )
        return "bool" if inferred == "bool" else "float64"

    def parse(self, block: bytes, is_first: bool) -> Mapping[str, Any]:
        """The columns that are read, under the names of the request."""
        import pyarrow

        kinds = {name: pyarrow.type_for_alias(kind) for name, kind in self.kinds.items()}
        options = self.csv.ConvertOptions(
            column_types=kinds, include_columns=sorted(kinds), strings_can_be_null=True
        )
        table = self._table(block, is_first, options)
        return {a: table[name] for a, name in self.names.items()} | self.constants

    def _table(self, block: bytes, is_first: bool, options: Any) -> Any:
        import pyarrow

        return self.csv.read_csv(
            pyarrow.BufferReader(block),
            read_options=self.csv.ReadOptions(
                use_threads=False,
                block_size=len(block) + 1,
                column_names=self.header,
                skip_rows=1 if is_first else 0,
            ),
            parse_options=self.csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=b'"' in block
            ),
            convert_options=options,
        )

    def read_slowly(self, block: bytes, line: int, error: Exception) -> Mapping[str, Any]:
        """Find the line at which the block stops being readable, and say so."""
        text = io.StringIO(block.decode("utf-8", errors="replace"), newline="")
        rows = csv.reader(text, delimiter=self.delimiter)
        nulls = set(self.csv.ConvertOptions().null_values)
        numbers = [
            (name, self.header.index(name)) for name, k in self.kinds.items() if k != "string"
        ]
        start = line
        for row in rows:
            number, start = start, line + rows.line_num
            if not row or number == 1:
                continue
            where = f"{self.file.path}, line {number}"
            if len(row) != len(self.header):
                raise InputError(f"{where} must have {len(self.header)} fields; it has {len(row)}.")
            for name, place in numbers:
                if row[place] not in nulls and not _is_number(row[place], self.kinds[name]):
                    raise InputError(
                        f"{where}: column {name!r} must hold numbers; it has {row[place]!r}."
                    )
        raise InputError(f"{self.file.path} cannot be read: {error}") from error


class JsonParser:
    """Reads blocks of one file of JSON lines; its first lines say the kinds of the columns."""

    def __init__(self, file: DataFile, block: bytes, request: Request) -> None:
        self.file = file
        self.json = require("pyarrow.json", caller="scan of JSON lines")
        rows = self._peek(block)
        present = list(dict.fromkeys(name for row in rows for name in row))
        self.names, self.constants = layout(file, present, request)
        self.kinds = {
            name: "float64" if alias in (PROB, WEIGHT) else self._kind(rows, name)
            for alias, name in self.names.items()
        }
        label = self.names[LABEL]
        if self.kinds[label] == "string":
            raise InputError(
                f"column {label!r} of {file.path} must hold numbers; it holds text. Turn it into 0 "
                "and 1 first."
            )
        if self.kinds[label] == "int64":
            self.kinds[label] = "float64"

    def _peek(self, block: bytes) -> list[dict[str, Any]]:
        rows = []
        for line in block.split(b"\n", PEEK_LINES)[:PEEK_LINES]:
            try:
                row = json.loads(line) if line.strip() else None
            except ValueError:
                continue  # reported with its line when the block is read
            if isinstance(row, dict):
                rows.append(row)
        return rows

    def _kind(self, rows: list[dict[str, Any]], name: str) -> str:
        kinds = {type(row[name]) for row in rows if row.get(name) is not None}
        named = {bool: "bool", int: "int64", float: "float64", str: "string"}
        if kinds == {int, float}:
            return "float64"
        return named.get(next(iter(kinds)), "string") if len(kinds) == 1 else "string"

    def parse(self, block: bytes, is_first: bool) -> Mapping[str, Any]:
        """The columns that are read, under the names of the request."""
        import pyarrow

        schema = pyarrow.schema(
            [(name, pyarrow.type_for_alias(kind)) for name, kind in self.kinds.items()]
        )
        table = self.json.read_json(
            pyarrow.BufferReader(block),
            read_options=self.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=self.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        return {a: table[name] for a, name in self.names.items()} | self.constants

    def read_slowly(self, block: bytes, line: int, error: Exception) -> Mapping[str, Any]:
        """The same with Python's reader, which knows NaN and Infinity and the line of an error."""
        import pyarrow

        columns: dict[str, list[Any]] = {name: [] for name in self.kinds}
        for number, text in enumerate(block.split(b"\n"), start=line):
            if text.strip():
                row = self._row(text, f"{self.file.path}, line {number}")
                for name, values in columns.items():
                    values.append(row.get(name))
        arrays = {
            name: pyarrow.array(values, type=pyarrow.type_for_alias(self.kinds[name]))
            for name, values in columns.items()
        }
        return {a: arrays[name] for a, name in self.names.items()} | self.constants

    def _row(self, text: bytes, where: str) -> dict[str, Any]:
        wanted = {"float64": int | float, "int64": int, "bool": bool, "string": str}
        try:
            row = json.loads(text)
        except ValueError as error:
            raise InputError(f"{where} must hold a JSON object: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{where} must hold a JSON object; it has {type(row).__name__}.")
        for name, kind in self.kinds.items():
            value = row.get(name)
            is_wrong_bool = isinstance(value, bool) and kind != "bool"
            if value is not None and (is_wrong_bool or not isinstance(value, wanted[kind])):
                raise InputError(f"{where}: column {name!r} must hold {kind}; it has {value!r}.")
        return row


def layout(
    file: DataFile, present: Sequence[str], request: Request
) -> tuple[dict[str, str], dict[str, Any]]:
    """Names to read from the file, and groups that stand in its path, by the names of the request."""
    constants = {
        alias: file.partitions[name]
        for alias, name in request.selection.items()
        if alias in request.group_aliases and name not in present and name in file.partitions
    }
    names = {a: name for a, name in request.selection.items() if a not in constants}
    require_columns(names.values(), present, file.path)
    return names, constants


def _is_number(text: str, kind: str) -> bool:
    if kind == "bool":
        return text in ("0", "1", "true", "false", "True", "False", "TRUE", "FALSE")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
