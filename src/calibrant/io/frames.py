"""Frames of any engine, and dicts of arrays: one narwhals group-by, which the engine itself runs.

The expressions are written for the narrowest engine: integers are computed as floats, which hold them
exactly, and cast last; what is missing is replaced before anything else looks at it; every condition is
never null. See `calibrant.io.sql` for the same aggregation as text.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._files import decoding
from calibrant.data.arrays import as_array, is_missing, remember_library
from calibrant.data.rows import LARGEST_WEIGHT
from calibrant.errors import InputError, show_value
from calibrant.io.group_keys import (
    Key,
    as_objects,
    indexed,
    normal_key,
    refuse_nanoseconds,
)
from calibrant.io.request import (
    LABEL,
    PROB,
    WEIGHT,
    Request,
    is_constant,
    numberless,
    refuse_constant,
    refuse_repeated,
    require_columns,
    require_kinds,
)
from calibrant.io.sums import DenseSums, GroupedSums, Notes, RowBatch, sums_of_rows

__all__ = [
    "arrow_stream",
    "attach",
    "engine_of",
    "first_values",
    "is_frame",
    "is_in_memory",
    "select",
    "sums_of_dict",
    "sums_of_frame",
    "sums_of_slices",
]

SLOT, OFFSET, COUNT = "__calibrant_slot", "__calibrant_offset", "__calibrant_count"
FLOATS = ("__calibrant_w", "__calibrant_ww", "__calibrant_wo")
SLICE_ROWS = 1 << 20
FIRST_ROWS = 10_000
POLARS_STREAMS = (1, 25)
"""The version from which polars collects batch by batch with the engine of that name."""
_ATTACH = {
    "polars": "with_columns",
    "ibis": "mutate",
    "pandas": "assign",
    "modin": "assign",
    "dask": "assign",
}
"""Methods that add columns; not by `hasattr`, as a column may be named like a method."""


# -- dicts of arrays ---------------------------------------------------------------------------


def sums_of_dict(batch: Mapping[str, Any], request: Request) -> list[DenseSums | GroupedSums]:
    """Sums of a dict of arrays, as training loops and data loaders yield it."""
    request.require_names()
    require_columns(request.names(), batch, "the batch")
    arrays = {alias: as_array(batch[name], name) for alias, name in request.columns.items()}
    groups = zip(request.group_aliases, request.groups.values(), strict=True)
    arrays |= {alias: _group_values(batch[name], name) for alias, name in groups}
    shapes = {str(request.selection[alias]): array.shape for alias, array in arrays.items()}
    if len(set(shapes.values())) > 1 or next(iter(arrays.values())).ndim != 1:
        raise InputError(
            f"The columns of a batch must be vectors of equal length; got {show_value(shapes)}."
        )
    return _sums_of_arrays(arrays, request)


def _sums_of_arrays(
    arrays: Mapping[str, NDArray[Any]],
    request: Request,
    first_row: int = 0,
    groups: tuple[NDArray[np.int64], list[Key]] | None = None,
) -> list[DenseSums | GroupedSums]:
    """Sums of arrays by alias; missing values are NaN or None.

    `groups` are each row's index among distinct groups, and these, where they are known already.
    """
    columns = {alias: _numbers(arrays[alias], alias, request) for alias in request.columns}
    label = columns[LABEL]
    if not label.size:
        return []
    keys: list[Key] | None = None
    group = None
    if groups is not None:
        group, keys = groups
    elif request.groups:
        values = [arrays[alias].tolist() for alias in request.group_aliases]
        group, keys = indexed(zip(*values, strict=True))
    probs = [
        c
        if c.dtype.kind not in "biuf" or c.dtype == np.float32
        else c.astype(np.float64, copy=False)
        for c in (columns[alias] for alias in request.prob_aliases)
    ]
    weight = columns[WEIGHT].astype(np.float64) if request.weighted else None
    batch = RowBatch(
        list(map(np.ascontiguousarray, probs)),
        label,
        weight,
        keys,
        group,
        lambda row: (first_row + row, None),
    )
    dense: dict[Key, DenseSums] = {}
    parts = sums_of_rows(request, batch, dense)
    return [*parts, *(total.grouped(key) for key, total in dense.items())]


def _numbers(values: NDArray[Any], alias: str, request: Request) -> NDArray[Any]:
    """Column of numbers; text among them is out of range, if such rows are to be dropped."""
    may_be_other = request.named_labels if alias == LABEL else request.multiclass is not None
    if values.dtype.kind in "biuf" or not values.size or may_be_other:
        return values
    numbers = [isinstance(value, int | float) for value in values]
    if values.dtype.kind == "O" and request.on_invalid == "drop" and any(numbers):
        other = np.where(is_missing(values), np.nan, request.unreadable(alias))
        pairs = zip(values, other.tolist(), numbers, strict=True)
        return np.array([v if is_number else o for v, o, is_number in pairs], dtype=np.float64)
    row = numbers.index(False)
    value = values[row]
    text = value if isinstance(value, str) else ""
    problem = f"has {show_value(value)} in row {row}"
    raise numberless(alias, request.columns[alias], problem, text=text)


def _group_values(values: Any, name: str) -> NDArray[Any]:
    """Values of groups as they are: numbers stay numbers, and dates dates."""
    array = values if isinstance(values, np.ndarray) else None
    is_column = isinstance(values, Sized) and isinstance(values, Iterable)
    if isinstance(values, str | bytes) or not is_column:
        raise InputError(
            f"A group must be given for every row; got {show_value(values)} as {name!r}."
        )
    if array is None or array.dtype.kind in "Mm":
        return as_objects(
            v.item() if hasattr(v, "item") and not hasattr(v, "astype") else v for v in values
        )
    return array


# -- frames ------------------------------------------------------------------------------------


def engine_of(native: Any) -> str:
    """Library that a frame comes from."""
    return type(native).__module__.split(".")[0]


def _is_relation(native: Any) -> bool:
    return type(native).__name__ == "DuckDBPyRelation"


def is_frame(source: Any) -> bool:
    """Frame that narwhals can compute on: pandas, polars, Arrow tables, DuckDB, Spark, Ibis, Modin."""
    import narwhals as nw

    names: Any = getattr(source, "column_names", [])  # of a table; readers and datasets have none
    if engine_of(source) in ("pandas", "modin", "pyspark") or _is_relation(source):
        names = getattr(source, "columns", [])  # of a series or groups there are none
    for name, times in Counter(name for name in names if isinstance(name, str)).items():
        if times > 1:
            refuse_repeated(name, times, "the frame")
    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)


def is_in_memory(source: Any) -> bool:
    """Frame whose rows are in memory."""
    import narwhals as nw

    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame)


def first_values(source: Any, request: Request) -> list[Any]:
    """First labels of a frame, or of a dict of arrays; nothing where there are none."""
    column = request.columns[LABEL]
    if isinstance(source, Mapping):
        return as_array(source[column], column)[:FIRST_ROWS].tolist() if column in source else []
    labels = replace(request, columns={LABEL: column}, groups={})
    return list(_in_memory(select(source, labels).head(FIRST_ROWS))[LABEL].to_list())


def _exactly(native: Any, name: str) -> Any:
    """Column of this name as an expression of the engine: polars takes ^...$ and * for patterns."""
    if engine_of(native) == "polars":
        import polars.selectors as cs

        return cs.by_name(name)
    import narwhals as nw

    return nw.col(name)


def _is_pattern(column: Any) -> bool:
    return isinstance(column, str) and (column == "*" or (column[:1] + column[-1:]) == "^$")


def select(source: Any, request: Request) -> Any:
    """Narwhals frame of just the columns that are read, by alias."""
    import narwhals as nw

    native = _decoded(nw.to_native(source, pass_through=True), request)
    with decoding("the schema of the frame"):
        present = nw.from_native(native).collect_schema().names()
    require_columns(request.names(), present, "the frame")
    is_polars = engine_of(native) == "polars"
    foreign = {
        alias: _exactly(native, column) if isinstance(column, str) else column
        for alias, column in request.selection.items()
        if not isinstance(column, str | nw.Expr) or (is_polars and _is_pattern(column))
    }
    frame: Any = nw.from_native(attach(native, foreign) if foreign else native)
    remember_library(frame)
    chosen = [
        (
            column if isinstance(column, nw.Expr) else nw.col(alias if alias in foreign else column)
        ).alias(alias)
        for alias, column in request.selection.items()
    ]
    frame = frame.select(*chosen)
    if (
        engine_of(native) != "pyarrow"
    ):  # of Arrow's columns the reader of batches looks at the types
        require_kinds(frame.collect_schema(), request)
    return frame


def sums_of_frame(source: Any, request: Request) -> list[DenseSums | GroupedSums]:
    """One pass over a frame, on the engine that holds it. On the probability scale only."""
    import narwhals as nw

    frame = select(source, request)
    if isinstance(frame, nw.DataFrame) and (not request.groups or frame.implementation.is_pandas()):
        arrays = {a: as_array(frame[a], str(name)) for a, name in request.columns.items()}
        return _sums_of_arrays(arrays, request, groups=_factorized(frame, request))
    names = (COUNT, OFFSET, *FLOATS) if request.weighted else (COUNT, OFFSET)
    try:
        result = _collected(_aggregated(frame, request), (SLOT, *names))
    except InputError:
        raise
    except Exception as error:
        engine = engine_of(nw.to_native(source, pass_through=True))
        if "unhashable" in str(error):  # lists in a column of objects, which its type does not tell
            raise InputError(
                f"`by` must name columns of plain values; {engine} met an {error}.", argument="by"
            ) from error
        raise InputError(
            f"{engine} could not compute the sums: {show_value(str(error))}.",
            hint="Convert the columns to plain numbers first.",
        ) from error
    if isinstance(frame, nw.DataFrame) and result[COUNT].sum() != len(frame):
        raise InputError(
            f"`by` must put every row in a group; {int(result[COUNT].sum())} of {len(frame)} rows are.",
            argument="by",
            hint="Convert its columns to numbers or text first.",
        )
    rows = len(result[SLOT])
    group, distinct = np.zeros(rows, dtype=np.int64), [()]
    if request.groups:
        columns = [result[alias] for alias in request.group_aliases]
        group, distinct = indexed(zip(*columns, strict=True))
    places = group * request.slots + result[SLOT].astype(np.int64)
    sums = GroupedSums(distinct, places, tuple(result[name] for name in names))
    if isinstance(frame, nw.DataFrame) and (places % request.slots >= request.cell_slots).any():
        sums.notes.add(_offenders(frame, request))
    return [sums]


def _factorized(frame: Any, request: Request) -> tuple[Any, list[Key]] | None:
    """Each row's index among the groups of a pandas frame, and these: its own hashing is the fastest."""
    if not request.groups:
        return None
    import narwhals as nw

    factorize = frame.implementation.to_native_namespace().factorize
    codes, columns = [], []
    for alias in request.group_aliases:
        column = frame[alias]
        try:
            code, _ = factorize(nw.to_native(column), use_na_sentinel=False)
        except TypeError:  # a list, say, cannot be hashed
            return indexed(zip(*(_listed(frame[a]) for a in request.group_aliases), strict=True))
        codes.append(code)
        columns.append(column)
    code = codes[0]
    for more in codes[1:]:
        code, _ = factorize(code * (int(more.max(initial=0)) + 1) + more)
    first = np.full(int(code.max(initial=-1)) + 1, -1)
    first[code[::-1]] = np.arange(code.size)[::-1]
    places, keys = indexed(zip(*(_listed(column[first]) for column in columns), strict=True))
    return places[code], keys


def _offenders(frame: Any, request: Request) -> Notes:
    """First rows of a frame in memory that break a rule, which a group-by only counts."""
    notes = Notes()
    for part in sums_of_slices(frame, replace(request, groups={})):
        notes.add(part.notes)
    return notes


def sums_of_slices(frame: Any, request: Request) -> Iterator[DenseSums | GroupedSums]:
    """Sums of a selected frame through NumPy, a slice at a time, so that Arrow is not imported."""
    frame = _in_memory(frame)
    for start in range(0, len(frame), SLICE_ROWS):
        rows = frame[start : start + SLICE_ROWS]
        arrays = {}
        for alias, name in request.columns.items():
            column = rows[alias]
            is_nested = column.dtype.is_nested()
            arrays[alias] = (
                as_objects(column.to_list()) if is_nested else as_array(column, str(name))
            )
        for alias in request.group_aliases:
            arrays[alias] = as_objects(_listed(rows[alias]))
        yield from _sums_of_arrays(arrays, request, start)


def _aggregated(frame: Any, request: Request) -> Any:
    """Group-by: one row per group and slot."""
    import narwhals as nw

    aliases = request.group_aliases
    numbers = [nw.col(alias).cast(nw.Float64()) for alias in request.columns]
    frame = frame.select(*aliases, *numbers)
    present = [(~nw.col(a).is_null()) & (nw.col(a) <= float("inf")) for a in request.columns]
    frame = frame.with_columns(
        *(ok.alias(f"{a}_ok") for ok, a in zip(present, request.columns, strict=True))
    )
    frame = frame.with_columns(
        *(
            nw.when(nw.col(f"{a}_ok")).then(nw.col(a)).otherwise(nw.lit(0.0)).alias(a)
            for a in request.columns
        )
    )
    frame = frame.with_columns(_reason(request).alias("__calibrant_reason"))
    valid = nw.col("__calibrant_reason") < 0.0
    frame = frame.with_columns(nw.when(valid).then(nw.col(PROB)).otherwise(nw.lit(0.0)).alias(PROB))
    cell = (nw.col(PROB) * float(request.nodes)).floor()
    fixed = (nw.col(PROB) * float(request.nodes << request.offset_bits)).floor()
    slot = (
        nw.when(valid)
        .then(cell * 2.0 + nw.col(LABEL))
        .otherwise(nw.col("__calibrant_reason") + float(request.cell_slots))
    )
    frame = frame.with_columns(
        slot.cast(nw.Int64()).alias(SLOT),
        (fixed - cell * float(1 << request.offset_bits)).cast(nw.Int64()).alias(OFFSET),
    )
    sums = [nw.col(OFFSET).sum().alias(OFFSET)]
    if request.weighted:
        frame, more = _weighted(frame, valid)
        sums += more
    return (
        frame.group_by(*aliases, SLOT)
        .agg(nw.len().alias(COUNT), *sums)
        .with_columns(nw.col(COUNT, OFFSET, SLOT).cast(nw.Int64()))
    )


def _reason(request: Request) -> Any:
    """Index of the first rule that a row breaks, or -1; floats, as every engine has them."""
    import narwhals as nw

    p, y, w = nw.col(PROB), nw.col(LABEL), nw.col(WEIGHT)
    rules = [
        ~nw.col(f"{PROB}_ok"),
        (p <= -5e-324) | (p > 1.0),  # not `p < 0`: -0.0 passes that on some engines
        ~nw.col(f"{LABEL}_ok"),
        ~((y == 0.0) | (y == 1.0)),
    ]
    if request.weighted:
        rules += [~nw.col(f"{WEIGHT}_ok"), (w <= -5e-324) | (w > LARGEST_WEIGHT)]
    reason: Any = nw.lit(-1.0)
    for code in reversed(range(len(rules))):
        reason = nw.when(rules[code]).then(nw.lit(float(code))).otherwise(reason)
    return reason


def _weighted(frame: Any, valid: Any) -> tuple[Any, list[Any]]:
    import narwhals as nw

    weight = nw.when(valid).then(nw.col(WEIGHT)).otherwise(nw.lit(0.0))
    frame = frame.with_columns(weight.alias(FLOATS[0]))
    w = nw.col(FLOATS[0])
    frame = frame.with_columns(
        (w * w).alias(FLOATS[1]), (w * nw.col(OFFSET).cast(nw.Float64())).alias(FLOATS[2])
    )
    return frame, [nw.col(name).sum().alias(name) for name in FLOATS]


def _collected(frame: Any, numbers: tuple[str, ...]) -> dict[str, Any]:
    """Small result: groups as lists, numbers as arrays, without going through another engine."""
    import narwhals as nw

    native = nw.to_native(frame)
    if _is_relation(native):
        fetched = _fetched(native)
        return {
            n: np.array(v, np.float64)
            if n in FLOATS
            else np.array(v, np.int64)
            if n in numbers
            else v
            for n, v in fetched.items()
        }
    frame = _in_memory(frame)
    return {
        name: frame[name].to_numpy() if name in numbers else _listed(frame[name])
        for name in frame.columns
    }


def _listed(column: Any) -> list[Any]:
    """Groups as Python's values; those of pandas have nanoseconds, others would lose them."""
    if (
        getattr(column.dtype, "time_unit", None) == "ns"
        and not column.implementation.is_pandas_like()
    ):
        is_date = type(column.dtype).__name__ == "Datetime"
        count = column.dt.timestamp("ns") if is_date else column.dt.total_nanoseconds()
        if (count % 1000 != 0).any():
            refuse_nanoseconds(column.filter(count % 1000 != 0)[0])
    return list(column.to_list())


def arrow_stream(frame: Any) -> Any:
    """Narwhals frame as something that Arrow can read batch by batch."""
    import narwhals as nw

    native = nw.to_native(frame)
    if hasattr(native, "__arrow_c_stream__"):
        return native
    return _in_memory(frame).to_arrow()


def _in_memory(frame: Any) -> Any:
    """Frame in memory; a lazy one is collected, by polars batch by batch, since it can."""
    if not hasattr(frame, "collect"):
        return frame
    streams = {}
    if frame.implementation.is_polars():
        version = frame.implementation.to_native_namespace().__version__.split(".")
        streams = {"engine": "streaming"} if tuple(map(int, version[:2])) >= POLARS_STREAMS else {}
    return frame.collect(**streams)


# -- in the words of the engines ---------------------------------------------------------------


def _decoded(native: Any, request: Request) -> Any:
    """Frame with columns as plain values where pandas fails: codes, large integers of Arrow, no values."""
    for alias, name in (
        request.selection.items() if engine_of(native) in ("pandas", "modin") else ()
    ):
        if not isinstance(name, str) or name not in native.columns:
            continue
        kind, plain = native.dtypes[name], None
        if str(kind).startswith("dictionary"):
            plain = type(kind)(kind.pyarrow_dtype.value_type)
        elif alias in request.columns:
            codes = str(kind) == "category" and kind.categories.dtype.kind in "biuf"
            is_large = str(kind) in ("int64[pyarrow]", "uint64[pyarrow]")
            is_empty = str(kind) == "object" and native[name].isna().all()
            plain = "float64" if codes or is_large or is_empty else None
        if plain is not None:
            native = native.assign(**{name: native[name].astype(plain)})
    return native


def attach(native: Any, expressions: dict[str, Any]) -> Any:
    """Native frame with more columns, computed by expressions of its own engine."""
    engine = engine_of(native)
    if engine in ("pandas", "modin", "dask"):  # columns may be named by numbers, dates and tuples
        native, expressions = _labelled(native, expressions)
    for expression in expressions.values():
        if is_constant(expression):
            refuse_constant(expression)
    if engine == "pyspark":
        return native.withColumns(expressions)
    if engine in _ATTACH:
        return getattr(native, _ATTACH[engine])(**expressions)
    if _is_relation(native):
        named = [expression.alias(alias) for alias, expression in expressions.items()]
        return native.select(sys.modules["duckdb"].StarExpression(), *named)
    if engine == "pyarrow":
        return _attach_to_table(native, expressions)
    raise InputError(
        f"Columns of a {type(native).__name__} are given by name, or as narwhals expressions.",
        argument="data",
    )


def _attach_to_table(table: Any, expressions: dict[str, Any]) -> Any:
    """Arrow table with more columns: expressions that it computes, or columns that are given."""
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
                "A column of an Arrow table must be a name, an expression, or an array of as many rows; "
                f"got a {type(given).__name__}: {show_value(str(error))}.",
                hint='Write an expression such as `pyarrow.compute.field("p") / 100`, or one of narwhals.',
            ) from error
    return table


def _labelled(native: Any, expressions: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Frame, and expressions in which names that are no text are the columns of that name."""
    labels = {a: label for a, label in expressions.items() if is_constant(label)}
    for label in labels.values():
        if isinstance(label, bool) and not any(name is label for name in native.columns):
            refuse_constant(label)  # though it equals a column 1
        require_columns([label], native.columns, "the frame")
    columns = {alias: native[label] for alias, label in labels.items()}
    if getattr(native.columns, "nlevels", 1) > 1:
        native = native.set_axis(native.columns.to_flat_index(), axis=1)
    return native, expressions | columns


def _fetched(relation: Any) -> dict[str, list[Any]]:
    """Values of a result of DuckDB, which itself cuts off nanoseconds and needs a package for zones."""
    duckdb = sys.modules["duckdb"]
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    units = {"TIMESTAMP WITH TIME ZONE": "us", "TIMESTAMP_NS": "ns"}
    columns = {name: duckdb.ColumnExpression(name) for name in kinds}
    for name, kind in kinds.items():
        if kind in units:
            counted = duckdb.FunctionExpression(f"epoch_{units[kind]}", columns[name])
            columns[name] = counted.alias(name)
    rows = relation.select(*columns.values()).fetchall()
    found = dict(zip(kinds, map(list, zip(*rows, strict=True)), strict=bool(rows)))
    for name, kind in kinds.items():
        if kind in units and rows:
            times = np.array(found[name], f"datetime64[{units[kind]}]")
            zone = UTC if units[kind] == "us" else None
            plain = (normal_key((time,))[0] for time in times)
            found[name] = [time and time.replace(tzinfo=zone) for time in plain]
    return {name: found.get(name, []) for name in kinds}
