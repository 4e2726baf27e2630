"""Maps from predictions to better calibrated ones, behind one interface."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "BetaRecalibrator": "parametric",
    "IdentityRecalibrator": "parametric",
    "IsotonicRecalibrator": "parametric",
    "OneVsRestRecalibrator": "multiclass",
    "OffsetRecalibrator": "parametric",
    "PlattRecalibrator": "parametric",
    "RandomizedRecalibrator": "randomized",
    "Recalibrator": "interface",
    "SmoothRecalibrator": "smooth",
    "TemperatureRecalibrator": "parametric",
    "TemperatureScaling": "multiclass",
    "VectorScaling": "multiclass",
    "choose_recalibrator": "choice",
    "load_recalibrator": "interface",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant.recalibration' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calibrant.recalibration.{_HOME[name]}"), name)
