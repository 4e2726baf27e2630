"""`calibrant monitor`: batch after batch, with a state that is kept in a file."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Sequence
from pathlib import Path

import typer

from calibrant._format import p_text
from calibrant.cli.errors import LIMIT_EXCEEDED
from calibrant.cli.inputs import kind_of, load_sketches
from calibrant.cli.output import note, printable, quoted, require_ending, shown
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.standard_input import opened
from calibrant.cli.table import Column, show_table
from calibrant.errors import InputError, Option
from calibrant.inference.monitor import Monitor
from calibrant.inference.monitor_look import Look

__all__ = ["run_monitor"]

SCHEMA = "calibrant.monitor/1"
MOST_SHOWN = 20


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
    if reading.multiclass not in (None, "confidence"):
        raise InputError(
            "makes a group of each class, and a monitor takes each row once",
            argument="multiclass",
            seen=reading.multiclass,
            cure="Watch the confidence with {confidence}.",
            confidence=Option("multiclass", "confidence"),
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
) -> tuple[list[Look], list[str]]:
    looks, names = [], []
    paths = opened(files)
    _require_apart(paths, reading)
    for file, path in zip(files, paths, strict=True):
        grouping = Grouping(by=[batch] if batch else None)
        loaded = load_sketches([path], reading, grouping, Measuring())
        for key, sketch in loaded.groups().items():
            name = shown(key[0]) if batch else os.path.basename(str(Path(file)))
            before = monitor.n
            looks.append(monitor.update(sketch, batch=_identity(file, name, batch)))
            names.append(name)
            if monitor.n == before:
                note(f"{printable(name, 200)} was taken before, and counts once.")
    return looks, names


def _identity(file: str, name: str, batch: str | None) -> str | None:
    """The file as it is now, and the group: a command that is run again counts once."""
    if not os.path.isfile(file):
        return None
    about = os.stat(file)
    parts = [os.path.realpath(file), about.st_size, about.st_mtime_ns, name if batch else None]
    return json_format.dumps(parts)


def _require_apart(paths: Sequence[str], reading: Reading) -> None:
    """Refuse folders and globs that share a file: its rows would be evidence twice."""
    from calibrant.read.find_files import find_files

    several = [path for path in paths if kind_of(path, log=reading.log) == "rows"]
    files = [file.path for path in several for file in find_files(path)]
    twice = next((path for path in files if files.count(path) > 1), None)
    if twice is not None:
        raise InputError(
            "a row is evidence once; {file} belongs to two of the files, folders or globs in the command",
            file=quoted(twice, 200),
            cure="Name it once.",
        )


def _show(looks: Sequence[Look], names: Sequence[str]) -> None:
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


def _that_fit(looks: Sequence[Look]) -> list[int]:
    """The last batches, and the one that raised the alarm: as many as fit a screen."""
    last = list(range(max(0, len(looks) - MOST_SHOWN), len(looks)))
    alarm = next((place for place, look in enumerate(looks) if look.alarm), None)
    return last if alarm is None or alarm in last else [alarm, *last[1:]]
