"""An axis: its limits and scale, the round values along it, and how they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["Axis", "AxisScale"]

AxisScale: TypeAlias = Literal["linear", "logit"]

_MOST_TICKS = 6
_DECADES = tuple(10.0**-k for k in range(9, 0, -1))
_LOGIT_TICKS = (*_DECADES, 0.5, *(1 - tick for tick in reversed(_DECADES)))
# Between the decades where these are few: the first ones that leave room for their labels.
_THIRDS = (0.003, 0.03, 0.3, 0.7, 0.97, 0.997)
_LOGIT_FINER = (*_THIRDS, 0.002, 0.005, 0.02, 0.05, 0.2, 0.8, 0.95, 0.98, 0.995)
_ROOM_FOR_A_LABEL = 0.15


@dataclass(frozen=True)
class Axis:
    """Limits and scale of one axis.

    `names` stand at 0, 1, 2, ... in place of numbers. `shown` is the part of the whole range that an axis
    shows, where it does not show all: the caption says so.

    Examples
    --------
    >>> Axis("prediction", 0.0, 1.0).ticks()
    ((0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1'))
    >>> Axis("prediction", 0.001, 0.5, "logit").ticks()
    ((0.001, '0.001'), (0.01, '0.01'), (0.1, '0.1'), (0.5, '0.5'))
    """

    label: str
    low: float
    high: float
    scale: AxisScale = "linear"
    names: tuple[str, ...] = ()
    shown: tuple[float, float] | None = None

    @property
    def caption(self) -> str:
        """The label, and which part of the range the axis shows."""
        if self.shown is None:
            return self.label
        low, high = self.shown
        if low <= 0.0:
            return f"{self.label} (axis ends at {high:g})"
        ends = f"starts at {low:g}" if high >= 1.0 else f"runs from {low:g} to {high:g}"
        return f"{self.label} (axis {ends})"

    def __post_init__(self) -> None:
        if self.scale not in ("linear", "logit"):
            raise InputError(
                'an axis must be "linear" or "logit"', seen=self.scale, cure="Pass one of the two."
            )
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(
                "axis limits must be finite and increasing",
                seen=(self.low, self.high),
                cure="Pass the lower end first.",
            )
        if self.scale == "logit" and not 0 < self.low < self.high < 1:
            raise InputError(
                "limits of a logit axis must lie strictly between 0 and 1",
                seen=(self.low, self.high),
                cure="Pass limits such as 0.01 and 0.99.",
            )

    def forward(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates along the axis; NaN for what a logit axis cannot show."""
        values = np.asarray(values, dtype=np.float64)
        if self.scale == "linear":
            return values
        inside = np.where((values > 0) & (values < 1), values, np.nan)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def limits(self) -> tuple[float, float]:
        """The limits in the coordinates of `forward`."""
        low, high = self.forward(np.array([self.low, self.high]))
        return float(low), float(high)

    def fraction(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Position between the limits: 0 at the low end and 1 at the high end."""
        low, high = self.limits()
        return np.asarray((self.forward(values) - low) / (high - low))

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Round values inside the limits, with their labels."""
        if self.names:
            return tuple((float(k), name) for k, name in enumerate(self.names))
        if self.scale == "linear":
            return _linear_ticks(self.low, self.high)
        slack = 1 + 1e-9
        ticks = [t for t in _LOGIT_TICKS if self.low <= t * slack and t <= self.high * slack]
        if len(ticks) < 4:
            ticks = self._filled(ticks)
        every = -(-len(ticks) // _MOST_TICKS)
        return tuple((t, _odds_text(t)) for t in ticks[(len(ticks) - 1) % every :: every])

    def _filled(self, ticks: list[float]) -> list[float]:
        """The ticks, with finer ones wherever there is room."""
        kept = list(ticks)
        for tick in (t for t in _LOGIT_FINER if self.low <= t <= self.high):
            gaps = np.abs(self.fraction(np.array(kept)) - self.fraction(np.array(tick)))
            if np.min(gaps, initial=1.0) >= _ROOM_FOR_A_LABEL:
                kept.append(tick)
        return sorted(kept)


def _linear_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """About five round values between the limits, with their labels."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / raw)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    return tuple((round(v, 12), _decimal(round(v, 12))) for v in values)


def _odds_text(value: float) -> str:
    """Decimals as far as they are short, and powers of ten beyond."""
    for part, before in ((value, ""), (1 - value, "1 − ")):
        if part < 0.00099:
            return before + "10⁻" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[round(-math.log10(part))]
    return _decimal(value)


def _decimal(value: float) -> str:
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
