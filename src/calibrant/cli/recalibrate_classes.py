"""`calibrant recalibrate --multiclass`: learn a map of all classes from a file, or apply one to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._format import decimals, distinct_parts
from calibrant._optional import require
from calibrant.cli.columns import RECALIBRATED, choose_predictions
from calibrant.cli.output import (
    count,
    note,
    note_dropped,
    printable,
    quoted,
    require_ending,
    written,
)
from calibrant.cli.recalibrate import (
    files_to_repair,
    folds_for,
    how_to_apply,
    require_new_column,
    write_table,
)
from calibrant.cli.rows import options_of_rows, rows_of_classes
from calibrant.cli.shared_options import FORMS, Measuring, Reading
from calibrant.data.classes import class_distributions
from calibrant.data.rows import as_form, require_forms_of_classes
from calibrant.data.sketch import Sketch, warn_of_hard_labels
from calibrant.errors import Cure, InputError, Option, TooFewRows
from calibrant.io.predictions import class_matrix
from calibrant.io.rows import placed
from calibrant.io.tables import read_table
from calibrant.recalibration.class_map import order_of_classes
from calibrant.recalibration.learned_map import (
    LearnedMap,
    Recalibrator,
    load_recalibrator,
    make_map,
)

__all__ = [
    "MAPS_OF_CLASSES",
    "is_map_of_classes",
    "require_map_of_one_event",
    "run_apply_classes",
    "run_fit_classes",
]

CHOOSE = "choose"
MAPS_OF_CLASSES = ("temperature", "structured", "structured-matrix", "vector", "one-vs-rest")
"""Methods for many classes; `choose`, the default, compares those that the rows are enough for."""


def run_fit_classes(
    files: Sequence[str],
    reading: Reading,
    method: str | None,
    output: str,
    cluster: str | None = None,
) -> None:
    """Learn the map, judge it on rows that it has not seen, and write it."""
    from calibrant.recalibration.choice import choose_recalibrator

    require_ending(output, (".json",), "a map", files)
    method = method or CHOOSE
    if method not in (*MAPS_OF_CLASSES, CHOOSE):
        raise InputError(
            "must be a map of many classes",
            argument="method",
            seen=method,
            cure="Pass one of {maps}.",
            maps=", ".join((*MAPS_OF_CLASSES, CHOOSE)),
        )
    form = as_form(**{name: getattr(reading, name) for name in FORMS})
    require_forms_of_classes(form, reading.outcomes, reading.pos_label)
    rows, chosen = rows_of_classes(files, reading, Measuring(cluster=cluster))
    options = options_of_rows(rows, chosen, reading)
    codes = options.pop("cluster", None)
    with placed(rows.place):
        del options["multiclass"]
        valid = class_distributions(rows.y_true, rows.y_probs[""], **options)
    note_dropped(valid.dropped)
    warn_of_hard_labels(
        [Sketch.from_arrays(valid.labels >= 0, valid.probs.max(axis=1))], stacklevel=2
    )
    settings: dict[str, Any] = {"sample_weight": valid.weight, "classes": valid.classes}
    y_true, probs = rows.y_true[valid.rows], valid.probs
    candidates = None if method == CHOOSE else {method: make_map(method, 3)}
    if candidates is not None:
        learned: Any = candidates[method]
        learned.fit(probs, y_true, **settings)
    try:
        clusters = None if codes is None else codes[valid.rows]
        units = len(probs) if clusters is None else len(set(clusters.tolist()))
        settings["cv"] = folds_for(units, clustered=clusters is not None)
        choice = choose_recalibrator(
            y_true, probs, candidates=candidates, cluster=clusters, **settings
        )
        judged = _judged(choice, choice.best if method == CHOOSE else method)
    except TooFewRows:
        if method == CHOOSE:
            raise
        judged = ""
    if method == CHOOSE:
        learned = choice.recalibrator
        note(f"On held-out rows, best first:\n{choice}")
    learned.classes_ = _called_classes(chosen.prob, reading)
    written(Path(output), learned.save)
    note(
        f"Wrote {printable(output, 200)}: {_called(learned)} for {probs.shape[1]:,} classes, learned "
        f"from {count(len(probs), 'row')}. {learned.explain()} {judged}"
        f"{how_to_apply(files, output, reading, reading.prob or chosen.prob)}"
    )


def _called(learned: LearnedMap) -> str:
    from calibrant.recalibration.class_map import IdentityOfClasses

    kind = learned.kind
    if isinstance(learned, IdentityOfClasses):
        return "a map that changes nothing"
    return f"{'an' if kind[0] in 'aeiu' else 'a'} {kind} map"


def _called_classes(columns: Sequence[str], reading: Reading) -> list[str] | None:
    """What columns of classes stand for; None for a column of lists."""
    if reading.classes:
        return [name.strip() for name in reading.classes.split(",")]
    return distinct_parts(columns) if len(columns) > 1 else None


def _order(own: Sequence[str] | None, wanted: Sequence[str] | None) -> list[int] | None:
    """Where each class of a map stands in a file; None where they stand in one order, or have no names."""
    try:
        return order_of_classes(own, wanted, "y_prob")
    except InputError as error:
        names = Option("classes", ",".join(wanted or ()))
        cure = Cure("Name the classes of the columns with {classes}.", {"classes": names})
        raise error.but(cures=(cure,)) from None


def _judged(choice: Any, method: str) -> str:
    """Before and after on rows that the map has not seen, with the interval of the gain."""
    from calibrant.recalibration.choice import NONE

    lines = {line.name: line for line in choice.candidates}
    before, after = lines[NONE], lines[method]
    low, high = (after.gain + sign * 1.96 * after.gain_se for sign in (-1.0, 1.0))
    return (
        f"On held-out rows, log loss {decimals(before.loss)} becomes {decimals(after.loss)} (gain "
        f"{after.gain:+.4f}, 95% interval {low:+.4f} to {high:+.4f}) and SmoothECE of the confidence "
        f"{decimals(before.smooth_ece)} becomes {decimals(after.smooth_ece)}. "
    )


def require_map_of_one_event(method: str | None) -> None:
    """Refuse methods that only class probabilities have."""
    if method in MAPS_OF_CLASSES and method != "temperature":
        raise InputError(
            "is a map of many classes",
            argument="method",
            seen=method,
            cure="Pass {option} beside it.",
            option=Option("multiclass", "confidence"),
        )


def is_map_of_classes(path: str) -> bool:
    """Whether a file holds a map of class probabilities, and not of one event."""
    return not isinstance(load_recalibrator(path), Recalibrator)


def run_apply_classes(files: Sequence[str], reading: Reading, chosen_map: str, output: str) -> None:
    """Write the file again with recalibrated columns of classes, or a recalibrated column of lists."""
    target = require_ending(output, (".parquet", ".csv"), "a file of rows", [*files, chosen_map])
    plain = replace(reading, prob=None, sep=None, multiclass=None, from_logits=False, classes=None)
    if plain != Reading() or not reading.prob:
        raise InputError(
            "a map of classes needs the columns of its classes, and no other option on how to read rows",
            cure="Name the columns with {prob}.",
            prob=Option("y_prob", "p_*"),
        )
    learned = load_recalibrator(chosen_map)
    data, present = files_to_repair(files, reading)
    prob = choose_predictions(present, data[0].path, reading, present)
    names = [f"{name}{RECALIBRATED}" for name in prob]
    for name in names:
        require_new_column(name, present, data[0])
    table = read_table(data)
    columns = [_column(table[name]) for name in prob]
    matrix = class_matrix(columns, prob[0], on_invalid="raise")
    order = _order(_called_classes(prob, reading), learned.classes_)
    order = list(range(matrix.shape[1])) if order is None else order
    try:
        zeros, places = np.zeros(len(matrix)), range(len(order))
        logits = reading.from_logits
        probs = class_distributions(zeros, matrix, from_logits=logits, classes=places).probs
        better = np.empty(matrix.shape)
        better[:, order] = learned.transform(probs[:, order])
    except InputError as error:
        raise error.but(cures=("Leave such rows out first.",)) from error
    pyarrow = require("pyarrow", caller="recalibrate")
    if len(prob) == 1:
        table = table.append_column(names[0], pyarrow.array(better.tolist()))
    else:
        for place, name in enumerate(names):
            table = table.append_column(name, pyarrow.array(np.ascontiguousarray(better[:, place])))
    written(target, lambda path: write_table(table, path, target.suffix))
    note(
        f"Wrote {printable(output, 200)}: {count(len(better), 'row')}, new "
        f"{'columns' if len(names) > 1 else 'column'} {', '.join(map(quoted, names[:3]))}"
        f"{', ...' if len(names) > 3 else ''}."
    )


def _column(column: Any) -> Any:
    """Numbers as they are; lists as objects."""
    if str(column.type).startswith(("list", "large_list", "fixed_size_list")):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    return column.to_numpy()
