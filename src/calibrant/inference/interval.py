"""Interval of the population's SmoothECE."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant._arguments import CONFIDENCE, require_confidence
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.quantiles import normal_quantile
from calibrant.inference.residuals import ResidualGrid

__all__ = ["Interval", "interval", "normal_quantile", "require_confidence"]


@dataclass(frozen=True)
class Interval:
    """A range that holds the population's SmoothECE with the given confidence."""

    low: float
    high: float
    confidence: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    @property
    def width(self) -> float:
        """High minus low."""
        return self.high - self.low


def interval(sketch: Sketch, value: float, *, confidence: float = CONFIDENCE) -> Interval:
    """Interval for independent rows, from the construction of `CalibrationTest`.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    value : float
        Their SmoothECE.
    confidence : float
        Probability with which the interval holds the population's value.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> y = (np.arange(1000) * 0.618034 % 1 < 0.2 + 0.6 * p).astype(int)
    >>> sketch = Sketch.from_arrays(y, p)
    >>> interval(sketch, 0.0945)
    Interval(low=0.0..., high=0.12..., confidence=0.95)
    """
    require_confidence(confidence)
    if not 0.0 < value <= sketch.scale.length:
        raise InputError(
            f"`value` must be the SmoothECE of the rows, above 0; it is {value:g}", argument="value"
        )
    test, grid = CalibrationTest.of(sketch), ResidualGrid.of(sketch, value)
    high = test.upper_end(confidence, grid.error, value)
    return Interval(min(test.lower_end(confidence), value), high, confidence)
