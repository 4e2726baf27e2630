"""Axes for frequencies against probabilities: from 0 to 1, as far as the rows go, or in log-odds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number, require_choice
from calibrant.errors import InputError
from calibrant.plotting.axis import Axis

__all__ = ["HAPPENED", "PREDICTED", "probability_axes"]

Floats = NDArray[np.float64]

PREDICTED, HAPPENED = "predicted probability", "how often it happened"
# An axis is as long as the rows need but for these shares at either end, and ends at one of these digits.
_TAILS = 0.002
_ROUND = np.array([1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0])


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
