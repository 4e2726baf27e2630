"""`assess_by`: the assessment of every group of rows, corrected for the number of groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence, require_count
from calibrant._format import group_text
from calibrant.data.arrays import as_array, as_column
from calibrant.data.rows import (
    InputOptions,
    Rows,
    as_rows,
    has_classes,
    is_frame,
    require_alone,
    require_same_index,
)
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch, as_sketch, warn_of_hard_labels
from calibrant.data.sketches import Sketches, Stacked, is_summed
from calibrant.errors import InputError, TooFewRows, invalid
from calibrant.inference.assess import assessed, require_margin, warn_of_few_units
from calibrant.inference.clusters import ClusterResiduals, cluster_codes, clusters_with_weight
from calibrant.inference.compare import models_of, require_arrays
from calibrant.inference.correction import Correction, adjusted_p_values, require_correction
from calibrant.inference.dependence import warn_of_repeated_rows
from calibrant.inference.groups import GroupAssessment, GroupAssessments, Others, worst_first
from calibrant.inference.null_noise import has_weight
from calibrant.inference.planning import detectable_error
from calibrant.inference.profile import Profile, Sample, as_profile
from calibrant.io.from_data import from_data
from calibrant.io.group_keys import indexed
from calibrant.io.progress import Progress
from calibrant.io.request import name_of_predictions, require_columns
from calibrant.io.scan import class_columns, scan, sketches_of_classes

NO_WEIGHT = "no row has weight"
"""Why a group is not assessed."""
Parts = Mapping[Any, Mapping[Any, Sketch]]
"""Sketches of each group, by cluster."""


def assess_by(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    by: Any = None,
    names: Sequence[str] | None = None,
    cluster: Any = None,
    margin: float | None = None,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    limit: int | None = None,
    scale: str | Scale | None = None,
    profile: str | Profile | None = None,
    **options: Unpack[InputOptions],
) -> GroupAssessments:
    """Assessments of every group, corrected for the number of groups.

    Parameters
    ----------
    y_true : array, str or Sketches
        Outcomes, 0 or 1; the name of their column in `data`; or sketches by group, as `scan` gives
        them, and no `y_prob`.
    y_prob : array or str, or mapping or frame of several models
        Predicted probabilities of outcome 1, or the name of their column; of several models, name to
        predictions or a frame: each model is a group, crossed with those of `by`.
    data : frame, files or other source, optional
        Whatever `scan` reads.
    by : array, mapping, frame or names
        The group of every row; several such arrays by name are crossed. With `data`, a name or a list of
        names. Of Sketches, some of their columns: the others are added up.
    names : sequence of str, optional
        Names of the models in the columns of an array.
    cluster : array or str, optional
        What makes rows dependent; see `assess`. With `data` or Sketches, the name of a column.
    margin, confidence, scale
        As in `assess`.
    correction : {"holm", "bh", "bonferroni", "none"}
        For the number of groups. "holm" keeps the chance of any false finding below 1 - `confidence`;
        "bh" (Benjamini and Hochberg) keeps the expected share of false ones among the findings below it.
    limit : int, optional
        Assess this many of the largest groups, and all others together as one more.
    profile : str or Profile, optional
        The numbers your field asks for; see `assess`. From `data` and Sketches as far as a sketch of
        each group goes.
    **options
        How to read the rows: `sample_weight`, `pos_label`, `from_logits`, `from_logprobs`, `percent`,
        `labels`, `on_invalid`, `multiclass`, `classes` (see `calibrant.data.InputOptions`).

    Returns
    -------
    GroupAssessments
        From group to Assessment, the worst first. Print it for a table; `.summary` is a few sentences;
        `.groups` has those with too few rows too; `.random_effects` is what all say together.

    Examples
    --------
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
    if limit is not None:
        require_count("limit", limit)
    asked = None if profile is None else as_profile(profile)
    if names is not None:
        require_arrays(data, names)
        y_prob = models_of(y_prob, names)
    if data is None and _has_models(y_prob, options):
        y_true, y_prob, by, cluster, options = _models(y_true, y_prob, by, cluster, scale, options)
    rows, unit = None, cluster
    if is_summed(y_true):
        require_alone(y_true, y_prob, {"data": data, **options})  # type: ignore[typeddict-unknown-key]
        y_true, data = None, y_true
    if data is None:
        require_same_index(y_true=y_true, cluster=cluster, **_named("by", by))
        sketches, unit = _of_arrays(y_true, y_prob, by, cluster, scale, options)
        if unit is None and (cluster is not None or asked is not None):
            rows = _Rows.of(y_true, y_prob, by, cluster, options)
    else:
        sketches = _of_data(y_true, y_prob, data, by, cluster, scale, options)
    parts = _largest(_parts_of(sketches, unit), limit, clustered=unit is not None)
    samples = _Samples(parts, rows, cluster)
    warn_of_hard_labels(samples.totals.values(), stacklevel=3)
    columns = tuple(name for name in sketches.by if unit is None or name != unit)
    groups = _assessed(columns, samples, margin, float(confidence), correction)
    multiclass = options.get("multiclass")
    if multiclass is None and data is None and has_classes(y_prob, None, options.get("classes")):
        multiclass = "confidence"
    if multiclass in ("confidence", "top_label"):
        groups = groups.of_confidence()
    if asked is None:
        return groups
    return groups.changed(
        lambda key, one: replace(one, profile=asked.measured(samples.sample(key, one)))
    )


def _assessed(
    by: tuple[str, ...],
    samples: _Samples,
    margin: float | None,
    confidence: float,
    correction: Correction,
) -> GroupAssessments:
    totals = samples.totals
    number = 1 if correction == "none" else sum(sketch.n >= 2 for sketch in totals.values())
    level = (1.0 - confidence) / max(number, 1)  # which a group must reach where no other does
    progress = Progress(len(totals), doing="assessing")
    groups, fewest = [], None
    for key, sketch in totals.items():
        why, clusters = "" if sketch.n >= 2 else "fewer than two rows", None
        if not has_weight(sketch):
            why = NO_WEIGHT
        if not why:
            try:
                clusters = samples.clusters(key)
            except TooFewRows:
                why = "fewer than two clusters"
        if why:
            groups.append(GroupAssessment(key, sketch.n, None, why=why))
        else:
            assessment, test, _ = assessed(sketch, clusters, margin=margin, confidence=confidence)
            detectable = detectable_error(test, level=level)
            if fewest is None or test.cells.units < fewest[0].cells.units:
                fewest = test, f" of group {group_text(key)}"
            groups.append(GroupAssessment(key, sketch.n, assessment, detectable))
        progress.advance(1, sketch.n)
    progress.close()
    if fewest is not None:
        warn_of_few_units(*fewest, stacklevel=4)
    if groups and all(group.why == NO_WEIGHT for group in groups):
        raise InputError("`sample_weight` must not be zero everywhere.")
    assessments = [group.assessment for group in groups if group.assessment is not None]
    if not assessments:
        units = "rows" if samples.cluster is None else "clusters"
        largest = max((group.n for group in groups), default=0)
        raise TooFewRows(
            f"no group has two {units} or more; the largest has {largest} rows.",
            hint="Group by fewer columns, or pass more rows.",
        )
    if len(assessments) > 1 and correction != "none":
        adjusted = iter(adjusted_p_values([one.p_value for one in assessments], correction))
        groups = [
            replace(group, assessment=group.assessment.corrected(next(adjusted)))
            if group.assessment is not None
            else group
            for group in groups
        ]
    return GroupAssessments(
        by=by,
        groups=worst_first(groups),
        correction=correction,
        clustered=samples.cluster is not None,
        confidence=confidence,
        sketches=totals,
    )


# -- rows of the groups ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """Arrays with the group and the cluster of each row, and its place among all rows that were passed."""

    pairs: Rows
    group: NDArray[np.int64]
    number: Mapping[Any, int]
    units: NDArray[Any] | None
    places: NDArray[np.int64]
    passed: int

    @classmethod
    def of(cls, y_true: Any, y_prob: Any, by: Any, cluster: Any, options: InputOptions) -> _Rows:
        pairs = as_rows(y_true, y_prob, **options)
        columns = [as_column(c, "by", dates=True).tolist() for c in _groupings(by).values()]
        group, keys = indexed(zip(*columns, strict=True))
        number = {key if len(key) > 1 else key[0]: place for place, key in enumerate(keys)}
        units = None if cluster is None else as_column(cluster, "cluster", dates=True)
        if units is not None:
            cluster_codes(units, group.size)  # says what is wrong with it
        kept = np.arange(group.size) if pairs.kept is None else pairs.kept
        units = None if units is None else units[kept]
        return cls(pairs, group[kept], number, units, kept, group.size)

    def at(self, keys: Collection[Any]) -> NDArray[np.int64]:
        """Places of the rows of these groups."""
        wanted = np.zeros(len(self.number), dtype=np.bool_)
        wanted[[self.number[key] for key in keys]] = True
        return np.flatnonzero(wanted[self.group])


class _Samples:
    """Rows of each group, and what is independent in it: rows or clusters."""

    def __init__(self, parts: Parts, rows: _Rows | None, cluster: Any) -> None:
        self.parts, self.rows, self.cluster = parts, rows, cluster
        self.totals = {key: Sketches(own, by="part").total() for key, own in parts.items()}

    def clusters(self, key: Any) -> ClusterResiduals | None:
        """Clusters of a group, where there are any; TooFewRows where there is one."""
        if self.cluster is None:
            return None
        scale = self.totals[key].scale
        if self.rows is None:
            return ClusterResiduals.of_sketches(scale, self._stacked(key))
        pairs, codes, _ = self._own(key)
        assert codes is not None
        return ClusterResiduals.of(scale, pairs, codes)

    def sample(self, key: Any, assessment: Any) -> Sample:
        """The rows of a group, for the quantities of a profile."""
        if self.rows is None:
            parts: Sequence[Sketch] = [] if self.cluster is None else self._stacked(key)
            return Sample(self.totals[key], assessment, parts=parts)
        pairs, codes, places = self._own(key)
        return Sample(self.totals[key], assessment, pairs, codes, places=places)

    def _stacked(self, key: Any) -> Stacked:
        return clusters_with_weight(Stacked.of(self.parts[key].values()))

    def _own(self, key: Any) -> tuple[Rows, Any, tuple[NDArray[np.int64], int]]:
        rows = self.rows
        assert rows is not None
        others = [one for one in rows.number if one not in self.parts]
        at = rows.at(others if isinstance(key, Others) else [key])
        own = rows.pairs.select(at)
        codes = None if rows.units is None else cluster_codes(rows.units[at], own.n, own.weight)
        return own, codes, (rows.places[at], rows.passed)


def _parts_of(sketches: Sketches, cluster: str | None) -> Parts:
    """Sketches of each group, by cluster."""
    names = [name for name in sketches.by if cluster is None or name != cluster]
    if not names or (cluster is not None and cluster not in sketches.by):
        raise invalid(
            "cluster",
            "be one of the columns that group the sketches, beside another",
            cluster,
            hint=f"They are grouped by: {', '.join(sketches.by)}.",
        )
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


def _largest(parts: Parts, limit: int | None, *, clustered: bool) -> Parts:
    """The largest groups in their order, and all others as one more."""
    if limit is None or len(parts) <= limit + 1:
        return parts

    def size(key: Any) -> tuple[int, int]:
        # Classes against the rest have the same number of rows: those with the most cases are the largest.
        own = parts[key].values()
        return -sum(one.n for one in own), -sum(int(one.counts[:, 1].sum()) for one in own)

    largest = set(sorted(parts, key=size)[:limit])
    others: dict[Any, Sketch] = {}
    for key in [key for key in parts if key not in largest]:
        for unit, sketch in parts[key].items():
            place = unit if clustered else (key, unit)
            others[place] = others.get(place, 0) + sketch
    shown = {key: own for key, own in parts.items() if key in largest}
    return {**shown, Others(len(parts) - limit): others}


# -- sketches by group -------------------------------------------------------------------------


def _of_data(
    y_true: Any,
    y_prob: Any,
    data: Any,
    by: Any,
    cluster: Any,
    scale: str | Scale | None,
    options: Any,
) -> Sketches:
    """Sketches of the columns of `data` by group and cluster; sketches stand for themselves."""
    if not is_summed(data) and isinstance(by, list | tuple | str) and not by:
        by = None
    sketches = from_data(y_true, y_prob, data, options, by=by, cluster=cluster, scale=scale)
    if sketches.by in ((), (cluster,)):
        raise invalid(
            "by",
            "name a column of the data, as nothing else makes groups",
            by,
            hint="Without groups, use `calibrant.assess`.",
        )
    if scale is not None and sketches is data:
        as_sketch(sketches.total(), scale=scale)  # refuses another
    return cast(Sketches, sketches)


def _of_arrays(
    y_true: Any,
    y_prob: Any,
    by: Any,
    cluster: Any,
    scale: str | Scale | None,
    options: InputOptions,
) -> tuple[Sketches, str | None]:
    """Sketches of arrays by group, and the column of clusters where classes have one.

    Otherwise the rows say which cluster they are in, so that there need not be a sketch for each.
    """
    if y_true is None or y_prob is None:
        as_sketch(y_true, y_prob, **options)  # says what is missing
    settings: dict[str, Any] = dict(options)
    weight = settings.pop("sample_weight", None)
    multiclass = options.get("multiclass")
    if has_classes(y_prob, multiclass, options.get("classes")):
        views = ("top_label", "classwise")
        if by is None and cluster is None and multiclass in views:
            sketches = sketches_of_classes(y_true, y_prob, scale=scale, **options)
            return cast(Sketches, sketches), None
        columns, names, settings = class_columns(y_true, y_prob, options)
        groups = {} if by is None and settings["multiclass"] != "confidence" else _groupings(by)
        y_names: Any = names
        clusters = {} if cluster is None else {"cluster": cluster}
    else:
        if cluster is None:
            unweighted = {k: v for k, v in options.items() if k != "sample_weight"}
            warn_of_repeated_rows(as_rows(y_true, y_prob, **unweighted), stacklevel=4)  # type: ignore[arg-type]
        groups, y_names, clusters = _groupings(by), "y_prob", {}
        columns = {"y_true": y_true, "y_prob": y_prob}
    if weight is not None:
        columns["sample_weight"] = weight
        settings["sample_weight"] = "sample_weight"
    named = {f"by[{name!r}]": column for name, column in groups.items()}
    sketches = scan(
        {**columns, **clusters, **named},
        y_true="y_true",
        y_prob=y_names,
        by=dict(zip(map(str, groups), named, strict=True)) or None,
        cluster="cluster" if clusters else None,
        scale=PROBABILITY if scale is None else scale,
        **settings,
    )
    return cast(Sketches, sketches), "cluster" if clusters else None


def _has_models(y_prob: Any, options: InputOptions) -> bool:
    """True of a mapping or a frame, whose columns are models unless they are said to be classes."""
    of_classes = options.get("multiclass") is not None or options.get("classes") is not None
    return isinstance(y_prob, Mapping) or (is_frame(y_prob) and not of_classes)


def _models(
    y_true: Any,
    y_prob: Any,
    by: Any,
    cluster: Any,
    scale: str | Scale | None,
    options: InputOptions,
) -> tuple[Any, Any, Any, Any, InputOptions]:
    """Arguments in which each model is a group: sketches or, by groups or clusters, rows."""
    if is_frame(y_prob):
        require_columns(y_prob.columns, y_prob.columns, "`y_prob`")
    models = (
        y_prob if isinstance(y_prob, Mapping) else {name: y_prob[name] for name in y_prob.columns}
    )
    if not models:
        raise invalid("y_prob", "have a column for each model", y_prob)
    beside = {**_named("y_prob", y_prob), "cluster": cluster, **_named("by", by)}
    require_same_index(y_true=y_true, **beside)
    if by is None and cluster is None:
        sketches = {k: as_sketch(y_true, p, scale=scale, **options) for k, p in models.items()}
        return Sketches(sketches, by="model"), None, None, None, {}
    number = len(models)
    columns = dict(options)
    if columns.get("sample_weight") is not None:
        columns["sample_weight"] = np.tile(np.asarray(columns["sample_weight"]), number)
    names = np.empty(number, dtype=object)
    names[:] = list(models)
    groups = {} if by is None else _groupings(by)
    rows = len(np.asarray(y_true))
    repeated = {
        name: as_column(column, "by", dates=True).tolist() * number
        for name, column in groups.items()
    }
    return (
        np.tile(np.asarray(y_true), number),
        np.concatenate([np.atleast_1d(as_array(p, f"y_prob[{k!r}]")) for k, p in models.items()]),
        {name_of_predictions("model", repeated): np.repeat(names, rows).tolist(), **repeated},
        None if cluster is None else np.tile(np.asarray(cluster), number),
        columns,  # type: ignore[return-value]
    )


def _named(argument: str, columns: Any) -> dict[str, Any]:
    """Columns of an argument by their text: the argument alone, or an entry of a mapping."""
    if not isinstance(columns, Mapping):
        return {argument: columns}
    return {f"{argument}[{name!r}]": column for name, column in columns.items()}


def _groupings(by: Any) -> dict[Any, Any]:
    """Arrays with the group of every row, by name."""
    if hasattr(by, "columns"):
        return {name: by[name] for name in by.columns}
    if isinstance(by, Mapping) and by:
        return dict(by)
    if isinstance(by, str | Mapping) or not hasattr(by, "__iter__"):
        raise invalid(
            "by",
            "give the group of every row, or several such arrays by name",
            by,
            hint="Without groups, use `calibrant.assess`.",
        )
    return {"group": by}
