"""`calibrant assess`: one line per model or group."""

from __future__ import annotations

import json as json_format
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from calibrant._format import decimals, p_text
from calibrant.cli.gates import Gate, Limit, judged
from calibrant.cli.inputs import Loaded, load_sketches
from calibrant.cli.output import note, note_dropped, shown
from calibrant.cli.shared_options import Grouping, Measuring, Profiling, Reading
from calibrant.cli.table import LONGEST_NAME, Column, show_table
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option
from calibrant.inference.assess import assess
from calibrant.inference.assess_by import assess_by
from calibrant.inference.assessment import FINDINGS, Assessment
from calibrant.inference.groups import GroupAssessment, GroupAssessments, Order, Others
from calibrant.measures.result_record import plain

__all__ = ["Assessed", "assessed", "group_names", "result_of", "run_assess"]

SCHEMA = "calibrant.assess/1"
STYLES = {"miscalibrated": "bold red", "slightly off": "yellow", "no evidence": "green"}
CAPTION = "interval: {}; floor: if calibrated; p: of calibration{}; O/E: observed/expected"
WIDTH = 80
Assessed = GroupAssessments | Assessment


def run_assess(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    fail_above: str | None = None,
    require_below: str | None = None,
    sort: Order = "worst",
    details: bool = False,
    json: bool = False,
    profiling: Profiling | None = None,
) -> None:
    """Measure every group, print, and judge the gates."""
    if json and details:
        raise InputError(
            "has every detail already", argument="json", cure="Leave out {details}.",
            details=Option("details"),
        )  # fmt: skip
    for option, text in (("--fail-above", fail_above), ("--require-below", require_below)):
        if text is not None:
            Limit.parsed(text, option)  # before the files are read
    loaded = load_sketches(files, reading, grouping, measuring)
    if loaded.columns is not None and not grouping.per_file:
        loaded.columns.hint()
    finding = assessed(loaded, grouping, measuring)
    if profiling is not None and profiling != Profiling():
        from calibrant.cli.profile import with_profile

        finding = with_profile(finding, files, loaded, reading, grouping, profiling)
    groups = _groups(finding, sort)
    gates = judged(fail_above, require_below, [group.assessment for group in groups])
    if json:
        print(json_format.dumps(_document(loaded, measuring, finding, groups, gates), indent=2))
    else:
        _show(finding, groups, measuring.confidence, details=details)
    for gate in gates:
        note(gate.sentence([group.name for group in groups]))
    failed = [gate.code for gate in gates if not gate.passed]
    if failed:
        raise typer.Exit(min(failed))


def assessed(loaded: Loaded, grouping: Grouping, measuring: Measuring) -> Assessed:
    """The assessment of all groups, or of the one sample that there is."""
    settings: dict[str, Any] = {"confidence": measuring.confidence, "seed": measuring.seed}
    sketches = loaded.sketches
    settings["scale"] = measuring.scale if measuring.scale != "probability" else None
    rows = loaded.answers
    sample: dict[str, Any] = {"y_true": sketches} if rows is None else rows.arguments
    if rows is None and isinstance(sketches, Sketches):
        sample["cluster"] = loaded.cluster
    if not loaded.by:
        return assess(**sample, **settings)
    finding = assess_by(
        **sample,
        by=None if rows is None else dict(rows.columns),
        correction=grouping.correction,
        limit=grouping.max_groups,
        **settings,
    )
    others = next((group for group in finding.groups if isinstance(group.key, Others)), None)
    if others is not None:
        everything = others.stands_for + len(finding.groups) - 1
        note(
            f"There are {everything:,} groups. The {grouping.max_groups} largest are shown, the others "
            "summed up. `--max-groups` shows more."
        )
    return finding


def _groups(finding: Assessed, sort: Order) -> tuple[GroupAssessment, ...]:
    if isinstance(finding, GroupAssessments):
        return finding.sorted(sort)
    return (GroupAssessment((), finding.n, finding),)


def _show(
    finding: Assessed, groups: Sequence[GroupAssessment], confidence: float, *, details: bool
) -> None:
    several = isinstance(finding, GroupAssessments)
    if details:
        for group in groups:
            print(f"{shown(group.name)}\n{group.assessment or group.why}\n" if several else finding)
    else:
        _show_table(finding, groups, confidence)
        for group in groups:
            if group.assessment is not None and group.assessment.profile is not None:
                print(f"\n{shown(group.name)}" if several else "")
                print(group.assessment.profile)
    if isinstance(finding, GroupAssessments):
        print("\n" + textwrap.fill(finding.summary, WIDTH))
        for word, meaning in FINDINGS.items():
            if word != "miscalibrated" and any(group.finding == word for group in groups):
                note(f"{word}: {meaning}.")
    else:
        print(f"\n{finding.verdict[:1].upper()}{finding.verdict[1:]}.")
    _note_dropped([group.assessment for group in groups if group.assessment is not None])


def _note_dropped(assessments: Sequence[Assessment]) -> None:
    dropped: dict[str, int] = {}
    for assessment in assessments:
        for reason, rows in assessment.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + rows
    note_dropped(dropped)


def _show_table(finding: Assessed, groups: Sequence[GroupAssessment], confidence: float) -> None:
    names = []
    if isinstance(finding, GroupAssessments):
        columns = zip(*group_names(finding.by, groups), strict=True)
        names = [
            Column(name, list(cells), is_name=True)
            for name, cells in zip(finding.by, columns, strict=True)
        ]
    cells = [_cells(group) for group in groups]
    rows, value, interval, floor, p, ratio, verdict = map(list, zip(*cells, strict=True))
    corrected = any(g.assessment and g.assessment.corrected_p_value is not None for g in groups)
    show_table(
        [
            *names,
            Column("rows", rows),
            Column("error", value),
            Column("interval", interval),
            Column("floor", floor, is_spare=True),
            Column("p", p),
            Column("O/E", ratio, is_spare=True),
            Column("verdict", verdict, styles=[STYLES.get(word, "") for word in verdict]),
        ],
        caption=CAPTION.format(f"{100 * confidence:g}%", ", corrected" if corrected else ""),
    )


def group_names(by: Sequence[str], groups: Sequence[GroupAssessment]) -> list[tuple[str, ...]]:
    """What each group has in each column, for people; different values read differently."""
    texts: dict[tuple[int, type, str], str] = {}
    taken: dict[tuple[int, str], int] = {}
    rows = []
    for group in groups:
        key = group.key
        if isinstance(key, Others):
            rows.append((str(key), *[""] * (len(by) - 1)))
            continue
        values = key if len(by) > 1 else (key,)
        row = []
        for place, value in enumerate(values):
            known = (place, type(value), str(value))
            if known not in texts:
                text = shown(value, LONGEST_NAME)
                taken[place, text] = taken.get((place, text), 0) + 1
                again = taken[place, text]
                texts[known] = text if again == 1 else f"{text} ({again})"
            row.append(texts[known])
        rows.append(tuple(row))
    return rows


def _cells(group: GroupAssessment) -> tuple[str, ...]:
    one = group.assessment
    if one is None:
        return f"{group.n:,}", "–", "–", "–", "–", "–", group.finding
    low, high = one.interval.low, one.interval.high
    return (
        f"{one.n:,}",
        _short(one.smooth_ece),
        f"{_short(low)}–{_short(high)}",
        _short(one.noise_floor.value),
        p_text(one.judged_p_value, short=True),
        decimals(one.observed_expected.value, places=2),
        one.finding,
    )


def _short(value: float) -> str:
    """Three decimals, which fit a terminal, or two digits where these would show nothing."""
    if value == 0:
        return "0"
    return f"{value:.3f}" if value >= 0.0005 else decimals(value, places=3)


def _document(
    loaded: Loaded,
    measuring: Measuring,
    finding: Assessed,
    groups: Sequence[GroupAssessment],
    gates: Sequence[Gate],
) -> dict[str, Any]:
    chosen = loaded.columns
    groups_finding = finding if isinstance(finding, GroupAssessments) else None
    others = next((group.stands_for for group in groups if isinstance(group.key, Others)), 0)
    return {
        "schema": SCHEMA,
        "files": loaded.files,
        "columns": None
        if chosen is None
        else {
            "prob": list(chosen.prob),
            "label": chosen.label,
            "weight": chosen.weight,
            "by": list(chosen.by),
            "cluster": chosen.cluster,
        },
        "log": loaded.log,
        "settings": {
            "scale": measuring.scale,
            "confidence": measuring.confidence,
            "seed": measuring.seed,
        },
        "summary": list(groups_finding.sentences) if groups_finding else [f"{finding.verdict}."],
        "correction": groups_finding.correction if groups_finding else None,
        "results": [result_of(group, loaded.by) for group in groups],
        "groups_summed_up": others,
        "gates": [gate.to_dict() for gate in gates],
    }


def result_of(group: GroupAssessment, by: Sequence[str]) -> dict[str, Any]:
    """One group in the schema of the command line; null where there is no assessment."""
    one = group.assessment
    key = group.key
    values = (str(key), *[""] * (len(by) - 1)) if isinstance(key, Others) else key
    values = values if len(by) > 1 or isinstance(key, Others) or not by else (values,)
    known = {name: None if one is None else plain(read(one)) for name, read in RESULT.items()}
    return {
        "group": {name: _json_value(value) for name, value in zip(by, values, strict=True)},
        "n": group.n if one is None else one.n,
        **known,
        "finding": group.finding,
        **({} if one is None or one.profile is None else {"profile": one.profile.to_dict()}),
    }


def _json_value(value: Any) -> Any:
    """A value that JSON has; infinities and NaN are null, other types their text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


RESULT: Mapping[str, Callable[[Assessment], Any]] = {
    "dropped": lambda r: dict(r.dropped),
    "clusters": lambda r: r.clusters,
    "smooth_ece": lambda r: r.smooth_ece,
    "interval": lambda r: [r.interval.low, r.interval.high],
    "noise_floor": lambda r: r.noise_floor.value,
    "p_value": lambda r: r.p_value,
    "corrected_p_value": lambda r: r.corrected_p_value,
    "observed_expected": lambda r: r.observed_expected.value,
    "observed_expected_interval": lambda r: [r.observed_expected.low, r.observed_expected.high],
    "relative_to_event_rate": lambda r: r.relative,
    "mean_prediction": lambda r: r.mean_prediction,
    "event_rate": lambda r: r.event_rate,
    "direction": lambda r: str(r.direction),
    "brier": lambda r: r.brier.value,
    "log_loss": lambda r: r.log_loss.value,
    "bandwidth": lambda r: r.bandwidth,
    "certificate": lambda r: r.certificate.total,
    "miscalibrated": lambda r: r.miscalibrated,
    "finding": lambda r: r.finding,
    "verdict": lambda r: r.verdict,
}
"""What is said of each group, in the order in which it is printed."""
