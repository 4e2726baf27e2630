"""Round values along an axis, and how they are written."""

from __future__ import annotations

import math

__all__ = ["linear_ticks", "odds_text"]


def linear_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """About five round values between the limits, with their labels."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / raw)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    return tuple((round(v, 12), _decimal(round(v, 12))) for v in values)


def odds_text(value: float) -> str:
    """Decimals as far as they are short, and powers of ten beyond."""
    for part, before in ((value, ""), (1 - value, "1 − ")):
        if part < 0.00099:
            return before + "10⁻" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[round(-math.log10(part))]
    return _decimal(value)


def _decimal(value: float) -> str:
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
