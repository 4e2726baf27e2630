"""`calibrant scan` and `calibrant merge`: rows into sketches, sketches into one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from calibrant.cli.opening import kind_of
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import Given, given
from calibrant.cli.text import count, note, printable, quoted
from calibrant.cli.writing import require_writable
from calibrant.data.sketch import Sketch
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
    found = given(files, reading, grouping, measuring, checkpoint=checkpoint)
    _write(found, scale, output, checkpoint)


def run_merge(files: Sequence[str], by: list[str] | None, output: str) -> None:
    """Read sketches and write their sum."""
    _require_target(output, files)
    for path in files:
        if path != "-" and not os.path.isfile(path):
            raise InputError(
                f"there is no sketch {quoted(path, 200)}; make it with `calibrant scan`."
            )
        if path != "-" and os.path.isfile(path) and kind_of(path, log=None) != "sketch":
            raise InputError(
                f"`calibrant merge` adds sketches, and {printable(path, 200)} is none. Make one with "
                "`calibrant scan`."
            )
    found = given(files, Reading(), Grouping(by=by), Measuring())
    _write(found, found.parts[0].arguments[0].scale.name, output)


def _require_target(output: str, files: Sequence[str]) -> None:
    if output != "-" and not output.endswith((".parquet", ".json")):
        raise InputError(
            f"a sketch is written to a file that ends in .parquet or .json, or to -; got "
            f"{quoted(output, 200)}."
        )
    if output != "-":
        require_writable(output, files)


def _write(found: Given, scale: str, output: str, checkpoint: str | None = None) -> None:
    from calibrant._files import remove_file
    from calibrant.data.wire import save, to_json

    sketches = [part.sketch(scale) for part in found.parts]
    result: Sketch | Sketches = sketches[0]
    if found.by:
        keys = [tuple(part.group.values()) for part in found.parts]
        named = zip(keys if len(found.by) > 1 else [key[0] for key in keys], sketches, strict=True)
        result = Sketches(dict(named), by=found.by)
    rows = sum(sketch.n for sketch in sketches)
    dropped = sum(sum(sketch.dropped.values()) for sketch in sketches)
    if output == "-":
        sys.stdout.write(to_json(result) + "\n")
        sys.stdout.flush()
        if checkpoint is not None:
            remove_file(checkpoint)
    else:
        save(result, output, checkpoint=checkpoint)
    groups = f" in {count(len(sketches), 'group')}" if found.by else ""
    left_out = f", {count(dropped, 'row')} dropped" if dropped else ""
    size = f" ({os.path.getsize(output):,} bytes)" if output != "-" else ""
    where = printable(output, 200) if output != "-" else "standard output"
    note(f"Wrote {where}{size}: {count(rows, 'row')}{groups}{left_out}.")
