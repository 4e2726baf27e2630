"""Language of a report: numbers for reading, sentences that a newcomer understands, notes on rows."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._format import decimals, percent
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.sketch import Sketch, are_hard_labels
from calibrant.inference.assessment import Finding
from calibrant.inference.direction import Region
from calibrant.plotting.reliability import ReliabilityDiagram
from calibrant.reporting.repair import Scores

if TYPE_CHECKING:
    from calibrant.reporting.summary import GroupSummary

__all__ = [
    "HEADLINES",
    "Level",
    "confidence_text",
    "densest_half",
    "gain_text",
    "level_of",
    "meaning",
    "notes_on",
    "number",
    "points",
    "region_text",
    "told_apart",
]

Level = Literal["bad", "unsure", "good"]

WIDE = 0.3
FEW_VALUES = 50
FEW_EVENTS = 20
HEAVY_TIE = 0.05
MANY_ALIKE = 2.0
NEAR_AN_END = 2e-5


def number(value: float) -> str:
    """A probability or an error: three decimals, more where they would hide it.

    Examples
    --------
    >>> number(0.07787), number(0.00041), number(float("inf")), number(0.0)
    ('0.078', '0.00041', '∞', '0')
    """
    return "0" if value == 0 else decimals(value, places=3)


def confidence_text(confidence: float) -> str:
    """A confidence as it was asked for.

    Examples
    --------
    >>> confidence_text(0.95), confidence_text(0.975), confidence_text(0.9999)
    ('95%', '97.5%', '99.99%')
    """
    return f"{100 * confidence:g}%"


def points(value: float) -> str:
    """A difference of probabilities in percentage points, two digits of it.

    Examples
    --------
    >>> points(0.0778), points(0.00041), points(0.997), points(0.0)
    ('7.8', '0.041', '100', '0')
    """
    return f"{100 * value:.0f}" if abs(value) >= 0.1 else f"{100 * value:.2g}"


def level_of(finding: Finding) -> Level:
    """Bad: beyond chance and not small. Good: any error is small. Unsure: all else."""
    return {"miscalibrated": "bad", "within the margin": "good"}.get(finding, "unsure")  # type: ignore[return-value]


HEADLINES: Mapping[Finding, str] = {
    "miscalibrated": "These probabilities are miscalibrated.",
    "within the margin": "These probabilities are within the margin.",
    "no miscalibration detected": "No miscalibration detected.",
    "too few rows": "Too few rows: there are too few rows to tell whether these probabilities are "
    "calibrated.",
}
"""The verdict in plain words."""


def meaning(group: GroupSummary) -> list[str]:
    """Meaning of the numbers for the model."""
    assessment = group.assessment
    value, floor = assessment.smooth_ece, assessment.noise_floor.value
    said = [
        f"The predictions are {points(value)} percentage points from being calibrated "
        f"(SmoothECE {number(value)}); a perfectly calibrated model would show about "
        f"{points(floor)} with this many rows."
    ]
    direction = str(assessment.direction)
    if assessment.miscalibrated and direction != "no clear direction":
        said.append(f"They are {direction}.")
    elif not assessment.miscalibrated:
        said.append(
            f"The true error lies below {number(assessment.interval.high)} with "
            f"{confidence_text(assessment.interval.confidence)} confidence."
        )
    return said


def region_text(group: GroupSummary) -> list[str]:
    """Regions that the error comes from, largest part first."""
    said = []
    for region in group.assessment.direction.regions:
        side = "too high" if region.gap > 0 else "too low"
        outcome = "less" if region.gap > 0 else "more"
        said.append(
            f"Predictions from {_range(region.low, region.high)} are {side} by "
            f"{number(abs(region.gap))} on average: the event comes {outcome} often than they say. "
            f"This makes {percent(region.share)} of the error."
        )
        if region.high - region.low >= WIDE:
            low, high = densest_half(group.diagram, region)
            said[-1] += f" Half of that comes from predictions of {_range(low, high)}."
    return said


def _errors(diagram: ReliabilityDiagram, region: Region) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which points of the grid lie in a region, and how much error at each."""
    curve = diagram.curve
    inside = (curve.position >= region.low) & (curve.position <= region.high)
    gap = (curve.observed - curve.prediction)[inside]
    return inside, np.nan_to_num(np.abs(gap) * curve.weight[inside])


def told_apart(old: float, new: float) -> tuple[str, str]:
    """Two numbers, with four digits where fewer would make them read alike.

    Examples
    --------
    >>> told_apart(0.2, 0.1), told_apart(0.00123, 0.00122)
    (('0.200', '0.100'), ('0.00123', '0.00122'))
    """
    if number(old) != number(new) or old == new or isinf(old):
        return number(old), number(new)
    return f"{old:.4g}", f"{new:.4g}"


def gain_text(before: Scores, after: Scores, *, left_alone: bool = False) -> str:
    """Gain in words, by the table of scores; a fall that it does not show is none."""
    if left_alone:
        return (
            "Recalibration would leave these predictions as they are: the rows give no reason to "
            "change them."
        )

    def falls(old: float, new: float) -> bool:
        return new < old and len(set(told_apart(old, new))) > 1

    moved = f"from {number(before.smooth_ece)} to {number(after.smooth_ece)}"
    losses = [(before.brier, after.brier), (before.log_loss, after.log_loss)]
    fall = [falls(old, new) for old, new in losses if not isinf(old) or not isinf(new)]
    if not any(fall):
        return "Recalibration would not help: on rows left out of the fit, the losses do not fall."
    if not all(fall):
        return (
            "Recalibration would hardly help: on rows left out of the fit, one loss falls and the "
            "other does not."
        )
    if not falls(before.smooth_ece, after.smooth_ece):
        return (
            "Recalibration would hardly help: on rows left out of the fit the losses fall, but "
            f"SmoothECE does not ({moved})."
        )
    return f"Recalibration would bring SmoothECE {moved}, on rows left out of the fit."


def _range(low: float, high: float) -> str:
    if high - low >= 0.05:
        return f"{low:.2f} to {high:.2f}"
    return f"{decimals(low, 4)} to {decimals(high, 4)}"


def densest_half(diagram: ReliabilityDiagram, region: Region) -> tuple[float, float]:
    """The shortest range of predictions that makes half of a region's part of the error."""
    inside, error = _errors(diagram, region)
    grid, sums = diagram.curve.position[inside], np.cumsum(error)
    ends = np.searchsorted(sums, np.concatenate([[0.0], sums[:-1]]) + sums[-1] / 2)
    starts = np.flatnonzero(ends < grid.size)
    first = starts[np.argmin(grid[ends[starts]] - grid[starts])]
    return float(grid[first]), float(grid[ends[first]])


HARD_LABELS = "All predictions are 0 or 1: these are hard labels, not probabilities."


def notes_on(sketch: Sketch, *, clusters: int | None = None) -> tuple[str, ...]:
    """Sentences on the data, in the order in which they are read.

    `clusters` is how many clusters the rows are known to form, if they are not independent. Predictions
    next to 0 or 1, as naive Bayes makes them, share a cell without being equal: nothing is said of them.

    Examples
    --------
    >>> for note in notes_on(Sketch.from_counts(p=[0, 0.5], n=[60, 40], events=[0, 21])):
    ...     print(note)
    100 rows, 21 with the event (21%). No rows were dropped.
    The predictions take only 2 different values: between them the curve is interpolation.
    60% of the rows share one prediction, 0.
    60% of the rows lie at 0 or within 0.00002 of it, 0% at 1.
    """
    atoms = Points.of(sketch)
    share = over_outcomes(atoms.mass) / atoms.total
    at_an_end = np.minimum(atoms.p, 1.0 - atoms.p) <= NEAR_AN_END
    mixed = at_an_end & (atoms.p > 0.0) & (atoms.p < 1.0) & (share * sketch.n > 1.5)
    return tuple(
        note
        for note in (
            _size(sketch),
            HARD_LABELS if are_hard_labels(sketch) else "",
            _weights(sketch),
            "" if mixed.any() else _few_values(sketch, atoms),
            _ties(atoms, np.where(mixed, 0.0, share)),
            _ends(atoms, share),
            _clusters(clusters) if clusters else _repeats(sketch, share[~at_an_end]),
            _one_outcome(sketch),
            _few_events(sketch),
        )
        if note
    )


def _size(sketch: Sketch) -> str:
    events = int(sketch.counts[:, 1].sum())
    dropped = dict(sketch.dropped)
    many = sum(dropped.values())
    lost = (
        f"{many:,} {'row was' if many == 1 else 'rows were'} dropped: "
        + ", ".join(f"{count:,} for {reason}" for reason, count in dropped.items())
        + "."
        if dropped
        else "No rows were dropped."
    )
    if sketch.weighted:
        kind = "weights" if _has_weights(sketch) else "soft outcomes"
        return f"{sketch.n:,} rows with {kind}. {lost}"
    rate = events / sketch.n
    return f"{sketch.n:,} rows, {events:,} with the event ({percent(rate)}). {lost}"


def _has_weights(sketch: Sketch) -> bool:
    """True where rows count for more or less than one; a soft outcome only divides the one."""
    return not np.allclose(over_outcomes(sketch.weights), over_outcomes(sketch.counts), rtol=1e-9)


def _weights(sketch: Sketch) -> str:
    if not _has_weights(sketch):
        return ""
    effective = sketch.total_weight**2 / float(sketch.squared_weights.sum())
    return (
        f"The weights leave an effective {effective:,.0f} rows: the value is that of the weighted "
        "population, the uncertainty that of this many rows."
    )


def _few_values(sketch: Sketch, atoms: Points) -> str:
    if atoms.p.size > FEW_VALUES or sketch.n <= atoms.p.size:
        return ""
    values = "one value" if atoms.p.size == 1 else f"{atoms.p.size} different values"
    return f"The predictions take only {values}: between them the curve is interpolation."


def _ties(atoms: Points, share: np.ndarray) -> str:
    most = int(np.argmax(share))
    if share[most] < HEAVY_TIE or atoms.p.size == 1:
        return ""
    return f"{percent(float(share[most]))} of the rows share one prediction, {atoms.p[most]:.4g}."


def _ends(atoms: Points, share: np.ndarray) -> str:
    low = float(share[atoms.p <= NEAR_AN_END].sum())
    high = float(share[atoms.p >= 1 - NEAR_AN_END].sum())
    if low + high < 0.001:
        return ""
    return f"{percent(low)} of the rows lie at 0 or within 0.00002 of it, {percent(high)} at 1."


def _clusters(clusters: int) -> str:
    return f"The rows belong to {clusters:,} clusters; interval, floor and p-value are those of clusters."


def _repeats(sketch: Sketch, share: np.ndarray) -> str:
    """Repeats among the rows: where these are few beside the cells, chance rarely puts two of them into one.

    `share` is that of the rows in each cell away from the ends.
    """
    if share.size <= FEW_VALUES or sketch.n > sketch.nodes / 8:
        return ""
    each = sketch.n * float(share.mean())
    if each < MANY_ALIKE:
        return ""
    return (
        f"Each prediction occurs {each:.1f} times on average. If these are several rows of one event, "
        "they are not independent: say which belong together (`cluster=`, `--cluster`), or the interval "
        "is too narrow and the p-value too small."
    )


def _one_outcome(sketch: Sketch) -> str:
    negative, positive = sketch.weights.sum(axis=0)
    if negative and positive:
        return ""
    return (
        f"All outcomes are {'1' if positive else '0'}: calibration can be measured, discrimination "
        "cannot."
    )


def _few_events(sketch: Sketch) -> str:
    negative, positive = sketch.counts.sum(axis=0)
    rarer = int(min(negative, positive))
    if rarer >= FEW_EVENTS or rarer == 0:
        return ""
    which = "events" if positive <= negative else "rows without the event"
    return f"There are only {rarer} {which}: expect wide intervals."
