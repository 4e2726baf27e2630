"""`calibrant compare`: better calibrated of several models, on the same rows or on different ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import calibrant as cal
from calibrant.cli.options import Grouping, Measuring, Reading, Testing, verb
from calibrant.cli.output import listed, note, show_result, shown
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.cli._inputs import Arrays, Source

__all__ = ["compare"]


@verb(
    "calibrant compare preds.csv --prob model_a --prob model_b",
    "calibrant compare preds.parquet --by model --on question_id",
)
def compare(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    testing: Testing,
    measuring: Measuring,
    on: str | None = None,
    json: bool = False,
) -> None:
    """Find out which model is better calibrated.

    Models are columns (--prob a --prob b), groups (--by model) or files (--per-file). Comparing models on
    the same rows removes the noise they share. Columns always share rows; for groups, name the row id with
    --on.

    Groups
    ------
    on : NAME
        Column with the id of the row, to match the rows of the groups of --by.
    """
    from calibrant.cli._inputs import Source

    source = Source.of(files, reading)
    wanted = reading.prob or []
    by_class = reading.multiclass in ("top-label", "classwise")
    columns_are_models = len(wanted) > 1 or (
        reading.multiclass is None and any(set(name) & set("*?[,") for name in wanted)
    )
    grouped = bool(grouping.by) or grouping.per_file
    if on is None and not (columns_are_models and not (grouped and reading.multiclass)):
        models, options = _apart(source, grouping, measuring, by_class, testing.max_groups), {}
        arguments: tuple[Any, ...] = (models,)
    else:
        rows = _matched(source, grouping, measuring, on)
        arguments, options = (), rows.arguments
    settings: dict[str, Any] = {"confidence": measuring.confidence, **options}
    settings["correction"] = testing.correction
    found: Any
    if by_class:
        from calibrant.inference.compare import compare_by

        found = compare_by(*arguments, **settings)
    else:
        found = cal.compare(*arguments, scale=measuring.scale, **settings)
    show_result(found, json=json)


def _matched(source: Source, grouping: Grouping, measuring: Measuring, on: str | None) -> Arrays:
    """Models on the same rows: a column each, or a group each whose rows `on` matches."""
    import numpy as np

    from calibrant.cli._inputs import Columns, read_arrays

    source.require_rows("`--on`" if on else "a comparison by columns")
    columns = Columns.of(source, grouping, measuring)
    if on is None and columns.by:
        raise InputError("`by`: models are columns (`--prob`) or groups (`--by`), not both.")
    if on is None:
        return read_arrays(source, columns, each=True)
    if not columns.by or (len(columns.prob) != 1 and source.reading.multiclass is None):
        raise InputError("`on` matches the rows of the groups of `--by`, with one `--prob`.")
    rows = read_arrays(source, columns, [on])
    groups = {shown(key): places for key, places in rows.groups(columns.by).items()}
    matched = _matched_rows(groups, rows.columns[on].tolist(), on)
    outcomes = [rows.values["y_true"][own] for own in matched.values()]
    if not all(np.array_equal(own, outcomes[0]) for own in outcomes):
        raise InputError(f"`on`: the groups differ in outcomes of the same {on!r}.")
    (y_prob,) = rows.y_probs.values()
    y_probs = {name: y_prob[own] for name, own in matched.items()}
    return replace(rows.at(next(iter(matched.values()))), y_probs=y_probs)


def _matched_rows(groups: dict[str, Any], ids: list[Any], on: str) -> dict[str, Any]:
    """Rows of each group whose id all groups have, in one order."""
    import numpy as np

    places = {name: {ids[row]: row for row in rows.tolist()} for name, rows in groups.items()}
    for name, own in places.items():
        if len(own) < len(groups[name]):
            raise InputError(f"`on` must name each row of {name} once; some repeat.")
    common = set.intersection(*(set(own) for own in places.values()))
    most = max(map(len, places.values()))
    if not common:
        raise InputError(f"`on`: no value of {on!r} is in all groups.")
    if len(common) < most:
        note(f"Comparing on the {len(common):,} rows that all groups have, of {most:,}.")
    order = [one for one in next(iter(places.values())) if one in common]
    return {name: np.array([places[name][one] for one in order]) for name in sorted(places)}


def _apart(
    source: Source, grouping: Grouping, measuring: Measuring, by_class: bool, most: int
) -> dict[str, Any]:
    """Models on rows of their own: a sketch each, or sketches by class."""
    from calibrant.cli._inputs import read_samples
    from calibrant.data.sketches import Sketches

    if measuring.cluster is not None:
        hint = "Name their columns with `--prob`, or match the rows of groups with `--on`."
        raise InputError("`cluster` needs models on the same rows.", hint=hint)
    samples = read_samples(source, grouping, measuring)
    models: dict[str, dict[Any, Any]] = {}
    for key, sketch in samples.sketches.items():
        called, rest = (key[0], key[1:]) if by_class else (None, key)
        models.setdefault(shown(rest), {})[called] = sketch
    few = [name for name, own in models.items() if sum(one.n for one in own.values()) < 2]
    if few:
        note(f"Left out, with too few rows: {listed(few)}.")
    models = {name: own for name, own in models.items() if name not in few}
    if len(models) > most:
        raise InputError(f"a comparison of all pairs takes up to `--max-groups {most}` models.")
    if len(models) < 2:
        hint = "Models are columns (`--prob a --prob b`), groups (`--by model`) or files (`--per-file`)."
        raise InputError("a comparison needs two models or more.", hint=hint)
    if by_class:
        return {name: Sketches(own, by=samples.by[0]) for name, own in models.items()}
    return {name: own[None] for name, own in models.items()}
