"""`calibrant monitor`: batch after batch, with a state that is kept in a file."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from calibrant._format import p_text
from calibrant.cli.errors import LIMIT_EXCEEDED
from calibrant.cli.inputs import Loaded, kind_of, load_sketches
from calibrant.cli.output import note, printable, quoted, require_ending, shown
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.standard_input import opened
from calibrant.cli.table import Column, show_table
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option
from calibrant.inference.monitor import ClassResult, Monitor, MonitorResult
from calibrant.io.group_keys import sort_key
from calibrant.io.scan_request import CLASS_COLUMN

__all__ = ["run_monitor"]

SCHEMA = "calibrant.monitor/1"
MOST_SHOWN = 20
CLASSES = [name for names in CLASS_COLUMN.values() for name in names]
"""What the columns are called that tell classes apart."""


def run_monitor(
    files: Sequence[str],
    reading: Reading,
    batch: str | None,
    level: float,
    state: str | None,
    fail_on_alarm: bool,
    json: bool,
) -> None:
    """Take each file, or each value of a column, as the next batch, and look after each."""
    if reading.weight is not None or reading.outcomes == "soft":
        raise InputError(
            "a monitor takes unweighted rows with outcomes 0 or 1",
            cure="Leave out {weight} and {labels}.",
            weight=Option("sample_weight"),
            labels=Option("labels", "soft"),
        )
    if reading.prob is not None and len(reading.prob) > 1 and not reading.multiclass:
        raise InputError(
            "a monitor watches one model, for an outcome is evidence once",
            cure="Give {prob} once, and a {state} of its own to each model.",
            prob=Option("y_prob"),
            state=Option("state"),
        )
    target = require_ending(state, (".json",), "the state of a monitor", files) if state else None
    if target is None:
        looks, names = _looks(Monitor(level=level), files, reading, batch)
    else:
        with Monitor.shared(target, level=level) as monitor:
            looks, names = _looks(monitor, files, reading, batch)
    if json:
        found = [{"batch": name, **look.to_dict()} for name, look in zip(names, looks, strict=True)]
        print(json_format.dumps({"schema": SCHEMA, "level": level, "looks": found}, indent=2))
    else:
        _show(looks, names)
    alarm = looks[-1].alarm
    if alarm is None:
        note(f"No alarm at level {level:g}, however often one looks.")
    else:
        note(f"ALARM at look {alarm.look}: {alarm}.")
        if fail_on_alarm:
            raise typer.Exit(LIMIT_EXCEEDED)


def _looks(
    monitor: Monitor, files: Sequence[str], reading: Reading, batch: str | None
) -> tuple[list[MonitorResult], list[str]]:
    looks, names = [], []
    paths = opened(files)
    _require_apart(paths, reading)
    for file, path in zip(files, paths, strict=True):
        grouping = Grouping(by=[batch] if batch else None)
        loaded = load_sketches([path], reading, grouping, Measuring())
        for value, rows in _batches(loaded, batch):
            name = shown(value) if batch else os.path.basename(str(Path(file)))
            before = monitor.n
            looks.append(monitor.update(rows, batch=_identity(file, name, batch)))
            names.append(name)
            if monitor.n == before:
                note(f"{printable(name, 200)} has been counted before, so it is not counted again.")
    return looks, names


def _batches(loaded: Loaded, batch: str | None) -> list[tuple[Any, Sketch | Sketches]]:
    """The batches of a file in order, by the value of their column: each a sample, or one by class."""
    sketches = loaded.sketches
    classes = [name for name in loaded.by if name in CLASSES]
    if isinstance(sketches, Sketch) or len(loaded.by) > len(classes) + bool(batch):
        if loaded.by and not isinstance(sketches, Sketch):
            raise InputError(
                "a monitor takes one batch after the other; this file is grouped by {by}",
                by=", ".join(map(printable, loaded.by)),
                cure="Name the column that tells batches apart with {batch}.",
                batch=Option("batch"),
            )
        return [((), sketches)]
    if not classes:
        return [(key[0], rows) for key, rows in loaded.groups().items()]
    if batch is None:
        return [((), sketches)]
    by_batch: dict[Any, dict[Any, Sketch]] = {}
    for (name, value), rows in sketches.items():
        by_batch.setdefault(value, {})[name] = rows
    order = sorted(by_batch, key=lambda value: sort_key((value,)))
    return [(value, Sketches(by_batch[value], by=classes)) for value in order]


def _identity(file: str, name: str, batch: str | None) -> str | None:
    """The file as it is now, and the group: a command that is run again counts once."""
    if not os.path.isfile(file):
        return None
    about = os.stat(file)
    parts = [os.path.realpath(file), about.st_size, about.st_mtime_ns, name if batch else None]
    return json_format.dumps(parts)


def _require_apart(paths: Sequence[str], reading: Reading) -> None:
    """Refuse folders and globs that share a file: its rows would be evidence twice."""
    from calibrant.io.find_files import find_files

    several = [path for path in paths if kind_of(path, log=reading.log) == "rows"]
    files = [file.path for path in several for file in find_files(path)]
    twice = next((path for path in files if files.count(path) > 1), None)
    if twice is not None:
        raise InputError(
            "a row is evidence once; {file} belongs to two of the files, folders or globs in the command",
            file=quoted(twice, 200),
            cure="Name it once.",
        )


def _show(looks: Sequence[MonitorResult], names: Sequence[str]) -> None:
    classes = looks[-1].classes
    shown_looks = _that_fit(looks)
    if len(shown_looks) < len(looks):
        note(f"Showing {len(shown_looks)} of {len(looks):,} batches; `--json` has all of them.")
    names = [names[place] for place in shown_looks]
    looks = [looks[place] for place in shown_looks]
    show_table(
        [
            Column("batch", names, is_name=True),
            Column("look", [f"{look.look:,}" for look in looks]),
            Column("rows so far", [f"{look.n:,}" for look in looks]),
            Column("e-value", [f"{look.e_value:.3g}" for look in looks]),
            Column("p (any time)", [p_text(look.p_value) for look in looks]),
            Column(
                "",
                ["ALARM" if look.alarm else "" for look in looks],
                styles=["bold red" if look.alarm else "" for look in looks],
            ),
        ]
    )
    if classes:
        _show_classes(classes)


def _show_classes(classes: Sequence[ClassResult]) -> None:
    """A line for each class, those with the most evidence first."""
    if len(classes) > MOST_SHOWN:
        note(f"Showing {MOST_SHOWN} of {len(classes):,} classes; `--json` has all of them.")
    classes = classes[:MOST_SHOWN]
    print()
    show_table(
        [
            Column("class", [shown(one.name) for one in classes], is_name=True),
            Column("rows", [f"{one.n:,}" for one in classes]),
            Column("e-value", [f"{one.e_value:.3g}" for one in classes]),
            Column("mean error", [f"{one.mean_error:+.3f}" for one in classes]),
        ],
        caption="each class by itself; mean error: prediction less event rate",
    )


def _that_fit(looks: Sequence[MonitorResult]) -> list[int]:
    """The last batches, and the one that raised the alarm: as many as fit a screen."""
    last = list(range(max(0, len(looks) - MOST_SHOWN), len(looks)))
    alarm = next((place for place, look in enumerate(looks) if look.alarm), None)
    return last if alarm is None or alarm in last else [alarm, *last[1:]]
