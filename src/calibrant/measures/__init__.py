"""Numbers out of a sketch or its atoms."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Certificate": "smooth_ece",
    "CumulativeDifferences": "cumulative",
    "Decomposition": "isotonic",
    "Distance": "distance",
    "LossGap": "proper_loss",
    "Measures": "catalogue",
    "SmoothECE": "smooth_ece",
    "TCal": "tcal",
    "WeakCalibration": "weak",
    "binned_decomposition": "isotonic",
    "binned_ece": "binned",
    "corp_decomposition": "isotonic",
    "cross_validated_ece": "binned",
    "cumulative_differences": "cumulative",
    "debiased_ece": "binned",
    "distance_to_calibration": "distance",
    "distance_to_calibration_result": "distance",
    "ecce_mad": "cumulative",
    "ecce_range": "cumulative",
    "interval_calibration_error": "interval",
    "kde_ece": "density",
    "kernel_calibration_error": "kernel",
    "loss_gap": "proper_loss",
    "loss_gap_result": "proper_loss",
    "measure_all": "catalogue",
    "miscalibration": "isotonic",
    "mmce": "kernel",
    "multiclass_error": "multiclass",
    "smooth_ece_result": "smooth_ece",
    "spline_ks_error": "cumulative",
    "squared_kernel_calibration_error": "kernel",
    "sweep_ece": "binned",
    "t_cal": "tcal",
    "truthful_atb": "cumulative",
    "weak_calibration_error": "weak",
    "weak_calibration_result": "weak",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant.measures' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calibrant.measures.{_HOME[name]}"), name)
