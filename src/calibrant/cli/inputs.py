"""What a command names, read: files of rows, sketches or logs in, sketches out."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant.cli.columns import Chosen, choose, require_column
from calibrant.cli.errors import read_from
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.output import (
    SPOOL,
    STANDARD_INPUT,
    count,
    note,
    printable,
    quoted,
    short_path,
    spooled,
)
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, MergeError, Option, TooFewRows

if TYPE_CHECKING:
    from calibrant.read.answers import Answers

__all__ = ["Kind", "Loaded", "abstained_of", "kind_of", "load_sketches", "opened"]

Kind = Literal["rows", "sketch", "log"]
SKETCH_MARK = b'"calibrant.sketch"'
QUERY_COLUMNS = {"cell", "label", "count", "offset", "nodes"}
QUESTION = "question"


@dataclass(frozen=True)
class Loaded:
    """What was read: a sketch, or sketches by group, and by cluster where there is one."""

    sketches: Sketch | Sketches
    files: list[str]
    columns: Chosen | None = None
    log: Mapping[str, Any] | None = None
    cluster: str | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """Names of what tells groups apart."""
        names = self.sketches.by if isinstance(self.sketches, Sketches) else ()
        return tuple(name for name in names if name != self.cluster)

    def groups(self) -> dict[tuple[Any, ...], Sketch]:
        """The sketch of each group by its values, clusters added up."""
        if isinstance(self.sketches, Sketch):
            return {(): self.sketches}
        if not self.by:
            return {(): self.sketches.total()}
        rolled = self.sketches.roll_up(*self.by) if self.cluster else self.sketches
        return {key if len(self.by) > 1 else (key,): one for key, one in rolled.items()}


def abstained_of(loaded: Loaded) -> int:
    """Abstentions in a log, where they are not those of several groups."""
    if loaded.log is None or loaded.by:
        return 0
    return int(loaded.log["abstained"])


def load_sketches(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    *,
    checkpoint: str | None = None,
) -> Loaded:
    """Read what the command names, every group of it."""
    paths = opened(files)
    kinds = {kind_of(path, log=reading.log) for path in paths}
    if len(kinds) > 1:
        raise InputError(
            "files of one command must be of one kind",
            seen=sorted(kinds),
            saying="these are {kinds}",
            kinds=" and ".join(sorted(kinds)),
            cure="Turn rows into sketches first, with `calibrant scan`.",
        )
    kind = kinds.pop()
    if reading.filter is not None and kind != "log":
        raise InputError(
            "chooses among the answer filters of an lm-eval log, and this is none",
            argument="filter",
            cure="Leave it out, or say `--log lm-eval`.",
        )
    if reading.form is not None and kind != "log":
        raise InputError(
            "says how a log writes confidence, and this is none",
            argument="form",
            cure="Leave it out, or say `--log jsonl`.",
        )
    if kind == "sketch":
        loaded = _from_sketches(paths, reading, grouping, measuring)
    elif kind == "log":
        loaded = _from_log(paths, reading, grouping, measuring)
    else:
        loaded = _from_rows(paths, reading, grouping, measuring, checkpoint)
    return _with_rows(loaded)


def _with_rows(loaded: Loaded) -> Loaded:
    """Without groups that have no valid row, of which it is said how many there are."""
    sketches = loaded.sketches
    if isinstance(sketches, Sketch):
        if not sketches.n:
            raise TooFewRows("no valid rows are left: all of them were dropped", sketches.dropped)
        return loaded
    empty = [key for key, sketch in loaded.groups().items() if not sketch.n]
    if len(empty) == len(loaded.groups()):
        raise TooFewRows("no valid rows are left: all of them were dropped")
    if empty:
        note(f"Left out {count(len(empty), 'group')} without a valid row.")
    filled = {key: sketch for key, sketch in sketches.items() if sketch.n}
    return Loaded(
        Sketches(filled, by=sketches.by), loaded.files, loaded.columns, loaded.log, loaded.cluster
    )


def _from_rows(
    paths: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    checkpoint: str | None,
) -> Loaded:
    from calibrant.read.find_files import find_files
    from calibrant.read.rows import columns_of
    from calibrant.read.scan import scan

    files = find_files(paths, besides=checkpoint, separator=reading.sep)
    present = columns_of(files[0])
    names = [short_path(path) for path in paths]
    if {name.lower() for name in present} >= QUERY_COLUMNS and not reading.prob:
        return Loaded(_query_result(paths, present, reading), names)
    delimiter = files[0].delimiter if files[0].format == "csv" else ","
    if delimiter != "," and not reading.sep and not files[0].path.lower().endswith(".tsv"):
        note(f"Reading fields separated by {'tabs' if delimiter == chr(9) else quoted(delimiter)}.")
    chosen = choose(present, short_path(files[0].path), reading, grouping, measuring)
    read_from(chosen.spoken)
    several = len(chosen.prob) > 1 or reading.multiclass is not None
    options = reading.options | ({"per_file": True} if grouping.per_file else {})
    sketches = scan(
        paths,
        y_true=chosen.label,
        y_prob=list(chosen.prob) if several else chosen.prob[0],
        by=list(chosen.by) or None,
        cluster=chosen.cluster,
        scale=measuring.scale,
        checkpoint=checkpoint,
        **options,
    )
    return Loaded(sketches, names, chosen, cluster=chosen.cluster)


def _query_result(
    paths: Sequence[str], present: Sequence[str], reading: Reading
) -> Sketch | Sketches:
    """What `calibrant sql` asked a warehouse for, saved as a file."""
    from calibrant.read.find_files import find_files
    from calibrant.read.rows import read_table
    from calibrant.read.sql import read

    note("Reading the result of a query that `calibrant sql` wrote.")
    table = read_table(find_files(list(paths)))
    columns = {name: table[name].to_pylist() for name in present}
    return read(columns, on_invalid=reading.on_invalid)


def _from_sketches(
    paths: list[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> Loaded:
    """Sketches that were saved, rolled up to the groups that are wanted, and added up."""
    from calibrant.data.wire import load

    if reading != Reading() or measuring.cluster is not None:
        raise InputError(
            "a sketch already holds predictions, outcomes and weights",
            cure="Leave out the options that say how to read rows.",
        )
    names = _file_names(paths)
    groupings: dict[tuple[str, ...], str] = {}
    total: dict[Any, Sketch] = {}
    for path, name in zip(paths, names, strict=True):
        sketches = _rolled_up(load(path), path, grouping.columns)
        by = sketches.by if isinstance(sketches, Sketches) else ()
        groupings.setdefault(by, path)
        if len(groupings) > 1:
            raise _different_groups(groupings)
        for key, sketch in _by_tuple(sketches).items():
            place = (name, *key) if grouping.per_file else key
            try:
                total[place] = total[place] + sketch if place in total else sketch
            except MergeError as error:
                raise InputError(
                    "sketches add up on one scale and one grid; {file} has another than those before",
                    file=printable(path, 200),
                    cure="Scan the rows again with the same {scale}.",
                    scale=Option("scale"),
                ) from error
    by = (("file",) if grouping.per_file else ()) + next(iter(groupings))
    if not by:
        return Loaded(total[()], names)
    plain = {key if len(by) > 1 else key[0]: sketch for key, sketch in total.items()}
    return Loaded(Sketches(plain, by=by), names)


def _by_tuple(sketches: Sketch | Sketches) -> dict[tuple[Any, ...], Sketch]:
    if isinstance(sketches, Sketch):
        return {(): sketches}
    single = len(sketches.by) == 1
    return {(key,) if single else key: sketch for key, sketch in sketches.items()}


def _file_names(paths: Sequence[str]) -> list[str]:
    short = [short_path(path) for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _rolled_up(sketches: Sketch | Sketches, path: str, columns: Sequence[str]) -> Sketch | Sketches:
    """The sketches by these columns alone, or as they are."""
    if not columns:
        return sketches
    present = sketches.by if isinstance(sketches, Sketches) else ()
    if not set(columns) <= set(present):
        raise InputError(
            "chooses among the columns that a sketch is grouped by",
            argument="by",
            seen=list(columns),
            saying="{file} is {groups}",
            file=printable(path, 200),
            groups=_grouped(present),
            cure="Scan the rows again with {by}.",
            by=Option("by", ",".join(map(printable, columns))),
        )
    assert isinstance(sketches, Sketches)
    return sketches.roll_up(*columns)


def _grouped(by: Sequence[str]) -> str:
    return f"grouped by {', '.join(map(printable, by))}" if by else "without groups"


def _different_groups(groupings: Mapping[tuple[str, ...], str]) -> InputError:
    """The error for sketches whose groups do not mean the same."""
    common = [name for name in next(iter(groupings)) if all(name in by for by in groupings)]
    return InputError(
        "sketches add up where they are grouped by the same columns",
        seen=[list(by) for by in groupings],
        saying="{each}",
        each="; ".join(
            f"{printable(path, 200)} is {_grouped(by)}" for by, path in groupings.items()
        ),
        cure="Keep what they have in common with {by}."
        if common
        else "Scan the rows again, with the same groups.",
        by=Option("by", ",".join(map(printable, common))),
    )


def _from_log(
    paths: Sequence[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> Loaded:
    """The answers of such logs; those to one question are a cluster."""
    from calibrant.read.scan import scan

    logs = _read_logs(paths, reading, measuring)
    columns: dict[str, Any] = {
        name: np.concatenate([log.groups[name] for log in logs])
        for name in logs[0].groups
        if all(name in log.groups for log in logs)
    }
    columns["file"] = np.repeat([short_path(path) for path in paths], [log.n for log in logs])
    by = (["file"] if grouping.per_file else []) + grouping.columns
    for name in by:
        require_column(name, list(columns), paths[0])
    rows = {f"{QUESTION} ": np.concatenate([log.cluster for log in logs])}
    rows |= {"y_true": np.concatenate([log.y_true for log in logs])}
    rows |= {"y_prob": np.concatenate([log.y_prob for log in logs])}
    options = {name: v for name, v in reading.options.items() if name in ("labels", "on_invalid")}
    sketches = scan(
        rows | {f"by {name}": columns[name] for name in by},
        y_true="y_true",
        y_prob="y_prob",
        by={name: f"by {name}" for name in by} or None,
        cluster={QUESTION: f"{QUESTION} "},
        scale=measuring.scale,
        **options,
    )
    about = {
        "probability": [log.probability for log in logs],
        "abstained": sum(log.abstained for log in logs),
        "without_confidence": sum(log.without_confidence for log in logs),
        "unreadable": sum(log.unreadable for log in logs),
        "questions": sum(log.questions for log in logs),
    }
    return Loaded(sketches, list(paths), log=about, cluster=QUESTION)


def _read_logs(paths: Sequence[str], reading: Reading, measuring: Measuring) -> list[Answers]:
    """The logs, and a line on each; refuses options that a log has no use for."""
    from calibrant.read.answers import read_answers

    if reading.prob is not None and len(reading.prob) > 1:
        raise InputError("a log has one probability for each answer", cure="Give `--prob` once.")
    if reading.percent and reading.form is not None:
        raise InputError("says it already", argument="form", cure="Leave out `--percent`.")
    for name in ("from_logits", "from_logprobs", "pos_label", "multiclass", "sep"):
        if getattr(reading, name):
            raise InputError(
                "a log says itself how its values are written",
                cure="Leave out {option}.",
                option=Option(name),
            )
    logs = [
        read_answers(
            path,
            format=reading.log,
            probability=reading.prob[0] if reading.prob else None,
            correct=reading.label,
            question=measuring.cluster,
            filter=reading.filter,
            form=reading.form or ("percent" if reading.percent else "probability"),
            on_invalid=reading.on_invalid,
        )
        for path in paths
    ]
    for path, log in zip(paths, logs, strict=True):
        note(
            f"{printable(path, 200)}: {count(log.n, 'answer')} to {count(log.questions, 'question')}, "
            f"{count(log.abstained, 'abstention')}. Probability: {log.probability}."
        )
        for number, what in (
            (log.without_confidence, "without a confidence"),
            (log.unreadable, "with one that cannot be read"),
            (log.unscored, "that nobody scored"),
        ):
            if number:
                note(f"{printable(path, 200)}: {count(number, 'answer')} {what}.")
        if log.has_partial_credit and reading.outcomes != "soft":
            raise InputError(
                "{file} gives partial credit, and an outcome is 0 or 1",
                file=printable(path, 200),
                cure="To read it as a share, pass {soft}.",
                soft=Option("labels", "soft"),
            )
    return logs


def opened(names: Sequence[str]) -> list[str]:
    """The paths, with standard input in a file of its own that is removed at the end."""
    if list(names).count("-") > 1:
        raise InputError("standard input can be read once; - stands twice in the command")
    places: set[str] = set()
    for name in names:
        place = name if "://" in name else os.path.normcase(os.path.abspath(name))
        if place in places:
            raise InputError(
                "a file is read once; {file} stands twice in the command", file=quoted(name, 200)
            )
        places.add(place)
    return [_spooled() if name == "-" else name for name in names]


def kind_of(path: str, *, log: str | None) -> Kind:
    """Whether a path is a sketch, a log of an evaluation, or anything that holds rows."""
    if log is not None:
        return "log"
    if not os.path.isfile(path):
        return "rows"
    if path.endswith(".json"):
        with open(path, "rb") as file:
            if SKETCH_MARK in file.read(4096):
                return "sketch"
    elif path.endswith(".parquet"):
        with open(path, "rb") as file:
            file.seek(-min(os.path.getsize(path), 1 << 16), os.SEEK_END)
            return "sketch" if SKETCH_MARK in file.read() else "rows"
    if path.removesuffix(".gz").endswith((".json", ".jsonl", ".ndjson", ".eval")):
        from calibrant.read.answers.reading import log_format

        return "log" if log_format(path) else "rows"
    return "rows"


def _spooled() -> str:
    if sys.stdin.isatty():
        raise InputError("- stands for standard input, and nothing is piped into it")
    folder = tempfile.mkdtemp(prefix=SPOOL)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, STANDARD_INPUT)
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    named = path + _ending(path)
    os.rename(path, named)
    spooled[named] = STANDARD_INPUT
    return named


def _ending(path: str) -> str:
    """The ending that says what the bytes are."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head:
        raise InputError("standard input must not be empty; nothing came")
    if head.startswith(b"PAR1"):
        return ".parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file, or a stream
        return ".arrow"
    if SKETCH_MARK in head:
        return ".json"
    if head.startswith(b"\x1f\x8b"):
        raise InputError(
            "standard input is compressed", cure="Unpack it first, as with `gzip -dc`."
        )
    if head.lstrip().startswith(b"{"):
        return ".jsonl"
    first = head.split(b"\n", 1)[0]
    return ".tsv" if b"\t" in first and b"," not in first else ".csv"
