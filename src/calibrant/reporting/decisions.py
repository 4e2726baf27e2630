"""Section on acting on predictions: the decision curve, and what of it miscalibration costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._format import decimals
from calibrant.data.sketch import Sketch
from calibrant.inference.assessment import Assessment
from calibrant.plotting.decision_curve import DecisionCurve, decision_curve

__all__ = ["decisions_of", "decisions_view"]

FEWEST_OF_EITHER = 20
USUAL = (0.05, 0.9)
"""Thresholds that the sentence looks at: beyond them a single row weighs as much as twenty."""
CAPTION = (
    "You act when the prediction is above the threshold. Net benefit counts right actions, less wrong ones at"
    " the rate at which the threshold trades them. A model is worth using where it lies above both “act "
    "always” and “act never”."
)
NOT_ALIKE = (
    "No decision curve: a report draws it from the sketch, for rows that count alike, and these {}. "
    "The command calibrant decide draws it from the rows."
)


def decisions_of(sketch: Sketch, assessment: Assessment) -> DecisionCurve | str:
    """The decision curve of rows that count alike; or why there is none."""
    if assessment.clusters is not None:
        return NOT_ALIKE.format("are in clusters")
    if sketch.weighted:
        return NOT_ALIKE.format("have weights or soft outcomes")
    if sketch.counts.sum(axis=0).min() < FEWEST_OF_EITHER:
        return f"No decision curve: it needs at least {FEWEST_OF_EITHER} rows of either outcome."
    return decision_curve(sketch, confidence=assessment.confidence)


def decisions_view(curve: DecisionCurve | str | None) -> dict[str, Any] | None:
    """A sentence, a caption and a table as text; the sentence alone where it says why there is no curve."""
    if curve is None:
        return None
    if isinstance(curve, str):
        return {"sentence": curve, "caption": "", "columns": [], "rows": []}
    header, *rows = curve.rows()
    return {"sentence": _sentence(curve), "caption": CAPTION, "columns": header, "rows": rows}


def _sentence(curve: DecisionCurve) -> str:
    benefit = curve.benefit
    usual = (benefit.thresholds >= USUAL[0]) & (benefit.thresholds <= USUAL[1])
    shown = (benefit.lost_low > 0.0) & usual
    if not shown.any():
        return "At no threshold do these rows show that miscalibration costs decisions."
    most = int(np.argmax(np.where(shown, benefit.lost, -np.inf)))
    lost, at = float(benefit.lost[most]), float(benefit.thresholds[most])
    events = f"{1000 * lost:.0f}" if lost >= 0.0095 else f"{1000 * lost:.1f}"
    return (
        f"Miscalibration costs most if you act above {at:g}: {decimals(lost)} of net benefit, as much as "
        f"{events} events missed in 1,000 cases."
    )
