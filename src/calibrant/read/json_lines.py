"""JSON lines: blocks read by Arrow, and by Python where Arrow cannot, or a line must be named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.read.find_files import DataFile
from calibrant.read.partitions import PER_CENT_CURE, layout, without_sign
from calibrant.read.request import LABEL, PROB, WEIGHT, Request

__all__ = ["JsonParser"]

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
        found = _kinds(islice(_rows(block), PEEK_LINES))
        self.kinds: dict[str, str | None] = {}
        if not found:
            self.read_slowly(block, 1)  # names the first line that is no object
        wanted = [name for name in request.names() if name not in file.partitions]
        if not all(found.get(name) for name in wanted):
            found = _kinds(_rows(block))
        self.names, self.constants = layout(file, list(found), request)
        numbers = {self.names[alias] for alias in (PROB, WEIGHT) if alias in self.names}
        self.label = self.names[LABEL]
        self.kinds = {
            name: "float64" if name in numbers else self._kind(name, found[name])
            for name in self.names.values()
            if name != self.label
        }
        self.kinds[self.label] = "bool" if bool in found[self.label] else "float64"

    def _kind(self, name: str, kinds: set[type]) -> str | None:
        if kinds - KIND_OF.keys():
            nested = " or ".join(sorted(kind.__name__ for kind in kinds - KIND_OF.keys()))
            raise InputError(
                f"column {name!r} of {self.file.path} must hold plain values; it holds {nested}."
            )
        if kinds == {int, float}:
            return "float64"
        return KIND_OF[next(iter(kinds))] if len(kinds) == 1 else "string" if kinds else None

    def parse(self, block: bytes, line: int) -> Mapping[str, Any]:
        """The columns that are read, under the names of the request."""
        import pyarrow

        if None in self.kinds.values():
            return self.read_slowly(block, line)
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

    def read_slowly(
        self, block: bytes, line: int, error: Exception | None = None
    ) -> Mapping[str, Any]:
        """The same with Python's reader, which knows NaN and Infinity and the line of an error."""
        import pyarrow

        columns: dict[str, list[Any]] = {name: [] for name in self.kinds}
        for number, text in enumerate(block.split(b"\n"), start=line):
            if text.strip():
                row = self._row(text, f"{self.file.path}, line {number}")
                for name, values in columns.items():
                    values.append(row.get(name))
        arrays = {name: self._array(pyarrow, name, values) for name, values in columns.items()}
        return {a: arrays[name] for a, name in self.names.items()} | self.constants

    def _array(self, pyarrow: Any, name: str, values: list[Any]) -> Any:
        kind = self.kinds[name] or self._kind(name, {type(v) for v in values if v is not None})
        kind = "float64" if name == self.label else kind
        try:
            return pyarrow.array(values, type=pyarrow.type_for_alias(kind or "null"))
        except (ValueError, TypeError, OverflowError) as error:  # Arrow's are of these kinds
            raise InputError(
                f"column {name!r} of {self.file.path} must hold values of one kind: {error}."
            ) from error

    def _row(self, text: bytes, where: str) -> dict[str, Any]:
        try:
            row = json.loads(text)
        except ValueError as error:
            raise InputError(f"{where} must hold a JSON object: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{where} must hold a JSON object; it has {type(row).__name__}.")
        for name, kind in self.kinds.items():
            value = row.get(name)
            if value is None or kind is None:
                continue
            if name == self.label and isinstance(value, int | float):
                row[name] = float(value) if isinstance(value, bool) else value
                continue
            is_wrong_bool = isinstance(value, bool) and kind != "bool"
            if is_wrong_bool or not isinstance(value, VALUES_OF[kind]):
                row[name] = self._read_as_number(name, kind, value, where)
        return row

    def _read_as_number(self, name: str, kind: str, value: Any, where: str) -> Any:
        """What a wrong value stands for, where that is clear; otherwise it is refused."""
        alias = next(alias for alias, each in self.names.items() if each == name)
        is_prediction = alias == PROB and isinstance(value, str)
        if is_prediction and self.request.form == "percent":
            try:
                return float(without_sign(value))
            except ValueError:
                pass
        if self.request.on_invalid == "drop" and alias in (PROB, LABEL, WEIGHT):
            return self.request.unreadable(alias)
        cure = " Turn it into 0 and 1 first." if alias == LABEL else ""
        if is_prediction and value.rstrip().endswith("%"):
            cure = f" {PER_CENT_CURE}"
        rule = "numbers" if kind == "float64" or alias == LABEL else kind
        raise InputError(f"{where}: column {name!r} must hold {rule}; it has {value!r}.{cure}")


def _rows(block: bytes) -> Iterator[dict[str, Any]]:
    for line in block.splitlines():
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError:
            continue  # reported with its line when the block is read
        if isinstance(row, dict):
            yield row


def _kinds(rows: Iterator[dict[str, Any]]) -> dict[str, set[type]]:
    """The Python types of each column's values; none where all of them are null."""
    found: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, set())
            if value is not None:
                found[name].add(type(value))
    return found
