"""CSV: blocks read by Arrow, and once more by Python's reader where a line must be named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

from calibrant._optional import require
from calibrant.errors import Cure, InputError, Option, Where
from calibrant.io.arrow_batches import Batch
from calibrant.io.csv_rows import has_decimal_commas, rows_of
from calibrant.io.file_layout import PERCENT_CURE, layout, without_sign
from calibrant.io.find_files import DataFile
from calibrant.io.predictions import NAMED_LABELS, is_list_as_text
from calibrant.io.required_columns import LABEL, PROB, WEIGHT
from calibrant.io.scan_request import Request

__all__ = ["CsvParser", "refused_text", "without_empty"]

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
        self.numbers = {self.names[a] for a in self.names if a.startswith(PROB) or a == WEIGHT}
        rows = list(islice(first, PEEK_ROWS))
        self.numbers -= self._lists(rows)
        self.kinds |= dict.fromkeys(self.numbers, "float64")
        if not request.named_labels:
            self.kinds[self.names[LABEL]] = self._label_kind(rows)
        cells = [cell for name in self.numbers for cell in self._cells(rows, name)]
        self.decimal = "," if has_decimal_commas(cells, file.delimiter) else "."

    def _cells(self, rows: list[list[str]], name: str) -> Iterator[str]:
        place = self.header.index(name)
        return (row[place] for row in rows if place < len(row))

    def _lists(self, rows: list[list[str]]) -> set[str]:
        """Columns of class probabilities that hold lists, written as text."""
        if self.request.multiclass is None:
            return set()
        names = {self.names[alias] for alias in self.request.prob_aliases}
        return {n for n in names if any(map(is_list_as_text, self._cells(rows, n)))}

    def _label_kind(self, rows: list[list[str]]) -> str:
        """How Arrow is to read labels: as true and false, if some of the first are such words.

        The others are read one by one where Arrow cannot, so a wrong guess costs time alone.
        """
        cells = self._cells(rows, self.names[LABEL])
        return "bool" if any(cell.lower() in WORDS for cell in cells) else "float64"

    def parse(self, block: bytes, line: int) -> Batch:
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
                column_types=kinds, include_columns=sorted(kinds), decimal_point=self.decimal
            ),
        )
        columns = {
            name: without_empty(table[name]) if kind == "string" else table[name]
            for name, kind in self.kinds.items()
        }
        return self._batch(columns, block, line)

    def _batch(self, columns: Mapping[str, Any], block: bytes, line: int) -> Batch:
        columns = {a: columns[name] for a, name in self.names.items()}
        if self.request.named_labels:
            columns[LABEL] = _as_labels(columns[LABEL])

        def place(row: int) -> Where:
            """The line on which a row begins; looked for only where a row is refused."""
            text = block.decode("utf-8", errors="replace")
            lines = (at for cells, at in rows_of(text, self.file.delimiter) if cells)
            at = next(islice(lines, row + (line == 1), None), None)
            return Where(line=None if at is None else line + at - 1, file=self.file.path)

        return Batch({**columns, **self.constants}, place)

    def read_slowly(self, block: bytes, line: int, error: Exception) -> Batch:
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
            raise InputError(
                "the file cannot be read: {error}",
                where=Where(line=line, file=self.file.path),
                error=str(error),
                cure="Check the line: the file may be damaged.",
            ) from error
        kinds = {name: "string" if k == "string" else "float64" for name, k in self.kinds.items()}
        try:
            arrays = {n: pyarrow.array(columns[n], pyarrow.type_for_alias(kinds[n])) for n in kinds}
        except UnicodeError:
            self._require_text(block, line)
            raise
        return self._batch(arrays, block, line)

    def _require_text(self, block: bytes, line: int) -> None:
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            number = line + block.count(b"\n", 0, error.start)
            raise InputError(
                "the text must be in UTF-8",
                seen=f"{block[error.start]:#x}",
                where=Where(line=number, file=self.file.path),
                saying="it has the byte {byte}",
                byte=f"{block[error.start]:#x}",
                cure="Convert the file first.",
            ) from error

    def _rows(self, block: bytes, line: int) -> Iterator[tuple[list[str], Where]]:
        text = block.decode("utf-8", errors="surrogateescape")
        for row, number in rows_of(text, self.file.delimiter):
            if not row or line + number == 2:  # the first line of all has the names
                continue
            where = Where(line=line + number - 1, file=self.file.path)
            if len(row) != len(self.header):
                raise InputError(
                    "every line must have {fields} fields, as the first has",
                    seen=len(row),
                    where=where,
                    saying="one has {}",
                    fields=len(self.header),
                    cure="Quote a field that holds the separator, or name the separator.",
                )
            yield row, where

    def _meant(self, cell: str, name: str, where: Where) -> float:
        """The number that text stands for, if any."""
        alias = next(alias for alias, each in self.names.items() if each == name)
        is_prediction = alias.startswith(PROB)
        if is_prediction and self.request.form == "percent":
            value = self._as_number(without_sign(cell), name)
            if value is not None:
                return value
        if self.request.on_invalid == "drop":
            return self.request.unreadable(PROB if is_prediction else LABEL)
        raise refused_text(alias, name, cell, where)

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
        if self.decimal == ",":
            cell = cell.replace(",", ".")
        try:
            return None if "_" in cell else float(cell)
        except ValueError:
            return None


def refused_text(alias: str, name: str, cell: Any, where: Where) -> InputError:
    """The error for text where a number belongs, with what would read it."""
    argument = {LABEL: "y_true", WEIGHT: "sample_weight"}.get(alias, "y_prob")
    drop = Cure("To leave such rows out and count them, pass {drop}.", {"drop": _DROP})
    cures = [drop]
    if alias == LABEL:
        cures = [NAMED_LABELS]
    elif isinstance(cell, list):
        classes = Option("multiclass", "confidence")
        cures = [Cure("Lists of class probabilities are read with {option}.", {"option": classes})]
    elif alias.startswith(PROB) and str(cell).rstrip().endswith("%"):
        cures = [PERCENT_CURE]
    return InputError(
        "must hold numbers",
        argument=argument,
        seen=cell,
        where=replace(where, column=name),
        cure=cures,
    )


_DROP = Option("on_invalid", "drop")


def _as_labels(column: Any) -> Any:
    """Labels that are text in a file as what they are written as: numbers, truth values, or text."""
    pyarrow = require("pyarrow", caller="scan of CSV")
    if not pyarrow.types.is_string(column.type):
        return column
    values = [_label(value) for value in column.to_pylist()]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {float, bool}:
        return pyarrow.array(values if kinds != {float, bool} else list(map(_float, values)))
    return column


def _label(text: str | None) -> Any:
    if text is None or text in ("NA", "nan", "NaN", "null", "NULL", "N/A"):
        return None
    if text.lower() in WORDS:
        return bool(WORDS[text.lower()])
    try:
        return float(text)
    except ValueError:
        return text


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def without_empty(column: Any) -> Any:
    """Text in which an empty cell is missing, and nothing else is: "NA" may be a country."""
    compute = require("pyarrow.compute", caller="scan of CSV")
    filled = compute.binary_length(column).cast("bool")  # a scalar to compare with imports pandas
    if compute.all(filled).as_py():
        return column
    missing = require("pyarrow", caller="scan of CSV").nulls(len(column), column.type)
    return compute.if_else(filled, column, missing)
