"""Uncertainty: intervals and tests, groups, comparisons, sequential monitoring, sample sizes."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "assess": "inference.assess",
    "assess_by": "inference.assess_by",
    "Assessment": "inference.assessment",
    "compare": "inference.compare",
    "compare_by": "inference.compare",
    "Comparison": "inference.compare",
    "GroupAssessments": "inference.groups",
    "Monitor": "inference.monitor",
    "required_n": "inference.planning",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.inference", _HOME)
