"""`calibrant recalibrate`: learn a map from a file, or apply one to a file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._format import decimals, percent
from calibrant._optional import require
from calibrant.cli.columns import RECALIBRATED, choose_predictions
from calibrant.cli.errors import read_from
from calibrant.cli.inputs import kind_of, load_sketches
from calibrant.cli.output import (
    count,
    note,
    note_dropped,
    printable,
    quoted,
    require_ending,
    written,
)
from calibrant.cli.rows import options_of_rows, rows_of_columns
from calibrant.cli.shared_options import FORMS, Grouping, Measuring, Reading
from calibrant.cli.standard_input import opened
from calibrant.data.arrays import as_column
from calibrant.data.rows import as_rows
from calibrant.data.sketch import Sketch, warn_of_hard_labels
from calibrant.errors import InputError, Option, TooFewRows
from calibrant.inference.assess import read_clustered
from calibrant.io.find_files import DataFile, find_files
from calibrant.io.rows import placed
from calibrant.io.tables import columns_of, read_table
from calibrant.recalibration.learned_map import Recalibrator

__all__ = [
    "files_to_repair",
    "folds_for",
    "how_to_apply",
    "require_new_column",
    "run_apply",
    "run_fit",
    "write_table",
]

CHOOSE = "choose"
FOLDS = 5
PICTURES = (".svg", ".pdf", ".png")
ON_LOG_ODDS = ("adaptive", "smooth", CHOOSE)
"""What tells .999 from .99 reads rows on a scale that does so, too."""


@dataclass(frozen=True)
class Sample:
    """What a map is learned from: a sketch or, where weights or clusters judge it, rows.

    `arguments` and `options` are those of `choose_recalibrator`; `units` counts what is held out together.
    """

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    n: int
    units: int
    dropped: Mapping[str, int]

    def fitted(self, recalibrator: Any) -> Recalibrator:
        """The map, learned from all of it."""
        options = {name: value for name, value in self.options.items() if name != "cluster"}
        made: Recalibrator = recalibrator.fit(*reversed(self.arguments), **options)
        return made


def run_fit(
    files: Sequence[str],
    reading: Reading,
    method: str,
    output: str,
    picture: str | None = None,
    cluster: str | None = None,
) -> None:
    """Learn the map and write it, and its picture."""
    require_ending(output, (".json",), "a map", files)
    if picture is not None:
        require_ending(picture, PICTURES, "a picture", [*files, output])
    by_rows = reading.weight is not None or cluster is not None
    read = _rows if by_rows else _sketch
    sample = read(files, reading, Measuring(cluster=cluster, scale=_scale(method)))
    note_dropped(sample.dropped)
    whole = (
        sample.arguments[0]
        if len(sample.arguments) == 1
        else Sketch.from_arrays(*sample.arguments, labels="soft")
    )
    warn_of_hard_labels([whole], stacklevel=2)
    recalibrator, judged = _learned(sample, method)
    written(Path(output), recalibrator.save)
    kind = recalibrator.kind
    article = "an" if kind[0] in "aeiou" else "a"
    note(
        f"Wrote {printable(output, 200)}: {article} {kind} map learned from {count(sample.n, 'row')}. "
        f"{recalibrator.explain()} {judged}{how_to_apply(files, output, reading, reading.prob or ())}"
    )
    if picture is not None:
        from calibrant.plotting.map_diagram import map_diagram

        diagram = map_diagram(*sample.arguments, recalibrator=recalibrator, **sample.options)
        written(Path(picture), diagram.save)
        note(f"Wrote {printable(picture, 200)} (the map and its uncertainty).")


def _scale(method: str) -> str:
    from calibrant.recalibration.smooth import DEFAULT_SCALE

    return DEFAULT_SCALE if method in ON_LOG_ODDS else "probability"


def _sketch(files: Sequence[str], reading: Reading, measuring: Measuring) -> Sample:
    loaded = load_sketches(files, reading, Grouping(), measuring)
    if loaded.by:
        raise _one_column()
    sketch = loaded.groups()[()]
    return Sample((sketch,), {}, sketch.n, sketch.n, sketch.dropped)


def _rows(files: Sequence[str], reading: Reading, measuring: Measuring) -> Sample:
    """Rows that are valid, as probabilities, with their weights and clusters."""
    rows, chosen = rows_of_columns(files, reading, measuring)
    if len(chosen.prob) != 1:
        raise _one_column()
    options = options_of_rows(rows, chosen, reading)
    cluster = options.pop("cluster", None)
    with placed(rows.place):
        given = rows.y_probs[chosen.prob[0]]
        pairs, codes = read_clustered(rows.y_true, given, cluster, **options)
        pairs.require_valid()
    kept: dict[str, Any] = {"labels": "soft"} if pairs.soft else {}
    kept |= {} if pairs.weight is None else {"sample_weight": pairs.weight}
    units = pairs.n
    if codes is not None:
        kept["cluster"], units = codes[0], codes[1]
    return Sample((pairs.y, pairs.p), kept, pairs.n, units, pairs.dropped)


def _one_column() -> InputError:
    return InputError(
        "a map is learned from one column of predictions",
        cure="Give {prob} once.",
        prob=Option("y_prob"),
    )


def folds_for(units: int, *, clustered: bool) -> int:
    """How many folds to hold out in turn: as many as there are rows or clusters, if these are few."""
    if clustered and units < 2:
        raise TooFewRows(
            "must tell two clusters or more apart, to judge a map on clusters that it has not seen",
            argument="cluster",
            seen=units,
            saying="there is {}",
            cure="Name another column, or leave it out.",
        )
    return min(FOLDS, max(2, units))


def how_to_apply(
    files: Sequence[str], output: str, reading: Reading, columns: Sequence[str]
) -> str:
    """The command that applies a map to a file like the one it was learned from."""
    ending = ".csv" if str(files[0]).lower().endswith(".csv") else ".parquet"
    typed = [("--prob", name) for name in columns]
    typed += [("--classes", reading.classes)] if reading.classes else []
    typed += [("--sep", reading.sep)] if reading.sep else []
    words = [f"{name} {shlex.quote(printable(value, 200))} " for name, value in typed]
    words += [f"--{name.replace('_', '-')} " for name in FORMS if getattr(reading, name)]
    return (
        f"Apply it to other rows: `calibrant recalibrate NEW{ending} {''.join(words)}"
        f"--apply {shlex.quote(printable(output, 200))} -o BETTER{ending}`."
    )


def _learned(sample: Sample, method: str) -> tuple[Recalibrator, str]:
    """The map of all rows, and what cross-fitting says of it: every row by a map that has not seen it."""
    from calibrant.recalibration.choice import choose_recalibrator
    from calibrant.recalibration.effect import evaluate
    from calibrant.recalibration.learned_map import make_map

    folds = folds_for(sample.units, clustered="cluster" in sample.options)
    if method == CHOOSE:
        choice = choose_recalibrator(*sample.arguments, cv=folds, **sample.options)
        note(f"On held-out rows, best first:\n{choice}")
        learned: Recalibrator = choice.recalibrator
    else:
        learned = sample.fitted(make_map(method))
    whole = sample.arguments[0]
    if method == "randomized" or (isinstance(whole, Sketch) and whole.weighted):
        return learned, ""
    try:
        effect = evaluate(learned, *sample.arguments, cv=folds, **sample.options)
    except TooFewRows:
        return learned, ""
    before, after = effect.before, effect.after
    told = (
        f"On held-out rows, log loss {decimals(before.log_loss)} becomes {decimals(after.log_loss)} (gain "
        f"{effect.gain:+.4f}, {percent(effect.confidence)} interval {effect.low:+.4f} to "
        f"{effect.high:+.4f}), SmoothECE {decimals(before.smooth_ece)} becomes "
        f"{decimals(after.smooth_ece)} and AUC {decimals(before.auc)} becomes {decimals(after.auc)}. "
    )
    return learned, told


def run_apply(files: Sequence[str], reading: Reading, chosen_map: str, output: str) -> None:
    """Write the file again with a column of recalibrated predictions."""
    target = require_ending(output, (".parquet", ".csv"), "a file of rows", [*files, chosen_map])
    forms: dict[str, Any] = dict.fromkeys(FORMS, False)
    if replace(reading, prob=None, sep=None, **forms) != Reading():
        raise InputError(
            "a map needs only the column of predictions, and how these are written",
            cure="Leave out the other options that say how to read rows.",
        )
    recalibrator = Recalibrator.load(chosen_map)
    data, present = files_to_repair(files, reading)
    prob = choose_predictions(present, data[0].path, reading, present)
    if len(prob) != 1:
        raise InputError(
            "a map is applied to one column of predictions",
            cure="Give {prob} once.",
            prob=Option("y_prob"),
        )
    if not reading.prob:
        note(f"Reading predictions from column {quoted(prob[0])}.")
    name = f"{prob[0]}{RECALIBRATED}"
    require_new_column(name, present, data[0])
    read_from({"y_prob": prob[0]})
    table = read_table(data)
    column = as_column(table[prob[0]], "y_prob")
    try:
        pairs = as_rows(np.zeros(column.size), column, **reading.options_of_forms)
        better = recalibrator.transform(pairs.p)
    except InputError as error:
        raise error.but(cures=("Leave such rows out first.",)) from error
    table = table.append_column(name, require("pyarrow", caller="recalibrate").array(better))
    written(target, lambda path: write_table(table, path, target.suffix))
    form = " (probabilities from 0 to 1)" if pairs.form != "probability" else ""
    note(
        f"Wrote {printable(output, 200)}: {count(len(better), 'row')}, new column {quoted(name)}{form}."
    )


def files_to_repair(files: Sequence[str], reading: Reading) -> tuple[list[DataFile], list[str]]:
    """The files of rows that a map is applied to, and the columns that they have."""
    paths = opened(files)
    if any(kind_of(path, log=None) != "rows" for path in paths):
        raise InputError(
            "a map is applied to rows of predictions, and this file holds none",
            cure="Pass a file of rows.",
        )
    data = find_files(paths, separator=reading.sep)
    return data, columns_of(data[0])


def require_new_column(name: str, present: Sequence[str], file: DataFile) -> None:
    """Refuse to write over a column that is there."""
    if name in present:
        raise InputError(
            "{file} already has a column {name}",
            file=printable(file.path, 200),
            name=quoted(name),
            cure="Rename or drop that column first.",
        )


def write_table(table: Any, path: Path, suffix: str) -> None:
    """Write all columns as CSV or Parquet; CSV has lists as text, which every verb reads."""
    if suffix == ".csv":
        types = require("pyarrow.types", caller="calibrant recalibrate")
        for place, field in enumerate(table.schema):
            if types.is_nested(field.type):
                texts = [None if v is None else json.dumps(v) for v in table[place].to_pylist()]
                text = require("pyarrow", caller="calibrant recalibrate").array(texts, "string")
                table = table.set_column(place, field.name, text)
        require("pyarrow.csv", caller="calibrant recalibrate").write_csv(table, path)
    else:
        require("pyarrow.parquet", caller="calibrant recalibrate").write_table(table, path)
