"""Diagrams: curves as data, and the artists that draw them."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "binned_diagram": "plotting.binned",
    "BinnedDiagram": "plotting.binned",
    "cumulative_diagram": "plotting.cumulative",
    "CumulativeDiagram": "plotting.cumulative",
    "decision_curve": "plotting.decision_curve",
    "Diagrams": "plotting.group",
    "isotonic_diagram": "plotting.isotonic",
    "IsotonicDiagram": "plotting.isotonic",
    "map_diagram": "plotting.map_diagram",
    "reliability_diagram": "plotting.smooth",
    "reliability_diagrams": "plotting.group",
    "ReliabilityDiagram": "plotting.smooth",
    "risk_coverage_diagram": "plotting.risk_coverage",
    "RiskCoverageDiagram": "plotting.risk_coverage",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.plotting", _HOME)
