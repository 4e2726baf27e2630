"""Section on many classes: the worst first, and which are mixed up with confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._format import decimals, p_text, percent
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.inference.assess_by import assess_by
from calibrant.inference.groups import GroupAssessments, worst_first
from calibrant.inference.residuals import cell_predictions
from calibrant.io.scan import ClassSketches
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram
from calibrant.reporting.sentences import number

__all__ = ["ClassFindings", "ConfidentError", "classes_of", "classes_view"]

CONFIDENT = 0.9
MOST_ASSESSED = 64
MOST_CLASSES, MOST_PICTURES, MOST_ERRORS = 12, 8, 12


@dataclass(frozen=True)
class ConfidentError(Record):
    """Rows for which one class was said with confidence, and another was true.

    Attributes
    ----------
    said, true : object
        The two classes.
    rows : int
        How many rows, at a confidence of 0.9 or more.
    confidence : float
        Their mean confidence.
    """

    said: Any
    true: Any
    rows: int
    confidence: float


@dataclass(frozen=True, eq=False)
class ClassFindings:
    """Every class against the rest, and the errors that were made with confidence.

    Attributes
    ----------
    number : int
        How many classes there are.
    finding : GroupAssessments
        Of the classes, the worst first; where there are many, of those with the largest SmoothECE.
    diagrams : mapping of class to ReliabilityDiagram
        Of the worst.
    errors : tuple of ConfidentError
        The most frequent mix-ups at a confidence of 0.9 or more.
    confident, wrong : int
        Rows at such a confidence, and how many of them were wrong.
    expected : float
        How many would be wrong if the confidence were right.
    order : mapping of class to class
        Of classes whose columns seem to be exchanged, whose column each seems to have.
    """

    number: int
    finding: GroupAssessments
    diagrams: Mapping[Any, ReliabilityDiagram]
    errors: tuple[ConfidentError, ...]
    confident: int
    wrong: int
    expected: float

    @property
    def sentences(self) -> tuple[str, ...]:
        assessed = len(self.finding.groups)
        if assessed == self.number:
            return self.finding.sentences
        bad = sum(one.finding == "miscalibrated" for one in self.finding.values())
        return (
            f"Of {self.number:,} classes, the {assessed} with the largest SmoothECE were assessed: {bad} "
            f"of them are miscalibrated (corrected for testing {self.number:,}).",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "number": self.number,
            "sentences": list(self.sentences),
            "worst": [
                {"name": group.name, "n": group.n, "assessment": group.assessment.to_dict()}
                for group in self.finding.groups[:MOST_CLASSES]
                if group.assessment is not None
            ],
            "confident_errors": {
                "threshold": CONFIDENT,
                "rows": self.confident,
                "wrong": self.wrong,
                "expected": self.expected,
                "most": [error.to_dict() for error in self.errors],
            },
        }


def classes_of(sketches: ClassSketches, *, confidence: float) -> ClassFindings:
    """Findings of the sketches of all classes."""
    finding = assess_by(_largest(sketches.each), confidence=confidence)
    finding = _corrected(finding, len(sketches.each))
    worst = [group.key for group in finding.groups if group.assessment is not None]
    diagrams = {
        key: reliability_diagram(finding.sketches[key], assessment=finding[key])
        for key in worst[:MOST_PICTURES]
    }
    errors, confident, wrong, expected = [], 0, 0, 0.0
    for (said, true), sketch in sketches.said.items():
        rows, mean = _confident(sketch)
        confident, expected = confident + rows, expected + rows * (1.0 - mean)
        if rows and str(said) != str(true):
            wrong += rows
            errors.append(ConfidentError(said, true, rows, mean))
    errors.sort(key=lambda error: (-error.rows, -error.confidence))
    return ClassFindings(
        len(sketches.each),
        finding,
        diagrams,
        tuple(errors[:MOST_ERRORS]),
        confident,
        wrong,
        expected,
    )


def _corrected(finding: GroupAssessments, number: int) -> GroupAssessments:
    """P-values of some classes, chosen by what they show, are corrected for all (Bonferroni)."""
    if len(finding.groups) == number:
        return finding
    groups = [
        group
        if group.assessment is None
        else replace(
            group,
            assessment=group.assessment.corrected(min(1.0, number * group.assessment.p_value)),
        )
        for group in finding.groups
    ]
    return replace(finding, groups=worst_first(groups), correction="bonferroni")


def _largest(each: Sketches) -> Sketches:
    """All classes, or those whose SmoothECE is largest, where there are many."""
    if len(each) <= MOST_ASSESSED:
        return each
    errors = {key: smooth_ece(sketch, tolerance=1e-4) for key, sketch in each.items() if sketch.n}
    largest = sorted(errors, key=lambda key: -errors[key])[:MOST_ASSESSED]
    return Sketches({key: each[key] for key in largest}, by=each.by)


def _confident(sketch: Sketch) -> tuple[int, float]:
    """Rows at a confidence of 0.9 or more, and their mean confidence."""
    if not sketch.n:
        return 0, 0.0
    p, counts = cell_predictions(sketch), sketch.counts.sum(axis=1)
    sure = p >= CONFIDENT
    rows = int(counts[sure].sum())
    return rows, float(counts[sure] @ np.minimum(p[sure], 1.0)) / rows if rows else 0.0


def classes_view(found: ClassFindings | None, names: Any) -> dict[str, Any] | None:
    """The section as text: sentences and tables. `names` makes names that are fit to be shown."""
    if found is None:
        return None
    assessed = [group for group in found.finding.groups if group.assessment is not None][
        :MOST_CLASSES
    ]
    return {
        "sentences": list(found.sentences),
        "worst": _worst(assessed, names),
        "errors": {
            "sentence": _errors_sentence(found),
            "columns": ["Said", "True", "Rows", "Mean confidence"],
            "rows": [
                [
                    *names([error.said]),
                    *names([error.true]),
                    f"{error.rows:,}",
                    number(error.confidence),
                ]
                for error in found.errors
            ],
        },
        "pictures": [
            {"name": name, "line": diagram.label}
            for name, diagram in zip(names(found.diagrams), found.diagrams.values(), strict=True)
        ],
    }


def _worst(groups: Iterable[Any], names: Any) -> dict[str, Any]:
    columns = ["Class", "Cases", "Error", "Interval", "Floor", "p, corrected", "Verdict"]
    rows = []
    for group in groups:
        one = group.assessment
        rows.append(
            [
                *names([group.key]),
                f"{round(one.event_rate * one.n):,}",
                number(one.smooth_ece),
                f"{number(one.interval.low)} – {number(one.interval.high)}",
                number(one.noise_floor.value),
                p_text(one.p_value_judged),
                one.finding,
            ]
        )
    return {"columns": columns, "rows": rows}


def _errors_sentence(found: ClassFindings) -> str:
    if not found.confident:
        return f"No prediction was made with a confidence of {CONFIDENT:g} or more."
    share = percent(found.wrong / found.confident)
    return (
        f"Of the {found.confident:,} predictions at a confidence of {CONFIDENT:g} or more, {found.wrong:,} "
        f"({share}) are wrong; calibrated ones would be wrong {decimals(found.expected, places=1)} times."
    )
