"""`scan`: one pass over data wherever it lies, into a sketch, or sketches by group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain, islice
from typing import Any, Literal

import numpy as np

from calibrant.data.pairs import as_form, warn_of_fractions
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import DEFAULT_NODES, Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError
from calibrant.read.arrays import sums_of_dict
from calibrant.read.engines import engine_of
from calibrant.read.frames import (
    arrow_stream,
    is_frame,
    select,
    sums_of_frame,
    sums_of_slices,
)
from calibrant.read.request import Request, make_request
from calibrant.read.sums import DenseSums, GroupedSums
from calibrant.read.totals import GroupTotal, add_part, as_result

__all__ = ["scan"]


def scan(
    source: Any,
    *,
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    by: Any = None,
    cluster: Any = None,
    nodes: int = DEFAULT_NODES,
    scale: str | Scale = PROBABILITY,
    from_logits: bool = False,
    percent: bool = False,
    labels: Literal["binary", "soft"] = "binary",
    on_invalid: Literal["raise", "drop"] = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Sketch | Sketches:
    """Read predictions and outcomes once, where they lie, and keep only their sketch.

    Parameters
    ----------
    source
        A frame: pandas, polars (eager or lazy), an Arrow table, dataset, reader or anything that
        exports an Arrow stream, a DuckDB relation, Ibis, Modin, Dask, PySpark (classic or Connect),
        Ray Data. Or files: a path, a glob, a folder, or a list of these, of Parquet, CSV, JSON lines
        or Arrow, on this machine or at an fsspec address. Or an iterator over batches: frames, record
        batches or dicts of arrays.
    y_true, y_prob, sample_weight
        Columns, by name or as an expression of the engine (or of narwhals, for any frame).
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
    from_logits, percent : bool
        For files: predictions are log-odds, or run from 0 to 100 (in text also as "85%"). Frames have
        expressions for this.
    labels : {"binary", "soft"}
        Soft outcomes are probabilities or shares in [0, 1]. Outcomes that are named, such as "yes" and
        "no", are an expression: `y_true=polars.col("paid") == "yes"`.
    on_invalid : {"raise", "drop"}
        What happens when rows break a rule. Dropped rows are counted by reason in the sketch; text where
        a number belongs is one that is out of range.
    checkpoint : path, optional
        For files: note now and then how far the scan is. A scan that was stopped goes on from there
        when called again, and gives the same bits. The note stays when the scan is done; it goes when
        the result is on the disk, with `save(sketch, path, checkpoint=...)`.
    threads : int, optional
        For files: how many read at a time; all cores unless told.
    progress : bool, optional
        For files: draw a bar; on a terminal unless told.

    Returns
    -------
    Sketch or Sketches
        Sketches where `by` or `cluster` is given, sorted by group.

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
    request = make_request(
        y_true=y_true,
        y_prob=y_prob,
        sample_weight=sample_weight,
        by=by,
        cluster=cluster,
        nodes=nodes,
        scale=scale,
        on_invalid=on_invalid,
        form=as_form(from_logits=from_logits, percent=percent),
        labels=labels,
    )
    if threads is not None and not (_is_integer(threads) and threads >= 1):
        raise InputError(f"`threads` must be a whole number, at least 1; got {threads!r}.")
    source = _as_paths(source)
    if _is_path(source):
        from calibrant.read.files import scan_files

        result = scan_files(
            source, request, checkpoint=checkpoint, threads=threads, progress=progress
        )
        if percent:
            _warn_of_fractions(result)
        return result
    if request.form != "probability":
        raise InputError(
            "`from_logits` and `percent` are for files; of a frame, pass an expression as `y_prob`, such "
            'as `polars.col("p") / 100`.'
        )
    if checkpoint is not None:
        raise InputError("`checkpoint` is for files; an engine keeps its own account of its work.")
    return as_result(request, _total(source, request))


def _warn_of_fractions(found: Sketch | Sketches) -> None:
    """Warn where no prediction is above one per cent."""
    parts = found.values() if isinstance(found, Sketches) else [found]
    highest = (part.scale.prediction(part.cells[-1:] / part.nodes) for part in parts if part.n)
    if all(float(p[0]) <= 0.01 for p in highest):
        warn_of_fractions(stacklevel=4)


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


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
    total: DenseSums | GroupTotal = GroupTotal(request) if request.groups else DenseSums(request)
    for part in _parts(source, request):
        add_part(total, part)
    return total


def _parts(
    source: Any, request: Request, *, is_batch: bool = False
) -> Iterable[DenseSums | GroupedSums]:
    source = source.to_native() if engine_of(source) == "narwhals" else source
    engine = engine_of(source)
    if engine in ("dask", "ray") or (engine == "pyspark" and not request.portable):
        from calibrant.read import clusters

        yield from clusters.sums_of(engine, source, request)
    elif isinstance(source, Mapping):
        yield sums_of_dict(source, request)
    elif is_frame(source) and request.portable and engine != "pyarrow":
        yield sums_of_frame(source, request)
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
            "an iterator must give frames, record batches or dicts of arrays, or nothing but paths; "
            f"it gave a {type(source).__name__}. Of groups, scan the frame itself, with `by`."
        )
    else:
        raise InputError(
            f"`source` must be a frame, files, or an iterator over batches; got "
            f"{type(source).__name__}. For arrays use `Sketch.from_arrays(y_true, y_prob)`."
        )


def _arrow_parts(source: Any, request: Request) -> list[DenseSums | GroupedSums]:
    from calibrant.read.arrow import batches_of, sums_of_batches

    parts: list[DenseSums | GroupedSums] = []
    sums_of_batches(batches_of(source, request), request, parts.append)
    return parts
