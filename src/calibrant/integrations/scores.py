"""Calibration as a few numbers, for tools that keep numbers: never the value without its noise floor."""

from __future__ import annotations

from typing import Any, Unpack

from calibrant.data.rows import InputOptions
from calibrant.inference.assess import assess

__all__ = ["NUMBERS", "calibration_scores"]

NUMBERS = ("smooth_ece", "noise_floor", "interval_low", "interval_high", "p_value")


def calibration_scores(
    y_true: Any, y_prob: Any, *, cluster: Any = None, **options: Unpack[InputOptions]
) -> dict[str, float]:
    """SmoothECE with its noise floor, interval and p-value, as a dict of floats.

    Examples
    --------
    >>> scores = calibration_scores([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6])
    >>> list(scores)
    ['smooth_ece', 'noise_floor', 'interval_low', 'interval_high', 'p_value']
    """
    assessment = assess(y_true, y_prob, cluster=cluster, **options)
    values = (
        assessment.smooth_ece,
        assessment.noise_floor.value,
        assessment.interval.low,
        assessment.interval.high,
        assessment.p_value,
    )
    return dict(zip(NUMBERS, map(float, values), strict=True))
