"""Rows close to every border that there is, of every type that a column can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["CASE", "Kinds", "Rows", "drawn", "drawn_kinds"]

PREDICTIONS = ["float64", "float32", "float16", "bool", "int8", "int64", "uint8", "categories"]
PREDICTIONS += ["decimal", "broad decimal", "wide decimal"]
LABELS = ["int64", "uint8", "int8", "int32", "uint64", "bool", "float64", "float32", "float16"]
LABELS += ["decimal", "categories"]
WEIGHTS = [None, None, "float64", "float32", "int64", "uint8", "decimal"]
GROUPS = [None, None, None, None, "text", "int64", "two columns", "categories", "bool", "float64"]
GROUPS += ["date", "time", "zoned time", "decimal", "bytes"]
CASE = "case"
"""The column of many cases in one table that tells which is which."""

ARROW = {
    "bool": pa.bool_(),
    "float16": pa.float16(),
    "wide decimal": pa.decimal128(38, 20),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "zoned time": pa.timestamp("us", "UTC"),
    "bytes": pa.binary(),
}
NAMES = ["a", "b", "x, y", 'süd "q"', "'; --", None]
MOMENT = datetime(2026, 2, 28, 23, 59, 59, 999_999)
VALUES: dict[str, list[Any]] = {
    "text": NAMES,
    "categories": NAMES,
    "int64": [-1, 0, 1, 2**40 + 1, None],
    "bool": [True, False, None],
    "float64": [0.5, 1 / 3, 1e300, -2.0, 0.0, None],
    "date": [date(1969, 12, 31), date(2026, 2, 28), date(1, 1, 1), None],
    "time": [MOMENT, datetime(1969, 12, 31, 23, 59, 59, 1), None],
    "zoned time": [MOMENT.replace(tzinfo=UTC), datetime(1969, 1, 1, tzinfo=UTC), None],
    "decimal": [Decimal("0.1"), Decimal("-7.3"), Decimal(0), None],
    "bytes": [b"", b"\x00\xff", b"a", None],
}
"""What groups are called, by the type of their column."""


@dataclass(frozen=True)
class Kinds:
    """The types of the columns of some rows, the digits of decimals, and whether these are percentages."""

    label: str
    prediction: str
    weight: str | None
    group: str | None
    digits: int
    percent: bool

    def __contains__(self, kind: str) -> bool:
        """Whether a column of numbers is of that kind, or one of the role that is named after it."""
        named = {"labels": self.label, "predictions": self.prediction, "weights": self.weight}
        roles = {f"{own} {role}" for role, own in (named | {"groups": self.group}).items()}
        return kind in {*named.values(), *roles}

    def __str__(self) -> str:
        kinds = (self.label, self.prediction, self.weight, self.group)
        return ", ".join(map(str, kinds)) + f", {self.digits} digits" + ", %" * self.percent


PLAIN = Kinds("int64", "float64", None, None, 0, False)


class Rows:
    """Some rows: an Arrow table, and its columns as lists of Python's values."""

    def __init__(self, table: pa.Table, kinds: Kinds = PLAIN) -> None:
        self.table, self.kinds = table, kinds
        # Half floats of older Arrows come as NumPy's, which are no numbers of Python's.
        self.lists = {
            name: [getattr(v, "item", lambda v=v: v)() for v in table[name].to_pylist()]
            for name in table.column_names
        }

    @property
    def weights(self) -> list[Any] | None:
        return self.lists.get("w")

    @property
    def by(self) -> list[str]:
        return [name for name in (CASE, "g", "h") if name in self.lists]

    @property
    def groups(self) -> list[Any] | None:
        columns = [self.lists[name] for name in self.by]
        if len(columns) > 1:
            return list(zip(*columns, strict=True))
        return columns[0] if columns else None

    def as_python(self) -> Iterator[tuple[Any, ...]]:
        """Each row, its columns in order."""
        return zip(*self.lists.values(), strict=True)


def drawn_kinds(rng: np.random.Generator) -> Kinds:
    label, prediction = str(rng.choice(LABELS)), str(rng.choice(PREDICTIONS))
    weight, group = rng.choice(np.array(WEIGHTS)), rng.choice(np.array(GROUPS))
    digits, percent = int(rng.integers(1, 16)), bool(rng.random() < 0.15)
    return Kinds(label, prediction, weight, group, digits, percent)


def drawn(rng: np.random.Generator, kinds: Kinds, cases: int | None = None) -> Rows:
    """Rows of these kinds; as many cases in one table, where asked, each with a number."""
    drafts = [_columns(rng, kinds) for _ in range(1 if cases is None else cases)]
    columns = {name: [v for draft in drafts for v in draft[name]] for name in drafts[0]}
    types = {"y": kinds.label, "p": kinds.prediction, "w": kinds.weight, "g": kinds.group}
    arrays = {name: _array(v, types.get(name), kinds.digits) for name, v in columns.items()}
    if cases is not None:
        arrays[CASE] = pa.array([k for k, draft in enumerate(drafts) for _ in draft["y"]])
    return Rows(pa.table(arrays), kinds)


def _columns(rng: np.random.Generator, kinds: Kinds) -> dict[str, list[Any]]:
    n = int(rng.integers(1, 40))
    columns = {
        "y": [_label(rng, kinds.label) for _ in range(n)],
        "p": [_prediction(rng, kinds) for _ in range(n)],
    }
    if rng.random() < 0.3:
        for column in columns.values():
            for row in np.flatnonzero(rng.random(n) < 0.2):
                column[row] = None
    if kinds.weight is not None:
        columns["w"] = _weights(rng, n, kinds)
    if kinds.group is not None:
        names = VALUES["text" if kinds.group == "two columns" else kinds.group]
        columns["g"] = [names[k] for k in rng.integers(0, len(names), n)]
        if kinds.group == "two columns":
            columns["h"] = [None if k == 3 else int(k) - 1 for k in rng.integers(0, 4, n)]
    return columns


def _array(values: list[Any], kind: str | None, digits: int) -> pa.Array:
    if kind in (None, "text", "two columns"):
        return pa.array(values, pa.string() if kind else pa.int64())
    if kind == "categories":  # of which pandas has no two that are equal, and no NaN
        plain = [None if v != v else 0.0 if v == 0.0 else v for v in values]
        of_text = any(isinstance(value, str) for value in plain)
        return pa.array(plain, pa.string() if of_text else pa.float64()).dictionary_encode()
    if kind == "float16":
        values = [None if v is None else np.float16(v) for v in values]
    if "decimal" in kind and kind != "wide decimal":
        type_ = pa.decimal128 if kind == "decimal" else pa.decimal256
        return pa.array(values, type_(digits + (2 if kind == "decimal" else 30), digits))
    return pa.array(values, type=ARROW.get(kind) or pa.type_for_alias(kind))


def _weights(rng: np.random.Generator, n: int, kinds: Kinds) -> list[Any]:
    """Eighths, whose sums are floats in any order; some that are none."""
    eighths, kind = rng.integers(0, 64, n).tolist(), str(kinds.weight)
    if kind.startswith("float"):
        broken: list[Any] = [None, np.nan, np.inf, -0.125, -np.inf]
        picks = rng.integers(0, len(broken), n)
        return [
            broken[pick] if rng.random() < 0.05 else float(k) / 8
            for k, pick in zip(eighths, picks, strict=True)
        ]
    values: list[Any] = eighths
    if kind == "decimal":
        parts = 2 ** min(3, kinds.digits)
        values = [Decimal(k) / parts for k in eighths]
    if kind != "uint8":
        values = [-1 - value if rng.random() < 0.02 else value for value in values]
    return [None if rng.random() < 0.03 else value for value in values]


def _label(rng: np.random.Generator, kind: str) -> Any:
    if kind == "bool":
        return bool(rng.integers(2))
    odd = {"uint64": [2, 2**63], "int8": [-1, 2], "float64": [0.5, np.nan, 2.0, -0.0]}
    value = rng.choice(odd.get(kind, [2])) if rng.random() < 0.03 else int(rng.integers(2))
    if kind == "decimal":
        return Decimal(int(value))
    return float(value) if kind.startswith("float") else int(value)


def _prediction(rng: np.random.Generator, kinds: Kinds) -> Any:
    kind = kinds.prediction
    if kind == "bool":
        return bool(rng.integers(2))
    if kind == "uint8":
        return int(rng.choice([0, 1, 1, 0, 2, 255]))
    if kind.startswith("int"):
        return int(rng.choice([0, 1, 1, 0, 0, 1, 2, -1]))
    if "decimal" in kind:
        return _decimal(rng, 20 if kind == "wide decimal" else kinds.digits)
    draw = rng.random()
    if draw < 0.35:
        return float(rng.random())
    if draw < 0.8:  # a border of some grid, or a neighbour of it
        edge = float(rng.integers(0, 2**20 + 1)) / 2.0 ** int(rng.integers(0, 21))
        edge = min(edge, 1.0)
        return float(np.nextafter(edge, rng.choice([-1.0, edge, 2.0])))
    special = [0.0, -0.0, 1.0, 5e-324, 1e-310, 1 - 2**-53, 1 - 2**-24, 2**-36, 2**-37, 0.1, 1 / 3]
    broken = [np.nan, np.inf, -np.inf, 1 + 2**-52, -5e-324, 7.0]
    return float(rng.choice(special if draw < 0.97 else broken))


def _decimal(rng: np.random.Generator, digits: int) -> Decimal:
    """A border of a grid of at most so many halvings, or next to it, or anything."""
    if rng.random() < 0.3:
        most = min(digits, 15)
        return Decimal(int(rng.integers(0, 10**most + 2))).scaleb(-most)
    halvings = int(rng.integers(0, digits + 1))
    edge = Decimal(int(rng.integers(0, 2**halvings + 1))) / 2**halvings
    return edge + Decimal(int(rng.choice([0, 0, 1, -1]))).scaleb(-digits)
