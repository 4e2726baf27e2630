"""Rows as arrays or as a table, where a sketch is not enough: models on the same rows, columns to add to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.data.arrays import as_array
from calibrant.data.classes import class_names
from calibrant.errors import InputError, show_value
from calibrant.io.arrow import Batch, batches_of, column_of, is_column
from calibrant.io.files import DataFile, find_files, integers_of, jobs_of, unchanged
from calibrant.io.frames import arrow_stream, is_frame, select
from calibrant.io.group_keys import as_objects
from calibrant.io.predictions import class_matrix
from calibrant.io.request import (
    LABEL,
    PROB,
    WEIGHT,
    Request,
    make_request,
    no_rows,
    require_columns,
)
from calibrant.io.sums import Place

__all__ = ["Rows", "columns_of", "placed", "read_rows", "read_table"]


@dataclass(frozen=True)
class Rows:
    """Columns of a table or of files, as arrays of one length.

    Attributes
    ----------
    y_true : array
        Outcomes, as they are written.
    y_probs : dict
        From the name of each column of predictions, or of each model, to its values: numbers, or a matrix
        with a column for each class.
    sample_weight : array or None
        Weights.
    groups : dict
        From the name of every other column that was asked for to its values.
    place : callable
        From a row, counted from 0, to its row and file in the source.
    classes : list, optional
        Classes of the columns of the matrices; None where labels count them.
    """

    y_true: NDArray[Any]
    y_probs: Mapping[str, NDArray[Any]]
    sample_weight: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
    place: Place
    classes: list[Any] | None = None


def read_rows(
    data: Any,
    *,
    y_true: str,
    y_prob: Mapping[str, str | Sequence[str]],
    sample_weight: str | None = None,
    columns: Sequence[str] = (),
    named_labels: bool = False,
    multiclass: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    sep: str | None = None,
) -> Rows:
    """Rows of a frame, a dict of arrays, or files: of each model a column of predictions, as written.

    With `multiclass`, a column for each class, or one of lists.

    Examples
    --------
    >>> rows = {"y": ["dog", "cat"], "p_cat": [0.2, 0.7], "p_dog": [0.8, 0.3]}
    >>> found = read_rows(rows, y_true="y", y_prob={"p": ["p_cat", "p_dog"]}, multiclass=True)
    >>> found.classes, found.y_probs["p"].shape
    (['cat', 'dog'], (2, 2))
    """
    models = {str(k): [own] if isinstance(own, str) else list(own) for k, own in y_prob.items()}
    every = [name for own in models.values() for name in own]
    request = make_request(
        y_true=y_true,
        y_prob=every,
        sample_weight=sample_weight,
        by=list(columns) or None,
        multiclass="confidence" if multiclass else None,
        pos_label="" if named_labels and not multiclass else None,  # labels that are text stay text
        on_invalid=on_invalid,
    )
    arrays, place = _read_arrays(data, request, sep)
    y_probs: dict[str, NDArray[Any]] = {}
    named: dict[str, tuple[Any, ...] | None] = {}
    labels = set(arrays[LABEL].tolist()) if multiclass else set()
    for name, own in models.items():
        probs = [arrays[f"{PROB}_{every.index(column)}"] for column in own]
        with placed(place):
            y_probs[name] = (
                class_matrix(probs, own[0], on_invalid=on_invalid) if multiclass else probs[0]
            )
        named[name] = class_names(own, labels) if multiclass and len(own) > 1 else None
        first = next(iter(models))
        if (named[name], y_probs[name].shape) != (named[first], y_probs[first].shape):
            one, other = (named[each] or y_probs[each].shape[1] for each in (name, first))
            raise InputError(
                "`y_prob` must have the same classes in the same order for every model; "
                f"{name!r} has {show_value(one)} and {first!r} has {show_value(other)}.",
                argument="y_prob",
            )
    found = named[first] if classes is None else classes
    groups = dict(zip(columns, (arrays[a] for a in request.group_aliases), strict=True))
    listed = None if found is None else list(found)
    return Rows(arrays[LABEL], y_probs, arrays.get(WEIGHT), groups, place, listed)


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """Errors that name a row of these rows with its row and file in the source."""
    try:
        yield
    except InputError as error:
        if error.row is None or error.file is not None:
            raise
        row, file = place(error.row)
        raise error.at(row=row, file=file) from error


def _read_arrays(
    data: Any, request: Request, sep: str | None
) -> tuple[dict[str, NDArray[Any]], Place]:
    """All that a request asks for, by alias; and the place of each row."""
    alone: Place = lambda row: (row, None)  # noqa: E731
    if isinstance(data, Mapping):
        require_columns(request.names(), data, "the data")
        columns = request.selection.items()
        return {alias: as_array(data[name], name) for alias, name in columns}, alone
    if is_frame(data):
        batches = batches_of(arrow_stream(select(data, request)), request.selected())
        return _joined(batches, request), alone
    files = find_files(data, separator=sep)

    def batches_in() -> Iterator[Batch]:
        return (batch for job in jobs_of(files, request) for batch in job.read())

    with unchanged(files):
        arrays = _joined(batches_in(), request)
    if files[0].format == "csv":
        for alias in request.group_aliases:
            arrays[alias] = as_objects(integers_of(arrays[alias].tolist()))
    return arrays, partial(_place_in, batches_in)


def _place_in(batches: Callable[[], Iterable[Batch]], row: int) -> tuple[int, str | None]:
    """Place of a row of files: they are read again up to it, which only a refusal asks for."""
    first = 0
    for batch in batches():
        if row < first + batch.rows:
            return batch.place(row - first)
        first += batch.rows
    return row, None


def _joined(batches: Iterable[Batch], request: Request) -> dict[str, NDArray[Any]]:
    pieces: dict[str, list[NDArray[Any]]] = {alias: [] for alias in request.selection}
    for batch in batches:
        for alias, parts in pieces.items():
            column = batch.columns[alias]
            if not is_column(column):  # it stands in the path
                parts.append(as_objects([column] * batch.rows))
            elif alias in request.group_aliases:
                parts.append(as_objects(column.to_pylist()))
            else:
                parts.append(column_of(alias, column, request))
    if not pieces[LABEL]:
        raise no_rows()
    for alias, parts in pieces.items():
        if len({part.dtype.kind in "biuf" for part in parts}) > 1:
            pieces[alias] = [part.astype(object) for part in parts]
    return {alias: np.concatenate(parts) for alias, parts in pieces.items()}


# -- tables ------------------------------------------------------------------------------------


def columns_of(file: DataFile) -> list[str]:
    """Names of the columns of a file, partitions in the path included."""
    names = file.opened().names
    return [*names, *(name for name in file.partitions if name not in names)]


def read_table(files: Sequence[DataFile]) -> Any:
    """All columns of all files, as an Arrow table; every row that they declare, or an InputError."""
    pyarrow = require("pyarrow", caller="reading rows")
    with unchanged(files):
        tables = [file.opened().table() for file in files]
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive")
    except ValueError as error:
        raise InputError(
            f"The files must have the same columns: {show_value(str(error))}.",
            hint="Read files of other columns by themselves.",
        ) from error
