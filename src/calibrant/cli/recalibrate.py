"""`calibrant recalibrate`: learn a map from a file, or apply one to a file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant._format import decimals, distinct_parts, percent
from calibrant.cli.errors import COLUMN_OF
from calibrant.cli.options import FORMS, Measuring, Reading, verb
from calibrant.cli.output import count, note, note_dropped, printable, target, write
from calibrant.errors import InputError, TooFewRows

__all__ = ["recalibrate"]

CHOOSE = "choose"
FOLDS = 5


@verb(
    "calibrant recalibrate train.csv -o map.json --picture map.svg",
    "calibrant recalibrate new.csv --apply map.json -o better.csv",
)
def recalibrate(
    files: list[str],
    reading: Reading,
    output: str,
    method: str | None = None,
    cluster: str | None = None,
    apply: str | None = None,
    picture: str | None = None,
) -> None:
    """Learn a map that recalibrates predictions, or apply one.

    Recalibration
    -------------
    method : NAME
        Map, such as adaptive, platt, isotonic or temperature, or `choose` to compare them all on held-out
        rows. [adaptive; with --multiclass choose]
    cluster : NAME
        Column that marks rows which belong together; they are held out together.
    apply : MAP
        Apply this map instead of learning one; labels are not needed.

    Output
    ------
    output : FILE
        Map to write (.json); with --apply, rows to write (.parquet, .csv).
    picture : FILE
        Draw the map and its uncertainty, too (.svg, .pdf, .png).
    """
    if apply is not None:
        for name, value in (("method", method), ("cluster", cluster), ("picture", picture)):
            if value is not None:
                raise InputError(f"`{name}` is for learning a map.", argument=name)
        _apply(files, reading, apply, output)
    elif picture is not None and reading.multiclass is not None:
        raise InputError("`picture` is of a map of one event.", argument="picture")
    else:
        _learn(files, reading, method, output, cluster, picture)


def _learn(
    files: Sequence[str],
    reading: Reading,
    method: str | None,
    output: str,
    cluster: str | None,
    picture: str | None,
) -> None:
    """Learn the map of all rows, judge it on held-out rows, and write it."""
    import calibrant as cal
    from calibrant.cli._inputs import Source
    from calibrant.cli.plot import PICTURES

    source = Source.of(files, reading)
    path = target(output, (".json",), "a map", source.all_paths)
    if picture is not None:
        target(picture, PICTURES, "a picture", [*source.all_paths, output])
    classes = reading.multiclass is not None
    method = method or (CHOOSE if classes else "adaptive")
    learned: Any = None if method == CHOOSE else _map_of(method, classes)
    sample, dropped, names = _sample(source, Measuring(cluster=cluster), method)
    note_dropped(dropped)
    if learned is None:
        choice = cal.choose_recalibrator(**sample, folds=_folds(sample))
        note(f"On held-out rows, best first:\n{choice}")
        learned = choice.recalibrator
    else:
        arguments = {k: v for k, v in sample.items() if k != "cluster"}
        if "y_prob" not in arguments:
            arguments["y_prob"] = arguments.pop("y_true")
        learned.fit(**arguments)
    if classes:
        learned.classes = names
    write(path, learned.save, f": {learned.kind}. {learned.explain()} {_judged(learned, sample)}")
    columns = reading.prob or (() if names is None else names)
    note(f"Apply it to other rows: `{_how_to_apply(source, columns, output)}`.")
    if picture is not None:
        from calibrant.plotting import map_diagram

        diagram = map_diagram(**sample, recalibrator=learned)
        write(Path(picture), diagram.save)


def _map_of(method: str, classes: bool) -> Any:
    """A map by its name."""
    from calibrant import recalibration as maps

    made: dict[str, Any] = {
        "temperature": maps.TemperatureScaling(from_logits=False),
        "structured": maps.StructuredScaling(from_logits=False),
        "structured-matrix": maps.StructuredScaling(from_logits=False, matrix=True),
        "vector": maps.VectorScaling(from_logits=False),
        "one-vs-rest": maps.OneVsRestRecalibrator(),
    }
    if not classes:
        of_events = [getattr(maps, name) for name in maps.__all__ if name.endswith("Recalibrator")]
        made = {one.kind: one for one in of_events if getattr(one, "kind", None)}
        made = {k: v for k, v in made.items() if k not in ("none", "one-vs-rest")}
    if method not in made:
        raise InputError(
            f"`method` must be one of {', '.join([*made, CHOOSE])}; got {method!r}.",
            argument="method",
        )
    return made[method] if classes else made[method]()


def _sample(
    source: Any, measuring: Measuring, method: str
) -> tuple[dict[str, Any], Any, list[str] | None]:
    """Arguments of the library's functions: a sketch, or valid rows where weights, clusters or classes
    ask for them; rows that were dropped; and the names of classes.
    """
    from calibrant.cli._inputs import Columns, read_arrays, read_samples
    from calibrant.cli.options import Grouping
    from calibrant.data.rows import as_rows

    reading = source.reading
    if source.kind != "rows" or not (reading.weight or measuring.cluster or reading.multiclass):
        # What tells .999 from .99 reads rows on a scale that does so, too.
        scale = "logit/4" if method in ("adaptive", "smooth", CHOOSE) else "probability"
        samples = read_samples(source, Grouping(), replace(measuring, scale=scale))
        if samples.by:
            raise InputError(
                "a map is learned from one column: give `y_prob` once.", argument="y_prob"
            )
        sketch = samples.sketches[()]
        return {"y_true": sketch}, sketch.dropped, None
    columns = Columns.of(source, Grouping(), measuring)
    arrays = read_arrays(source, columns)
    (y_prob,) = arrays.y_probs.values()
    options = {k: v for k, v in arrays.options.items() if k != "multiclass"}
    weight = arrays.sample_weight
    sample: dict[str, Any]
    if reading.multiclass:
        from calibrant.data.classes import class_distributions

        valid = class_distributions(arrays.y_true, y_prob, sample_weight=weight, **options)
        kept: Any = valid.rows
        names = reading.classes.split(",") if reading.classes else None
        if names is None and len(columns.prob) > 1:
            names = distinct_parts(columns.prob)
        sample = {"y_true": arrays.y_true[kept], "y_prob": valid.probs, "classes": valid.classes}
        weight, dropped = valid.weight, valid.dropped
    else:
        if len(columns.prob) != 1:
            raise InputError(
                "a map is learned from one column: give `y_prob` once.", argument="y_prob"
            )
        rows = as_rows(arrays.y_true, y_prob, sample_weight=weight, **options)
        sample = {"y_true": rows.y, "y_prob": rows.p} | ({"labels": "soft"} if rows.soft else {})
        kept = slice(None) if rows.kept is None else rows.kept
        weight, dropped, names = rows.weight, rows.dropped, None
    sample |= {} if weight is None else {"sample_weight": weight}
    sample |= {} if arrays.cluster is None else {"cluster": arrays.cluster[kept]}
    return sample, dropped, names


def _folds(sample: dict[str, Any]) -> int:
    """Number of folds: five, or as many as there are rows or clusters."""
    if "cluster" in sample:
        units = len(set(sample["cluster"].tolist()))
        if units < 2:
            raise TooFewRows("`cluster` must tell two clusters or more apart.", argument="cluster")
        return min(FOLDS, units)
    n = sample["y_true"].n if "y_prob" not in sample else len(sample["y_true"])
    return min(FOLDS, max(2, n))


def _judged(learned: Any, sample: dict[str, Any]) -> str:
    """Gain on held-out rows, by cross-fitting; nothing where it cannot be said."""
    from calibrant.recalibration import cross_fitted_effect

    sketch = sample["y_true"]
    if learned.kind == "randomized" or getattr(sketch, "weighted", False):
        return ""
    try:
        effect: Any = cross_fitted_effect(learned, **sample, folds=_folds(sample))
    except TooFewRows:
        return ""
    before, after = effect.before, effect.after
    return (
        f"On held-out rows, log loss {decimals(before.log_loss)} becomes {decimals(after.log_loss)} (gain "
        f"{effect.gain:+.4f}, {percent(effect.confidence)} interval {effect.low:+.4f} to "
        f"{effect.high:+.4f}) and SmoothECE {decimals(before.smooth_ece)} becomes "
        f"{decimals(after.smooth_ece)}."
    )


def _how_to_apply(source: Any, columns: Sequence[str], output: str) -> str:
    """Command that applies a map to a file like the one it was learned from."""
    reading = source.reading
    ending = ".csv" if str(source.paths[0]).lower().endswith(".csv") else ".parquet"
    words = ["calibrant", "recalibrate", f"NEW{ending}"]
    for name in reading.prob or columns:
        words += ["--prob", name]
    for name in ("classes", "sep"):
        words += [f"--{name}", getattr(reading, name)] if getattr(reading, name) else []
    words += [f"--{name.replace('_', '-')}" for name in FORMS if getattr(reading, name)]
    return shlex.join([*words, "--apply", printable(output, 200), "-o", f"BETTER{ending}"])


def _apply(files: Sequence[str], reading: Reading, map_path: str, output: str) -> None:
    """Write the file again with columns of recalibrated predictions."""
    import numpy as np
    import pyarrow

    import calibrant as cal
    from calibrant.cli._inputs import RECALIBRATED, Source
    from calibrant.data.rows import as_rows
    from calibrant.io.tables import read_table

    source = Source.of(files, reading)
    source.require_rows("applying a map")
    path = target(output, (".parquet", ".csv"), "a file of rows", [*source.all_paths, map_path])
    kept = {"prob", "sep", "multiclass", "classes", *FORMS}
    plain = replace(reading, **{name: getattr(Reading(), name) for name in kept})
    if plain != Reading():
        raise InputError(
            "a map needs the columns of predictions and how these are written; leave out the other "
            "options that say how to read rows."
        )
    learned: Any = cal.load_recalibrator(map_path)
    classes = not isinstance(learned, cal.recalibration.Recalibrator)
    if classes and not reading.prob:
        raise InputError("a map of classes needs `--prob 'p_*'`.", argument="y_prob")
    prob = source.predictions(reading.prob, source.columns)
    if not classes and len(prob) != 1:
        raise InputError("a map is applied to one column: give `y_prob` once.", argument="y_prob")
    names = [f"{name}{RECALIBRATED}" for name in prob]
    for name in names:
        if name in source.columns:
            raise InputError(f"{source.names[0]} already has a column {printable(name)!r}.")
    table = read_table(source.files)
    if not reading.prob:
        note(f"Reading predictions from column {prob[0]!r}.")
    if classes:
        better = _applied_to_classes(learned, table, prob, reading)
        columns = [better.tolist()] if len(prob) == 1 else list(np.ascontiguousarray(better.T))
    else:
        COLUMN_OF["y_prob"] = prob[0]
        column = table[prob[0]].to_numpy()
        rows = as_rows(np.zeros(len(column)), column, **reading.forms)
        columns = [learned.transform(rows.p)]
    for name, column in zip(names, columns, strict=True):
        table = table.append_column(name, pyarrow.array(column))
    listed = ", ".join(repr(printable(name)) for name in names[:3])
    about = f": {count(table.num_rows, 'row')}, new column{'s' if len(names) > 1 else ''} {listed}"
    more = ", ..." if len(names) > 3 else "."
    write(path, lambda file: _write_table(table, file, path.suffix), about + more)


def _applied_to_classes(learned: Any, table: Any, prob: Sequence[str], reading: Reading) -> Any:
    """Recalibrated class probabilities, in the order of the columns."""
    import numpy as np

    from calibrant.data.classes import class_distributions
    from calibrant.io.predictions import class_matrix

    values = []
    for name in prob:
        column = table[name]
        lists = str(column.type).startswith(("list", "large_list", "fixed_size_list"))
        cells = np.empty(len(column), dtype=object)
        cells[:] = column.to_pylist()
        values.append(cells if lists else column.to_numpy())
    matrix = class_matrix(values, prob[0], on_invalid="raise")
    zeros, places = np.zeros(len(matrix)), range(matrix.shape[1])
    valid = class_distributions(zeros, matrix, from_logits=reading.from_logits, classes=places)
    names = reading.classes.split(",") if reading.classes else None
    if names is None and len(prob) > 1:
        names = distinct_parts(prob)
    return learned.transform(valid.probs, **({} if names is None else {"classes": names}))


def _write_table(table: Any, path: Path, suffix: str) -> None:
    """Write all columns as Parquet, or as CSV with lists as text, which every verb reads."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    if suffix != ".csv":
        pyarrow.parquet.write_table(table, path)
        return
    for place, field in enumerate(table.schema):
        if pyarrow.types.is_nested(field.type):
            texts = [None if v is None else json.dumps(v) for v in table[place].to_pylist()]
            table = table.set_column(place, field.name, pyarrow.array(texts, "string"))
    pyarrow.csv.write_csv(table, path)
