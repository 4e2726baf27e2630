"""Rows as arrays, for what a sketch is not enough for: models on the same rows, columns to add to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.errors import InputError, Where
from calibrant.io.arrow_batches import Batch, batches_of, column_of
from calibrant.io.checkpoint import unchanged
from calibrant.io.file_jobs import jobs_of
from calibrant.io.find_files import DataFile, find_files, reader_of
from calibrant.io.frames import arrow_stream, is_frame, select
from calibrant.io.required_columns import LABEL, PROB, WEIGHT, no_rows, require_columns
from calibrant.io.scan_request import Request, make_request

__all__ = ["Place", "Rows", "placed", "read_arrays", "read_rows", "request_for_rows"]

Place = Callable[[int], Where]


@dataclass(frozen=True)
class Rows:
    """Columns of a table or of files, as arrays of one length.

    Attributes
    ----------
    y_true : array
        Outcomes, as they are written.
    y_probs : dict
        From the name of each column of predictions to its values.
    sample_weight : array or None
        Weights.
    groups : dict
        From the name of every other column that was asked for to its values.
    place : callable
        From a row, counted from 0, to where it stands: a line of a file.
    """

    y_true: NDArray[Any]
    y_probs: Mapping[str, NDArray[Any]]
    sample_weight: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
    place: Place


def read_rows(
    data: Any,
    *,
    y_true: str,
    y_prob: str | Sequence[str],
    sample_weight: str | None = None,
    columns: Sequence[str] = (),
    named_labels: bool = False,
    sep: str | None = None,
) -> Rows:
    """The columns of these names, of a frame, a dict of arrays, or files; predictions as they are written."""
    names = [y_prob] if isinstance(y_prob, str) else list(y_prob)
    kept = "" if named_labels else None  # labels that are text stay text
    request = request_for_rows(y_true, names, sample_weight, columns, pos_label=kept)
    arrays, place = read_arrays(data, request, sep)
    groups = dict(zip(columns, (arrays[a] for a in request.group_aliases), strict=True))
    probs = {name: arrays[f"{PROB}_{k}"] for k, name in enumerate(names)}
    return Rows(arrays[LABEL], probs, arrays.get(WEIGHT), groups, place)


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """Let errors that name a row of these rows say where it stands."""
    try:
        yield
    except InputError as error:
        row = error.row
        if row is None or error.file is not None:
            raise
        found = place(row)
        raise error.but(where=found) from error


def request_for_rows(
    y_true: str, y_prob: list[str], sample_weight: str | None, columns: Sequence[str], **more: Any
) -> Request:
    """What to read where every row is kept as it is; the grid of sketches is never used."""
    return make_request(
        y_true=y_true,
        y_prob=y_prob,
        sample_weight=sample_weight,
        by=list(columns) or None,
        cluster=None,
        nodes=1 << 16,
        scale="probability",
        **{"on_invalid": "raise", **more},
    )


def read_arrays(
    data: Any, request: Request, sep: str | None
) -> tuple[dict[str, NDArray[Any]], Place]:
    """All that a request asks for, by its aliases; and where each row stands."""
    if isinstance(data, Mapping):
        require_columns(request.names(), data, "the data")
        columns = request.selection.items()
        return {alias: as_array(data[name], name) for alias, name in columns}, _row_alone
    if is_frame(data):
        batches = batches_of(arrow_stream(select(data, request)), request.selected())
        return _joined(batches, request), _row_alone
    files = find_files(data, separator=sep)
    with unchanged(files):
        jobs = jobs_of(files, request).jobs
        arrays = _joined((batch for job in jobs for batch in job.read()), request)
    if files[0].format == "csv":
        for alias in request.group_aliases:
            values = arrays[alias].tolist()
            if all(value is None or isinstance(value, str) for value in values):
                read = reader_of(values)
                arrays[alias] = _objects([read(value) for value in values])
    return arrays, partial(_place_in, files, request)


def _row_alone(row: int) -> Where:
    return Where(row=row)


def _place_in(files: Sequence[DataFile], request: Request, row: int) -> Where:
    """Where a row of files stands: they are read again up to it, which only a refusal asks for."""
    first = 0
    for job in jobs_of(files, request).jobs:
        for batch in job.read():
            rows = _rows_in(batch)
            if row < first + rows:
                return batch.place(row - first)
            first += rows
    return Where(row=row)


def _rows_in(batch: Batch) -> int:
    return max(len(c) for c in batch.columns.values() if hasattr(c, "dictionary_encode"))


def _joined(batches: Iterable[Batch], request: Request) -> dict[str, NDArray[Any]]:
    pieces: dict[str, list[NDArray[Any]]] = {alias: [] for alias in request.selection}
    for batch in batches:
        rows = _rows_in(batch)
        for alias, parts in pieces.items():
            column = batch.columns[alias]
            if not hasattr(column, "dictionary_encode"):  # it stands in the path
                parts.append(_objects([column] * rows))
            elif alias in request.group_aliases:
                parts.append(_objects(column.to_pylist()))
            else:
                parts.append(column_of(alias, column, request))
    if not next(iter(pieces.values())):
        raise no_rows()
    return {alias: _concatenated(parts) for alias, parts in pieces.items()}


def _concatenated(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    if len({piece.dtype.kind in "biuf" for piece in pieces}) > 1:
        pieces = [piece.astype(object) for piece in pieces]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _objects(values: list[Any]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
