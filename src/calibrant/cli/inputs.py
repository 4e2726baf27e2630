"""What a command names, read: files of rows, sketches or logs in, sketches out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from calibrant.cli.columns import Chosen, choose
from calibrant.cli.errors import read_from
from calibrant.cli.group_rows import GroupRows
from calibrant.cli.logs import QUESTION, answers_of_logs, sketches_of_answers
from calibrant.cli.output import count, note, printable, quoted, short_path, shown, without_spool
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.standard_input import SKETCH_MARK, opened
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, MergeError, Option, TooFewRows

__all__ = ["Kind", "Loaded", "kind_of", "load_sketches", "refuse_options_of_logs"]

Kind = Literal["rows", "sketch", "log"]
OF_LOGS = {
    "filter": ("chooses among the answer filters of an lm-eval log", "lm-eval"),
    "form": ("says how a log writes confidence", "jsonl"),
    "words": ("says what the words of a log stand for", "jsonl"),
    "score_range": ("says how the judge of a log scores", "jsonl"),
}
QUERY_COLUMNS = {"cell", "label", "count", "offset", "nodes"}


@dataclass(frozen=True)
class Loaded:
    """What was read: a sketch, or sketches by group, and by cluster where there is one.

    Of logs the answers are held themselves: a sketch for each question would be many times their size.
    """

    sketches: Sketch | Sketches
    files: list[str]
    columns: Chosen | None = None
    log: Mapping[str, Any] | None = None
    cluster: str | None = None
    abstained: Mapping[tuple[Any, ...], int] = field(default_factory=dict)
    answers: GroupRows | None = None

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
        apart = self.cluster in self.sketches.by
        rolled = self.sketches.roll_up(*self.by) if apart else self.sketches
        return {key if len(self.by) > 1 else (key,): one for key, one in rolled.items()}


def load_sketches(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    *,
    checkpoint: str | None = None,
    keeping_empty: bool = False,
) -> Loaded:
    """Read what the command names, every group of it; those without a valid row, where they are kept."""
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
    if kind != "log":
        refuse_options_of_logs(reading)
    if kind == "sketch":
        loaded = _from_sketches(paths, reading, grouping, measuring)
    elif kind == "log":
        answers, about, abstained = answers_of_logs(paths, reading, grouping, measuring)
        sketches = sketches_of_answers(answers, scale=measuring.scale, by_question=False)
        cluster = None if answers.cluster is None else QUESTION
        names = [without_spool(path) for path in paths]
        loaded = Loaded(sketches, names, None, about, cluster, abstained, answers)
        for key in abstained.keys() - loaded.groups().keys():
            name = ", ".join(map(shown, key))
            note(f"Left out {name}: {count(abstained[key], 'abstention')} and no answer.")
    else:
        loaded = _from_rows(paths, reading, grouping, measuring, checkpoint)
    return _with_rows(loaded, keeping_empty)


def refuse_options_of_logs(reading: Reading) -> None:
    """Refuse what only logs have, where rows are read."""
    for name, (what, log) in OF_LOGS.items():
        if getattr(reading, name) is not None:
            raise InputError(
                "{what}, and this is none",
                argument=name,
                what=what,
                cure="Leave it out, or say {log}.",
                log=Option("format", log),
            )


def _with_rows(loaded: Loaded, keeping_empty: bool) -> Loaded:
    """Without groups that have no valid row, of which it is said how many there are, unless they are kept."""
    sketches = loaded.sketches
    if isinstance(sketches, Sketch):
        if not sketches.n:
            raise TooFewRows(
                "no valid rows are left: all of them were dropped",
                sketches.dropped,
                cure="Leave out {drop} to see what is wrong with the first.",
                drop=Option("on_invalid", "drop"),
            )
        return loaded
    empty = [key for key, sketch in loaded.groups().items() if not sketch.n]
    if len(empty) == len(loaded.groups()):
        raise TooFewRows(
            "no valid rows are left: all of them were dropped",
            cure="Leave out {drop} to see what is wrong with the first.",
            drop=Option("on_invalid", "drop"),
        )
    if keeping_empty:
        return loaded
    if empty:
        note(f"Left out {count(len(empty), 'group')} without a valid row.")
    if np.all(sketches.stacked().rows):
        return loaded
    filled = {key: sketch for key, sketch in sketches.items() if sketch.n}
    return replace(loaded, sketches=Sketches(filled, by=sketches.by))


def _from_rows(
    paths: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    checkpoint: str | None,
) -> Loaded:
    from calibrant.io.find_files import find_files
    from calibrant.io.scan import scan
    from calibrant.io.tables import columns_of

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
    from calibrant.io.find_files import find_files
    from calibrant.io.sql import read
    from calibrant.io.tables import read_table

    note("Reading the result of a query that `calibrant sql` wrote.")
    table = read_table(find_files(list(paths)))
    columns = {name: table[name].to_pylist() for name in present}
    return read(columns, on_invalid=reading.on_invalid)


def _from_sketches(
    paths: list[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> Loaded:
    """Sketches that were saved, rolled up to the groups that are wanted, and added up."""
    from calibrant.data.sketch_file import load

    if reading != Reading():
        raise InputError(
            "a sketch already holds predictions, outcomes and weights",
            cure="Leave out the options that say how to read rows.",
        )
    names = _file_names(paths)
    groupings: dict[tuple[str, ...], str] = {}
    total: dict[Any, Sketch] = {}
    for path, name in zip(paths, names, strict=True):
        sketches = _rolled_up(load(path), path, grouping.columns, measuring.cluster)
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
    return Loaded(Sketches(plain, by=by), names, cluster=measuring.cluster)


def _by_tuple(sketches: Sketch | Sketches) -> dict[tuple[Any, ...], Sketch]:
    if isinstance(sketches, Sketch):
        return {(): sketches}
    single = len(sketches.by) == 1
    return {(key,) if single else key: sketch for key, sketch in sketches.items()}


def _file_names(paths: Sequence[str]) -> list[str]:
    short = [short_path(path) for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _rolled_up(
    sketches: Sketch | Sketches, path: str, columns: Sequence[str], cluster: str | None = None
) -> Sketch | Sketches:
    """The sketches by these columns alone, and by cluster where there is one; or as they are."""
    present = sketches.by if isinstance(sketches, Sketches) else ()
    wanted = list(dict.fromkeys([*columns, *([] if cluster is None else [cluster])]))
    by_cluster = set(columns) <= set(present)
    if not set(wanted) <= set(present):
        raise InputError(
            "chooses among the columns that a sketch is grouped by",
            argument="cluster" if by_cluster else "by",
            seen=cluster if by_cluster else list(columns),
            saying="{file} is {groups}",
            file=printable(path, 200),
            groups=_grouped(present),
            cure="Scan the rows again with {by}.",
            by=Option("by", ",".join(map(printable, wanted))),
        )
    if not columns:
        return sketches
    assert isinstance(sketches, Sketches)
    return sketches.roll_up(*wanted)


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
        from calibrant.io.answers.reading import log_format

        return "log" if log_format(path) else "rows"
    return "rows"
