"""One calling convention: a verb takes arrays, a Sketch, or `data=` with the names of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option
from calibrant.read.scan import scan

__all__ = ["from_data", "is_data"]


def from_data(
    y_true: Any,
    y_prob: Any,
    data: Any,
    options: Mapping[str, Any],
    *,
    by: Any = None,
    cluster: Any = None,
    scale: str | Scale | None = None,
) -> Sketch | Sketches:
    """The sketch, or the sketches by group, of the columns of `data` that the arguments name.

    Sketches stand for themselves, rolled up to the groups that are asked for.

    Examples
    --------
    >>> from_data("y", "p", {"y": [0, 1], "p": [0.2, 0.7]}, {})
    <Sketch of 2 rows, 1 events, in 2 of 65536 cells, scale probability>
    """
    if isinstance(data, Sketch | Sketches):
        for name, value in {"y_true": y_true, "y_prob": y_prob, **options}.items():
            if value is not None:
                raise InputError(
                    "sketches already hold predictions, outcomes and weights",
                    cure="Leave out {option}.",
                    option=Option(name),
                )
        names = [by] if isinstance(by, str) else list(by or ())
        if not names or isinstance(data, Sketch):
            return data
        wanted = [*names, cluster] if cluster in data.by else names
        return data.roll_up(*dict.fromkeys(wanted))
    for name, value in (("y_true", y_true), ("y_prob", y_prob)):
        if value is None:
            raise InputError("must name a column of the data", argument=name, seen=None)
    return scan(
        data,
        y_true=y_true,
        y_prob=y_prob,
        by=by,
        cluster=cluster,
        scale=PROBABILITY if scale is None else scale,
        **options,
    )


def is_data(data: Any, y_true: Any) -> bool:
    """Whether `data=` was given; refuses arrays beside it."""
    if data is None:
        return False
    if y_true is not None and not isinstance(y_true, str) and hasattr(y_true, "__len__"):
        raise InputError(
            "names a column, where {data} is given",
            argument="y_true",
            seen=type(y_true).__name__,
            saying="got a {}",
            data=Option("data"),
            cure="Pass arrays without it, or names of columns with it.",
        )
    return True
