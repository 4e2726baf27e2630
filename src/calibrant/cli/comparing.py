"""`calibrant compare`: which model is better calibrated, on the same rows or on different ones."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.assessing import result_of
from calibrant.cli.columns import Chosen, choose, require_column
from calibrant.cli.converting import row_options, split
from calibrant.cli.opening import kind_of, opened
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import Given, Part, given, spoken
from calibrant.cli.rows import columns_of, joined, read_each
from calibrant.cli.table import Column, decimal, p_text, show_table
from calibrant.cli.text import count, listed, note, printable, quoted, shown
from calibrant.errors import InputError
from calibrant.inference.compare import compare
from calibrant.inference.comparison import Comparison

__all__ = ["run_compare"]

SCHEMA = "calibrant.compare/1"


@dataclass(frozen=True)
class Paired:
    """Predictions of several models for the same rows."""

    y_true: NDArray[Any]
    y_probs: dict[str, NDArray[Any]]
    options: dict[str, Any]


def run_compare(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: str | None,
    json: bool,
) -> None:
    """Compare models by column, or by group."""
    if reading.multiclass is None and (on is not None or _names_several(reading)):
        found, names = _compared_on_rows(files, reading, grouping, measuring, on)
    else:
        found, names = _compared_apart(files, reading, grouping, measuring)
    if json:
        print(json_format.dumps(_document(found, names), indent=2))
    else:
        _show(found)


def _names_several(reading: Reading) -> bool:
    given_names = reading.prob or []
    return len(given_names) > 1 or any(set(name) & set("*?[") for name in given_names)


def _compared_on_rows(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: str | None,
) -> tuple[Comparison, list[str]]:
    from calibrant.read.find_files import find_files

    paths = opened(files)
    if any(kind_of(path, log=reading.log) != "rows" for path in paths):
        raise InputError(
            "models are paired row by row, and this file holds no rows; leave out `--on`."
        )
    data = find_files(paths)
    present = columns_of(data[0])
    chosen = choose(present, data[0].path, reading, grouping, measuring)
    if on is not None:
        require_column(on, present, data[0].path)
    elif chosen.by:
        raise InputError(
            "models are told apart by column (`--prob`) or by group (`--by`), not by both."
        )
    extra = [name for name in (chosen.weight, chosen.cluster, on) if name is not None]
    wanted = [*chosen.prob, chosen.label, *chosen.by, *extra]
    numbers = [*chosen.prob, *filter(None, [chosen.weight])]
    groups = [name for name in chosen.groups if name != on]
    rows = joined(read_each(data, wanted, numbers=numbers, groups=groups))
    with spoken(chosen.spoken):
        paired = (
            _by_column(rows, chosen, reading)
            if on is None
            else _by_group(rows, chosen, reading, on)
        )
        found = compare(
            paired.y_true,
            paired.y_probs,
            confidence=measuring.confidence,
            seed=measuring.seed,
            scale=measuring.scale,
            **paired.options,
        )
    return found, list(paired.y_probs)


def _by_column(rows: dict[str, NDArray[Any]], chosen: Chosen, reading: Reading) -> Paired:
    options = row_options(rows, chosen, reading)
    return Paired(rows[chosen.label], {name: rows[name] for name in chosen.prob}, options)


def _by_group(rows: dict[str, NDArray[Any]], chosen: Chosen, reading: Reading, on: str) -> Paired:
    """A column of predictions per group, lined up by what `on` says is the same case."""
    if not chosen.by or len(chosen.prob) != 1:
        raise InputError("`--on` lines up the groups of `--by`, one column of predictions in each.")
    places: dict[str, dict[Any, int]] = {}
    for key, members in split([rows[name] for name in chosen.by]):
        assert members is not None
        name = ", ".join(shown(value) for value in key)
        places[name] = dict(zip(rows[on][members].tolist(), members.tolist(), strict=True))
        if len(places[name]) < members.size:
            raise InputError(
                f"column {quoted(on)} must name each case of {name} once; "
                f"{members.size - len(places[name]):,} are repeated."
            )
    common = set.intersection(*(set(of_group) for of_group in places.values()))
    most = max(map(len, places.values()))
    if not common:
        raise InputError(f"the groups must share values of {quoted(on)}; no value is in all.")
    if len(common) < most:
        note(f"Comparing on the {count(len(common), 'case')} that all have, of {most:,}.")
    first = next(iter(places.values()))
    cases = [case for case in first if case in common]
    lines = {name: np.array([of[case] for case in cases]) for name, of in places.items()}
    kept = next(iter(lines.values()))
    label = rows[chosen.label]
    for name, line in lines.items():
        if not np.array_equal(label[line], label[kept], equal_nan=label.dtype.kind == "f"):
            raise InputError(
                f"one case has one outcome; {name} and the first group differ in column "
                f"{quoted(chosen.label)}. Is {quoted(on)} what names a case?"
            )
    same = {name: values[kept] for name, values in rows.items()}
    predictions = {name: rows[chosen.prob[0]][line] for name, line in lines.items()}
    return Paired(label[kept], predictions, row_options(same, chosen, reading))


def _compared_apart(
    files: Sequence[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> tuple[Comparison, list[str]]:
    if measuring.cluster is not None:
        raise InputError(
            "`--cluster` needs models on the same rows: name their columns with `--prob`, or what "
            "lines up the groups with `--on`."
        )
    found = _of_two_rows(given(files, reading, grouping, measuring))
    if len(found.parts) > grouping.max_groups:
        raise InputError(
            f"there are {len(found.parts):,} groups, and a comparison takes every pair of them; it "
            f"stops at {grouping.max_groups}. Choose groups of a column with fewer values, or raise "
            "`--max-groups`."
        )
    if len(found.parts) < 2:
        raise InputError(
            "a comparison needs at least two models; there is one. Name the columns of predictions "
            "with `--prob a --prob b`, or tell models apart with `--by model` or `--per-file`."
        )
    sketches = {
        name: part.sketch(measuring.scale)
        for name, part in zip(found.names, found.parts, strict=True)
    }
    can_line_up = found.columns is not None and not grouping.per_file and not reading.multiclass
    cure = "`--on NAME` lines" if can_line_up else "one table with `--by` and `--on` lines"
    note(
        "Compared as if on different rows: what is common to the models does not cancel. If they "
        f"forecast the same cases, {cure} them up."
    )
    compared = compare(
        sketches, confidence=measuring.confidence, seed=measuring.seed, scale=measuring.scale
    )
    return compared, list(sketches)


def _of_two_rows(found: Given) -> Given:
    """The groups that can be compared; of the others it is said that they are left out."""
    few = [name for name, part in zip(found.names, found.parts, strict=True) if part.n < 2]
    if few:
        note(f"Left out, with too few rows: {listed(few)}.")
    return replace(found, parts=[part for part in found.parts if part.n >= 2])


def _show(found: Comparison) -> None:
    models = list(found.assessments.items())
    show_table(
        [
            Column("model", [name for name, _ in models], is_name=True),
            Column("rows", [f"{one.n:,}" for _, one in models]),
            Column("smECE", [decimal(one.smooth_ece) for _, one in models]),
            Column("debiased", [decimal(one.debiased) for _, one in models]),
            Column("floor", [decimal(one.noise_floor.value) for _, one in models]),
            Column("p", [p_text(one.p_value) for _, one in models]),
        ]
    )
    print()
    pairs = found.differences
    show_table(
        [
            Column("worse", [pair.first for pair in pairs], is_name=True),
            Column("better", [pair.second for pair in pairs], is_name=True),
            Column("difference", [decimal(pair.value) for pair in pairs]),
            Column("interval", [f"{pair.low:.3f} to {pair.high:.3f}" for pair in pairs]),
            Column(f"p ({found.correction})", [p_text(pair.adjusted_p_value) for pair in pairs]),
        ],
        caption=f"p of no difference, corrected for {count(len(pairs), 'pair')}; interval: of each alone",
    )
    print(f"\nVerdict: {printable(found.verdict, 1000)}.")


def _document(found: Comparison, names: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "models": list(names),
        "paired": found.paired,
        "clusters": found.clusters,
        "correction": found.correction,
        "settings": {"confidence": found.confidence, "seed": found.seed},
        "results": [
            result_of(Part({"model": name}, (), {}, one.n), one)
            for name, one in found.assessments.items()
        ],
        "differences": [asdict(pair) for pair in found.differences],
        "verdict": found.verdict,
    }
