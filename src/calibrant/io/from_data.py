"""One calling convention: a verb takes arrays, a Sketch, or `data=` with the names of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from calibrant.data.arrays import SEVERAL_MODELS
from calibrant.data.points import Points, as_points
from calibrant.data.rows import (
    InputOptions,
    refuse_keyword,
    require_alone,
    require_one_sample,
)
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches, is_summed
from calibrant.errors import InputError, invalid
from calibrant.io.rows import read_rows
from calibrant.io.scan import ReadingOptions, scan


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
    if is_summed(data):
        require_alone(data, y_prob, {"y_true": y_true, **options})  # type: ignore[typeddict-item]
        if by is None or not data.by:
            return data
        names = [by] if isinstance(by, str) else list(by)
        wanted = [*names, cluster] if cluster in data.by else names
        return cast(Sketches, data).roll_up(*dict.fromkeys(wanted))
    for name, value in (("y_true", y_true), ("y_prob", y_prob)):
        if value is None:
            raise InputError(f"`{name}` must name a column of the data; got None.", argument=name)
    models = None if options.get("multiclass") is not None else _models_of(y_prob)
    found = scan(
        data,
        y_true=y_true,
        y_prob=y_prob if models is None else list(models.values()),
        by=by,
        cluster=cluster,
        scale=PROBABILITY if scale is None else scale,
        **options,
    )
    return found if models is None else _renamed(cast(Sketches, found), models)


def _models_of(y_prob: Any) -> dict[str, str] | None:
    """Columns by the text of the models' names, of a mapping."""
    if not isinstance(y_prob, Mapping):
        return None
    models = {str(name): column for name, column in y_prob.items()}
    if len(models) < len(y_prob) or not all(isinstance(one, str) for one in models.values()):
        text = "`y_prob` must map names of models, which differ, to columns of `data`."
        raise InputError(text, argument="y_prob")
    return models


def _renamed(sketches: Sketches, models: Mapping[str, str]) -> Sketches:
    """Sketches by model, under the names of the models in place of those of their columns."""
    names = {column: name for name, column in models.items()}
    groups = {(names[key[0]], *key[1:]): sketch for key, sketch in sketches.groups.items()}
    single = len(sketches.by) == 1
    return Sketches({k[0] if single else k: one for k, one in groups.items()}, by=sketches.by)


def refuse_groups(by: Any) -> None:
    """Refuse `by` beside arrays or sketches, for verbs that know groups as columns alone."""
    if by is not None:
        hint = "Pass `data=` with both, or the array to `assess_by`, whose result `report` takes."
        raise InputError("`by` names columns of `data`.", hint=hint)


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
        )
    known = ReadingOptions.__annotations__ | InputOptions.__annotations__
    for name in options.keys() - known.keys():
        refuse_keyword(name, known)
    if is_summed(data) or not rows:
        if not groups:
            require_one_sample(options.get("multiclass"))
            if isinstance(y_prob, Mapping | list) and options.get("multiclass") is None:
                hint = (
                    f'{SEVERAL_MODELS} For a column of each class, pass `multiclass="confidence"`.'
                )
                raise invalid("y_prob", "name one column of `data`", y_prob, hint)
        found = from_data(y_true, y_prob, data, options, by=by, cluster=cluster, scale=scale)
        return found, None, cluster, {}
    return _rows_from(data, y_true, y_prob, dict(options), cluster)


def points_from(y_true: Any, y_prob: Any, data: Any, options: ReadingOptions) -> Points:
    """Points of arrays, a Sketch or Points, or of the columns of `data` that the arguments name."""
    reading: InputOptions = options
    if data is not None:
        y_true, y_prob, _, reading = sample_from(data, y_true, y_prob, options)
    return as_points(y_true, y_prob, **reading)


def _rows_from(
    data: Any, y_true: Any, y_prob: Any, reading: dict[str, Any], cluster: Any
) -> tuple[Any, Any, Any, InputOptions]:
    """Rows as arrays: a column of predictions, or a matrix of class probabilities, for each model."""
    multiclass = reading.get("multiclass") is not None
    several = isinstance(y_prob, Mapping) or not (multiclass or isinstance(y_prob, str))
    models = {"": y_prob}
    if isinstance(y_prob, Mapping):
        models = dict(y_prob) if multiclass else _models_of(y_prob) or {}
    elif several:
        models = {name: name for name in y_prob}
    found = read_rows(
        data,
        y_true=y_true,
        y_prob=models,
        sample_weight=reading.pop("sample_weight", None),
        columns=[cluster] if cluster else [],
        named_labels=reading.get("pos_label") is not None,
        multiclass=multiclass,
        classes=reading.pop("classes", None),
        sep=reading.pop("sep", None),
    )
    if found.classes is not None:
        reading["classes"] = found.classes
    if found.sample_weight is not None:
        reading["sample_weight"] = found.sample_weight
    groups = None if cluster is None else found.groups[cluster]
    predictions = dict(found.y_probs) if several else found.y_probs[""]
    return found.y_true, predictions, groups, reading  # type: ignore[return-value]
