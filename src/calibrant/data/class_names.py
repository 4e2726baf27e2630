"""What columns of class probabilities stand for, and the column of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._format import common_start, distinct_parts, group_text
from calibrant.data.arrays import is_missing
from calibrant.errors import InputError, Option

__all__ = ["as_class_names", "class_indices", "class_names"]


def class_names(columns: Sequence[str], labels: set[Any]) -> tuple[str, ...] | None:
    """What columns of class probabilities stand for: what tells their names apart.

    Words that all names begin or end with are taken off, as far as that makes the names labels. Labels that
    are numbers count the columns.

    Examples
    --------
    >>> class_names(["p_dog", "p_deer"], {"dog", "deer"}), class_names(["p0", "p1"], {0, 1})
    (('dog', 'deer'), None)
    >>> class_names(["p_dog_recalibrated", "p_deer_recalibrated"], {"dog", "deer"})
    ('dog', 'deer')
    """
    if all(isinstance(label, int | float | None) for label in labels):
        return None
    shared = [k for k in range(min(map(len, columns)) + 1) if len({c[:k] for c in columns}) == 1]
    by_start = [
        tuple(name[start:] for name in columns)
        for start in (common_start(columns), *reversed(shared))
    ]
    apart = tuple(distinct_parts(columns))
    return next((names for names in (*by_start, apart) if labels <= {*names, None}), apart)


def as_class_names(classes: Sequence[Any], columns: int | None) -> list[Any]:
    """What each column stands for, checked; any number of them where that of the columns is not known."""
    try:
        known = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
        distinct = len(set(known))
    except TypeError as error:
        raise InputError(
            "must be a list of names, one for each column",
            argument="classes",
            seen=classes,
            cure="Names must be hashable, such as text or numbers.",
        ) from error
    columns = len(known) if columns is None else columns
    if not len(known) == distinct == columns:
        raise InputError(
            "must name each column once",
            argument="classes",
            seen=distinct,
            saying="there are {} different names for {columns} columns",
            cure="Give one name for each column of {y_prob}, in their order.",
            columns=columns,
            y_prob=Option("y_prob"),
        )
    return known


def class_indices(given: NDArray[Any], known: list[Any], *, by_number: bool) -> NDArray[np.int64]:
    """The column of each label; -1 where it is missing, -2 where it is none of them."""
    missing = is_missing(given)
    labels = np.full(given.size, -2, dtype=np.int64)
    if by_number and given.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            valid = (given >= 0) & (given < len(known)) & (given == np.floor(given))
        labels[valid] = given[valid].astype(np.int64)
    elif not by_number:
        place = {value: index for index, value in enumerate(known)}
        values = (
            given.tolist()
        )  # the number 5 is of the class '5', which the command line knows as text
        found = {v: place.get(v, place.get(group_text(v), -2)) for v in set(values)}
        labels[:] = [found.get(value, -2) for value in values]
    labels[missing] = -1
    return labels
