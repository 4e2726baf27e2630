"""Files and options in, one part per model or group out, each ready for a function of the library."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.cli.columns import Chosen, choose
from calibrant.cli.opening import kind_of, opened
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.table import LONGEST_NAME
from calibrant.cli.text import count, in_command_words, in_file, note, shown
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.read.find_files import DataFile

__all__ = [
    "Given",
    "Part",
    "given",
    "groups_of",
    "limited",
    "short_path",
    "short_paths",
    "sketch_parts",
    "spoken",
]

Group = Mapping[str, Any]
Key = tuple[tuple[str, Any], ...]
FILE = "file"
QUERY_COLUMNS = {"cell", "label", "count", "offset", "nodes"}


@dataclass(frozen=True)
class Part:
    """The rows of one group: a Sketch, Pairs or two arrays, and the keywords that read them."""

    group: Group
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    n: int

    @property
    def name(self) -> str:
        """The group's values, for people."""
        return ", ".join(shown(value) for value in self.group.values()) or "all rows"

    def sketch(self, scale: str) -> Sketch:
        """The rows as a sketch."""
        options = {name: value for name, value in self.options.items() if name != "cluster"}
        return as_sketch(*self.arguments, scale=scale, **options)


@dataclass(frozen=True)
class Given:
    """All parts, what was read, and how many groups the last part sums up."""

    parts: list[Part]
    files: list[str]
    columns: Chosen | None = None
    log: Mapping[str, Any] | None = None
    summed_up: int = 0

    @property
    def names(self) -> list[str]:
        """A name for each part that no other has."""
        seen: dict[str, int] = {}
        names = []
        for part in self.parts:
            seen[part.name] = seen.get(part.name, 0) + 1
            names.append(part.name if seen[part.name] == 1 else f"{part.name} ({seen[part.name]})")
        return names

    def values(self, name: str) -> list[str]:
        """What the parts have in one column, for people; different values read differently."""
        values = [part.group[name] for part in self.parts]
        keys = [(type(value), str(value)) for value in values]
        texts: dict[tuple[type, str], str] = {}
        seen: dict[str, int] = {}
        for key, value in zip(keys, values, strict=True):
            if key not in texts:
                text = shown(value, LONGEST_NAME)
                seen[text] = seen.get(text, 0) + 1
                texts[key] = text if seen[text] == 1 else f"{text} ({seen[text]})"
        return [texts[key] for key in keys]

    @property
    def by(self) -> list[str]:
        """Names of what tells the parts apart."""
        return list(self.parts[0].group)


def given(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    *,
    checkpoint: str | None = None,
) -> Given:
    """Read what the command names, every group of it."""
    paths = opened(files)
    kinds = {kind_of(path, log=reading.log) for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"files of one command must be of one kind; these are {' and '.join(sorted(kinds))}. Turn "
            "rows into sketches first, with `calibrant scan`."
        )
    kind = kinds.pop()
    if reading.filter is not None and kind != "log":
        raise InputError(
            "`--filter` chooses among the answer filters of an lm-eval log, and this is none; leave it "
            "out, or say `--log lm-eval`."
        )
    if kind == "sketch":
        from calibrant.cli.saved import given_sketches

        return given_sketches(paths, reading, grouping, measuring)
    if kind == "log":
        from calibrant.cli.answers import given_answers

        return given_answers(paths, reading, grouping, measuring)
    return _from_rows(paths, reading, grouping, measuring, checkpoint)


@contextmanager
def spoken(columns: Mapping[str, str | None]) -> Iterator[None]:
    """Errors of the library in the words of the command line."""
    try:
        yield
    except InputError as error:
        raise InputError(in_command_words(str(error), columns)) from error


def groups_of(sketches: Sketch | Sketches) -> dict[Key, Sketch]:
    """Sketches by (name, value) pairs of their group."""
    if isinstance(sketches, Sketch):
        return {(): sketches}
    return {
        tuple(zip(sketches.by, key if len(sketches.by) > 1 else (key,), strict=True)): sketch
        for key, sketch in sketches.items()
    }


def _from_rows(
    paths: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    checkpoint: str | None,
) -> Given:
    from calibrant.cli.rows import columns_of
    from calibrant.read.find_files import find_files

    files = find_files(paths, besides=checkpoint)
    where = short_path(files[0].path)
    present = columns_of(files[0])
    short = [short_path(path) for path in paths]
    if {name.lower() for name in present} >= QUERY_COLUMNS and not reading.prob:
        return Given(_query_parts(files, present, reading), short)
    chosen = choose(present, where, reading, grouping, measuring)
    once = len(chosen.prob) == 1 and not grouping.per_file
    by_rows = reading.converts or chosen.cluster is not None
    by_rows |= reading.has_form and measuring.scale != "probability"
    if checkpoint is not None and (by_rows or not once):
        raise InputError(
            "`--checkpoint` goes with one plain pass over the files: leave it out, or `--per-file`, a "
            "second `--prob`, `--cluster`, and whatever converts labels or predictions."
        )
    if by_rows:
        from calibrant.cli.converting import converted_parts

        with spoken(chosen.spoken):
            parts = converted_parts(files, chosen, reading, grouping)
        return Given(parts, short, chosen)
    from calibrant.read.scan import scan

    found: dict[Key, Sketch] = {}
    each = [[file.path] for file in files] if grouping.per_file else [paths]
    named = short_paths([file.path for file in files]) if grouping.per_file else [""]
    for prob in chosen.prob:
        for piece, name in zip(each, named, strict=True):
            with (
                spoken({**chosen.spoken, "y_prob": prob}),
                _explained(files, chosen, prob, reading),
            ):
                sketches = scan(
                    piece,
                    y_true=chosen.label,
                    y_prob=prob,
                    sample_weight=chosen.weight,
                    by=list(chosen.by) or None,
                    scale=measuring.scale,
                    from_logits=reading.from_logits,
                    percent=reading.percent,
                    on_invalid=reading.on_invalid,
                    checkpoint=checkpoint,
                )
            extra: Key = (("model", prob),) if len(chosen.prob) > 1 else ()
            extra += ((FILE, name),) if grouping.per_file else ()
            found |= {(*extra, *group): sketch for group, sketch in groups_of(sketches).items()}
    return Given(sketch_parts(found), short, chosen)


def _query_parts(files: Sequence[DataFile], present: list[str], reading: Reading) -> list[Part]:
    """What `calibrant sql` asked a warehouse for, saved as a file."""
    from calibrant.cli.rows import read_rows
    from calibrant.read.sql import read

    note("Reading the result of a query that `calibrant sql` wrote.")
    return sketch_parts(groups_of(read(read_rows(files, present), on_invalid=reading.on_invalid)))


@contextmanager
def _explained(
    files: Sequence[DataFile], chosen: Chosen, prob: str, reading: Reading
) -> Iterator[None]:
    """Where a scan counts rows that break a rule, name the first of them, and its cure."""
    try:
        yield
    except InputError as error:
        if "must hold numbers; it has" in str(error) and files[0].format == "jsonl":
            raise InputError(
                f"{error} Answers of a language model, with what it said of its confidence, are read "
                "with `--log jsonl`."
            ) from error
        if f"column {prob!r} must hold numbers; it has" in str(error) and "`" not in str(error):
            raise InputError(f"{error} `--on-invalid drop` leaves out such rows.") from error
        if "must hold numbers; its type is list" in str(error):
            words = str(error).replace("Convert it first.", "").rstrip()
            raise InputError(
                f"{words} Lists of class probabilities are read with `--multiclass`."
            ) from error
        counted = "rows break this" in str(error)
        if not counted and f"column {chosen.label!r}" not in str(error):
            raise
        from calibrant.cli.rows import read_rows
        from calibrant.data.pairs import FormWarning, as_pairs

        weight = [chosen.weight] if chosen.weight is not None else []
        names = short_paths([file.path for file in files])
        for file, name in zip(files, names, strict=True):
            rows = read_rows([file], [prob, chosen.label, *weight], numbers=[prob, *weight])
            sample_weight = rows[chosen.weight] if chosen.weight is not None else None
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FormWarning)
                    as_pairs(
                        rows[chosen.label],
                        rows[prob],
                        sample_weight=sample_weight,
                        from_logits=reading.from_logits,
                        percent=reading.percent,
                    ).require_valid()
            except InputError as first:
                sizes = dict.fromkeys(names, 0) | {name: rows[prob].size}
                words = in_file(str(first), sizes)
                broken = str(error).partition("; ")[2].partition(". ")[0]
                raise InputError(f"{words} In all, {broken}." if counted else words) from first
        raise


def sketch_parts(found: Mapping[Any, Sketch]) -> list[Part]:
    """A part for each sketch that has rows."""
    parts = [Part(dict(group), (s,), {}, s.n) for group, s in found.items() if s.n]
    if not parts:
        raise InputError("no valid rows are left: all of them were dropped.")
    if len(parts) < len(found):
        note(f"Left out {count(len(found) - len(parts), 'group')} without a valid row.")
    return parts


def limited(found: Given, limit: int, scale: str) -> Given:
    """The largest groups, and the others summed up in one more part."""
    if len(found.parts) <= limit + 1:
        return found
    ranked = sorted(found.parts, key=lambda part: -part.n)
    others = ranked[limit:]
    names = found.by
    group = {names[0]: f"({len(others):,} others)"} | dict.fromkeys(names[1:], "")
    pooled = _pooled(group, others, scale)
    note(
        f"There are {len(found.parts):,} groups; the {limit} largest are shown and the others summed "
        "up. `--max-groups` shows more."
    )
    parts = [*ranked[:limit], pooled]
    return Given(parts, found.files, found.columns, found.log, len(others))


def _pooled(group: Group, parts: Sequence[Part], scale: str) -> Part:
    """All rows of the parts; where they depend on each other they stay rows, else sketches add up."""
    if not any("cluster" in part.options for part in parts):
        apart = {place: part.sketch(scale) for place, part in enumerate(parts)}
        total = Sketches(apart, by="place").total()
        return Part(group, (total,), {}, total.n)
    if any(len(part.arguments) != 2 for part in parts):
        raise InputError(
            "groups of classes with `--cluster` cannot be summed up; show them all with `--max-groups`."
        )
    y_true, y_prob = (np.concatenate([part.arguments[k] for part in parts]) for k in range(2))
    options = dict(parts[0].options)
    for name in ("cluster", "sample_weight"):
        if name in options:
            options[name] = np.concatenate([part.options[name] for part in parts])
    return Part(group, (y_true, y_prob), options, int(y_true.size))


def short_paths(paths: Sequence[str]) -> list[str]:
    """A name for each file that no other has: the last part of its path, or all of it.

    Examples
    --------
    >>> short_paths(["runs/a.csv", "runs/b.csv"]), short_paths(["1/a.csv", "2/a.csv"])
    (['a.csv', 'b.csv'], ['1/a.csv', '2/a.csv'])
    """
    short = [short_path(path) for path in paths]
    return short if len(set(short)) == len(paths) else list(paths)


def short_path(path: str) -> str:
    """The last part of a path, for people."""
    return os.path.basename(path.rstrip("/")) or path
