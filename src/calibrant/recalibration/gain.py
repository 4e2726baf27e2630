"""The mean of what a map saves, its interval, and the verdict by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._format import decimals, percent
from calibrant.measures.result_record import Record

__all__ = ["Gain", "interval_of_gain"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Gain(Record):
    """Scores before and after a map, and what it gains in log loss."""

    before: Any
    after: Any
    gain: float
    low: float
    high: float
    confidence: float
    n: int

    @property
    def verdict(self) -> str:
        """Is it "better", "worse" or "no clear difference", by the interval of the gain."""
        if self.low > 0.0:
            return "better"
        return "worse" if self.high < 0.0 else "no clear difference"

    def _said(self, names: dict[str, str]) -> str:
        """The gain, and these scores under their names."""
        scores = ", ".join(
            f"{name} {decimals(getattr(self.before, score))} → {decimals(getattr(self.after, score))}"
            for score, name in names.items()
        )
        return (
            f"{type(self).__name__}({self.verdict}: log loss {decimals(self.before.log_loss)} → "
            f"{decimals(self.after.log_loss)}, gain {self.gain:+.4f} ({percent(self.confidence)} interval "
            f"{self.low:+.4f} to {self.high:+.4f}), {scores}, n={self.n})"
        )


def interval_of_gain(
    saved: Floats, weight: Floats, unit: NDArray[np.int64], confidence: float
) -> tuple[float, float, float]:
    """The mean of what every row saves, and Student's interval for it over units of rows.

    Examples
    --------
    >>> gain, low, high = interval_of_gain(np.array([1.0, 2.0, 3.0]), np.ones(3), np.arange(3), 0.95)
    >>> round(gain, 6), round(high - gain, 3)
    (2.0, 2.484)
    """
    from scipy.special import stdtrit

    share = weight / weight.sum()
    gain = float(share @ saved)
    sums = np.bincount(unit, share * (saved - gain))
    size = np.bincount(unit, share)
    units = 1.0 / float(size @ size)  # as many of equal weight
    error = float(np.linalg.norm(sums) * np.sqrt(units / max(units - 1.0, 1e-9)))
    reach = float(stdtrit(max(units - 1.0, 1e-9), 0.5 + 0.5 * confidence)) * error
    return gain, gain - reach, gain + reach
