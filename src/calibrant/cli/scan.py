"""`calibrant scan` and `calibrant merge`: rows into sketches, sketches into one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrant._files import remove_file
from calibrant.cli.inputs import Loaded, kind_of, load_sketches
from calibrant.cli.logs import QUESTION, sketches_of_answers
from calibrant.cli.output import count, note, printable, quoted, require_writable
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.data.rows import ABSTAINED
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_file import save, to_json
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError

__all__ = ["run_merge", "run_scan"]


def run_scan(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    scale: str,
    output: str,
    checkpoint: str | None,
) -> None:
    """Read rows and write their sketch."""
    _require_target(output, files)
    if checkpoint is not None:
        require_writable(checkpoint, [*files, output])
    measuring = Measuring(scale=scale)
    loaded = load_sketches(
        files, reading, grouping, measuring, checkpoint=checkpoint, keeping_empty=True
    )
    if loaded.answers is not None:
        apart = sketches_of_answers(loaded.answers, scale=scale, by_question=True)
        loaded = replace(loaded, sketches=_with_abstentions(apart, loaded.abstained))
    _write(loaded, output, checkpoint)


def _with_abstentions(
    sketches: Sketch | Sketches, abstained: Mapping[tuple[Any, ...], int]
) -> Sketch | Sketches:
    """The sketches of a log, of which the first of each group counts what the group declined."""
    if isinstance(sketches, Sketch):
        return _counting(sketches, abstained.get((), 0))
    left = dict(abstained)
    counted = {}
    for key, sketch in sketches.items():
        values = key if isinstance(key, tuple) else (key,)
        group = values[:-1] if sketches.by[-1] == QUESTION else values
        counted[key] = _counting(sketch, left.pop(group, 0))
    return Sketches(counted, by=sketches.by)


def _counting(sketch: Sketch, abstained: int) -> Sketch:
    dropped = {**sketch.dropped, ABSTAINED: abstained} if abstained else sketch.dropped
    return Sketch(sketch.columns, nodes=sketch.nodes, scale=sketch.scale, dropped=dropped)


def run_merge(files: Sequence[str], by: list[str] | None, output: str) -> None:
    """Read sketches and write their sum."""
    _require_target(output, files)
    for path in files:
        if path == "-":
            continue
        if not os.path.isfile(path):
            raise InputError(
                "there is no sketch {file}",
                file=quoted(path, 200),
                cure="Make it with `calibrant scan`.",
            )
        if kind_of(path, log=None) != "sketch":
            raise InputError(
                "`calibrant merge` adds sketches, and {file} is none",
                file=printable(path, 200),
                cure="Make one with `calibrant scan`.",
            )
    loaded = load_sketches(files, Reading(), Grouping(by=by), Measuring(), keeping_empty=True)
    _write(loaded, output)


def _require_target(output: str, files: Sequence[str]) -> None:
    if output == "-":
        return
    if not output.endswith((".parquet", ".json")):
        raise InputError(
            "a sketch is written to a file that ends in .parquet or .json, or to -",
            seen=printable(output, 200),
            cure="Give the file one of these endings.",
        )
    require_writable(output, files)


def _write(loaded: Loaded, output: str, checkpoint: str | None = None) -> None:
    result = loaded.sketches
    sketches = [result] if isinstance(result, Sketch) else list(result.values())
    rows = sum(sketch.n for sketch in sketches)
    abstained = sum(sketch.dropped.get(ABSTAINED, 0) for sketch in sketches)
    dropped = sum(sum(sketch.dropped.values()) for sketch in sketches) - abstained
    if output == "-":
        sys.stdout.write(to_json(result) + "\n")
        sys.stdout.flush()
        if checkpoint is not None:
            remove_file(checkpoint)
    else:
        save(result, output, checkpoint=checkpoint)
    groups = f" in {count(len(sketches), 'group')}" if loaded.by else ""
    left_out = f", {count(dropped, 'row')} dropped" if dropped else ""
    left_out += f", {count(abstained, 'abstention')}" if abstained else ""
    size = f" ({os.path.getsize(output):,} bytes)" if output != "-" else ""
    where = printable(output, 200) if output != "-" else "standard output"
    note(f"Wrote {where}{size}: {count(rows, 'row')}{groups}{left_out}.")
