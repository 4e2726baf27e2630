"""What a reader should know about the rows before believing a number: ends, ties, size, weights."""

from __future__ import annotations

import numpy as np

from calibrant._format import percent
from calibrant.data.atoms import Atoms
from calibrant.data.sketch import Sketch

__all__ = ["notes_on"]

FEW_VALUES = 50
FEW_EVENTS = 20
HEAVY_TIE = 0.05
MANY_ALIKE = 2.0
NEAR_AN_END = 2e-5


def notes_on(sketch: Sketch, *, clusters: int | None = None) -> tuple[str, ...]:
    """Sentences on the data, in the order in which they are read.

    `clusters` is how many clusters the rows are known to form, if they are not independent.

    Examples
    --------
    >>> for note in notes_on(Sketch.from_counts(p=[0, 0.5], n=[60, 40], events=[0, 21])):
    ...     print(note)
    100 rows, 21 with the event (21 %). No rows were dropped.
    The predictions take only 2 different values: between them the curve is interpolation.
    60 % of the rows share one prediction, 0.
    60 % of the rows lie at 0 or within 0.00002 of it, 0 % at 1.
    """
    atoms = Atoms.from_sketch(sketch)
    share = atoms.mass.sum(axis=1) / atoms.total
    return tuple(
        note
        for note in (
            _size(sketch),
            _weights(sketch),
            _few_values(sketch, atoms),
            _ties(atoms, share),
            _ends(atoms, share),
            _clusters(clusters) if clusters else _repeats(sketch, atoms),
            _one_outcome(sketch),
            _few_events(sketch),
        )
        if note
    )


def _size(sketch: Sketch) -> str:
    events = int(sketch.counts[:, 1].sum())
    dropped = dict(sketch.dropped)
    many = sum(dropped.values())
    lost = (
        f"{many:,} {'row was' if many == 1 else 'rows were'} dropped: "
        + ", ".join(f"{count:,} for {reason}" for reason, count in dropped.items())
        + "."
        if dropped
        else "No rows were dropped."
    )
    if sketch.weighted:
        kind = "weights" if _has_weights(sketch) else "soft outcomes"
        return f"{sketch.n:,} rows with {kind}. {lost}"
    rate = events / sketch.n
    return f"{sketch.n:,} rows, {events:,} with the event ({percent(rate)}). {lost}"


def _has_weights(sketch: Sketch) -> bool:
    """Whether rows count for more or less than one; a soft outcome only divides the one."""
    return not np.allclose(sketch.weights.sum(axis=1), sketch.counts.sum(axis=1), rtol=1e-9)


def _weights(sketch: Sketch) -> str:
    if not _has_weights(sketch):
        return ""
    effective = sketch.total_weight**2 / float(sketch.squared_weights.sum())
    return (
        f"The weights leave an effective {effective:,.0f} rows: the value is that of the weighted "
        "population, the uncertainty that of so many rows."
    )


def _few_values(sketch: Sketch, atoms: Atoms) -> str:
    if atoms.p.size > FEW_VALUES or sketch.n <= atoms.p.size:
        return ""
    values = "one value" if atoms.p.size == 1 else f"{atoms.p.size} different values"
    return f"The predictions take only {values}: between them the curve is interpolation."


def _ties(atoms: Atoms, share: np.ndarray) -> str:
    most = int(np.argmax(share))
    if share[most] < HEAVY_TIE or atoms.p.size == 1:
        return ""
    return f"{percent(float(share[most]))} of the rows share one prediction, {atoms.p[most]:.4g}."


def _ends(atoms: Atoms, share: np.ndarray) -> str:
    low = float(share[atoms.p <= NEAR_AN_END].sum())
    high = float(share[atoms.p >= 1 - NEAR_AN_END].sum())
    if low + high < 0.001:
        return ""
    return f"{percent(low)} of the rows lie at 0 or within 0.00002 of it, {percent(high)} at 1."


def _clusters(clusters: int) -> str:
    return f"The rows belong to {clusters:,} clusters; interval, floor and p-value are those of clusters."


def _repeats(sketch: Sketch, atoms: Atoms) -> str:
    """Where rows are few beside the cells, chance rarely puts two of them into one."""
    each = sketch.n / atoms.p.size
    if atoms.p.size <= FEW_VALUES or each < MANY_ALIKE or sketch.n > sketch.nodes / 8:
        return ""
    return (
        f"Each prediction occurs {each:.1f} times on average. If these are several rows of one event, "
        "they are not independent: say which belong together (`cluster=`, `--cluster`), or the interval "
        "is too narrow and the p-value too small."
    )


def _one_outcome(sketch: Sketch) -> str:
    negative, positive = sketch.weights.sum(axis=0)
    if negative and positive:
        return ""
    return (
        f"All outcomes are {'1' if positive else '0'}: calibration can be measured, discrimination "
        "cannot."
    )


def _few_events(sketch: Sketch) -> str:
    negative, positive = sketch.counts.sum(axis=0)
    rarer = int(min(negative, positive))
    if rarer >= FEW_EVENTS or rarer == 0:
        return ""
    which = "events" if positive <= negative else "rows without the event"
    return f"There are only {rarer} {which}: expect wide intervals."
