"""Many classes in a report: the worst, each against the rest, and those that are mixed up with confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.inference.assess_by import assess_by
from calibrant.inference.groups import GroupAssessment, GroupAssessments, worst_first
from calibrant.inference.residuals import cell_predictions
from calibrant.io.scan import ClassSketches
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram

CONFIDENT = 0.9
"""Confidence from which on a wrong class is an error worth a line."""
MOST_ASSESSED = 64
"""Classes that are assessed: a minute's work of a thousand classes becomes seconds."""
MOST_CLASSES, MOST_PICTURES, MOST_ERRORS = 12, 8, 12
"""Lines and pictures that fit a page."""


@dataclass(frozen=True)
class ConfidentError(Record):
    """Rows for which one class was predicted with confidence, and another was true.

    Attributes
    ----------
    said, true : object
        The predicted and the true class.
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
    finding : GroupAssessments or None
        Of the classes, the worst first; where there are many, of those with the largest SmoothECE. None
        where the report is by predicted class, of which it has findings already.
    errors : tuple of ConfidentError
        The most frequent mix-ups at a confidence of 0.9 or more.
    confident, wrong : int
        Rows at such a confidence, and how many of them were wrong.
    expected : float
        How many would be wrong if the confidence were right.
    """

    number: int
    finding: GroupAssessments | None
    errors: tuple[ConfidentError, ...]
    confident: int
    wrong: int
    expected: float

    @property
    def worst(self) -> tuple[GroupAssessment, ...]:
        """The worst classes."""
        groups = () if self.finding is None else self.finding.groups[: len(self.finding)]
        return groups[:MOST_CLASSES]

    @property
    def diagrams(self) -> dict[Any, ReliabilityDiagram]:
        """Reliability diagrams of the worst classes."""
        return {
            one.key: reliability_diagram(self.finding.sketches[one.key], assessment=one.assessment)
            for one in self.worst[:MOST_PICTURES]
            if self.finding is not None
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """The finding over all classes."""
        if self.finding is None:
            return ()
        assessed = len(self.finding.groups)
        if assessed == self.number:
            return self.finding.sentences
        bad = len(self.finding.miscalibrated)
        return (
            f"Of {self.number:,} classes, the {assessed} with the largest SmoothECE were assessed: {bad} "
            f"of them are miscalibrated (corrected for testing {self.number:,}).",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "number": self.number,
            "sentences": list(self.sentences),
            "worst": [{"name": one.name, **one.to_dict()} for one in self.worst],
            "confident_errors": {
                "threshold": CONFIDENT,
                "rows": self.confident,
                "wrong": self.wrong,
                "expected": self.expected,
                "most": [error.to_dict() for error in self.errors],
            },
        }


def class_finding(each: Sketches, *, confidence: float) -> GroupAssessments:
    """Assessments of all classes, or of those whose SmoothECE is largest, where there are many.

    P-values of some classes, chosen by what they show, are corrected for all (Bonferroni).
    """
    if len(each) <= MOST_ASSESSED:
        return assess_by(each, confidence=confidence)
    errors = {key: smooth_ece(sketch, tolerance=1e-4) for key, sketch in each.items() if sketch.n}
    largest = sorted(errors, key=lambda key: -errors[key])[:MOST_ASSESSED]
    chosen = Sketches({key: each[key] for key in largest}, by=each.by)
    finding = assess_by(chosen, confidence=confidence).changed(
        lambda _, one: one.corrected(min(1.0, len(each) * one.p_value))
    )
    return replace(finding, groups=worst_first(finding.groups), correction="bonferroni")


def classes_of(sketches: ClassSketches, finding: GroupAssessments | None) -> ClassFindings:
    """Every class, with what was found of it, and the errors that were made with confidence."""
    errors, confident, wrong, expected = [], 0, 0, 0.0
    for (said, true), sketch in sketches.said.items():
        rows, mean = _confident(sketch)
        confident, expected = confident + rows, expected + rows * (1.0 - mean)
        if rows and str(said) != str(true):
            wrong += rows
            errors.append(ConfidentError(said, true, rows, mean))
    errors.sort(key=lambda error: (-error.rows, -error.confidence))
    most = tuple(errors[:MOST_ERRORS])
    return ClassFindings(len(sketches.each), finding, most, confident, wrong, expected)


def _confident(sketch: Sketch) -> tuple[int, float]:
    """Rows at a confidence of 0.9 or more, and their mean confidence."""
    if not sketch.n:
        return 0, 0.0
    p, counts = cell_predictions(sketch), sketch.counts.sum(axis=1)
    sure = p >= CONFIDENT
    rows = int(counts[sure].sum())
    return rows, float(counts[sure] @ np.minimum(p[sure], 1.0)) / rows if rows else 0.0
