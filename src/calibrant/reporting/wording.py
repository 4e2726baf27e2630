"""How a report says things: numbers for reading, and sentences that a newcomer understands."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._format import decimals, percent
from calibrant.diagrams.curve import Region
from calibrant.diagrams.smooth import ReliabilityDiagram
from calibrant.inference.assessment import Finding
from calibrant.reporting.repair import Scores
from calibrant.reporting.summary import GroupSummary

__all__ = [
    "HEADLINES",
    "Level",
    "confidence_text",
    "densest_half",
    "gain_text",
    "level_of",
    "meaning",
    "number",
    "points",
    "region_text",
    "told_apart",
]

Level = Literal["bad", "unsure", "good"]

WIDE = 0.3


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
    ('95 %', '97.5 %', '99.99 %')
    """
    return f"{100 * confidence:g} %"


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
    return {"miscalibrated": "bad", "no evidence": "good"}.get(finding, "unsure")  # type: ignore[return-value]


HEADLINES: Mapping[Finding, str] = {
    "miscalibrated": "These probabilities are miscalibrated.",
    "slightly off": "Slightly off: miscalibrated beyond chance, but only slightly.",
    "no evidence": "No evidence of miscalibration.",
    "inconclusive": "Inconclusive: no evidence of miscalibration, but too few rows to rule it out.",
}
"""The verdict in plain words."""


def meaning(group: GroupSummary) -> list[str]:
    """What the numbers say about the model."""
    found = group.assessment
    value, floor = found.smooth_ece, found.noise_floor.value
    said = [
        f"The predictions are {points(value)} percentage points from being calibrated "
        f"(SmoothECE {number(value)}); a perfectly calibrated model would show about "
        f"{points(floor)} with this many rows."
    ]
    direction = str(found.direction)
    if found.miscalibrated and direction != "no clear direction":
        said.append(f"They are {direction}.")
    elif not found.miscalibrated:
        said.append(
            f"The true error lies below {number(found.interval.high)} with "
            f"{confidence_text(found.interval.confidence)} confidence."
        )
    if found.remark:
        said.append(found.remark)
    return said


def region_text(group: GroupSummary) -> list[str]:
    """Where the error comes from, largest part first."""
    said = []
    for region in group.diagram.regions:
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
    inside = (diagram.grid >= region.low) & (diagram.grid <= region.high)
    gap = (diagram.regression - diagram.smoothed_predictions)[inside]
    return inside, np.nan_to_num(np.abs(gap) * diagram.density[inside])


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


def gain_text(before: Scores, after: Scores) -> str:
    """What the table of scores says; a fall that it does not show is none."""

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
    return (
        "Replacing each prediction by the smoothed frequency of the event near it would bring "
        f"SmoothECE {moved}."
    )


def _range(low: float, high: float) -> str:
    digits = 2 if high - low >= 0.05 else 4
    return f"{decimals(low, digits)} to {decimals(high, digits)}"


def densest_half(diagram: ReliabilityDiagram, region: Region) -> tuple[float, float]:
    """The shortest range of predictions that makes half of a region's part of the error."""
    inside, error = _errors(diagram, region)
    grid, sums = diagram.grid[inside], np.cumsum(error)
    ends = np.searchsorted(sums, np.concatenate([[0.0], sums[:-1]]) + sums[-1] / 2)
    starts = np.flatnonzero(ends < grid.size)
    first = starts[np.argmin(grid[ends[starts]] - grid[starts])]
    return float(grid[first]), float(grid[ends[first]])
