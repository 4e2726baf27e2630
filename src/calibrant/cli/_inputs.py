"""Files that a command names, listed once: their columns, and samples of rows, sketches or logs by group."""

from __future__ import annotations

import atexit
import fnmatch
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from calibrant._arguments import require_choice
from calibrant.cli.errors import COLUMN_OF
from calibrant.cli.options import Grouping, Measuring, Reading, as_numbers
from calibrant.cli.output import LONGEST_PATH, STANDARD_INPUT, count, note, printable, shown
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, MergeError, TooFewRows
from calibrant.io.request import require_columns

if TYPE_CHECKING:
    from calibrant.io.answers import Answers
    from calibrant.io.files import DataFile

__all__ = [
    "CLASSES",
    "RECALIBRATED",
    "Arrays",
    "Columns",
    "Source",
    "read_arrays",
    "read_samples",
]

CLASSES = ("class", "predicted")
"""Names of the groups that `--multiclass classwise` and `top-label` make."""
RECALIBRATED = "_recalibrated"
"""Ending of the columns that `recalibrate --apply` adds."""
QUESTION = "question"
"""Name of the clusters of a log."""
SKETCH_MARK = b'"calibrant.sketch"'
LOG_ENDINGS = (".json", ".jsonl", ".ndjson", ".eval")
QUERY_COLUMNS = {"cell", "label", "count", "offset", "nodes"}
OBVIOUS = {
    "y_prob": r"((y_|pred_|predicted_)?(p|probs?|proba|probability|score)|[yp]_?hat|conf(idence)?)",
    "y_true": r"(y(_true)?|labels?|target|(is_)?correct|outcome|(ground_)?truth|actual|observed)",
}
"""Names that say which column is meant."""
CLASS_COLUMN = re.compile(r"(p|probs?|proba|probability|class|logits?)[_.\- ]?(?=.)", re.IGNORECASE)
Key = tuple[Any, ...]
Kind = Literal["rows", "sketch", "log"]


@dataclass(frozen=True)
class Source:
    """Files of one kind, and how they are read."""

    reading: Reading
    paths: list[str]
    kind: Kind
    found: list[DataFile] | None = None
    """A lone file, which was opened to see what it holds."""

    @classmethod
    def of(cls, words: Sequence[str], reading: Reading) -> Source:
        """The files that the words of the command name, `-` being standard input."""
        places = [word if "://" in word else os.path.abspath(word) for word in words]
        twice = next((word for k, word in enumerate(words) if places[k] in places[:k]), None)
        if twice is not None:
            raise InputError(f"{_name(twice)!r} stands twice in the command.")
        paths = [_kept_standard_input() if word == "-" else word for word in words]
        found = [("log", None) if reading.log else _kind_of(path, reading.sep) for path in paths]
        kinds = sorted({kind for kind, _ in found})
        if len(kinds) > 1:
            raise InputError(f"files must be of one kind; these are {' and '.join(kinds)}.")
        source = cls(reading, paths, kinds[0], found[0][1] if len(paths) == 1 else None)
        if source.kind == "sketch" and reading != Reading():
            raise InputError("a sketch was read already; leave out options on reading rows.")
        of_logs = ("filter", "form", "words", "score_range")
        of_rows = ("from_logits", "from_logprobs", "pos_label", "multiclass", "sep", "weight")
        foreign, other = (of_rows, "rows") if source.kind == "log" else (of_logs, "logs")
        given = next((name for name in foreign if getattr(reading, name)), None)
        if given is not None:
            raise InputError(f"`{given}` is for {other}.")
        return source

    @cached_property
    def files(self) -> list[DataFile]:
        """Files of rows: those that paths, globs and folders hold."""
        from calibrant.io.files import find_files

        return self.found or find_files(self.paths, separator=self.reading.sep)

    @property
    def all_paths(self) -> list[str]:
        """Paths of everything that is read."""
        return [file.path for file in self.files] if self.kind == "rows" else self.paths

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns of the first file of rows."""
        from calibrant.io.rows import columns_of

        return columns_of(self.files[0])

    def each(self) -> list[Source]:
        """The words of the command one by one."""
        one_by_one = (replace(self, paths=[path], found=None) for path in self.paths)
        return [self] if len(self.paths) == 1 else list(one_by_one)

    @property
    def names(self) -> list[str]:
        """Short names of the words of the command, all different."""
        short = [os.path.basename(_name(path).rstrip("/")) or path for path in self.paths]
        return short if len(set(short)) == len(short) else self.paths

    def require_rows(self, why: str) -> None:
        """Refuse sketches and logs, for what needs rows."""
        if self.kind != "rows":
            raise InputError(f"{why} needs rows, and {self.names[0]} holds none.")

    def table(self, names: Sequence[str | None]) -> Any:
        """Arrow table of the rows, which has the columns of these names."""
        from calibrant.io.rows import read_table

        self.require_rows("this command")
        require_columns([name for name in names if name is not None], self.columns, self.names[0])
        return read_table(self.files)

    def predictions(self, wanted: Sequence[str] | None, free: Sequence[str]) -> tuple[str, ...]:
        """Columns of predictions: those of the names or patterns, or the obvious one among `free`."""
        if wanted:
            parts = ([one] if one in self.columns else one.split(",") for one in wanted)
            each = (self._matching(pattern.strip()) for patterns in parts for pattern in patterns)
            return tuple(name for names in each for name in names)
        prob = self.obvious("y_prob", free)
        if f"{prob}{RECALIBRATED}" in self.columns:
            hint = f"Pass `y_prob={prob + RECALIBRATED}`."
            raise InputError(f"{self.names[0]} has {prob!r} as it was, too: name one.", hint=hint)
        return (prob,)

    def _matching(self, pattern: str) -> list[str]:
        if pattern in self.columns or not set(pattern) & set("*?["):
            require_columns([pattern], self.columns, self.names[0])
            return [pattern]
        names = [name for name in self.columns if fnmatch.fnmatchcase(name, pattern)]
        if not pattern.endswith(RECALIBRATED):  # what was recalibrated stands beside its source
            beside = {f"{name}{RECALIBRATED}" for name in names}
            names = [name for name in names if name not in beside]
        if not names:
            raise InputError(f"no column matches {pattern!r}; there are {_quoted(self.columns)}.")
        return names

    def obvious(self, argument: str, free: Sequence[str]) -> str:
        """The one free column whose name says so."""
        what = "predictions" if argument == "y_prob" else "outcomes"
        named = re.compile(OBVIOUS[argument], re.IGNORECASE)
        fitting = [name for name in free if named.fullmatch(name.strip())]
        if len(fitting) == 1:
            return fitting[0]
        start = class_prefix(free) if argument == "y_prob" and not fitting else ""
        hint = f"Name it with `{argument}=NAME`."
        hint += f" For classes: `--prob '{start}*' --multiclass confidence`." if start else ""
        which = f"cannot tell which column of {self.names[0]} holds the {what}"
        raise InputError(f"{which}: {_quoted(fitting or free)}.", argument=argument, hint=hint)


def _name(path: str) -> str:
    return STANDARD_INPUT.get(path, printable(path, LONGEST_PATH))


def _quoted(names: Sequence[str]) -> str:
    more = f" and {len(names) - 30:,} more" if len(names) > 30 else ""
    return (", ".join(repr(printable(name)) for name in names[:30]) or "none") + more


def class_prefix(names: Sequence[str]) -> str:
    """Beginning of three or more columns that look like the probabilities of classes.

    Examples
    --------
    >>> class_prefix(["id", "p_dog", "p_cat", "p_deer"]), class_prefix(["a", "b"])
    ('p_', '')
    """
    starts = Counter(found[0] for found in map(CLASS_COLUMN.match, names) if found)
    start, number = max(starts.items(), key=lambda pair: pair[1], default=("", 0))
    return start if number >= 3 else ""


def _kind_of(path: str, separator: str | None) -> tuple[Kind, list[DataFile] | None]:
    """Kind of the files of a path; a file of rows that was opened for that, to be read from here."""
    stem = path.removesuffix(".gz")
    if not os.path.isfile(path) or not stem.endswith((".parquet", *LOG_ENDINGS)):
        return "rows", None
    from calibrant.io.answer_logs import format_of_row, log_format
    from calibrant.io.files import find_files

    if stem.endswith((".json", ".eval")):
        with open(path, "rb") as file:
            is_sketch = SKETCH_MARK in file.read(1 << 16)
        return "sketch" if is_sketch else "log" if log_format(path) else "rows", None
    found = find_files([path], separator=separator)
    opened: Any = found[0].opened()
    if found[0].format == "jsonl":
        return ("log", None) if format_of_row(opened.sample[0]) else ("rows", found)
    about = (opened.schema.metadata or {}).get(b"calibrant", b"")
    return ("sketch", None) if SKETCH_MARK in about else ("rows", found)


def _kept_standard_input() -> str:
    """Path of a file that holds standard input until the end, with the ending of its format."""
    if sys.stdin.isatty():
        raise InputError("`-` stands for standard input, and nothing is piped into it.")
    folder = tempfile.mkdtemp(prefix="calibrant-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "standard input")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head or head.startswith(b"\x1f\x8b"):
        raise InputError(f"standard input is {'compressed' if head else 'empty'}.")
    begins = {
        b"PAR1": ".parquet",
        b"ARROW1": ".arrow",
        b"\xff\xff\xff\xff": ".arrow",
        b"{": ".jsonl",
    }
    ending = next((end for mark, end in begins.items() if head.lstrip().startswith(mark)), ".csv")
    named = path + (".json" if SKETCH_MARK in head and ending == ".jsonl" else ending)
    os.rename(path, named)
    STANDARD_INPUT[named] = "standard input"
    return named


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are read."""

    prob: tuple[str, ...]
    label: str
    weight: str | None
    by: tuple[str, ...]
    cluster: str | None

    @classmethod
    def of(cls, source: Source, grouping: Grouping, measuring: Measuring) -> Columns:
        """The columns that were named, or that are obvious by their names."""
        reading, by = source.reading, tuple(grouping.columns)
        taken = {reading.weight, measuring.cluster, *by}
        free = [name for name in source.columns if name not in taken]
        prob = source.predictions(reading.prob, free)
        label = reading.label or source.obvious("y_true", [n for n in free if n not in prob])
        named = [name for name in (label, *by, reading.weight, measuring.cluster) if name]
        require_columns(named, source.columns, source.names[0])
        if label in prob:
            raise InputError(f"column {printable(label)!r} is named for `y_prob` and `y_true`.")
        if not reading.prob or not reading.label:
            word = "column" if len(prob) == 1 else "columns"
            note(f"Reading predictions from {word} {_quoted(prob)} and outcomes from {label!r}.")
        COLUMN_OF.clear()
        COLUMN_OF["y_true"] = label
        if reading.weight:
            COLUMN_OF["sample_weight"] = reading.weight
        if len(prob) == 1:
            COLUMN_OF["y_prob"] = prob[0]
        return cls(prob, label, reading.weight, by, measuring.cluster)


@dataclass(frozen=True, eq=False)
class Arrays:
    """Rows as arrays: outcomes, weights and clusters by argument, the predictions of each model.

    `columns` stand beside them; `options` say how values are written.
    """

    values: Mapping[str, NDArray[Any]]
    y_probs: Mapping[str, NDArray[Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def at(self, rows: NDArray[np.int64]) -> Arrays:
        """Some of the rows, in an order of their own."""
        values, y_probs, columns = (
            {name: one[rows] for name, one in part.items()}
            for part in (self.values, self.y_probs, self.columns)
        )
        return Arrays(values, y_probs, self.options, columns)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the library's functions, for one model or a mapping of several."""
        several = len(self.y_probs) > 1
        y_prob = self.y_probs if several else next(iter(self.y_probs.values()))
        return {**self.values, "y_prob": y_prob, **self.options}

    def groups(self, by: Sequence[str]) -> dict[Key, NDArray[np.int64]]:
        """Rows of each group by its values, in order of appearance."""
        if not by:
            return {(): np.arange(len(self.values["y_true"]))}
        from calibrant.io.group_keys import indexed

        places, keys = indexed(zip(*(self.columns[name].tolist() for name in by), strict=True))
        return {key: np.flatnonzero(places == k) for k, key in enumerate(keys)}

    def scanned(
        self, by: Sequence[str], scale: str, cluster_name: str | None = None
    ) -> Sketch | Sketches:
        """Sketches by group, and by cluster where that has a name."""
        (y_prob,) = self.y_probs.values()
        columns = {**self.values, "y_prob": y_prob}
        columns |= {f"by {name}": self.columns[name] for name in by}
        more: dict[str, Any] = {"by": {name: f"by {name}" for name in by} or None}
        if cluster_name is not None and "cluster" in columns:
            more["cluster"] = {cluster_name: "cluster"}
        if "sample_weight" in columns:
            more["sample_weight"] = "sample_weight"
        return cal.scan(
            columns, y_true="y_true", y_prob="y_prob", scale=scale, **more, **self.options
        )


def read_arrays(
    source: Source, columns: Columns, more: Sequence[str | None] = (), *, each: bool = False
) -> Arrays:
    """Columns of files as arrays, with others beside them; with `each`, every `--prob` is a model."""
    from calibrant.io.rows import read_rows

    reading, classes = source.reading, source.reading.multiclass is not None
    models: dict[str, Any] = {name: [name] for name in columns.prob} if each else {"": columns.prob}
    if each and classes:
        models = {}
        for pattern in reading.prob or ():
            name = pattern.split("*")[0].rstrip("_.- ") or pattern
            models[pattern if name in models else name] = source.predictions([pattern], ())
    options = reading.options
    rows = read_rows(
        source.files,
        y_true=columns.label,
        y_prob=models,
        sample_weight=columns.weight,
        columns=list(dict.fromkeys(filter(None, (*columns.by, columns.cluster, *more)))),
        named_labels=reading.pos_label is not None,
        multiclass=classes,
        classes=options.pop("classes", None) if classes else None,
        on_invalid=reading.on_invalid if classes else "raise",
    )
    options |= {} if rows.classes is None else {"classes": rows.classes}
    options |= {} if classes else reading.event(rows.y_true)
    cluster = None if columns.cluster is None else rows.groups[columns.cluster]
    values = {"y_true": rows.y_true, "sample_weight": rows.sample_weight, "cluster": cluster}
    present = {name: one for name, one in values.items() if one is not None}
    return Arrays(present, rows.y_probs, options, rows.groups)


@dataclass(frozen=True, eq=False)
class Samples:
    """Content of files by group: sketches, with a further key where there are clusters, or arrays."""

    source: Source
    grouping: Grouping
    measuring: Measuring
    by: tuple[str, ...]
    content: Sketch | Sketches | Arrays
    columns: Columns | None = None
    cluster: str | None = None
    abstained: Mapping[Key, int] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """All rows, as `assess` takes them or, where there are groups, `assess_by`."""
        content = self.content
        if isinstance(content, Arrays):
            by = {name: content.columns[name] for name in self.by}
            return {**content.arguments, **({"by": by} if by else {})}
        return {"y_true": content, **({} if self.cluster is None else {"cluster": self.cluster})}

    @cached_property
    def sketches(self) -> dict[Key, Sketch]:
        """Sketch of each group by its values, clusters added up."""
        content = self.content
        if isinstance(content, Arrays):
            content = content.scanned(self.by, self.measuring.scale)
        elif content.by and self.cluster:
            content = cast(Sketches, content).roll_up(*self.by) if self.by else content.total()
        return content.groups

    @cached_property
    def groups(self) -> dict[Key, dict[str, Any]]:
        """Arguments of the library's functions for each group by its values."""
        content = self.content
        if isinstance(content, Arrays):
            groups = content.groups(self.by)
            return {key: content.at(rows).arguments for key, rows in groups.items()}
        if self.cluster is None or not content.by:
            return {key: {"y_true": sketch} for key, sketch in self.sketches.items()}
        at = content.by.index(self.cluster)
        parts: dict[Key, dict[Any, Sketch]] = {}
        for key, sketch in content.groups.items():
            parts.setdefault((*key[:at], *key[at + 1 :]), {})[key[at]] = sketch
        name = self.cluster
        return {k: {"y_true": Sketches(own, by=name), "cluster": name} for k, own in parts.items()}

    def named(self, key: Key) -> str:
        """A group for people, such as `model rf`."""
        pairs = zip(self.by, key, strict=True)
        return ", ".join(f"{printable(name)} {shown(value)}" for name, value in pairs)


def read_samples(
    source: Source,
    grouping: Grouping | None = None,
    measuring: Measuring | None = None,
    *,
    rows: Sequence[str | None] | None = None,
    checkpoint: str | None = None,
    keep_empty: bool = False,
) -> Samples:
    """Every group of the files.

    `rows` asks for arrays where the files hold rows of one prediction, with these columns beside them;
    `keep_empty` keeps groups without a valid row.
    """
    grouping, measuring = grouping or Grouping(), measuring or Measuring()
    reading, cluster, columns = source.reading, measuring.cluster, None
    asked = (source, grouping, measuring)
    if source.kind == "log":
        return _read_logs(source, grouping, measuring)
    if source.kind == "sketch":
        sketches: Any = _added_up(source, grouping, cluster)
    elif {name.lower() for name in source.columns} >= QUERY_COLUMNS and not reading.prob:
        from calibrant.io.sql import read

        cluster = None  # a query that `calibrant sql` wrote has none
        sketches = read(source.table(()), on_invalid=reading.on_invalid)
    else:
        columns = Columns.of(source, grouping, measuring)
        single = len(columns.prob) == 1 and not reading.multiclass
        if rows is not None and single and not grouping.per_file:
            arrays = read_arrays(source, columns, rows)
            return Samples(*asked, columns.by, arrays, columns, cluster)
        several = len(columns.prob) > 1 or reading.multiclass
        values = {"sample_weight": columns.weight, **reading.options}
        sketches = cal.scan(
            source.files,
            y_true=columns.label,
            y_prob=list(columns.prob) if several else columns.prob[0],
            by=list(columns.by) or None,
            cluster=cluster,
            scale=measuring.scale,
            per_file=grouping.per_file,
            checkpoint=checkpoint,
            **{name: value for name, value in values.items() if value is not None},
        )
    if any(rows or ()):
        raise InputError("a column beside predictions and outcomes needs rows of one model.")
    by = tuple(name for name in sketches.by if name != cluster)
    return _without_empty(Samples(*asked, by, sketches, columns, cluster), keep_empty)


def _as_sketches(groups: Mapping[Key, Sketch], by: Sequence[str]) -> Sketches:
    return Sketches({k[0] if len(by) == 1 else k: one for k, one in groups.items()}, by=tuple(by))


def _added_up(source: Source, grouping: Grouping, cluster: str | None) -> Any:
    """Sketches that were saved, rolled up to the groups that are asked for, and added up."""
    roles = [("by", name) for name in grouping.columns] + (
        [("cluster", cluster)] if cluster else []
    )
    total: Any = 0
    for path, name in zip(source.paths, source.names, strict=True):
        sketches: Any = cal.load(path)
        for argument, column in roles:
            require_choice(argument, column, sketches.by)
        if grouping.columns:
            sketches = sketches.roll_up(*dict.fromkeys(column for _, column in roles))
        groups = {(name, *k) if grouping.per_file else k: s for k, s in sketches.groups.items()}
        by = ("file", *sketches.by) if grouping.per_file else sketches.by
        try:
            total = total + _as_sketches(groups, by)
        except MergeError as error:
            raise InputError(f"{name} cannot be added to those before. {error.message}") from error
    return total if total.by else total[()]


def _without_empty(samples: Samples, keep_empty: bool = False) -> Samples:
    """The groups that have a valid row; an error where none has."""
    empty = sum(not sketch.n for sketch in samples.sketches.values())
    if empty == len(samples.sketches):
        raise TooFewRows("no valid rows are left. Leave out `--on-invalid drop` to see why.")
    content = samples.content
    if keep_empty or isinstance(content, Arrays) or not empty:
        return samples
    if empty:
        note(f"Left out {count(empty, 'group')} without a valid row.")
    filled = {key: one for key, one in content.groups.items() if one.n}
    return replace(samples, content=_as_sketches(filled, content.by))


def _read_logs(source: Source, grouping: Grouping, measuring: Measuring) -> Samples:
    """Answers of evaluation logs; those to one question are a cluster."""
    from calibrant.io.answers import read_answers

    reading = source.reading
    if len(reading.prob or ()) > 1:
        raise InputError("a log has one `y_prob` for each answer.", argument="y_prob")
    span = as_numbers(reading.score_range and [reading.score_range], "score_range")
    logs: dict[str, Answers] = {}
    for path, name in zip(source.paths, source.names, strict=True):
        logs[name] = log = read_answers(
            path,
            format=reading.log,
            probability=reading.prob[0] if reading.prob else None,
            correct=reading.label,
            question=measuring.cluster,
            filter=reading.filter,
            form=reading.form or ("percent" if reading.percent else "probability"),
            words=_as_words(reading.words),
            score_range=span and tuple(span),
            on_invalid=reading.on_invalid,
        )
        _note_contents(name, log)
        if log.has_partial_credit and reading.outcomes != "soft":
            hint = "To read it as a share, pass `--outcomes soft`."
            raise InputError(f"{name} gives partial credit, not 0 or 1.", hint=hint)
    by = list(dict.fromkeys(["file"] * grouping.per_file + grouping.columns))
    common = set.intersection(*(set(log.groups) for log in logs.values()))
    for name in by:
        require_choice("by", name, (*sorted(common), "file"))

    def keys(file: str, groups: Mapping[str, Any], n: int) -> list[Key]:
        own = {"file": [file] * n, **groups}
        values = [own.get(name, [""] * n) for name in by]
        return list(zip(*values, strict=True)) if by else [()] * n

    abstained = Counter(
        key for name, log in logs.items() for key in keys(name, log.abstained_groups, log.abstained)
    )
    each = [key for name, log in logs.items() for key in keys(name, log.groups, log.n)]
    columns = {name: np.array([key[k] for key in each], object) for k, name in enumerate(by)}
    rows = {
        name: np.concatenate([getattr(log, name) for log in logs.values()])
        for name in ("y_true", "y_prob", "cluster")
    }
    cluster, size = rows["cluster"], rows["cluster"].size
    if size < 2 or not all(log.names_questions for log in logs.values()):
        del rows["cluster"]
    elif bool((cluster == cluster[0]).all()):
        hint = "Name what tells questions apart with `--cluster`."
        raise TooFewRows(f"all {size} answers are to one question; it takes two.", hint=hint)
    options = {k: v for k, v in reading.options.items() if k in ("labels", "on_invalid")}
    arrays = Arrays(rows, {"": rows.pop("y_prob")}, options, columns)
    samples = Samples(source, grouping, measuring, tuple(by), arrays, None, QUESTION, abstained)
    for key in samples.abstained.keys() - samples.sketches.keys():
        note(f"Left out {shown(key)}: {count(abstained[key], 'abstention')} and no answer.")
    return _without_empty(samples)


def _as_words(text: str | None) -> dict[str, float] | None:
    """Probabilities of words, as they are typed.

    Examples
    --------
    >>> _as_words("very likely=0.9, likely=0.7")
    {'very likely': 0.9, 'likely': 0.7}
    """
    if text is None:
        return None
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(word.strip() for word, _, _ in pairs):
        raise InputError(f"`words` must be such as 'likely=0.7'; got {text!r}.")
    numbers = as_numbers([number for _, _, number in pairs], "words")
    return {pair[0].strip(): number for pair, number in zip(pairs, numbers, strict=True)}


def _note_contents(name: str, log: Answers) -> None:
    """Print how many answers a log has, and how many of them say too little."""
    note(
        f"{name}: {count(log.n, 'answer')} to {count(log.questions, 'question')}, "
        f"{count(log.abstained, 'abstention')}. Probability: {log.probability}."
    )
    lacking = {
        "without a confidence": log.without_confidence,
        "with one that cannot be read": log.unreadable,
        "that nobody scored": log.unscored,
    }
    for what, number in lacking.items():
        if number:
            note(f"{name}: {count(number, 'answer')} {what}.")
    if not log.names_questions:
        note(f"{name}: no field names the question, so answers are taken to be independent.")
