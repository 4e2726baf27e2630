"""What is asked of frames in the words of their own library, each only where it is already loaded."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import Code, InputError, TypeName
from calibrant.io.group_keys import refuse_nanoseconds
from calibrant.io.required_columns import (
    is_constant,
    refuse_constant,
    refuse_repeated,
    require_columns,
)
from calibrant.io.scan_request import Request

__all__ = [
    "attach",
    "decoded",
    "engine_of",
    "fetched",
    "is_relation",
    "native_kind",
    "require_single_names",
]

# Not `hasattr`: a column may be named like a method, and some frames have every attribute.
_ATTACH = {
    "polars": "with_columns",
    "ibis": "mutate",
    "pandas": "assign",
    "modin": "assign",
    "dask": "assign",
}

_LABELLED = ("pandas", "modin", "dask")
"""Engines whose columns may be named by numbers, dates and tuples."""


def engine_of(native: Any) -> str:
    """The library that a frame comes from."""
    return type(native).__module__.split(".")[0]


def is_relation(native: Any) -> bool:
    """Whether it is a relation of DuckDB."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(native, duckdb.DuckDBPyRelation)


def require_single_names(native: Any) -> None:
    """Refuse a frame of which several columns have one name."""
    if engine_of(native) == "pyarrow":
        names = getattr(native, "column_names", [])  # of a table; readers and datasets have none
    elif engine_of(native) in ("pandas", "modin", "pyspark") or is_relation(native):
        names = getattr(native, "columns", [])  # of a series or groups there are none
    else:
        return
    for name, times in Counter(name for name in names if isinstance(name, str)).items():
        if times > 1:
            refuse_repeated(name, times, "the frame")


def decoded(native: Any, request: Request) -> Any:
    """Columns as plain values where engines fail: codes of a dictionary, Arrow's large integers."""
    engine = engine_of(native)
    for alias, name in request.selection.items():
        if not isinstance(name, str):
            continue
        if engine == "pyarrow" and name in native.column_names:
            kind = native.schema.field(name).type
            if str(kind).startswith("dictionary"):
                place = native.column_names.index(name)
                native = native.set_column(place, name, native[name].cast(kind.value_type))
        elif engine in ("pandas", "modin") and name in native.columns:
            is_number = alias in request.columns
            plain = _plain_type(native.dtypes[name], is_number=is_number)
            if is_number and str(native.dtypes[name]) == "object" and native[name].isna().all():
                plain = "float64"  # objects that are all missing are of any type
            if plain is not None:
                native = native.assign(**{name: native[name].astype(plain)})
    return native


def _plain_type(kind: Any, *, is_number: bool) -> Any:
    """The type that a column of pandas is turned into: plain values for codes; None to leave it.

    Arrow refuses to cast integers to floats that do not hold them.
    """
    if is_number and str(kind) in ("int64[pyarrow]", "uint64[pyarrow]"):
        return "float64"
    if str(kind).startswith("dictionary"):
        return type(kind)(kind.pyarrow_dtype.value_type)
    coded = is_number and str(kind) == "category" and kind.categories.dtype.kind in "biuf"
    return "float64" if coded else None


def attach(native: Any, expressions: dict[str, Any]) -> Any:
    """The native frame with more columns, computed by expressions of its own engine."""
    engine = engine_of(native)
    if engine in _LABELLED:
        native, expressions = _labelled(native, expressions)
    for expression in expressions.values():
        if is_constant(expression):
            refuse_constant(expression)
    if engine == "pyspark":
        return native.withColumns(expressions)
    if engine in _ATTACH:
        return getattr(native, _ATTACH[engine])(**expressions)
    if is_relation(native):
        named = [expression.alias(alias) for alias, expression in expressions.items()]
        return native.select(sys.modules["duckdb"].StarExpression(), *named)
    if engine == "pyarrow":
        return _attach_to_table(native, expressions)
    raise InputError(
        "must be a frame whose expressions calibrant knows",
        argument="data",
        seen=TypeName.of(native),
        cure="Give columns by name, or as narwhals expressions.",
    )


def _attach_to_table(table: Any, expressions: dict[str, Any]) -> Any:
    """An Arrow table with more columns: expressions that it computes, or columns that are given."""
    import pyarrow.compute
    import pyarrow.dataset

    for alias, given in expressions.items():
        try:
            if isinstance(given, pyarrow.compute.Expression):
                computed = pyarrow.dataset.dataset(table).to_table(columns={alias: given})
                table = table.append_column(alias, computed[alias])
            else:
                table = table.append_column(alias, given)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                "a column of an Arrow table must be a name, an expression, or an array of as many rows",
                seen=TypeName.of(given),
                saying="got {}: {reason}",
                cure="Write an expression such as {example}, or one of narwhals.",
                reason=str(error),
                example=Code('pyarrow.compute.field("p") / 100'),
            ) from error
    return table


def _labelled(native: Any, expressions: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The frame, and expressions in which names that are no text are the columns of that name."""
    labels = {a: label for a, label in expressions.items() if is_constant(label)}
    for label in labels.values():
        if isinstance(label, bool) and not any(name is label for name in native.columns):
            refuse_constant(label)  # though it equals a column 1
        require_columns([label], native.columns, "the frame")
    columns = {alias: native[label] for alias, label in labels.items()}
    if getattr(native.columns, "nlevels", 1) > 1:
        native = native.set_axis(native.columns.to_flat_index(), axis=1)
    return native, expressions | columns


def native_kind(frame: Any, name: str) -> str:
    """The type of a column in the engine's own words, which for decimals tell their digits."""
    engine = engine_of(frame)
    if is_relation(frame):
        return str(dict(zip(frame.columns, frame.types, strict=True))[name])
    if engine == "pyarrow":
        return str(frame.schema.field(name).type)
    if engine == "pyspark":
        return str(frame.schema[name].dataType)
    if engine == "ibis":
        return str(frame.schema()[name])
    if engine == "polars":
        return str(frame.collect_schema()[name])
    return str(frame.dtypes[name])


def fetched(relation: Any, numbers: tuple[str, ...]) -> dict[str, Any]:
    """DuckDB's arrays as the values they stand for; it has none for decimals and dates."""
    duckdb = sys.modules["duckdb"]
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    wide = [name for name, kind in kinds.items() if kind.startswith(("DECIMAL", "HUGE", "UHUGE"))]
    columns = [duckdb.ColumnExpression(name) for name in kinds]
    arrays = relation.select(
        *(
            c.cast("VARCHAR").alias(n) if n in wide else c
            for c, n in zip(columns, kinds, strict=True)
        )
    ).fetchnumpy()
    return {
        name: np.asarray(arrays[name]) if name in numbers else _values(arrays[name], kind)
        for name, kind in kinds.items()
    }


def _values(array: NDArray[Any], kind: str) -> list[Any]:
    if array.dtype.kind in "Mm":
        coarse = array.astype(f"{array.dtype.kind}8[{'D' if kind == 'DATE' else 'us'}]")
        cut = np.ma.filled((coarse != array) & ~np.isnat(array), False)
        if cut.any():
            refuse_nanoseconds(array[cut][0])
        array = coarse
    read: Any = None
    if kind.startswith("DECIMAL"):
        read = Decimal
    elif "HUGE" in kind:
        read = int
    elif kind == "TIMESTAMP WITH TIME ZONE":
        read = functools.partial(datetime.replace, tzinfo=UTC)
    values: list[Any] = array.tolist()
    return [value if value is None else read(value) for value in values] if read else values
