"""The contents of a report as plain text and tables, in reading order; HTML and Markdown lay it out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, isnan
from typing import Any

import numpy as np

from calibrant._format import decimals, p_text, percent
from calibrant.inference.assessment import FINDINGS, Finding
from calibrant.reporting.charts import FEW_ENOUGH_FOR_BANDS, MOST_EXPLORED, MOST_SHOWN
from calibrant.reporting.summary import GroupSummary, Summary
from calibrant.reporting.wording import (
    HEADLINES,
    confidence_text,
    gain_text,
    level_of,
    meaning,
    number,
    region_text,
    told_apart,
)

__all__ = ["view_of"]

SIGNS = {"bad": "✗", "unsure": "?", "good": "✓"}
CURVE_STEPS = 11
MOST_DESCRIBED = 5
MEASURE_NAMES = {
    "binned_ece": "Binned ECE, 15 bins of equal width",
    "debiased_ece": "Debiased ECE (root mean square)",
    "weak_calibration_error": "Weak calibration error",
    "kernel_calibration_error": "Kernel calibration error",
    "ecce_range": "Cumulative error (ECCE-R)",
    "miscalibration": "Miscalibration part of the Brier score (CORP)",
}
SOFTWARE = (
    "The calibrant authors. calibrant: measure, show and repair the calibration of probabilities. "
    "Version {}."
)
PAPER = (
    "Jarosław Błasiok and Preetum Nakkiran. Smooth ECE: Principled Reliability Diagrams via Kernel "
    "Smoothing. ICLR 2024, arXiv:2309.12236."
)


def view_of(summary: Summary) -> dict[str, Any]:
    """Everything that is shown, as strings."""
    groups = summary.groups
    several = len(groups) > 1
    verdict = _verdict_on_several(summary) if several else _verdict_on_one(groups[0])
    return {
        "title": summary.title,
        "version": summary.version,
        **verdict,
        "alternative": " ".join(_alternative(group) for group in groups[:MOST_DESCRIBED]),
        "legend": _legend(len(groups)),
        "caption": _caption(groups),
        "explore": _explore(summary),
        "table": _table(summary) if several else None,
        "groups": [_particulars(group) for group in groups],
        "terms": _terms(),
        "provenance": _provenance(summary),
        "command": summary.command,
        "citation": f"{SOFTWARE.format(summary.version)} The measure: {PAPER}",
    }


def _verdict_on_one(group: GroupSummary) -> dict[str, Any]:
    return {
        "level": level_of(group.assessment.finding),
        "headline": HEADLINES[group.assessment.finding],
        "sentences": meaning(group),
        "figures": _figures(group),
    }


def _verdict_on_several(summary: Summary) -> dict[str, Any]:
    findings = [group.assessment.finding for group in summary.groups]
    rejected = [p <= 1.0 - summary.groups[0].assessment.confidence for p in summary.adjusted]
    bad = sum(f == "miscalibrated" and r for f, r in zip(findings, rejected, strict=True))
    alone = findings.count("miscalibrated")
    slight, unsure = findings.count("slightly off"), findings.count("inconclusive")
    worst = max(summary.groups, key=lambda group: group.assessment.smooth_ece)
    found = worst.assessment
    sentences = [
        f"The largest error is that of {worst.name}: SmoothECE {number(found.smooth_ece)}, "
        f"interval {number(found.interval.low)} to {number(found.interval.high)}, noise floor "
        f"{number(found.noise_floor.value)}."
    ]
    if alone > bad:
        sentences.append(
            f"Taken by {'itself' if alone == 1 else 'themselves'}, {alone} would be called "
            f"miscalibrated; among {len(findings)} that are looked at, {alone - bad} of these may be "
            "chance."
        )
    if slight:
        sentences.append(f"For {slight} of them the error is more than chance explains, but small.")
    if unsure:
        sentences.append(f"For {unsure} of them the data leave room for doubt either way.")
    if summary.omitted:
        sentences.append(
            f"Only the {len(summary.groups) - 1} largest groups are shown one by one; the other "
            f"{summary.omitted:,} are taken together."
        )
    if summary.too_small:
        sentences.append(f"Too few rows to say anything: {summary.too_small:,} more.")
    return {
        "level": "bad" if bad else "unsure" if unsure or slight or alone else "good",
        "headline": (
            f"{bad} of {len(findings)} {'is' if bad == 1 else 'are'} miscalibrated, also after "
            "correction for their number."
            if bad
            else f"None of the {len(findings)} is clearly miscalibrated."
        ),
        "sentences": sentences,
        "figures": [],
    }


def _figures(group: GroupSummary) -> list[dict[str, str]]:
    found = group.assessment
    ratio = found.observed_expected
    return [
        {
            "label": "SmoothECE",
            "value": number(found.smooth_ece),
            "detail": f"{confidence_text(found.interval.confidence)} interval {number(found.interval.low)} "
            f"to {number(found.interval.high)}",
        },
        {
            "label": "Noise floor",
            "value": number(found.noise_floor.value),
            "detail": "what chance alone would show",
        },
        {
            "label": "p-value",
            "value": p_text(found.p_value),
            "detail": "of the hypothesis “calibrated”",
        },
        {
            "label": "Observed / expected",
            "value": decimals(ratio.value, places=2),
            "detail": f"{decimals(ratio.low, places=2)} to {decimals(ratio.high, places=2)}"
            if ratio.mean_prediction > 0
            else str(ratio),
        },
        {
            "label": "Rows",
            "value": f"{found.n:,}",
            "detail": f"event rate {percent(found.event_rate)}",
        },
    ]


def _table(summary: Summary) -> dict[str, Any]:
    names = ("Rows", "SmoothECE", "Interval", "Floor", "p", "p, corrected", "Obs./exp.")
    first = ", ".join(summary.by) or "Name"
    return {
        "title": "All of them, side by side",
        "caption": "Press a heading to sort by it.",
        "columns": [
            {"name": first, "number": False},
            *({"name": name, "number": True} for name in names),
            {"name": "Verdict", "number": False},
        ],
        "rows": [_row(group, p) for group, p in zip(summary.groups, summary.adjusted, strict=True)],
        "notes": [
            "The interval, sorted by its upper end, is for the error of the population. The verdict "
            "judges each by itself: among many calibrated ones about one in twenty has a p-value "
            "below 0.05 by chance. The corrected p-value (Holm) takes their number into account. Floor, p "
            "and the others are explained below."
        ],
    }


def _row(group: GroupSummary, adjusted: float) -> list[dict[str, Any]]:
    found = group.assessment
    level = level_of(found.finding)
    numbers = [
        (f"{found.n:,}", float(found.n)),
        (number(found.smooth_ece), found.smooth_ece),
        (f"{number(found.interval.low)} – {number(found.interval.high)}", found.interval.high),
        (number(found.noise_floor.value), found.noise_floor.value),
        (p_text(found.p_value), found.p_value),
        (p_text(adjusted), adjusted),
        (decimals(found.observed_expected.value, places=2), found.observed_expected.value),
    ]
    return [
        {"text": group.name, "value": None, "level": ""},
        *({"text": text, "value": _sorted_by(value), "level": ""} for text, value in numbers),
        {"text": _tag(found.finding), "value": None, "level": level},
    ]


def _sorted_by(value: float) -> str:
    """The number as JavaScript reads it."""
    return "NaN" if isnan(value) else "Infinity" if isinf(value) else f"{value:.6g}"


def _tag(finding: Finding) -> str:
    return f"{SIGNS[level_of(finding)]} {finding}"


def _particulars(group: GroupSummary) -> dict[str, Any]:
    found = group.assessment
    return {
        "name": group.name,
        "line": f"SmoothECE {number(found.smooth_ece)}, {_tag(found.finding)}",
        "alternative": _alternative(group),
        "regions": region_text(group),
        "no_regions": "No part of the range stands out.",
        "curve": _curve(group),
        "repair": _repair(group),
        "measures": [
            {
                "name": MEASURE_NAMES.get(line.name, line.name),
                "value": number(line.value),
                "misses": "not computed: it needs the single rows"
                if np.isnan(line.value)
                else line.misses,
            }
            for line in group.measures
        ],
        "notes": list(group.notes),
    }


def _curve(group: GroupSummary) -> dict[str, Any]:
    diagram = group.diagram
    band = (diagram.band.low, diagram.band.high) if diagram.resamples else ()
    wanted = np.linspace(0.0, 1.0, CURVE_STEPS)
    places = [int(np.argmin(np.abs(diagram.grid - t))) for t in wanted]
    rows = [
        [
            number(float(diagram.grid[k])),
            *(
                number(float(column[k]))
                for column in (diagram.regression, diagram.smoothed_predictions, *band)
            ),
            f"{int(diagram.rows[k]):,}",
        ]
        for k in dict.fromkeys(places)
        if diagram.rows[k] > 0
    ]
    ends = ["Band from", "to"] if band else []
    columns = ["Prediction", "Observed", "Reference", *ends, "Rows nearby"]
    return {"columns": columns, "rows": rows}


def _repair(group: GroupSummary) -> dict[str, Any]:
    repair, clustered = group.repair, group.assessment.clusters is not None
    if repair is None:
        return {
            "sentence": "Not estimated: it needs rows of both outcomes in either half of them"
            + (
                ", and the single rows, to keep those of one cluster together."
                if clustered
                else "."
            ),
            "rows": [],
            "caption": "",
        }
    before, after = repair.before, repair.after
    names = ("SmoothECE", "Brier score", "Log loss")
    values = zip(names, vars(before).values(), vars(after).values(), strict=True)
    return {
        "sentence": gain_text(before, after),
        "caption": f"The {'clusters' if clustered else 'rows'} were dealt into two halves at random; "
        "each was recalibrated by a map that was fitted on the other.",
        "rows": [
            {"name": name, **dict(zip(("before", "after"), told_apart(*pair), strict=True))}
            for name, *pair in values
        ],
    }


def _alternative(group: GroupSummary) -> str:
    where = " ".join(region_text(group)) or "The curve follows the reference."
    return (
        f"Reliability diagram of {group.name}: observed frequency against predicted probability, "
        f"{group.assessment.n:,} rows, SmoothECE {number(group.assessment.smooth_ece)}. {where}"
    )


def _legend(groups: int) -> str:
    if groups <= MOST_SHOWN:
        return "Shown"
    return (
        f"Shown: of {groups}, the {MOST_SHOWN} with the largest error. Tick others to see them too."
    )


def _caption(groups: Sequence[GroupSummary]) -> str:
    bands = all(group.diagram.resamples for group in groups)
    if len(groups) > 1:
        few = len(groups) <= FEW_ENOUGH_FOR_BANDS
        band = ", the band around it its sensitivity to the sample" if bands and few else ""
        return (
            "How often the event came, against what was predicted: one curve for each. The width of a "
            f"solid curve is the density of predictions{band}. A calibrated model runs along the "
            "diagonal; below it too much is promised, above it too little. Point at a curve to read it."
        )
    band = (
        ", and the grey band how far chance would take it."
        if bands
        else "; there is no band of chance, which would take rows of one cluster for independent."
    )
    return (
        "How often the event came, against what was predicted. The diagonal is where the curve of "
        f"a calibrated model would run{band} The shaded "
        "area between the two, weighted by the width of the curve, is the SmoothECE. "
        "Point at the curve to read it."
    )


def _explore(summary: Summary) -> str:
    few = (
        f" Shown are the {MOST_EXPLORED} with the largest error."
        if len(summary.groups) > MOST_EXPLORED
        else ""
    )
    return (
        "Smoothing less follows the noise, smoothing more hides the error. At 0 the bandwidth equals "
        f"the error itself, which leaves nothing to choose.{few}"
    )


def _terms() -> list[dict[str, str]]:
    return [
        {"word": word, "meaning": meaning}
        for word, meaning in (
            ("SmoothECE", "How far the predictions are from being calibrated, in units of "
             "probability: 0.05 means five percentage points. There are no bins and nothing to tune."),
            ("Interval", "Where the error of the whole population lies, with the confidence stated."),
            ("Noise floor", "What a perfectly calibrated model would show with this many rows, by "
             "chance alone. A value near it is no reason for doubt."),
            ("p-value", "How often a calibrated model would show an error this large or larger."),
            ("Observed / expected", "Number of events divided by the sum of the predictions: below "
             "1, more was promised than came."),
            ("Band around the curve", "How much the curve would move if the rows were drawn again. It "
             "is not an interval for the true curve, which smoothing bends too."),
            ("Verdict", "; ".join(f"“{word}”: {said}" for word, said in FINDINGS.items()) + "."),
        )
    ]  # fmt: skip


def _provenance(summary: Summary) -> list[str]:
    resamples = max(group.diagram.resamples for group in summary.groups)
    drawn = f", {resamples:,} resamples" if resamples else ""
    return [
        f"calibrant {summary.version}, seed {summary.seed}, scale {summary.scale}{drawn}. "
        "The same data and seed give the same page, byte for byte.",
        "Every interval and p-value takes the rows for independent, unless clusters were given. "
        "Several predictions of one event are not independent.",
        "This page holds all it needs; it sends no request.",
    ]
