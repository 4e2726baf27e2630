"""Diagrams: statistics of curves, and the artists that draw them."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "binned_diagram": "plotting.binned",
    "BinnedDiagram": "plotting.binned",
    "cumulative_diagram": "plotting.cumulative",
    "CumulativeDiagram": "plotting.cumulative",
    "decision_curve": "plotting.decision_curve",
    "DecisionCurve": "plotting.decision_curve",
    "Diagrams": "plotting.diagrams",
    "forest_plot": "plotting.forest",
    "ForestPlot": "plotting.forest",
    "isotonic_diagram": "plotting.isotonic",
    "IsotonicDiagram": "plotting.isotonic",
    "map_diagram": "plotting.map_diagram",
    "MapDiagram": "plotting.map_diagram",
    "register_theme": "plotting.themes",
    "reliability_diagram": "plotting.reliability",
    "reliability_diagrams": "plotting.diagrams",
    "ReliabilityDiagram": "plotting.reliability",
    "ReliabilityDisplay": "plotting.display",
    "risk_coverage_diagram": "plotting.risk_coverage",
    "RiskCoverageDiagram": "plotting.risk_coverage",
    "Theme": "plotting.themes",
    "THEMES": "plotting.themes",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.plotting", _HOME)
