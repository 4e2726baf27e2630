"""The finding of an assessment in one line, for titles and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.inference.assessment import Assessment
from calibrant.inference.direction import NO_DIRECTION, Region, decimal_places

__all__ = ["Verdict", "number_text", "verdict_of"]

ONE_SIDED = 0.9
"""Share of the error from which on it counts as being to one side."""
RARE = 0.05
"""Mean prediction below which an error is given as a ratio."""
NOTABLE = 1.25
"""Ratio nearer to 1 than which the range of the error says more."""
SLIGHT, SLIGHT_SHARE = 0.01, 0.1
"""Upper ends of intervals, as they are and as a share of the rarer outcome, of errors that hardly matter."""


@dataclass(frozen=True)
class Verdict:
    """Verdict of an assessment.

    Attributes
    ----------
    sentence : str
        For a title.
    short : str
        In a few words, to stand beside a name.
    clear : bool
        Whether calibration was rejected.
    """

    sentence: str
    short: str
    clear: bool


def verdict_of(assessment: Assessment) -> Verdict:
    """Direction and size of the error where calibration was rejected, and otherwise how large it may be.

    Examples
    --------
    >>> from calibrant.inference.assess import assess
    >>> verdict_of(assess([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])).clear
    False
    """
    most = number_text(assessment.interval.high)
    if assessment.finding == "within the margin":
        within = f"Within the margin of {assessment.margin:g} (error up to {most})"
        return Verdict(within, "within the margin", False)
    if not assessment.miscalibrated:
        if assessment.finding == "too few rows":
            return Verdict(f"Too few rows to tell (error up to {most})", "too few rows", False)
        sentence = f"No miscalibration detected (could be up to {most})"
        return Verdict(sentence, "no miscalibration detected", False)
    sentence, short = (
        _CONFIDENCE.get(assessment.direction.label)
        or _one_side(assessment)
        or _ranges(assessment.direction.regions)
    )
    rarer = min(assessment.event_rate, 1.0 - assessment.event_rate)
    if assessment.interval.high < min(SLIGHT, SLIGHT_SHARE * rarer):
        off = "" if "confident" in sentence else "off: "
        sentence = f"Slightly {off}{sentence[0].lower()}{sentence[1:]}"
        short = f"slightly {short}"
    return Verdict(sentence, short, True)


_CONFIDENCE = {
    "overconfident": ("Overconfident: too near 0 and 1", "overconfident"),
    "underconfident": ("Underconfident: too near 0.5", "underconfident"),
}


def number_text(value: float) -> str:
    """A SmoothECE with two digits, or one where it is tiny.

    Examples
    --------
    >>> number_text(0.0213), number_text(0.00087), number_text(0.0), number_text(0.000012)
    ('0.021', '0.0009', '0', '1e-05')
    """
    if value < 1e-9:
        return "0"
    return f"{value:.3f}" if value >= 0.01 else f"{value:.4f}" if value >= 0.001 else f"{value:.1g}"


def _one_side(assessment: Assessment) -> tuple[str, str] | None:
    """Nearly all of the error to one side: how far on average, or how often, where events are rare."""
    predicted, rate = assessment.mean_prediction, assessment.event_rate
    bias, regions = predicted - rate, assessment.direction.regions
    same = sum(region.share for region in regions if region.gap * bias > 0.0)
    rare = 0.0 < predicted < RARE and rate > 0.0
    one_sided = same >= ONE_SIDED * sum(region.share for region in regions)
    # A ratio of rare events is the sum of all errors, so that a significant bias is enough.
    if bias == 0.0 or not (one_sided or (rare and assessment.direction.label != NO_DIRECTION)):
        return None
    if rare:
        ratio = rate / predicted
        if 1.0 / NOTABLE < ratio < NOTABLE:
            return None
        times = f"{ratio:.0f}" if ratio >= 10.0 else f"{ratio:.2g}"
        return (
            f"Events are {times} times as frequent as predicted",
            f"events {times} × predicted",
        )
    side = _side(bias)
    return f"Predictions are {side} on average", side


def _ranges(regions: Sequence[Region]) -> tuple[str, str]:
    """The range that holds most of the error, and the largest to the other side."""
    if not regions:
        return "Miscalibrated", "miscalibrated"
    first = regions[0]
    other = next((region for region in regions if region.gap * first.gap < 0.0), None)
    if other is None:
        side, ends = _side(first.gap), first.ends
        where = "from" if " to " in ends else "of"
        return f"Predictions {where} {ends} are {side}", f"{side} at {ends}"
    text = ", ".join(
        f"too {'high' if one.gap > 0.0 else 'low'} at {one.ends}" for one in (first, other)
    )
    return text.capitalize(), text


def _side(gap: float) -> str:
    return f"too {'high' if gap > 0.0 else 'low'} by {abs(gap):.{decimal_places(abs(gap))}f}"
