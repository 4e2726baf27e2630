"""`calibrant assess`: one line per model or group, and gates for jobs that must stop."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import typer

import calibrant as cal
from calibrant._format import decimals, p_text
from calibrant.cli.errors import LIMIT_EXCEEDED, LIMIT_NOT_SHOWN
from calibrant.cli.options import Grouping, Measuring, Profiling, Reading, Testing, as_numbers, verb
from calibrant.cli.output import listed, note, note_dropped, show_json, show_table, show_text, shown
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.cli._inputs import Samples, Source
    from calibrant.inference.assessment import Assessment
    from calibrant.inference.groups import GroupAssessment

__all__ = ["assess", "assessed", "read_profiled"]

WIDTH = 80


@verb(
    "calibrant assess preds.csv",
    "calibrant assess preds.parquet --prob p --label y --by model --fail-above 0.05",
    "calibrant assess answers.jsonl --by model",
    "calibrant assess preds.csv --profile clinical --thresholds 0.1,0.2",
)
def assess(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    testing: Testing,
    measuring: Measuring,
    profiling: Profiling,
    fail_above: str | None = None,
    require_below: str | None = None,
    sort: Literal["worst", "given", "rows"] = "worst",
    details: bool = False,
    json: bool = False,
) -> None:
    """Measure calibration, one line per model or group.

    Prints SmoothECE with its interval, the noise floor of a calibrated model, the p-value of calibration,
    observed over expected events, and a verdict.

    Gates
    -----
    fail_above : LIMIT
        Exit with 3 if the error is certainly above this (the whole interval is). A number, or a share of
        the event rate such as 20%.
    require_below : LIMIT
        Exit with 4 unless the error is certainly below this (the whole interval is).

    Output
    ------
    sort : -
        Order of the groups: the worst first, by name, or the largest first. [worst]
    details : -
        Print everything about each group.
    """
    given = (("fail_above", fail_above), ("require_below", require_below))
    from calibrant.cli._inputs import Source

    limits = {name: Limit.parsed(text, name) for name, text in given if text is not None}
    samples = read_profiled(Source.of(files, reading), grouping, measuring, profiling)
    finding = assessed(samples, testing, profiling)
    groups = _by_name(finding, samples, sort)
    if json:
        show_json(finding.to_dict())
    elif details:
        for name, group in groups.items():
            text = group.assessment or group.finding
            show_text(f"{name}\n{text}\n" if samples.by else text)
    else:
        _show(finding, groups, samples, testing.correction)
    failed = [code for code in (_judged(n, limit, groups) for n, limit in limits.items()) if code]
    if failed:
        raise typer.Exit(min(failed))


def read_profiled(
    source: Source, grouping: Grouping, measuring: Measuring, profiling: Profiling
) -> Samples:
    """Samples of the files; rows as arrays where a profile is asked for."""
    from calibrant.cli._inputs import read_samples
    from calibrant.profiles import PROFILES

    for kind, make in PROFILES.items():
        for name in inspect.signature(make).parameters:
            if getattr(profiling, name, None) and profiling.profile != kind:
                raise InputError(f"`{name}` needs `--profile {kind}`.")
    rows = None if profiling.profile is None else [profiling.grades, profiling.climatology]
    return read_samples(source, grouping, measuring, rows=rows)


def assessed(
    samples: Samples, testing: Testing, profiling: Profiling | None = None, limit: int | None = None
) -> Any:
    """Assessment of all rows, or GroupAssessments of every group."""
    scale = samples.measuring.scale
    settings: dict[str, Any] = {
        "confidence": samples.measuring.confidence,
        "scale": scale if scale != "probability" else None,
    }
    profile = _profile(samples, profiling, ())
    finding: Any
    of_confidence = samples.source.reading.multiclass in ("confidence", "top-label")
    if not samples.by:
        finding = cal.assess(**samples.arguments, **settings, profile=profile)
        return finding.of_confidence() if of_confidence else finding
    most = testing.max_groups if limit is None else limit
    settings_by = {"correction": testing.correction, "limit": most, "profile": profile}
    finding = cal.assess_by(**samples.arguments, **settings, **settings_by)
    combined = sum(one.stands_for for one in finding.groups if one.stands_for > 1)
    if combined:
        note(f"The {most} largest groups are shown, {combined:,} others combined (`--max-groups`).")
    if of_confidence:
        finding = finding.of_confidence()
    if profile is None or not samples.abstained:
        return finding

    def with_profile(key: Any, one: Assessment) -> Assessment:
        key = _key(key, samples)
        if key not in samples.groups:
            return one
        own = _profile(samples, profiling, key)  # abstentions are those of each group
        found: Any = cal.assess(**samples.groups[key], **settings, profile=own)
        return replace(one, profile=found.profile)

    return finding.changed(with_profile)


def _profile(samples: Samples, profiling: Profiling | None, key: tuple[Any, ...]) -> Any:
    """Profile that was asked for, with its columns, and the abstentions of a group."""
    from calibrant.profiles import PROFILES

    if profiling is None or profiling.profile not in PROFILES:
        return None if profiling is None else profiling.profile
    make = PROFILES[profiling.profile]
    values: dict[str, Any] = {}
    for name in inspect.signature(make).parameters:
        value = getattr(profiling, name, None)
        if name == "abstained":
            value = samples.abstained.get(key, 0)
        elif name in ("thresholds", "cuts"):
            value = as_numbers(value, name)
        elif name in ("grades", "climatology") and value is not None:
            value = samples.content.columns[value]  # type: ignore[union-attr]
        values |= {} if value is None else {name: value}
    return make(**values)


def _key(key: Any, samples: Samples) -> tuple[Any, ...]:
    return key if len(samples.by) > 1 and isinstance(key, tuple) else (key,)


def _by_name(finding: Any, samples: Samples, sort: Any) -> dict[str, GroupAssessment]:
    """Groups by their names in sentences."""
    from calibrant.inference.groups import GroupAssessment

    if not samples.by:
        return {"all rows": GroupAssessment((), finding.n, finding)}
    return {
        shown(group.name)
        if group.stands_for > 1
        else samples.named(_key(group.key, samples)): group
        for group in finding.sorted(sort)
    }


def _show(
    finding: Any, groups: Mapping[str, GroupAssessment], samples: Samples, correction: str
) -> None:
    by, percent = samples.by, 100 * samples.measuring.confidence
    corrected = f" ({correction})" if len(groups) > 1 else ""
    headings = ("rows", "error", "interval", "floor", f"p{corrected}", "O/E", "verdict")
    cells = zip(*map(_cells, groups.values()), strict=True)
    columns = dict(zip(headings, map(list, cells), strict=True))
    column = ", ".join(by)
    found = {name: one.assessment for name, one in groups.items() if one.assessment is not None}
    wrong = [one.assessment is not None and one.assessment.miscalibrated for one in groups.values()]
    show_table(
        ({column: [shown(one.name) for one in groups.values()]} if by else {}) | columns,
        text=(column, "verdict"),
        styles=["bold red" if one else "" for one in wrong],
        caption=f"interval: {percent:g}%; floor: noise floor; O/E: observed/expected",
    )
    for name, one in found.items():
        if one.profile is not None:
            show_text(f"\n{name}\n{one.profile}" if by else one.profile)
    print("\n" + textwrap.fill(finding.summary if by else f"{finding.verdict}.", WIDTH))
    dropped: Counter[str] = Counter()
    for one in found.values():
        dropped.update(one.dropped)
    note_dropped(dropped)


def _cells(group: GroupAssessment) -> tuple[str, ...]:
    one = group.assessment
    if one is None:
        return f"{group.n:,}", *("–" * 5), group.finding

    def short(value: float) -> str:
        return f"{value:.3f}" if value >= 0.0005 else decimals(value, places=3) if value else "0"

    return (
        f"{one.n:,}",
        short(one.smooth_ece),
        f"{short(one.interval.low)}–{short(one.interval.high)}",
        short(one.noise_floor.value),
        p_text(one.p_value_judged, short=True),
        decimals(one.observed_expected.value, places=2),
        group.finding,
    )


@dataclass(frozen=True)
class Limit:
    """Largest error of a gate: a number, or a share of the event rate."""

    value: float
    relative: bool

    @classmethod
    def parsed(cls, text: str, argument: str) -> Limit:
        """The limit that was typed.

        Examples
        --------
        >>> Limit.parsed("20%", "fail_above")
        Limit(value=0.2, relative=True)
        """
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
        value = float(match[1]) if match else 0.0
        if not match or value <= 0 or (value >= 1 and not match[2]):
            raise InputError(
                f"`{argument}` must be a number between 0 and 1, or a share of the event rate such as 20%; "
                f"got {text!r}."
            )
        return cls(value / 100, True) if match[2] else cls(value, False)

    def position(self, one: Assessment) -> str:
        """Side of the limit on which the whole interval lies."""
        limit = self.value * one.event_rate if self.relative else self.value
        if one.interval.low > limit:
            return "above"
        return "below" if one.interval.high <= limit else "inconclusive"

    def __str__(self) -> str:
        return f"{100 * self.value:g}% of the event rate" if self.relative else f"{self.value:g}"


def _judged(argument: str, limit: Limit, groups: Mapping[str, GroupAssessment]) -> int:
    """Print what a gate found in each group; its exit code, or 0 where it passed."""
    found: dict[str, list[str]] = {"above": [], "below": [], "inconclusive": [], "few": []}
    for name, group in groups.items():
        at = "few" if group.assessment is None else limit.position(group.assessment)
        found[at].append(name)
    fails = ("above",) if argument == "fail_above" else ("above", "inconclusive", "few")
    failed = any(found[at] for at in fails)
    text = [f"--{argument.replace('_', '-')} {limit}: {'FAILED' if failed else 'passed'}."]
    for at, what in (
        ("above", "Shown to be above it"),
        ("inconclusive", "Inconclusive, the interval holds the limit"),
        ("few", "Too few rows to say"),
    ):
        if found[at]:
            text.append(f"{what}: {listed(found[at])}.")
    note(" ".join(text))
    if not failed:
        return 0
    return LIMIT_EXCEEDED if argument == "fail_above" else LIMIT_NOT_SHOWN
