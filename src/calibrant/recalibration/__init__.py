"""Recalibration: maps from predictions to better calibrated ones, their choice and their effect."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "AdaptiveRecalibrator": "recalibration.adaptive",
    "BetaRecalibrator": "recalibration.parametric",
    "choose_recalibrator": "recalibration.choice",
    "cross_fitted_effect": "recalibration.effect",
    "CrossVennAbersRecalibrator": "recalibration.venn_abers",
    "effect_of": "recalibration.effect",
    "IdentityRecalibrator": "recalibration.parametric",
    "IsotonicRecalibrator": "recalibration.isotonic",
    "load_recalibrator": "recalibration.learned_map",
    "OffsetRecalibrator": "recalibration.parametric",
    "OneVsRestRecalibrator": "recalibration.multiclass",
    "PlattRecalibrator": "recalibration.parametric",
    "RandomizedRecalibrator": "recalibration.randomized",
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
