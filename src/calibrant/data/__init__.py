"""Predictions and outcomes, checked, and the sketches that they become."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "classwise": "data.classes",
    "confidence": "data.classes",
    "load": "data.sketch_file",
    "loss_scale": "data.scales",
    "Rows": "data.rows",
    "relative_scale": "data.scales",
    "save": "data.sketch_file",
    "Scale": "data.scales",
    "Sketch": "data.sketch",
    "Sketches": "data.sketches",
    "top_label": "data.classes",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.data", _HOME)
