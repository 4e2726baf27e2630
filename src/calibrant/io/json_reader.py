"""JSON lines: blocks read by Arrow, and by Python where Arrow cannot, or a line must be named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import Cure, Function, InputError, TypeName, Where
from calibrant.io.arrow_batches import Batch
from calibrant.io.csv_reader import refused_text
from calibrant.io.file_layout import layout, without_sign
from calibrant.io.find_files import DataFile
from calibrant.io.predictions import is_list_as_text
from calibrant.io.required_columns import LABEL, PROB, WEIGHT
from calibrant.io.scan_request import Request

__all__ = ["JsonParser", "flat"]

PEEK_LINES = 200
KIND_OF = {bool: "bool", int: "int64", float: "float64", str: "string"}
VALUES_OF = {"float64": int | float, "int64": int, "bool": bool, "string": str}


class JsonParser:
    """Reads blocks of one file of JSON lines; the first block says the kinds of the columns.

    A column of which the first block holds nothing but nulls has no kind: such files are read by
    Python, line by line, so that whatever comes later has its own.
    """

    def __init__(self, file: DataFile, block: bytes, request: Request) -> None:
        self.file, self.request = file, request
        self.json = require("pyarrow.json", caller="scan of JSON lines")
        kinds = _kinds(islice(_rows(block), PEEK_LINES))
        self.kinds: dict[str, str | None] = {}
        if not kinds:
            self.read_slowly(block, 1)  # names the first line that is no object
        wanted = [name for name in request.names() if name not in file.partitions]
        self.nested = any("." in name and name not in kinds for name in wanted)
        if self.nested or not all(kinds.get(name) for name in wanted):
            kinds = _kinds(map(flat, _rows(block)) if self.nested else _rows(block))
        self.names, self.constants = layout(file, list(kinds), request)
        numbers = {self.names[a] for a in self.names if a.startswith(PROB) or a == WEIGHT}
        self.label = self.names[LABEL]
        self.lists = {name for name in numbers if request.multiclass and list in kinds[name]}
        if request.multiclass is not None:
            numbers -= self._lists_as_text(block)
        self.kinds = {
            name: "float64" if name in numbers else self._kind(name, kinds[name])
            for name in self.names.values()
            if name != self.label
        }
        self.kinds[self.label] = "bool" if bool in kinds[self.label] else "float64"
        if request.named_labels:
            self.kinds[self.label] = self._kind(self.label, kinds[self.label])

    def _lists_as_text(self, block: bytes) -> set[str]:
        """Columns of class probabilities that hold lists, written as text."""
        names = {self.names[alias] for alias in self.request.prob_aliases}
        rows = list(islice(map(flat, _rows(block)), PEEK_LINES))
        return {n for n in names if any(is_list_as_text(row.get(n)) for row in rows)}

    def _kind(self, name: str, kinds: set[type]) -> str | None:
        if kinds - KIND_OF.keys():
            nested = " or ".join(sorted(kind.__name__ for kind in kinds - KIND_OF.keys()))
            raise InputError(
                "column {column} must hold plain values",
                seen=nested,
                where=Where(column=name, file=self.file.path),
                saying="it holds {nested}",
                nested=nested,
                column=repr(name),
                cure="Name a field inside it with dots, such as {inside}."
                if "dict" in nested
                else (),
                inside=f"{name}.FIELD",
            )
        if kinds == {int, float}:
            return "float64"
        return KIND_OF[next(iter(kinds))] if len(kinds) == 1 else "string" if kinds else None

    def parse(self, block: bytes, line: int) -> Batch:
        """The columns that are read, under the names of the request."""
        import pyarrow

        if self.nested or None in self.kinds.values():
            return self.read_slowly(block, line)
        schema = pyarrow.schema([(name, self._arrow_kind(name)) for name in self.kinds])
        table = self.json.read_json(
            pyarrow.BufferReader(block),
            read_options=self.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=self.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        return self._batch({name: table[name] for name in self.kinds}, block, line)

    def _arrow_kind(self, name: str) -> Any:
        import pyarrow

        kind = pyarrow.type_for_alias(self.kinds[name] or "null")
        return pyarrow.list_(kind) if name in self.lists else kind

    def _batch(self, columns: Mapping[str, Any], block: bytes, line: int) -> Batch:
        def place(row: int) -> Where:
            numbers = (n for n, text in enumerate(block.split(b"\n"), line) if text.strip())
            return Where(line=next(islice(numbers, row, None), None), file=self.file.path)

        return Batch({a: columns[name] for a, name in self.names.items()} | self.constants, place)

    def read_slowly(self, block: bytes, line: int, error: Exception | None = None) -> Batch:
        """The same with Python's reader, which knows NaN and Infinity and the line of an error."""
        import pyarrow

        columns: dict[str, list[Any]] = {name: [] for name in self.kinds}
        for number, text in enumerate(block.split(b"\n"), start=line):
            if text.strip():
                row = self._row(text, Where(line=number, file=self.file.path))
                for name, values in columns.items():
                    values.append(row.get(name))
        arrays = {name: self._array(pyarrow, name, values) for name, values in columns.items()}
        return self._batch(arrays, block, line)

    def _array(self, pyarrow: Any, name: str, values: list[Any]) -> Any:
        kind = self.kinds[name] or self._kind(name, {type(v) for v in values if v is not None})
        is_label = name == self.label and not self.request.named_labels
        kind = "float64" if is_label else kind
        arrow_kind = self._arrow_kind(name) if name in self.lists else None
        try:
            return pyarrow.array(values, type=arrow_kind or pyarrow.type_for_alias(kind or "null"))
        except (ValueError, TypeError, OverflowError) as error:  # Arrow's are of these kinds
            raise InputError(
                "column {column} must hold values of one kind: {error}",
                where=Where(column=name, file=self.file.path),
                column=repr(name),
                error=str(error),
                cure="Write its values in one type.",
            ) from error

    def _row(self, text: bytes, where: Where) -> dict[str, Any]:
        try:
            row: Any = json_of(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                "each line must hold a JSON object: {error}",
                where=where,
                error=str(error),
                cure="Write one object a line, or check the line.",
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                "each line must hold a JSON object",
                seen=TypeName.of(row),
                where=where,
                saying="one holds a {kind}",
                kind=type(row).__name__,
                cure="Write one object a line, or check the line.",
            )
        if self.nested:
            row = flat(row)
        return self._checked(row, where)

    def _checked(self, row: dict[str, Any], where: Where) -> dict[str, Any]:
        """The row with what its values stand for, or the error that names the line."""
        for name, kind in self.kinds.items():
            value = row.get(name)
            if value is None or kind is None:
                continue
            if name in self.lists and isinstance(value, list):
                continue
            if name == self.label and isinstance(value, int | float):
                row[name] = float(value) if isinstance(value, bool) else value
                continue
            is_wrong_bool = isinstance(value, bool) and kind != "bool"
            if is_wrong_bool or not isinstance(value, VALUES_OF[kind]):
                row[name] = self._read_as_number(name, kind, value, where)
        return row

    def _read_as_number(self, name: str, kind: str, value: Any, where: Where) -> Any:
        """What a wrong value stands for, where that is clear; otherwise it is refused."""
        alias = next(alias for alias, each in self.names.items() if each == name)
        is_prediction = alias.startswith(PROB) and isinstance(value, str)
        if alias == LABEL and self.request.named_labels:
            return str(value)
        if is_prediction and self.request.form == "percent":
            try:
                return float(without_sign(value))
            except ValueError:
                pass
        is_number = alias.startswith(PROB) or alias in (LABEL, WEIGHT)
        if self.request.on_invalid == "drop" and is_number:
            return self.request.unreadable(alias)
        if is_number:
            error = refused_text(alias, name, value, where)
            if is_prediction:
                answers = {"read": Function("read.answers.read_answers")}
                logs = Cure("A log of a language model's answers is read with {read}.", answers)
                error = error.but(cures=(error.hint or "", logs))
            raise error
        raise InputError(
            "column {column} must hold values of one kind, {kind}",
            seen=value,
            where=where,
            column=repr(name),
            kind=kind,
            cure="Write its values in one type.",
        )


def _rows(block: bytes) -> Iterator[dict[str, Any]]:
    for line in block.splitlines():
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue  # reported with its line when the block is read
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


def _kinds(rows: Iterator[dict[str, Any]]) -> dict[str, set[type]]:
    """The Python types of each column's values; none where all of them are null."""
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set())
            if value is not None:
                kinds[name].add(type(value))
    return kinds
