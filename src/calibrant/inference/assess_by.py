"""`assess_by`: every group of rows, and which of them are miscalibrated."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Unpack

from calibrant._arguments import CONFIDENCE, require_count, require_seed
from calibrant.data.rows import InputOptions, has_classes
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch, warn_of_hard_labels
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import assessment_and_test, require_margin
from calibrant.inference.correction import Correction, adjusted_p_values, require_correction
from calibrant.inference.group_units import (
    GroupedRows,
    GroupUnits,
    largest_of,
    parts_of,
    total_of,
)
from calibrant.inference.grouped_rows import regrouped, scanned_groups
from calibrant.inference.groups import GroupAssessment, GroupAssessments, worst_first
from calibrant.inference.interval import require_confidence
from calibrant.inference.null_noise import has_weight
from calibrant.inference.planning import detectable_error
from calibrant.inference.profile import Profile, Sample, as_profile
from calibrant.io.progress import Progress

__all__ = ["assess_by"]

NO_WEIGHT = "no row has weight"
"""Why a group is not assessed."""
LARGE = 2_000
"""Cells with rows of a group, on average, from which on groups are assessed side by side."""


def assess_by(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    by: Any = None,
    cluster: Any = None,
    margin: float | None = None,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    limit: int | None = None,
    seed: int = 0,
    scale: str | Scale | None = None,
    profile: str | Profile | None = None,
    **options: Unpack[InputOptions],
) -> GroupAssessments:
    """Assess every group; findings are corrected for how many groups there are.

    Parameters
    ----------
    y_true : array, str or Sketches
        Outcomes, 0 or 1; the name of their column in `data`; or sketches by group, as `scan` gives
        them, and no `y_prob`.
    y_prob : array or str
        Predicted probabilities of outcome 1, or the name of their column.
    data : frame, files or other source, optional
        Whatever `scan` reads.
    by : array, mapping, frame or names
        The group of every row; several such arrays by name are crossed. With `data`, a name or a list of
        names. Of Sketches, some of their columns: the others are added up.
    cluster : array or str, optional
        What makes rows dependent; see `assess`. With `data` or Sketches, the name of a column.
    margin, confidence, seed, scale
        As in `assess`.
    correction : {"holm", "bh", "bonferroni", "none"}
        For the number of groups. "holm" keeps the chance of any false finding below 1 - `confidence`;
        "bh" keeps the expected share of false ones among the findings below it, and finds more.
    limit : int, optional
        Assess this many of the largest groups, and all others together as one more.
    profile : str or Profile, optional
        The numbers your field asks for; see `assess`. From `data` and Sketches as far as a sketch of
        each group goes.
    **options
        How to read the rows: `sample_weight`, `pos_label`, `from_logits`, `percent`, `labels`,
        `on_invalid` (see `InputOptions`).

    Returns
    -------
    GroupAssessments
        From group to Assessment, the worst first. Print it for a table; `.summary` is a few sentences;
        `.groups` has those with too few rows too.

    Notes
    -----
    Groups whose predictions take thousands of values, on average, are assessed side by side on all cores.
    Every number is the same however many there are.

    Where weights depend on the outcome, a small group may lack the rows that weigh most. It learns from all
    groups what these weigh, so its p-value and interval are not those that `assess` gives for its rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> sex = rng.choice(["f", "m"], 4000)
    >>> y = rng.random(4000) < np.where(sex == "f", p, p**2)
    >>> groups = assess_by(y, p, by=sex)
    >>> print(groups.summary)
    1 of 2 groups is miscalibrated (corrected for testing 2).
    >>> groups.worst, groups["m"].finding
    ('m', 'miscalibrated')
    """
    require_confidence(confidence)
    require_margin(margin)
    require_correction(correction)
    _require_limit(limit)
    seed = require_seed(seed)
    asked = None if profile is None else as_profile(profile)
    many = data is None and has_classes(y_prob, options.get("multiclass"), options.get("classes"))
    unit = cluster
    if isinstance(y_true, Sketches) or isinstance(data, Sketches):
        sketches = regrouped(y_true, y_prob, data, by, cluster, scale, options)
    else:
        sketches, unit = scanned_groups(y_true, y_prob, data, by, cluster, scale, options)
    rows = None
    of_arrays = data is None and not isinstance(y_true, Sketches) and not many
    if of_arrays and (cluster is not None or asked is not None):
        rows = GroupedRows.of(y_true, y_prob, by, cluster, options)
    parts = largest_of(parts_of(sketches, unit), limit, clustered=unit is not None)
    warn_of_hard_labels((total_of(own) for own in parts.values()), stacklevel=3)
    units = GroupUnits(parts, rows, unit if rows is None else cluster)
    groups = _assessed(sketches.by, units, margin, float(confidence), correction, seed)
    if asked is None:
        return groups
    samples = {key: units.sample(key, one) for key, one in groups.items()}
    return replace(groups, groups=tuple(_profiled(one, samples, asked) for one in groups.groups))


def _profiled(
    group: GroupAssessment, samples: Mapping[Any, Sample], profile: Profile
) -> GroupAssessment:
    if group.assessment is None:
        return group
    found = profile.measured(samples[group.key])
    return replace(group, assessment=replace(group.assessment, profile=found))


def _require_limit(limit: int | None) -> None:
    if limit is not None:
        require_count("limit", limit)


def _assessed(
    by: Sequence[str],
    units: GroupUnits,
    margin: float | None,
    confidence: float,
    correction: Correction,
    seed: int,
) -> GroupAssessments:
    cluster = units.cluster
    names = tuple(name for name in by if not isinstance(cluster, str) or name != cluster)
    totals = {key: total_of(own) for key, own in units.parts.items()}

    def assessed(key: Any) -> GroupAssessment:
        sketch, clusters = totals[key], None
        why = "" if sketch.n >= 2 else "fewer than two rows"
        if not has_weight(sketch):
            why = NO_WEIGHT
        if not why:
            try:
                clusters = units.clusters(key, sketch.scale)
            except TooFewRows:
                why = "fewer than two clusters"
        if why:
            return GroupAssessment(key, sketch.n, None, why=why)
        assessment, test = assessment_and_test(
            sketch, clusters, margin=margin, confidence=confidence, seed=seed
        )
        detectable = detectable_error(test, level=level)
        return GroupAssessment(key, sketch.n, assessment, detectable)

    groups: dict[Any, GroupAssessment] = {}
    number = 1 if correction == "none" else sum(sketch.n >= 2 for sketch in totals.values())
    level = (1.0 - confidence) / max(number, 1)  # which a group must reach where no other does
    progress = Progress(len(totals), doing="assessing")
    for key, group in zip(totals, _side_by_side(assessed, totals), strict=True):
        progress.advance(1, group.n)
        groups[key] = group
    progress.close()
    _refuse_no_assessment(groups.values(), totals.values(), cluster)
    return GroupAssessments(
        by=names,
        groups=worst_first(_corrected(groups.values(), correction)),
        correction=correction,
        clustered=cluster is not None,
        confidence=confidence,
        seed=seed,
        sketches=totals,
    )


def _refuse_no_assessment(
    groups: Collection[GroupAssessment], sketches: Iterable[Sketch], cluster: Any
) -> None:
    """Refuse groups of which none could be assessed."""
    if groups and all(group.why == NO_WEIGHT for group in groups):
        raise InputError(
            "must not be zero everywhere", argument="sample_weight",
            seen=float(sum(sketch.total_weight for sketch in sketches)),
            saying="the weights of all groups add up to {}",
            cure="Leave it out to give every row weight 1.",
        )  # fmt: skip
    if not any(group.assessment for group in groups):
        what = "rows" if cluster is None else "clusters"
        raise TooFewRows(
            "an assessment needs two {units} or more in a group, and no group has them",
            seen=max((group.n for group in groups), default=0),
            saying="the largest has {} rows",
            cure="Group by fewer columns, or pass more rows.",
            units=what,
        )


def _side_by_side(
    assessed: Callable[[Any], GroupAssessment], totals: Mapping[Any, Sketch]
) -> Iterator[GroupAssessment]:
    """The groups in their order, on as many threads as there are cores where they are large.

    None depends on another. The compiled loops run side by side; where rows lie in few cells, as those of
    small groups and rare classes do, these are so short that threads would wait for one another.
    """
    cores = min(os.cpu_count() or 1, len(totals))
    if cores < 2 or sum(sketch.cells.size for sketch in totals.values()) < LARGE * len(totals):
        yield from map(assessed, totals)
        return
    with ThreadPoolExecutor(max_workers=cores) as pool:
        yield from pool.map(assessed, totals)


def _corrected(groups: Iterable[GroupAssessment], correction: Correction) -> list[GroupAssessment]:
    """The groups with p-values that account for how many were tested."""
    everything = list(groups)
    tested = [group for group in everything if group.assessment is not None]
    if len(tested) < 2 or correction == "none":
        return everything
    p_values = [one.assessment.p_value for one in tested if one.assessment is not None]
    adjusted = dict(zip(map(id, tested), adjusted_p_values(p_values, correction), strict=True))
    return [
        group
        if group.assessment is None
        else replace(group, assessment=group.assessment.corrected(adjusted[id(group)]))
        for group in everything
    ]
