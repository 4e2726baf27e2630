"""Class probabilities of one model or several, as matrices, for what a sketch is not enough for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.classes import class_names
from calibrant.errors import InputError, Where
from calibrant.io.predictions import class_matrix
from calibrant.io.required_columns import LABEL, PROB, WEIGHT
from calibrant.io.rows import Place, placed, read_arrays, request_for_rows

__all__ = ["ClassRows", "read_classes"]

Columns = str | Sequence[str]


@dataclass(frozen=True)
class ClassRows:
    """Class probabilities, the true classes, and what the columns stand for.

    Attributes
    ----------
    y_true : array[n]
        Classes, as they are written.
    y_probs : mapping of name to array[n, classes]
        Of each model.
    classes : list or None
        What the columns stand for; None where they are counted.
    sample_weight : array[n] or None
        Weights.
    groups : mapping of name to array[n]
        Other columns that were asked for.
    place : callable
        From a row, counted from 0, to where it stands: a line of a file.
    """

    y_true: NDArray[Any]
    y_probs: Mapping[str, NDArray[Any]]
    classes: list[Any] | None
    sample_weight: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
    place: Place


def read_classes(
    data: Any,
    *,
    y_true: str,
    y_prob: Mapping[str, Columns],
    sample_weight: str | None = None,
    columns: Sequence[str] = (),
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    sep: str | None = None,
) -> ClassRows:
    """Rows of a frame, a dict of arrays, or files: of each model a column per class, or one of lists.

    Examples
    --------
    >>> rows = {"y": ["dog", "cat"], "p_cat": [0.2, 0.7], "p_dog": [0.8, 0.3]}
    >>> found = read_classes(rows, y_true="y", y_prob={"p": ["p_cat", "p_dog"]})
    >>> found.classes, found.y_probs["p"].shape
    (['cat', 'dog'], (2, 2))
    """
    models = {
        str(name): [own] if isinstance(own, str) else list(own) for name, own in y_prob.items()
    }
    every = [name for own in models.values() for name in own]
    kept: Any = {"multiclass": "confidence", "on_invalid": on_invalid}
    request = request_for_rows(y_true, every, sample_weight, columns, **kept)
    arrays, place = read_arrays(data, request, sep)
    matrices: dict[str, NDArray[Any]] = {}
    names: dict[str, tuple[Any, ...] | None] = {}
    labels = set(arrays[LABEL].tolist())
    for name, own in models.items():
        probs = [arrays[f"{PROB}_{every.index(column)}"] for column in own]
        with placed(place):
            matrices[name] = class_matrix(probs, own[0], on_invalid=on_invalid)
        names[name] = None if len(own) == 1 else class_names(own, labels)
    _require_same(names, matrices)
    known = next(iter(names.values())) if classes is None else tuple(classes)
    groups = dict(zip(columns, (arrays[a] for a in request.group_aliases), strict=True))
    named = None if known is None else list(known)
    return ClassRows(arrays[LABEL], matrices, named, arrays.get(WEIGHT), groups, place)


def _require_same(
    names: Mapping[str, tuple[Any, ...] | None], matrices: Mapping[str, NDArray[np.float64]]
) -> None:
    """Refuse models whose columns stand for different classes, or in another order."""
    first = next(iter(names))
    for name, own in names.items():
        if own != names[first] or matrices[name].shape != matrices[first].shape:
            other = matrices[first].shape[1] if own is None else names[first]
            raise InputError(
                "must have the same classes in the same order for every model",
                argument="y_prob",
                seen=matrices[name].shape[1] if own is None else list(own),
                where=Where(group=repr(name)),
                cure="{first} has {other}. Name the columns in one order.",
                first=repr(first),
                other=str(other),
            )
