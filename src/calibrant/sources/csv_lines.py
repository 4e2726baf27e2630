"""CSV: blocks read by Arrow, and once more by Python's reader where a line must be named."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.sources.layout import layout
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
        self.file = file
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
                    cure = " Turn it into 0 and 1 first." if name == self.names[LABEL] else ""
                    raise InputError(
                        f"{where}: column {name!r} must hold numbers; it has {row[place]!r}.{cure}"
                    )
        raise InputError(f"{self.file.path} cannot be read: {error}") from error


def _is_number(text: str, kind: str) -> bool:
    if kind == "bool":
        return text in ("0", "1", "true", "false", "True", "False", "TRUE", "FALSE")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
