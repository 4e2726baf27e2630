"""Notes on the rows of a report: their number, ties, ends, weights, clusters, few events."""

from __future__ import annotations

import numpy as np

from calibrant._format import percent
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.sketch import Sketch, are_hard_labels

__all__ = ["notes_on"]

FEW_EVENTS = 20
"""Events below which intervals are wide whatever the number of rows."""
HEAVY_TIE = 0.05
"""Share of the rows from which on one prediction is worth a note."""
SEEN_AT_AN_END = 0.001
"""Share of the rows at 0 or 1 that is worth a note."""
NEAR_AN_END = 2e-5
"""A little more than the width of a cell of a sketch, 2⁻¹⁶."""


def notes_on(sketch: Sketch, *, clusters: int | None = None) -> tuple[str, ...]:
    """Sentences on the rows, in the order in which they are read.

    `clusters` is how many clusters the rows are known to form, if they are not independent.

    Examples
    --------
    >>> for note in notes_on(Sketch.from_counts(p=[0, 0.5], n=[60, 40], events=[0, 21])):
    ...     print(note)
    100 rows, 21 with the event (21%). No rows were dropped.
    60% of the rows share one prediction, 0.
    60% of the rows lie at 0 or within 0.00002 of it, 0% at 1.
    """
    counts = sketch.counts.sum(axis=0)
    weighted = not np.allclose(
        over_outcomes(sketch.weights), over_outcomes(sketch.counts), rtol=1e-9
    )
    notes = [f"{_size(sketch, weighted)} {_dropped(sketch)}"]
    if are_hard_labels(sketch):
        notes.append("All predictions are 0 or 1: these are hard labels, not probabilities.")
    if weighted:
        effective = sketch.total_weight**2 / float(sketch.squared_weights.sum())
        notes.append(
            f"The weights leave an effective sample size of {effective:,.0f} rows: the value is that of the "
            "weighted population, the uncertainty that of this many rows."
        )
    notes += _ties_and_ends(sketch)
    if clusters:
        notes.append(
            f"The rows belong to {clusters:,} clusters; interval, floor and p-value are those of clusters."
        )
    if not sketch.weights.sum(axis=0).all():
        only = int(sketch.weights[:, 1].any())
        notes.append(
            f"All outcomes are {only}: calibration can be measured, discrimination cannot."
        )
    elif 0 < counts.min() < FEW_EVENTS:
        which = "events" if counts[1] <= counts[0] else "rows without the event"
        notes.append(f"There are only {counts.min()} {which}: expect wide intervals.")
    return tuple(notes)


def _size(sketch: Sketch, weighted: bool) -> str:
    if sketch.weighted:
        return f"{sketch.n:,} rows with {'weights' if weighted else 'soft outcomes'}."
    events = int(sketch.counts[:, 1].sum())
    return f"{sketch.n:,} rows, {events:,} with the event ({percent(events / sketch.n)})."


def _dropped(sketch: Sketch) -> str:
    dropped = dict(sketch.dropped)
    if not dropped:
        return "No rows were dropped."
    many = sum(dropped.values())
    reasons = ", ".join(f"{count:,} for {reason}" for reason, count in dropped.items())
    return f"{many:,} {'row was' if many == 1 else 'rows were'} dropped: {reasons}."


def _ties_and_ends(sketch: Sketch) -> list[str]:
    """Notes on predictions that many rows share, and on those at 0 and 1.

    Predictions next to 0 or 1, as naive Bayes makes them, share a cell without being equal.
    """
    points = Points.of(sketch)
    share = over_outcomes(points.mass) / points.total
    low, high = points.p <= NEAR_AN_END, points.p >= 1.0 - NEAR_AN_END
    exact = ~(low | high) | (points.p == 0.0) | (points.p == 1.0)
    notes = []
    most = int(np.argmax(share * exact))
    if exact[most] and share[most] >= HEAVY_TIE and points.p.size > 1:
        notes.append(
            f"{percent(float(share[most]))} of the rows share one prediction, {points.p[most]:.4g}."
        )
    at_low, at_high = float(share[low].sum()), float(share[high].sum())
    if at_low + at_high >= SEEN_AT_AN_END:
        notes.append(
            f"{percent(at_low)} of the rows lie at 0 or within 0.00002 of it, {percent(at_high)} at 1."
        )
    return notes
