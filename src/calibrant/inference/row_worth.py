"""What rows with weights are worth: how many they count for, and how far their sums would stray.

Weights may depend on predictions, on outcomes and on both: where wrong calls are kept one time in ten, each
that is kept weighs ten. How far a sum strays then depends on what the outcomes would weigh that did not come.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch

__all__ = [
    "AllGroups",
    "cross_weights",
    "effective_rows",
    "expected_weights",
    "has_weight",
    "outcome_variances",
    "worth_of_rows",
]

Floats = NDArray[np.float64]

_BORROWED = 5.0
"""So many rows of the neighbours stand behind what a row of one cell is worth."""
_NEAREST, _NEAR = 5.0, 50.0
"""So many rows of a label say what a row next to them weighs: few where that depends on the prediction, many
where it is chance."""
_MOST_NEIGHBOURHOODS = 128
_FEW_ROWS, _MANY_ROWS = 30, 200
"""Of a neighbourhood: weights hardly change with predictions in the first, and are many in the second."""
_MANY_CELLS = 1 << 12
_LEAST_STRAYED, _LEAST_SQUARE = 1e-6, 1e-290
_HARDLY, _MAYBE, _SURELY = 1.5, 2.5, 4.0
"""Standard errors up to which weights do not depend on the outcome, up to which they may, and from which on
they do."""


def has_weight(sketch: Sketch) -> bool:
    """Whether any row has a weight whose square is not lost: there is nothing to assess otherwise."""
    return not sketch.weighted or bool((sketch.squared_weights > _LEAST_SQUARE).any())


def effective_rows(sketch: Sketch) -> Floats:
    """(Σw)² / Σw² in each non-empty cell: the number of equal rows with the same variance.

    A soft outcome is split over both labels, which makes Σw² too small; there are never more than the
    rows themselves.
    """
    weights = over_outcomes(sketch.weights)
    if not sketch.weighted:
        return weights
    squared = over_outcomes(sketch.squared_weights)
    rows = np.divide(weights**2, squared, out=np.zeros_like(weights), where=squared > 0)
    return np.asarray(np.minimum(rows, over_outcomes(sketch.counts)))


def cross_weights(sketch: Sketch) -> Floats:
    """Σ y(1 - y) over the soft outcomes of each cell: how far its two labels go together.

    0 for outcomes of 0 and 1. Where soft rows have weights of their own the sums of a sketch do not tell,
    and 0 is on the safe side: bands and intervals are then wider than they need be.
    """
    if not sketch.weighted:
        return np.zeros(sketch.cells.size)
    negative, positive = (sketch.weights - sketch.squared_weights).T
    counted = np.allclose(over_outcomes(sketch.weights), over_outcomes(sketch.counts), rtol=1e-9)
    both = np.allclose(negative, positive, rtol=1e-6, atol=1e-9)
    return np.maximum(positive, 0.0) if counted and both else np.zeros(sketch.cells.size)


def outcome_variances(
    sketch: Sketch, predictions: Floats, among: AllGroups | None = None
) -> Floats:
    """Variance of the weight of events in each cell, were the predictions calibrated.

    Outcomes of 0 and 1 are Bernoulli; soft ones stray less, as far as they do in the data. Weights may
    depend on the outcome, as where only one in ten of the rows without the event was kept: with
    ω = Σw² / Σw of each label, W f and W (1 - f) the weights that events and the others should have,

        Var Σ w (f - y)  =  Σ w² (f - y)²  ≈  W f (1 - f) ((1 - f) ω₁ + f ω₀),

    where W is that of `expected_weights`.
    """
    f = predictions.clip(0.0, 1.0)
    weight = over_outcomes(sketch.weights)
    if not sketch.weighted:
        return np.asarray(weight * f * (1.0 - f))
    cross = cross_weights(sketch)
    soft = bool(cross.any())
    squared = sketch.squared_weights + cross[:, None]
    place = sketch.cells / sketch.nodes
    worth = worth_of_rows(sketch.weights, squared, sketch.counts, f, place, among)
    expected = weight if soft else expected_weights(sketch.weights, worth, f)
    chance = expected * f * (1.0 - f) * ((1.0 - f) * worth[:, 1] + f * worth[:, 0])
    if soft:
        events, squared = sketch.weights[:, 1], sketch.squared_weights[:, 1]
        chance = np.minimum(chance, squared - 2.0 * f * events + weight * f**2)
    return np.asarray(np.maximum(chance, 0.0))


def expected_weights(weights: Floats, worth: Floats, f: Floats) -> Floats:
    """The weight of each cell, judged by how many rows it has and not by which outcomes came.

    A calibrated cell of weight W holds W f / ω₁ events and W (1 - f) / ω₀ others on average. Where the
    others weigh a hundred times more, one of them by chance would make the cell seem a hundred times
    heavier; the number of rows hardly changes. Where both weigh the same, it is the weight itself.
    """
    rows = over_outcomes(weights / worth)
    return np.asarray(rows / (f / worth[:, 1] + (1.0 - f) / worth[:, 0]))


def worth_of_rows(
    weights: Floats,
    squared: Floats,
    counts: NDArray[Any],
    f: Floats,
    place: Floats | None = None,
    among: AllGroups | None = None,
) -> Floats:
    """Σw² / Σw of each cell and label [m, 2]: what one of its rows counts for, with so many of them.

    Weights that have nothing to do with the outcome are those of all rows of a cell: an event would weigh
    what any row does, however much those weigh that happened to come. To take events for light by nature
    that are so by chance would turn too little happening, by weight, into evidence. So it is unless the rows
    show that events weigh more than the others near them, or less; then each label speaks for itself. In
    doubt a row is worth the larger of the two. Rows that are one of several groups are told by all groups
    what those weigh that they have not seen; `place` is where the cells lie on the grid, from 0 to 1.
    """
    weight = over_outcomes(weights)
    alike = np.divide(over_outcomes(squared), weight, out=np.ones_like(weight), where=weight > 0)
    worth = np.repeat(np.maximum(alike, 1e-300)[:, None], 2, axis=1)
    if np.any((weights > 0) & (counts == 0)):  # soft outcomes lie under both labels
        return worth
    apart = _dependence_on_outcome(weights, squared, counts)
    if among is not None and place is not None and among.apart >= apart:
        apart, near = among.apart, among.worth_near(place, weights, squared, counts)
    elif apart > _HARDLY:
        near = _worth_near(weights, squared, counts, f)
    else:
        return worth
    own = _worth_here(near, weights, squared)
    maybe = min((apart - _HARDLY) / (_MAYBE - _HARDLY), 1.0)
    surely = min(max((apart - _MAYBE) / (_SURELY - _MAYBE), 0.0), 1.0)
    worth = worth ** (1.0 - maybe) * np.maximum(worth, own) ** maybe
    return np.asarray(worth ** (1.0 - surely) * own**surely)


@dataclass(frozen=True, eq=False)
class AllGroups:
    """What rows of each outcome weigh among all groups, in units of a typical weight of their group.

    A small group may hold none of the rows that weigh most, and would take the outcome for light.

    Attributes
    ----------
    place : float64[m]
        Where on the grid, from 0 to 1.
    worth : float64[m, 2]
        What a row of each outcome is worth there.
    apart : float
        By how many standard errors that depends on the outcome.
    """

    place: Floats
    worth: Floats
    apart: float

    @classmethod
    def of(cls, sketches: Collection[Sketch]) -> AllGroups | None:
        """Of the groups with weights; None where these do not depend on the outcome."""
        groups = [one for one in sketches if one.weighted and has_weight(one)]
        if len(groups) < 2:
            return None
        columns = [
            (one.weights / typical, one.squared_weights / typical**2, one.counts)
            for one in groups
            for typical in [_typical_weight(one.weights, one.counts)]
        ]
        cells, inverse = np.unique(
            np.concatenate([one.cells for one in groups]), return_inverse=True
        )
        sums = [np.zeros((cells.size, 2)) for _ in range(3)]
        for total, parts in zip(sums, zip(*columns, strict=True), strict=True):
            np.add.at(total, inverse.ravel(), np.concatenate(parts))
        weights, squared, counts = sums
        if np.any((weights > 0) & (counts == 0)):
            return None
        apart = _dependence_on_outcome(weights, squared, counts)
        if apart <= _HARDLY:
            return None
        place = cells / groups[0].nodes
        f = np.clip(groups[0].scale.prediction(place), 0.0, 1.0)
        return cls(place, _worth_near(weights, squared, counts, f), apart)

    def worth_near(
        self, place: Floats, weights: Floats, squared: Floats, counts: NDArray[Any]
    ) -> Floats:
        """The same for the cells of one group, or more if its own rows say so."""
        at = np.minimum(np.searchsorted(self.place, place), self.place.size - 1)
        near = self.worth[at] * _typical_weight(weights, counts)
        own = (squared / near**2).sum(axis=0) + _BORROWED
        own /= (weights / near).sum(axis=0) + _BORROWED
        return np.asarray(near * np.maximum(own, 1.0))


def _typical_weight(weights: Floats, counts: NDArray[Any]) -> float:
    """The geometric mean of the rows' weights, which a few heavy ones hardly move."""
    held = (weights > 0) & (counts > 0)
    rows = counts[held].astype(np.float64)
    return math.exp(float(rows @ np.log(weights[held] / rows)) / float(rows.sum()))


def _neighbourhoods(counts: NDArray[Any], of_rows: int) -> NDArray[np.intp]:
    """Where runs of cells begin that hold about equally many rows, at least so many."""
    rows = over_outcomes(counts).astype(np.float64)
    parts = min(_MOST_NEIGHBOURHOODS, max(int(rows.sum()) // of_rows, 1))
    place = (np.cumsum(rows) - 0.5 * rows) * (parts / rows.sum())
    return np.flatnonzero(np.diff(np.minimum(np.floor(place), parts - 1), prepend=-1))


def _dependence_on_outcome(weights: Floats, squared: Floats, counts: NDArray[Any]) -> float:
    """By how many standard errors events weigh more or less than the other rows near them.

    These are the errors of the weight of the events, were outcomes dealt to rows at random in each
    neighbourhood: over all of them; of the rarer outcome in each, as where wrong calls are seldom kept; or by
    the sum of squares. One heavy row of a rare outcome must not make many, as in Bernstein's inequality:
    d / √(s² + d m / 3), with m how skewed the sum is, E d³ / s².
    """
    first = _neighbourhoods(counts, _FEW_ROWS)
    cubes = np.divide(squared**2, weights, out=np.zeros_like(weights), where=weights > 0)
    columns = (over_outcomes(each).astype(np.float64) for each in (counts, weights, squared, cubes))
    n, w, q, c = (np.add.reduceat(each, first) for each in columns)
    events, drawn = np.add.reduceat(counts[:, 1], first), np.add.reduceat(weights[:, 1], first)
    spread = np.maximum(q / np.maximum(n, 1.0) - (w / np.maximum(n, 1.0)) ** 2, 0.0)
    variance = events * (n - events) / np.maximum(n - 1.0, 1.0) * spread
    known = variance > 1e-12 * q
    if not known.any():
        return 0.0
    off, variance = (drawn - events * w / np.maximum(n, 1.0))[known], variance[known]
    rate = (events / np.maximum(n, 1.0))[known]
    third = c[known] * rate * (1.0 - rate) * (1.0 - 2.0 * rate)
    rarer = np.sign(1.0 - 2.0 * rate)
    together = np.array([off.sum(), (rarer * off).sum()])
    skewed = np.maximum(np.sign(together) * [third.sum(), np.abs(third).sum()], 0.0)
    total = float(variance.sum())
    errors = np.abs(together) / np.sqrt(total + np.abs(together) * skewed / (3.0 * total))
    squares = (float((off**2 / variance).sum()) - off.size) / math.sqrt(2.0 * off.size)
    return max(float(errors.max()), float(squares))


def _worth_near(weights: Floats, squared: Floats, counts: NDArray[Any], f: Floats) -> Floats:
    """What a row of each cell and label counts for, judged by the nearest rows of this label.

    Where there are few in all, those of the other label speak for it: outcomes that did not come are not
    taken for ones that cannot. Of very many cells some go together.
    """
    if len(weights) > 2 * _MANY_CELLS:
        first = np.arange(0, len(weights), -(-len(weights) // _MANY_CELLS))
        sums = (np.add.reduceat(each, first) for each in (weights, squared, counts))
        near = _worth_near(next(sums), next(sums), next(sums), f[first])
        return np.repeat(near, np.diff(first, append=len(weights)), axis=0)
    totals, squares = weights.sum(axis=0), squared.sum(axis=0)
    strayed = np.stack([f, 1.0 - f]) ** 2 + _LEAST_STRAYED
    columns = zip(weights.T, squared.T, counts.T, strayed, strict=True)
    near = np.stack([_nearest_worth(*of_label) for of_label in columns], axis=1)
    near *= np.exp(2.0 * _errors_of_worth(weights, squared, counts))
    # A few rows of a label, which may have small weights by chance, do not speak for it alone.
    rows = np.divide(totals**2, squares, out=np.zeros(2), where=squares > 0)
    of_all = max(float(squares.sum() / totals.sum()), 1e-300)
    return np.asarray(np.maximum(near, _BORROWED * of_all / (rows + _BORROWED)))


def _worth_here(near: Floats, weights: Floats, squared: Floats) -> Floats:
    """The same with the rows of the cell itself, and more if those of either label are heavy for it."""
    here = over_outcomes(squared / near**2) + _BORROWED
    here /= over_outcomes(weights / near) + _BORROWED
    worth = near * np.maximum(here, 1.0)[:, None]
    return np.asarray((squared + _BORROWED * worth**2) / (weights + _BORROWED * worth))


def _nearest_worth(
    weights: Floats, squared: Floats, counts: NDArray[Any], strayed: Floats
) -> Floats:
    """What a row of a label weighs next to each cell, by the nearest few, some and all; 0 if there is none.

    It is the larger of Σw² / Σw of the nearest fifty and of the largest among the cells that hold the nearest
    five. Not the mean of these: towards the ends of the predictions surprises get rarer, and where they were
    kept the more rarely the more surprising they were, the next one would weigh more than those that are
    there. And as far as predictions do not explain which rows are heavy, no less than Σw² / Σw of all. In the
    sums a row counts by (f - y)², as in what it is asked for: right calls, which are heavy where easy ones
    are seldom kept, say little of surprises.
    """
    held = np.flatnonzero((counts > 0) & (weights > 0))
    if not held.size:
        return np.zeros(weights.size)
    rows, sums, squares = (each[held].astype(np.float64) for each in (counts, weights, squared))
    worth = squares / sums
    ends = np.cumsum(rows)
    own = np.zeros(weights.size)
    own[held] = rows
    middle = np.append(0.0, ends)[np.searchsorted(held, np.arange(weights.size))] + 0.5 * own

    def window(width: float) -> tuple[Floats, Floats]:
        """So many rows around each cell, and all of its own: from which place among all to which."""
        wide = np.maximum(min(width, float(ends[-1])), own)
        low = np.clip(middle - 0.5 * wide, 0.0, ends[-1] - wide)
        return low, low + wide

    low, high = window(_NEAREST)
    first = np.searchsorted(ends, low + 1e-6, side="right")
    last = np.minimum(np.searchsorted(ends, high - 1e-6), held.size - 1)
    largest = worth[first]
    for step in range(1, int((last - first).max()) + 1):
        largest = np.maximum(largest, worth[np.minimum(first + step, last)])
    edges, of_all = np.append(0.0, ends), float(squares.sum() / sums.sum())
    by_surprise = (sums * strayed[held], squares * strayed[held])
    mass, square = (
        np.diff(
            [np.interp(end, edges, np.append(0.0, np.cumsum(each))) for end in window(_NEAR)],
            axis=0,
        )[0]
        for each in by_surprise
    )
    known = (mass > 1e-9 * mass.max()) & (square > 0.0)  # differences of long sums are rounded
    near = np.divide(square, mass, out=largest.copy(), where=known)
    left, whole = (
        float(_strayed_squares(rows, sums, squares, ratio).sum()) for ratio in (near[held], of_all)
    )
    uneven = whole > 1e-9 * of_all**2 * float(squares.sum())
    by_chance = min(max(left / whole, 0.0), 1.0) if uneven else 0.0
    everywhere = float(by_surprise[1].sum() / by_surprise[0].sum())
    largest = np.maximum(largest, near)
    return np.asarray(largest ** (1.0 - by_chance) * np.maximum(largest, everywhere) ** by_chance)


def _errors_of_worth(weights: Floats, squared: Floats, counts: NDArray[Any]) -> Floats:
    """Standard error of each label's Σw² / Σw, in units of itself, beyond what predictions explain of it.

    Where the weights of a label are uneven, the heaviest are seldom in the sample, and the ratio is mostly
    too small. The square of each is Σw² (w - ω)² / (Σw²)².
    """
    first = _neighbourhoods(counts, _MANY_ROWS)
    sums, squares = (np.add.reduceat(each, first) for each in (weights, squared))
    ratio = np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0)
    ratio = np.repeat(ratio, np.diff(first, append=len(weights)), axis=0)
    known = (squared > 0) & (counts > 0)
    n, s, q = (np.where(known, each, 1.0) for each in (counts, weights, squared))
    strayed = np.where(known, _strayed_squares(n, s, q, ratio), 0.0).sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(strayed, 0.0)) / np.maximum(squares.sum(axis=0), 1e-300))


def _strayed_squares(n: Floats, s: Floats, q: Floats, ratio: Floats | float) -> Floats:
    """Σw² (w - ω)² of cells with n rows, Σw = s and Σw² = q.

    Sums of w³ and w⁴ are those of log-normal weights with these sums, or of one heavy row where these would
    be larger; exact where a cell has one row, or rows of one weight.
    """
    third = np.minimum(q**1.5, n * (q / s) ** 3)
    fourth = np.minimum(q**2, n * (q / n) ** 6 / (s / n) ** 8)
    return np.asarray(fourth - 2.0 * ratio * third + ratio**2 * q)
