"""Can I trust these probabilities? Measure, show and repair calibration."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    # measure
    "smooth_ece": "measures.smooth_ece",
    "smooth_ece_result": "measures.smooth_ece",
    "assess": "inference.assess",
    "assess_by": "inference.assess_by",
    "compare": "inference.compare",
    "expected_calibration_error": "measures.binned",
    "ece": "measures.binned",
    "measure_all": "measures.catalogue",
    # show
    "reliability_diagram": "plotting.smooth",
    "reliability_diagrams": "plotting.group",
    "report": "reporting.report",
    # read
    "scan": "io.scan",
    "Sketch": "data.sketch",
    "Sketches": "data.sketches",
    "save": "data.sketch_file",
    "load": "data.sketch_file",
    # many classes
    "confidence": "data.classes",
    "top_label": "data.classes",
    "classwise": "data.classes",
    # act
    "certify": "decisions.certify",
    "selective": "decisions.selective",
    "decision_curve": "plotting.decision_curve",
    # repair
    "choose_recalibrator": "recalibration.choice",
    "AdaptiveRecalibrator": "recalibration.adaptive",
    "RecalibratedClassifier": "integrations.classifier",
    "load_recalibrator": "recalibration.learned_map",
    # watch and plan
    "Monitor": "inference.monitor",
    "required_n": "inference.planning",
    # errors
    "CalibrantError": "errors",
    "InputError": "errors",
}
"""What a user types in a first week, by task; the rest lives one level down."""

_ROOMS = frozenset(
    (
        *("data", "datasets", "decisions", "errors", "inference", "integrations", "io"),
        *("measures", "plotting", "profiles", "recalibration", "reporting"),
    )
)

_TAKE_DATA = frozenset(
    (
        *("assess", "compare", "decision_curve"),
        *("reliability_diagram", "reliability_diagrams", "report"),
    )
)
"""Verbs that take arrays or sketches, to which `data=` and names of columns are added here."""

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name in _ROOMS:
        return importlib.import_module(f"calibrant.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"calibrant.{_HOME[name]}"), name)
    if name in _TAKE_DATA:
        from calibrant.io.from_data import takes_data

        value = takes_data(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
