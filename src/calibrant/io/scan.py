"""`scan`: one pass over data wherever it lies, into a sketch, or sketches by group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Unpack

import numpy as np

from calibrant._arguments import require_count
from calibrant.data.cell_sums import DEFAULT_NODES
from calibrant.data.classes import class_names
from calibrant.data.rows import (
    Classes,
    InputOptions,
    as_form,
    refuse_keyword,
    warn_of_fractions,
)
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option, TypeName
from calibrant.io.arrays import sums_of_dict
from calibrant.io.engines import engine_of
from calibrant.io.frames import (
    arrow_stream,
    first_values,
    is_frame,
    select,
    sums_of_frame,
    sums_of_slices,
)
from calibrant.io.required_columns import LABEL
from calibrant.io.scan_request import FileOptions, Request, make_request
from calibrant.io.sums import DenseSums, GroupedSums
from calibrant.io.totals import GroupTotal, add_part, as_result

__all__ = ["ReadingOptions", "scan"]


class ReadingOptions(InputOptions, total=False):
    """How rows are read: what arrays have (`InputOptions`), and what only tables and files have.

    Attributes
    ----------
    multiclass : {"confidence", "top_label", "classwise"}
        Predictions are one column per class, or a column of lists; outcomes are names or numbers as in the
        columns, or as in `classes`, or count columns whose names hold no numbers.
    per_file : bool
        For files: one group per file, by the name "file".
    sep : str
        For CSV: what stands between fields. A comma, unless the first line has none and semicolons, tabs or
        bars instead.
    """

    multiclass: Classes | None
    per_file: bool
    sep: str


def scan(
    data: Any,
    *,
    y_true: Any,
    y_prob: Any,
    by: Any = None,
    cluster: Any = None,
    nodes: int = DEFAULT_NODES,
    scale: str | Scale = PROBABILITY,
    checkpoint: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    **reading: Unpack[ReadingOptions],
) -> Sketch | Sketches:
    """Read predictions and outcomes once, where they are stored, and keep only their sketch.

    Parameters
    ----------
    data
        A frame: pandas, polars (eager or lazy), an Arrow table, dataset, reader or anything that
        exports an Arrow stream, a DuckDB relation, Ibis, Modin, Dask, PySpark (classic or Connect),
        Ray Data. Or files: a path, a glob, a folder, or a list of these, of Parquet, CSV, JSON lines
        or Arrow, on this machine or at an fsspec address. Or an iterator over batches: frames, record
        batches or dicts of arrays.
    y_true, y_prob
        Columns, by name or as an expression of the engine (or of narwhals, for any frame). Fields inside
        JSON objects have dotted names. Several columns of predictions, in a list, are several models:
        groups by the name "model".
    by : str, list of str, or dict, optional
        Groups, by name, or as a dict from new names to expressions. Hive partitions of a folder are
        columns too.
    cluster : str, optional
        A column that says which rows belong together (several forecasts of one event). Each cluster
        is one more group, so that intervals can resample clusters whole; `Sketches.roll_up` or
        `total` adds them up.
    nodes : int
        Cells of the grid, a power of two.
    scale : str or Scale
        The scale of the grid.
    checkpoint : path, optional
        For files: save now and then how far the scan is. A scan that was stopped goes on from there
        when called again, and gives the same bits. The file stays when the scan is done; it goes when
        the result is on the disk, with `save(sketch, path, checkpoint=...)`.
    threads : int, optional
        For files: how many threads read at a time; all cores by default.
    progress : bool, optional
        For files: draw a progress bar; by default, only on a terminal.
    **reading
        How rows are read: `sample_weight` (a column), `pos_label`, `from_logits`, `from_logprobs`,
        `percent`, `labels`, `on_invalid`, `multiclass`, `classes`, `per_file`, `sep` (see `ReadingOptions`).

    Returns
    -------
    Sketch or Sketches
        Sketches where `by`, `cluster`, several columns or classes make groups, sorted by group.

    Notes
    -----
    Without weights or soft labels and on the probability scale, every engine gives the same bits as
    NumPy. A group whose rows were all dropped keeps its count of them and has no rows.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.6, 0.9], "model": ["a", "a", "b"]})
    >>> scan(frame, y_true="y", y_prob="p")
    <Sketch of 3 rows, 2 events, in 3 of 65536 cells, scale probability>
    >>> scan(frame, y_true="y", y_prob=pl.col("p") / 2, by="model")["a"].n
    2
    """
    unknown = (
        reading.keys() - ReadingOptions.__annotations__.keys() - InputOptions.__annotations__.keys()
    )
    if unknown:
        refuse_keyword(
            min(unknown), [*InputOptions.__annotations__, *ReadingOptions.__annotations__]
        )
    request = make_request(
        y_true=y_true,
        y_prob=y_prob,
        sample_weight=reading.get("sample_weight"),
        by=by,
        cluster=cluster,
        nodes=nodes,
        scale=scale,
        on_invalid=reading.get("on_invalid", "raise"),
        form=as_form(
            from_logits=reading.get("from_logits", False),
            from_logprobs=reading.get("from_logprobs", False),
            percent=reading.get("percent", False),
        ),
        labels=reading.get("labels", "binary"),
        pos_label=reading.get("pos_label"),
        multiclass=reading.get("multiclass"),
        classes=reading.get("classes"),
    )
    options = FileOptions(
        checkpoint, threads, progress, reading.get("per_file", False), reading.get("sep")
    )
    result = _scanned(_as_paths(data), request, options)
    if reading.get("percent"):
        _warn_of_scale(result)
    return result


def _scanned(data: Any, request: Request, options: FileOptions) -> Sketch | Sketches:
    threads = options.threads
    if threads is not None:
        require_count("threads", threads)
    if options.checkpoint is not None and request.named_labels:
        raise InputError(
            "goes with labels 0 and 1, and with one event",
            argument="checkpoint",
            cure="Leave out {option}.",
            option=Option("pos_label" if request.multiclass is None else "multiclass"),
        )
    if _is_path(data):
        from calibrant.io.files import scan_files

        return scan_files(data, request, options)
    for name, value in (("checkpoint", options.checkpoint), ("sep", options.sep)):
        if value is not None:
            raise InputError("is for files", argument=name, seen=value, cure="Leave it out.")
    if options.per_file:
        raise InputError("is for files", argument="per_file", seen=True, cure="Leave it out.")
    request = _with_class_names(data, request)
    return as_result(request, _total(data, request))


def _with_class_names(data: Any, request: Request) -> Request:
    """The request with what the columns of classes of a table stand for, by the labels of its first rows.

    Of a source whose first rows cannot be looked at before, only numbers in the columns' names are known.
    """
    columns = [request.columns[alias] for alias in request.prob_aliases]
    label = request.columns[LABEL]
    if request.multiclass is None or request.class_names is not None or len(columns) < 2:
        return request
    known = isinstance(label, str) and (isinstance(data, Mapping) or is_frame(data))
    if not known and not all(isinstance(column, str) for column in columns):
        return request
    labels = set(first_values(data, label)) if known else set()
    return replace(request, class_names=class_names(list(map(str, columns)), labels))


def _warn_of_scale(found: Sketch | Sketches) -> None:
    """Warn where no prediction is above one per cent."""
    parts = [
        part for part in (found.values() if isinstance(found, Sketches) else [found]) if part.n
    ]
    low = [np.asarray(part.scale.prediction(part.cells / part.nodes)) for part in parts]
    if not any((own > 0.01).any() for own in low):
        warn_of_fractions(stacklevel=4)


def _is_path(source: Any) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | os.PathLike) for item in source)
    return isinstance(source, str | os.PathLike)


def _as_paths(source: Any) -> Any:
    """A set or an iterator of paths as the list of these; anything else as it is."""
    if isinstance(source, Set) and all(isinstance(item, str | os.PathLike) for item in source):
        return sorted(map(os.fspath, source))
    if not isinstance(source, Iterator) or hasattr(source, "__arrow_c_stream__"):
        return source
    first = list(islice(source, 1))
    return [*first, *source] if _is_path(first) else chain(first, source)


def _total(source: Any, request: Request) -> DenseSums | GroupTotal:
    total: DenseSums | GroupTotal = GroupTotal(request) if request.by else DenseSums(request)
    try:
        if request.models and not isinstance(source, Iterator):
            for place, model in enumerate(request.models):
                for part in _parts(source, request.of_model(place)):
                    grouped = part.grouped(()) if isinstance(part, DenseSums) else part
                    keys = [(model, *key) for key in grouped.keys]
                    add_part(total, replace(grouped, keys=keys))
            return total
        for part in _parts(source, request):
            add_part(total, part)
    except UnicodeError as error:
        raise InputError(
            "text must be such as UTF-8 can hold; this is not: {error}",
            error=str(error),
            cure="Replace lone surrogates first.",
        ) from error
    return total


def _parts(
    source: Any, request: Request, *, is_batch: bool = False
) -> Iterable[DenseSums | GroupedSums]:
    source = source.to_native() if engine_of(source) == "narwhals" else source
    engine = engine_of(source)
    if engine in ("dask", "ray") or (engine == "pyspark" and not request.portable):
        from calibrant.io import distributed

        yield from distributed.sums_of(engine, source, request)
    elif isinstance(source, Mapping):
        yield from sums_of_dict(source, request)
    elif is_frame(source) and request.portable and engine != "pyarrow":
        yield from sums_of_frame(source, request)
    elif is_frame(source) and engine == "polars":
        yield from sums_of_slices(select(source, request), request)
    elif is_frame(source):
        yield from _arrow_parts(arrow_stream(select(source, request)), request.selected())
    elif hasattr(source, "__arrow_c_stream__") or engine == "pyarrow":
        request.require_no_constants()
        yield from _arrow_parts(source, request)
    elif isinstance(source, Iterable) and not isinstance(source, np.ndarray) and not is_batch:
        for batch in source:
            yield from _parts(batch, request, is_batch=True)
    elif is_batch:
        raise InputError(
            "must give frames, record batches or dicts of arrays, or nothing but paths",
            argument="data",
            seen=TypeName.of(source),
            saying="it gave a {kind}",
            kind=type(source).__name__,
            cure="Of groups, scan the frame itself, with {by}.",
            by=Option("by"),
        )
    else:
        raise InputError(
            "must be a frame, files, or an iterator over batches",
            argument="data",
            seen=TypeName.of(source),
            saying="got a {kind}",
            kind=type(source).__name__,
            cure="For arrays, use Sketch.from_arrays(y_true, y_prob).",
        )


def _arrow_parts(source: Any, request: Request) -> list[DenseSums | GroupedSums]:
    from calibrant.io.arrow_batches import batches_of, sums_of_batches

    parts: list[DenseSums | GroupedSums] = []
    sums_of_batches(batches_of(source, request), request, parts.append)
    return parts
