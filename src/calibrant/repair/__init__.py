"""Which map to use, what it gains, and maps that need a test of calibration."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "cross_fitted_effect": "repair.effect",
    "effect_of": "repair.effect",
    "choose_recalibrator": "repair.choice",
    "map_diagram": "repair.map_diagram",
    "RandomizedRecalibrator": "repair.randomized",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.repair", _HOME)
