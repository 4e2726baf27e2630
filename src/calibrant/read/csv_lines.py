"""CSV: blocks read by Arrow, and once more by Python's reader where a line must be named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.read.csv_rows import rows_of
from calibrant.read.find_files import DataFile
from calibrant.read.partitions import PER_CENT_CURE, layout, without_sign
from calibrant.read.request import LABEL, PROB, WEIGHT, Request

__all__ = ["CsvParser", "without_empty"]

PEEK_BYTES, PEEK_ROWS = 1 << 20, 1000
WORDS = {"true": 1.0, "false": 0.0}
"""Labels that are no numbers."""


class CsvParser:
    """Reads blocks of one CSV file; the first block says the names and kinds of the columns."""

    def __init__(self, file: DataFile, block: bytes, request: Request) -> None:
        self.file, self.request = file, request
        self.csv = require("pyarrow.csv", caller="scan of CSV")
        peek = block[:PEEK_BYTES].decode("utf-8", errors="replace")
        first = (row for row, _ in rows_of(peek, file.delimiter))
        self.header = next(first)
        self.names, self.constants = layout(file, self.header, request)
        self.kinds = dict.fromkeys(self.names.values(), "string")
        for alias in (PROB, WEIGHT):
            if alias in self.names:
                self.kinds[self.names[alias]] = "float64"
        self.kinds[self.names[LABEL]] = self._label_kind(first)

    def _label_kind(self, rows: Iterator[list[str]]) -> str:
        """How Arrow is to read labels: as true and false, if some of the first are such words.

        The others are read one by one where Arrow cannot, so a wrong guess costs time alone.
        """
        place = self.header.index(self.names[LABEL])
        cells = (row[place] for row in islice(rows, PEEK_ROWS) if place < len(row))
        return "bool" if any(cell.lower() in WORDS for cell in cells) else "float64"

    def parse(self, block: bytes, line: int) -> Mapping[str, Any]:
        """The columns that are read, under the names of the request."""
        import pyarrow

        kinds = {name: pyarrow.type_for_alias(kind) for name, kind in self.kinds.items()}
        table = self.csv.read_csv(
            pyarrow.BufferReader(block),
            read_options=self.csv.ReadOptions(
                use_threads=False,
                block_size=len(block) + 1,
                column_names=self.header,
                skip_rows=1 if line == 1 else 0,
            ),
            parse_options=self.csv.ParseOptions(
                delimiter=self.file.delimiter, newlines_in_values=b'"' in block
            ),
            convert_options=self.csv.ConvertOptions(
                column_types=kinds, include_columns=sorted(kinds)
            ),
        )
        columns = {
            name: without_empty(table[name]) if kind == "string" else table[name]
            for name, kind in self.kinds.items()
        }
        return {a: columns[name] for a, name in self.names.items()} | self.constants

    def read_slowly(self, block: bytes, line: int, error: Exception) -> Mapping[str, Any]:
        """The same with Python's reader, which can name the line of an error.

        Text where a number belongs is refused, unless it is a percentage that is meant as one or
        invalid rows are to be dropped.
        """
        import pyarrow

        columns: dict[str, list[Any]] = {name: [] for name in self.kinds}
        plain = True
        for row, where in self._rows(block, line):
            for name, kind in self.kinds.items():
                cell: Any = row[self.header.index(name)]
                if not cell or (kind != "string" and cell in self._nulls):
                    cell = None
                elif kind != "string":
                    value = self._as_number(cell, name)
                    plain &= value is not None and self._is_arrows(cell, kind)
                    cell = self._meant(cell, name, where) if value is None else value
                columns[name].append(cell)
        if plain:
            self._require_text(block, line)
            raise InputError(f"{self.file.path} cannot be read: {error}") from error
        kinds = {name: "string" if k == "string" else "float64" for name, k in self.kinds.items()}
        try:
            arrays = {n: pyarrow.array(columns[n], pyarrow.type_for_alias(kinds[n])) for n in kinds}
        except UnicodeError:
            self._require_text(block, line)
            raise
        return {a: arrays[name] for a, name in self.names.items()} | self.constants

    def _require_text(self, block: bytes, line: int) -> None:
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            number = line + block.count(b"\n", 0, error.start)
            raise InputError(
                f"{self.file.path}, line {number}: the text must be in UTF-8; it has the byte "
                f"{block[error.start]:#x}. Convert the file first."
            ) from error

    def _rows(self, block: bytes, line: int) -> Iterator[tuple[list[str], str]]:
        text = block.decode("utf-8", errors="surrogateescape")
        for row, number in rows_of(text, self.file.delimiter):
            if not row or line + number == 2:  # the first line of all has the names
                continue
            where = f"{self.file.path}, line {line + number - 1}"
            if len(row) != len(self.header):
                raise InputError(f"{where} must have {len(self.header)} fields; it has {len(row)}.")
            yield row, where

    def _meant(self, cell: str, name: str, where: str) -> float:
        """The number that text stands for, if any."""
        is_prediction = name == self.names[PROB]
        if is_prediction and self.request.form == "percent":
            value = self._as_number(without_sign(cell), name)
            if value is not None:
                return value
        if self.request.on_invalid == "drop":
            return self.request.unreadable(PROB if is_prediction else LABEL)
        cure = " Turn it into 0 and 1 first." if name == self.names[LABEL] else ""
        if is_prediction and cell.rstrip().endswith("%"):
            cure = f" {PER_CENT_CURE}"
        raise InputError(f"{where}: column {name!r} must hold numbers; it has {cell!r}.{cure}")

    @cached_property
    def _nulls(self) -> set[str]:
        return set(self.csv.ConvertOptions().null_values)

    @cached_property
    def _words(self) -> set[str]:
        options = self.csv.ConvertOptions()
        return {*options.true_values, *options.false_values}

    def _is_arrows(self, cell: str, kind: str) -> bool:
        """Whether Arrow reads this number too."""
        return cell in self._words if kind == "bool" else cell.lower() not in WORDS

    def _as_number(self, cell: str, name: str) -> float | None:
        if name == self.names[LABEL] and cell.lower() in WORDS:
            return WORDS[cell.lower()]
        try:
            return None if "_" in cell else float(cell)
        except ValueError:
            return None


def without_empty(column: Any) -> Any:
    """Text in which an empty cell is missing, and nothing else is: "NA" may be a country."""
    compute = require("pyarrow.compute", caller="scan of CSV")
    filled = compute.binary_length(column).cast("bool")  # a scalar to compare with imports pandas
    if compute.all(filled).as_py():
        return column
    missing = require("pyarrow", caller="scan of CSV").nulls(len(column), column.type)
    return compute.if_else(filled, column, missing)
