"""The finding of an assessment in one line, for titles and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibrant._format import p_equation
from calibrant.inference.assessment import (
    MISCALIBRATED,
    TOO_FEW,
    UNDETECTED,
    WITHIN_MARGIN,
    Assessment,
)
from calibrant.inference.direction import NO_DIRECTION, Region, decimal_places
from calibrant.plotting.neighborhoods import Curve, runs

ONE_SIDED = 0.9
"""Share of the error from which on it counts as being to one side."""
Outside = tuple[str, str]
"""Side of an error, and the range of predictions where the curve is outside its band."""
RARE = 0.05
"""Mean prediction below which an error is given as a ratio."""
NOTABLE = 1.25
"""Ratio nearer to 1 than which the range of the error says more."""
SLIGHT, SLIGHT_SHARE = 0.01, 0.1
"""Upper ends of intervals, as they are and as a share of the rarer outcome, of errors that hardly matter."""
STRONG = 0.01
"""P-value above which a rejection is weak evidence."""


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


def verdict_of(assessment: Assessment, curve: Curve | None = None, axis: float = 1.0) -> Verdict:
    """Direction and size of the error where calibration was rejected, and otherwise how large it may be.

    Errors to both sides are named by the ranges where a curve that is drawn, on an axis of this length, is
    outside its consistency band, the range with more of the error first.

    Examples
    --------
    >>> from calibrant.inference.assess import assess
    >>> verdict_of(assess([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])).clear
    False
    """
    most = number_text(assessment.interval.high)
    if assessment.finding == WITHIN_MARGIN:
        within = f"{WITHIN_MARGIN.capitalize()} of {assessment.margin:g} (error up to {most})"
        return Verdict(within, WITHIN_MARGIN, False)
    if not assessment.miscalibrated:
        if assessment.finding == TOO_FEW:
            few = f"{TOO_FEW.capitalize()} to tell (error up to {most})"
            return Verdict(few, TOO_FEW, False)
        return Verdict(f"{UNDETECTED.capitalize()} (could be up to {most})", UNDETECTED, False)
    outside = [] if curve is None else _outside(curve, axis)
    sentence, short = (
        _CONFIDENCE.get(assessment.direction.label)
        or _one_side(assessment, outside)
        or _seen(outside, assessment.direction.label)
        or (_NOWHERE if curve is not None and _is_inside(curve) else None)
        or _ranges(assessment.direction.regions)
    )
    rarer = min(assessment.event_rate, 1.0 - assessment.event_rate)
    if assessment.interval.high < min(SLIGHT, SLIGHT_SHARE * rarer):
        off = "" if "confident" in sentence else "off: "
        sentence = f"Slightly {off}{sentence[0].lower()}{sentence[1:]}"
        short = f"slightly {short}"
    if assessment.p_value_judged > STRONG:
        sentence = f"Weak evidence overall: {short} ({p_equation(assessment.p_value_judged)})"
    return Verdict(sentence, short, True)


_CONFIDENCE = {
    "overconfident": ("Overconfident: too near 0 and 1", "overconfident"),
    "underconfident": ("Underconfident: too near 0.5", "underconfident"),
}


_NOWHERE = ("Miscalibrated overall, at no single place clearly", MISCALIBRATED)
"""A rejection whose curve stays inside its band."""


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


def _one_side(assessment: Assessment, outside: Sequence[Outside]) -> tuple[str, str] | None:
    """Nearly all of the error to one side: how far on average, or how often, where events are rare.

    Of rare events most rows are in a corner of the picture, so the title says where the error is seen.
    """
    predicted, rate = assessment.mean_prediction, assessment.event_rate
    bias, regions = predicted - rate, assessment.direction.regions
    same = sum(region.share for region in regions if region.gap * bias > 0.0)
    rare = 0.0 < predicted < RARE and rate > 0.0
    one_sided = same >= ONE_SIDED * sum(region.share for region in regions)
    # A ratio of rare events is the sum of all errors, so that a significant bias is enough.
    if bias == 0.0 or not (one_sided or (rare and assessment.direction.label != NO_DIRECTION)):
        return None
    if rare:
        ratio = max(rate / predicted, predicted / rate)
        if ratio < NOTABLE:
            return None
        times = f"{ratio:.0f}" if ratio >= 10.0 else f"{ratio:.2g}"
        own = "too high" if bias > 0.0 else "too low"
        side = f"{times} times {own}"
        if outside and all(one == own for one, _ in outside):
            return f"Predictions {side}, clearly {_both(outside)}", side
    else:
        side = _side(bias)
    return f"Predictions are {side} on average", side


def _ranges(regions: Sequence[Region]) -> tuple[str, str]:
    """The range that holds most of the error."""
    if not regions:
        return MISCALIBRATED.capitalize(), MISCALIBRATED
    first = regions[0]
    both = any(region.gap * first.gap < 0.0 for region in regions)
    size = min(first.high - first.low or first.low, 1.0 - first.low) or 1.0
    where = _where(first.low, first.high, decimal_places(size))
    text = f"{'mostly ' if both else ''}{_side(first.gap)} {where}"
    return f"Predictions {text}", text


def _where(low: float, high: float, places: int, axis: tuple[float, float] = (0.0, 1.0)) -> str:
    """A range on an axis, to so many decimal places."""
    below, above = (f"{end:.{places}f}" for end in (low, high))
    near = 0.5 * 10.0**-places
    if low - axis[0] < near and axis[1] - high < near:
        return "everywhere"
    if low - axis[0] < near or axis[1] - high < near:
        return f"below {above}" if low - axis[0] < near else f"above {below}"
    return f"from {below} to {above}" if below != above else f"at {below}"


def _is_inside(curve: Curve) -> bool:
    """True of a curve that is drawn and nowhere outside its band."""
    y, drawn = curve.observed, curve.drawn
    outside = (y < curve.consistency_low) | (y > curve.consistency_high)
    return bool(drawn.any() and not outside[drawn].any())


def _outside(curve: Curve, axis: float) -> list[Outside]:
    """The two ranges with most of the error where the curve is outside its band, to a tenth of the axis."""
    places = int(1.0 - np.floor(np.log10(axis)))
    step = 10.0**-places
    drawn = curve.drawn
    x, y, weight = curve.prediction[drawn], curve.observed[drawn], curve.weight[drawn]
    sides = {
        "too low": y - curve.consistency_high[drawn],
        "too high": curve.consistency_low[drawn] - y,
    }
    found: list[tuple[float, Outside]] = []
    for side, beyond in sides.items():
        outside = beyond > 0.0
        for before, after in pairwise(runs(outside)):
            if x[after.start] - x[before.stop - 1] < step:
                outside[before.stop : after.start] = True
        for run in runs(outside):
            low, high = x[run.start], x[run.stop - 1]
            if f"{low:.{places}f}" != f"{high:.{places}f}":
                where = _where(low, high, places, (x[0], x[-1]))
                found.append((float((weight * np.abs(y - x))[run].sum()), (side, where)))
    return [one for _, one in sorted(found, reverse=True)[:2]]


def _seen(outside: Sequence[Outside], direction: str) -> tuple[str, str] | None:
    """The ranges by their sides, unless the larger one is against the direction of the mean error."""
    if not outside:
        return None
    side = outside[0][0]
    if direction.startswith("predictions") and not direction.endswith(side):
        return None
    if all(one == side for one, _ in outside):
        text = f"{side} {_both(outside)}"
    else:
        text = ", ".join(f"{one} {where}" for one, where in outside)
    return f"Predictions clearly {text}", text


def _both(outside: Sequence[Outside]) -> str:
    return " and ".join(where for _, where in outside)


def _side(gap: float) -> str:
    return f"too {'high' if gap > 0.0 else 'low'} by {abs(gap):.{decimal_places(abs(gap))}f}"
