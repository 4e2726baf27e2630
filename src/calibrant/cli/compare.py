"""`calibrant compare`: which model is better calibrated, on the same rows or on different ones."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from calibrant._format import decimals, p_text
from calibrant.cli.assess import result_of
from calibrant.cli.classes import compared_on_classes, document_of_classes, show_classes
from calibrant.cli.columns import Chosen
from calibrant.cli.inputs import load_sketches
from calibrant.cli.output import count, listed, note, printable, shown
from calibrant.cli.paired_groups import rows_of_cases
from calibrant.cli.rows import options_of_rows, rows_of_columns
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.table import Column, show_table
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option
from calibrant.inference.compare import compare
from calibrant.inference.compare_by import GroupComparisons, compare_by
from calibrant.inference.comparison import Comparison
from calibrant.inference.groups import GroupAssessment
from calibrant.io.rows import Rows

__all__ = ["run_compare"]

SCHEMA = "calibrant.compare/1"


@dataclass(frozen=True)
class Paired:
    """Predictions of several models for the same rows."""

    y_true: NDArray[Any]
    y_probs: Mapping[str, NDArray[Any]]
    options: dict[str, Any]


def run_compare(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: str | None = None,
    json: bool = False,
) -> None:
    """Compare models by column, or by group."""
    several = len(reading.prob or []) > 1 or any(set(n) & set("*?[") for n in reading.prob or [])
    apart = bool(grouping.by) or grouping.per_file
    found: Comparison | GroupComparisons
    if reading.multiclass is not None and (on or (not apart and len(reading.prob or []) > 1)):
        found = compared_on_classes(files, reading, grouping, measuring, on)
    elif reading.multiclass is None and (on is not None or several):
        found = _compared_on_rows(files, reading, grouping, measuring, on)
    else:
        found = _compared_apart(files, reading, grouping, measuring)
    if isinstance(found, GroupComparisons):
        document, show = document_of_classes(found, SCHEMA), partial(show_classes, found)
    else:
        document, show = _document(found), partial(_show, found)
    if json:
        print(json_format.dumps(document, indent=2))
    else:
        show(grouping.max_groups)


def _compared_on_rows(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: str | None,
) -> Comparison:
    rows, chosen = rows_of_columns(files, reading, measuring, grouping, on=on)
    if on is None and chosen.by:
        raise InputError(
            "models are told apart by column ({prob}) or by group ({by}), not by both",
            prob=Option("y_prob"),
            by=Option("by"),
            cure="Give one of the two.",
        )
    paired = (
        Paired(rows.y_true, rows.y_probs, options_of_rows(rows, chosen, reading))
        if on is None
        else _by_group(rows, chosen, reading, on)
    )
    return compare(
        paired.y_true,
        paired.y_probs,
        confidence=measuring.confidence,
        seed=measuring.seed,
        scale=measuring.scale,
        **paired.options,
    )


def _by_group(rows: Rows, chosen: Chosen, reading: Reading, on: str) -> Paired:
    """A column of predictions per group, lined up by what `on` says is the same case."""
    if not chosen.by or len(chosen.prob) != 1:
        raise InputError(
            "lines up the groups of {by}, one column of predictions in each",
            argument="on",
            by=Option("by"),
            cure="Leave it out: columns of one file share their rows.",
        )
    lines = rows_of_cases(rows.groups, chosen.by, on, rows.y_true, chosen.label)
    first = next(iter(lines.values()))
    predictions = {name: rows.y_probs[chosen.prob[0]][line] for name, line in lines.items()}
    return Paired(rows.y_true[first], predictions, options_of_rows(rows, chosen, reading, first))


def _compared_apart(
    files: Sequence[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> Comparison | GroupComparisons:
    """Models on rows of their own: as one sample each, or class by class, never a class with a class."""
    if measuring.cluster is not None:
        raise InputError(
            "needs models on the same rows",
            argument="cluster",
            cure="Name their columns with {prob}, or what lines up the groups with {on}.",
            prob=Option("y_prob"),
            on=Option("on"),
        )
    loaded = load_sketches(files, reading, grouping, measuring)
    classes = reading.multiclass not in (None, "confidence")
    models: dict[str, dict[Any, Sketch]] = {}
    for key, sketch in loaded.groups().items():
        called, rest = (key[0], key[1:]) if classes else (None, key)
        models.setdefault(", ".join(shown(v) for v in rest), {})[called] = sketch
    few = [name for name, own in models.items() if sum(one.n for one in own.values()) < 2]
    if few:
        note(f"Left out, with too few rows: {listed(few)}.")
    models = {name: own for name, own in models.items() if name not in few}
    _require_several(models, grouping.max_groups)
    if reading.multiclass != "top-label":  # where each model has the rows for which it said a class
        can_line_up = loaded.columns is not None and not grouping.per_file
        cure = "`--on NAME` lines" if can_line_up else "one table with `--by` and `--on` lines"
        note(
            "Compared as if on different rows: the noise that models share does not cancel. If they "
            f"forecast the same cases, {cure} them up."
        )
    settings: dict[str, Any] = {"confidence": measuring.confidence, "seed": measuring.seed}
    if classes:
        by_class = {name: Sketches(own, by=loaded.by[0]) for name, own in models.items()}
        return compare_by(by_class, correction=grouping.correction, **settings)
    whole = {name: own[None] for name, own in models.items()}
    return compare(whole, scale=measuring.scale, **settings)


def _require_several(models: Mapping[str, Any], limit: int) -> None:
    if len(models) > limit:
        raise InputError(
            "a comparison takes every pair of groups, and stops at {limit} groups",
            seen=len(models),
            saying="there are {}",
            limit=limit,
            cure="Choose groups of a column with fewer values, or raise {option}.",
            option=Option("max_groups"),
        )
    if len(models) < 2:
        raise InputError(
            "a comparison needs at least two models; there is one",
            cure="Name the columns of predictions with {first} {second}, or tell models apart with {by} or "
            "{per_file}.",
            first=Option("y_prob", "a"),
            second=Option("y_prob", "b"),
            by=Option("by", "model"),
            per_file=Option("per_file"),
        )


def _show(comparison: Comparison, _: int) -> None:
    models = list(comparison.assessments.items())
    show_table(
        [
            Column("model", [name for name, _ in models], is_name=True),
            Column("rows", [f"{one.n:,}" for _, one in models]),
            Column("error", [decimals(one.smooth_ece, places=3) for _, one in models]),
            Column("floor", [decimals(one.noise_floor.value, places=3) for _, one in models]),
            Column("p", [p_text(one.p_value) for _, one in models]),
        ]
    )
    print()
    pairs = comparison.differences
    show_table(
        [
            Column("worse", [pair.first for pair in pairs], is_name=True),
            Column("better", [pair.second for pair in pairs], is_name=True),
            Column("difference", [decimals(pair.value, places=3) for pair in pairs]),
            Column(
                "interval",
                [f"{decimals(p.low, places=3)} to {decimals(p.high, places=3)}" for p in pairs],
            ),
            Column(f"p ({comparison.correction})", [p_text(p.adjusted_p_value) for p in pairs]),
        ],
        caption=f"p: no difference, corrected for {count(len(pairs), 'pair')}; interval: each alone",
    )
    print(f"\nVerdict: {printable(comparison.verdict, 1000)}.")


def _document(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "models": list(comparison.assessments),
        "paired": comparison.paired,
        "clusters": comparison.clusters,
        "correction": comparison.correction,
        "settings": {"confidence": comparison.confidence, "seed": comparison.seed},
        "results": [
            result_of(GroupAssessment(name, one.n, one), ("model",))
            for name, one in comparison.assessments.items()
        ],
        "differences": [asdict(pair) for pair in comparison.differences],
        "verdict": comparison.verdict,
    }
