"""Predictions and outcomes, checked, and the sketches that they become."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "classwise": "data.class_sketches",
    "confidence": "data.multiclass",
    "load": "data.sketch_files",
    "loss_scale": "data.named_scales",
    "Rows": "data.rows",
    "relative_scale": "data.named_scales",
    "save": "data.sketch_files",
    "Scale": "data.scales",
    "Sketch": "data.sketch",
    "Sketches": "data.sketches",
    "top_label": "data.class_sketches",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.data", _HOME)
