"""Diagrams: curves as data, which draw themselves."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "binned_diagram": "diagrams.binned",
    "BinnedDiagram": "diagrams.binned",
    "cumulative_diagram": "diagrams.cumulative",
    "CumulativeDiagram": "diagrams.cumulative",
    "decision_curve": "diagrams.decision_curve",
    "Diagrams": "diagrams.group",
    "isotonic_diagram": "diagrams.isotonic",
    "IsotonicDiagram": "diagrams.isotonic",
    "reliability_diagram": "diagrams.smooth",
    "reliability_diagrams": "diagrams.group",
    "ReliabilityDiagram": "diagrams.smooth",
    "risk_coverage_diagram": "diagrams.risk_coverage",
    "RiskCoverageDiagram": "diagrams.risk_coverage",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.diagrams", _HOME)
