"""What a diagram shows, in one plain sentence or a few words for those who read nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.rows import InputOptions
from calibrant.data.sketch import as_sketch
from calibrant.inference.assessment import Assessment, Finding, finding_of
from calibrant.inference.direction import Region, decimal_places
from calibrant.inference.interval import Interval
from calibrant.inference.resampling import cell_predictions

if TYPE_CHECKING:
    from calibrant.plotting.smooth import ReliabilityDiagram

__all__ = [
    "UNSAID",
    "Verdict",
    "core_of",
    "verdict_of",
    "verdict_on",
    "verdict_on_assessment",
    "verdict_on_rows",
]

Floats = NDArray[np.float64]

ONE_SIDED = 0.9
"""The share of the error from which on it counts as being to one side."""
RARE = 0.05
"""Below this mean prediction, an error is said as a ratio."""
# Two regions of opposite sign are the story if together they hold so much, and the smaller one so much.
_BOTH, _SMALLER = 0.75, 0.25
_MOST = 0.5
# A part of a region that holds so much of its error is named instead of it, where it is so much shorter.
_HELD, _SHORTER = 0.8, 0.75
_UNCLEAR: dict[Finding, str] = {
    "within the margin": "Within the margin",
    "no miscalibration detected": "No miscalibration detected",
    "too few rows": "May be chance (too few rows)",
}


@dataclass(frozen=True)
class Verdict:
    """What is wrong: as a sentence, and in the few words that stand beside a name."""

    sentence: str
    short: str


UNSAID = Verdict("", "")


def verdict_on_rows(y_true: Any, y_prob: Any, confidence: float, options: InputOptions) -> Verdict:
    """What the smooth diagram of these rows says, for the other diagrams of them; nothing of Points."""
    from calibrant.plotting.smooth import reliability_diagram

    if isinstance(y_true, Points):
        return UNSAID
    sketch = as_sketch(y_true, y_prob, **options)
    return reliability_diagram(sketch, confidence=confidence, resamples=0).said


def verdict_on(diagram: ReliabilityDiagram, interval: Interval) -> Verdict:
    """What a diagram shows; its interval leaves 0 exactly where calibration is rejected."""
    finding = finding_of(interval.low > 0.0, interval.high, diagram.event_rate)
    p, weights = cell_predictions(diagram.sketch), diagram.sketch.weights
    residual = (diagram.smoothed_predictions - diagram.regression) * diagram.density
    core = None
    if diagram.regions:
        core = core_of(diagram.regions[0], diagram.grid, residual, diagram.density)
    return verdict_of(finding, diagram.regions, p, weights, core=core)


def core_of(region: Region, at: Floats, residual: Floats, density: Floats) -> Region:
    """The shortest part of a region that holds most of its error.

    Between the zeros of the residual there may be much that hardly errs.

    Parameters
    ----------
    region : Region
        Between two zeros of the residual.
    at, residual, density : float64[k]
        Predictions, the smoothed residual there (positive where they are too high), and that of rows.

    Examples
    --------
    >>> at = np.linspace(0.0, 1.0, 101)
    >>> residual = np.where((at >= 0.6) & (at <= 0.7), 0.2, 0.001)
    >>> core_of(Region(0.5, 1.0, 0.05, 0.8, 0.02), at, residual, np.ones(101)).ends
    '0.60 to 0.68'
    """
    inside = (at >= region.low) & (at <= region.high) & (residual * region.gap > 0.0)
    at, error, rows = at[inside], np.abs(residual[inside]), density[inside]
    if at.size < 3:
        return region
    passed = np.concatenate([[0.0], error.cumsum()])
    last = np.searchsorted(passed, passed[:-1] + _HELD * passed[-1] * (1 - 1e-12))
    first = np.flatnonzero(last <= at.size)
    start = first[np.argmin(at[last[first] - 1] - at[first])]
    part = slice(start, last[start])
    low, high = float(at[part][0]), float(at[part][-1])
    if high - low > _SHORTER * (region.high - region.low):
        return region
    gap = np.sign(region.gap) * error[part].sum() / rows[part].sum()
    return replace(region, low=low, high=high, gap=float(gap))


def verdict_of(
    finding: Finding,
    regions: Sequence[Region],
    p: Floats,
    weights: Floats,
    *,
    core: Region | None = None,
) -> Verdict:
    """Whether the predictions are off and, where that is clear, how and where.

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
    core : Region, optional
        The part of the first region that holds most of its error.

    Examples
    --------
    >>> p, weights = np.array([0.3, 0.6]), np.array([[80.0, 20.0], [50.0, 50.0]])
    >>> region = Region(low=0.3, high=0.6, gap=0.1, share=1.0, contribution=0.1)
    >>> verdict_of("miscalibrated", [region], p, weights)
    Verdict(sentence='Predictions are too high by 0.10 on average', short='predicts too high by 0.10')
    >>> verdict_of("too few rows", [region], p, weights).sentence
    'May be chance (too few rows)'
    """
    if finding in _UNCLEAR:
        return Verdict(_UNCLEAR[finding], _UNCLEAR[finding].lower())
    total = weights.sum()
    predicted = float((p * over_outcomes(weights)).sum() / total)
    happened = float(weights[:, 1].sum() / total)
    residual = p * over_outcomes(weights) - weights[:, 1]
    towards = float((residual * np.sign(p - 0.5)).sum())
    return (
        _of_confidence(regions, towards)
        or _of_one_range(regions, p, weights, core)
        or _of_one_side(regions, predicted, happened)
        or _MIXED
    )


def verdict_on_assessment(assessment: Assessment) -> Verdict:
    """The same of an assessment, which has its rows no more: of several ranges, it names the largest."""
    finding, direction = assessment.finding, assessment.direction
    if finding in _UNCLEAR:
        return Verdict(_UNCLEAR[finding], _UNCLEAR[finding].lower())
    regions = direction.regions
    return (
        _of_confidence(regions, direction.confidence_gap)
        or _of_one_side(regions, assessment.mean_prediction, assessment.event_rate)
        or (_of_range(regions[0]) if regions and regions[0].share >= _MOST else None)
        or _MIXED
    )


def _of_confidence(regions: Sequence[Region], towards: float) -> Verdict | None:
    """Two regions of opposite sign hold most of the error; `towards` is that away from ½ over all."""
    if len(regions) < 2 or regions[0].gap * regions[1].gap >= 0.0:
        return None
    if regions[0].share + regions[1].share < _BOTH or regions[1].share < _SMALLER:
        return None
    below, above = sorted(regions[:2], key=lambda region: region.low)
    too_far = above.gap > 0.0
    sides = ("low", "high") if too_far else ("high", "low")
    words = f"Low predictions are too {sides[0]}, high ones too {sides[1]}"
    short = f"low ones too {sides[0]}, high ones too {sides[1]}"
    # Confidence is the distance from ½: predictions on both sides of it, and a mean that agrees.
    if below.low < 0.5 < above.high and (towards > 0.0) == too_far:
        name = "overconfident" if too_far else "underconfident"
        words += f" ({name})"
        short = f"{name} (too near {'0 and 1' if too_far else '0.5'})"
    return Verdict(words, short)


def _of_one_range(
    regions: Sequence[Region], p: Floats, weights: Floats, core: Region | None
) -> Verdict | None:
    """One region holds most of the error: less than half of the range and of the rows.

    Or its core does, with less than a third of both.
    """
    if not regions or regions[0].share < _MOST:
        return None
    core = core or regions[0]
    if not any(
        _is_part(part, p, weights, most) for part, most in ((regions[0], 1 / 2), (core, 1 / 3))
    ):
        return None
    return _of_range(core)


def _is_part(region: Region, p: Floats, weights: Floats, most: float) -> bool:
    """Whether a region has less than this share of the range, and of the rows."""
    rows = over_outcomes(weights)
    inside = (p >= region.low) & (p <= region.high)
    short = region.high - region.low < most * np.ptp(p[rows > 0])
    return bool(short and rows[inside].sum() < most * rows.sum())


def _of_range(region: Region) -> Verdict:
    where = f"from {region.ends}" if " to " in region.ends else f"of {region.ends}"
    near = where if " to " in region.ends else f"at {region.ends}"
    off = _off_by(region.gap)
    return Verdict(f"Predictions {where} are {off}", f"predicts {off} {near}")


def _of_one_side(regions: Sequence[Region], predicted: float, happened: float) -> Verdict | None:
    """Nearly all of the error is to one side: how far on average, or how often, where events are rare."""
    bias = predicted - happened
    same = sum(region.share for region in regions if region.gap * bias > 0.0)
    if same < ONE_SIDED * sum(region.share for region in regions) or bias == 0.0:
        return None
    times = _times(happened / predicted) if predicted > 0.0 else ""
    if predicted < RARE and happened > 0.0 and times:
        words = "times as often as predicted"
        return Verdict(f"Events come {times} {words}", f"events come {times} {words}")
    off = _off_by(bias)
    return Verdict(f"Predictions are {off} on average", f"predicts {off}")


_MIXED = Verdict(
    "Predictions are too high in some ranges, too low in others",
    "too high in places, too low in others",
)


def _off_by(gap: float) -> str:
    side = "too high" if gap > 0.0 else "too low"
    return f"{side} by {abs(gap):.{decimal_places(abs(gap))}f}"


def _times(ratio: float) -> str:
    """Two digits, or three where two would say 1; nothing where that is all there is to say."""
    text = f"{ratio:.0f}" if ratio >= 10.0 else f"{ratio:.2g}"
    text = f"{ratio:.3g}" if float(text) == 1.0 else text
    return "" if float(text) == 1.0 else text
