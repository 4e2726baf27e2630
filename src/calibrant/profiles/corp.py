"""CORP's reliability and resolution with intervals for the population's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.cell_sums import over_outcomes
from calibrant.inference.profile import Quantity, Sample
from calibrant.inference.quantiles import skewed_quantiles
from calibrant.measures._chains import pooled
from calibrant.measures.isotonic import corp_decomposition
from calibrant.profiles.cells import cells_of

__all__ = ["corp_parts"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOLDS = 5
CORP = "Dimitriadis, Gneiting and Jordan 2021"
IN_SAMPLE = (
    "CORP's map fits the noise of the sample, so both parts are too large on average; their intervals are "
    "for the population's parts, the lower ends cross-fitted"
)
NEEDS_ROWS = "no interval: with weights or clusters it needs rows"
ONE_OUTCOME = "no interval: it needs both outcomes"
ONE_FOLD = "no interval: too few rows to learn a map and judge it on others"


def corp_parts(sample: Sample) -> list[Quantity]:
    """Miscalibration and discrimination by isotonic regression: reliability and resolution.

    Let S(g) be the mean Brier score of an increasing map g, least for the population's map g*. The
    sample's own map makes S(p) - S(g) no smaller than that of g*, so its upper end holds S(p) - S(g*).
    A map that was learned on other rows does no better than g*, so the lower end of a cross-fitted
    S(p) - S(g) holds it, too. Each end is that of a mean. The same goes for resolution, with the event
    rate in place of p.
    """
    split = corp_decomposition(sample.atoms)
    values = (split.miscalibration, split.discrimination)
    entries, note = _entries(sample)
    if entries is None:
        ends = [(np.nan, np.nan)] * 2
    else:
        ends, note = _ends(sample, entries), IN_SAMPLE
    return [
        Quantity(
            f"{name} (CORP)",
            value,
            max(low - split.error, 0.0) if low == low else low,
            min(high + split.error, most) if high == high else high,
            bound=split.error,
            source=CORP,
            note=note if name == "reliability" or entries is None else "",
        )
        for name, value, (low, high), most in zip(
            ("reliability", "resolution"), values, ends, (1.0, 0.25), strict=True
        )
    ]


@dataclass(frozen=True, eq=False)
class _Entries:
    """Rows, or rows that are alike: where each sits among the predictions, and which fold it is in."""

    at: Integers
    y: Floats
    count: Floats
    fold: Integers


def _entries(sample: Sample) -> tuple[_Entries | None, str]:
    """The entries, or why there are none."""
    if not 0.0 < sample.atoms.base_rate < 1.0:
        return None, ONE_OUTCOME
    rng = generator(sample.assessment.seed, 22)
    if sample.pairs is not None:
        pairs = sample.pairs
        at = np.minimum(np.searchsorted(sample.atoms.p, pairs.p), sample.atoms.p.size - 1)
        if sample.clusters is None:
            units, fold = pairs.n, rng.permutation(pairs.n) % FOLDS
        else:
            codes, units = sample.clusters
            fold = (rng.permutation(units) % FOLDS)[codes]
        entries = _Entries(at, pairs.y, sample.weights, fold)
    elif sample.parts or sample.sketch.weighted:
        return None, NEEDS_ROWS
    else:
        cells, units = sample.once(cells_of), sample.sketch.n
        counts = cells.rows.astype(np.int64)
        dealt = rng.multinomial(counts, np.full(FOLDS, 1.0 / FOLDS))
        entry, fold = np.nonzero(dealt)
        where = np.cumsum(np.any(sample.sketch.weights > 0.0, axis=1)) - 1
        at = np.repeat(where[:, None], 2, axis=1)[sample.sketch.weights > 0.0]
        entries = _Entries(at[entry], cells.label[entry], dealt[entry, fold].astype(float), fold)
    return (None, ONE_FOLD) if units < 2 * FOLDS else (entries, "")


def _ends(sample: Sample, entries: _Entries) -> list[tuple[float, float]]:
    """Lower and upper end for reliability and for resolution."""
    p = sample.atoms.p
    masses = np.stack(
        [
            np.bincount(
                entries.fold * p.size + entries.at, entries.count * part, FOLDS * p.size
            ).reshape(FOLDS, p.size)
            for part in (1.0 - entries.y, entries.y)
        ],
        axis=2,
    )
    whole = masses.sum(axis=0)
    own = _map(p, whole)[entries.at]
    others = np.stack([_map(p, whole - part) for part in masses])[entries.fold, entries.at]
    rate = np.full(own.shape, whole[:, 1].sum() / whole.sum())
    ends = []
    for start in (p[entries.at], rate):
        gains = [(start - after) * (start + after - 2.0 * entries.y) for after in (others, own)]
        low, high = (_interval(sample, entries, gain) for gain in gains)
        ends.append((low[0], high[1]))
    return ends


def _map(p: Floats, mass: Floats) -> Floats:
    """The increasing map of these outcomes at every prediction, also where none of them is."""
    weight = over_outcomes(mass)
    seen = weight > 1e-12 * weight.max()
    if not seen.any():
        return p
    fitted = pooled(mass[seen, 1] / weight[seen], np.ascontiguousarray(weight[seen]))
    return np.interp(p, p[seen], np.clip(fitted, 0.0, 1.0))


def _interval(sample: Sample, entries: _Entries, gains: Floats) -> tuple[float, float]:
    if sample.pairs is not None:
        quantity = sample.mean("gain", gains)
        return quantity.low, quantity.high
    n = float(entries.count.sum())
    value = float(entries.count @ gains) / n
    deviations = gains - value
    squares = float(entries.count @ deviations**2)
    skew = float(entries.count @ deviations**3) / squares**1.5 if squares > 0.0 else 0.0
    below, above = skewed_quantiles(sample.confidence, n - 1.0, skew)
    error = float(np.sqrt(squares / (n * (n - 1.0))))
    return value - above * error, value - below * error
