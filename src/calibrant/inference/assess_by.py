"""`assess_by`: every group of rows, and which of them are miscalibrated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from calibrant._arguments import CONFIDENCE, require_count, require_seed
from calibrant.data.arrays import as_column
from calibrant.data.as_pairs import as_pairs, has_classes
from calibrant.data.forms import InputOptions
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import assessment_and_rejection, require_margin
from calibrant.inference.clusters import ClusterResiduals, cluster_codes
from calibrant.inference.correction import Correction, adjusted_p_values, require_correction
from calibrant.inference.grouped_rows import regrouped, scanned_groups
from calibrant.inference.groups import GroupAssessment, GroupAssessments, Others, worst_first
from calibrant.inference.interval import require_confidence
from calibrant.inference.planning import detectable_error
from calibrant.inference.profile import Profile, Sample, as_profile
from calibrant.read.group_keys import indexed
from calibrant.read.progress import Progress

__all__ = ["assess_by"]


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
        Assess so many of the largest groups, and all others as one more.
    profile : str or Profile, optional
        What a field of use asks for beside; see `assess`. From `data` and Sketches as far as a sketch of
        each group goes.
    **options
        How to read the rows: `sample_weight`, `pos_label`, `from_logits`, `percent`, `labels`,
        `on_invalid` (see `InputOptions`).

    Returns
    -------
    GroupAssessments
        From group to Assessment, the worst first. Print it for a table; `.summary` is a few sentences;
        `.groups` has those with too few rows too.

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
    rows = None
    many = data is None and has_classes(y_prob, options.get("multiclass"), options.get("classes"))
    if data is None and not isinstance(y_true, Sketches) and not many:
        rows = partial(_rows_by_group, y_true, y_prob, by, cluster, options)
    if isinstance(y_true, Sketches) or isinstance(data, Sketches):
        sketches = regrouped(y_true, y_prob, data, by, cluster, scale, options)
    else:
        sketches, cluster = scanned_groups(y_true, y_prob, data, by, cluster, scale, options)
    groups = _assessed(sketches, cluster, margin, float(confidence), correction, limit, seed)
    if asked is None:
        return groups
    parts = {} if cluster is None else _parts(sketches, groups.by, cluster)
    samples = {
        key: Sample(groups.sketches[key], one, parts=list(parts.get(key, {}).values()))
        for key, one in groups.items()
    }
    if rows is not None:
        samples |= {key: replace(samples[key], **own) for key, own in rows() if key in samples}
    return replace(groups, groups=tuple(_profiled(one, samples, asked) for one in groups.groups))


def _profiled(
    group: GroupAssessment, samples: Mapping[Any, Sample], profile: Profile
) -> GroupAssessment:
    if group.assessment is None:
        return group
    found = profile.measured(samples[group.key])
    return replace(group, assessment=replace(group.assessment, profile=found))


def _rows_by_group(
    y_true: Any, y_prob: Any, by: Any, cluster: Any, options: InputOptions
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The rows of each group, and their clusters, as a Sample has them."""
    pairs = as_pairs(y_true, y_prob, **options)
    columns = by.values() if isinstance(by, Mapping) else [by]
    if hasattr(by, "columns"):
        columns = [by[name] for name in by.columns]
    place, keys = indexed(
        zip(*(as_column(c, "by", dates=True).tolist() for c in columns), strict=True)
    )
    units = None if cluster is None else as_column(cluster, "cluster", dates=True)
    passed, numbers = place.size, np.arange(place.size)
    if pairs.kept is not None:
        numbers = numbers[pairs.kept]
        place, units = place[pairs.kept], None if units is None else units[pairs.kept]
    for number, key in enumerate(keys):
        at = np.flatnonzero(place == number)
        if at.size < 2:
            continue
        own = pairs.select(at)
        codes = None if units is None else cluster_codes(units[at], own.n, own.weight)
        yield (
            key if len(key) > 1 else key[0],
            {"pairs": own, "clusters": codes, "parts": (), "places": (numbers[at], passed)},
        )


def _require_limit(limit: int | None) -> None:
    if limit is not None:
        require_count("limit", limit)


def _assessed(
    sketches: Sketches,
    cluster: str | None,
    margin: float | None,
    confidence: float,
    correction: Correction,
    limit: int | None,
    seed: int,
) -> GroupAssessments:
    names = tuple(name for name in sketches.by if name != cluster)
    if not names or (cluster is not None and cluster not in sketches.by):
        raise InputError(
            "must be one of the columns that group the sketches, beside another to group by",
            argument="cluster", seen=cluster,
            cure="They are grouped by: {names}.", names=", ".join(sketches.by),
        )  # fmt: skip
    parts = _limited(_parts(sketches, names, cluster), limit, cluster is not None)
    totals = {key: Sketches(own, by="part").total() for key, own in parts.items()}
    groups: dict[Any, GroupAssessment] = {}
    progress = Progress(len(totals), doing="assessing")
    for key, sketch in totals.items():
        progress.advance(1, sketch.n)
        why, clusters = "" if sketch.n >= 2 else "fewer than two rows", None
        if cluster is not None:
            own = [part for part in parts[key].values() if part.total_weight > 0]
            clusters = partial(ClusterResiduals.of_sketches, sketches=own)
            why = why or ("" if len(own) >= 2 else "fewer than two clusters")
        if why:
            groups[key] = GroupAssessment(key, sketch.n, None, why=why)
            continue
        assessment, rejection = assessment_and_rejection(
            sketch, clusters, margin=margin, confidence=confidence, seed=seed
        )
        detectable = detectable_error(rejection, level=1.0 - confidence)
        groups[key] = GroupAssessment(key, sketch.n, assessment, detectable)
    progress.close()
    if not any(group.assessment for group in groups.values()):
        units = "rows" if cluster is None else "clusters"
        raise TooFewRows(
            "an assessment needs two {units} or more in a group, and no group has them",
            seen=max((group.n for group in groups.values()), default=0),
            saying="the largest has {} rows",
            cure="Group by fewer columns, or pass more rows.",
            units=units,
        )
    return GroupAssessments(
        by=names,
        groups=worst_first(_corrected(groups.values(), correction)),
        correction=correction,
        clustered=cluster is not None,
        confidence=confidence,
        seed=seed,
        sketches=totals,
    )


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


def _parts(
    sketches: Sketches, names: Sequence[str], cluster: str | None
) -> dict[Any, dict[Any, Sketch]]:
    """The sketches that make up each group, by cluster."""
    places = [sketches.by.index(name) for name in names]
    last = None if cluster is None else sketches.by.index(cluster)
    parts: dict[Any, dict[Any, Sketch]] = {}
    for key, sketch in sketches.items():
        values = key if len(sketches.by) > 1 else (key,)
        group = tuple(values[place] for place in places)
        own = parts.setdefault(group if len(group) > 1 else group[0], {})
        unit = len(own) if last is None else values[last]
        own[unit] = own.get(unit, 0) + sketch
    return parts


def _limited(
    parts: Mapping[Any, Mapping[Any, Sketch]], limit: int | None, clustered: bool
) -> Mapping[Any, Mapping[Any, Sketch]]:
    """The largest groups in their order, and all others as one more, by cluster."""
    if limit is None or len(parts) <= limit + 1:
        return parts
    rows = {key: sum(sketch.n for sketch in own.values()) for key, own in parts.items()}
    largest = set(sorted(parts, key=lambda key: -rows[key])[:limit])
    shown = {key: own for key, own in parts.items() if key in largest}
    others: dict[Any, Sketch] = {}
    for key in [key for key in parts if key not in largest]:
        for unit, sketch in parts[key].items():
            place = unit if clustered else (key, unit)
            others[place] = others.get(place, 0) + sketch
    return {**shown, Others(len(parts) - limit): others}
