"""`calibrant assess`: one line per model or group."""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Sequence
from typing import Any

import typer

from calibrant.cli.gates import Gate, Limit, judged
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import Given, Part, given, limited, spoken
from calibrant.cli.table import Column, decimal, p_text, show_table
from calibrant.cli.text import count, note
from calibrant.inference.assess import assess
from calibrant.inference.assessment import Assessment

__all__ = ["assessed", "plain", "result_of", "run_assess"]

SCHEMA = "calibrant.assess/1"
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
    for option, text in (("--fail-above", fail_above), ("--require-below", require_below)):
        if text is not None:
            Limit.parsed(text, option)  # before the files are read
    found = given(files, reading, grouping, measuring)
    found = limited(found, grouping.max_groups, measuring.scale)
    results = assessed(found, measuring)
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


def assessed(found: Given, measuring: Measuring) -> list[Assessment]:
    """The assessment of each part."""
    with spoken(found.columns.spoken if found.columns else {}):
        return [_assessed(part, measuring) for part in found.parts]


def _assessed(part: Part, measuring: Measuring) -> Assessment:
    options: dict[str, Any] = dict(part.options)
    return assess(
        *part.arguments,
        confidence=measuring.confidence,
        seed=measuring.seed,
        scale=measuring.scale,
        **options,
    )


def _show(found: Given, results: Sequence[Assessment], confidence: float, *, details: bool) -> None:
    if details:
        for part, result in zip(found.parts, results, strict=True):
            print(f"{part.name}\n{result}\n" if found.by else f"{result}")
        return
    names = [
        Column(name, [str(part.group[name]) for part in found.parts], is_name=True)
        for name in found.by
    ]
    ends = [(result.interval.low, result.interval.high) for result in results]
    show_table(
        [
            *names,
            Column("rows", [f"{result.n:,}" for result in results]),
            Column("smECE", [decimal(result.smooth_ece) for result in results]),
            Column("interval", [_span(*end) for end in ends]),
            Column("floor", [decimal(result.noise_floor.value) for result in results]),
            Column("p", [p_text(result.p_value) for result in results]),
            Column("O/E", [_ratio(result.observed_expected.value) for result in results]),
            Column(
                "verdict",
                ["miscalibrated" if result.miscalibrated else "no evidence" for result in results],
                styles=["bold red" if result.miscalibrated else "green" for result in results],
            ),
        ],
        caption=CAPTION.format(f"{100 * confidence:g}%"),
    )
    if len(results) == 1:
        print(f"\n{results[0].verdict[:1].upper()}{results[0].verdict[1:]}.")
    dropped = {reason: 0 for result in results for reason in result.dropped}
    for result in results:
        for reason, rows in result.dropped.items():
            dropped[reason] += rows
    if dropped:
        note(
            "Dropped: " + "; ".join(f"{count(k, 'row')}, {why}" for why, k in dropped.items()) + "."
        )


def _span(low: float, high: float) -> str:
    digits = 3 if high >= 0.01 else 4
    return f"{low:.{digits}f}–{high:.{digits}f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _document(
    found: Given, measuring: Measuring, results: Sequence[Assessment], gates: Sequence[Gate]
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


def result_of(part: Part, result: Assessment) -> dict[str, Any]:
    """One assessment in the schema of the command line, which stays as it is."""
    ratio = result.observed_expected
    return {
        "group": {name: plain(value) for name, value in part.group.items()},
        "n": result.n,
        "dropped": dict(result.dropped),
        "clusters": result.clusters,
        "smooth_ece": result.smooth_ece,
        "debiased": result.debiased,
        "interval": [result.interval.low, result.interval.high],
        "noise_floor": result.noise_floor.value,
        "p_value": result.p_value,
        "observed_expected": plain(ratio.value),
        "observed_expected_interval": [plain(ratio.low), plain(ratio.high)],
        "relative_to_event_rate": plain(result.relative),
        "mean_prediction": result.mean_prediction,
        "event_rate": result.event_rate,
        "direction": str(result.direction),
        "brier": result.brier.value,
        "log_loss": plain(result.log_loss.value),
        "bandwidth": result.bandwidth,
        "certificate": result.certificate.total,
        "miscalibrated": result.miscalibrated,
        "verdict": result.verdict,
    }


def plain(value: Any) -> Any:
    """A value that JSON has; infinities and NaN are null, other types their text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
