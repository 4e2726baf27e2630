"""Everything that a report says, as data: HTML, Markdown and JSON are made from it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import calibrant
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.diagrams.diagram import plain
from calibrant.diagrams.smooth import ReliabilityDiagram, reliability_diagram
from calibrant.errors import InputError
from calibrant.inference.assess import assessment_of
from calibrant.inference.assessment import Assessment
from calibrant.inference.correction import adjusted_p_values
from calibrant.measures.catalogue import Measured, measure_all
from calibrant.reporting.names import shown_names, shown_text
from calibrant.reporting.notes import notes_on
from calibrant.reporting.repair import Repair, repair_of

__all__ = ["MOST_GROUPS", "GroupSummary", "Halves", "Summary", "summarise"]

MOST_GROUPS = 20
FEWEST_ROWS = 2
Halves: TypeAlias = tuple[Sketch, Sketch]
RESAMPLES, AFTER_RESAMPLES = 400, 100
TEST_RESAMPLES, TEST_RESAMPLES_PER_GROUP = 1000, 100
SCHEMA = 1
OTHER_MEASURES = (
    "binned_ece",
    "debiased_ece",
    "weak_calibration_error",
    "kernel_calibration_error",
    "ecce_range",
    "miscalibration",
)


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """One model or group: how it fares, where it errs, what repair would gain, what to beware of.

    Attributes
    ----------
    name : str
        Fit to be shown; names from the data may be anything.
    assessment : Assessment
        Estimate, interval, noise floor and test.
    diagram : ReliabilityDiagram
        The curve, its bands and the regions that contribute most. No bands where rows are in clusters:
        they would be those of independent rows.
    repair : Repair or None
        Scores before and after recalibration on rows, or clusters of them, left out of the fit.
    repaired_diagram : ReliabilityDiagram or None
        The curve after it.
    measures : tuple of Measured
        Other measures of the same rows.
    notes : tuple of str
        What to know about the rows.
    pooled : int
        How many groups this one stands for; 1 unless it is the rest of a long list.
    """

    name: str
    assessment: Assessment
    diagram: ReliabilityDiagram
    repair: Repair | None
    repaired_diagram: ReliabilityDiagram | None
    measures: tuple[Measured, ...]
    notes: tuple[str, ...]
    pooled: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "pooled_groups": self.pooled,
            "assessment": self.assessment.to_dict(),
            "regions": [asdict(region) for region in self.diagram.regions],
            "recalibration": None if self.repair is None else self.repair.to_dict(),
            "measures": [
                {"name": line.name, "value": line.value, "error": line.error, "misses": line.misses}
                for line in self.measures
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class Summary:
    """What a report says, before it is put into a form.

    Attributes
    ----------
    title : str
        Of the page.
    groups : tuple of GroupSummary
        One by one, and last, where there were too many, all others together.
    omitted, too_small : int
        How many groups are taken together, and how many have too few rows even so.
    by : tuple of str
        Names of the grouping columns.
    scale, seed, command, version : str, int, str, str
        How it was made.
    """

    title: str
    groups: tuple[GroupSummary, ...]
    omitted: int
    too_small: int
    by: tuple[str, ...]
    scale: str
    seed: int
    command: str
    version: str

    @property
    def adjusted(self) -> list[float]:
        """P-value of each group, corrected for how many there are (Holm)."""
        return adjusted_p_values([group.assessment.p_value for group in self.groups], "holm")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; numbers that are not finite are None."""
        plainly: dict[str, Any] = plain(
            {
                "schema": SCHEMA,
                "title": self.title,
                "by": list(self.by),
                "groups": [
                    group.to_dict() | {"adjusted_p_value": p}
                    for group, p in zip(self.groups, self.adjusted, strict=True)
                ],
                "omitted_groups": self.omitted,
                "too_small_groups": self.too_small,
                "scale": self.scale,
                "seed": self.seed,
                "command": self.command,
                "version": self.version,
            }
        )
        return plainly


def summarise(
    groups: Mapping[Hashable, Sketch],
    *,
    title: str,
    by: tuple[str, ...] = (),
    confidence: float = 0.95,
    seed: int = 0,
    limit: int = MOST_GROUPS,
    assessments: Mapping[Hashable, Assessment] = MappingProxyType({}),
    parts: Mapping[Hashable, Halves] = MappingProxyType({}),
    command: str = "",
) -> Summary:
    """Summarise the largest `limit` groups one by one, and all others together.

    Groups of fewer than two rows say nothing by themselves and are among the others. `parts` are the
    halves of groups whose rows are in clusters, whole clusters in each.
    """
    if not isinstance(limit, int) or limit < 1:
        raise InputError(f"`limit` must be a whole number, 1 or more; got {limit!r}.")
    kept = {key: sketch for key, sketch in groups.items() if sketch.n > 0}
    if not kept:
        raise InputError("there are no rows to report on: every group is empty.")
    able = [key for key in kept if kept[key].n >= FEWEST_ROWS]
    chosen = set(sorted(able, key=lambda key: -kept[key].n)[:limit])
    shown = [key for key in kept if key in chosen]
    rest = [key for key in kept if key not in chosen]
    named: list[tuple[str, Sketch, Assessment | None, Halves | None, int]] = [
        (name, kept[key], assessments.get(key), parts.get(key), 1)
        for name, key in zip(shown_names(shown), shown, strict=True)
    ]
    others = Sketches({key: kept[key] for key in rest}, by="group").total() if rest else None
    if others is not None and (others.n >= FEWEST_ROWS or not named):
        named.append((f"all {len(rest):,} others together", others, None, None, len(rest)))
    draws = max(TEST_RESAMPLES, TEST_RESAMPLES_PER_GROUP * len(named))
    omitted = len(rest) if len(named) > len(shown) else 0
    return Summary(
        title=shown_text(title, longest=200),
        groups=tuple(
            _summary_of(
                name,
                sketch,
                found or assessment_of(sketch, confidence=confidence, seed=seed, resamples=draws),
                dealt,
                pooled,
            )
            for name, sketch, found, dealt, pooled in named
        ),
        omitted=omitted,
        too_small=len(rest) - omitted,
        by=tuple(shown_text(name) for name in by),
        scale=next(iter(kept.values())).scale.name,
        seed=seed,
        command=shown_text(command, longest=2000) if command else "",
        version=calibrant.__version__,
    )


def _summary_of(
    name: str, sketch: Sketch, found: Assessment, dealt: Halves | None, pooled: int
) -> GroupSummary:
    seed, independent = found.seed, found.clusters is None
    repair = repair_of(sketch, dealt, seed=seed) if independent or dealt is not None else None
    return GroupSummary(
        name=name,
        assessment=found,
        diagram=replace(_diagram(sketch, found, RESAMPLES), interval=found.interval),
        repair=repair,
        repaired_diagram=(
            None if repair is None else _diagram(repair.sketch, found, AFTER_RESAMPLES)
        ),
        measures=measure_all(sketch, which=OTHER_MEASURES).lines,
        notes=notes_on(sketch, clusters=found.clusters),
        pooled=pooled,
    )


def _diagram(sketch: Sketch, found: Assessment, resamples: int) -> ReliabilityDiagram:
    """The curve; with bands only where rows are independent, as these take them to be."""
    return reliability_diagram(
        sketch,
        confidence=found.confidence,
        resamples=resamples if found.clusters is None else 0,
        seed=found.seed,
    )
