"""Models of many classes on the same rows: `--prob 'a_*' --prob 'b_*'`, compared as one or class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from calibrant._format import decimals, p_text
from calibrant.cli.assess import result_of
from calibrant.cli.columns import Chosen, choose, choose_predictions, require_column
from calibrant.cli.errors import read_from
from calibrant.cli.inputs import kind_of
from calibrant.cli.output import listed, note, printable, shown
from calibrant.cli.paired_groups import rows_of_cases
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.standard_input import opened
from calibrant.cli.table import Column, show_table
from calibrant.errors import InputError, Option
from calibrant.inference.compare import compare
from calibrant.inference.compare_by import GroupComparisons, compare_by
from calibrant.inference.comparison import Comparison
from calibrant.inference.groups import GroupAssessment
from calibrant.read.class_rows import ClassRows, read_classes
from calibrant.read.find_files import find_files
from calibrant.read.tables import columns_of

__all__ = ["compared_on_classes", "document_of_classes", "rows_of_classes", "show_classes"]


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
    paths = opened(files)
    if any(kind_of(path, log=reading.log) != "rows" for path in paths):
        raise InputError(
            "class probabilities are read from rows, and this file holds none",
            cure="Pass a file of rows.",
        )
    first = find_files(paths, separator=reading.sep)[0]
    present = columns_of(first)
    chosen = choose(present, first.path, reading, grouping or Grouping(), measuring)
    read_from(chosen.spoken)
    if on is not None:
        require_column(on, present, first.path)
    models: dict[str, Sequence[str]] = {"": chosen.prob}
    if several:
        models = {}
        for pattern in reading.prob or []:
            own = replace(reading, prob=[pattern])
            models[_named(pattern, models)] = choose_predictions(present, first.path, own, present)
    extra = [name for name in (*chosen.by, chosen.cluster, on) if name is not None]
    rows = read_classes(
        paths,
        y_true=chosen.label,
        y_prob=models,
        sample_weight=chosen.weight,
        columns=list(dict.fromkeys(extra)),
        classes=reading.options.get("classes"),
        sep=reading.sep,
    )
    return rows, chosen


def _named(pattern: str, taken: Mapping[str, Any]) -> str:
    """What a model is called whose columns match a pattern: `a` for `a_*`."""
    name = pattern.split("*")[0].rstrip("_.- ") or pattern
    return pattern if name in taken else name


def compared_on_classes(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: str | None,
) -> Comparison | GroupComparisons:
    """The comparison of their confidence, or class by class: of models by column, or lined up by group."""
    if on is not None and (not grouping.columns or grouping.per_file):
        raise InputError(
            "lines up the groups of {by}, one model in each",
            argument="on",
            by=Option("by"),
            cure="Leave it out: columns of one file share their rows.",
        )
    rows, chosen = rows_of_classes(files, reading, measuring, grouping, several=on is None, on=on)
    y_probs, at = rows.y_probs, np.arange(len(rows.y_true))
    if on is not None:
        lines = rows_of_cases(rows.groups, chosen.by, on, rows.y_true, chosen.label)
        y_probs = {name: rows.y_probs[""][line] for name, line in lines.items()}
        at = next(iter(lines.values()))
    y_true = rows.y_true[at]
    options = {k: v for k, v in reading.options.items() if k not in ("sample_weight", "sep")}
    options |= {} if rows.classes is None else {"classes": rows.classes}
    if rows.sample_weight is not None:
        options["sample_weight"] = rows.sample_weight[at]
    if chosen.cluster is not None:
        options["cluster"] = rows.groups[chosen.cluster][at]
    settings: dict[str, Any] = {"confidence": measuring.confidence, "seed": measuring.seed}
    if options["multiclass"] == "confidence":
        return compare(y_true, y_probs, scale=measuring.scale, **settings, **options)
    if measuring.scale not in (None, "probability"):
        raise InputError(
            "is that of probabilities where classes are compared one by one",
            argument="scale",
            seen=measuring.scale,
            cure="Leave it out, or pass {option}.",
            option=Option("multiclass", "confidence"),
        )
    return compare_by(y_true, y_probs, correction=grouping.correction, **settings, **options)


def show_classes(found: GroupComparisons, most: int) -> None:
    """A line for each class and pair, the clearest first."""
    lines = [(name, pair) for name, one in found.items() for pair in one.differences]
    if len(lines) > most:
        note(f"Showing {most} of {len(lines):,} comparisons; `--json` has all of them.")
    if found.too_few:
        note(f"Left out, with too few rows: {listed([shown(name) for name in found.too_few])}.")
    lines = lines[:most]
    show_table(
        [
            Column(found.by, [shown(name) for name, _ in lines], is_name=True),
            Column("worse", [pair.first for _, pair in lines], is_name=True),
            Column("better", [pair.second for _, pair in lines], is_name=True),
            Column("difference", [decimals(pair.value, places=3) for _, pair in lines]),
            Column(
                "interval",
                [f"{decimals(p.low, places=3)} to {decimals(p.high, places=3)}" for _, p in lines],
            ),
            Column(f"p ({found.correction})", [p_text(p.adjusted_p_value) for _, p in lines]),
        ],
        caption="p: no difference, corrected for all classes and pairs; interval: each alone",
    )
    print(f"\nVerdict: {printable(found.verdict, 1000)}.")


def document_of_classes(found: GroupComparisons, schema: str) -> dict[str, Any]:
    """The comparison in the schema of the command line: results and differences by class."""
    first = next(iter(found.values()))
    return {
        "schema": schema,
        "models": sorted(first.assessments),
        "paired": first.paired,
        "clusters": first.clusters,
        "correction": found.correction,
        "settings": {"confidence": first.confidence, "seed": first.seed},
        "results": [
            result_of(GroupAssessment((model, name), one.n, one), ("model", found.by))
            for name, each in found.items()
            for model, one in each.assessments.items()
        ],
        "differences": [
            {"class": shown(name), **asdict(pair)}
            for name, each in found.items()
            for pair in each.differences
        ],
        "verdict": found.verdict,
    }
