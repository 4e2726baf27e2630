"""What a smooth diagram shows, in one plain sentence for those who read nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.inference.assessment import Finding, finding_of
from calibrant.inference.direction import Region, decimal_places
from calibrant.inference.interval import Interval
from calibrant.inference.resampling import cell_predictions

if TYPE_CHECKING:
    from calibrant.diagrams.smooth import ReliabilityDiagram

__all__ = ["verdict_of", "verdict_on"]

Floats = NDArray[np.float64]

ONE_SIDED = 0.9
"""The share of the error from which on it counts as being to one side."""
RARE = 0.05
"""Below this mean prediction, an error is said as a ratio."""
# Two regions of opposite sign are the story if together they hold so much, and the smaller one so much.
_BOTH, _SMALLER = 0.75, 0.25
_MOST = 0.5
_UNCLEAR: dict[Finding, str] = {
    "no evidence": "No clear error",
    "inconclusive": "Too few rows to tell",
}


def verdict_on(diagram: ReliabilityDiagram, interval: Interval) -> str:
    """The sentence of a diagram; its interval leaves 0 exactly where calibration is rejected."""
    finding = finding_of(interval.low > 0.0, interval.high, diagram.event_rate)
    p, weights = cell_predictions(diagram.sketch), diagram.sketch.weights
    return verdict_of(finding, diagram.regions, p, weights)


def verdict_of(finding: Finding, regions: Sequence[Region], p: Floats, weights: Floats) -> str:
    """One sentence: whether the predictions are off and, where that is clear, how and where.

    Parameters
    ----------
    finding : Finding
        As `Assessment.finding` has it; the sentence never says more.
    regions : sequence of Region
        The ranges that contribute most, largest first.
    p : float64[k]
        Predictions.
    weights : float64[k, 2]
        Rows with each of them, without and with the event.

    Examples
    --------
    >>> p, weights = np.array([0.3, 0.6]), np.array([[80.0, 20.0], [50.0, 50.0]])
    >>> region = Region(low=0.3, high=0.6, gap=0.1, share=1.0, contribution=0.1)
    >>> verdict_of("miscalibrated", [region], p, weights)
    'Predictions are too high by 0.10 on average'
    >>> verdict_of("inconclusive", [region], p, weights)
    'Too few rows to tell'
    """
    if finding in _UNCLEAR:
        return _UNCLEAR[finding]
    error = (
        _of_confidence(regions, p, weights)
        or _of_one_range(regions, p, weights)
        or _of_one_side(regions, p, weights)
        or "Predictions are too high in some ranges, too low in others"
    )
    return f"Slightly off: {error[0].lower()}{error[1:]}" if finding == "slightly off" else error


def _of_confidence(regions: Sequence[Region], p: Floats, weights: Floats) -> str:
    """Two regions of opposite sign hold most of the error."""
    if len(regions) < 2 or regions[0].gap * regions[1].gap >= 0.0:
        return ""
    if regions[0].share + regions[1].share < _BOTH or regions[1].share < _SMALLER:
        return ""
    below, above = sorted(regions[:2], key=lambda region: region.low)
    too_far = above.gap > 0.0
    sides = ("low", "high") if too_far else ("high", "low")
    words = f"Low predictions are too {sides[0]}, high ones too {sides[1]}"
    # Confidence is the distance from ½: predictions on both sides of it, and a mean that agrees.
    residual = p * over_outcomes(weights) - weights[:, 1]
    gap = float((residual * np.sign(p - 0.5)).sum())
    if below.low < 0.5 < above.high and (gap > 0.0) == too_far:
        words += f" ({'over' if too_far else 'under'}-confident)"
    return words


def _of_one_range(regions: Sequence[Region], p: Floats, weights: Floats) -> str:
    """One region holds most of the error: less than half of the range, and of the rows."""
    if not regions or regions[0].share < _MOST:
        return ""
    region, rows = regions[0], over_outcomes(weights)
    inside = (p >= region.low) & (p <= region.high)
    if region.high - region.low >= 0.5 * np.ptp(p[rows > 0]):
        return ""
    if rows[inside].sum() >= 0.5 * rows.sum():
        return ""
    where = f"from {region.ends}" if " to " in region.ends else f"of {region.ends}"
    return f"Predictions {where} are {_off_by(region.gap)}"


def _of_one_side(regions: Sequence[Region], p: Floats, weights: Floats) -> str:
    """Nearly all of the error is to one side: how far on average, or how often, where events are rare."""
    total = weights.sum()
    predicted = float((p * over_outcomes(weights)).sum() / total)
    happened = float(weights[:, 1].sum() / total)
    bias = predicted - happened
    same = sum(region.share for region in regions if region.gap * bias > 0.0)
    if same < ONE_SIDED * sum(region.share for region in regions) or bias == 0.0:
        return ""
    times = _times(happened / predicted) if predicted > 0.0 else ""
    if predicted < RARE and happened > 0.0 and times:
        return f"Events come {times} times as often as predicted"
    return f"Predictions are {_off_by(bias)} on average"


def _off_by(gap: float) -> str:
    side = "too high" if gap > 0.0 else "too low"
    return f"{side} by {abs(gap):.{decimal_places(abs(gap))}f}"


def _times(ratio: float) -> str:
    """Two digits, or three where two would say 1; nothing where that is all there is to say."""
    text = f"{ratio:.0f}" if ratio >= 10.0 else f"{ratio:.2g}"
    text = f"{ratio:.3g}" if float(text) == 1.0 else text
    return "" if float(text) == 1.0 else text
