"""Net benefit against the threshold at which somebody acts, and what of it miscalibration costs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, generator, require_seed
from calibrant._format import decimals
from calibrant.data.rows import Dropped, InputOptions
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches
from calibrant.decisions.folds import (
    FOLDS,
    Dealt,
    Entries,
    deal_clusters,
    deal_pairs,
    deal_sketch,
)
from calibrant.decisions.net_benefit import Acting, require_thresholds
from calibrant.errors import Function, InputError, Option, TooFewRows
from calibrant.inference.assess import read_clustered
from calibrant.inference.clusters import clusters_of_sketches, random_blocks
from calibrant.inference.interval import require_confidence
from calibrant.measures.result_record import Record, rows_text
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.learned_map import Recalibrator, require_map

__all__ = ["DEFAULT_THRESHOLDS", "NetBenefit", "net_benefit"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DEFAULT_THRESHOLDS = np.arange(1, 100) / 100.0
TABLE = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds that a table of many shows."""
DRAWS = 4000


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
        What miscalibration costs: the recalibrated curve less the raw one, and its band. Below 0 where
        the map that could be learned is worse than none.
    bound : float64[t]
        How far values of a sketch can be from those of its rows; 0 from rows.
    rate, confidence : float
        Share of events; of the bands.
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
    bound: Floats
    rate: float
    confidence: float
    n: int
    clusters: int | None
    seed: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)
    note: str = ""

    @property
    def costly(self) -> Floats:
        """The thresholds at which recalibration would gain, beyond doubt."""
        return self.thresholds[self.lost_low > 0.0]

    def rows(self) -> list[list[str]]:
        """A table of at most ten thresholds, header first."""
        chosen = range(self.thresholds.size)
        if self.thresholds.size > len(TABLE):
            near = np.searchsorted(self.thresholds, np.array(TABLE) - 1e-9)
            chosen = np.unique(near[near < self.thresholds.size]).tolist()
        share = f"{100 * self.confidence:g}% band"
        header = ["threshold", "net benefit", share, "treat all", "lost", f"{share} of it"]
        return [header, *map(self._row, chosen)]

    def _row(self, k: int) -> list[str]:
        def text(*values: Floats) -> str:
            return " to ".join(decimals(float(value[k])) for value in values)

        return [
            f"{self.thresholds[k]:g}",
            text(self.value),
            text(self.low, self.high),
            text(self.treat_all),
            text(self.lost),
            text(self.lost_low, self.lost_high),
        ]

    def __repr__(self) -> str:
        costly = self.costly
        found = "no loss to miscalibration shown"
        if costly.size:
            most = float(self.lost[self.lost_low > 0.0].max())
            found = (
                f"up to {most:.3g} lost to miscalibration between {costly[0]:g} and {costly[-1]:g}"
            )
        return f"NetBenefit({self.thresholds.size} thresholds, {found}, {rows_text(self.n, self.dropped)})"


def net_benefit(
    y_true: Any,
    y_prob: Any = None,
    *,
    thresholds: Any = None,
    cluster: Any = None,
    recalibrator: Recalibrator | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
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
    require_seed(seed)
    if recalibrator is not None:
        require_map(recalibrator, "recalibrator")
    acting = Acting(DEFAULT_THRESHOLDS if thresholds is None else require_thresholds(thresholds))
    dealt = _dealt(y_true, y_prob, cluster, seed, options)
    sketch = dealt.sketch
    if sketch.n < 2:
        raise TooFewRows(
            "a decision curve needs at least two rows",
            seen=sketch.n,
            saying="there is {}",
            cure="Pass more rows.",
        )
    maps, note = _maps(dealt.parts, recalibrator)
    return _curve(acting, dealt, maps, note, confidence, seed)


def _dealt(y_true: Any, y_prob: Any, cluster: Any, seed: int, options: InputOptions) -> Dealt:
    """The rows, a sketch, or sketches by cluster, dealt to folds."""
    if isinstance(y_true, Sketches):
        parts = clusters_of_sketches(y_true, cluster)
        _require_alike(as_sketch(y_true.total(), y_prob, **options))
        return deal_clusters(parts, seed)
    if not isinstance(y_true, Sketch):
        return deal_pairs(*read_clustered(y_true, y_prob, cluster, **options), seed)
    if cluster is not None:
        raise InputError(
            "needs rows, or one sketch for each cluster; a Sketch alone has neither",
            argument="cluster",
            cure="Pass what {scan} gives with {option}, or leave it out.",
            scan=Function("scan"),
            option=Option("cluster", ...),
        )
    return deal_sketch(_require_alike(as_sketch(y_true, y_prob, **options)), seed)


def _require_alike(sketch: Sketch) -> Sketch:
    if sketch.weighted:
        raise InputError(
            "a decision curve of a sketch takes rows that count alike, and these have weights or soft "
            "outcomes",
            cure="Give the rows themselves.",
        )
    return sketch


def _maps(
    parts: Sequence[Sketch], recalibrator: Recalibrator | None
) -> tuple[list[Recalibrator], str]:
    """A map for each fold, learned from the other folds; or why there is none."""
    maps = []
    for fold in range(FOLDS):
        others = sum((part for k, part in enumerate(parts) if k != fold and part.n), start=0)
        seen = others.weights.sum(axis=0) if isinstance(others, Sketch) else np.zeros(2)
        if not np.all(seen > 0.0):
            return [], "too few rows of either outcome to learn a map and judge it on others"
        own = AdaptiveRecalibrator() if recalibrator is None else copy.deepcopy(recalibrator)
        maps.append(own.fit(others))
    return maps, ""


# -- the curves ------------------------------------------------------------------------------------


def _curve(
    acting: Acting,
    dealt: Dealt,
    maps: Sequence[Recalibrator],
    note: str,
    confidence: float,
    seed: int,
) -> NetBenefit:
    entries, sketch = dealt.entries, dealt.sketch
    count = acting.thresholds.size
    raw = acting.reached(entries.p)
    chance = _mapped(entries, maps, entries.p)
    after = raw if not maps else acting.reached(chance)
    code = (raw * (count + 1) + after) * 2 + entries.label
    kinds, place = np.unique(code, return_inverse=True)
    worth = acting.worth()
    label, before, later = kinds % 2, kinds // 2 // (count + 1), kinds // 2 % (count + 1)
    values = _worth_and_gain(worth, before, later, label)
    mean, covariance = _moments(values, place.ravel(), entries, seed)
    expected = _expected_squares(worth, raw * (count + 1) + after, chance, entries, mean)
    alone = np.bincount(place.ravel(), entries.squared, kinds.size) @ np.square(values - mean)
    dependence = np.divide(np.diag(covariance), alone, out=np.ones_like(alone), where=alone > 0.0)
    expected *= np.maximum(dependence, 1.0)
    # No fewer than one row of the costlier kind is in doubt: where few act, few can be seen to.
    rows = 1.0 / float(entries.squared.sum()) if entries.unit is None else float(entries.units)
    least = np.tile(np.maximum(acting.odds, 1.0) / rows, 2) if rows > 0 else 0.0
    error = np.sqrt(np.maximum(np.diag(covariance), expected) + np.square(least))
    reach = _reach(covariance, error, confidence, seed)
    bound = _bounds(acting, entries, maps)
    reach += bound
    value, lost = mean[:count], mean[count:]
    lost_reach = reach[count:]
    if not maps:
        lost, lost_reach = np.full(count, np.nan), np.full(count, np.nan)
    rate = float(sketch.weights[:, 1].sum() / sketch.total_weight)
    return NetBenefit(
        thresholds=acting.thresholds.copy(),
        value=value,
        low=value - reach[:count],
        high=value + reach[:count],
        treat_all=acting.treat_all(rate),
        recalibrated=value + lost,
        lost=lost,
        lost_low=lost - lost_reach,
        lost_high=lost + lost_reach,
        bound=bound[:count],
        rate=rate,
        confidence=confidence,
        n=sketch.n,
        clusters=dealt.clusters,
        seed=seed,
        dropped=sketch.dropped,
        note=note,
    )


def _worth_and_gain(
    worth: Floats, before: Integers, later: Integers, label: Integers | int
) -> Floats:
    """What kinds of rows are worth at each threshold, and what the map adds to it."""
    first = worth[before, label]
    return np.concatenate([first, worth[later, label] - first], axis=1)


def _mapped(entries: Entries, maps: Sequence[Recalibrator], p: Floats) -> Floats:
    """Predictions after the map that was learned from the other folds; as they are, without maps."""
    mapped = p.copy()
    for fold, learned in enumerate(maps):
        own = entries.fold == fold
        if own.any():
            mapped[own] = learned.transform(p[own])
    return mapped


def _moments(values: Floats, place: Integers, entries: Entries, seed: int) -> tuple[Floats, Floats]:
    """Mean of the values of each kind of row, and its covariance over units."""
    kinds = values.shape[0]
    mean = np.bincount(place, entries.share, kinds) @ values
    if entries.unit is None:
        squared = np.bincount(place, entries.squared, kinds)
        centred = values - mean
        units = 1.0 / float(entries.squared.sum())
        factor = units / max(units - 1.0, 1e-9)
        return mean, np.asarray((centred.T * squared) @ centred * factor)
    block, blocks = random_blocks(entries.unit, entries.units, seed=seed)
    table = np.bincount(block * kinds + place, entries.share, blocks * kinds).reshape(blocks, kinds)
    sums = table @ values - table.sum(axis=1, keepdims=True) * mean
    return mean, np.asarray(sums.T @ sums * (blocks / (blocks - 1.0)))


def _expected_squares(
    worth: Floats, kind: Integers, chance: Floats, entries: Entries, mean: Floats
) -> Floats:
    """Variance of the means if each row has its outcome by chance, as the maps say.

    Where few rows act, an outcome that is rare and costly may not be among them, and what was seen is
    then too calm.
    """
    count = worth.shape[2]
    kinds, place = np.unique(kind, return_inverse=True)
    before, later = kinds // (count + 1), kinds % (count + 1)
    variance = np.zeros_like(mean)
    for label, share in ((1, chance), (0, 1.0 - chance)):
        weight = np.bincount(place.ravel(), entries.squared * share, kinds.size)
        values = _worth_and_gain(worth, before, later, label)
        variance += weight @ np.square(values - mean)
    return variance


def _reach(covariance: Floats, error: Floats, confidence: float, seed: int) -> Floats:
    """Half the width of each band: as many standard errors as hold the whole curve.

    What the standard errors have beyond the covariance is taken to be noise of each threshold alone.
    """
    reach = np.empty_like(error)
    count = error.size // 2
    rng = generator(seed, 21)
    for part in (slice(0, count), slice(count, 2 * count)):
        own = covariance[part, part] / np.outer(error[part], error[part])
        values, vectors = np.linalg.eigh(own)
        used = values > 1e-9
        together = rng.standard_normal((DRAWS, int(used.sum())))
        alone = rng.standard_normal((DRAWS, count)) * np.sqrt(np.maximum(1.0 - np.diag(own), 0.0))
        largest = np.abs(alone + together @ (vectors[:, used] * np.sqrt(values[used])).T)
        reach[part] = float(np.quantile(largest.max(axis=1), confidence)) * error[part]
    return reach


def _bounds(acting: Acting, entries: Entries, maps: Sequence[Recalibrator]) -> Floats:
    """What the rows are worth whose cells a threshold cuts, before and after the maps."""
    count = acting.thresholds.size
    bound = np.zeros(2 * count)
    if entries.low is None or entries.high is None:
        return bound
    ends = [acting.reached(entries.low), acting.reached(entries.high)]
    both = [ends]
    if maps:
        both.append(
            [acting.reached(_mapped(entries, maps, p)) for p in (entries.low, entries.high)]
        )
    for first, last in both:
        cut = np.flatnonzero((first != last) & (entries.high > entries.low))
        for k in cut:
            doubtful = slice(int(first[k]), int(last[k]))
            odds = 1.0 if entries.label[k] else acting.odds[doubtful]
            bound[count:][doubtful] += entries.share[k] * odds
            if first is ends[0]:
                bound[:count][doubtful] += entries.share[k] * odds
    return bound
