"""How a report says things: numbers for reading, and sentences that a newcomer understands."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf, isnan
from typing import Literal

import numpy as np

from calibrant.diagrams.curve import Region
from calibrant.diagrams.smooth import ReliabilityDiagram
from calibrant.inference.assessment import Finding
from calibrant.reporting.summary import GroupSummary

__all__ = [
    "HEADLINES",
    "Level",
    "densest_half",
    "level_of",
    "meaning",
    "number",
    "p_text",
    "percent",
    "region_text",
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
    if isnan(value):
        return "–"
    if isinf(value):
        return "∞"
    if value == 0:
        return "0"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.2g}"


def percent(share: float) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.0778), percent(0.9999)
    ('7.8 %', '100 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def p_text(p: float) -> str:
    """A p-value, as papers write it.

    Examples
    --------
    >>> p_text(0.0002), p_text(0.034), p_text(0.41)
    ('< 0.001', '0.034', '0.41')
    """
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


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
        f"The predictions are {100 * value:.2g} percentage points from being calibrated "
        f"(SmoothECE {number(value)}); a perfectly calibrated model would show about "
        f"{100 * floor:.2g} with this many rows."
    ]
    direction = str(found.direction)
    if found.miscalibrated and direction != "no clear direction":
        said.append(f"They are {direction}.")
    elif not found.miscalibrated:
        said.append(
            f"The true error lies below {number(found.interval.high)} with "
            f"{percent(found.interval.confidence)} confidence."
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


def _range(low: float, high: float) -> str:
    digits = 2 if high - low >= 0.05 else 4
    return f"{low:.{digits}f} to {high:.{digits}f}"


def densest_half(diagram: ReliabilityDiagram, region: Region) -> tuple[float, float]:
    """The shortest range of predictions that makes half of a region's part of the error."""
    inside = (diagram.grid >= region.low) & (diagram.grid <= region.high)
    grid = diagram.grid[inside]
    gap = diagram.regression - diagram.smoothed_predictions
    sums = np.cumsum(np.nan_to_num(np.abs(gap) * diagram.density)[inside])
    ends = np.searchsorted(sums, np.concatenate([[0.0], sums[:-1]]) + sums[-1] / 2)
    starts = np.flatnonzero(ends < grid.size)
    first = starts[np.argmin(grid[ends[starts]] - grid[starts])]
    return float(grid[first]), float(grid[ends[first]])
