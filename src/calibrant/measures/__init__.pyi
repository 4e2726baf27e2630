from calibrant.measures.binned import TCal as TCal
from calibrant.measures.binned import cross_validated_ece as cross_validated_ece
from calibrant.measures.binned import debiased_ece as debiased_ece
from calibrant.measures.binned import ece as ece
from calibrant.measures.binned import expected_calibration_error as expected_calibration_error
from calibrant.measures.binned import sweep_ece as sweep_ece
from calibrant.measures.binned import t_cal as t_cal
from calibrant.measures.catalogue import Measures as Measures
from calibrant.measures.catalogue import measure_all as measure_all
from calibrant.measures.catalogue import multiclass_error as multiclass_error
from calibrant.measures.cumulative import CumulativeDifferences as CumulativeDifferences
from calibrant.measures.cumulative import cumulative_differences as cumulative_differences
from calibrant.measures.cumulative import cutoff_calibration_error as cutoff_calibration_error
from calibrant.measures.cumulative import ecce_mad as ecce_mad
from calibrant.measures.cumulative import ecce_range as ecce_range
from calibrant.measures.cumulative import spline_ks_error as spline_ks_error
from calibrant.measures.cumulative import truthful_atb as truthful_atb
from calibrant.measures.distance import Distance as Distance
from calibrant.measures.distance import distance_to_calibration as distance_to_calibration
from calibrant.measures.distance import (
    distance_to_calibration_result as distance_to_calibration_result,
)
from calibrant.measures.distance import interval_calibration_error as interval_calibration_error
from calibrant.measures.isotonic import Decomposition as Decomposition
from calibrant.measures.isotonic import MurphyCurve as MurphyCurve
from calibrant.measures.isotonic import binned_decomposition as binned_decomposition
from calibrant.measures.isotonic import corp_decomposition as corp_decomposition
from calibrant.measures.isotonic import miscalibration as miscalibration
from calibrant.measures.isotonic import murphy as murphy
from calibrant.measures.kernel import kde_ece as kde_ece
from calibrant.measures.kernel import kernel_calibration_error as kernel_calibration_error
from calibrant.measures.kernel import mmce as mmce
from calibrant.measures.kernel import (
    squared_kernel_calibration_error as squared_kernel_calibration_error,
)
from calibrant.measures.smooth_ece import Certificate as Certificate
from calibrant.measures.smooth_ece import SmoothECE as SmoothECE
from calibrant.measures.smooth_ece import smooth_ece_result as smooth_ece_result
from calibrant.measures.weak_error import LossGap as LossGap
from calibrant.measures.weak_error import WeakCalibration as WeakCalibration
from calibrant.measures.weak_error import loss_gap as loss_gap
from calibrant.measures.weak_error import loss_gap_result as loss_gap_result
from calibrant.measures.weak_error import weak_calibration_error as weak_calibration_error
from calibrant.measures.weak_error import (
    weak_calibration_error_result as weak_calibration_error_result,
)
