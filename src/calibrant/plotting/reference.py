"""What a curve is compared with: the diagonal, a calibrated model's band, climatology."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant._format import decimals
from calibrant.errors import Function, InputError
from calibrant.inference.profile import Profiled
from calibrant.plotting.bands import Bounds
from calibrant.plotting.legend_words import PERFECT, if_calibrated
from calibrant.plotting.panel import Band, Ink, Line, Mark

__all__ = [
    "attributes_marks",
    "attributes_of",
    "calibrated_marks",
    "diagonal",
]

Floats = NDArray[np.float64]

SKILL = "Brier skill score"


def diagonal(ink: Ink = "neutral", says: str = PERFECT) -> Mark:
    """The diagonal, from end to end also of logit axes."""
    odds = 10.0 ** np.arange(-9.0, 0.0, 0.125)
    x = np.union1d(np.linspace(0.0, 1.0, 257), np.concatenate([odds, 1.0 - odds]))
    return Line(key="diagonal", ink=ink, x=x, y=x, says=says)


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
        says=if_calibrated(confidence),
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
