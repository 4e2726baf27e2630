"""Models of many classes on the same rows: `--prob 'a_*' --prob 'b_*'`, compared as one or class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from calibrant._format import decimals, p_text
from calibrant.cli.assess import result_of
from calibrant.cli.output import listed, note, printable, shown
from calibrant.cli.paired_groups import rows_of_cases
from calibrant.cli.rows import options_of_rows, rows_of_classes
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.table import Column, show_table
from calibrant.errors import InputError, Option
from calibrant.inference.compare import compare
from calibrant.inference.compare_by import GroupComparisons, compare_by
from calibrant.inference.comparison import Comparison
from calibrant.inference.groups import GroupAssessment

__all__ = ["compared_on_classes", "document_of_classes", "show_classes"]


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
    options = options_of_rows(rows, chosen, reading, at)
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
