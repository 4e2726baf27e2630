"""Rows that must be converted before they are summed: other forms, classes, clusters."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.columns import Chosen
from calibrant.cli.options import Grouping, Reading
from calibrant.cli.parts import FILE, Part, groups_of, short_paths
from calibrant.cli.rows import joined, read_each
from calibrant.cli.table import common_start
from calibrant.cli.text import in_command_words, in_file, printable, quoted
from calibrant.data.pairs import FormWarning, as_pairs
from calibrant.errors import InputError
from calibrant.read.find_files import DataFile
from calibrant.read.group_keys import indexed, sort_key

__all__ = ["converted_parts", "row_options", "split"]

Rows = Mapping[str, NDArray[Any]]


def converted_parts(
    files: Sequence[DataFile], chosen: Chosen, reading: Reading, grouping: Grouping
) -> list[Part]:
    """One part per group (and per column of predictions, or per class)."""
    wanted = [*chosen.prob, chosen.label, *chosen.by]
    wanted += [name for name in (chosen.weight, chosen.cluster) if name is not None]
    numbers = [*(() if reading.multiclass else chosen.prob), *filter(None, [chosen.weight])]
    parts: list[Part] = []
    each = read_each(files, wanted, numbers=numbers, groups=chosen.groups)
    together = joined(each)
    file_names = short_paths([file.path for file in files])
    if reading.on_invalid == "raise" and not reading.multiclass:
        sizes = [rows[chosen.label].size for rows in each]
        _require_valid(together, chosen, reading, dict(zip(file_names, sizes, strict=True)))
    apart = zip(file_names, each, strict=True) if grouping.per_file else [("", together)]
    for file_name, rows in apart:
        extra = {FILE: file_name} if grouping.per_file else {}
        for group, members in split([rows[name] for name in chosen.by]):
            named = extra | dict(zip(chosen.by, group, strict=True))
            piece = rows if members is None else {name: rows[name][members] for name in wanted}
            parts += _class_parts(named, piece, chosen, reading) if reading.multiclass else [
                _part(named, piece, prob, chosen, reading) for prob in chosen.prob
            ]  # fmt: skip
    return parts


def _require_valid(rows: Rows, chosen: Chosen, reading: Reading, files: Mapping[str, int]) -> None:
    """Refuse a value that breaks a rule by its row in its file: later, rows are those of a group."""
    options = row_options(rows, chosen, reading)
    options.pop("cluster", None)
    for prob in chosen.prob:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FormWarning)
                as_pairs(rows[chosen.label], rows[prob], **options).require_valid()
        except InputError as error:
            words = in_command_words(str(error), {"y_prob": prob})
            raise InputError(in_file(words, files)) from error


def split(
    columns: Sequence[NDArray[Any]],
) -> Iterator[tuple[tuple[Any, ...], NDArray[np.int64] | None]]:
    """Each combination of values, in their order, with the rows that have it; None stands for all rows."""
    if not columns:
        yield (), None
        return
    place, keys = indexed(zip(*(column.tolist() for column in columns), strict=True))
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(keys) + 1))
    for k in sorted(range(len(keys)), key=lambda k: sort_key(keys[k])):
        yield keys[k], order[bounds[k] : bounds[k + 1]]


def row_options(rows: Rows, chosen: Chosen, reading: Reading) -> dict[str, Any]:
    """The keywords by which the library reads these rows."""
    options: dict[str, Any] = {"on_invalid": reading.on_invalid, "labels": reading.labels}
    options |= {"from_logits": reading.from_logits, "percent": reading.percent}
    if reading.pos_label is not None:
        options["pos_label"] = _as_label(reading.pos_label, rows[chosen.label])
    if chosen.weight is not None:
        options["sample_weight"] = rows[chosen.weight]
    if chosen.cluster is not None:
        options["cluster"] = rows[chosen.cluster]
    return options


def _part(group: dict[str, Any], rows: Rows, prob: str, chosen: Chosen, reading: Reading) -> Part:
    label = rows[chosen.label]
    if len(chosen.prob) > 1:
        group = {"model": prob, **group}
    options = row_options(rows, chosen, reading)
    return Part(group, (label, rows[prob]), options, int(label.size))


def _class_parts(group: dict[str, Any], rows: Rows, chosen: Chosen, reading: Reading) -> list[Part]:
    from calibrant.data.class_sketches import classwise, top_label
    from calibrant.data.multiclass import confidence

    if reading.percent or reading.pos_label is not None or reading.labels == "soft":
        raise InputError(
            "`--multiclass` reads probabilities or logits of classes; leave out `--percent`, "
            "`--pos-label` and `--labels soft`."
        )
    matrix, classes = _matrix(rows, chosen.prob, rows[chosen.label], reading.on_invalid)
    shared: dict[str, Any] = {"from_logits": reading.from_logits, "on_invalid": reading.on_invalid}
    shared |= {"classes": classes}
    if chosen.weight is not None:
        shared["sample_weight"] = rows[chosen.weight]
    if reading.multiclass == "confidence":
        pairs = confidence(rows[chosen.label], matrix, **shared)
        options = {} if chosen.cluster is None else {"cluster": rows[chosen.cluster]}
        return [Part(group, (pairs,), options, pairs.n)]
    if chosen.cluster is not None:
        raise InputError(
            f"`--multiclass {reading.multiclass}` knows no clusters; leave out `--cluster`, or use "
            "`--multiclass confidence`."
        )
    by_class = top_label if reading.multiclass == "top-label" else classwise
    sketches = by_class(rows[chosen.label], matrix, **shared)
    return [
        Part(group | dict(key), (sketch,), {}, sketch.n)
        for key, sketch in groups_of(sketches).items()
        if sketch.n
    ]


def _matrix(
    rows: Rows, prob: Sequence[str], label: NDArray[Any], on_invalid: str
) -> tuple[NDArray[Any], list[str] | None]:
    """Class probabilities as a matrix, and the names of the classes where labels are names."""
    if len(prob) == 1:
        lists = rows[prob[0]]
        if lists.dtype != object:
            raise InputError(
                f"`--multiclass` needs one column per class, as in --prob 'p_*', or a column of lists; "
                f"{prob[0]!r} holds single numbers."
            )
        return _stacked(lists, prob[0], on_invalid), None
    matrix = np.column_stack([rows[name] for name in prob])
    return matrix, None if label.dtype.kind in "biuf" else _class_names(prob, set(label.tolist()))


def _stacked(lists: NDArray[Any], name: str, on_invalid: str) -> NDArray[np.float64]:
    """A row for each list of as many numbers as most have; others are missing, or refused."""
    found = [_as_numbers(row) for row in lists]
    sizes = Counter(row.size for row in found if row is not None)
    size = max(sizes, key=lambda size: (sizes[size], size), default=0)
    matrix = np.full((len(found), size), np.nan)
    for place, row in enumerate(found):
        if row is not None and row.size == size:
            matrix[place] = row
        elif on_invalid == "raise":
            rule = f"list of {size} numbers, as others are" if size else "list of numbers"
            raise InputError(
                f"column {quoted(name)} must hold lists of class probabilities, all of one length; row "
                f"{place} is no {rule}: {printable(lists[place])}. `--on-invalid drop` leaves out "
                "such rows."
            )
    return matrix


def _as_numbers(row: Any) -> NDArray[np.float64] | None:
    """A list as numbers; None for what is none."""
    if row is None or isinstance(row, str):
        return None
    try:
        numbers = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 1 else None


def _class_names(columns: Sequence[str], labels: set[Any]) -> list[str]:
    """The columns' names less what all begin with: whole words, or as much as the labels lack."""
    shared = [k for k in range(min(map(len, columns)) + 1) if len({c[:k] for c in columns}) == 1]
    for start in (common_start(columns), *reversed(shared)):
        names = [name[start:] for name in columns]
        if labels <= {*names, None}:
            return names
    return [name[common_start(columns) :] for name in columns]


def _as_label(text: str, label: NDArray[Any]) -> Any:
    """The label that was typed, as a value of the column's own kind."""
    if label.dtype.kind == "b":
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() in words:
            return words[text.lower()]
    elif label.dtype.kind in "iuf":
        try:
            return float(text)
        except ValueError:
            pass
    else:
        return text
    raise InputError(
        f"`--pos-label` must be one of the labels; the column holds {label.dtype.name} values, and "
        f"{text!r} is none."
    )
