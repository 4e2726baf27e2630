"""Net benefit against the threshold at which somebody acts, and the part of it lost to miscalibration.

The loss is cross-fitted: no row is judged by a map that has seen it. Rows and their sketch go to the same
folds (as many rows of each cell and outcome), so both show the same loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    require_confidence,
    require_seed,
    require_share,
)
from calibrant._format import decimals
from calibrant.data.cell_sums import FRACTION_BITS, sums_of_long
from calibrant.data.rows import InputOptions, Rows
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Stacked, is_summed
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import read_clustered
from calibrant.inference.clusters import clusters_of_sketches
from calibrant.inference.profile import Sample
from calibrant.measures.result_record import Record, rows_text
from calibrant.recalibration.halves import maps_of_others
from calibrant.recalibration.learned_map import Recalibrator, require_map

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DEFAULT_THRESHOLDS = np.arange(1, 100) / 100.0
FOLDS, DRAWS = 5, 4000
MOST_BLOCKS = 1024
"""Of clusters: their variance is known to 1 / √512, some 4%."""
UNIT = 2.0**-FRACTION_BITS


@dataclass(frozen=True, repr=False)
class NetBenefit(Record):
    """Net benefit at each threshold, with bands that hold the whole curve.

    Attributes
    ----------
    thresholds : float64[t]
        Who acts at t or above takes a true positive to be worth (1 - t) / t false ones.
    value, low, high : float64[t]
        Net benefit of acting where p ≥ t, and its band.
    treat_all : float64[t]
        Net benefit of acting always; that of acting never is 0.
    recalibrated : float64[t]
        Net benefit after recalibration, cross-fitted: no row is judged by a map that has seen it.
    lost, lost_low, lost_high : float64[t]
        Net benefit lost to miscalibration: the recalibrated curve less the raw one, and its band. Below 0
        where the map that could be learned is worse than none.
    rate, confidence : float
        Share of events; confidence of the bands.
    n, clusters : int, int or None
        Rows, and clusters if they are dependent; `dropped` counts by reason the rows left out.
    note : str
        Why there is no recalibrated curve, where there is none.
    """

    thresholds: Floats
    value: Floats
    low: Floats
    high: Floats
    treat_all: Floats
    recalibrated: Floats
    lost: Floats
    lost_low: Floats
    lost_high: Floats
    rate: float
    confidence: float
    n: int
    clusters: int | None
    seed: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def costly(self) -> Floats:
        """Thresholds at which recalibration gains: those whose band is above 0."""
        return self.thresholds[self.lost_low > 0.0]

    def rows(self) -> list[list[str]]:
        """Table of the thresholds as text, header first; of more than nine, those nearest to the tenths."""
        chosen, tenths = np.arange(self.thresholds.size), np.arange(1, 10) / 10.0
        if chosen.size > tenths.size:
            chosen = np.unique(np.abs(self.thresholds - tenths[:, None]).argmin(axis=1))
        band = f"{100 * self.confidence:g}% band"

        def text(k: int, *values: Floats) -> str:
            return " to ".join(decimals(float(value[k])) for value in values)

        return [
            ["threshold", "net benefit", band, "treat all", "lost", f"{band} of it"],
            *(
                [
                    f"{self.thresholds[k]:g}",
                    text(k, self.value),
                    text(k, self.low, self.high),
                    text(k, self.treat_all),
                    text(k, self.lost),
                    text(k, self.lost_low, self.lost_high),
                ]
                for k in chosen.tolist()
            ),
        ]

    def __repr__(self) -> str:
        costly, loss = self.costly, "no loss to miscalibration shown"
        if costly.size:
            most = float(self.lost[self.lost_low > 0.0].max())
            loss = (
                f"up to {most:.3g} lost to miscalibration between {costly[0]:g} and {costly[-1]:g}"
            )
        size = rows_text(self.n, self.dropped)
        return f"NetBenefit({self.thresholds.size} thresholds, {loss}, {size})"


def require_thresholds(thresholds: Any, argument: str = "thresholds") -> Floats:
    """The thresholds as an increasing array, each strictly between 0 and 1.

    Examples
    --------
    >>> require_thresholds([0.2, 0.1])
    array([0.1, 0.2])
    """
    several = isinstance(thresholds, Iterable) and not isinstance(thresholds, str)
    values = [require_share(argument, one) for one in (thresholds if several else [thresholds])]
    if not values:
        raise InputError(f"`{argument}` must hold a number; there is none.")
    return np.unique(values)


def net_benefit_values(sample: Sample, thresholds: Floats) -> Floats:
    """Gain of acting on each entry of a sample [t, m], whose mean is the net benefit at each threshold.

    The gain is 1 for a true positive, -t/(1 - t) for a false one. A cell of a sketch acts as its mean does.
    """
    odds = (thresholds / (1.0 - thresholds))[:, None]
    worth = sample.y - (1.0 - sample.y) * odds
    p = sample.p
    if sample.rows is None:
        # A unit up: predictions that were cut to fixed point must still reach their own threshold.
        scale = sample.sketch.scale
        p = np.asarray(scale.prediction(np.minimum(np.asarray(scale.locate(p)) + 2.0 * UNIT, 1.0)))
    return np.asarray((p >= thresholds[:, None]) * worth)


def net_benefit(
    y_true: Any,
    y_prob: Any = None,
    *,
    thresholds: Any = None,
    cluster: Any = None,
    recalibrator: Recalibrator | None = None,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
    **options: Unpack[InputOptions],
) -> NetBenefit:
    """Net benefit at each threshold; see `calibrant.decision_curve`, which draws it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> found = net_benefit(rng.random(4000) < p**3, p, thresholds=[0.1, 0.3, 0.5])
    >>> bool(found.lost_low[1] > 0.02), bool(found.value[0] > found.treat_all[0] - 0.05)
    (True, True)
    """
    require_confidence(confidence)
    seed = require_seed(random_state, "random_state")
    if recalibrator is not None:
        require_map(recalibrator, "recalibrator")
    at = DEFAULT_THRESHOLDS if thresholds is None else require_thresholds(thresholds)
    split = _split(y_true, y_prob, cluster, seed, options)
    if split.sketch.n < 2:
        raise TooFewRows(f"A decision curve needs at least two rows; there is {split.sketch.n}.")
    maps = maps_of_others(split.parts, recalibrator)
    note = "" if maps else "too few rows of either outcome to learn a map and judge it on others"
    return _curve(at, split, maps, note, confidence, seed)


# -- folds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """Rows, or the outcomes in the cells of a sketch, each with its fold and its cluster.

    `parts` are the sketches of the folds, `sketch` that of all.
    """

    p: Floats
    label: Integers
    share: Floats
    squared: Floats
    fold: Integers
    unit: Integers | None
    units: int
    parts: Sequence[Sketch]
    sketch: Sketch
    clusters: int | None


def _split(y_true: Any, y_prob: Any, cluster: Any, seed: int, options: InputOptions) -> Split:
    """Folds of rows, of a sketch, or of sketches by cluster."""
    if not is_summed(y_true):
        return split_rows(*read_clustered(y_true, y_prob, cluster, **options), seed)
    stacked = clusters_of_sketches(y_true, cluster)
    sketch = as_sketch(y_true.total(), y_prob, **options)
    if sketch.weighted:
        raise InputError(
            "A decision curve of a sketch takes rows that count alike; these have weights or soft outcomes.",
            hint="Pass the rows themselves.",
        )
    return _split_cells(sketch, stacked, seed)


def split_rows(rows: Rows, codes: tuple[Integers, int] | None, seed: int) -> Split:
    """Folds of rows; those of one cluster go to one fold."""
    sketch = Sketch.from_rows(rows)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    share = weight / weight.sum()
    unit, units = (None, rows.n) if codes is None else codes
    clusters = None if codes is None else codes[1]
    p, label = rows.p, rows.y.astype(np.int64)
    if codes is None and not rows.fractional:
        fold = _folds_of_rows(p, label, sketch, seed)
    else:
        fold = _folds(units, seed) if unit is None else _folds(units, seed)[unit]
    # Rows without weight count nothing, and a fold may have no others.
    own = [(fold == k) & (weight > 0.0) for k in range(FOLDS)]
    parts = [Sketch.from_rows(rows.select(one)) if one.any() else Sketch.empty() for one in own]
    if rows.soft:  # a soft outcome is a row of either outcome, and both depend on each other
        unit = np.tile(np.arange(rows.n) if unit is None else unit, 2)
        share = np.concatenate([share * (1.0 - rows.y), share * rows.y])
        label, p, fold = np.repeat([0, 1], rows.n), np.tile(p, 2), np.tile(fold, 2)
    return Split(p, label, share, share**2, fold, unit, units, parts, sketch, clusters)


def _split_cells(sketch: Sketch, clusters: Stacked | None, seed: int) -> Split:
    """Folds of clusters; without them, of the rows of each cell and outcome, which share their mean."""
    table = sketch if clusters is None else clusters.entries
    at, label = np.nonzero(table.counts)
    count, offset = table.counts[at, label], table.offsets[at, label]
    if clusters is None:
        unit = None
        entry, fold = np.nonzero(in_folds := _rows_of_folds(count, seed))
        offset = in_folds[entry, fold] * (offset[entry] // count[entry])
        at, label, count = at[entry], label[entry], in_folds[entry, fold]
    else:
        unit = clusters.code[at]
        fold = _folds(len(clusters), seed)[unit]
    cell, nodes, scale = table.cells[at], sketch.nodes, sketch.scale
    parts = []
    for own in (fold == k for k in range(FOLDS)):
        columns = cell[own], label[own], count[own], offset[own]
        sums = sums_of_long(*columns, offset_bits=sketch.offset_bits)
        parts.append(Sketch(sums, nodes=nodes, scale=scale))
    # A unit up: what was cut to fixed point must still reach its own threshold.
    position = cell / nodes + (offset / count + 1.0) * UNIT
    p = np.clip(np.asarray(scale.prediction(position)), 0.0, 1.0)
    share = count / float(sketch.n)
    units = sketch.n if clusters is None else len(clusters)
    many = None if clusters is None else units
    return Split(p, label, share, share / sketch.n, fold, unit, units, parts, sketch, many)


def _folds(units: int, seed: int) -> Integers:
    return generator(seed, 20).permutation(units) % FOLDS


def _rows_of_folds(counts: Integers, seed: int) -> Integers:
    """Number of rows of each cell and outcome that go to each fold."""
    return generator(seed, 20).multinomial(counts, np.full(FOLDS, 1.0 / FOLDS))


def _folds_of_rows(p: Floats, label: Integers, sketch: Sketch, seed: int) -> Integers:
    """Fold of each row: of a cell and an outcome, as many as `_split_cells` has, at random."""
    cell = (np.asarray(sketch.scale.locate(p)) / UNIT).astype(np.int64) >> sketch.offset_bits
    place = 2 * np.minimum(cell, sketch.nodes - 1) + label
    shuffled = generator(seed, 22).permutation(p.size)
    order = shuffled[np.argsort(place[shuffled], kind="stable")]
    rows = _rows_of_folds(np.unique(place, return_counts=True)[1], seed)
    fold = np.empty(p.size, dtype=np.int64)
    fold[order] = np.repeat(np.tile(np.arange(FOLDS), len(rows)), rows.ravel())
    return fold


# -- the curves ------------------------------------------------------------------------------------


def _curve(
    at: Floats,
    split: Split,
    maps: Sequence[Recalibrator],
    note: str,
    confidence: float,
    seed: int,
) -> NetBenefit:
    """Curves and bands. Rows fall into kinds by the thresholds that they reach before and after the map."""
    count, odds, sketch = at.size, at / (1.0 - at), split.sketch
    chance = split.p.copy()
    for fold, learned in enumerate(maps):
        own = split.fold == fold
        if own.any():
            chance[own] = learned.mapped(split.p[own])
    raw = np.searchsorted(at, split.p, side="right")
    after = np.searchsorted(at, chance, side="right") if maps else raw
    kinds, place = np.unique(raw * (count + 1) + after, return_inverse=True)
    place = place.ravel()
    acts = np.stack([kinds // (count + 1), kinds % (count + 1)])[..., None] > np.arange(count)
    # Gain of a row of each kind, before the map and by it, without and with the event.
    gains = np.concatenate([acts[0], acts[1] * 1.0 - acts[0]], axis=1)
    worth = np.stack([-np.tile(odds, 2) * gains, 1.0 * gains], axis=1).reshape(2 * kinds.size, -1)
    entry = 2 * place + split.label
    mean = np.bincount(entry, split.share, len(worth)) @ worth
    squared = np.bincount(entry, split.squared, len(worth))
    centred = worth - mean
    if split.unit is None:
        units = 1.0 / float(split.squared.sum())
        covariance = (centred.T * squared) @ centred * (units / max(units - 1.0, 1e-9))
    else:
        units = float(split.units)
        block, blocks = _random_blocks(split.unit, split.units, seed=seed)
        size = blocks * len(worth)
        table = np.bincount(block * len(worth) + entry, split.share, size).reshape(blocks, -1)
        sums = table @ centred
        covariance = sums.T @ sums * (blocks / (blocks - 1.0))
    # An outcome that is rare and costly may not be among few rows that act: no less than the variance if
    # outcomes come as the maps say, and than one row of the costlier kind in doubt.
    by_chance = np.stack(
        [np.bincount(place, split.squared * part, kinds.size) for part in (1.0 - chance, chance)], 1
    )
    alone = squared @ centred**2
    dependence = np.divide(np.diag(covariance), alone, out=np.ones_like(alone), where=alone > 0.0)
    expected = by_chance.ravel() @ centred**2 * np.maximum(dependence, 1.0)
    least = np.tile(np.maximum(odds, 1.0) / units, 2)
    error = np.sqrt(np.maximum(np.diag(covariance), expected) + least**2)
    reach = _simultaneous(covariance, error, confidence, seed)
    rate = float(sketch.weights[:, 1].sum() / sketch.total_weight)
    value, lost = mean[:count], mean[count:] if maps else np.full(count, np.nan)
    return NetBenefit(
        thresholds=at.copy(),
        value=value,
        low=value - reach[:count],
        high=value + reach[:count],
        treat_all=rate - (1.0 - rate) * odds,
        recalibrated=value + lost,
        lost=lost,
        lost_low=lost - reach[count:],
        lost_high=lost + reach[count:],
        rate=rate,
        confidence=confidence,
        n=sketch.n,
        clusters=split.clusters,
        seed=seed,
        dropped=sketch.dropped,
        note=note,
    )


def _random_blocks(codes: Integers, clusters: int, *, seed: int) -> tuple[Integers, int]:
    """At most MOST_BLOCKS sets of whole clusters, of nearly equal numbers, drawn at random."""
    if clusters <= MOST_BLOCKS:
        return codes, clusters
    order = generator(seed, 6).permutation(clusters)
    return order[codes] % MOST_BLOCKS, MOST_BLOCKS


def _simultaneous(covariance: Floats, error: Floats, confidence: float, seed: int) -> Floats:
    """Half-width of each band: as many standard errors as hold the whole curve.

    What the standard errors have beyond the covariance is taken to be noise of each threshold alone.
    """
    reach, count, rng = np.empty_like(error), error.size // 2, generator(seed, 21)
    for part in (slice(0, count), slice(count, 2 * count)):
        own = covariance[part, part] / np.outer(error[part], error[part])
        values, vectors = np.linalg.eigh(own)
        used = values > 1e-9
        together = rng.standard_normal((DRAWS, int(used.sum())))
        alone = rng.standard_normal((DRAWS, count)) * np.sqrt(np.maximum(1.0 - np.diag(own), 0.0))
        largest = np.abs(alone + together @ (vectors[:, used] * np.sqrt(values[used])).T)
        reach[part] = float(np.quantile(largest.max(axis=1), confidence)) * error[part]
    return reach
