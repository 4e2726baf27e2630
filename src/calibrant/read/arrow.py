"""Batches of Arrow columns into sums: what files, datasets, readers and Ray hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.read.arrays import LOOP_LABELS, as_outcomes
from calibrant.read.group_keys import Key, indexed
from calibrant.read.request import (
    LABEL,
    PROB,
    WEIGHT,
    Request,
    refuse_nested,
    require_columns,
)
from calibrant.read.sums import DenseSums, GroupedSums, sums_by_group

__all__ = ["as_numpy", "batches_of", "require_types", "sums_of_batch", "sums_of_batches"]

LARGEST_BATCH = 1 << 20


def batches_of(source: Any, request: Request) -> Iterable[Mapping[str, Any]]:
    """Batches, under the names of the request, of a table, a dataset, a scanner or a stream."""
    pyarrow = require("pyarrow", caller="scan")
    dataset = require("pyarrow.dataset", caller="scan")
    if isinstance(source, pyarrow.Table) and len(request.names()) == len(request.selection):
        source = source.to_reader(max_chunksize=LARGEST_BATCH)
    elif isinstance(source, pyarrow.Table | pyarrow.RecordBatch):
        source = dataset.dataset(source)
    if isinstance(source, dataset.Dataset):
        require_columns(request.names(), source.schema.names, "the dataset")
        source = source.scanner(columns=_expressions(request)).to_reader()
        names = {alias: alias for alias in request.selection}
    else:
        if isinstance(source, dataset.Scanner):
            source = source.to_reader()
        if not isinstance(source, pyarrow.RecordBatchReader):
            source = _reader_of(pyarrow, source)
        request.require_names()
        require_columns(request.names(), source.schema.names, "the stream")
        names = dict(request.selection)
    require_types(source.schema, names, "the stream", request)
    for batch in source:
        yield {alias: batch.column(name) for alias, name in names.items()}


def _reader_of(pyarrow: Any, source: Any) -> Any:
    try:
        return pyarrow.RecordBatchReader.from_stream(source)
    except (ValueError, TypeError) as error:  # Arrow's errors are of these kinds
        raise InputError(
            f"`source` must be a frame, with columns; {type(source).__name__} is none: {error}."
        ) from error


def _expressions(request: Request) -> dict[str, Any]:
    compute = require("pyarrow.compute", caller="scan")
    for column in request.selection.values():
        if not isinstance(column, str | compute.Expression):
            raise InputError(
                "columns of this source are given by name or as expressions of Arrow, such as "
                f'`pyarrow.compute.field("p") / 100`; got {type(column).__name__}.'
            )
    return {
        alias: compute.field(column) if isinstance(column, str) else column
        for alias, column in request.selection.items()
    }


def require_types(schema: Any, names: Mapping[str, str], where: str, request: Request) -> None:
    """Refuse text where numbers are meant, and lists and structs as groups."""
    types = require("pyarrow.types", caller="scan")
    for alias, name in zip(request.group_aliases, request.by, strict=True):
        if alias in names and types.is_nested(schema.field(names[alias]).type):
            refuse_nested(name, schema.field(names[alias]).type)
    for alias in (PROB, LABEL, WEIGHT):
        if alias not in names:
            continue
        kind = schema.field(names[alias]).type
        if types.is_dictionary(kind):
            kind = kind.value_type
        numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        if not (any(test(kind) for test in numeric) or types.is_null(kind)):
            cure = "Turn it into 0 and 1 first." if alias == LABEL else "Convert it first."
            raise InputError(
                f"column {str(request.columns[alias])!r} of {where} must hold numbers; its type is "
                f"{kind}. {cure}"
            )


def sums_of_batches(
    batches: Iterable[Mapping[str, Any]],
    request: Request,
    add: Callable[[DenseSums | GroupedSums], None],
) -> None:
    """Hand the sums of each batch to `add`, in order; without groups, those of all batches at once."""
    dense = None if request.groups else DenseSums(request)
    for batch in batches:
        part = sums_of_batch(batch, request, dense)
        if part is not None:
            add(part)
    if dense is not None:
        add(dense)


def sums_of_batch(
    batch: Mapping[str, Any], request: Request, dense: DenseSums | None
) -> GroupedSums | None:
    """Add a batch to `dense`, or give its sums by group."""
    p = request.probabilities(_predictions(batch[PROB]))
    y = _labels(batch[LABEL])
    w = _floats(batch[WEIGHT]) if request.weighted else None
    if dense is not None:
        dense.add_rows(p, y, w)
        return None
    if not p.size:
        return None
    columns = [batch[alias] for alias in request.group_aliases]
    if all(not hasattr(column, "dictionary_encode") for column in columns):
        dense = DenseSums(request)  # one group for the whole batch: the values stand in the path
        dense.add_rows(p, y, w)
        return dense.grouped(tuple(columns))
    keys, group = _groups(columns, p.size)
    return sums_by_group(request, keys, group, p, y, w)


def _groups(columns: list[Any], rows: int) -> tuple[list[Key], NDArray[np.int64]]:
    """The groups of a batch, and each row's place among them. Constants are given as scalars."""
    code = np.zeros(rows, dtype=np.int64)
    values: list[list[Any]] = []
    for column in columns:
        if not hasattr(column, "dictionary_encode"):
            values.append([column])
            continue
        entries, place = _encoded(_whole(column))
        code = code * len(entries) + place
        values.append(entries)
    distinct, group = np.unique(code, return_inverse=True)
    columns = []
    for entries in reversed(values):
        distinct, place = np.divmod(distinct, len(entries))
        columns.append([entries[k] for k in place.tolist()])
    return list(zip(*reversed(columns), strict=True)), group


def _encoded(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, and each row's place among them."""
    if hasattr(column, "storage"):  # a type of others', such as Ray's for the objects of pandas
        place, keys = indexed((value,) for value in column.to_pylist())
        return [key[0] for key in keys], place
    encoded = column.dictionary_encode(null_encoding="encode")
    try:
        return encoded.dictionary.to_pylist(), as_numpy(encoded.indices)
    except (ValueError, OverflowError) as error:  # Python has no such date
        raise InputError(
            f"a group must be a value that Python has (dates of the years 1 to 9999); a {column.type} "
            f"is none: {error}. Group by a part of it."
        ) from error


def _whole(column: Any) -> Any:
    """One array, not chunks, of plain values; Arrow computes little on views of text."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(column, "dictionary_decode"):
        if str(column.dictionary.type).endswith("_view"):
            kind = str(column.dictionary.type).replace("_view", "")
            values = column.dictionary.cast(f"large_{kind}")
            column = type(column).from_arrays(column.indices, values)
        column = column.dictionary_decode()
    if str(column.type).endswith("_view"):
        column = column.cast("large_" + str(column.type).removesuffix("_view"))
    return column


def _predictions(column: Any) -> NDArray[Any]:
    column = _whole(column)
    return _floats(column, keep=("float", "double"))


def _labels(column: Any) -> NDArray[Any]:
    column = _whole(column)
    if column.null_count == 0:
        if str(column.type) == "bool":
            column = column.cast("uint8")
        if str(column.type) in ("int8", "float", "double", *LOOP_LABELS):
            return as_outcomes(as_numpy(column))
    return _floats(column)


def _floats(column: Any, keep: tuple[str, ...] = ("double",)) -> NDArray[Any]:
    """Contiguous floats, with NaN where a value is missing."""
    column = _whole(column)
    if str(column.type) in ("bool", "halffloat"):
        column = column.cast("uint8" if str(column.type) == "bool" else "float")
    if str(column.type) not in keep:
        column = column.cast("double", safe=False)
    values = as_numpy(column)
    if column.null_count:
        missing = as_numpy(column.is_null().cast("uint8")).astype(np.bool_)
        values = np.where(missing, values.dtype.type(np.nan), values)
    return values


def as_numpy(column: Any) -> NDArray[Any]:
    """Numbers as a view, anything where they are null; Arrow's own conversion would import pandas."""
    column = _whole(column)
    kind = np.dtype(
        {"float": "float32", "double": "float64"}.get(str(column.type), str(column.type))
    )
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.empty(0, dtype=kind)
    return np.frombuffer(data, dtype=kind, count=len(column), offset=column.offset * kind.itemsize)
