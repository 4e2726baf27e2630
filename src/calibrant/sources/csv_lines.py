"""CSV: blocks read by Arrow, and once more by Python's reader where a line must be named."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.sources.layout import PER_CENT_CURE, layout, without_sign
from calibrant.sources.quotes import Quotes
from calibrant.sources.request import LABEL, PROB, WEIGHT, Request
from calibrant.sources.store import DataFile

__all__ = ["CsvParser", "delimiter_of"]

PEEK_BYTES = 1 << 20


def delimiter_of(file: DataFile) -> str:
    """What stands between the fields of a file of this name."""
    return "\t" if ".tsv" in file.path.lower() else ","


class CsvParser:
    """Reads blocks of one CSV file; the first block says the names and kinds of the columns."""

    def __init__(self, file: DataFile, block: bytes, request: Request) -> None:
        self.file, self.request = file, request
        self.csv = require("pyarrow.csv", caller="scan of CSV")
        self.delimiter = delimiter_of(file)
        first = io.StringIO(block[:PEEK_BYTES].decode("utf-8", errors="replace"), newline="")
        self.header = next(csv.reader(first, delimiter=self.delimiter))
        self.names, self.constants = layout(file, self.header, request)
        self.kinds = dict.fromkeys(self.names.values(), "string")
        for alias in (PROB, LABEL, WEIGHT):
            if alias in self.names:
                self.kinds[self.names[alias]] = "float64"
        label = self.names[LABEL]
        self.kinds[label] = self._label_kind(label, block)

    def _label_kind(self, name: str, block: bytes) -> str:
        """Whether labels are written as true and false; what is neither is named with its line."""
        options = self.csv.ConvertOptions(include_columns=[name])
        end = Quotes(block[:PEEK_BYTES], self.delimiter).last_line_end() or len(block)
        try:
            inferred = str(self._table(block[:end], 1, options)[name].type)
        except ValueError:
            return "float64"  # a broken line is reported with its number when the block is read
        return "bool" if inferred == "bool" else "float64"

    def parse(self, block: bytes, line: int) -> Mapping[str, Any]:
        """The columns that are read, under the names of the request."""
        import pyarrow

        kinds = {name: pyarrow.type_for_alias(kind) for name, kind in self.kinds.items()}
        options = self.csv.ConvertOptions(
            column_types=kinds, include_columns=sorted(kinds), strings_can_be_null=True
        )
        table = self._table(block, line, options)
        return {a: table[name] for a, name in self.names.items()} | self.constants

    def _table(self, block: bytes, line: int, options: Any) -> Any:
        import pyarrow

        return self.csv.read_csv(
            pyarrow.BufferReader(block),
            read_options=self.csv.ReadOptions(
                use_threads=False,
                block_size=len(block) + 1,
                column_names=self.header,
                skip_rows=1 if line == 1 else 0,
            ),
            parse_options=self.csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=b'"' in block
            ),
            convert_options=options,
        )

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
                if cell in self._nulls:
                    cell = None
                elif kind != "string":
                    value = _as_number(cell, kind)
                    plain &= value is not None
                    cell = self._meant(cell, name, where) if value is None else value
                columns[name].append(cell)
        if plain:
            self._require_text(block, line)
            raise InputError(f"{self.file.path} cannot be read: {error}") from error
        kinds = {name: "string" if k == "string" else "float64" for name, k in self.kinds.items()}
        arrays = {n: pyarrow.array(columns[n], pyarrow.type_for_alias(kinds[n])) for n in kinds}
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
        text = io.StringIO(block.decode("utf-8", errors="replace"), newline="")
        rows = csv.reader(text, delimiter=self.delimiter)
        start = line
        for row in rows:
            number, start = start, line + rows.line_num
            if not row or number == 1:
                continue
            where = f"{self.file.path}, line {number}"
            if len(row) != len(self.header):
                raise InputError(f"{where} must have {len(self.header)} fields; it has {len(row)}.")
            yield row, where

    def _meant(self, cell: str, name: str, where: str) -> float:
        """The number that text stands for, if any."""
        is_prediction = name == self.names[PROB]
        if is_prediction and self.request.form == "percent":
            value = _as_number(without_sign(cell), self.kinds[name])
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


def _as_number(text: str, kind: str) -> float | None:
    if kind == "bool":
        return {"0": 0.0, "1": 1.0, "true": 1.0, "false": 0.0}.get(text.lower())
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
