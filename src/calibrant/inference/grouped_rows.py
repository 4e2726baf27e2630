"""Rows by group, from arrays, tables or sketches: what `assess_by` assesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.data.rows import InputOptions, as_rows, has_classes
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import as_sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import Function, InputError, Option
from calibrant.inference.dependence import warn_of_repeated_ids, warn_of_repeated_rows
from calibrant.io.class_arrays import class_columns, sketches_of_classes
from calibrant.io.scan import scan

__all__ = ["regrouped", "scanned_groups"]


def scanned_groups(
    y_true: Any,
    y_prob: Any,
    data: Any,
    by: Any,
    cluster: Any,
    scale: str | Scale | None,
    options: InputOptions,
) -> tuple[Sketches, str | None]:
    """Sketches by group, and by cluster where a source has one: its column.

    Of arrays the rows say which cluster they are in, so that there need not be a sketch for each.
    """
    clustered = cluster is not None
    settings: dict[str, Any] = dict(options)
    if data is None and (y_true is None or y_prob is None):
        as_sketch(y_true, y_prob)  # says what is missing
    if data is None and has_classes(y_prob, options.get("multiclass"), options.get("classes")):
        return _classes(y_true, y_prob, by, cluster, scale, options)
    if data is None:
        names = ("from_logits", "percent", "pos_label")
        forms: dict[str, Any] = {k: settings.pop(k) for k in names if k in settings}
        if forms:
            rows = as_rows(y_true, y_prob, labels=settings.get("labels", "binary"), **forms)
            y_true, y_prob = rows.y, rows.probabilities(slice(None))
        weight = settings.pop("sample_weight", None)
        data, by = _columns(y_true, y_prob, by, weight, None)
        y_true, y_prob = "y_true", "y_prob"
        if weight is not None:
            settings["sample_weight"] = "sample_weight"
        cluster = None
    for name, value in (("y_true", y_true), ("y_prob", y_prob)):
        if value is None:
            raise InputError(
                "must name a column of the data",
                argument=name,
                seen=value,
                cure="Pass the name of a column that the data have.",
            )
    sketches = scan(
        data,
        y_true=y_true,
        y_prob=y_prob,
        by=by or None,
        cluster=cluster,
        scale=PROBABILITY if scale is None else scale,
        **settings,
    )
    if not isinstance(sketches, Sketches) or sketches.by == (cluster,):
        raise InputError(
            "must name a column of the data, as nothing else makes groups", argument="by", seen=by,
            cure="Without groups, use {assess}.", assess=Function("assess"),
        )  # fmt: skip
    if not clustered:
        used = (*sketches.by, settings.get("sample_weight"))
        warn_of_repeated_ids(data, y_true, y_prob, used, stacklevel=4)
        if isinstance(data, Mapping) and isinstance(y_prob, str):
            reading = {k: settings[k] for k in ("labels", "on_invalid") if k in settings}
            warn_of_repeated_rows(as_rows(data[y_true], data[y_prob], **reading), stacklevel=4)
    return sketches, cluster


def _classes(
    y_true: Any,
    y_prob: Any,
    by: Any,
    cluster: Any,
    scale: str | Scale | None,
    options: InputOptions,
) -> tuple[Sketches, str | None]:
    """Sketches of arrays of class probabilities: by what makes groups of them, and by `by`."""
    if by is None and cluster is None and options.get("multiclass") in ("top_label", "classwise"):
        sketches = sketches_of_classes(y_true, y_prob, scale=scale, **options)
        assert isinstance(sketches, Sketches)
        return sketches, None
    matrix, y_probs, settings = class_columns(y_true, y_prob, options)
    alone = by is None and settings["multiclass"] != "confidence"
    weight = options.get("sample_weight")
    columns, names = _columns(None, None, {} if alone else by, weight, cluster, alone=alone)
    if weight is not None:
        settings["sample_weight"] = "sample_weight"
    unit = None if cluster is None else "cluster"
    found = scan(
        matrix | columns,
        y_true="y_true",
        y_prob=y_probs,
        by=names or None,
        cluster=unit,
        scale=PROBABILITY if scale is None else scale,
        **settings,
    )
    assert isinstance(found, Sketches)
    return found, unit


def _columns(
    y_true: Any, y_prob: Any, by: Any, sample_weight: Any, cluster: Any, *, alone: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Arrays as the columns of one batch, and from each grouping's name to its column.

    Classes, `alone`, are groups enough.
    """
    if not alone and (
        isinstance(by, str) or not hasattr(by, "__iter__") or (isinstance(by, Mapping) and not by)
    ):
        raise InputError(
            "must give the group of every row, or several such arrays by name", argument="by", seen=by,
            cure="Without groups, use {assess}.", assess=Function("assess"),
        )  # fmt: skip
    if isinstance(by, Mapping):
        groups = dict(by)
    elif hasattr(by, "columns"):
        groups = {name: by[name] for name in by.columns}
    else:
        groups = {"group": by}
    values = {"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight}
    columns = {name: column for name, column in values.items() if column is not None}
    if cluster is not None:
        columns["cluster"] = cluster
    names = {str(name): f"by[{name!r}]" for name in groups}
    return columns | dict(zip(names.values(), groups.values(), strict=True)), names


def regrouped(
    y_true: Any,
    y_prob: Any,
    data: Any,
    by: Any,
    cluster: Any,
    scale: str | Scale | None,
    options: InputOptions,
) -> Sketches:
    """The sketches, grouped by what was asked for; refuses all that was settled with them."""
    sketches = data if isinstance(data, Sketches) else y_true
    settled = {"y_true": None if sketches is y_true else y_true, "y_prob": y_prob}
    settled |= {"data": None if sketches is data else data, **options}
    for name, value in settled.items():
        if value is not None:
            raise InputError(
                "cannot be passed beside sketches, which hold predictions, outcomes and weights",
                argument=name,
                cure="Leave out {option}.",
                option=Option(name),
            )
    if scale is not None:
        as_sketch(sketches.total(), scale=scale)
    if by is None:
        return sketches
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names or not all(name in sketches.by for name in names):
        raise InputError(
            "must name some of the columns that group the sketches", argument="by", seen=by,
            cure="These are: {names}.", names=", ".join(sketches.by),
        )  # fmt: skip
    names = (*names, cluster) if cluster in sketches.by else names
    return sketches.roll_up(*dict.fromkeys(names))
