"""Numbers out of a sketch or its atoms."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "binned_decomposition": "measures.isotonic",
    "Certificate": "measures.smooth_ece",
    "corp_decomposition": "measures.isotonic",
    "cross_validated_ece": "measures.binned",
    "cumulative_differences": "measures.cumulative",
    "CumulativeDifferences": "measures.cumulative",
    "debiased_ece": "measures.binned",
    "Decomposition": "measures.isotonic",
    "Distance": "measures.distance",
    "cutoff_calibration_error": "measures.cumulative",
    "distance_to_calibration": "measures.distance",
    "distance_to_calibration_result": "measures.distance",
    "ece": "measures.binned",
    "expected_calibration_error": "measures.binned",
    "murphy": "measures.isotonic",
    "MurphyCurve": "measures.isotonic",
    "ecce_mad": "measures.cumulative",
    "ecce_range": "measures.cumulative",
    "interval_calibration_error": "measures.distance",
    "kde_ece": "measures.kernel",
    "kernel_calibration_error": "measures.kernel",
    "loss_gap": "measures.weak_error",
    "loss_gap_result": "measures.weak_error",
    "LossGap": "measures.weak_error",
    "measure_all": "measures.catalogue",
    "Measures": "measures.catalogue",
    "miscalibration": "measures.isotonic",
    "mmce": "measures.kernel",
    "multiclass_error": "measures.catalogue",
    "smooth_ece_result": "measures.smooth_ece",
    "SmoothECE": "measures.smooth_ece",
    "spline_ks_error": "measures.cumulative",
    "squared_kernel_calibration_error": "measures.kernel",
    "sweep_ece": "measures.binned",
    "t_cal": "measures.binned",
    "TCal": "measures.binned",
    "truthful_atb": "measures.cumulative",
    "weak_calibration_error": "measures.weak_error",
    "weak_calibration_result": "measures.weak_error",
    "WeakCalibration": "measures.weak_error",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.measures", _HOME)
