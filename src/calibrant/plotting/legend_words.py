"""What the legend says of each mark that several diagrams share."""

from __future__ import annotations

__all__ = ["PERFECT", "PREDICTIONS", "UNCERTAIN", "if_calibrated"]

PERFECT = "perfect calibration (below it: predicted too high)"
PREDICTIONS = "where the predictions are"
UNCERTAIN = "uncertainty of the curve"


def if_calibrated(confidence: float) -> str:
    """Of the band of a calibrated model.

    Examples
    --------
    >>> if_calibrated(0.95)
    'if it were calibrated: 95 of 100 samples stay inside'
    """
    return f"if it were calibrated: {100 * confidence:g} of 100 samples stay inside"
