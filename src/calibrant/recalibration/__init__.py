"""Maps from predictions to better calibrated ones, behind one interface."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "AdaptiveRecalibrator": "recalibration.adaptive",
    "BetaRecalibrator": "recalibration.parametric",
    "choose_recalibrator": "repair.choice",
    "CrossVennAbersRecalibrator": "recalibration.venn_abers",
    "IdentityRecalibrator": "recalibration.parametric",
    "IsotonicRecalibrator": "recalibration.isotonic",
    "load_recalibrator": "recalibration.learned_map",
    "OffsetRecalibrator": "recalibration.parametric",
    "OneVsRestRecalibrator": "recalibration.multiclass",
    "PlattRecalibrator": "recalibration.parametric",
    "RandomizedRecalibrator": "repair.randomized",
    "Recalibrator": "recalibration.learned_map",
    "SmoothRecalibrator": "recalibration.smooth",
    "SplineRecalibrator": "recalibration.spline",
    "StructuredScaling": "recalibration.scaling",
    "TemperatureRecalibrator": "recalibration.parametric",
    "TemperatureScaling": "recalibration.scaling",
    "VectorScaling": "recalibration.scaling",
    "VennAbersRecalibrator": "recalibration.venn_abers",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.recalibration", _HOME)
