"""CSV and JSON lines: blocks of whole lines, parsed by Arrow, and by Python where Arrow cannot."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.io.arrow import Batch
from calibrant.io.files import (
    LONGEST_LINE,
    DataFile,
    GroupTypes,
    Job,
    damaged_file,
    file_format,
    layout,
)
from calibrant.io.predictions import is_list_as_text
from calibrant.io.request import LABEL, PROB, WEIGHT, Request, numberless

__all__ = ["CsvFile", "JsonLinesFile", "Quotes", "flat"]

BLOCK_BYTES = 1 << 22
"""Bytes of a block, 4 MB: parsed, it takes some twenty times that."""
PEEK_BYTES, PEEK_ROWS = 1 << 20, 1000
TRUTH = {"true": 1.0, "false": 0.0}
"""Labels that are no numbers."""
QUOTE, LINE_ENDS = 0x22, (0x0A, 0x0D)
Columns = Mapping[str, Any]


class _TextFile:
    """File of text, read in blocks of whole lines."""

    names: list[str]

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

    def prepare(self, request: Request) -> None:
        """Look further for columns that the beginning of the file lacks."""

    def parser(self, request: Request) -> tuple[dict[str, Any], Callable[[bytes], Columns]]:
        """Arrow types of the columns by alias, and what reads a block as columns by alias."""
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
            if piece.startswith((b"\xff\xfe", b"\xfe\xff")):
                hint = "Convert it with `iconv -f UTF-16 -t UTF-8`."
                raise InputError("Text must be in UTF-8; this is UTF-16.", hint=hint)
            while piece:
                if b"\0" in piece:  # it would end a line for one reader and not for another
                    raise InputError("Text must not hold a NUL byte.")
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

    def jobs(self, request: Request, groups: GroupTypes) -> Iterator[Job]:
        """Jobs in order, one a block."""
        with damaged_file(self.file):
            self.prepare(request)
            self.columns, constants = layout(self.file, self.names, request)
            types, parse = self.parser(request)
        types |= {a: self.pyarrow.array([value]).type for a, value in constants.items()}
        aliases = zip(request.groups, request.group_aliases, strict=True)
        groups.require(self.file, {name: types[alias] for name, alias in aliases})

        def rows_before(number: int) -> int:
            return sum(self.rows_in(block) for block in islice(self.blocks(), number))

        def read(block: bytes, number: int) -> Iterator[Batch]:
            try:
                with damaged_file(self.file):
                    columns = parse(block)
            except InputError as error:
                row = None if error.row is None else rows_before(number) + error.row
                raise error.at(row=row) from error
            first = lambda: rows_before(number)  # noqa: E731
            yield Batch({**columns, **constants}, first, self.file.path)

        for number, block in enumerate(self.blocks()):
            yield Job(partial(read, block, number), len(block))


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
    counts = {other: first_line.count(other) for other in (";", "\t", "|")}
    most = max(counts, key=lambda other: counts[other])
    return most if counts[most] and "," not in first_line else ","


@file_format("csv", ".csv", ".tsv")
class CsvFile(_TextFile):
    """CSV: the first row has the names of the columns."""

    def __init__(self, file: DataFile) -> None:
        self.csv = require("pyarrow.csv", caller="scan of CSV")
        with file.stream() as stream:
            line = stream.read(1 << 16).lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0]
        is_tsv = ".tsv" in file.path.lower().rsplit("/", 1)[-1]
        detected = "\t" if is_tsv else separator_of(line.decode("utf-8", errors="replace"))
        self.delimiter = file.separator or detected
        self._header_end = 0
        super().__init__(file)

    def look_at(self, first: bytes) -> None:
        """Names of the columns, and the first rows as text."""
        start = len(first) - len(first.lstrip(b"\r\n"))
        self._header_end = start + Quotes(first[start:], self.delimiter).first_line_end()
        header = first[start : self._header_end].decode("utf-8", errors="replace")
        self.names = next(csv.reader(io.StringIO(header, newline=""), delimiter=self.delimiter))
        head = first[self._header_end :][:PEEK_BYTES]
        end = self.last_line_end(head) if len(head) == PEEK_BYTES else len(head)
        self.head: dict[str, list[str]] = {}
        if head[:end].strip():
            numbered = [str(k) for k in range(len(self.names))]
            with damaged_file(self.file):
                table = self._table(head[:end], self._binary(numbered), numbered, skip=True)
            for name, column in zip(self.names, table.slice(0, PEEK_ROWS).columns, strict=True):
                cells = column.to_pylist()
                self.head[name] = [(c or b"").decode("utf-8", errors="replace") for c in cells]

    def blocks(self) -> Iterator[bytes]:
        """Blocks, the first of them without the header once this is known."""
        for number, block in enumerate(super().blocks()):
            rows = block[self._header_end :] if number == 0 else block
            if rows:
                yield rows

    def last_line_end(self, block: bytes, *, is_last: bool = False) -> int:
        """End of the last whole line of a block; refuses quotes that would swallow lines."""
        if b'"' not in block:
            return block.rfind(b"\n") + 1
        quotes = Quotes(block, self.delimiter)
        end = quotes.last_line_end()
        is_open = is_last or (len(block) > LONGEST_LINE and not end)
        starts = quotes.goes_on(), quotes.never_closed() if is_open else -1
        for start, problem in zip(
            starts, ("goes on after its closing quote", "is never closed"), strict=True
        ):
            if start >= 0:
                text = block[start : start + 20].decode(errors="replace")
                raise InputError(
                    f"The quoted field that begins with {text!r} {problem} and would swallow rows.",
                    hint="Double a quote that is part of the text.",
                )
        return end

    def _binary(self, names: Iterable[str]) -> dict[str, Any]:
        return dict.fromkeys(names, self.pyarrow.binary())

    def _table(
        self,
        block: bytes,
        types: Mapping[str, Any],
        names: list[str] | None = None,
        *,
        decimal: str = ".",
        skip: bool = False,
    ) -> Any:
        """Columns of these types of a block without its header."""
        return self.csv.read_csv(
            self.pyarrow.BufferReader(block),
            read_options=self.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=names or self.names
            ),
            parse_options=self.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=b'"' in block,
                invalid_row_handler=(lambda _: "skip") if skip else None,
            ),
            convert_options=self.csv.ConvertOptions(
                column_types=types, include_columns=list(types), decimal_point=decimal
            ),
        )

    def rows_in(self, block: bytes) -> int:
        """Number of rows of a block."""
        numbered = [str(k) for k in range(len(self.names))]
        return int(self._table(block, self._binary(["0"]), numbered, skip=True).num_rows)

    def parser(self, request: Request) -> tuple[dict[str, Any], Callable[[bytes], Columns]]:
        """Arrow types of the columns by alias, and what reads a block as columns by alias."""
        aliases = self.columns
        numbers = {a: n for a, n in aliases.items() if a.startswith(PROB) or a == WEIGHT}
        if request.multiclass is not None:  # lists, written as text
            cells = {a: self.head.get(n, []) for a, n in numbers.items() if a.startswith(PROB)}
            numbers = {
                a: n for a, n in numbers.items() if not any(map(is_list_as_text, cells.get(a, [])))
            }
        text = [cell for name in numbers.values() for cell in self.head.get(name, [])]
        decimal = "," if has_decimal_commas(text, self.delimiter) else "."
        kinds = dict.fromkeys(aliases.values(), self.pyarrow.string())
        kinds |= dict.fromkeys(numbers.values(), self.pyarrow.float64())
        if not request.named_labels:
            numbers[LABEL] = name = aliases[LABEL]
            # Arrow reads labels as true and false, if some of the first are such words; others Python.
            words = any(cell.lower() in TRUTH for cell in self.head.get(name, []))
            kinds[name] = self.pyarrow.bool_() if words else self.pyarrow.float64()

        def parse(block: bytes) -> Columns:
            try:
                table = self._table(block, kinds, decimal=decimal)
                columns = {alias: table[name] for alias, name in aliases.items()}
            except self.pyarrow.ArrowInvalid:
                columns = self._by_cell(block, numbers, request, decimal)
            for alias in aliases.keys() - numbers.keys():
                is_label = alias == LABEL
                columns[alias] = (
                    self._as_labels(columns[alias]) if is_label else self._filled(columns[alias])
                )
            return columns

        return {alias: kinds[name] for alias, name in aliases.items()}, parse

    def _by_cell(
        self, block: bytes, numbers: Mapping[str, str], request: Request, decimal: str
    ) -> dict[str, Any]:
        """Columns by alias, where numbers are read cell by cell.

        Text where a number belongs is refused, unless it is a percentage that is meant as one or invalid
        rows are to be dropped.
        """
        strings = dict.fromkeys(self.columns.values(), self.pyarrow.string())
        try:
            table = self._table(block, strings)
        except self.pyarrow.ArrowInvalid as error:
            named = re.search(r"Row #([0-9]{1,18})", str(error))
            at = None if named is None else int(named[1]) - 1
            raise InputError(
                f"The file cannot be read: {show_value(re.sub(r'Row #[0-9]+: ?', '', str(error)))}.",
                hint="Quote a field that holds the separator, or name this with `sep=`; write in UTF-8.",
            ).at(row=at) from error
        nulls = set(self.csv.ConvertOptions().null_values)
        columns = {alias: table[name] for alias, name in self.columns.items()}
        for alias, name in numbers.items():
            values: list[float | None] = []
            for row, cell in enumerate(columns[alias].to_pylist()):
                number = None if cell in nulls else _number(cell, alias, request, decimal)
                if number is None and cell not in nulls:
                    problem = f"has {show_value(cell)} in row {row}"
                    raise numberless(alias, name, problem, text=cell, row=row)
                values.append(number)
            columns[alias] = self.pyarrow.array(values, self.pyarrow.float64())
        return columns

    def _filled(self, column: Any) -> Any:
        """Text in which an empty cell is missing, and nothing else is: "NA" may be a country."""
        compute = require("pyarrow.compute", caller="scan of CSV")
        filled = compute.binary_length(column).cast(
            "bool"
        )  # a scalar to compare with imports pandas
        if compute.all(filled).as_py():
            return column
        return compute.if_else(filled, column, self.pyarrow.nulls(len(column), column.type))

    def _as_labels(self, column: Any) -> Any:
        """Labels as what they are written as: numbers, truth values, or text."""
        values = [_label(value) for value in column.to_pylist()]
        kinds = {type(value) for value in values if value is not None}
        if kinds <= {float, bool}:
            both = kinds == {float, bool}
            return self.pyarrow.array([v if v is None or not both else float(v) for v in values])
        return self._filled(column)

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""
        text = [cell for cells in self.head.values() for cell in cells]
        decimal = "," if has_decimal_commas(text, self.delimiter) else "."
        content = b"".join(self.blocks())
        with damaged_file(self.file):
            return self.csv.read_csv(
                self.pyarrow.BufferReader(content),
                read_options=self.csv.ReadOptions(column_names=self.names),
                parse_options=self.csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True
                ),
                convert_options=self.csv.ConvertOptions(decimal_point=decimal),
            )


def has_decimal_commas(cells: Iterable[str], delimiter: str) -> bool:
    """Numbers are written as 0,85: only where a comma does not end a field.

    Examples
    --------
    >>> has_decimal_commas(["0,85", "a,b"], ";"), has_decimal_commas(["0,85", "0.9"], ";")
    (True, False)
    """
    cells = list(cells)
    return (
        delimiter != ","
        and any(_WITH_COMMA.fullmatch(cell) for cell in cells)
        and not any(_WITH_POINT.fullmatch(cell) for cell in cells)
    )


def _number(cell: str, alias: str, request: Request, decimal: str) -> float | None:
    """Number that a cell spells; out of range where it spells none and such rows are to be dropped."""
    is_prediction = alias.startswith(PROB)
    text = cell.strip().lower()
    if alias == LABEL and text in TRUTH:
        return TRUTH[text]
    if is_prediction and request.form == "percent":
        text = text.removesuffix("%").rstrip()
    try:
        if text.isascii() and "_" not in text:
            return float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        pass
    if request.on_invalid == "drop":
        return request.unreadable(PROB if is_prediction else LABEL)
    return None


def _label(text: str | None) -> Any:
    if text is None or text in ("", "NA", "nan", "NaN", "null", "NULL", "N/A"):
        return None
    if text.lower() in TRUTH:
        return bool(TRUTH[text.lower()])
    try:
        return float(text) if text.isascii() else text
    except ValueError:
        return text


class Quotes:
    r"""Quoted stretches of a piece of CSV that begins with a line.

    A quote opens a field only at its beginning; anywhere else it is a character like any other. Inside a
    quoted field two quotes stand for one, and a line break is part of the field.

    Attributes
    ----------
    opened, closed : int64 arrays
        Places of the quotes that begin and end each stretch. A doubled quote ends one and begins the
        next; where the last one is not closed, `opened` is longer by one.

    Examples
    --------
    >>> Quotes(b'a,"b\nc"\nd,"e\n', ",").last_line_end()
    8
    """

    def __init__(self, piece: bytes, delimiter: str) -> None:
        self.piece = piece
        self._bytes = np.frombuffer(piece, np.uint8)
        self._borders = np.zeros(256, np.bool_)
        self._borders[[QUOTE, *delimiter.encode(), *LINE_ENDS]] = True
        marks = np.flatnonzero(self._bytes == QUOTE)
        self.opened, self.closed = marks[::2], marks[1::2]
        starts = self._borders[self._bytes[self.opened - 1]] | (self.opened == 0)
        if not starts.all():
            self.opened, self.closed = _walked(piece, delimiter)

    def never_closed(self) -> int:
        """Start of the field whose quote is still open at the end, or -1."""
        is_open = len(self.opened) > len(self.closed)
        return self._field(len(self.opened) - 1) if is_open else -1

    def goes_on(self) -> int:
        """Start of the first field that goes on after its closing quote, or -1.

        So does a field whose quote was forgotten, at the opening quote of another, lines later.
        """
        ends = self.closed[self.closed + 1 < len(self.piece)]
        stray = ~self._borders[self._bytes[ends + 1]]
        return self._field(int(np.argmax(stray))) if stray.any() else -1

    def first_line_end(self) -> int:
        """End of the first line."""
        end = self.piece.find(b"\n")
        while end >= 0 and (stretch := self._around(end)) is not None:
            end = self.piece.find(b"\n", stretch[1])
        return end + 1 if end >= 0 else len(self.piece)

    def last_line_end(self) -> int:
        """End of the last line that is whole; 0 if none is."""
        end = self.piece.rfind(b"\n")
        while end >= 0 and (stretch := self._around(end)) is not None:
            end = self.piece.rfind(b"\n", 0, stretch[0])
        return end + 1

    def _around(self, place: int) -> tuple[int, int] | None:
        """Quoted stretch that holds a place."""
        k = int(np.searchsorted(self.opened, place, side="right")) - 1
        if k < 0 or (k < len(self.closed) and self.closed[k] < place):
            return None
        end = int(self.closed[k]) if k < len(self.closed) else len(self.piece)
        return int(self.opened[k]), end

    def _field(self, place: int) -> int:
        """Start of the field of a stretch."""
        while place and self.opened[place] == self.closed[place - 1] + 1:  # a doubled quote
            place -= 1
        return int(self.opened[place])


def _walked(piece: bytes, delimiter: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Stretches where some quotes are characters like any other: one quote after the other."""
    opened: list[int] = []
    closed: list[int] = []
    starts = (*delimiter.encode(), *LINE_ENDS)
    mark = piece.find(b'"')
    while mark >= 0:
        doubled = bool(closed) and closed[-1] == mark - 1
        if doubled or mark == 0 or piece[mark - 1] in starts:
            opened.append(mark)
            mark = piece.find(b'"', mark + 1)
            if mark >= 0:
                closed.append(mark)
        mark = piece.find(b'"', mark + 1) if mark >= 0 else -1
    return np.array(opened, dtype=np.int64), np.array(closed, dtype=np.int64)


# -- JSON lines --------------------------------------------------------------------------------

PEEK_LINES = 200
_KIND_OF = {bool: "bool", int: "int64", float: "float64", str: "string"}


@file_format("jsonl", ".jsonl", ".ndjson")
class JsonLinesFile(_TextFile):
    """JSON lines: the first block says the types of the columns.

    A column of which the first block holds nothing but nulls has no type: such files are read by Python, line
    by line, so that whatever comes later has its own. Fields inside objects have names with dots.
    """

    def look_at(self, first: bytes) -> None:
        """Names of the columns, and the types of their values in the first lines."""
        self.first = first
        self.kinds = _kinds(islice(_rows(first), PEEK_LINES))
        if not self.kinds:
            for row, text in enumerate(filter(bytes.strip, first.split(b"\n"))):
                _object(text, row)  # refuses the first line that is no object
        inside = _kinds(map(flat, islice(_rows(first), PEEK_LINES)))
        self.names = list(dict.fromkeys([*self.kinds, *inside]))

    def prepare(self, request: Request) -> None:
        """Look for columns in all of the first block, where its first lines lack values."""
        wanted = [name for name in request.names() if name not in self.file.partitions]
        self.nested = any("." in name and name not in self.kinds for name in wanted)
        if self.nested or not all(self.kinds.get(name) for name in wanted):
            rows = _rows(self.first)
            self.kinds = _kinds(map(flat, rows) if self.nested else rows)
            self.names = list(self.kinds)

    def rows_in(self, block: bytes) -> int:
        """Number of lines that are not blank."""
        return sum(1 for line in block.split(b"\n") if line.strip())

    def parser(self, request: Request) -> tuple[dict[str, Any], Callable[[bytes], Columns]]:
        """Arrow types of the columns by alias, and what reads a block as columns by alias."""
        json = require("pyarrow.json", caller="scan of JSON lines")
        kinds = {name: self._type_of(alias, name, request) for alias, name in self.columns.items()}

        def parse(block: bytes) -> Columns:
            if self.nested or self.pyarrow.null() in kinds.values():
                return self._by_line(block, kinds, request)
            try:
                table = json.read_json(
                    self.pyarrow.BufferReader(block),
                    read_options=json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                    parse_options=json.ParseOptions(
                        explicit_schema=self.pyarrow.schema(kinds.items()),
                        unexpected_field_behavior="ignore",
                    ),
                )
            except self.pyarrow.ArrowInvalid:
                return self._by_line(block, kinds, request)
            return {alias: table[name] for alias, name in self.columns.items()}

        return {alias: kinds[name] for alias, name in self.columns.items()}, parse

    def _type_of(self, alias: str, name: str, request: Request) -> Any:
        """Arrow type of a column, by what its first lines hold."""
        seen = self.kinds[name]
        if alias == LABEL and not request.named_labels:
            return self.pyarrow.bool_() if bool in seen else self.pyarrow.float64()
        if alias.startswith(PROB) and request.multiclass is not None:
            if list in seen:
                return self.pyarrow.list_(self.pyarrow.float64())
            if any(
                is_list_as_text(flat(row).get(name))
                for row in islice(_rows(self.first), PEEK_LINES)
            ):
                return self.pyarrow.string()
        if alias.startswith(PROB) or alias == WEIGHT:
            return self.pyarrow.float64()
        return self._plain_type(name, seen)

    def _plain_type(self, name: str, seen: set[type]) -> Any:
        nested = " or ".join(sorted(kind.__name__ for kind in seen - _KIND_OF.keys()))
        if nested:
            raise InputError(
                f"Column {name!r} must hold plain values; it holds {nested}.",
                hint=f"Name a field inside it with dots, such as {name}.FIELD."
                if "dict" in nested
                else None,
            )
        if seen == {int, float}:
            return self.pyarrow.float64()
        kind = _KIND_OF[next(iter(seen))] if len(seen) == 1 else "string" if seen else "null"
        return self.pyarrow.type_for_alias(kind)

    def _by_line(self, block: bytes, kinds: Mapping[str, Any], request: Request) -> dict[str, Any]:
        """Columns by Python's reader, which knows NaN and Infinity, and the row of an error."""
        columns: dict[str, list[Any]] = {alias: [] for alias in self.columns}
        for row, text in enumerate(filter(bytes.strip, block.split(b"\n"))):
            fields = _object(text, row)
            fields = flat(fields) if self.nested else fields
            for alias, name in self.columns.items():
                value, kind = fields.get(name), str(kinds[name])
                if alias == LABEL and request.named_labels:
                    value = str(value) if kind == "string" and value is not None else value
                elif alias in request.columns and kind in ("double", "bool"):
                    value = self._number(value, alias, request, row)
                columns[alias].append(value)
        arrays = {}
        for alias, values in columns.items():
            name = self.columns[alias]
            kind = kinds[name]
            if alias == LABEL and not request.named_labels:
                kind = self.pyarrow.float64()
            elif alias == LABEL or alias not in request.columns:
                kind = self._common_type(name, kind, values)
            try:
                arrays[alias] = self.pyarrow.array(values, kind)
            except (ValueError, TypeError, OverflowError) as error:  # Arrow's are of these kinds
                raise InputError(
                    f"Column {name!r} must hold values of one type: {show_value(str(error))}."
                ) from error
        return arrays

    def _common_type(self, name: str, kind: Any, values: list[Any]) -> Any:
        """Type of a block's values, which must be that of the column; Arrow would cut 1.5 to 1."""
        null, whole = self.pyarrow.null(), self.pyarrow.int64()
        found = self._plain_type(name, {type(value) for value in values if value is not None})
        if kind == null or found == null:
            return found
        if found != kind and not (found == whole and kind == self.pyarrow.float64()):
            raise InputError(
                f"Column {name!r} must hold values of one type; it holds {kind} and {found}."
            )
        return kind

    def _number(self, value: Any, alias: str, request: Request, row: int) -> Any:
        """Number of a field, or of a percentage as text; out of range where such rows are to be dropped."""
        if value is None or isinstance(value, float):
            return value
        if isinstance(value, int) and (alias == LABEL or not isinstance(value, bool)):
            return float(value) if isinstance(value, bool) else value
        text = value if isinstance(value, str) else ""
        if text and alias.startswith(PROB) and request.form == "percent":
            number = _number(text, alias, request, ".")
            if number is not None:
                return number
        if request.on_invalid == "drop":
            return request.unreadable(alias)
        problem = f"has {show_value(value)} in row {row}"
        nested = isinstance(value, list)
        raise numberless(alias, self.columns[alias], problem, nested=nested, text=text, row=row)

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""
        json_reader = require("pyarrow.json", caller="reading rows")
        content = b"".join(self.blocks())
        with damaged_file(self.file):
            table = json_reader.read_json(self.pyarrow.BufferReader(content))
            table.validate(full=True)
            return table.rename_columns(table.schema.names)  # fails where a name is no UTF-8


def _object(text: bytes, row: int) -> dict[str, Any]:
    try:
        value = json_of(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"Each line must hold a JSON object; row {row} does not: {show_value(str(error))}.",
            row=row,
        ) from error
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise InputError(f"Each line must hold a JSON object; row {row} is a {kind}.", row=row)
    return value


def _rows(block: bytes) -> Iterator[dict[str, Any]]:
    """Objects of a block; lines that are none are refused when the block is read."""
    for line in block.splitlines():
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Fields of objects inside objects by names with dots.

    Examples
    --------
    >>> flat({"id": 1, "scores": {"p": 0.7, "by": {"judge": 1}}})
    {'id': 1, 'scores.p': 0.7, 'scores.by.judge': 1}
    """
    fields: dict[str, Any] = {}
    inside = [("", iter(row.items()))]  # not by recursion: data says how deep it goes
    while inside:
        start, rest = inside[-1]
        name, value = next(rest, (None, None))
        if name is None:
            inside.pop()
        elif isinstance(value, dict):
            inside.append((f"{start}{name}.", iter(value.items())))
        else:
            fields[f"{start}{name}"] = value
    return fields


def _kinds(rows: Iterable[dict[str, Any]]) -> dict[str, set[type]]:
    """Python types of each column's values; none where all of them are null."""
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set())
            if value is not None:
                kinds[name].add(type(value))
    return kinds
