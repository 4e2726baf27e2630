"""Every row by a map that has not seen it: rows dealt into folds, clusters whole."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.points import Points
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, Option, TooFewRows
from calibrant.recalibration.learned_map import Recalibrator

__all__ = ["cross_fitted", "dealt", "fitted", "rows_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def cross_fitted(candidate: Recalibrator, pairs: Rows, fold: Integers) -> Floats:
    """Every prediction by the map of the rows outside its fold."""
    predictions = np.empty_like(pairs.p)
    for held_out in (fold == k for k in range(int(fold.max()) + 1)):
        predictions[held_out] = fitted(candidate, pairs.select(~held_out)).transform(
            pairs.p[held_out]
        )
    return predictions


def rows_of(
    sketch: Sketch, y_prob: Any, sample_weight: Any, cluster: Any
) -> tuple[NDArray[np.int64], Floats]:
    """Outcomes and predictions of a sketch that counts rows: those of a cell are alike."""
    for name, value in {
        "y_prob": y_prob,
        "sample_weight": sample_weight,
        "cluster": cluster,
    }.items():
        if value is not None:
            raise InputError(
                "must be left out with a Sketch",
                argument=name,
                cure="Pass {y_true} and {y_prob} as arrays.",
                y_true=Option("y_true"),
                y_prob=Option("y_prob"),
            )
    if sketch.weighted:
        raise InputError(
            "must count rows to be dealt into folds, and this Sketch holds weights",
            argument="y_true",
            cure="Pass {y_true} and {y_prob} as arrays.",
            y_true=Option("y_true"),
            y_prob=Option("y_prob"),
        )
    atoms = Points.of(sketch)
    counts = np.rint(atoms.mass).astype(np.int64)
    labels = np.repeat(np.tile([0, 1], atoms.p.size), counts.ravel())
    return labels, np.repeat(np.repeat(atoms.p, 2), counts.ravel())


def dealt(y: Floats, unit: Integers, called: str, folds: int, seed: int) -> Integers:
    """The fold of each row: units at random, but no fold takes all units with or without the event."""
    units = int(unit.max()) + 1
    if not 2 <= folds <= units:
        raise InputError(
            "must lie between 2 and the {units} {called}",
            argument="folds",
            seen=folds,
            cure="Pass fewer folds, or more rows.",
            units=units,
            called=called,
        )
    events = np.bincount(unit, y, minlength=units)
    some = events > 0.0
    others = np.bincount(unit, minlength=units) > events
    for held, what in ((some, "with the event"), (others, "without it")):
        if np.count_nonzero(held) < 2:
            raise TooFewRows(
                "must hold two or more {called} {what}, to judge a map on {called} that it has not seen",
                argument="y_true",
                seen=int(np.count_nonzero(held)),
                saying="there are {} among {units}",
                cure="Pass more rows.",
                called=called,
                what=what,
                units=units,
            )
    order = generator(seed).permutation(units)
    order = order[np.argsort((some * 1 + ~others)[order], kind="stable")]
    fold = np.empty(units, dtype=np.int64)
    fold[order] = np.arange(units) % folds
    return fold[unit]


def fitted(candidate: Recalibrator, pairs: Rows) -> Recalibrator:
    """A copy of the map, learned from these rows."""
    labels: Literal["binary", "soft"] = "soft" if pairs.soft else "binary"
    return deepcopy(candidate).fit(pairs.p, pairs.y, pairs.weight, labels=labels)
