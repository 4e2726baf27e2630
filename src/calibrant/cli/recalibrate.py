"""`calibrant recalibrate`: learn a map from a file, or apply one to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant._format import decimals, percent
from calibrant._optional import require
from calibrant.cli.columns import RECALIBRATED, choose_predictions
from calibrant.cli.errors import read_from
from calibrant.cli.inputs import kind_of, load_sketches
from calibrant.cli.output import count, note, printable, quoted, require_ending, written
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.standard_input import opened
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, Option, TooFewRows
from calibrant.read.find_files import DataFile, find_files
from calibrant.read.tables import columns_of, read_table
from calibrant.recalibration.learned_map import Recalibrator

__all__ = [
    "METHODS",
    "files_to_repair",
    "how_to_apply",
    "require_new_column",
    "run_apply",
    "run_fit",
    "write_table",
]

CONVERT = {
    "from_logits": "If these are logits, turn them into probabilities first.",
    "from_logprobs": "If these are log-probabilities, turn them into probabilities first.",
    "percent": "If these are percentages, divide them by 100 first.",
}
"""A map is learned from probabilities: other forms are converted before."""
CHOOSE = "choose"
FOLDS = 5
METHODS = {
    "adaptive": "AdaptiveRecalibrator",
    "smooth": "SmoothRecalibrator",
    "isotonic": "IsotonicRecalibrator",
    "platt": "PlattRecalibrator",
    "beta": "BetaRecalibrator",
    "temperature": "TemperatureRecalibrator",
    "offset": "OffsetRecalibrator",
    "venn-abers": "VennAbersRecalibrator",
    "spline": "SplineRecalibrator",
    "randomized": "RandomizedRecalibrator",
}
PICTURES = (".svg", ".pdf", ".png")
ON_LOG_ODDS = ("adaptive", "smooth", CHOOSE)
"""What tells .999 from .99 reads rows on a scale that does so, too."""


def run_fit(
    files: Sequence[str], reading: Reading, method: str, output: str, picture: str | None = None
) -> None:
    """Learn the map and write it, and its picture."""
    from calibrant.recalibration.smooth import DEFAULT_SCALE

    require_ending(output, (".json",), "a map", files)
    if picture is not None:
        require_ending(picture, PICTURES, "a picture", [*files, output])
    for name in ("from_logits", "from_logprobs", "percent", "multiclass"):
        if getattr(reading, name):
            raise InputError(
                "a map is learned from probabilities of one event, and applied to such",
                cure="Convert the column first, and leave out {option}.",
                option=Option(name),
            )
    scale = DEFAULT_SCALE if method in ON_LOG_ODDS else "probability"
    try:
        loaded = load_sketches(files, reading, Grouping(), Measuring(scale=scale))
    except InputError as error:
        raise error.instead(CONVERT) from error
    if loaded.by:
        raise InputError(
            "a map is learned from one column of predictions",
            cure="Give {prob} once.",
            prob=Option("y_prob"),
        )
    sketch = loaded.groups()[()]
    recalibrator, judged = _learned(sketch, method)
    written(Path(output), recalibrator.save)
    kind = recalibrator.kind
    article = "an" if kind[0] in "aeiou" else "a"
    note(
        f"Wrote {printable(output, 200)}: {article} {kind} map learned from {count(sketch.n, 'row')}. "
        f"{recalibrator.explain()} {judged}{how_to_apply(files, output)}"
    )
    if picture is not None:
        from calibrant.repair.map_diagram import map_diagram

        diagram = map_diagram(sketch, recalibrator=recalibrator)
        written(Path(picture), diagram.save)
        note(f"Wrote {printable(picture, 200)} (the map and its uncertainty).")


def how_to_apply(files: Sequence[str], output: str, *, options: str = "") -> str:
    """The command that applies a map to a file like the one it was learned from."""
    ending = ".csv" if str(files[0]).lower().endswith(".csv") else ".parquet"
    return (
        f"Apply it to other rows: `calibrant recalibrate NEW{ending} {options}"
        f"--apply {printable(output, 200)} -o BETTER{ending}`."
    )


def _learned(sketch: Sketch, method: str) -> tuple[Recalibrator, str]:
    """The map of all rows, and what cross-fitting says of it: every row by a map that has not seen it."""
    from calibrant import recalibration
    from calibrant.repair.choice import choose_recalibrator
    from calibrant.repair.effect import cross_fitted_effect

    folds = min(FOLDS, max(2, sketch.n))
    if method == CHOOSE:
        if sketch.weighted:
            raise InputError(
                "cannot choose from weighted rows",
                argument="method",
                seen=method,
                cure="Name a map, such as platt.",
            )
        choice = choose_recalibrator(sketch, folds=folds)
        note(f"On held-out rows, best first:\n{choice}")
        learned: Recalibrator = choice.recalibrator
    else:
        learned = getattr(recalibration, METHODS[method])().fit(sketch)
    if sketch.weighted or method == "randomized":
        return learned, ""
    try:
        effect = cross_fitted_effect(learned, sketch, folds=folds)
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
    if replace(reading, prob=None, sep=None) != Reading():
        raise InputError(
            "a map needs only the column of predictions, as probabilities",
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
    try:
        better = recalibrator.transform(table[prob[0]])
    except InputError as error:
        raise error.instead(CONVERT | {"on_invalid": "Leave such rows out first."}) from error
    table = table.append_column(name, require("pyarrow", caller="recalibrate").array(better))
    written(target, lambda path: write_table(table, path, target.suffix))
    note(f"Wrote {printable(output, 200)}: {count(len(better), 'row')}, new column {quoted(name)}.")


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
    """Write all columns as CSV or Parquet."""
    if suffix == ".csv":
        require("pyarrow.csv", caller="calibrant recalibrate").write_csv(table, path)
    else:
        require("pyarrow.parquet", caller="calibrant recalibrate").write_table(table, path)
