"""Clusters: Dask, Ray and Spark sum where the rows are; only sums reach the driver."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from calibrant.errors import InputError, invalid
from calibrant.io import sums as io_sums
from calibrant.io.arrow import require_types
from calibrant.io.frames import attach, batches_of, in_memory, is_label, select
from calibrant.io.request import LABEL, Request, require_columns
from calibrant.io.sums import Sums, as_table, from_table, merged, table_names

FIRST_ROWS = 10_000
"""Rows by whose labels columns of class probabilities are told apart."""
_REFUSAL = "__calibrant_refusal"


def sums_of(engine: str, source: Any, request: Request) -> Iterable[Sums]:
    """Sums of a distributed frame of Dask, Ray or Spark."""
    if engine != "dask" and request.pos_label is not None:
        raise InputError(
            f"`pos_label` is not read on {engine}: compare with the event in an expression of its own.",
        )
    if engine == "dask":
        return [_dask(source, request)]
    return _ray(source, request) if engine == "ray" else _spark(source, request)


def first_labels(engine: str, source: Any, request: Request) -> list[Any]:
    """Labels of the first rows of a frame of Dask or Spark."""
    if engine == "ray":
        return []
    labels = replace(request, columns={LABEL: request.columns[LABEL]}, groups={})
    return list(in_memory(select(source, labels).head(FIRST_ROWS))[LABEL].to_list())


# -- Dask ------------------------------------------------------------------------------------------


def _dask(source: Any, request: Request) -> Sums:
    """One kernel for each partition, then a tree of sums: nothing is shuffled."""
    dask = sys.modules["dask"]
    if not hasattr(source, "to_delayed") or not hasattr(source, "columns"):
        raise invalid("data", "be a DataFrame, where it is of Dask", source, "Use .to_dataframe().")
    import narwhals as nw

    labels = {a: c for a, c in request.selection.items() if is_label(c, source, source.columns)}
    require_columns(labels.values(), source.columns, "the frame")
    own = {alias: column for alias, column in request.selection.items() if alias not in labels}
    portable = [c.alias(a) for a, c in own.items() if isinstance(c, nw.Expr)]
    if portable:
        source = nw.to_native(nw.from_native(source).with_columns(*portable))
    own = {alias: column for alias, column in own.items() if not isinstance(column, nw.Expr)}
    source = attach(source, own) if own else source
    names = {alias: labels.get(alias, alias) for alias in request.selection}
    by_name = replace(
        request,
        columns={alias: names[alias] for alias in request.columns},
        groups={n: names[a] for n, a in zip(request.groups, request.group_aliases, strict=True)},
    )
    source = source[list(dict.fromkeys(names.values()))]
    parts = [dask.delayed(_partition)(part, by_name) for part in source.to_delayed()]
    while len(parts) > 1:
        parts = [dask.delayed(merged)(parts[i : i + 8], by_name) for i in range(0, len(parts), 8)]
    result: Sums = parts[0].compute()
    return result


def _partition(source: Any, request: Request) -> Sums:
    """Sums of a part of the rows, where these are."""
    return merged(io_sums.sums_of(batches_of(source, request), request), request)


# -- Ray -------------------------------------------------------------------------------------------


def _ray(source: Any, request: Request) -> Iterator[Sums]:
    """One kernel for each block; what comes back are tables of sums."""
    request.require_names()
    schema = source.schema()
    if schema is None:  # no blocks at all
        return
    require_columns(request.names(), schema.names, "the dataset")
    import pyarrow

    # What pandas holds as objects has no type before it is read.
    kinds = [k if isinstance(k, pyarrow.DataType) else pyarrow.null() for k in schema.types]
    known = pyarrow.schema(list(zip(schema.names, kinds, strict=True)))
    require_types(known, dict(request.selection), request)
    tables = source.map_batches(
        _ray_block, batch_format="pyarrow", batch_size=None, fn_kwargs={"request": request}
    )
    for table in tables.iter_batches(batch_format="pyarrow", batch_size=None):
        if _REFUSAL in table.column_names:
            raise pickle.loads(table[_REFUSAL][0].as_py())
        yield from_table(table, request)


def _ray_block(block: Any, request: Request) -> Any:
    try:
        part = _partition(block, request)
    except InputError as refusal:  # raised here, it would reach the driver as text inside another
        import pyarrow

        return pyarrow.table({_REFUSAL: [pickle.dumps(refusal)]})
    return as_table(part, request)


# -- Spark, for what its SQL has no words for ------------------------------------------------------------


def _spark(source: Any, request: Request) -> Iterator[Sums]:
    """One kernel for each partition, in the executors' Python; they need calibrant installed."""
    import narwhals as nw

    frame = nw.to_native(select(source, request))

    def kernel(batches: Iterator[Any]) -> Iterator[Any]:
        yield from as_table(_partition(batches, request.selected()), request).to_batches()

    names = request.class_names or request.models or (0,)
    added = "string" if isinstance(names[0], str) else "bigint"
    of_frame = [frame.schema[alias].dataType.simpleString() for alias in request.group_aliases]
    kinds = [*(added for _ in request.added), *of_frame, "bigint"]
    kinds += ["bigint" if place < 2 else "double" for place in range(2 + 3 * request.fractional)]
    pairs = zip(table_names(request), kinds, strict=True)
    found = frame.mapInArrow(kernel, ", ".join(map(" ".join, pairs))).toArrow()
    yield from_table(found, request)
