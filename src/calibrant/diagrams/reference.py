"""What a curve is compared with: the diagonal, a calibrated model's band, climatology; and their axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number, require_choice
from calibrant._format import decimals
from calibrant.diagrams.bands import Bounds
from calibrant.drawing.panel import Axis, Band, Hill, Ink, Line, Mark
from calibrant.errors import Function, InputError
from calibrant.inference.profile import Profiled

__all__ = [
    "HAPPENED",
    "PREDICTED",
    "attributes_marks",
    "attributes_of",
    "calibrated_marks",
    "diagonal",
    "histogram",
    "in_words",
    "probability_axes",
]

Floats = NDArray[np.float64]

PREDICTED, HAPPENED = "predicted probability", "how often it happened"
PERFECT = "perfect calibration (below it: predicted too high)"
SKILL = "Brier skill score"
BARS = 60
# An axis is as long as the rows need but for these shares at either end, and ends at one of these digits.
_TAILS = 0.002
_ROUND = np.array([1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0])


def diagonal(ink: Ink = "neutral", says: str = PERFECT) -> Mark:
    """The diagonal, from end to end also of logit axes."""
    odds = 10.0 ** np.arange(-9.0, 0.0, 0.125)
    x = np.union1d(np.linspace(0.0, 1.0, 257), np.concatenate([odds, 1.0 - odds]))
    return Line(key="diagonal", ink=ink, x=x, y=x, says=says)


def in_words(confidence: float) -> str:
    """What the band of a calibrated model means, for the legend."""
    return f"if it were calibrated: {100 * confidence:g} of 100 samples stay inside"


def calibrated_marks(
    reference: str | None, x: Floats, bounds: Bounds, confidence: float
) -> list[Mark]:
    """The diagonal and, unless that is all, the band of what a calibrated model would show."""
    require_choice("reference", reference, ("band", "diagonal", None))
    if reference is None:
        return []
    if reference == "diagonal" or not np.isfinite(bounds.low).any():
        return [diagonal()]
    band = Band(
        key="consistency",
        ink="neutral",
        x=x,
        low=bounds.low,
        high=bounds.high,
        says=in_words(confidence),
    )
    return [band, diagonal()]


def attributes_of(attributes: bool | Profiled, rate: float) -> tuple[list[Mark], list[str]]:
    """The marks of the weather forecasters' overlay, and the skill that the weather profile found."""
    if isinstance(attributes, bool):
        return (attributes_marks(rate) if attributes else []), []
    if not isinstance(attributes, Profiled) or SKILL not in set(attributes):
        raise InputError(
            "must be True, False, or what the weather profile found",
            argument="attributes",
            seen=attributes,
            cure='Pass {assess}(..., profile="weather").profile.',
            assess=Function("assess"),
        )
    skill = attributes[SKILL]
    value, low, high = (decimals(one, places=3) for one in (skill.value, skill.low, skill.high))
    return attributes_marks(rate), [f"{SKILL} {value} ({low} to {high})"]


def attributes_marks(rate: float) -> list[Mark]:
    """The weather forecasters' overlay: climatology, the line of no skill, and the area with skill.

    A row of predictions adds to the Brier skill score where it lies closer to what happened than the
    event rate does: between the line y = (x + rate) / 2 and the vertical at the rate.

    References
    ----------
    Hsu and Murphy, *The attributes diagram: a geometrical framework for assessing the quality of
    probability forecasts*, 1986.
    """
    x = np.array([0.0, rate, 1.0])
    no_skill = (x + rate) / 2
    low, high = np.array([0.0, rate, no_skill[2]]), np.array([no_skill[0], rate, 1.0])
    says = f"better than always saying {rate:.3g}"
    level = np.array([0.0, 1.0])
    return [
        Band(key="skill", ink="faint", x=x, low=low, high=high, says=says),
        Line(key="no skill", ink="neutral", x=x, y=no_skill, dash="dotted", says="no skill"),
        Line(
            key="climatology",
            ink="faint",
            x=level,
            y=np.full(2, rate),
            dash="dashed",
            says="how often it happened over all",
        ),
        Line(key="climatology", ink="faint", x=np.full(2, rate), y=level, dash="dashed"),
    ]


def probability_axes(
    axes: str, rare: float, x: Floats, y: Floats, weight: Floats
) -> tuple[Axis, Axis]:
    """Axes for frequencies against probabilities.

    Parameters
    ----------
    axes : {"auto", "probability", "fit", "logit"}
        From 0 to 1; only as far as the rows go, from one end; or in log-odds. "auto" fits axes to rows
        that nearly all lie within `rare` of one end.
    rare : float
        How close to an end makes an axis of its own.
    x, y, weight : float64[k]
        Points of the curve, and the share of rows at each.
    """
    require_choice("axes", axes, ("auto", "probability", "fit", "logit"))
    if not is_number(rare) or not 0.0 <= rare <= 1.0:
        raise InputError(
            "must lie in [0, 1]",
            argument="rare",
            seen=rare,
            cure="Pass the event rate below which to draw log-odds.",
        )
    known = np.isfinite(x) & np.isfinite(y)
    passed = np.cumsum(np.where(known, weight, 0.0))
    passed /= passed[-1] if passed[-1] > 0 else 1.0
    ends = np.concatenate([_inner(x, passed, known, _TAILS), _inner(y, passed, known, 5 * _TAILS)])
    if axes == "logit":
        return _logit_axes(ends)
    if axes == "probability":
        return _part(0.0, 1.0)
    top, bottom = _rounded_up(float(ends.max())), 1.0 - _rounded_up(1.0 - float(ends.min()))
    fits = axes == "fit"
    if top < 1.0 and (fits or top <= rare):
        return _part(0.0, top)
    if bottom > 0.0 and (fits or bottom >= 1.0 - rare):
        return _part(bottom, 1.0)
    return _part(0.0, 1.0)


def _inner(values: Floats, passed: Floats, known: NDArray[np.bool_], tails: float) -> Floats:
    """Values at all rows but a share at either end."""
    inner = known & (passed > tails) & (passed < 1 - tails)
    return values[inner if inner.any() else known]


def _part(low: float, high: float) -> tuple[Axis, Axis]:
    """Axes from low to high, with a strip for the histogram below."""
    span = high - low
    shown = None if span >= 1.0 else (low, high)
    x = Axis(PREDICTED, low - 0.02 * span, high + 0.02 * span, shown=shown)
    return x, Axis(HAPPENED, low - 0.12 * span, high + 0.04 * span)


def _rounded_up(value: float) -> float:
    """The next round number."""
    value = min(max(value, 1e-9), 1.0)
    power = 10.0 ** np.floor(np.log10(value))
    return float(min(round(power * _ROUND[_ROUND * power >= value * (1 - 1e-9)][0], 12), 1.0))


def _logit_axes(ends: Floats) -> tuple[Axis, Axis]:
    inside = ends[(ends > 0) & (ends < 1)]
    low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.1, 0.9)
    log_odds = np.log([low / (1 - low), high / (1 - high)])
    middle, half = log_odds.mean(), max((log_odds[1] - log_odds[0]) / 2, 1.0) * 1.15
    low, high = 1 / (1 + np.exp(-np.array([middle - half, middle + half])))
    low, high = float(max(low, 1e-9)), float(min(high, 1 - 1e-9))
    return Axis(f"{PREDICTED}, log-odds", low, high, "logit"), Axis(HAPPENED, low, high, "logit")


def histogram(
    axis: Axis, p: Floats, masses: Sequence[Floats], *, says: str, series: str = ""
) -> list[Mark]:
    """How many rows lie along an axis, as bars: of all rows, or below those without and above those with.

    The highest bar has height 1.
    """
    edges = axis.forward(np.clip(np.array(axis.shown or (axis.low, axis.high)), 1e-9, 1 - 1e-9))
    edges = np.linspace(edges[0], edges[1], BARS + 1)
    places = np.clip(axis.forward(np.clip(p, 1e-12, 1 - 1e-12)), edges[0], edges[-1])
    inside = (p >= axis.low) & (p <= axis.high)
    counts = [np.histogram(places[inside], edges, weights=mass[inside])[0] for mass in masses]
    highest = max(max(float(count.max()) for count in counts), 1e-300)
    x = np.repeat(edges, 2)
    x = 1 / (1 + np.exp(-x)) if axis.scale == "logit" else x
    return [
        Hill(
            key="predictions",
            ink="series" if k else "neutral",
            series=series if k else "",
            x=x,
            height=np.concatenate([[0.0], np.repeat(count / highest, 2), [0.0]]),
            side="top" if k else "bottom",
            bars=True,
            says="" if k else says,
        )
        for k, count in enumerate(counts)
    ]
