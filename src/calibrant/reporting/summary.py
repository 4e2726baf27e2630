"""Everything that a report says, as data: the page, the Markdown text and the JSON are made from it."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

import calibrant
from calibrant._format import group_text, percent
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.rows import CENSORED
from calibrant.data.sketch import Sketch, are_hard_labels
from calibrant.inference.assessment import UNDETECTED, WITHIN_MARGIN, Assessment
from calibrant.inference.compare import Comparison
from calibrant.inference.find_groups import FoundGroups
from calibrant.inference.groups import GroupAssessments
from calibrant.inference.scores import ProperScores
from calibrant.io.progress import Progress
from calibrant.measures.catalogue import Measured, measure_all
from calibrant.measures.result_record import plain
from calibrant.outcomes.distributions import DistributionAssessment
from calibrant.outcomes.quantiles import QuantileAssessment
from calibrant.outcomes.survival import HorizonRisk
from calibrant.plotting.binned import binned_diagram
from calibrant.plotting.decision_curve import DecisionCurve, decision_curve
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram
from calibrant.plotting.risk_coverage import risk_coverage_diagram
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.halves import recalibrated_halves
from calibrant.reporting.classes import ClassFindings

Halves: TypeAlias = tuple[Sketch, Sketch]
Outcome: TypeAlias = FoundGroups | HorizonRisk | QuantileAssessment | DistributionAssessment
"""Findings beside, or in place of, those on predictions of yes or no."""
STARTS = {
    FoundGroups: "in groups: ",
    HorizonRisk: "",
    QuantileAssessment: "quantile forecasts are ",
    DistributionAssessment: "predictive distributions are ",
}
"""Words before their verdicts, where these stand beside others."""
MOST_WITH_DECISIONS = 3
"""Groups up to which each has a decision curve, the slowest part of a page."""
FEWEST_OF_EITHER = 20
"""Rows of either outcome below which a decision curve is all band."""
SCHEMA = "calibrant.report/2"
MEASURE_NAMES = {
    "binned_ece": "Binned ECE, 15 bins of equal width",
    "debiased_ece": "Debiased ECE (root mean square)",
    "weak_calibration_error": "Weak calibration error",
    "kernel_calibration_error": "Kernel calibration error",
    "ecce_range": "Cumulative error (ECCE-R)",
    "miscalibration": "Miscalibration part of the Brier score (CORP)",
}
"""Other measures of the literature, and their display names."""
CALIBRATED = (WITHIN_MARGIN, UNDETECTED)
"""Findings that say that no error was seen, or none that matters."""
FEW_EVENTS = 20
"""Events below which intervals are wide whatever the number of rows."""
HEAVY_TIE = 0.05
"""Share of the rows from which on one prediction is worth a note."""
SEEN_AT_AN_END = 0.001
"""Share of the rows at 0 or 1 that is worth a note."""
NEAR_AN_END = 2e-5
"""A little more than the width of a cell of a sketch, 2⁻¹⁶."""
LONGEST_NAME = 60
"""Characters of a name that fit a table."""
CURVE_STEPS = 11
"""Points of the curve in its table: one for each tenth."""


@dataclass(frozen=True)
class Scores:
    """SmoothECE and two proper losses of the same rows."""

    smooth_ece: float
    brier: float
    log_loss: float


@dataclass(frozen=True)
class Recalibration:
    """Scores as the predictions are and recalibrated, and the diagram of the recalibrated ones.

    `left_alone` says that the map changes nothing: the rows give no reason to.
    """

    before: Scores
    after: Scores
    diagram: ReliabilityDiagram
    left_alone: bool = False

    @property
    def helps(self) -> bool:
        """True where the map changes the predictions, and all three scores improve."""
        pairs = zip(vars(self.before).values(), vars(self.after).values(), strict=True)
        return not self.left_alone and all(after < before for before, after in pairs)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "method": AdaptiveRecalibrator.kind,
            "left_alone": self.left_alone,
            "before": vars(self.before),
            "after": vars(self.after),
        }


def recalibration_of(
    sketch: Sketch, one: Assessment, parts: Halves | None = None, *, seed: int = 0
) -> Recalibration | None:
    """Scores before, which are those of the assessment, and after recalibration on rows left out of the fit.

    None where a half of the rows holds one outcome only, and for clusters without `parts`.
    """
    found = None
    if one.clusters is None or parts is not None:
        found = recalibrated_halves(sketch, parts, seed=seed)
    if found is None:
        return None
    mapped, left_alone = found
    diagram = reliability_diagram(mapped, confidence=one.confidence, bands=one.clusters is None)
    before = Scores(one.smooth_ece, one.brier.value, one.log_loss.value)
    scores = ProperScores(mapped)
    after = Scores(diagram.smooth_ece.value, scores.brier.value, scores.log_loss.value)
    return Recalibration(before, after, diagram, left_alone)


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """One model or group: its assessment, diagrams, recalibration, other measures and notes.

    Attributes
    ----------
    name : str
        Fit to be shown; names from the data may be anything.
    assessment : Assessment
        Estimate, interval, noise floor and test.
    diagram : ReliabilityDiagram
        The curve, its bands and the finding as a sentence. No bands where rows are in clusters: they would
        be those of independent rows.
    recalibration : Recalibration or None
        Scores before and after recalibration on rows, or clusters of them, left out of the fit.
    measures : tuple of Measured
        Other measures of the same rows.
    notes : tuple of str
        What to know about the rows.
    stands_for, detectable : int, float or None
        Number of groups, 1 unless it is the rest of a long list; and the SmoothECE that its rows would show.
    profile_diagram : Diagram or None
        The picture that belongs to the profile of the assessment, where it has one.
    decisions : DecisionCurve or None
        Net benefit of acting on the predictions, for clinicians and where there are few groups; of
        independent rows without weights.
    """

    name: str
    assessment: Assessment
    diagram: ReliabilityDiagram
    recalibration: Recalibration | None
    measures: tuple[Measured, ...]
    notes: tuple[str, ...]
    stands_for: int = 1
    detectable: float | None = None
    profile_diagram: Diagram | None = None
    decisions: DecisionCurve | None = None

    @property
    def curve(self) -> list[dict[str, float]]:
        """Points of the curve, about one for each tenth of the predictions."""
        columns = self.diagram.columns()
        shown = np.flatnonzero(columns["drawn"])
        if not shown.size:
            return []
        names = ["prediction", "observed"] + ["low", "high"] * self.diagram.bands
        tenths = np.linspace(0.0, 1.0, CURVE_STEPS)
        near = np.abs(columns["prediction"][shown] - tenths[:, None]).argmin(axis=1)
        return [
            {name: float(columns[name][k]) for name in [*names, "effective_rows"]}
            for k in dict.fromkeys(shown[near].tolist())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "groups": self.stands_for,
            "detectable": self.detectable,
            "assessment": self.assessment.to_dict(),
            "sentence": self.diagram.verdict.sentence,
            "regions": [asdict(region) for region in self.assessment.direction.regions],
            "curve": self.curve,
            "recalibration": None if self.recalibration is None else self.recalibration.to_dict(),
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
    by : tuple of str
        Names of the grouping columns.
    scale, seed, version, command : str, int, str, str
        How it was made.
    classes : ClassFindings or None
        Of class probabilities, every class and what is mixed up.
    comparison : Comparison or None
        Of models on the same rows, in pairs.
    outcomes : tuple of Outcome
        What was found of groups that nobody named, survival, quantiles and distributions.
    """

    title: str
    groups: tuple[GroupSummary, ...]
    finding: GroupAssessments | None
    too_few: tuple[tuple[str, int], ...]
    by: tuple[str, ...]
    scale: str
    seed: int
    version: str
    command: str = ""
    classes: ClassFindings | None = None
    comparison: Comparison | None = None
    outcomes: tuple[Outcome, ...] = ()

    @property
    def noun(self) -> str:
        """Name of what is shown side by side: models, classes or groups."""
        by = self.by[0] if len(self.by) == 1 else ""
        return {"model": "models", "class": "classes", "predicted": "classes"}.get(by, "groups")

    @property
    def subject(self) -> str:
        """Line on what was assessed; empty for other outcomes alone."""
        if self.finding is not None:
            rows = [group.assessment.n for group in self.groups]
            size = f"{sum(rows):,} rows" if min(rows) < max(rows) else f"{rows[0]:,} rows each"
            return f"{sum(group.stands_for for group in self.groups):,} {self.noun}, {size}."
        if not self.groups:
            return ""
        of = ""
        if self.classes is not None:
            of = (
                f"Probability of the predicted class, one of {self.classes.number:,}; the event is that it "
                "is the true class. "
            )
        return of + self.groups[0].notes[0]

    @property
    def calibrated(self) -> bool:
        """True of one sample without an error that was seen, or without one that matters."""
        return self.finding is None and self.groups[0].assessment.finding in CALIBRATED

    @property
    def elsewhere(self) -> list[tuple[type, str]]:
        """Verdicts of other sections on what is miscalibrated: found groups, other outcomes, classes."""
        wrong: list[tuple[type, str]] = [
            (type(one), STARTS[type(one)] + shown_text(one.verdict, longest=200))
            for one in self.outcomes
            if one.miscalibrated
        ]
        classes = self.classes if self.finding is None else None
        if classes is not None and classes.finding is not None and classes.finding.miscalibrated:
            sentence = classes.sentences[0]
            wrong.append((ClassFindings, f"{sentence[0].lower()}{sentence[1:-1]}"))
        return wrong

    @property
    def verdict(self) -> str:
        """The finding in one line, of every section: over all groups, of the only one, of other outcomes."""
        if not self.groups:
            return "; ".join(one.verdict for one in self.outcomes)
        finding = self.groups[0].assessment if self.finding is None else self.finding
        found, others = finding.verdict, [text for _, text in self.elsewhere]
        if not others:
            return found
        if self.calibrated and others[0].startswith(STARTS[FoundGroups]):
            return "; ".join([f"calibrated on average, but not {others[0]}", *others[1:]])
        return "; ".join([found.removesuffix("."), *others])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; numbers that are not finite are None."""
        finding = self.finding
        plainly: dict[str, Any] = plain(
            {
                "schema": SCHEMA,
                "title": self.title,
                "subject": self.subject,
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
    seed: int,
    parts: Mapping[Hashable, Halves],
    most: int | None,
) -> Summary:
    """Lay out what was found, with the pictures of the same rows.

    Parameters
    ----------
    finding : GroupAssessments or Assessment
        Of all groups, or of the only one.
    sketches : mapping of key to Sketch
        The rows of each group, or of the only one under its name.
    title, seed : str, int
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
        assessed, found, too_few = {key: finding}, {}, []
        by: tuple[str, ...] = ()
    else:
        assessed, by = dict(islice(finding.items(), most)), finding.by
        found = {group.key: group for group in finding.groups}
        too_few = [(shown_text(group.name), group.n) for group in finding.too_few]
    few = len(assessed) <= MOST_WITH_DECISIONS
    groups = []
    bar = Progress(len(assessed), doing="recalibrating")
    for key, name in zip(assessed, shown_names(assessed), strict=True):
        sketch, one = sketches[key], assessed[key]
        group = GroupSummary(
            name=name,
            assessment=one,
            diagram=reliability_diagram(sketch, assessment=one),
            recalibration=recalibration_of(sketch, one, parts.get(key), seed=seed),
            measures=measure_all(sketch, which=tuple(MEASURE_NAMES)).lines,
            notes=notes_on(sketch, clusters=one.clusters),
            stands_for=found[key].stands_for if found else 1,
            detectable=found[key].detectable if found else None,
            profile_diagram=_profile_diagram(sketch, one),
            decisions=_decisions(sketch, one)
            if few or getattr(one.profile, "name", "") == "clinical"
            else None,
        )
        groups.append(group)
        bar.advance(1, sketch.n)
    bar.close()
    return Summary(
        title=shown_text(title, longest=200),
        groups=tuple(groups),
        finding=None if isinstance(finding, Assessment) else finding,
        too_few=tuple(too_few),
        by=tuple(shown_text(name) for name in by),
        scale=groups[0].assessment.scale,
        seed=seed,
        version=calibrant.__version__,
    )


def outcomes_alone(found: Outcome, *, title: str) -> Summary:
    """Summary of survival, quantiles or distributions without predictions of yes or no beside them."""
    name, version = shown_text(title, longest=200), calibrant.__version__
    return Summary(name, (), None, (), (), "probability", 0, version, outcomes=(found,))


def _decisions(sketch: Sketch, assessment: Assessment) -> DecisionCurve | None:
    """The decision curve of rows that count alike, and of either outcome some."""
    few = sketch.counts.sum(axis=0).min() < FEWEST_OF_EITHER
    if few or sketch.weighted or assessment.clusters is not None:
        return None
    return decision_curve(sketch, confidence=assessment.confidence)


def _profile_diagram(sketch: Sketch, assessment: Assessment) -> Diagram | None:
    """The picture of a field.

    The attributes diagram for forecasters, and for the answers of language models the share that is wrong
    against the share that is given.
    """
    profile, clustered = assessment.profile, assessment.clusters is not None
    if profile is None or sketch.weighted:
        return None
    confidence = assessment.confidence
    if profile.name == "llm":
        declined = round(sketch.n / profile["coverage"].value) - sketch.n
        curve = risk_coverage_diagram(sketch, abstained=declined, confidence=confidence)
        # The sketch does not say which rows are of one cluster, and limits without it are too narrow.
        return replace(curve, bands=not clustered)
    if profile.name == "weather" and not clustered:
        return binned_diagram(sketch, attributes=True, confidence=confidence)
    return None


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


# -- notes on the rows ---------------------------------------------------------------------------


def notes_on(sketch: Sketch, *, clusters: int | None = None) -> tuple[str, ...]:
    """Sentences on the rows, in the order in which they are read.

    `clusters` is how many clusters the rows are known to form, if they are not independent.

    Examples
    --------
    >>> for note in notes_on(Sketch.from_counts(p=[0, 0.5], n=[60, 40], events=[0, 21])):
    ...     print(note)
    100 rows, 21 with the event (21%). No rows were dropped.
    60% of the rows share one prediction, 0.
    60% of the rows lie at 0 or within 0.00002 of it, 0% at 1.
    """
    counts = sketch.counts.sum(axis=0)
    weighted = not np.allclose(
        over_outcomes(sketch.weights), over_outcomes(sketch.counts), rtol=1e-9
    )
    notes = [f"{_size(sketch, weighted)} {_dropped(sketch)}"]
    if are_hard_labels(sketch):
        notes.append("All predictions are 0 or 1: these are hard labels, not probabilities.")
    if weighted:
        effective = sketch.total_weight**2 / float(sketch.squared_weights.sum())
        notes.append(
            f"The weights leave an effective sample size of {effective:,.0f} rows: the value is that of the "
            "weighted population, the uncertainty that of this many rows."
        )
    notes += _ties_and_ends(sketch)
    if clusters:
        notes.append(
            f"The rows belong to {clusters:,} clusters; interval, floor and p-value are those of clusters."
        )
    if not sketch.weights.sum(axis=0).all():
        only = int(sketch.weights[:, 1].any())
        notes.append(
            f"All outcomes are {only}: calibration can be measured, discrimination cannot."
        )
    elif 0 < counts.min() < FEW_EVENTS:
        which = "events" if counts[1] <= counts[0] else "rows without the event"
        notes.append(f"There are only {counts.min()} {which}: expect wide intervals.")
    return tuple(notes)


def _size(sketch: Sketch, weighted: bool) -> str:
    if sketch.weighted:
        return f"{sketch.n:,} rows with {'weights' if weighted else 'soft outcomes'}."
    events = int(sketch.counts[:, 1].sum())
    return f"{sketch.n:,} rows, {events:,} with the event ({percent(events / sketch.n)})."


def _dropped(sketch: Sketch) -> str:
    dropped = dict(sketch.dropped)
    if not dropped:
        return "No rows were dropped."
    many = sum(dropped.values())
    reasons = ", ".join(
        f"{count:,} {reason if reason == CENSORED else f'for {reason}'}"
        for reason, count in dropped.items()
    )
    return f"{many:,} {'row was' if many == 1 else 'rows were'} dropped: {reasons}."


def _ties_and_ends(sketch: Sketch) -> list[str]:
    """Notes on predictions that many rows share, and on those at 0 and 1.

    Predictions next to 0 or 1, as naive Bayes makes them, share a cell without being equal.
    """
    points = Points.of(sketch)
    share = over_outcomes(points.mass) / points.total
    low, high = points.p <= NEAR_AN_END, points.p >= 1.0 - NEAR_AN_END
    rows = over_outcomes(sketch.counts)[over_outcomes(sketch.weights) > 0]
    exact = (rows > 1) & (~(low | high) | (points.p == 0.0) | (points.p == 1.0))
    notes = []
    most = int(np.argmax(share * exact))
    if exact[most] and share[most] >= HEAVY_TIE and points.p.size > 1:
        notes.append(
            f"{percent(float(share[most]))} of the rows share one prediction, {points.p[most]:.4g}."
        )
    at_low, at_high = float(share[low].sum()), float(share[high].sum())
    if at_low + at_high >= SEEN_AT_AN_END:
        notes.append(
            f"{percent(at_low)} of the rows lie at 0 or within 0.00002 of it, {percent(at_high)} at 1."
        )
    return notes
