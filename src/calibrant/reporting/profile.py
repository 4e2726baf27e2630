"""A profile in a report: its tables as text, and the picture that its field expects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calibrant.data.sketch import Sketch
from calibrant.inference.assessment import Assessment
from calibrant.plotting.binned import binned_diagram
from calibrant.plotting.decision_curve import decision_curve
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.risk_coverage import risk_coverage_diagram

__all__ = ["profile_diagram", "profile_view"]

ATTRIBUTES_BINS = 10


def profile_diagram(sketch: Sketch, assessment: Assessment) -> Diagram | None:
    """The picture of a field, from the sketch.

    The decision curve for clinicians, the attributes diagram for forecasters, and for the answers of
    language models the share that is wrong against the share that is given.
    """
    profile = assessment.profile
    if profile is None or sketch.weighted:
        return None
    settings: dict[str, Any] = {"confidence": assessment.confidence}
    if profile.name == "llm":
        declined = round(sketch.n / profile["coverage"].value) - sketch.n
        curve = risk_coverage_diagram(sketch, abstained=declined, **settings)
        # The sketch does not say which rows are of one cluster, and limits without it are too narrow.
        return replace(curve, bands=assessment.clusters is None)
    if assessment.clusters is not None:
        return None
    if profile.name == "clinical":
        return decision_curve(sketch, **settings)
    if profile.name == "weather":
        return binned_diagram(sketch, n_bins=ATTRIBUTES_BINS, attributes=True, **settings)
    return None


def profile_view(assessment: Assessment) -> dict[str, Any] | None:
    """Title, tables, notes and sources as text; None where there is no profile."""
    profile = assessment.profile
    if profile is None:
        return None
    tables = [profile.cells()] if profile.quantities else []
    tables += [table.cells() for table in profile.tables]
    sources = dict.fromkeys(entry.source for entry in profile.entries if entry.source)
    return {
        "title": f"Profile: {profile.name}",
        "tables": [{"columns": header, "rows": rows} for header, *rows in tables],
        "notes": [f"{name}: {note}" for name, note in profile.notes],
        "sources": "Sources: " + "; ".join(sources) + "." if sources else "",
    }
