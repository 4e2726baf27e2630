"""`calibrant monitor`: batch after batch, with a state that is kept in a file."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

import calibrant as cal
from calibrant._format import p_text
from calibrant.cli.errors import LIMIT_EXCEEDED
from calibrant.cli.options import Grouping, Reading, verb
from calibrant.cli.output import note, show_json, show_table, shown, target
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.cli._inputs import Samples, Source

__all__ = ["monitor"]

MOST_SHOWN = 20


@verb("calibrant monitor today.parquet --state watch.json --fail-on-alarm")
def monitor(
    files: list[str],
    reading: Reading,
    batch: str | None = None,
    level: float = 0.05,
    state: str | None = None,
    fail_on_alarm: bool = False,
    json: bool = False,
) -> None:
    """Monitor calibration batch by batch.

    Check as often as you like: false alarms stay below 5%.

    Groups
    ------
    batch : NAME
        Column whose values, in order, are the batches. [each file is one]

    Measurement
    -----------
    level : SHARE
        Chance of a false alarm, however often you check. [0.05]

    Output
    ------
    state : FILE
        Continue from this file if it exists, and update it (.json).

    Gates
    -----
    fail_on_alarm : -
        Exit with 3 on an alarm.
    """
    from calibrant.cli._inputs import Source

    if reading.weight is not None or reading.outcomes == "soft":
        raise InputError("a monitor takes unweighted rows with outcomes 0 or 1.")
    if len(reading.prob or ()) > 1 and not reading.multiclass:
        raise InputError("a monitor watches one model: give `y_prob` once.", argument="y_prob")
    sources = Source.of(files, reading).each()
    paths = [path for source in sources for path in source.all_paths]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} belongs to two of the files, folders or globs in the command.")
    if state is None:
        looks = list(_looks(cal.Monitor(level=level), sources, batch))
    else:
        path = target(state, (".json",), "the state of a monitor", paths)
        with cal.Monitor.shared(path, level=level) as watching:
            looks = list(_looks(watching, sources, batch))
    if json:
        show_json([{"batch": name, **look.to_dict()} for name, look in looks])
    else:
        _show(looks)
    alarm = looks[-1][1].alarm
    if alarm is None:
        note(f"No alarm at level {level:g}, however often one looks.")
    else:
        note(f"ALARM at look {alarm.look}: {alarm}.")
        if fail_on_alarm:
            raise typer.Exit(LIMIT_EXCEEDED)


def _looks(
    watching: Any, sources: Sequence[Source], batch: str | None
) -> Iterator[tuple[str, Any]]:
    """Name of each batch, and what the monitor found with it."""
    from calibrant.cli._inputs import read_samples

    for source in sources:
        samples = read_samples(source, Grouping(by=[batch] if batch else None))
        for value, rows in _batches(samples, batch):
            name, before = shown(value) if batch else source.names[0], watching.n
            yield name, watching.update(rows, batch=_identity(source.paths[0], batch and name))
            if watching.n == before:
                note(f"{name} has been counted before, so it is not counted again.")


def _batches(samples: Samples, batch: str | None) -> Iterator[tuple[Any, Any]]:
    """The batches of a file in order, by their value: each a sketch, or sketches by class."""
    from calibrant.cli._inputs import CLASSES
    from calibrant.data.sketches import Sketches
    from calibrant.io.group_keys import sort_key

    by_batch: dict[Any, dict[Any, Any]] = {}
    classes = [name for name in samples.by if name in CLASSES]
    if len(samples.by) > len(classes) + bool(batch):
        raise InputError(
            f"a monitor takes one batch after the other; the file is grouped by {', '.join(samples.by)}.",
            hint="Name the column that tells batches apart with `--batch`.",
        )
    for key, sketch in samples.sketches.items():
        value = key[-1] if batch else None
        by_batch.setdefault(value, {})[key[0] if classes else None] = sketch
    for value in sorted(by_batch, key=lambda value: sort_key((value,))):
        own = by_batch[value]
        yield value, Sketches(own, by=classes[0]) if classes else own[None]


def _identity(file: str, group: str | None) -> str | None:
    """The file as it is now, and the group: a command that is run again counts once."""
    if not os.path.isfile(file):
        return None
    about = os.stat(file)
    return json_format.dumps([os.path.realpath(file), about.st_size, about.st_mtime_ns, group])


def _show(looks: Sequence[tuple[str, Any]]) -> None:
    """The last batches, and the one that raised the alarm."""
    first = len(looks) - MOST_SHOWN
    alarm = next((k for k, (_, look) in enumerate(looks) if look.alarm), len(looks))
    lines = [one for k, one in enumerate(looks) if k >= first or k == alarm]
    if len(lines) < len(looks):
        note(f"Showing {len(lines)} of {len(looks):,} batches; `--json` has all of them.")
    columns = {
        "batch": [name for name, _ in lines],
        "look": [f"{look.look:,}" for _, look in lines],
        "rows so far": [f"{look.n:,}" for _, look in lines],
        "e-value": [f"{look.e_value:.3g}" for _, look in lines],
        "p (any time)": [p_text(look.p_value) for _, look in lines],
        "": ["ALARM" if look.alarm else "" for _, look in lines],
    }
    show_table(columns, text=("batch", ""), styles=["bold red"] * len(lines))
    classes = looks[-1][1].groups
    if classes:
        if len(classes) > MOST_SHOWN:
            note(f"Showing {MOST_SHOWN} of {len(classes):,} classes; `--json` has all of them.")
        classes = classes[:MOST_SHOWN]
        print()
        columns = {
            "class": [shown(one.name) for one in classes],
            "rows": [f"{one.n:,}" for one in classes],
            "e-value": [f"{one.e_value:.3g}" for one in classes],
            "mean error": [f"{one.mean_error:+.3f}" for one in classes],
        }
        show_table(columns, text=("class",))
