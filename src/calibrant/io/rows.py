"""Rows as arrays or as a table, where a sketch is not enough: models on the same rows, columns to add to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.data.classes import class_names
from calibrant.errors import InputError, show_value
from calibrant.io.batches import Batch
from calibrant.io.files import DataFile, find_files, integers_of, jobs_of, unchanged
from calibrant.io.frames import as_frame, batches_of
from calibrant.io.group_keys import as_objects
from calibrant.io.predictions import class_matrix
from calibrant.io.request import Request, make_request, no_rows


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
    classes : list, optional
        Classes of the columns of the matrices; None where labels count them.
    """

    y_true: NDArray[Any]
    y_probs: Mapping[str, NDArray[Any]]
    sample_weight: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
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
    labels: list[NDArray[Any]] = []
    weights: list[NDArray[Any]] = []
    probs: dict[str, list[NDArray[Any]]] = {name: [] for name in models}
    groups: dict[str, list[NDArray[Any]]] = {name: [] for name in columns}
    is_table = isinstance(data, Mapping) or as_frame(data) is not None
    files = [] if is_table else find_files(data, separator=sep)
    for batch in _batches(files, request) if files else batches_of(data, request):
        labels.append(batch.label)
        weights += [] if batch.weight is None else [batch.weight]
        for name, own in models.items():
            of_model = [batch.probs[every.index(column)] for column in own]
            try:
                matrix = (
                    class_matrix(of_model, own[0], on_invalid=on_invalid) if multiclass else None
                )
            except InputError as error:
                raise error if error.row is None else batch.placed(error) from error
            probs[name].append(of_model[0] if matrix is None else matrix)
        for name, (codes, values) in zip(columns, batch.groups, strict=True):
            plain = all(type(value) is int for value in values)
            groups[name].append((np.array(values) if plain else as_objects(values))[codes])
    if not labels:
        raise no_rows() if len(files) != 1 else no_rows().at(file=files[0].path)
    label = _joined(labels)
    seen = set(label.tolist()) if multiclass else set()
    named = {
        k: class_names(o, seen) if multiclass and len(o) > 1 else None for k, o in models.items()
    }
    widths = {name: named[name] or {part.shape[1:] for part in probs[name]} for name in models}
    first, *others = models
    for name in others:
        if widths[name] != widths[first]:
            raise InputError(
                "`y_prob` must have the same classes in the same order for every model; "
                f"{name!r} has {show_value(widths[name])} and {first!r} has {show_value(widths[first])}.",
            )
    found = named[first] if classes is None else classes
    others_of = {name: _joined(parts) for name, parts in groups.items()}
    if files and files[0].format == "csv":  # whose groups are text so far
        others_of = {n: as_objects(integers_of(own.tolist())) for n, own in others_of.items()}
    return Rows(
        label,
        {name: _joined(parts) for name, parts in probs.items()},
        _joined(weights) if weights else None,
        others_of,
        None if found is None else list(found),
    )


def _batches(files: Sequence[DataFile], request: Request) -> Iterator[Batch]:
    with unchanged(files):
        for job in jobs_of(files, request):
            yield from job.read()


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:
        parts = [part.astype(object) for part in parts]
    if len({part.shape[1:] for part in parts}) > 1:
        raise InputError("`y_prob` must hold lists of one length.")
    return np.concatenate(parts)


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
