"""`calibrant recalibrate`: learn a map from a file, or apply one to a file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import calibrant as cal
from calibrant._format import decimals, distinct_parts, percent
from calibrant.cli.errors import COLUMN_OF
from calibrant.cli.options import FORMS, Measuring, Reading, verb
from calibrant.cli.output import count, note, note_dropped, printable, target, write
from calibrant.errors import InputError, TooFewRows

if TYPE_CHECKING:
    from calibrant.cli._inputs import Source

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
    from calibrant.cli._inputs import Source

    source = Source.of(files, reading)
    if apply is None:
        _learn(source, method, output, Measuring(cluster=cluster), picture)
        return
    for name, value in (("method", method), ("cluster", cluster), ("picture", picture)):
        if value is not None:
            raise InputError(f"`{name}` is for learning a map.")
    _apply(source, apply, output)


def _learn(
    source: Source, method: str | None, output: str, measuring: Measuring, picture: str | None
) -> None:
    """Learn the map of all rows, judge it on held-out rows, and write it."""
    from calibrant.cli.plot import PICTURES
    from calibrant.recalibration.learned_map import make_map

    path = target(output, (".json",), "a map", source.all_paths)
    classes = source.reading.multiclass is not None
    if picture is not None:
        target(picture, PICTURES, "a picture", [*source.all_paths, output])
        if classes:
            raise InputError("`picture` is of a map of one event.")
    method = method or (CHOOSE if classes else "adaptive")
    learned: Any = None if method == CHOOSE else make_map(method, 3 if classes else 2)
    sample, names = _sample(source, measuring, method)
    if learned is None:
        choice = cal.choose_recalibrator(**sample, cv=_folds(sample))
        note(f"On held-out rows, best first:\n{choice}")
        learned = choice.recalibrator
    else:
        arguments = {k: v for k, v in sample.items() if k != "cluster"}
        if "y_prob" not in arguments:
            arguments["y_prob"] = arguments.pop("y_true")
        learned.fit(**arguments)
    if classes:
        learned.classes_ = names
    n = len(sample["y_true"]) if "y_prob" in sample else sample["y_true"].n
    about = f": {learned.kind} map learned from {count(n, 'row')}. {learned.explain()} "
    write(path, learned.save, about + _judged(learned, sample))
    note(f"Apply it to other rows: `{_how_to_apply(source, output)}`.")
    if picture is not None:
        from calibrant.plotting import map_diagram

        write(Path(picture), map_diagram(**sample, recalibrator=learned).save)


def _sample(
    source: Source, measuring: Measuring, method: str
) -> tuple[dict[str, Any], list[str] | None]:
    """Arguments of the library's functions, and names of classes.

    These are a sketch or, where weights, clusters or classes ask for them, valid rows.
    """
    from calibrant.cli._inputs import Columns, read_arrays, read_samples
    from calibrant.cli.options import Grouping
    from calibrant.data.classes import as_class_probabilities
    from calibrant.data.rows import as_rows

    reading, sample, names = source.reading, {}, None
    by_rows = reading.weight or measuring.cluster or reading.multiclass
    if source.kind != "rows" or not by_rows:
        # What tells .999 from .99 reads rows on a scale that does so, too.
        scale = "logit/4" if method in ("adaptive", "smooth", CHOOSE) else "probability"
        samples = read_samples(source, Grouping(), replace(measuring, scale=scale))
        if samples.by:
            raise InputError("a map is learned from one column of predictions.", argument="y_prob")
        note_dropped(samples.sketches[()].dropped)
        return {"y_true": samples.sketches[()]}, None
    columns = Columns.of(source, Grouping(), measuring)
    arrays = read_arrays(source, columns)
    y_true, y_prob = arrays.values["y_true"], arrays.y_probs[""]
    options = {k: v for k, v in arrays.options.items() if k != "multiclass"}
    options["sample_weight"] = arrays.values.get("sample_weight")
    valid: Any
    if reading.multiclass:
        for name in ({*FORMS, "pos_label", "labels"} - {"from_logits"}) & set(options):
            raise InputError(f"`{name}` is for predictions of one event.")
        valid = as_class_probabilities(y_true, y_prob, **options).valid()
        names = _class_names(reading, columns.prob)
        kept = slice(None) if valid.kept is None else valid.kept
        sample = {"y_true": y_true[kept], "y_prob": valid.distributions, "classes": valid.classes}
    else:
        valid = as_rows(y_true, y_prob, **options)
        kept = slice(None) if valid.kept is None else valid.kept
        sample = {"y_true": valid.y, "y_prob": valid.p} | ({"labels": "soft"} if valid.soft else {})
    sample |= {} if valid.weight is None else {"sample_weight": valid.weight}
    if "cluster" in arrays.values:
        sample["cluster"] = arrays.values["cluster"][kept]
    note_dropped(valid.dropped)
    return sample, names


def _class_names(reading: Reading, prob: Sequence[str]) -> list[str] | None:
    """Names of the classes of these columns; None for a column of lists."""
    return reading.class_names or (distinct_parts(prob) if len(prob) > 1 else None)


def _folds(sample: dict[str, Any]) -> int:
    """Number of folds: five, or as many as there are rows or clusters, but two."""
    units = set(sample["cluster"].tolist()) if "cluster" in sample else sample["y_true"]
    return min(FOLDS, max(2, units.n if hasattr(units, "n") else len(units)))


def _judged(learned: Any, sample: dict[str, Any]) -> str:
    """Gain on held-out rows, by cross-fitting; nothing where rows are too few or have lost their weights."""
    from calibrant.recalibration.effect import evaluate

    if learned.kind == "randomized" or getattr(sample["y_true"], "weighted", False):
        return ""
    try:
        effect = evaluate(learned, **sample, cv=_folds(sample))
    except TooFewRows:
        return ""
    before, after = effect.before, effect.after
    return (
        f"On held-out rows, log loss {decimals(before.log_loss)} becomes {decimals(after.log_loss)} (gain "
        f"{effect.gain:+.4f}, {percent(effect.confidence)} interval {effect.low:+.4f} to "
        f"{effect.high:+.4f}) and SmoothECE {decimals(before.smooth_ece)} becomes "
        f"{decimals(after.smooth_ece)}."
    )


def _how_to_apply(source: Source, output: str) -> str:
    """Command that applies a map to a file like the one it was learned from."""
    reading = source.reading
    ending = ".csv" if source.paths[0].lower().endswith(".csv") else ".parquet"
    words = [f"NEW{ending}", *(word for one in reading.prob or () for word in ("--prob", one))]
    words += ["--classes", reading.classes] if reading.classes else []
    words += ["--sep", reading.sep] if reading.sep else []
    words += [f"--{name.replace('_', '-')}" for name in reading.forms]
    words += ["--apply", printable(output, 200), "-o", f"BETTER{ending}"]
    return shlex.join(["calibrant", "recalibrate", *words])


def _apply(source: Source, map_path: str, output: str) -> None:
    """Write the file again with columns of recalibrated predictions."""
    import numpy as np
    import pyarrow

    from calibrant.cli._inputs import RECALIBRATED
    from calibrant.data.rows import as_rows
    from calibrant.io.rows import read_table

    reading = source.reading
    source.require_rows("applying a map")
    path = target(output, (".parquet", ".csv"), "a file of rows", [*source.all_paths, map_path])
    of_use = ("prob", "sep", "multiclass", "classes", *FORMS)
    if replace(reading, **{name: getattr(Reading(), name) for name in of_use}) != Reading():
        raise InputError("a map needs the columns of predictions and how these are written alone.")
    learned: Any = cal.load_recalibrator(map_path)
    classes = not isinstance(learned, cal.recalibration.Recalibrator)
    if classes and not reading.prob:
        raise InputError("a map of classes needs `--prob 'p_*'`.", argument="y_prob")
    prob = source.predictions(reading.prob, source.columns)
    if not classes and len(prob) != 1:
        raise InputError("a map is applied to one column of predictions.", argument="y_prob")
    names = [f"{name}{RECALIBRATED}" for name in prob]
    taken = next((name for name in names if name in source.columns), None)
    if taken is not None:
        raise InputError(f"{source.names[0]} already has a column {printable(taken)!r}.")
    table = read_table(source.files)
    columns: list[Any]
    if classes:
        better = _applied_to_classes(learned, table, prob, reading)
        columns = [better.tolist()] if len(prob) == 1 else list(np.ascontiguousarray(better.T))
    else:
        if not reading.prob:
            note(f"Reading predictions from column {prob[0]!r}.")
        COLUMN_OF["y_prob"] = prob[0]
        try:
            rows = as_rows(np.zeros(table.num_rows), table[prob[0]], **reading.forms)
            columns = [learned.transform(rows.p)]
        except InputError as error:
            error.hint = "Leave such rows out first."
            raise
    for name, column in zip(names, columns, strict=True):
        table = table.append_column(name, pyarrow.array(column))
    listed = ", ".join(repr(printable(name)) for name in names[:3])
    about = f": {count(table.num_rows, 'row')}, new column{'s' if len(names) > 1 else ''} {listed}"
    about += ", ..." if len(names) > 3 else "."
    write(path, lambda file: _write_table(table, file, path.suffix), about)


def _applied_to_classes(learned: Any, table: Any, prob: Sequence[str], reading: Reading) -> Any:
    """Recalibrated class probabilities, in the order of the columns."""
    import numpy as np

    from calibrant.data.classes import as_class_probabilities
    from calibrant.io.predictions import class_matrix

    values = []
    for name in prob:
        cells = np.empty(table.num_rows, dtype=object)
        cells[:] = table[name].to_pylist()
        lists = str(table[name].type).startswith(("list", "large_list", "fixed_size_list"))
        values.append(cells if lists else table[name].to_numpy())
    matrix = class_matrix(values, prob[0], on_invalid="raise")
    zeros, places = np.zeros(len(matrix)), range(matrix.shape[1])
    valid = as_class_probabilities(
        zeros, matrix, from_logits=reading.from_logits, classes=places
    ).valid()
    names = _class_names(reading, prob)
    return learned.transform(valid.distributions, **({} if names is None else {"classes": names}))


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
