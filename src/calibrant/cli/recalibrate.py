"""`calibrant recalibrate`: learn a map from a file, or apply one to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant._format import decimals
from calibrant._optional import require
from calibrant.cli.columns import RECALIBRATED, choose_predictions
from calibrant.cli.errors import read_from
from calibrant.cli.inputs import kind_of, load_sketches, opened
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.output import count, note, printable, quoted, require_ending, written
from calibrant.errors import InputError, Option
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.read.find_files import find_files
from calibrant.read.rows import columns_of, read_table
from calibrant.recalibration.interface import Recalibrator

__all__ = ["METHODS", "run_apply", "run_fit"]

CONVERT = {
    "from_logits": "If these are logits, turn them into probabilities first.",
    "from_logprobs": "If these are log-probabilities, turn them into probabilities first.",
    "percent": "If these are percentages, divide them by 100 first.",
}
"""A map is learned from probabilities: other forms are converted before."""
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
    for name in ("from_logits", "from_logprobs", "percent", "multiclass"):
        if getattr(reading, name):
            raise InputError(
                "a map is learned from probabilities of one event, and applied to such",
                cure="Convert the column first, and leave out {option}.",
                option=Option(name),
            )
    scale = DEFAULT_SCALE if method == "smooth" else "probability"
    try:
        loaded = load_sketches(files, reading, Grouping(), Measuring(scale=scale))
    except InputError as error:
        raise error.instead(CONVERT) from error
    if loaded.by:
        raise InputError(
            "a map is learned from one column of predictions", cure="Give `--prob` once."
        )
    sketch = loaded.groups()[()]
    recalibrator: Recalibrator = getattr(recalibration, METHODS[method])()
    recalibrator.fit(sketch)
    before = smooth_ece(sketch)
    on = "" if scale == "probability" else f" on the {sketch.scale.name} scale"
    written(Path(output), recalibrator.save)
    article = "an" if method[0] in "aeiou" else "a"
    note(
        f"Wrote {printable(output, 200)}: {article} {method} map learned from "
        f"{count(sketch.n, 'row')} with SmoothECE {decimals(before)}{on}. Apply it to other "
        f"rows: `calibrant recalibrate NEW.parquet --apply {printable(output, 200)} -o BETTER.parquet`."
    )


def run_apply(files: Sequence[str], reading: Reading, chosen_map: str, output: str) -> None:
    """Write the file again with a column of recalibrated predictions."""
    target = require_ending(output, (".parquet", ".csv"), "a file of rows", [*files, chosen_map])
    if replace(reading, prob=None, sep=None) != Reading():
        raise InputError(
            "a map needs only the column of predictions, as probabilities",
            cure="Leave out the other options that say how to read rows.",
        )
    recalibrator = Recalibrator.load(chosen_map)
    paths = opened(files)
    if any(kind_of(path, log=None) != "rows" for path in paths):
        raise InputError("a map is applied to rows of predictions, and this file holds none")
    data = find_files(paths, separator=reading.sep)
    present = columns_of(data[0])
    prob = choose_predictions(present, data[0].path, reading, present)
    if len(prob) != 1:
        raise InputError(
            "a map is applied to one column of predictions", cure="Give `--prob` once."
        )
    if not reading.prob:
        note(f"Reading predictions from column {quoted(prob[0])}.")
    name = f"{prob[0]}{RECALIBRATED}"
    if name in present:
        raise InputError(
            "{file} already has a column {name}",
            file=printable(data[0].path, 200),
            name=quoted(name),
        )
    read_from({"y_prob": prob[0]})
    table = read_table(data)
    try:
        better = recalibrator.transform(table[prob[0]])
    except InputError as error:
        raise error.instead(CONVERT | {"on_invalid": "Leave such rows out first."}) from error
    table = table.append_column(name, require("pyarrow", caller="recalibrate").array(better))
    written(target, lambda path: _write(table, path, target.suffix))
    note(f"Wrote {printable(output, 200)}: {count(len(better), 'row')}, new column {quoted(name)}.")


def _write(table: Any, path: Path, suffix: str) -> None:
    if suffix == ".csv":
        require("pyarrow.csv", caller="calibrant recalibrate").write_csv(table, path)
    else:
        require("pyarrow.parquet", caller="calibrant recalibrate").write_table(table, path)
