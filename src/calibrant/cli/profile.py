"""`--profile`: what a field of use asks for, of every group; rows are read again, where there are rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibrant import profiles
from calibrant.cli.columns import require_column
from calibrant.cli.group_rows import GroupRows
from calibrant.cli.inputs import Loaded
from calibrant.cli.output import note
from calibrant.cli.shared_options import Grouping, Profiling, Reading
from calibrant.cli.standard_input import opened
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option
from calibrant.inference.assessment import Assessment
from calibrant.inference.groups import GroupAssessment, GroupAssessments, Others
from calibrant.inference.profile import Profile, Sample

__all__ = ["as_thresholds", "rows_by_group", "with_profile"]

MOST_ROWS = 20_000_000
OWN_OPTIONS = {
    "clinical": ("thresholds", "hosmer_lemeshow"),
    "credit": ("grades", "cuts"),
    "weather": ("climatology",),
}


def as_thresholds(texts: Sequence[str] | None, name: str = "thresholds") -> list[float]:
    """Numbers that were repeated, or joined with commas."""
    numbers = []
    for text in (part for given in texts or () for part in given.split(",")):
        try:
            numbers.append(float(text))
        except ValueError:
            raise InputError(
                "must be numbers between 0 and 1",
                argument=name,
                seen=text,
                cure="Pass numbers separated by commas, such as 0.1,0.2.",
            ) from None
    return numbers


def rows_by_group(
    files: Sequence[str],
    loaded: Loaded,
    reading: Reading,
    grouping: Grouping,
    columns: Sequence[str] = (),
) -> dict[tuple[Any, ...], GroupRows]:
    """The rows of each group by its values; none where sketches or classes were read."""
    if loaded.answers is not None and not columns:
        return loaded.answers.by(loaded.by)
    chosen = loaded.columns
    plain = chosen is not None and len(chosen.prob) == 1 and not reading.multiclass
    if chosen is None or not plain or grouping.per_file or reading.from_logprobs or "-" in files:
        if columns:
            raise InputError(
                "a column beside predictions and outcomes needs files of rows",
                cure="Pass files of rows.",
            )
        return {}
    if sum(sketch.n for sketch in loaded.groups().values()) > MOST_ROWS:
        note(f"More than {MOST_ROWS:,} rows: the profile is that of their sketch.")
        return {}
    from calibrant.io.find_files import find_files
    from calibrant.io.rows import read_rows
    from calibrant.io.tables import columns_of

    paths = opened(files)
    present = columns_of(find_files(paths, separator=reading.sep)[0])
    for name in columns:
        require_column(name, present, paths[0])
    extra = [*chosen.by, *([chosen.cluster] if chosen.cluster else []), *columns]
    rows = read_rows(
        paths,
        y_true=chosen.label,
        y_prob=chosen.prob,
        sample_weight=chosen.weight,
        columns=list(dict.fromkeys(extra)),
        named_labels=reading.pos_label is not None,
        sep=reading.sep,
    )
    options = {k: v for k, v in reading.options.items() if k not in ("sample_weight", "sep")}
    if reading.pos_label is not None and rows.y_true.dtype.kind in "biuf":
        options["pos_label"] = float(reading.pos_label)
    if rows.sample_weight is not None:
        options["sample_weight"] = rows.sample_weight
    everything = GroupRows(
        rows.y_true,
        rows.y_probs[chosen.prob[0]],
        None if chosen.cluster is None else rows.groups[chosen.cluster],
        options,
        {name: rows.groups[name] for name in (*chosen.by, *columns)},
    )
    return everything.by(chosen.by)


def _refuse_foreign(profiling: Profiling) -> None:
    """Refuse an option of another profile, or of one where none is asked for."""
    for kind, names in OWN_OPTIONS.items():
        for name in names:
            if getattr(profiling, name) is not None and profiling.profile != kind:
                raise InputError(
                    "needs {profile}",
                    argument=name,
                    profile=Option("profile", kind),
                    cure="Add {profile}, or leave it out.",
                )


def with_profile(
    finding: GroupAssessments | Assessment,
    files: Sequence[str],
    loaded: Loaded,
    reading: Reading,
    grouping: Grouping,
    profiling: Profiling,
) -> GroupAssessments | Assessment:
    """The same assessments, each with what the profile lists."""
    _refuse_foreign(profiling)
    if profiling.profile is None:
        return finding
    extra = [name for name in (profiling.grades, profiling.climatology) if name is not None]
    groups = rows_by_group(files, loaded, reading, grouping, extra)

    def measured(key: tuple[Any, ...], assessment: Assessment, sketch: Sketch) -> Assessment:
        rows = groups.get(key)
        if isinstance(key[0] if key else None, Others) and loaded.cluster is not None:
            return assessment  # the clusters of groups that were summed up are not at hand
        profile = _profile(profiling, rows, loaded.abstained.get(key, 0))
        if rows is None:
            parts = _parts(loaded, key)
            return replace(
                assessment, profile=profile.measured(Sample(sketch, assessment, parts=parts))
            )
        pairs, codes = rows.pairs()
        return replace(
            assessment, profile=profile.measured(Sample(sketch, assessment, pairs, codes))
        )

    sketches = loaded.groups()
    if isinstance(finding, Assessment):
        return measured((), finding, sketches[()])
    return replace(
        finding,
        groups=tuple(
            group if group.assessment is None else _replaced(group, finding, measured)
            for group in finding.groups
        ),
    )


def _replaced(group: GroupAssessment, finding: GroupAssessments, measured: Any) -> GroupAssessment:
    key = group.key if len(finding.by) > 1 else (group.key,)
    assessment = measured(key, group.assessment, finding.sketches[group.key])
    return replace(group, assessment=assessment)


def _parts(loaded: Loaded, key: tuple[Any, ...]) -> list[Sketch]:
    """The sketches of the clusters of a group, where these are all there is."""
    if loaded.cluster is None or not isinstance(loaded.sketches, Sketches):
        return []
    by = loaded.sketches.by
    places = [by.index(name) for name in loaded.by]
    parts = []
    for whole, sketch in loaded.sketches.items():
        values = whole if len(by) > 1 else (whole,)
        if tuple(values[place] for place in places) == key and sketch.total_weight > 0:
            parts.append(sketch)
    return parts


def _profile(profiling: Profiling, rows: GroupRows | None, abstained: int) -> Profile:
    if profiling.profile == "clinical":
        return profiles.clinical(
            thresholds=as_thresholds(profiling.thresholds),
            hosmer_lemeshow=bool(profiling.hosmer_lemeshow),
        )
    if profiling.profile == "credit":
        grades = rows.columns[profiling.grades] if profiling.grades and rows else None
        cuts = None if profiling.cuts is None else as_thresholds(profiling.cuts, "cuts")
        return profiles.credit(grades=grades, cuts=cuts)
    if profiling.profile == "weather":
        climate = rows.columns[profiling.climatology] if profiling.climatology and rows else None
        return profiles.weather(climatology=climate)
    if profiling.profile == "llm":
        return profiles.llm(abstained=abstained)
    raise AssertionError(profiling.profile)  # every name of the option has a branch above
