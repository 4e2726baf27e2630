"""CSV and JSON lines, compressed or not: blocks of whole lines, which Arrow parses in threads.

What Arrow cannot read as numbers, Python reads cell by cell: percentages, truth values, and the cell to name
in an error.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np

from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.io.arrow import batch_of_arrow
from calibrant.io.batches import Batch
from calibrant.io.files import LONGEST_LINE, DataFile, Job, damaged_file, file_format, layout
from calibrant.io.predictions import is_list_as_text
from calibrant.io.request import LABEL, PROB, WEIGHT, Request, numberless

BLOCK_BYTES = 1 << 22
"""Bytes of a block, 4 MB: parsed, it takes some twenty times that."""
PEEK_LINES = 1000
"""Lines at the beginning by which a file says how it writes numbers."""
TRUTH = {"true": 1.0, "false": 0.0}
"""Labels that are no numbers."""
Columns = Mapping[str, Any]


class _TextFile:
    """File of text, read in blocks of whole lines."""

    names: list[str]
    columns: Mapping[str, str]

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.pyarrow = require("pyarrow", caller="scan of text files")
        first = next(self.blocks(), b"")
        if not first.strip():
            raise InputError(f"{file.path} must not be empty; it has no lines.", file=file.path)
        self.look_at(first)

    def look_at(self, first: bytes) -> None:
        """Names of the columns, from the first block."""
        raise NotImplementedError

    def parser(self, request: Request) -> Callable[[bytes], Columns]:
        """Function that reads a block as columns by alias."""
        raise NotImplementedError

    def rows_in(self, block: bytes) -> int:
        """Number of rows of a block."""
        raise NotImplementedError

    def last_line_end(self, block: bytes, *, is_last: bool = False) -> int:
        """End of the last whole line of a block; 0 if there is none."""
        return block.rfind(b"\n") + 1

    def blocks(self) -> Iterator[bytes]:
        """Blocks that end with a line, without a byte-order mark."""
        rest = b""
        with damaged_file(self.file), self.file.stream() as stream:
            piece = stream.read(BLOCK_BYTES).removeprefix(b"\xef\xbb\xbf")
            while piece:
                if b"\0" in piece:  # it would end a line for one reader and not for another
                    raise InputError(
                        "Text must be in UTF-8; it holds a NUL byte.",
                        hint="Save it as UTF-8 first.",
                    )
                block = rest + piece
                end = self.last_line_end(block)
                if end:
                    yield block[:end]
                elif len(block) > LONGEST_LINE:
                    raise InputError(
                        f"A line must end, with a line feed, within {LONGEST_LINE >> 20} MB."
                    )
                rest = block[end:]
                piece = stream.read(BLOCK_BYTES)
            if rest.strip():
                self.last_line_end(rest, is_last=True)
                yield rest

    def jobs(self, request: Request) -> Iterator[Job]:
        """Jobs in order, one a block."""
        with damaged_file(self.file):
            self.columns, constants = layout(self.file, self.names, request)
            parse = self.parser(request)

        def rows_before(number: int) -> int:
            return sum(self.rows_in(block) for block in islice(self.blocks(), number))

        def read(block: bytes, number: int) -> Iterator[Batch]:
            try:
                with damaged_file(self.file):
                    columns = parse(block)
            except InputError as error:
                row = None if error.row is None else rows_before(number) + error.row
                raise error.at(row=row) from error
            first = partial(rows_before, number)
            yield batch_of_arrow({**columns, **constants}, request, first, self.file.path)

        for number, block in enumerate(self.blocks()):
            yield Job(partial(read, block, number), len(block))

    def numbers(
        self,
        values: Iterable[Any],
        alias: str,
        request: Request,
        number: Callable[[Any], float | None],
    ) -> Any:
        """Column of numbers; what is none is out of range where such rows are to be dropped."""
        found: list[float | None] = []
        for row, value in enumerate(values):
            read = None if value is None else number(value)
            if read is None and value is not None:
                if request.on_invalid == "raise":
                    problem, text = f"has {show_value(value)} in row {row}", str(value)
                    nested = isinstance(value, list)
                    name = self.columns[alias]
                    raise numberless(alias, name, problem, nested=nested, text=text, row=row)
                read = request.unreadable(alias)
            found.append(read)
        return self.pyarrow.array(found, self.pyarrow.float64())


def _number(cell: str, alias: str, request: Request, decimal: str = ".") -> float | None:
    """Number that a cell spells, or None."""
    text = cell.strip().lower()
    if alias == LABEL and text in TRUTH:
        return TRUTH[text]
    if alias.startswith(PROB) and request.form == "percent":
        text = text.removesuffix("%").rstrip()
    with suppress(ValueError):
        if text.isascii() and "_" not in text:
            return float(text.replace(",", ".") if decimal == "," else text)
    return None


# -- CSV ---------------------------------------------------------------------------------------

_WITH_COMMA, _WITH_POINT = (
    re.compile(rf"\s*[-+]?\d*{mark}\d+(e[-+]?\d+)?%?\s*", re.I) for mark in (",", r"\.")
)


def separator_of(first_line: str) -> str:
    r"""Separator of the fields of a CSV: a comma, unless its first line has none and another that could be.

    Examples
    --------
    >>> separator_of("y,p;q"), separator_of("y;p"), separator_of("y\tp"), separator_of("p")
    (',', ';', '\t', ',')
    """
    most = max(";\t|", key=first_line.count)
    return most if most in first_line and "," not in first_line else ","


@file_format("csv", ".csv", ".tsv")
class CsvFile(_TextFile):
    """CSV: the first row has the names of the columns."""

    def __init__(self, file: DataFile) -> None:
        self.csv = require("pyarrow.csv", caller="scan of CSV")
        is_tsv = ".tsv" in file.path.lower().rsplit("/", 1)[-1]
        self.delimiter = file.separator or ("\t" if is_tsv else "")  # or as the first line says
        self._header_end = 0
        super().__init__(file)

    def look_at(self, first: bytes) -> None:
        """Names of the columns, and the first rows as text."""
        lines = (line.decode("utf-8", errors="replace") for line in BytesIO(first))
        reader = csv.reader(lines, delimiter=self.delimiter)
        with damaged_file(self.file):
            self.names = next(filter(None, reader))
        self._header_end = sum(map(len, islice(BytesIO(first), reader.line_num)))
        rows: list[list[str]] = []
        with suppress(csv.Error):  # of a cell that is too long for Python's reader
            rows.extend(islice(reader, PEEK_LINES))
        columns = zip(*(row for row in rows if len(row) == len(self.names)), strict=True)
        self.head: dict[str, tuple[str, ...]] = dict(zip(self.names, columns, strict=False))

    def blocks(self) -> Iterator[bytes]:
        """Blocks, the first of them without the header once this is known."""
        for number, block in enumerate(super().blocks()):
            rows = block[self._header_end :] if number == 0 else block
            if rows:
                yield rows

    def last_line_end(self, block: bytes, *, is_last: bool = False) -> int:
        """End of the last whole line of a block; refuses quotes that would swallow lines."""
        if not self.delimiter:
            line = block.lstrip(b"\r\n").split(b"\n", 1)[0]
            self.delimiter = separator_of(line.decode("utf-8", errors="replace"))
        if b'"' not in block:
            return block.rfind(b"\n") + 1
        text = np.frombuffer(block, np.uint8)
        borders = list(self.delimiter.encode() + b'\r\n"')
        marks = np.flatnonzero(text == ord('"'))
        begins = np.isin(text[marks - 1], borders) | (marks == 0)
        ends = np.isin(text[(marks + 1) % text.size], borders) | (marks + 1 == text.size)
        at_border = begins | ends  # others are text, as in 5" wide
        marks, begins, ends = marks[at_border], begins[at_border], ends[at_border]
        lines = np.flatnonzero(text == ord("\n"))
        outside = lines[np.searchsorted(marks, lines) % 2 == 0]
        end = int(outside[-1]) + 1 if outside.size else 0
        # Quotes open and close fields in turns; inside, two of them stand for one.
        is_open = np.arange(marks.size) % 2 == 0
        wrong = np.where(is_open, ~begins, ~ends) & (marks < (len(block) if is_last else end))
        if marks.size % 2 and (is_last or len(block) > LONGEST_LINE):
            wrong[-1] = True
        if wrong.any():
            place = int(np.argmax(wrong))
            start = int(marks[place - (not is_open[place])])
            raise InputError(
                f"The quoted field that begins with {block[start : start + 20].decode(errors='replace')!r} "
                "is never closed, or goes on after its closing quote, and would swallow rows.",
                hint="Double a quote that is part of the text.",
            )
        return end

    def _table(self, block: bytes, types: Mapping[str, Any], decimal: str = ".") -> Any:
        """Columns of these types of a block without its header."""
        return self.csv.read_csv(
            self.pyarrow.BufferReader(block),
            read_options=self.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=self.names
            ),
            parse_options=self.csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=b'"' in block
            ),
            convert_options=self.csv.ConvertOptions(
                column_types=types,
                include_columns=list(dict.fromkeys(self.columns.values())),
                decimal_point=decimal,
            ),
        )

    def rows_in(self, block: bytes) -> int:
        """Number of rows of a block."""
        binary = dict.fromkeys(self.columns.values(), self.pyarrow.binary())
        return int(self._table(block, binary).num_rows)

    def parser(self, request: Request) -> Callable[[bytes], Columns]:
        """Function that reads a block as columns by alias."""
        columns = self.columns
        numbers = [a for a in columns if a.startswith(PROB) or a == WEIGHT]
        if request.multiclass is not None:  # lists, written as text
            numbers = [a for a in numbers if not any(map(is_list_as_text, self._cells(a)))]
        decimal = self._decimal(cell for alias in numbers for cell in self._cells(alias))
        texts = dict.fromkeys(columns.values(), self.pyarrow.string())
        kinds = texts | {columns[alias]: self.pyarrow.float64() for alias in numbers}
        if request.named_labels:  # Arrow tells numbers, truth values and text apart
            del texts[columns[LABEL]], kinds[columns[LABEL]]
        else:
            numbers.append(LABEL)
            words = any(cell.lower() in TRUTH for cell in self._cells(LABEL))
            kinds[columns[LABEL]] = self.pyarrow.bool_() if words else self.pyarrow.float64()

        def parse(block: bytes) -> Columns:
            try:
                table = self._table(block, kinds, decimal)
                found = {alias: table[name] for alias, name in columns.items()}
            except self.pyarrow.ArrowInvalid:
                found = self._by_cell(block, texts, numbers, request, decimal)
            others = columns.keys() - set(numbers)
            return found | {alias: self._filled(found[alias]) for alias in others}

        return parse

    def _cells(self, alias: str) -> Iterable[str]:
        return self.head.get(self.columns[alias], ())

    def _decimal(self, cells: Iterable[str]) -> str:
        """Comma where numbers are written as 0,85: only where it does not end a field."""
        cells = list(cells)
        has_commas = any(map(_WITH_COMMA.fullmatch, cells))
        is_comma = (
            has_commas and self.delimiter != "," and not any(map(_WITH_POINT.fullmatch, cells))
        )
        return "," if is_comma else "."

    def _by_cell(
        self,
        block: bytes,
        texts: Mapping[str, Any],
        numbers: Iterable[str],
        request: Request,
        decimal: str,
    ) -> dict[str, Any]:
        """Columns by alias, where numbers are read cell by cell."""
        try:
            table = self._table(block, texts)
        except self.pyarrow.ArrowInvalid as error:
            named = re.search(r"Row #([0-9]{1,18}):? ?", str(error))
            text = str(error) if named is None else str(error).replace(named[0], "")
            raise InputError(
                f"The file cannot be read: {show_value(text)}.",
                hint="Quote a field that holds the separator, or name this with `sep=`; write in UTF-8.",
            ).at(row=None if named is None else int(named[1]) - 1) from error
        missing = set(self.csv.ConvertOptions().null_values)
        columns = {alias: table[name] for alias, name in self.columns.items()}
        for alias in numbers:
            cells = (None if c in missing else c for c in columns[alias].to_pylist())
            number = partial(_number, alias=alias, request=request, decimal=decimal)
            columns[alias] = self.numbers(cells, alias, request, number)
        return columns

    def _filled(self, column: Any) -> Any:
        """Text in which an empty cell is missing, and nothing else is: "NA" may be a country."""
        if str(column.type).startswith(("date", "time")):
            column = column.cast("string")
        if str(column.type) != "string":
            return column
        compute = require("pyarrow.compute", caller="scan of CSV")
        # A scalar to compare with would import pandas.
        filled = compute.binary_length(column).cast("bool")
        if compute.all(filled).as_py():
            return column
        return compute.if_else(filled, column, self.pyarrow.nulls(len(column), column.type))

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""
        decimal = self._decimal(cell for cells in self.head.values() for cell in cells)
        with damaged_file(self.file):
            return self.csv.read_csv(
                self.pyarrow.BufferReader(b"".join(self.blocks())),
                read_options=self.csv.ReadOptions(column_names=self.names),
                parse_options=self.csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True
                ),
                convert_options=self.csv.ConvertOptions(decimal_point=decimal),
            )


# -- JSON lines --------------------------------------------------------------------------------


@file_format("jsonl", ".jsonl", ".ndjson")
class JsonLinesFile(_TextFile):
    """JSON lines: the first ones say the types of the columns. Fields inside objects have names with dots.

    Columns whose first lines do not say one plain type are read by Python, line by line.
    """

    def look_at(self, first: bytes, most: int | None = PEEK_LINES) -> None:
        """Names of the columns, by the fields in the first lines."""
        lines = list(filter(bytes.strip, BytesIO(first)))
        self.sample: list[dict[str, Any]] = []
        for line in lines[:most]:
            with suppress(InputError):  # which is raised when its block is read
                self.sample.append(_object(line, 0))
        if not self.sample:
            _object(lines[0], 0)
        self.names = list(dict.fromkeys(n for row in self.sample for n in (*row, *dotted(row))))

    def jobs(self, request: Request) -> Iterator[Job]:
        """Jobs in order, one a block."""
        if not set(request.names()) <= {*self.names, *self.file.partitions}:  # it may begin late
            self.look_at(next(self.blocks()), None)
        return super().jobs(request)

    def rows_in(self, block: bytes) -> int:
        """Number of lines that are not blank."""
        return sum(1 for _ in filter(bytes.strip, block.split(b"\n")))

    def parser(self, request: Request) -> Callable[[bytes], Columns]:
        """Function that reads a block as columns by alias."""
        reader = require("pyarrow.json", caller="scan of JSON lines")
        top = {name for row in self.sample for name in row}
        kinds = {a: self._type_of(a, name, request) for a, name in self.columns.items()}
        is_plain = set(self.columns.values()) <= top and None not in kinds.values()
        fields = [(name, kinds[alias]) for alias, name in self.columns.items()]

        def parse(block: bytes) -> Columns:
            with suppress(self.pyarrow.ArrowInvalid):
                if is_plain:
                    table = reader.read_json(
                        self.pyarrow.BufferReader(block),
                        read_options=reader.ReadOptions(
                            use_threads=False, block_size=len(block) + 1
                        ),
                        parse_options=reader.ParseOptions(
                            explicit_schema=self.pyarrow.schema(fields),
                            unexpected_field_behavior="ignore",
                        ),
                    )
                    return {alias: table[name] for alias, name in self.columns.items()}
            return self._by_line(block, request)

        return parse

    def _type_of(self, alias: str, name: str, request: Request) -> Any:
        """Arrow type of a column, by its first values; None where Python must read it."""
        values = [v for row in self.sample if (v := field_of(row, name)) is not None]
        seen = {type(value) for value in values}
        if alias == LABEL and not request.named_labels:
            return self.pyarrow.bool_() if bool in seen else self.pyarrow.float64()
        if alias.startswith(PROB) and request.multiclass is not None:
            if list in seen:
                return self.pyarrow.list_(self.pyarrow.float64())
            if any(map(is_list_as_text, values)):
                return self.pyarrow.string()
        if alias.startswith(PROB) or alias == WEIGHT:
            return self.pyarrow.float64()
        try:
            return self.pyarrow.infer_type(values) if values else None
        except self.pyarrow.ArrowException:
            return None

    def _by_line(self, block: bytes, request: Request) -> dict[str, Any]:
        """Columns by Python's reader, which knows NaN and Infinity, and the row of an error."""
        lines = filter(bytes.strip, block.split(b"\n"))
        rows = [_object(line, row) for row, line in enumerate(lines)]
        columns = {}
        for alias, name in self.columns.items():
            values = [field_of(row, name) for row in rows]
            texts = request.named_labels if alias == LABEL else request.multiclass is not None
            if alias in request.columns and not (texts and alias != WEIGHT):
                number = partial(_of_field, alias=alias, request=request)
                columns[alias] = self.numbers(values, alias, request, number)
                continue
            try:
                columns[alias] = self.pyarrow.array(values)
            except (ValueError, TypeError, OverflowError) as error:  # Arrow's are of these kinds
                raise InputError(
                    f"Column {name!r} must hold values of one type: {show_value(str(error))}."
                ) from error
        return columns

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""
        reader = require("pyarrow.json", caller="reading rows")
        with damaged_file(self.file):
            table = reader.read_json(self.pyarrow.BufferReader(b"".join(self.blocks())))
            table.validate(full=True)
            return table.rename_columns(table.schema.names)  # fails where a name is no UTF-8


def _of_field(value: Any, alias: str, request: Request) -> float | None:
    """Number of a field, or of a percentage as text, or None."""
    if isinstance(value, str) and alias.startswith(PROB) and request.form == "percent":
        return _number(value, alias, request)
    if not isinstance(value, int | float) or (isinstance(value, bool) and alias != LABEL):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _object(text: bytes, row: int) -> dict[str, Any]:
    try:
        value = json_of(text)
    except (ValueError, RecursionError) as error:
        value = error
    if not isinstance(value, dict):
        problem = show_value(str(value)) if isinstance(value, Exception) else type(value).__name__
        raise InputError(
            f"Each line must hold a JSON object; row {row} does not: {problem}.", row=row
        )
    return value


def field_of(row: Any, name: str) -> Any:
    """Field by its name, or by a path such as "judge.confidence" or "choices.0.logprobs"; None without it."""
    if isinstance(row, dict) and name in row:
        return row[name]
    for part in name.split("."):
        if isinstance(row, list) and part.isdecimal() and len(part) < 10:
            row = row[int(part)] if int(part) < len(row) else None
        else:
            row = row.get(part) if isinstance(row, dict) else None
    return row


def dotted(row: dict[str, Any], start: str = "") -> Iterator[str]:
    """Names with dots of the fields of objects inside objects.

    Examples
    --------
    >>> list(dotted({"id": 1, "scores": {"p": 0.7, "by": {"judge": 1}}}))
    ['id', 'scores.p', 'scores.by.judge']
    """
    for name, value in row.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{start}{name}.")
        else:
            yield f"{start}{name}"
