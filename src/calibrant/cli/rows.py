"""Rows of files as arrays, for what a sketch is not enough for: models on the same rows, clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from calibrant.cli.columns import Chosen, choose, choose_predictions, require_column
from calibrant.cli.errors import read_from
from calibrant.cli.inputs import kind_of, refuse_options_of_logs
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.standard_input import opened
from calibrant.errors import InputError
from calibrant.io.class_rows import ClassRows, read_classes
from calibrant.io.find_files import find_files
from calibrant.io.rows import Rows, read_rows
from calibrant.io.tables import columns_of

__all__ = ["options_of_rows", "rows_of_classes", "rows_of_columns"]


def rows_of_columns(
    files: Sequence[str],
    reading: Reading,
    measuring: Measuring,
    grouping: Grouping | None = None,
    *,
    on: str | None = None,
) -> tuple[Rows, Chosen]:
    """The columns that were named or found, as arrays; and which these are."""
    paths, chosen, _ = _chosen(files, reading, measuring, grouping, on)
    rows = read_rows(
        paths,
        y_true=chosen.label,
        y_prob=chosen.prob,
        sample_weight=chosen.weight,
        columns=_others(chosen, on),
        named_labels=reading.pos_label is not None,
        sep=reading.sep,
    )
    return rows, chosen


def rows_of_classes(
    files: Sequence[str],
    reading: Reading,
    measuring: Measuring,
    grouping: Grouping | None = None,
    *,
    several: bool = False,
    on: str | None = None,
) -> tuple[ClassRows, Chosen]:
    """The matrices of one model or, where each `--prob` is one, of several; and the columns they are from."""
    paths, chosen, present = _chosen(files, reading, measuring, grouping, on)
    models: dict[str, Sequence[str]] = {"": chosen.prob}
    if several:
        models = {}
        for pattern in reading.prob or []:
            own = replace(reading, prob=[pattern])
            models[_named(pattern, models)] = choose_predictions(present, paths[0], own, present)
    rows = read_classes(
        paths,
        y_true=chosen.label,
        y_prob=models,
        sample_weight=chosen.weight,
        columns=_others(chosen, on),
        classes=reading.options.get("classes"),
        on_invalid=reading.on_invalid,
        sep=reading.sep,
    )
    return rows, chosen


def options_of_rows(
    rows: Rows | ClassRows, chosen: Chosen, reading: Reading, at: NDArray[Any] | slice = slice(None)
) -> dict[str, Any]:
    """The keywords by which the library reads these rows, or some of them."""
    options = {k: v for k, v in reading.options.items() if k not in ("sample_weight", "sep")}
    if rows.sample_weight is not None:
        options["sample_weight"] = rows.sample_weight[at]
    if chosen.cluster is not None:
        options["cluster"] = rows.groups[chosen.cluster][at]
    if isinstance(rows, ClassRows):
        return options | ({} if rows.classes is None else {"classes": rows.classes})
    if reading.pos_label is not None and rows.y_true.dtype.kind in "biuf":
        try:
            options["pos_label"] = float(reading.pos_label)
        except ValueError:
            raise InputError(
                "must be one of the labels, which are numbers",
                argument="pos_label",
                seen=reading.pos_label,
                cure="Pass one of the numbers in the column.",
            ) from None
    return options


def _chosen(
    files: Sequence[str],
    reading: Reading,
    measuring: Measuring,
    grouping: Grouping | None,
    on: str | None,
) -> tuple[list[str], Chosen, list[str]]:
    """The paths, the columns to read, and all that there are."""
    refuse_options_of_logs(reading)
    paths = opened(files)
    if any(kind_of(path, log=reading.log) != "rows" for path in paths):
        raise InputError(
            "this is done row by row, and this file holds no rows", cure="Pass a file of rows."
        )
    first = find_files(paths, separator=reading.sep)[0]
    present = columns_of(first)
    chosen = choose(present, first.path, reading, grouping or Grouping(), measuring)
    read_from(chosen.spoken)
    if on is not None:
        require_column(on, present, first.path)
    return paths, chosen, present


def _others(chosen: Chosen, on: str | None) -> list[str]:
    """Columns beside predictions, outcomes and weights, each once."""
    names = (*chosen.by, chosen.cluster, on)
    return list(dict.fromkeys(name for name in names if name is not None))


def _named(pattern: str, taken: Mapping[str, Any]) -> str:
    """What a model is called whose columns match a pattern: `a` for `a_*`."""
    name = pattern.split("*")[0].rstrip("_.- ") or pattern
    return pattern if name in taken else name
