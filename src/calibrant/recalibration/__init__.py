"""Maps from predictions to better calibrated ones, behind one interface."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AdaptiveRecalibrator": "recalibration.adaptive",
    "CrossVennAbersRecalibrator": "recalibration.venn_abers",
    "BetaRecalibrator": "recalibration.parametric",
    "IdentityRecalibrator": "recalibration.parametric",
    "IsotonicRecalibrator": "recalibration.parametric",
    "OneVsRestRecalibrator": "recalibration.multiclass",
    "OffsetRecalibrator": "recalibration.parametric",
    "PlattRecalibrator": "recalibration.parametric",
    "RandomizedRecalibrator": "repair.randomized",
    "Recalibrator": "recalibration.interface",
    "SplineRecalibrator": "recalibration.spline",
    "StructuredScaling": "recalibration.scaling",
    "SmoothRecalibrator": "recalibration.smooth",
    "TemperatureRecalibrator": "recalibration.parametric",
    "TemperatureScaling": "recalibration.scaling",
    "VectorScaling": "recalibration.scaling",
    "VennAbersRecalibrator": "recalibration.venn_abers",
    "choose_recalibrator": "repair.choice",
    "load_recalibrator": "recalibration.interface",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant.recalibration' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calibrant.{_HOME[name]}"), name)
