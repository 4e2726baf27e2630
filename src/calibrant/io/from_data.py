"""One calling convention: a verb takes arrays, a Sketch, or `data=` with the names of columns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calibrant.data.rows import InputOptions, require_one_sample
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError
from calibrant.io.rows import ClassRows, Rows, read_classes, read_rows
from calibrant.io.scan import ReadingOptions, scan, scan_classes

__all__ = ["from_data", "sample_from", "takes_data"]


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
    """Sketch, or sketches by group, of the columns of `data` that the arguments name.

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
                    "Sketches already hold predictions, outcomes and weights.",
                    hint=f"Leave out `{name}`.",
                )
        names = [by] if isinstance(by, str) else list(by or ())
        if not names or isinstance(data, Sketch):
            return data
        wanted = [*names, cluster] if cluster in data.by else names
        return data.roll_up(*dict.fromkeys(wanted))
    for name, value in (("y_true", y_true), ("y_prob", y_prob)):
        if value is None:
            raise InputError(f"`{name}` must name a column of the data; got None.", argument=name)
    return scan(
        data,
        y_true=y_true,
        y_prob=y_prob,
        by=by,
        cluster=cluster,
        scale=PROBABILITY if scale is None else scale,
        **options,
    )


def sample_from(
    data: Any,
    y_true: Any,
    y_prob: Any,
    options: ReadingOptions,
    *,
    by: Any = None,
    cluster: Any = None,
    scale: str | Scale | None = None,
    rows: bool = False,
    groups: bool = False,
) -> tuple[Any, Any, Any, InputOptions]:
    """Arguments (y_true, y_prob, cluster, options) of a verb that was called with `data` and columns' names.

    Parameters
    ----------
    data, y_true, y_prob, options
        As the verb has them.
    by, cluster, scale
        Columns of groups and of clusters, and the scale, as in `scan`.
    rows : bool
        Arrays in place of a sketch, for what needs rows; always so if `y_prob` names several models.
    groups : bool
        The verb takes sketches of groups, as classes make them.
    """
    if hasattr(y_true, "__len__") and not isinstance(y_true, str | tuple):
        raise InputError(
            f"`y_true` names a column, where `data` is given; got a {type(y_true).__name__}.",
            argument="y_true",
            hint="Pass arrays without it, or names of columns with it.",
        )
    if isinstance(data, Sketch | Sketches) or not rows:
        if not groups:
            require_one_sample(options.get("multiclass"))
        found = from_data(y_true, y_prob, data, options, by=by, cluster=cluster, scale=scale)
        return found, None, cluster, {}
    return _rows_from(data, y_true, y_prob, dict(options), cluster)


def _rows_from(
    data: Any, y_true: Any, y_prob: Any, reading: dict[str, Any], cluster: Any
) -> tuple[Any, Any, Any, InputOptions]:
    """Rows as arrays: a column of predictions, or a matrix of class probabilities, for each model."""
    asked: dict[str, Any] = {
        "y_true": y_true,
        "sample_weight": reading.pop("sample_weight", None),
        "columns": [cluster] if cluster else [],
        "sep": reading.pop("sep", None),
    }
    found: Rows
    if reading.get("multiclass") is None:
        named = reading.get("pos_label") is not None
        found = read_rows(data, y_prob=y_prob, named_labels=named, **asked)
        several = not isinstance(y_prob, str)
    else:
        several = isinstance(y_prob, Mapping)
        models, classes = y_prob if several else {"": y_prob}, reading.pop("classes", None)
        found = read_classes(data, y_prob=models, classes=classes, **asked)
        if isinstance(found, ClassRows) and found.classes is not None:
            reading["classes"] = found.classes
    if found.sample_weight is not None:
        reading["sample_weight"] = found.sample_weight
    groups = None if cluster is None else found.groups[cluster]
    predictions = dict(found.y_probs) if several else next(iter(found.y_probs.values()))
    return found.y_true, predictions, groups, reading  # type: ignore[return-value]


def takes_data(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Verb with one more way to be called: `data=` and the names of columns instead of arrays.

    Verbs themselves take arrays or sketches; the facade hands out this form of them.
    """

    @functools.wraps(verb)
    def call(*arguments: Any, data: Any = None, **keywords: Any) -> Any:
        if data is None:
            return verb(*arguments, **keywords)
        columns = dict(zip(("y_true", "y_prob"), arguments, strict=False)) | keywords
        y_true, y_prob = columns.pop("y_true", None), columns.pop("y_prob", None)
        y_prob = columns.pop("y_probs", y_prob)
        _require_names(y_true)
        reading = {name: columns.pop(name) for name in READING if name in columns}
        if not isinstance(data, Sketch | Sketches) and _needs_rows(
            verb, y_prob, columns, reading.get("multiclass")
        ):
            return _on_rows(verb, data, y_true, y_prob, reading, columns)
        if verb.__name__ not in BY_GROUP:
            require_one_sample(reading.get("multiclass"), verb.__name__)
        by, scale = columns.pop("by", None), columns.pop("scale", None)
        sketches = from_data(
            y_true, y_prob, data, reading, by=by, cluster=columns.get("cluster"), scale=scale
        )
        made = verb(sketches, **columns)
        if verb.__name__ == "report" and _has_class_section(data, reading, by, columns):
            names = {"y_true": y_true, "y_prob": y_prob}
            return made.with_classes(scan_classes(data, **names, **reading))
        return made

    parameters = list(inspect.signature(verb).parameters.values())
    place = next(k for k, p in enumerate(parameters) if p.kind is not p.POSITIONAL_OR_KEYWORD)
    parameters.insert(
        place, inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, default=None)
    )
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


BY_GROUP = ("report", "reliability_diagrams")
"""Verbs that take sketches of groups, as classes make them."""
READING = (*InputOptions.__annotations__, *ReadingOptions.__annotations__)


def _has_class_section(
    data: Any, reading: Mapping[str, Any], by: Any, keywords: Mapping[str, Any]
) -> bool:
    """Condition for a section on classes: their rows can be read again, and are one sample."""
    again = not isinstance(data, Sketch | Sketches | Iterator)
    alone = by is None and keywords.get("cluster") is None and not reading.get("per_file")
    return again and alone and reading.get("multiclass") is not None


def _require_names(y_true: Any) -> None:
    """Refuse arrays beside `data=`, of which it could not be said what they mean."""
    if hasattr(y_true, "__len__") and not isinstance(y_true, str | tuple):
        raise InputError(
            f"`y_true` names a column, where `data` is given; got a {type(y_true).__name__}.",
            argument="y_true",
            hint="Pass arrays without it, or names of columns with it.",
        )


def _needs_rows(
    verb: Callable[..., Any], y_prob: Any, keywords: Mapping[str, Any], multiclass: Any
) -> bool:
    """Condition under which a sketch is not enough: a profile, or models that share their rows."""
    if verb.__name__ == "compare":
        return not isinstance(y_prob, str) and keywords.get("by") is None
    if verb.__name__ == "choose_recalibrator" and multiclass is not None:
        return True
    return keywords.get("profile") is not None


def _on_rows(
    verb: Callable[..., Any],
    data: Any,
    y_true: Any,
    y_prob: Any,
    reading: dict[str, Any],
    keywords: dict[str, Any],
) -> Any:
    """Verb on rows as arrays: a column of predictions, or a matrix of class probabilities, a model."""
    cluster = keywords.pop("cluster", None)
    asked: dict[str, Any] = {
        "y_true": y_true,
        "sample_weight": reading.pop("sample_weight", None),
        "columns": [cluster] if cluster else [],
        "sep": reading.pop("sep", None),
    }
    rows: Rows
    if reading.get("multiclass") is None:
        named = reading.get("pos_label") is not None
        rows = read_rows(data, y_prob=y_prob, named_labels=named, **asked)
        several = not isinstance(y_prob, str)
    else:
        several = isinstance(y_prob, Mapping)
        models, classes = y_prob if several else {"": y_prob}, reading.pop("classes", None)
        rows = read_classes(data, y_prob=models, classes=classes, **asked)
        if isinstance(rows, ClassRows) and rows.classes is not None:
            reading["classes"] = rows.classes
        if verb.__name__ == "choose_recalibrator":
            reading.pop("multiclass")
    if rows.sample_weight is not None:
        reading["sample_weight"] = rows.sample_weight
    if cluster is not None:
        keywords["cluster"] = rows.groups[cluster]
    predictions = dict(rows.y_probs) if several else next(iter(rows.y_probs.values()))
    return verb(rows.y_true, predictions, **reading, **keywords)
