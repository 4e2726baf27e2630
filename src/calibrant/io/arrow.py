"""Batches of Arrow columns into sums: what files, datasets, readers and Ray hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._files import decoding
from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.io.group_keys import Key, as_objects, indexed
from calibrant.io.predictions import LOOP_LABELS
from calibrant.io.request import LABEL, PROB, WEIGHT, Request, require_columns, require_kinds
from calibrant.io.sums import DenseSums, GroupedSums, RowBatch, sums_of_rows

__all__ = [
    "Batch",
    "as_numpy",
    "batches_of",
    "column_of",
    "named_labels",
    "require_types",
    "sums_of_batches",
    "validated",
]

LARGEST_BATCH = 1 << 20


@dataclass(frozen=True)
class Batch:
    """Arrow columns under the names of the request; constants where a group stands in the path.

    `first_row` counts the rows of the source before the batch, which only a refusal asks for.
    """

    columns: Mapping[str, Any]
    first_row: Callable[[], int] = lambda: 0
    file: str | None = None

    def place(self, row: int) -> tuple[int, str | None]:
        """Row and file of a row of the batch."""
        return self.first_row() + row, self.file

    @property
    def rows(self) -> int:
        """Number of rows."""
        return max(len(c) for c in self.columns.values() if is_column(c))


def is_column(value: Any) -> bool:
    """Arrow array, and no constant."""
    return hasattr(value, "dictionary_encode")


def batches_of(source: Any, request: Request) -> Iterable[Batch]:
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
            try:
                source = pyarrow.RecordBatchReader.from_stream(source)
            except (ValueError, TypeError) as error:  # Arrow's errors are of these kinds
                raise InputError(
                    f"`data` must be a frame, with columns; a {type(source).__name__} is none: {error}.",
                    argument="data",
                ) from error
        request.require_names()
        require_columns(request.names(), source.schema.names, "the stream")
        names = dict(request.selection)
    require_types(source.schema, names, request)
    first_row = 0
    with decoding("the stream"):
        for batch in source:
            columns = {alias: validated(batch.column(name)) for alias, name in names.items()}
            yield Batch(columns, partial(int, first_row))
            first_row += batch.num_rows


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


def sums_of_batches(
    batches: Iterable[Batch], request: Request
) -> Iterator[DenseSums | GroupedSums]:
    """Sums of each batch, in order; without groups, those of all batches at once."""
    dense: dict[Key, DenseSums] = {}
    for batch in batches:
        rows, constants = _rows_of(batch, request)
        if not rows.label.size:
            continue
        if constants is None:
            yield from sums_of_rows(request, rows, dense)
            continue
        alone: dict[Key, DenseSums] = {}  # one group for the whole batch: it stands in the path
        for part in sums_of_rows(request, rows, alone):
            yield replace(part, keys=[(*key, *constants) for key in part.keys])
        for key, total in alone.items():
            yield total.grouped((*key, *constants))
    for key, total in dense.items():
        yield total if not request.by else total.grouped(key)
    if not dense and not request.by:
        yield DenseSums(request)


def _rows_of(batch: Batch, request: Request) -> tuple[RowBatch, tuple[Any, ...] | None]:
    """Rows of a batch as arrays, and its group where all of them are in one."""
    arrays = {alias: column_of(alias, batch.columns[alias], request) for alias in request.columns}
    probs = [arrays[alias] for alias in request.prob_aliases]
    rows = RowBatch(probs, arrays[LABEL], arrays.get(WEIGHT), place=batch.place)
    groups = [batch.columns[alias] for alias in request.group_aliases]
    if not groups:
        return rows, None
    if not any(map(is_column, groups)):
        return rows, tuple(groups)
    keys, group = _groups(groups, rows.label.size)
    return replace(rows, keys=keys, group=group), None


def column_of(alias: str, column: Any, request: Request) -> NDArray[Any]:
    """Column as an array: labels, weights or predictions."""
    column = _whole(column)
    if alias == LABEL and request.named_labels:
        return named_labels(column)
    kind = str(column.type)
    if alias == LABEL and column.null_count == 0:
        if kind == "bool":
            return as_numpy(column.cast("uint8"))
        if kind in ("int8", "float", "double", *LOOP_LABELS):
            return as_numpy(column)
    if alias.startswith(PROB) and ("list" in kind or "string" in kind):  # lists may be text
        return as_objects(column.to_pylist())
    return _floats(column, keep=("float", "double") if alias.startswith(PROB) else ("double",))


def named_labels(column: Any) -> NDArray[Any]:
    """Labels as they are written: numbers, truth values, or text, with None for what is missing."""
    column = _whole(column)
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "halffloat")):
        return _floats(column) if column.null_count else as_numpy(column)
    if kind == "bool" and not column.null_count:
        return as_numpy(column.cast("uint8")).astype(np.bool_)
    return as_objects(column.to_pylist())


def _groups(columns: list[Any], rows: int) -> tuple[list[Key], NDArray[np.int64]]:
    """Groups of a batch, and each row's index among them. Constants are given as scalars."""
    if len(columns) == 1:
        entries, place = _encoded(_whole(columns[0]))
        return [(entry,) for entry in entries], place.astype(np.int64)
    code = np.zeros(rows, dtype=np.int64)
    values: list[list[Any]] = []
    for column in columns:
        if not is_column(column):
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
    """Distinct values of a column, and each row's index among them."""
    if hasattr(column, "storage"):  # a type of others', such as Ray's for the objects of pandas
        place, keys = indexed((value,) for value in column.to_pylist())
        return [key[0] for key in keys], place
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
        return encoded.dictionary.to_pylist(), as_numpy(encoded.indices)
    except InputError:
        raise
    except (ValueError, OverflowError, NotImplementedError) as error:  # a list, a date of no year
        raise InputError(
            "`by`: a group must be a plain value that Python has (dates of the years 1 to 9999); a "
            f"{column.type} is none: {show_value(str(error))}.",
            argument="by",
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
