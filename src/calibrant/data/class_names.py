"""What columns of class probabilities stand for, and the column of each label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._format import common_length, common_start, distinct_parts, group_text
from calibrant.data.arrays import is_missing
from calibrant.errors import InputError, Option

__all__ = ["TRUTH", "as_class_names", "class_indices", "class_names"]

TRUTH = {"true": True, "yes": True, "false": False, "no": False}
"""Words for truth values, in any case."""


def class_names(columns: Sequence[str], labels: set[Any]) -> tuple[Any, ...] | None:
    """What columns of class probabilities stand for: what tells their names apart; None where labels count.

    Words that all names begin or end with are taken off, as far as that makes the names labels. Labels that
    are numbers or truth values are looked up among names that are such, in whatever order these stand;
    where the names are none, or count from 0 in order, labels count the columns.

    Examples
    --------
    >>> class_names(["p_dog", "p_deer"], {"dog", "deer"}), class_names(["p0", "p1"], {0, 1})
    (('dog', 'deer'), None)
    >>> class_names(["p_dog_recalibrated", "p_deer_recalibrated"], {"dog", "deer"})
    ('dog', 'deer')
    >>> class_names(["p_2", "p_0", "p_1"], {0, 1, 2}), class_names(["p_True", "p_False"], {True})
    ((2, 0, 1), (True, False))
    """
    if all(isinstance(label, int | float | None) for label in labels):
        return _numbered(columns, {label for label in labels if not _is_missing(label)})
    shared = [k for k in range(min(map(len, columns)) + 1) if len({c[:k] for c in columns}) == 1]
    by_start = [
        tuple(name[start:] for name in columns)
        for start in (common_start(columns), *reversed(shared))
    ]
    apart = tuple(distinct_parts(columns))
    return next((names for names in (*by_start, apart) if labels <= {*names, None}), apart)


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def _numbered(columns: Sequence[str], labels: set[Any]) -> tuple[Any, ...] | None:
    """The numbers or truth values that columns are named by; None where labels count the columns."""
    readings = [_numbers(columns, decimal) for decimal in (False, True)]
    named = [names for names in readings if any(not isinstance(name, str) for name in names)]
    fitting = next((names for names in named if labels <= set(names)), None)
    if fitting is None:
        out_of_place = [names for names in named if any(_elsewhere(names))]
        if not out_of_place:
            return None
        raise _not_among(labels, out_of_place[0])
    if not any(_elsewhere(fitting)):
        return None
    if labels and all(isinstance(label, bool) for label in labels):
        return tuple(bool(name) if name in (0, 1) else name for name in fitting)
    return fitting


def _elsewhere(names: Sequence[Any]) -> list[bool]:
    """Which names are numbers, and stand elsewhere than where counting from 0 puts them."""
    return [not isinstance(name, str) and float(name) != place for place, name in enumerate(names)]


def _numbers(columns: Sequence[str], decimal: bool) -> tuple[Any, ...]:
    """Names without what all begin or end with, as numbers where they are; a number is never cut in two."""
    cut = r"\d+\.?\d*$" if decimal else r"\d+$"
    start = len(re.sub(cut, "", columns[0][: common_length(columns)]))
    parts = [name[start:] for name in columns]
    end = common_start([part[::-1] for part in parts])
    return tuple(_number(part[: len(part) - end]) for part in parts)


def _number(text: str) -> Any:
    """The number or truth value that a text stands for; the text where it stands for none."""
    if text.lower() in TRUTH:
        return int(TRUTH[text.lower()])
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return int(float(text)) if float(text).is_integer() else float(text)


def _not_among(labels: set[Any], names: Sequence[Any]) -> InputError:
    """The error for labels that are not among the numbers that name the columns."""
    return InputError(
        "must hold the numbers that the columns of {y_prob} are named by",
        argument="y_true",
        seen=min(labels - set(names)),
        saying="{} is not among {names}",
        names=", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else ""),
        cure="Say what label each column stands for, in the order of the columns, with {classes}.",
        y_prob=Option("y_prob"),
        classes=Option("classes", ...),
    )


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
