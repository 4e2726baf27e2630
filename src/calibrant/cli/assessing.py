"""`calibrant assess`: one line per model or group."""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from calibrant.cli.gates import Gate, Limit, judged
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import Given, Part, given, limited, spoken
from calibrant.cli.table import Column, decimal, p_text, show_table
from calibrant.cli.text import count, note
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import assess
from calibrant.inference.assessment import FINDINGS, Assessment

__all__ = ["TOO_FEW", "assessed", "plain", "result_of", "run_assess"]

SCHEMA = "calibrant.assess/1"
TOO_FEW = "too few rows"
STYLES = {"miscalibrated": "bold red", "slightly off": "yellow", "no evidence": "green"}
CAPTION = "interval: {}; floor: if calibrated; p: of calibration; O/E: observed/expected"


def run_assess(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    fail_above: str | None,
    require_below: str | None,
    details: bool,
    json: bool,
) -> None:
    """Measure every part, print, and judge the gates."""
    if json and details:
        raise InputError("`--json` has every detail already; leave out `--details`.")
    for option, text in (("--fail-above", fail_above), ("--require-below", require_below)):
        if text is not None:
            Limit.parsed(text, option)  # before the files are read
    found = given(files, reading, grouping, measuring)
    if found.columns is not None and not grouping.per_file:
        found.columns.hint()
    found = limited(found, grouping.max_groups, measuring.scale)
    results = assessed(found, measuring)
    if len(results) > 1 and not any(results):
        raise InputError("no group has two rows or more, which an assessment needs.")
    gates = judged(fail_above, require_below, results)
    if json:
        print(json_format.dumps(_document(found, measuring, results, gates), indent=2))
    else:
        _show(found, results, measuring.confidence, details=details)
    for gate in gates:
        note(gate.sentence(found.names))
    failed = [gate.code for gate in gates if not gate.passed]
    if failed:
        raise typer.Exit(min(failed))


def assessed(found: Given, measuring: Measuring) -> list[Assessment | None]:
    """The assessment of each part; None for one among several that has too few rows."""
    with spoken(found.columns.spoken if found.columns else {}):
        return [_assessed(part, measuring, alone=not found.by) for part in found.parts]


def _assessed(part: Part, measuring: Measuring, *, alone: bool) -> Assessment | None:
    options: dict[str, Any] = dict(part.options)
    try:
        return assess(
            *part.arguments,
            confidence=measuring.confidence,
            seed=measuring.seed,
            scale=measuring.scale,
            **options,
        )
    except TooFewRows:
        if alone:
            raise
        return None


def _show(
    found: Given, results: Sequence[Assessment | None], confidence: float, *, details: bool
) -> None:
    if details:
        for part, result in zip(found.parts, results, strict=True):
            print(f"{part.name}\n{result or TOO_FEW}\n" if found.by else f"{result}")
    else:
        _show_table(found, results, confidence)
    able = [result for result in results if result is not None]
    _explain(able, several=bool(found.by))
    dropped = {reason: 0 for result in able for reason in result.dropped}
    for result in able:
        for reason, rows in result.dropped.items():
            dropped[reason] += rows
    if dropped:
        note(
            "Dropped: " + "; ".join(f"{count(k, 'row')}, {why}" for why, k in dropped.items()) + "."
        )


def _show_table(found: Given, results: Sequence[Assessment | None], confidence: float) -> None:
    names = [Column(name, found.values(name), is_name=True) for name in found.by]
    cells = [_cells(part, result) for part, result in zip(found.parts, results, strict=True)]
    rows, value, interval, floor, p, ratio, verdict = map(list, zip(*cells, strict=True))
    show_table(
        [
            *names,
            Column("rows", rows),
            Column("smECE", value),
            Column("interval", interval),
            Column("floor", floor, is_spare=True),
            Column("p", p),
            Column("O/E", ratio, is_spare=True),
            Column("verdict", verdict, styles=[STYLES.get(word, "") for word in verdict]),
        ],
        caption=CAPTION.format(f"{100 * confidence:g}%"),
    )


def _cells(part: Part, result: Assessment | None) -> tuple[str, ...]:
    if result is None:
        return f"{part.n:,}", "–", "–", "–", "–", "–", TOO_FEW
    return (
        f"{result.n:,}",
        decimal(result.smooth_ece),
        _span(result.interval.low, result.interval.high),
        decimal(result.noise_floor.value),
        p_text(result.p_value),
        _ratio(result.observed_expected.value),
        result.finding,
    )


def _explain(results: Sequence[Assessment], *, several: bool) -> None:
    """What the verdicts mean, and why test and interval may seem to disagree."""
    if not several:
        verdict = results[0].verdict
        print(f"\n{verdict[:1].upper()}{verdict[1:]}.")
        if results[0].remark:
            print(results[0].remark)
        return
    for word, meaning in FINDINGS.items():
        if word != "miscalibrated" and any(result.finding == word for result in results):
            note(f"{word}: {meaning}.")
    if any(result.remark for result in results):
        note(
            "miscalibrated beside an interval that starts at 0: the test asks whether there is any "
            "error, the interval how large it is, and near 0 the interval is the more cautious."
        )


def _span(low: float, high: float) -> str:
    digits = 3 if high >= 0.01 else 4
    return f"{low:.{digits}f}–{high:.{digits}f}" if low else f"0–{high:.{digits}f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _document(
    found: Given, measuring: Measuring, results: Sequence[Assessment | None], gates: Sequence[Gate]
) -> dict[str, Any]:
    chosen = found.columns
    return {
        "schema": SCHEMA,
        "files": found.files,
        "columns": None
        if chosen is None
        else {
            "prob": list(chosen.prob),
            "label": chosen.label,
            "weight": chosen.weight,
            "by": list(chosen.by),
            "cluster": chosen.cluster,
        },
        "log": found.log,
        "settings": {
            "scale": measuring.scale,
            "confidence": measuring.confidence,
            "seed": measuring.seed,
        },
        "results": [result_of(part, r) for part, r in zip(found.parts, results, strict=True)],
        "groups_summed_up": found.summed_up,
        "gates": [gate.to_dict() for gate in gates],
    }


def result_of(part: Part, result: Assessment | None) -> dict[str, Any]:
    """One assessment in the schema of the command line, which stays; null where there is none."""
    known = {name: None if result is None else read(result) for name, read in RESULT.items()}
    return {
        "group": {name: plain(value) for name, value in part.group.items()},
        "n": part.n if result is None else result.n,
        **known,
        **({"finding": TOO_FEW} if result is None else {}),
    }


def plain(value: Any) -> Any:
    """A value that JSON has; infinities and NaN are null, other types their text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


RESULT: Mapping[str, Callable[[Assessment], Any]] = {
    "dropped": lambda r: dict(r.dropped),
    "clusters": lambda r: r.clusters,
    "smooth_ece": lambda r: r.smooth_ece,
    "debiased": lambda r: r.debiased,
    "interval": lambda r: [r.interval.low, r.interval.high],
    "noise_floor": lambda r: r.noise_floor.value,
    "p_value": lambda r: r.p_value,
    "observed_expected": lambda r: plain(r.observed_expected.value),
    "observed_expected_interval": lambda r: [
        plain(r.observed_expected.low),
        plain(r.observed_expected.high),
    ],
    "relative_to_event_rate": lambda r: plain(r.relative),
    "mean_prediction": lambda r: r.mean_prediction,
    "event_rate": lambda r: r.event_rate,
    "direction": lambda r: str(r.direction),
    "brier": lambda r: r.brier.value,
    "log_loss": lambda r: plain(r.log_loss.value),
    "bandwidth": lambda r: r.bandwidth,
    "certificate": lambda r: r.certificate.total,
    "miscalibrated": lambda r: r.miscalibrated,
    "finding": lambda r: r.finding,
    "verdict": lambda r: r.verdict,
}
"""What is said of each group, in the order in which it is printed."""
