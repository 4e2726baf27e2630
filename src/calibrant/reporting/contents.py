"""The contents of a report as plain text and tables, in reading order; HTML and Markdown lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isinf, isnan
from typing import Any

import numpy as np

from calibrant._format import decimals, p_text, percent
from calibrant.inference.assessment import FINDINGS, Finding
from calibrant.reporting.charts import MOST_SHOWN
from calibrant.reporting.classes import classes_view
from calibrant.reporting.decisions import decisions_view
from calibrant.reporting.outcomes import outcome_view
from calibrant.reporting.profile import profile_view
from calibrant.reporting.sentences import (
    HEADLINES,
    confidence_text,
    gain_text,
    level_of,
    meaning,
    number,
    region_text,
    told_apart,
)
from calibrant.reporting.summary import GroupSummary, Summary, shown_names

__all__ = ["contents_of"]

SIGNS = {"bad": "✗", "unsure": "?", "good": "✓"}
CURVE_STEPS = 11
MOST_DESCRIBED = 5
MANY_ROWS = 12
"""A longer table gets a search and filters."""
GLOSSARY = {
    "SmoothECE": (
        "How far the predictions are from being calibrated, in units of probability: 0.05 "
        "means five percentage points. There are no bins and nothing to tune."
    ),
    "Interval": "Where the error of the whole population lies, with the confidence stated.",
    "Noise floor": (
        "What a perfectly calibrated model would show with this many rows, by chance alone. "
        "Chance explains a value near it."
    ),
    "p-value": "How often a calibrated model would show an error this large or larger.",
    "Observed / expected": (
        "Number of events divided by the sum of the predictions: below 1, more was promised "
        "than came."
    ),
    "Confidence band": "Where the curve of the whole population lies, smoothed as this one is.",
    "Consistency band": "Where the curve of a calibrated model would lie.",
    "Verdict": "; ".join(f"“{word}”: {said}" for word, said in FINDINGS.items()) + ".",
}
"""Words of a report and their meanings."""
FOREST = (
    "SmoothECE of each (dot) with its interval (line), the worst first. The pale bar is what chance "
    "alone would show with as many rows: chance explains an error inside it."
)
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


def contents_of(summary: Summary) -> dict[str, Any]:
    """Everything that is shown, as strings."""
    groups = summary.groups
    several = summary.finding is not None
    if several:
        verdict = _verdict(summary)
    else:
        verdict = _verdict_on_one(groups[0]) if groups else _verdict_on_outcomes(summary)
    return {
        "title": summary.title,
        "version": summary.version,
        **verdict,
        "sections": _sections(summary),
        "alternative": " ".join(_alternative(group) for group in groups[:MOST_DESCRIBED]),
        "caption": _caption(groups),
        "forest": FOREST if several else "",
        "noun": noun(summary),
        "nouns": noun(summary, plural=True),
        "table": _table(summary) if several else None,
        "comparison": _comparison(summary),
        "classes": classes_view(summary.classes, shown_names),
        "outcomes": [outcome_view(one) for one in summary.outcomes],
        "groups": [_particulars(group) for group in groups],
        "terms": _terms(),
        "provenance": _provenance(summary),
        "command": summary.command,
        "citation": f"{SOFTWARE.format(summary.version)} The measure: {PAPER}",
    }


def noun(summary: Summary, *, plural: bool = False) -> str:
    """Name of what is shown side by side: models, classes or groups."""
    by = summary.by[0] if len(summary.by) == 1 else ""
    one = {"model": "model", "class": "class", "predicted": "class"}.get(by, "group")
    return (one + ("es" if one.endswith("s") else "s")) if plural else one


def _sections(summary: Summary) -> list[tuple[str, str]]:
    """Anchor and name of each section, in order: the table of contents."""
    several = summary.finding is not None
    many = [("forest", f"All {noun(summary, plural=True)}"), ("table", "Table")] if several else []
    paired = [("comparison", "Comparison in pairs")] if summary.comparison is not None else []
    each = (
        [("each", f"Each {noun(summary)} in turn")]
        if several
        else [("where", "Where the error is")]
    )
    picture = [("diagram", "Reliability diagram")]
    own = [("classes", "Classes")] if summary.classes is not None else []
    numbers = range(1, len(summary.outcomes) + 1)
    other = [
        (f"outcome-{k}", outcome_view(one)["title"])
        for k, one in zip(numbers, summary.outcomes, strict=True)
    ]
    if not summary.groups:
        return other
    return [*many, *paired, *picture, *other, *own, *each, ("reading", "How to read this")]


def _comparison(summary: Summary) -> dict[str, Any] | None:
    """Differences of SmoothECE between models on the same rows, the clearest first."""
    found = summary.comparison
    if found is None:
        return None
    names = dict(zip(found.assessments, shown_names(found.assessments), strict=True))
    share = confidence_text(found.confidence)
    return {
        "sentence": f"Result: {found.verdict}.",
        "columns": ["Models", "Difference of SmoothECE", f"{share} interval", "p, adjusted"],
        "rows": [
            [
                f"{names[one.first]} less {names[one.second]}",
                number(one.value),
                f"{number(one.low)} to {number(one.high)}",
                p_text(one.adjusted_p_value),
            ]
            for one in found.differences
        ],
        "note": "Pairs are compared on the same rows. The interval leaves 0 exactly where the adjusted "
        f"p-value is at most {1 - found.confidence:.2g}.",
    }


def _verdict_on_one(group: GroupSummary) -> dict[str, Any]:
    return {
        "level": level_of(group.assessment.finding),
        "headline": HEADLINES[group.assessment.finding],
        "sentences": meaning(group),
        "figures": _figures(group),
    }


def _verdict_on_outcomes(summary: Summary) -> dict[str, Any]:
    """The verdict where there is nothing else than survival, quantiles or distributions."""
    first, *others = (f"{outcome_view(one)['title']}: {one.verdict}" for one in summary.outcomes)
    bad = any(one.miscalibrated for one in summary.outcomes)
    return {
        "level": "bad" if bad else "good",
        "headline": first,
        "sentences": [f"{text}." for text in others],
        "figures": [],
    }


def _verdict(summary: Summary) -> dict[str, Any]:
    """The words of the finding itself, and the group whose error is largest for certain."""
    finding = summary.finding
    assert finding is not None
    headline, *others = finding.sentences
    worst = summary.groups[0]
    one = worst.assessment
    largest = (
        f"{worst.name} has the largest error: SmoothECE {number(one.smooth_ece)}, interval "
        f"{number(one.interval.low)} to {number(one.interval.high)}, noise floor "
        f"{number(one.noise_floor.value)}."
    )
    if one.miscalibrated:
        largest += f" {worst.diagram.verdict.sentence}."
    rest = next((group for group in summary.groups if group.stands_for > 1), None)
    if rest is not None:
        others.append(
            f"The {len(summary.groups) - 1} largest groups are shown one by one; the other "
            f"{rest.stands_for:,} are taken together."
        )
    if len(finding) > len(summary.groups):
        others.append(f"The {len(summary.groups)} worst are shown, of {len(finding):,}.")
    levels = {level_of(group.assessment.finding) for group in summary.groups}
    unsure = "unsure" in levels or summary.too_few
    return {
        "level": "bad" if "bad" in levels else "unsure" if unsure else "good",
        "headline": headline,
        "sentences": [*others, largest],
        "figures": [],
    }


def _figures(group: GroupSummary) -> list[dict[str, str]]:
    one = group.assessment
    ratio = one.observed_expected
    return [
        {
            "label": "SmoothECE",
            "value": number(one.smooth_ece),
            "detail": f"{confidence_text(one.interval.confidence)} interval {number(one.interval.low)} "
            f"to {number(one.interval.high)}",
        },
        {
            "label": "Noise floor",
            "value": number(one.noise_floor.value),
            "detail": "what chance alone would show",
        },
        {
            "label": "p-value",
            "value": p_text(one.p_value),
            "detail": "of the hypothesis “calibrated”",
        },
        {
            "label": "Observed / expected",
            "value": decimals(ratio.value, places=2),
            "detail": f"{decimals(ratio.low, places=2)} to {decimals(ratio.high, places=2)}"
            if isfinite(ratio.value)
            else str(ratio),
        },
        {
            "label": "Rows",
            "value": f"{one.n:,}",
            "detail": f"event rate {percent(one.event_rate)}",
        },
    ]


def _table(summary: Summary) -> dict[str, Any]:
    names = ("Rows", "SmoothECE", "Interval", "Floor", "p", "p, adjusted", "Obs./exp.")
    first = ", ".join(summary.by) or "Name"
    empty: list[dict[str, Any]] = [{"text": "–", "value": "NaN", "level": ""}] * (len(names) - 1)
    small: list[list[dict[str, Any]]] = [
        [
            {"text": name, "value": None, "level": ""},
            {"text": f"{rows:,}", "value": str(rows), "level": ""},
            *empty,
            {"text": f"{SIGNS['unsure']} too few rows", "value": None, "level": "unsure"},
        ]
        for name, rows in summary.too_few
    ]
    rows = [*(_row(group) for group in summary.groups), *small]
    return {
        "title": f"All {noun(summary, plural=True)}",
        "caption": "The worst first. Press a heading to sort by it.",
        "filters": sorted({row[-1]["text"] for row in rows}) if len(rows) > MANY_ROWS else [],
        "columns": [
            {"name": first, "number": False},
            *({"name": name, "number": True} for name in names),
            {"name": "Verdict", "number": False},
        ],
        "rows": rows,
        "notes": [
            "The verdict goes by the adjusted p-value: among many calibrated ones about one in "
            "twenty has a p-value below 0.05 by chance. Intervals are for the error of the population "
            "and sort by their upper end."
        ],
    }


def _row(group: GroupSummary) -> list[dict[str, Any]]:
    one = group.assessment
    numbers = [
        (f"{one.n:,}", float(one.n)),
        (number(one.smooth_ece), one.smooth_ece),
        (f"{number(one.interval.low)} – {number(one.interval.high)}", one.interval.high),
        (number(one.noise_floor.value), one.noise_floor.value),
        (p_text(one.p_value), one.p_value),
        (p_text(one.p_value_judged), one.p_value_judged),
        (decimals(one.observed_expected.value, places=2), one.observed_expected.value),
    ]
    return [
        {"text": group.name, "value": None, "level": ""},
        *({"text": text, "value": _sorted_by(value), "level": ""} for text, value in numbers),
        {"text": _tag(one.finding), "value": None, "level": level_of(one.finding)},
    ]


def _sorted_by(value: float) -> str:
    """The number as JavaScript reads it."""
    return "NaN" if isnan(value) else "Infinity" if isinf(value) else f"{value:.6g}"


def _tag(finding: Finding) -> str:
    return f"{SIGNS[level_of(finding)]} {finding}"


def _particulars(group: GroupSummary) -> dict[str, Any]:
    one = group.assessment
    return {
        "name": group.name,
        "line": f"SmoothECE {number(one.smooth_ece)}, {_tag(one.finding)}",
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
        "profile": profile_view(one),
        "decisions": decisions_view(group.decisions or group.no_decisions or None),
    }


def _curve(group: GroupSummary) -> dict[str, Any]:
    curve = group.diagram.curve
    band = (curve.low, curve.high) if group.diagram.bands else ()
    wanted = np.linspace(0.0, 1.0, CURVE_STEPS)
    shown = np.flatnonzero(curve.drawn)
    places = [
        int(shown[np.argmin(np.abs(curve.prediction[shown] - t))]) for t in wanted if shown.size
    ]
    rows = [
        [
            *(number(float(column[k])) for column in (curve.prediction, curve.observed, *band)),
            f"{curve.effective_rows[k]:,.0f}",
        ]
        for k in dict.fromkeys(places)
    ]
    ends = ["Band from", "to"] if band else []
    return {"columns": ["Predicted", "Observed", *ends, "Effective rows"], "rows": rows}


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
        "sentence": gain_text(before, after, left_alone=repair.left_alone),
        "caption": f"The {'clusters' if clustered else 'rows'} were dealt into two halves at random; "
        "each was recalibrated by a map learned from the other (the default one).",
        "rows": []
        if repair.left_alone
        else [
            {"name": name, **dict(zip(("before", "after"), told_apart(*pair), strict=True))}
            for name, *pair in values
        ],
    }


def _alternative(group: GroupSummary) -> str:
    where = " ".join(region_text(group)) or "The curve follows the diagonal."
    return (
        f"Reliability diagram of {group.name}: how often it happened against the predicted probability, "
        f"{group.assessment.n:,} rows, SmoothECE {number(group.assessment.smooth_ece)}. {where}"
    )


def _caption(groups: Sequence[GroupSummary]) -> str:
    bands = all(group.diagram.bands for group in groups)
    clusters = (
        ""
        if bands
        else " There are no bands: they would take rows of one cluster to be independent."
    )
    which = (
        f" Shown are the {MOST_SHOWN} with the largest error." if len(groups) > MOST_SHOWN else ""
    )
    return (
        "Observed frequency against predicted probability. A calibrated model runs along the diagonal. "
        "Below it, predictions are too high; above it, too low. The curve is thick where many predictions "
        f"are.{clusters}{which}"
    )


def _terms() -> list[dict[str, str]]:
    return [{"word": word, "meaning": meaning} for word, meaning in GLOSSARY.items()]


def _provenance(summary: Summary) -> list[str]:
    return [
        f"calibrant {summary.version}, seed {summary.seed}, scale {summary.scale}. "
        "The same data and seed give the same page, byte for byte.",
        "Every interval and p-value takes the rows for independent, unless clusters were given. "
        "Several predictions of one event are not independent.",
        "This page holds all it needs; it sends no request.",
    ]
