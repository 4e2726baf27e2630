"""`scan`: one pass over data wherever they lie, into a sketch, or sketches by group."""

from __future__ import annotations

import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_count
from calibrant.data.cell_sums import DEFAULT_NODES
from calibrant.data.classes import as_class_probabilities, class_names
from calibrant.data.rows import (
    FORMS,
    Classes,
    Form,
    InputOptions,
    as_form,
    refuse_keyword,
    require_forms_of_classes,
    warn_of_form,
)
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import CalibrantError, CalibrantWarning, InputError, show_value
from calibrant.io.checkpoint import Checkpoint
from calibrant.io.files import (
    DataFile,
    Job,
    find_files,
    integers_of,
    jobs_of,
    short_names,
    unchanged,
)
from calibrant.io.frames import (
    as_frame,
    batches_of,
    engine_of,
    source_of,
    sums_of_lazy,
)
from calibrant.io.progress import Progress
from calibrant.io.request import FILE, Request, make_request
from calibrant.io.sums import Sums, Total, as_result, sums_of

FILE_ALIAS = "__calibrant_file"
OF_FILES = ("per_file", "sep")
"""Options of reading that only files have."""
CHECKPOINT_SECONDS = 15.0
GROUPED_THREADS = 2
"""Threads that sum rows by group: to add up what they give takes one thread as long."""


class ReadingOptions(InputOptions, total=False):
    """Options of reading: those of arrays (`InputOptions`), and those that only tables and files have.

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
        Ray Data. Or files: a path, a glob, a folder, or a list of these, of Parquet, CSV, JSON lines,
        Arrow or ORC, on this machine or at an fsspec address. Or an iterator over batches: frames, record
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
        For files: how many threads read at a time; all cores by default. Sums of groups are added up by
        one more, so that two are enough there.
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
    known = {**InputOptions.__annotations__, **ReadingOptions.__annotations__}
    if reading.keys() - known.keys():
        refuse_keyword(min(reading.keys() - known.keys()), list(known))
    request = make_request(
        y_true=y_true,
        y_prob=y_prob,
        by=by,
        cluster=cluster,
        nodes=nodes,
        scale=scale,
        form=_form_of(reading),
        **{name: value for name, value in reading.items() if name not in (*FORMS, *OF_FILES)},  # type: ignore[arg-type]
    )
    per_file, sep = reading.get("per_file", False), reading.get("sep")
    if threads is not None:
        require_count("threads", threads)
    if checkpoint is not None and request.named_labels:
        raise InputError("`checkpoint` goes with labels 0 and 1, and with one event.")
    source = _as_paths(data)
    if _is_path(source):
        files = find_files(source, besides=checkpoint, separator=sep)
        threads = threads or os.cpu_count() or 1
        result = _scan_files(files, request, checkpoint, threads, progress, per_file=per_file)
    else:
        for name, value in (("checkpoint", checkpoint), ("sep", sep), ("per_file", per_file)):
            if value is not None and value is not False:
                raise InputError(f"`{name}` is for files.", argument=name, hint="Leave it out.")
        result = _scan_table(source, request)
    form = "probability" if request.multiclass else request.form
    warn_of_form(form, lambda: _predictions(result), stacklevel=3)
    return result


def _form_of(reading: Mapping[str, Any]) -> Form:
    """Form in which predictions are written, by the options of reading."""
    return as_form({name: reading.get(name, False) for name in FORMS})


def _predictions(found: Sketch | Sketches) -> NDArray[np.float64]:
    """Lower ends of the cells with rows."""
    parts = [part for part in found.groups.values() if part.n]
    ends = [np.asarray(part.scale.prediction(part.cells / part.nodes)) for part in parts]
    return np.concatenate([np.zeros(0), *ends])


def _is_path(source: Any) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | os.PathLike) for item in source)
    return isinstance(source, str | os.PathLike)


def _as_paths(source: Any) -> Any:
    """Set or iterator of paths as the list of these; anything else as it is."""
    if isinstance(source, Set) and all(isinstance(item, str | os.PathLike) for item in source):
        return sorted(map(os.fspath, source))
    if not isinstance(source, Iterator) or hasattr(source, "__arrow_c_stream__"):
        return source
    first = list(islice(source, 1))
    return [*first, *source] if _is_path(first) else chain(first, source)


# -- tables ------------------------------------------------------------------------------------


def _scan_table(source: Any, request: Request) -> Sketch | Sketches:
    source = source_of(source)
    engine = engine_of(source)
    parts: Iterable[Sums]
    try:
        if engine in ("dask", "ray") or (engine == "pyspark" and not request.portable):
            from calibrant.io import distributed

            labels = partial(distributed.first_labels, engine, source, request)
            request = _with_class_names(request, labels)
            parts = distributed.sums_of(engine, source, request)
        elif request.portable and hasattr(as_frame(source), "collect"):
            parts = sums_of_lazy(source, request)
        else:
            batches = batches_of(source, request)
            first = list(islice(batches, 1))
            request = _with_class_names(request, first[0].label.tolist if first else list)
            parts = sums_of(chain(first, batches), request)
        total = Total(request)
        for part in parts:
            total.add(part)
    except UnicodeError as error:
        raise InputError(
            f"Text must be such as UTF-8 can hold; this is not: {show_value(str(error))}.",
            hint="Replace lone surrogates first.",
        ) from error
    return as_result(total)


def _with_class_names(request: Request, labels: Callable[[], Iterable[Any]]) -> Request:
    """Request with the classes of the columns of class probabilities, by the labels of the first rows."""
    columns = [str(request.columns[alias]) for alias in request.prob_aliases]
    if request.multiclass is None or request.class_names is not None or len(columns) == 1:
        return request
    return replace(request, class_names=class_names(columns, set(labels())))


# -- files -------------------------------------------------------------------------------------


def _scan_files(
    files: list[DataFile],
    request: Request,
    checkpoint: str | os.PathLike[str] | None,
    threads: int,
    progress: bool | None,
    *,
    per_file: bool,
) -> Sketch | Sketches:
    """Result over all files.

    The checkpoint stays, with the sum of all jobs: the result is not on the disk yet, and where rows are
    refused, the scan can be had from it without these rows.
    """
    if per_file:
        if FILE in request.groups:
            hint = f'Leave it out, or give a column of this name another, as in by={{"source": "{FILE}"}}.'
            raise InputError(
                f"`by` must not name {FILE!r} beside `per_file`, whose groups have that name.",
                hint=hint,
            )
        request = replace(request, groups={FILE: FILE_ALIAS, **request.groups})
        named = zip(files, short_names(files), strict=True)
        files = [
            replace(file, partitions={**file.partitions, FILE_ALIAS: name}) for file, name in named
        ]
    if request.multiclass is not None:
        first = next(next(jobs_of(files[:1], request)).read())
        request = _with_class_names(request, first.label.tolist)
    total = Total(request)
    note = None if checkpoint is None else Checkpoint(checkpoint, request, files)
    with unchanged(files):
        done = _add_files(files, total, note, threads, progress)
    total.require_one_type()
    if note and note.done != done:
        try:
            note.save(done, total)
        except CalibrantError as error:  # the result is there all the same
            warnings.warn(CalibrantWarning(str(error)), stacklevel=3)
    if request.by and files[0].format == "csv":
        _read_numbers(total)
    try:
        return as_result(total)
    except InputError as error:
        raise error if len(files) > 1 else error.at(file=files[0].path) from error


def _add_files(
    files: list[DataFile],
    total: Total,
    note: Checkpoint | None,
    threads: int,
    progress: bool | None,
) -> int:
    """Add all jobs to the total, from where the checkpoint stands; how many there are."""
    request = total.request
    done = note.load(total) if note else 0
    bar = Progress(sum(file.size for file in files), show=progress)
    threads = min(threads, GROUPED_THREADS) if request.by else threads
    saved = time.monotonic()
    complete = True  # the total is that of the jobs that are done: one may be half added

    def read(job: Job) -> list[Sums]:
        return list(sums_of(job.read(), request))

    try:
        for parts in _in_order(jobs_of(files, request), done, read, threads, bar):
            complete = False
            for part in parts:
                total.add(part)
            done += 1
            complete = True
            if note and time.monotonic() - saved >= CHECKPOINT_SECONDS:
                note.save(done, total)
                saved = time.monotonic()
    except KeyboardInterrupt:
        if note and complete:
            note.save(done, total)
        raise
    finally:
        bar.close()
    return done


def _in_order(
    jobs: Iterator[Job], skip: int, read: Any, threads: int, bar: Progress
) -> Iterator[list[Sums]]:
    """Results of the jobs, one after the other; only a few are under way at any time."""
    waiting: deque[tuple[Job, Future[list[Sums]]]] = deque()

    def finish() -> list[Sums]:
        job, future = waiting.popleft()
        parts = future.result()
        bar.advance(job.size, sum(int(part.sums[0].sum()) for part in parts if part.sums))
        return parts

    with ThreadPoolExecutor(max_workers=threads) as pool:
        try:
            for number, job in enumerate(jobs):
                if number < skip:
                    bar.advance(job.size)
                    continue
                waiting.append((job, pool.submit(read, job)))
                if len(waiting) > threads:
                    yield finish()
            while waiting:
                yield finish()
        finally:
            for _, future in waiting:
                future.cancel()


def _read_numbers(total: Total) -> None:
    """Read groups of a CSV, which are text so far, as integers where a column holds nothing else."""
    columns = list(zip(*total.index, strict=True))
    of_file = [*total.request.added, *total.request.groups.values()]
    for place, values in enumerate(columns):
        if place >= len(total.request.added) and of_file[place] != FILE_ALIAS:
            columns[place] = tuple(integers_of(values))
    total.index = {key: place for place, key in enumerate(zip(*columns, strict=True))}


# -- class probabilities -----------------------------------------------------------------------

TRUE_CLASS = "true class"


@dataclass(frozen=True)
class ClassSketches:
    """All classes of the same rows.

    Attributes
    ----------
    each : Sketches
        By class, one against the rest.
    said : Sketches
        The confidence, by the class that was predicted and the true one.
    """

    each: Sketches
    said: Sketches


def scan_classes(data: Any, *, y_true: Any, y_prob: Any, **reading: Any) -> ClassSketches:
    """Sketches of every class, and of every mix-up of two, from what `scan` reads; two passes.

    Examples
    --------
    >>> rows = {"y": ["a", "b", "b"], "a": [0.7, 0.2, 0.9], "b": [0.3, 0.8, 0.1]}
    >>> found = scan_classes(rows, y_true="y", y_prob=["a", "b"])
    >>> found.each, list(found.said)
    (<Sketches of 2 groups by class: 'a', 'b'>, [('a', 'a'), ('a', 'b'), ('b', 'b')])
    """
    reading = {**reading, "y_true": y_true, "y_prob": y_prob}
    each = scan(data, **{**reading, "multiclass": "classwise"})
    said = scan(data, **{**reading, "multiclass": "top_label"}, by={TRUE_CLASS: y_true})
    return ClassSketches(cast(Sketches, each), cast(Sketches, said))


def class_columns(
    y_true: Any, y_prob: Any, options: InputOptions
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """A matrix as columns of one batch, the names of those with predictions, and how `scan` reads them.

    Weights are not among the columns.
    """
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    form = _form_of(settings)
    require_forms_of_classes(form, settings.get("labels", "binary"), settings.get("pos_label"))
    matrix = as_class_probabilities(
        y_true, y_prob, classes=settings.get("classes"), from_logits=form == "logit"
    )
    names = [f"class {place}" for place in range(len(matrix.classes))]
    columns = {"y_true": matrix.given_labels}
    columns |= {name: matrix.raw[:, place] for place, name in enumerate(names)}
    settings.setdefault("multiclass", "confidence")
    if "classes" in settings or matrix.classes != list(range(len(names))):
        settings["classes"] = matrix.classes
    settings.pop("sample_weight", None)
    return columns, names, settings


def sketches_of_classes(
    y_true: Any,
    y_prob: Any,
    *,
    scale: str | Scale | None = None,
    **options: Unpack[InputOptions],
) -> Sketch | Sketches:
    """The sketch of the confidence, or sketches by predicted class or by class.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> sketches_of_classes([0, 2], probs, multiclass="classwise")
    <Sketches of 3 groups by class: 0, 1, 2>
    """
    columns, names, settings = class_columns(y_true, y_prob, options)
    weight = options.get("sample_weight")
    if weight is not None:
        columns["sample_weight"], settings["sample_weight"] = np.asarray(weight), "sample_weight"
    chosen = PROBABILITY if scale is None else scale
    return scan(columns, y_true="y_true", y_prob=names, scale=chosen, **settings)
