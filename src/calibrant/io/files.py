"""Files out of core: jobs read by threads, summed in a fixed order, in bounded memory."""

from __future__ import annotations

import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.classes import class_names
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import CalibrantError, CalibrantWarning
from calibrant.io.arrow_batches import named_labels, sums_of_batches
from calibrant.io.checkpoint import Checkpoint, unchanged
from calibrant.io.file_jobs import Job, jobs_of
from calibrant.io.find_files import DataFile, find_files, reader_of, short_names
from calibrant.io.progress import Progress
from calibrant.io.required_columns import LABEL
from calibrant.io.scan_request import FILE, FileOptions, Request
from calibrant.io.sums import DenseSums, GroupedSums
from calibrant.io.totals import GroupTotal, add_part, as_result

__all__ = ["scan_files"]

FILE_ALIAS = "__calibrant_file"

CHECKPOINT_SECONDS = 15.0
Part = DenseSums | GroupedSums


def scan_files(source: Any, request: Request, options: FileOptions) -> Sketch | Sketches:
    """The result over all files of a path, a glob, a folder or a list of these.

    The checkpoint stays, with the sum of all jobs: the result is not on the disk yet, and where rows are
    refused, the scan can be had from it without these rows.
    """
    checkpoint = options.checkpoint
    files = find_files(source, besides=checkpoint, separator=options.sep)
    if options.per_file:
        request = replace(request, groups={FILE: FILE_ALIAS, **request.groups})
        named = zip(files, short_names(files), strict=True)
        files = [
            replace(file, partitions={**file.partitions, FILE_ALIAS: name}) for file, name in named
        ]
    settled = request.multiclass is None or request.class_names is not None
    if not settled and len(request.prob_aliases) > 1:
        request = _with_class_names(files, request)
    total: DenseSums | GroupTotal = GroupTotal(request) if request.by else DenseSums(request)
    note = None if checkpoint is None else Checkpoint(checkpoint, request, files)
    with unchanged(files):
        done = _sum(files, request, total, note, options.threads, options.progress)
    if note and note.done != done:
        try:
            note.save(done, total)
        except CalibrantError as error:  # the result is there all the same
            warnings.warn(CalibrantWarning("{reason}", reason=error), stacklevel=4)
    if isinstance(total, GroupTotal):
        _read_numbers(total, files[0])
    return as_result(request, total)


def _with_class_names(files: list[DataFile], request: Request) -> Request:
    """The request with what the columns of classes stand for, by the labels of the first rows."""
    first = next(iter(jobs_of(files, request).jobs)).read()
    labels = set(named_labels(next(iter(first)).columns[LABEL]).tolist())
    columns = [str(request.columns[alias]) for alias in request.prob_aliases]
    return replace(request, class_names=class_names(columns, labels))


def _sum(
    files: list[DataFile],
    request: Request,
    total: DenseSums | GroupTotal,
    note: Checkpoint | None,
    threads: int | None,
    progress: bool | None,
) -> int:
    """Add all jobs to the total, from where the checkpoint stands; how many there are."""
    done = note.load(total) if note else 0
    work = jobs_of(files, request)
    bar = Progress(work.total, show=progress)
    saved = time.monotonic()
    whole = True  # whether the total is that of the jobs that are done: one may be half added
    try:
        parts = _in_order(work.jobs, done, _reader(request), threads or os.cpu_count() or 1, bar)
        for found in parts:
            whole = False
            for part in found:
                add_part(total, part)
            done += 1
            whole = True
            if note and time.monotonic() - saved >= CHECKPOINT_SECONDS:
                note.save(done, total)
                saved = time.monotonic()
    except KeyboardInterrupt:
        if note and whole:
            note.save(done, total)
        raise
    finally:
        bar.close()
    return done


def _reader(request: Request) -> Callable[[Job], list[Part]]:
    def read(job: Job) -> list[Part]:
        parts: list[Part] = []
        sums_of_batches(job.read(), request, parts.append)
        return parts

    return read


def _in_order(
    jobs: Iterator[Job], skip: int, read: Callable[[Job], list[Part]], threads: int, bar: Progress
) -> Iterator[list[Part]]:
    """The results of the jobs, one after the other; only a few are under way at any time."""
    waiting: deque[tuple[Job, Future[list[Part]]]] = deque()

    def finish() -> list[Part]:
        job, future = waiting.popleft()
        parts = future.result()
        bar.advance(job.size, sum(int(_counts(part).sum()) for part in parts))
        return parts

    with ThreadPoolExecutor(max_workers=threads) as pool:
        try:
            for number, job in enumerate(jobs):
                if number < skip:
                    bar.advance(job.size, 0)
                    continue
                waiting.append((job, pool.submit(read, job)))
                if len(waiting) > threads + 1:
                    yield finish()
            while waiting:
                yield finish()
        finally:
            for _, future in waiting:
                future.cancel()


def _counts(part: Part) -> np.ndarray[Any, Any]:
    return part.counts if isinstance(part, DenseSums) else part.sums[0]


def _read_numbers(total: GroupTotal, file: DataFile) -> None:
    """Groups of a CSV are text so far; a column that holds nothing but integers is read as such."""
    if file.format != "csv":
        return
    columns = list(zip(*total.index, strict=True))
    of_file = list(total.request.groups.values())
    added = len(total.request.added)
    readers = [
        reader_of(values)
        if place >= added
        and of_file[place - added] != FILE_ALIAS
        and all(v is None or isinstance(v, str) for v in values)
        else lambda v: v
        for place, values in enumerate(columns)
    ]
    total.index = {
        tuple(read(value) for read, value in zip(readers, key, strict=True)): place
        for key, place in total.index.items()
    }
