"""How sure: intervals, noise floor, tests, comparisons."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "assess": "inference.assess",
    "assess_by": "inference.assess_by",
    "Assessment": "inference.assessment",
    "compare": "inference.compare",
    "compare_by": "inference.compare_by",
    "Comparison": "inference.comparison",
    "GroupAssessments": "inference.groups",
    "Monitor": "inference.monitor",
    "required_n": "inference.planning",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.inference", _HOME)
