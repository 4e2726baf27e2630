"""SmoothECE of calibrated predictions on as many rows."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.data.sketch import Sketch
from calibrant.inference.calibration_test import CalibrationTest

__all__ = ["NoiseFloor", "noise_floor"]


@dataclass(frozen=True)
class NoiseFloor:
    """Mean SmoothECE under calibration, on the same scale as the SmoothECE beside it."""

    value: float

    def __float__(self) -> float:
        return self.value


def noise_floor(sketch: Sketch) -> NoiseFloor:
    """Mean SmoothECE of calibrated predictions of this distribution, at this n.

    Outcomes of the sketch are used only where weights may depend on them.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> noise_floor(Sketch.from_arrays((p > 0.5).astype(int), p))
    NoiseFloor(value=0.030...)
    >>> noise_floor(Sketch.from_counts([0.1, 0.5, 0.9], [300, 400, 300], [0, 0, 0]))
    NoiseFloor(value=0.01...)
    """
    return NoiseFloor(CalibrationTest.of(sketch).noise_floor)
