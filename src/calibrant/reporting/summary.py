"""Everything that a report says, as data: HTML, Markdown and JSON are made from it, and compute nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias

import calibrant
from calibrant._format import group_text
from calibrant.data.sketch import Sketch
from calibrant.inference.assessment import Assessment
from calibrant.inference.compare import Comparison
from calibrant.inference.groups import GroupAssessments
from calibrant.io.progress import Progress
from calibrant.measures.catalogue import Measured, measure_all
from calibrant.measures.result_record import plain
from calibrant.plotting.decision_curve import DecisionCurve
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram
from calibrant.reporting.classes import ClassFindings
from calibrant.reporting.decisions import decisions_of
from calibrant.reporting.outcomes import Outcome
from calibrant.reporting.profile import profile_diagram
from calibrant.reporting.repair import Repair, repair_of
from calibrant.reporting.sentences import notes_on

__all__ = [
    "LONGEST_NAME",
    "GroupSummary",
    "Halves",
    "Summary",
    "outcomes_alone",
    "shown_names",
    "shown_text",
    "summarise",
]

Halves: TypeAlias = tuple[Sketch, Sketch]
MOST_WITH_DECISIONS = 3
SCHEMA = "calibrant.report/2"
OTHER_MEASURES = (
    "binned_ece",
    "debiased_ece",
    "weak_calibration_error",
    "kernel_calibration_error",
    "ecce_range",
    "miscalibration",
)
LONGEST_NAME = 60


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """One model or group: how it fares, where it errs, what repair would gain, what to beware of.

    Attributes
    ----------
    name : str
        Fit to be shown; names from the data may be anything.
    assessment : Assessment
        Estimate, interval, noise floor and test, made once.
    diagram : ReliabilityDiagram
        The curve, its bands and the regions that contribute most. No bands where rows are in clusters:
        they would be those of independent rows.
    repair : Repair or None
        Scores before and after recalibration on rows, or clusters of them, left out of the fit.
    measures : tuple of Measured
        Other measures of the same rows.
    notes : tuple of str
        What to know about the rows.
    stands_for : int
        How many groups it is; 1 unless it is the rest of a long list.
    profile_diagram : Diagram or None
        The picture that belongs to the profile of the assessment, where it has one.
    decisions : DecisionCurve or None
        Net benefit of acting on the predictions, where there are few groups.
    no_decisions : str
        Why there is no such curve, where one was looked for.
    """

    name: str
    assessment: Assessment
    diagram: ReliabilityDiagram
    repair: Repair | None
    measures: tuple[Measured, ...]
    notes: tuple[str, ...]
    stands_for: int = 1
    profile_diagram: Diagram | None = None
    decisions: DecisionCurve | None = None
    no_decisions: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "groups": self.stands_for,
            "assessment": self.assessment.to_dict(),
            "regions": [asdict(region) for region in self.assessment.direction.regions],
            "recalibration": None if self.repair is None else self.repair.to_dict(),
            "decisions": None if self.decisions is None else self.decisions.to_dict(),
            "measures": [
                {"name": line.name, "value": line.value, "error": line.error, "misses": line.misses}
                for line in self.measures
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class Summary:
    """Contents of a report, before they are put into a form.

    Attributes
    ----------
    title : str
        Title of the page.
    groups : tuple of GroupSummary
        Those that could be assessed, the worst first.
    finding : GroupAssessments or None
        What was found over all groups, in whose words every form speaks; None for a single one.
    too_few : tuple of (str, int)
        Names and rows of groups that are too small to assess.
    came : tuple of str
        Names of the groups in the order in which they came: it decides on their colours.
    by : tuple of str
        Names of the grouping columns.
    scale, seed, version, command : str, int, str, str
        How it was made.
    comparison : Comparison or None
        Of models on the same rows, in pairs.
    classes : ClassFindings or None
        Of class probabilities, every class and what is mixed up.
    outcomes : tuple of Outcome
        What was found of survival, quantiles and distributions.
    """

    title: str
    groups: tuple[GroupSummary, ...]
    finding: GroupAssessments | None
    too_few: tuple[tuple[str, int], ...]
    came: tuple[str, ...]
    by: tuple[str, ...]
    scale: str
    seed: int
    version: str
    command: str = ""
    classes: ClassFindings | None = None
    comparison: Comparison | None = None
    outcomes: tuple[Outcome, ...] = ()

    @property
    def verdict(self) -> str:
        """The finding in one line: over all groups, of the only one, or of other outcomes alone."""
        if self.finding is not None:
            return self.finding.verdict
        if self.groups:
            return self.groups[0].assessment.verdict
        return "; ".join(one.verdict for one in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; numbers that are not finite are None."""
        finding = self.finding
        plainly: dict[str, Any] = plain(
            {
                "schema": SCHEMA,
                "title": self.title,
                "verdict": self.verdict,
                "sentences": [] if finding is None else list(finding.sentences),
                "correction": None if finding is None else finding.correction,
                "by": list(self.by),
                "groups": [group.to_dict() for group in self.groups],
                "classes": None if self.classes is None else self.classes.to_dict(),
                "comparison": None if self.comparison is None else self.comparison.to_dict(),
                "outcomes": [one.to_dict() for one in self.outcomes],
                "too_few_rows": [{"name": name, "n": rows} for name, rows in self.too_few],
                "scale": self.scale,
                "seed": self.seed,
                "command": self.command,
                "version": self.version,
            }
        )
        return plainly


def summarise(
    finding: GroupAssessments | Assessment,
    sketches: Mapping[Any, Sketch],
    *,
    title: str,
    parts: Mapping[Hashable, Halves] = MappingProxyType({}),
    most: int | None = None,
) -> Summary:
    """Lay out what was found, with the pictures of the same rows.

    Parameters
    ----------
    finding : GroupAssessments or Assessment
        Of all groups, or of the only one.
    sketches : mapping of key to Sketch
        The rows of each group, or of the only one under its name.
    title : str
        As in `report`.
    parts : mapping of key to two Sketches
        The halves of groups whose rows are in clusters, whole clusters in each.
    most : int, optional
        How many groups, the worst first, have a section; all of them by default.
    """
    if isinstance(finding, GroupAssessments) and len(finding.groups) == 1:
        finding = next(iter(finding.values()))  # one group is one sample
    if isinstance(finding, Assessment):
        ((key, _),) = sketches.items()
        assessed, numbers, too_few = {key: finding}, {key: 1}, []
        by: tuple[str, ...] = ()
    else:
        assessed, by = dict(islice(finding.items(), most)), finding.by
        numbers = {group.key: group.stands_for for group in finding.groups}
        too_few = [(shown_text(group.name), group.n) for group in finding.too_few]
    first = next(iter(assessed.values()))
    groups = []
    bar = Progress(len(assessed), doing="repairing")
    names = dict(zip(assessed, shown_names(assessed), strict=True))
    for key, name in names.items():
        one = _summary_of(name, sketches[key], assessed[key], parts.get(key), numbers[key])
        if len(assessed) <= MOST_WITH_DECISIONS:
            acting = decisions_of(sketches[key], assessed[key])
            if isinstance(acting, str):
                one = replace(one, no_decisions=acting)
            else:
                one = replace(one, decisions=acting)
        groups.append(one)
        bar.advance(1, sketches[key].n)
    bar.close()
    return Summary(
        title=shown_text(title, longest=200),
        groups=tuple(groups),
        finding=None if isinstance(finding, Assessment) else finding,
        too_few=tuple(too_few),
        came=tuple(names[key] for key in sketches if key in names),
        by=tuple(shown_text(name) for name in by),
        scale=first.scale,
        seed=0,
        version=calibrant.__version__,
    )


def outcomes_alone(found: Outcome, *, title: str) -> Summary:
    """Summary of survival, quantiles or distributions without predictions of yes or no beside them."""
    return Summary(
        title=shown_text(title, longest=200),
        groups=(),
        finding=None,
        too_few=(),
        came=(),
        by=(),
        scale="probability",
        seed=0,
        version=calibrant.__version__,
        outcomes=(found,),
    )


def _summary_of(
    name: str, sketch: Sketch, assessment: Assessment, dealt: Halves | None, stands_for: int
) -> GroupSummary:
    independent = assessment.clusters is None
    repairable = independent or dealt is not None
    return GroupSummary(
        name=name,
        assessment=assessment,
        diagram=reliability_diagram(sketch, assessment=assessment),
        repair=repair_of(sketch, assessment, dealt) if repairable else None,
        measures=measure_all(sketch, which=OTHER_MEASURES).lines,
        notes=notes_on(sketch, clusters=assessment.clusters),
        stands_for=stands_for,
        profile_diagram=profile_diagram(sketch, assessment),
    )


def shown_text(value: object, *, longest: int = LONGEST_NAME) -> str:
    r"""A value as one line of printable text; what is cut or cannot be printed is marked.

    Control characters, line breaks and marks that turn the direction of text become U+FFFD.

    Examples
    --------
    >>> shown_text("a\x1b[31mb")
    'a�[31mb'
    >>> shown_text("x" * 10_000_000, longest=8)
    'xxxxxxx…'
    >>> shown_text(("resnet", 2024))
    'resnet, 2024'
    """
    if isinstance(value, tuple):
        each = max(longest // max(len(value), 1), 8)
        return shown_text(
            ", ".join(shown_text(part, longest=each) for part in value), longest=longest
        )
    text = group_text(value)[: longest + 1]
    clean = "".join("�" if unicodedata.category(c)[0] in "CZ" and c != " " else c for c in text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def shown_names(keys: Iterable[Hashable]) -> list[str]:
    r"""One name for each key; keys that look the same once they are shown get a number.

    Examples
    --------
    >>> shown_names(["a", "b\n", "b\r", ""])
    ['a', 'b�', 'b� (2)', '(empty)']
    """
    taken: set[str] = set()
    names = []
    for key in keys:
        name = plain = shown_text(key)
        number = 2
        while name in taken:
            name, number = f"{plain} ({number})", number + 1
        taken.add(name)
        names.append(name)
    return names
