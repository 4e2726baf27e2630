"""Frames of any engine: batches of those in memory; of others one narwhals group-by, which the engine runs.

The expressions are written for the narrowest engine: integers are computed as floats, which hold them
exactly, and cast last; what is missing is replaced before anything else looks at it; every condition is
never null. See `calibrant.io.sql` for the same aggregation as text.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from calibrant._files import decoding
from calibrant.data.arrays import as_array, remember_library
from calibrant.data.rows import LARGEST_WEIGHT, require_same_index_in
from calibrant.errors import InputError, show_value
from calibrant.io import arrow
from calibrant.io.batches import BATCH_ROWS, Batch, batch_of, batch_of_dict
from calibrant.io.group_keys import Coded, as_objects, coded, indexed
from calibrant.io.request import (
    LABEL,
    PROB,
    WEIGHT,
    Request,
    is_constant,
    refuse_constant,
    refuse_repeated,
    require_columns,
    require_kinds,
)
from calibrant.io.sums import Sums

SLOT, OFFSET, COUNT = "__calibrant_slot", "__calibrant_offset", "__calibrant_count"
FLOATS = ("__calibrant_w", "__calibrant_ww", "__calibrant_wo")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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


# -- frames ------------------------------------------------------------------------------------


def engine_of(native: Any) -> str:
    """Library that a frame comes from."""
    return type(native).__module__.split(".")[0]


def source_of(frame: Any) -> Any:
    """Frame as its own library has it."""
    import narwhals as nw

    return nw.to_native(frame, pass_through=True)


def _is_relation(native: Any) -> bool:
    return type(native).__name__ == "DuckDBPyRelation"


def as_frame(source: Any) -> Any:
    """Narwhals frame of pandas, polars, Arrow tables, DuckDB, Spark, Ibis, Modin; None for anything else."""
    import narwhals as nw

    if isinstance(source, Mapping):
        return None
    names: Any = getattr(source, "column_names", [])  # of a table; readers and datasets have none
    if engine_of(source) in ("pandas", "modin", "pyspark") or _is_relation(source):
        names = getattr(source, "columns", [])  # of a series or groups there are none
    for name, times in Counter(name for name in names if isinstance(name, str)).items():
        if times > 1:
            refuse_repeated(name, times, "the frame")
    frame = nw.from_native(source, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame | nw.LazyFrame) else None


def select(source: Any, request: Request) -> Any:
    """Narwhals frame of just the columns that are read, by alias."""
    import narwhals as nw

    native = _decoded(nw.to_native(source, pass_through=True), request)
    with decoding("the schema of the frame"):
        present = nw.from_native(native).collect_schema().names()
    labels = {a: c for a, c in request.selection.items() if is_label(c, native, present)}
    require_columns(labels.values(), present, "the frame")
    own = {
        alias: column
        for alias, column in request.selection.items()
        if alias not in labels and not isinstance(column, nw.Expr)
    }
    frame: Any = nw.from_native(attach(native, own) if own else native)
    remember_library(frame)
    chosen = []
    for alias, column in request.selection.items():
        if (
            alias in labels
        ):  # by its place: polars takes ^...$ for a pattern, pandas has 0 for a name
            column = nw.nth(present.index(column))
        chosen.append((nw.col(alias) if alias in own else column).alias(alias))
    frame = frame.select(*chosen)
    if engine_of(native) != "pyarrow":  # its reader of batches looks at the types
        require_kinds(frame.collect_schema(), request)
    return frame


def is_label(column: Any, native: Any, present: Iterable[Any]) -> bool:
    """Name of a column, which pandas may have of any type; refuses plain values that are none."""
    if isinstance(column, str) or not is_constant(column):
        return isinstance(column, str)
    pandas_like = engine_of(native) in ("pandas", "modin", "dask")
    equal = isinstance(column, bool) and not any(name is column for name in present)
    if not pandas_like or equal:  # True equals a column 1
        refuse_constant(column)
    return True


# -- rows --------------------------------------------------------------------------------------


def batches_of(source: Any, request: Request, *, is_batch: bool = False) -> Iterator[Batch]:
    """Batches of a dict of arrays, a frame, an Arrow stream, or an iterator over these."""
    if isinstance(source, Mapping):
        require_same_index_in(source, *request.selection.values())
        yield batch_of_dict(source, request)
    elif as_frame(source) is not None:
        frame = select(source, request)
        stream = source_of(frame)
        if engine_of(stream) in ("pandas", "modin", "polars"):
            yield from _slices(in_memory(frame), request)
            return
        if not hasattr(stream, "__arrow_c_stream__"):
            stream = in_memory(frame).to_arrow()
        names = {alias: alias for alias in request.selection}
        yield from arrow.batches_of_stream(stream, request, names)
    elif hasattr(source, "__arrow_c_stream__") or engine_of(source) == "pyarrow":
        yield from arrow.batches_of_stream(source, request)
    elif isinstance(source, Iterable) and not isinstance(source, np.ndarray) and not is_batch:
        for batch in source:
            yield from batches_of(batch, request, is_batch=True)
    else:
        what = "frames, record batches or dicts of arrays" if is_batch else "a frame or files"
        hint = (
            "Of groups, scan the frame itself, with `by`."
            if is_batch
            else "For arrays, use Sketch.from_arrays(y_true, y_prob)."
        )
        raise InputError(
            f"`data` must be {what}, or an iterator over these; got a {type(source).__name__}.",
            hint=hint,
        )


def _slices(frame: Any, request: Request) -> Iterator[Batch]:
    """Batches of a selected frame, through NumPy, so that Arrow is not imported."""
    most = 4 * BATCH_ROWS  # the rows are in memory, and each slice costs time
    for start in range(0, len(frame), most):
        rows = frame[start : start + most]
        arrays = {
            alias: as_objects(rows[alias].to_list())
            if rows[alias].dtype.is_nested()
            else as_array(rows[alias], str(name))
            for alias, name in request.columns.items()
        }
        groups = [_coded(rows[alias]) for alias in request.group_aliases]
        yield batch_of(arrays, groups, request, start)


def _coded(column: Any) -> Coded:
    """Grouping column of a frame in memory, coded by its library."""
    import narwhals as nw

    if column.implementation.is_pandas_like():
        try:
            codes, values = sys.modules["pandas"].factorize(
                column.to_pandas(), use_na_sentinel=False
            )
        except TypeError:  # a list, say, cannot be hashed
            return coded(column.to_list())
        return Coded(codes, list(values.tolist()))
    rows = column.alias("value").to_frame().with_row_index("row")
    first = rows.select(nw.col("row").min().over("value"))["row"].to_numpy()
    places, codes = np.unique(first, return_inverse=True)
    return Coded(codes, list(column[places].to_list()))


# -- a group-by --------------------------------------------------------------------------------


def sums_of_lazy(source: Any, request: Request) -> Iterator[Sums]:
    """Sums of each column of predictions of a frame, by the engine that holds it: portable requests only."""
    names = (COUNT, OFFSET, *FLOATS) if request.weighted else (COUNT, OFFSET)
    for model, alone in request.each_model():
        frame = select(source, alone)
        try:
            result = _collected(_aggregated(frame, alone), (SLOT, *names))
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{engine_of(source)} could not compute the sums: {show_value(str(error))}.",
                hint="Convert the columns to plain numbers first.",
            ) from error
        group, keys = np.zeros(len(result[SLOT]), dtype=np.int64), [()]
        if request.groups:
            columns = [result[alias] for alias in request.group_aliases]
            group, keys = indexed(zip(*columns, strict=True))
        places = group * request.slots + result[SLOT].astype(np.int64)
        sums = tuple(result[name] for name in names)
        yield Sums([(*model, *key) for key in keys], places, sums)


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
    frame = in_memory(frame)
    return {
        name: frame[name].to_numpy() if name in numbers else frame[name].to_list()
        for name in frame.columns
    }


def in_memory(frame: Any) -> Any:
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
    """Frame of pandas with plain values in columns that are coded by a dictionary, or have no values."""
    if engine_of(native) not in ("pandas", "modin"):
        return native
    for alias, name in request.selection.items():
        if not isinstance(name, str) or name not in native.columns:
            continue
        kind, plain = native.dtypes[name], None
        if str(kind).startswith("dictionary"):
            plain = type(kind)(kind.pyarrow_dtype.value_type)
        elif alias in request.columns:
            codes = str(kind) == "category" and kind.categories.dtype.kind in "biuf"
            is_empty = str(kind) == "object" and native[name].isna().all()
            plain = "float64" if codes or is_empty else None
        if plain is not None:
            native = native.assign(**{name: native[name].astype(plain)})
    return native


def attach(native: Any, expressions: dict[str, Any]) -> Any:
    """Native frame with more columns, computed by expressions of its own engine."""
    engine = engine_of(native)
    try:
        if engine == "pyspark":
            return native.withColumns(expressions)
        if engine in _ATTACH:
            return getattr(native, _ATTACH[engine])(**expressions)
        if _is_relation(native):
            named = [expression.alias(alias) for alias, expression in expressions.items()]
            return native.select(sys.modules["duckdb"].StarExpression(), *named)
        from pyarrow import compute, dataset

        for alias, given in expressions.items():
            if isinstance(given, compute.Expression):
                given = dataset.dataset(native).to_table(columns={alias: given})[alias]
            native = native.append_column(alias, given)
        return native
    except Exception as error:
        kinds = ", ".join(type(expression).__name__ for expression in expressions.values())
        raise InputError(
            f"Columns of a {type(native).__name__} are given by name, or as expressions of {engine} or "
            f"narwhals; got {kinds}: {show_value(str(error))}."
        ) from error


def _fetched(relation: Any) -> dict[str, list[Any]]:
    """Values of a result of DuckDB, which itself needs a package for times with a zone."""
    duckdb = sys.modules["duckdb"]
    columns = {name: duckdb.ColumnExpression(name) for name in relation.columns}
    kinds = zip(columns, map(str, relation.types), strict=True)
    zoned = [name for name, kind in kinds if kind == "TIMESTAMP WITH TIME ZONE"]
    for name in zoned:
        columns[name] = duckdb.FunctionExpression("epoch_us", columns[name]).alias(name)
    rows = relation.select(*columns.values()).fetchall()
    found = {name: [row[place] for row in rows] for place, name in enumerate(columns)}
    for name in zoned:
        counts = found[name]
        found[name] = [None if us is None else EPOCH + timedelta(microseconds=us) for us in counts]
    return found
