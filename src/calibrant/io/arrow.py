"""Batches of Arrow columns: what files, datasets, readers and Ray hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._files import decoding
from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.io.batches import BATCH_ROWS, LOOP_LABELS, Batch
from calibrant.io.group_keys import Coded, as_objects, coded
from calibrant.io.request import LABEL, PROB, WEIGHT, Request, require_columns, require_kinds


def batches_of_stream(
    source: Any, request: Request, names: Mapping[str, str] | None = None
) -> Iterator[Batch]:
    """Batches of a table, a dataset, a scanner or a stream; `names` are those of its columns, by alias."""
    pyarrow = require("pyarrow", caller="scan")
    dataset = require("pyarrow.dataset", caller="scan")
    if isinstance(source, pyarrow.Table) and names is not None:
        source = source.to_reader(max_chunksize=BATCH_ROWS)
    elif isinstance(source, pyarrow.RecordBatch):
        source = dataset.dataset(source)
    if isinstance(source, dataset.Dataset):
        require_columns(request.names(), source.schema.names, "the dataset")
        source = source.scanner(columns=_expressions(request)).to_reader()
        names = {alias: alias for alias in request.selection}
    elif isinstance(source, dataset.Scanner):
        source = source.to_reader()
    if not isinstance(source, pyarrow.RecordBatchReader):
        try:
            source = pyarrow.RecordBatchReader.from_stream(source)
        except (ValueError, TypeError) as error:  # Arrow's errors are of these kinds
            raise InputError(
                f"`data` must be a frame, with columns; a {type(source).__name__} is none: {error}.",
            ) from error
    if names is None:
        request.require_names()
        require_columns(request.names(), source.schema.names, "the stream")
        names = request.selection
    require_types(source.schema, names, request)
    first_row = 0
    with decoding("the stream"):
        for rows in source:
            columns = {alias: validated(rows.column(name)) for alias, name in names.items()}
            yield batch_of_arrow(columns, request, partial(int, first_row))
            first_row += rows.num_rows


def batch_of_arrow(
    columns: Mapping[str, Any],
    request: Request,
    first_row: Callable[[], int] = int,
    file: str | None = None,
) -> Batch:
    """Batch of Arrow columns by alias; a group that stands in the path of a file is a plain value."""
    arrays = {alias: _array(alias, columns[alias], request) for alias in request.columns}
    probs = [arrays[alias] for alias in request.prob_aliases]
    label = arrays[LABEL]
    groups = [
        coded_column(column)
        if hasattr(column := columns[alias], "dictionary_encode")
        else Coded(np.zeros(label.size, np.int64), [column])
        for alias in request.group_aliases
    ]
    return Batch(probs, label, arrays.get(WEIGHT), groups, first_row, file)


def validated(column: Any) -> Any:
    """The column, if everything in it points to where it may: no kernel of Arrow looks."""
    column.validate(full=True)
    return column


def _expressions(request: Request) -> dict[str, Any]:
    compute = require("pyarrow.compute", caller="scan")
    for column in request.selection.values():
        if not isinstance(column, str | compute.Expression):
            raise InputError(
                "Columns of this source are given by name or as expressions of Arrow, such as "
                f'pyarrow.compute.field("p") / 100; got a {type(column).__name__}.'
            )
    return {
        alias: compute.field(column) if isinstance(column, str) else column
        for alias, column in request.selection.items()
    }


def require_types(schema: Any, names: Mapping[str, str], request: Request) -> None:
    """Refuse text where numbers are meant, and lists and structs as groups."""
    import narwhals as nw
    import pyarrow

    plain = {name: schema.field(name).type for name in names.values()}
    plain = {
        n: getattr(k, "value_type", k) if str(k)[:4] == "dict" else k for n, k in plain.items()
    }
    kinds = nw.Schema.from_arrow(pyarrow.schema(list(plain.items())))
    require_kinds({alias: kinds[name] for alias, name in names.items()}, request)


def _array(alias: str, column: Any, request: Request) -> NDArray[Any]:
    """Column as an array: labels, weights or predictions."""
    column = _whole(column)
    if alias == LABEL and request.named_labels:
        return _named_labels(column)
    kind = str(column.type)
    if alias == LABEL and column.null_count == 0:
        if kind == "bool":
            return as_numpy(column.cast("uint8"))
        if kind in ("int8", "float", "double", *LOOP_LABELS):
            return as_numpy(column)
    if alias.startswith(PROB) and ("list" in kind or "string" in kind):  # lists may be text
        return as_objects(column.to_pylist())
    return _floats(column, keep=("float", "double") if alias.startswith(PROB) else ("double",))


def _named_labels(column: Any) -> NDArray[Any]:
    """Labels as they are written: numbers, truth values, or text, with None for what is missing."""
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "halffloat")):
        return _floats(column) if column.null_count else as_numpy(column)
    if kind == "bool" and not column.null_count:
        return as_numpy(column.cast("uint8")).astype(np.bool_)
    return as_objects(column.to_pylist())


def coded_column(column: Any) -> Coded:
    """Grouping column, coded by Arrow."""
    column = _whole(column)
    if hasattr(column, "storage"):  # a type of others', such as Ray's for the objects of pandas
        return coded(column.to_pylist())
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
        return Coded(as_numpy(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist())
    except InputError:
        raise
    except (ValueError, OverflowError, NotImplementedError) as error:  # a list, a date of no year
        raise InputError(
            "`by`: a group must be a plain value that Python has (dates of the years 1 to 9999); a "
            f"{column.type} is none: {show_value(str(error))}.",
            hint="Group by a part of it.",
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


def _floats(column: Any, keep: tuple[str, ...] = ("double",)) -> NDArray[Any]:
    """Contiguous floats, with NaN where a value is missing."""
    column = _whole(column)
    if str(column.type).startswith("decimal"):  # whose own cast misses the nearest floats
        column = column.cast("string").cast("double")
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
