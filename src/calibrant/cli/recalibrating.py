"""`calibrant recalibrate`: learn a map from a file, or apply one to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant._optional import require
from calibrant.cli.columns import choose_predictions
from calibrant.cli.opening import kind_of, opened
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import Part, given, spoken
from calibrant.cli.rows import columns_of, read_rows, read_table
from calibrant.cli.table import decimal
from calibrant.cli.text import count, note, printable, quoted
from calibrant.cli.writing import require_ending, written
from calibrant.errors import InputError
from calibrant.recalibration.interface import Recalibrator
from calibrant.recalibration.wording import FROM_LOGITS, FROM_PERCENT, reworded

__all__ = ["METHODS", "run_apply", "run_fit"]

METHODS = {
    "smooth": "SmoothRecalibrator",
    "isotonic": "IsotonicRecalibrator",
    "platt": "PlattRecalibrator",
    "beta": "BetaRecalibrator",
    "temperature": "TemperatureRecalibrator",
    "offset": "OffsetRecalibrator",
    "randomized": "RandomizedRecalibrator",
}


def run_fit(files: Sequence[str], reading: Reading, method: str, output: str) -> None:
    """Learn the map and write it."""
    from calibrant import recalibration
    from calibrant.recalibration.smooth import DEFAULT_SCALE

    require_ending(output, (".json",), "a map", files)
    if reading.has_form:
        raise InputError(
            "a map is learned from probabilities, and applied to such: convert the column first, and "
            "leave out `--from-logits` and `--percent`."
        )
    if reading.multiclass is not None:
        raise InputError(
            "a map is learned from the probability of one event: leave out `--multiclass`, and name the "
            "column of one class with `--prob` and its label with `--pos-label`."
        )
    scale = DEFAULT_SCALE if method == "smooth" else "probability"
    with reworded({"pass `--from-logits`": FROM_LOGITS, "pass `--percent`": FROM_PERCENT}):
        found = given(files, reading, Grouping(), Measuring(scale=scale))
    if len(found.parts) != 1:
        raise InputError("a map is learned from one column of predictions; give `--prob` once.")
    part = found.parts[0]
    with spoken(found.columns.spoken if found.columns else {}):
        recalibrator: Recalibrator = getattr(recalibration, METHODS[method])()
        recalibrator.fit(*_fit_arguments(part), **_fit_options(part))
        before = _smooth_ece(part, of_rows=found.columns is not None)
    written(Path(output), recalibrator.save)
    article = "an" if method[0] in "aeiou" else "a"
    note(
        f"Wrote {printable(output, 200)}: {article} {method} map learned from "
        f"{count(part.n, 'row')} with SmoothECE {decimal(before)}. Apply it to other "
        f"rows: `calibrant recalibrate NEW.parquet --apply {printable(output, 200)} -o BETTER.parquet`."
    )


def run_apply(files: Sequence[str], reading: Reading, chosen_map: str, output: str) -> None:
    """Write the file again with a column of recalibrated predictions."""
    from calibrant.read.find_files import find_files

    target = require_ending(output, (".parquet", ".csv"), "a file of rows", [*files, chosen_map])
    if replace(reading, prob=None) != Reading():
        raise InputError(
            "a map needs only the column of predictions (`--prob`), as probabilities; leave out the "
            "other options that say how to read rows."
        )
    recalibrator = Recalibrator.load(chosen_map)
    paths = opened(files)
    if any(kind_of(path, log=None) != "rows" for path in paths):
        raise InputError("a map is applied to rows of predictions, and this file holds none.")
    data = find_files(paths)
    present = columns_of(data[0])
    prob = choose_predictions(present, data[0].path, reading, present)
    if len(prob) != 1:
        raise InputError("a map is applied to one column of predictions; give `--prob` once.")
    if not reading.prob:
        note(f"Reading predictions from column {quoted(prob[0])}.")
    name = f"{prob[0]}_recalibrated"
    if name in present:
        raise InputError(f"{printable(data[0].path, 200)} already has a column {quoted(name)}.")
    values = read_rows(data, prob, numbers=prob)[prob[0]]
    with spoken({"y_prob": prob[0]}):
        better = recalibrator.transform(values)
    table = read_table(data).append_column(
        name, require("pyarrow", caller="recalibrate").array(better)
    )
    written(target, lambda path: _write(table, path, target.suffix))
    note(f"Wrote {printable(output, 200)}: {count(len(better), 'row')}, new column {quoted(name)}.")


def _write(table: Any, path: Path, suffix: str) -> None:
    if suffix == ".csv":
        require("pyarrow.csv", caller="calibrant recalibrate").write_csv(table, path)
    else:
        require("pyarrow.parquet", caller="calibrant recalibrate").write_table(table, path)


def _smooth_ece(part: Part, *, of_rows: bool) -> float:
    """As `calibrant assess` says it: of rows on the probability scale, of a sketch on its own."""
    from calibrant.data.atoms import Atoms
    from calibrant.data.sketch import Sketch
    from calibrant.measures.smooth_ece import smooth_ece

    first = part.arguments[0]
    if not (of_rows and isinstance(first, Sketch)):
        return smooth_ece(*part.arguments, **part.options)
    atoms = Atoms.from_sketch(first)
    weight = atoms.mass.sum(axis=1)
    return smooth_ece(atoms.mass[:, 1] / weight, atoms.p, sample_weight=weight, labels="soft")


def _fit_arguments(part: Part) -> tuple[Any, ...]:
    """Predictions first, as `fit` takes them; a sketch stays alone."""
    return part.arguments[::-1]


def _fit_options(part: Part) -> dict[str, Any]:
    names = ("sample_weight", "pos_label", "labels", "on_invalid")
    return {name: part.options[name] for name in names if name in part.options}
