"""Frames of any engine: one narwhals group-by, which the engine itself runs.

The expressions are written for the narrowest engine: integers are computed as floats, which hold them
exactly, and cast last; what is missing is replaced before anything else looks at it; every condition is
never null. See `calibrant.io.sql` for the same aggregation as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._files import decoding
from calibrant.data.arrays import as_array
from calibrant.data.rows import LARGEST_WEIGHT
from calibrant.errors import InputError, Where
from calibrant.io.arrays import sums_of_arrays
from calibrant.io.arrow_batches import refuse_kind
from calibrant.io.engines import (
    attach,
    decoded,
    engine_of,
    fetched,
    is_relation,
    native_kind,
    require_single_names,
)
from calibrant.io.group_keys import Key, indexed, refuse_nanoseconds, require_microseconds
from calibrant.io.required_columns import (
    LABEL,
    PROB,
    WEIGHT,
    refuse_nested,
    require_columns,
    require_short_decimal,
)
from calibrant.io.scan_request import Request
from calibrant.io.sums import DenseSums, GroupedSums, Notes

__all__ = ["arrow_stream", "first_values", "is_frame", "select", "sums_of_frame", "sums_of_slices"]

SLOT, OFFSET, COUNT = "__calibrant_slot", "__calibrant_offset", "__calibrant_count"
SLICE_ROWS = 1 << 20
FIRST_ROWS = 10_000
POLARS_STREAMS = (1, 25)
"""The version from which polars collects batch by batch with the engine of that name."""
FLOATS = ("__calibrant_w", "__calibrant_ww", "__calibrant_wo")


def is_frame(source: Any) -> bool:
    """Whether narwhals can compute on it: pandas, polars, Arrow tables, DuckDB, Spark, Ibis, Modin."""
    import narwhals as nw

    require_single_names(source)
    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)


def first_values(source: Any, column: str) -> list[Any]:
    """What a column of a frame, or of a dict of arrays, begins with; nothing where there is none."""
    if isinstance(source, Mapping):
        return as_array(source[column], column)[:FIRST_ROWS].tolist() if column in source else []
    import narwhals as nw

    frame: Any = nw.from_native(source)
    if column not in frame.collect_schema().names():
        return []
    rows = frame.select(column).head(FIRST_ROWS)
    rows = rows.collect() if isinstance(rows, nw.LazyFrame) else rows
    return list(rows[column].to_list())


def select(source: Any, request: Request) -> Any:
    """The narwhals frame of just the columns that are read, under the names of the request."""
    import narwhals as nw

    native = decoded(nw.to_native(source, pass_through=True), request)
    foreign = {
        alias: column
        for alias, column in request.selection.items()
        if not isinstance(column, str | nw.Expr)
    }
    frame: Any = nw.from_native(attach(native, foreign) if foreign else native)
    with decoding("the schema of the frame"):
        schema = frame.collect_schema()
    require_columns(request.names(), schema.names(), "the frame")
    chosen = [
        (
            column if isinstance(column, nw.Expr) else nw.col(alias if alias in foreign else column)
        ).alias(alias)
        for alias, column in request.selection.items()
    ]
    frame = frame.select(*chosen)
    _require_kinds(frame.collect_schema(), request)
    _require_short_decimals(frame, request)
    return frame


def _require_short_decimals(frame: Any, request: Request) -> None:
    import narwhals as nw

    schema = frame.collect_schema()
    for alias in request.columns:
        if schema[alias] == nw.Decimal:
            require_short_decimal(alias, native_kind(nw.to_native(frame), alias))


def _require_kinds(schema: Any, request: Request) -> None:
    """Refuse text where numbers are meant, and lists and structs as groups."""
    for alias, name in zip(request.group_aliases, request.groups, strict=True):
        if schema[alias].is_nested():
            refuse_nested(name, schema[alias])
    for alias in request.columns:
        kind = schema[alias]
        if (alias == LABEL and request.named_labels) or (request.multiclass and kind.is_nested()):
            continue
        if (
            request.multiclass
            and len(request.prob_aliases) == 1
            and type(kind).__name__ == "String"
        ):
            continue  # lists may be written as text
        if not (
            kind.is_numeric() or kind.is_boolean() or type(kind).__name__ in ("Object", "Unknown")
        ):
            refuse_kind(alias, request, str(kind), Where(), nested=kind.is_nested())


def sums_of_frame(source: Any, request: Request) -> list[DenseSums | GroupedSums]:
    """One pass over a frame, on the engine that holds it. On the probability scale only."""
    import narwhals as nw

    frame = select(source, request)
    if isinstance(frame, nw.DataFrame) and (not request.groups or frame.implementation.is_pandas()):
        arrays = {a: as_array(frame[a], str(name)) for a, name in request.columns.items()}
        return sums_of_arrays(arrays, request, groups=_factorized(frame, request))
    names = (COUNT, OFFSET, *FLOATS) if request.weighted else (COUNT, OFFSET)
    try:
        result = _collected(_aggregated(frame, request), (SLOT, *names))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            "{engine} could not compute the sums: {error}",
            engine=engine_of(nw.to_native(source, pass_through=True)),
            error=str(error),
            cure="Convert the columns to plain numbers first.",
        ) from error
    if isinstance(frame, nw.DataFrame) and result[COUNT].sum() != len(frame):
        raise InputError(
            "must put every row in a group",
            argument="by",
            seen=int(result[COUNT].sum()),
            saying="{} of {rows} rows are",
            rows=len(frame),
            cure="Convert its columns to numbers or text first.",
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
    """Each row's place among the groups of a pandas frame, and these: its own hashing is the fastest."""
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
    """The first rows of a frame in memory that break a rule, which a group-by only counts."""
    notes = Notes()
    for part in sums_of_slices(frame, replace(request, groups={})):
        notes.add(part.notes)
    return notes


def sums_of_slices(frame: Any, request: Request) -> Iterator[DenseSums | GroupedSums]:
    """The sums of a selected polars frame through NumPy, so that Arrow is not imported."""
    import narwhals as nw

    if isinstance(frame, nw.LazyFrame):
        frame = _in_memory(frame)
    for start in range(0, len(frame), SLICE_ROWS):
        rows = frame[start : start + SLICE_ROWS]
        arrays = {a: _as_array(rows[a], str(name)) for a, name in request.columns.items()}
        for alias in request.group_aliases:
            arrays[alias] = _objects(_listed(rows[alias]))
        yield from sums_of_arrays(arrays, request, start)


def _as_array(column: Any, name: str) -> Any:
    """A column as an array; of lists, as objects."""
    return _objects(column.to_list()) if column.dtype.is_nested() else as_array(column, name)


def _objects(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _aggregated(frame: Any, request: Request) -> Any:
    """The group-by: one row per group and slot."""
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
    """The index of the first rule that a row breaks, or -1; floats, as every engine has them."""
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
    """The small result: groups as lists, numbers as arrays, without going through another engine."""
    import narwhals as nw

    native = nw.to_native(frame)
    if is_relation(native):
        return fetched(native, numbers)
    if isinstance(frame, nw.LazyFrame):
        frame = _in_memory(frame)
    return {
        name: frame[name].to_numpy() if name in numbers else _listed(frame[name])
        for name in frame.columns
    }


def _listed(column: Any) -> list[Any]:
    """Groups as Python's values; times are checked before, where these have no nanoseconds."""
    exact = column.implementation.is_pandas_like()  # its own times have them
    if getattr(column.dtype, "time_unit", None) == "ns" and not exact:
        is_date = type(column.dtype).__name__ == "Datetime"
        count = column.dt.timestamp("ns") if is_date else column.dt.total_nanoseconds()
        if (count % 1000 != 0).any():
            refuse_nanoseconds(column.filter(count % 1000 != 0)[0])
    if type(column.dtype).__name__ == "Time" and not exact:
        native = column.to_native()
        if hasattr(native, "to_physical"):  # of polars
            require_microseconds(native, native.to_physical().to_list())
        elif str(native.type) == "time64[ns]":
            require_microseconds(native, native.cast("int64").to_pylist())
    values: list[Any] = column.to_list()
    return values


def arrow_stream(frame: Any) -> Any:
    """A narwhals frame as something that Arrow can read batch by batch."""
    import narwhals as nw

    native = nw.to_native(frame)
    if hasattr(native, "__arrow_c_stream__"):
        return native
    return (_in_memory(frame) if isinstance(frame, nw.LazyFrame) else frame).to_arrow()


def _in_memory(frame: Any) -> Any:
    """A lazy frame, collected; by polars batch by batch, since it can."""
    streams = {}
    if frame.implementation.is_polars():
        version = frame.implementation.to_native_namespace().__version__.split(".")
        streams = {"engine": "streaming"} if tuple(map(int, version[:2])) >= POLARS_STREAMS else {}
    return frame.collect(**streams)
