"""Rules on the columns of a source: that they are there, once, and of a type that can be read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import date, time, timedelta
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from calibrant.errors import InputError, TypeName

__all__ = [
    "LABEL",
    "PROB",
    "WEIGHT",
    "is_constant",
    "no_rows",
    "refuse_constant",
    "refuse_nested",
    "refuse_repeated",
    "require_columns",
    "require_short_decimal",
]

PROB, LABEL, WEIGHT = "__calibrant_prob", "__calibrant_label", "__calibrant_weight"
"""What the columns are called once they have been selected, whatever they were called before."""

MOST_DECIMALS = 15
"""Digits after the point with which a decimal is the same float on every engine."""


def is_constant(column: Any) -> bool:
    """Whether this is a plain value, which is no expression of any engine."""
    return column is None or isinstance(
        column, Number | bytes | tuple | date | time | timedelta | np.generic
    )


def refuse_constant(column: Any) -> NoReturn:
    """Raise the InputError for a column that is given as a plain value."""
    raise InputError(
        "a column is given by its name, or as an expression of the engine",
        seen=column,
        saying="{} would be the same for every row",
        cure="Pass the name of a column.",
    )


def require_columns(wanted: Iterable[Any], present: Iterable[Any], where: str) -> None:
    """Refuse names that are not among the columns, with the nearest that are, or stand for several."""
    present = list(present)
    own = [name for name in present if not str(name).startswith("__calibrant_")]
    spoken = {str(name): name for name in own}  # pandas has names that are no text
    for name in wanted:
        if present.count(name) > 1:
            refuse_repeated(name, present.count(name), where)
        if name in present:
            continue
        near = difflib.get_close_matches(str(name), spoken, n=1, cutoff=0.5)
        listed = ", ".join(map(repr, own[:10])) + (", ..." if len(own) > 10 else "")
        raise InputError(
            "{source} must have a column {name}",
            seen=own,
            saying="it has {listed}",
            cure="Did you mean {near}?" if near else (),
            source=where,
            name=repr(name),
            listed=listed or "none",
            near=repr(spoken[near[0]]) if near else "",
        )


def refuse_repeated(name: str, times: int, where: str) -> NoReturn:
    """Raise the InputError for a name that several columns have."""
    raise InputError(
        "{source} must have one column {name}",
        seen=times,
        saying="it has {} of that name",
        cure="Rename or leave out the others.",
        source=where,
        name=repr(name),
    )


def require_short_decimal(alias: str, kind: str) -> None:
    """Refuse decimals with so many digits that engines disagree on the nearest float.

    With up to 15 digits after the point, both the digits and the power of ten are whole floats, and
    their quotient is rounded once, on every engine. More digits are rounded twice on some.
    """
    digits = re.search(r"decimal\w*\(\D*\d+\D+(\d+)\)", kind, re.IGNORECASE)
    if digits is not None and int(digits[1]) > MOST_DECIMALS:
        raise InputError(
            "must have at most {most} digits after the point, to be the same float on every engine",
            argument={LABEL: "y_true", WEIGHT: "sample_weight"}.get(alias, "y_prob"),
            seen=TypeName(kind),
            saying="its type is {}",
            most=MOST_DECIMALS,
            cure="Convert the column to floats first.",
        )


def refuse_nested(name: str, kind: Any) -> NoReturn:
    """Raise the InputError for a group that is a list, a struct or a map."""
    raise InputError(
        "a group must be a plain value",
        seen=str(kind),
        saying="column {name} holds {}",
        name=repr(name),
        cure="Group by a part of it.",
    )


def no_rows() -> InputError:
    """The error for a source without rows."""
    return InputError(
        "must hold rows",
        argument="data",
        seen=0,
        saying="the source has none",
        cure="Check the path, and the condition that chose the rows.",
    )
