"""Can I trust these probabilities? Measure, show and repair calibration."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "AdaptiveRecalibrator": "recalibration.adaptive",
    "CalibrationError": "errors",
    "InputError": "errors",
    "MergeError": "errors",
    "MissingDependency": "errors",
    "TooFewRows": "errors",
    "Monitor": "inference.monitor",
    "RecalibratedClassifier": "integrations.classifier",
    "RandomizedRecalibrator": "repair.randomized",
    "Scale": "data.scales",
    "Sketch": "data.sketch",
    "Sketches": "data.sketches",
    "SmoothRecalibrator": "recalibration.smooth",
    "assess": "inference.assess",
    "assess_by": "inference.assess_by",
    "binned_diagram": "diagrams.binned",
    "certify": "decisions.certify",
    "choose_recalibrator": "repair.choice",
    "classwise": "data.class_sketches",
    "compare": "inference.compare",
    "confidence": "data.multiclass",
    "cumulative_diagram": "diagrams.cumulative",
    "decision_curve": "diagrams.decision_curve",
    "effect_of": "repair.effect",
    "distance_to_calibration": "measures.distance",
    "isotonic_diagram": "diagrams.isotonic",
    "load": "data.wire",
    "load_recalibrator": "recalibration.interface",
    "measure_all": "measures.catalogue",
    "reliability_diagram": "diagrams.smooth",
    "reliability_diagrams": "diagrams.group",
    "report": "reporting.report",
    "required_n": "inference.planning",
    "risk_coverage_diagram": "diagrams.risk_coverage",
    "save": "data.wire",
    "scan": "read.scan",
    "selective": "decisions.selective",
    "smooth_ece": "measures.smooth_ece",
    "smooth_ece_result": "measures.smooth_ece",
    "top_label": "data.class_sketches",
    "weak_calibration_error": "measures.weak",
}

_TAKE_DATA = frozenset(
    (
        *("assess", "certify", "choose_recalibrator", "compare", "decision_curve", "measure_all"),
        *("reliability_diagram", "reliability_diagrams", "report", "selective"),
        *("binned_diagram", "cumulative_diagram", "isotonic_diagram", "risk_coverage_diagram"),
        *("smooth_ece", "smooth_ece_result"),
    )
)
"""Verbs that take arrays or sketches, to which `data=` and names of columns are added here."""

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"calibrant.{_HOME[name]}"), name)
    if name in _TAKE_DATA:
        from calibrant.read.from_data import takes_data

        value = takes_data(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
