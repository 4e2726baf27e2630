"""How far the difference of two models' SmoothECE may be from what it seems, on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.inference.assessment import Assessment
from calibrant.inference.interval import normal_quantile
from calibrant.inference.residuals import ResidualGrid, nodes_of, rows_on_nodes

__all__ = ["Folds", "Influence", "difference_bounds"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOLDS, DEALS = 5, 4
FEWEST_UNITS = 4 * FOLDS
CLEAR = 2.0
"""Standard errors at which a model's cross-fitted error counts; below, it is taken to be at least 0."""
FINEST_OF_FLOOR, FINEST = 0.25, 5e-4
"""No bandwidth is taken narrower than this share of the noise floor, nor than this of the scale."""


@dataclass(frozen=True, eq=False)
class Folds:
    """The unit of each row, a row or a cluster, and the fold of each unit in every deal.

    Attributes
    ----------
    share : float64[n]
        Weight of each row, of 1 in all.
    unit : int64[n]
        The unit of each row.
    number : int
        How many units there are.
    deals : int64[deals, units]
        The fold of each unit; no deals where the units are too few to learn anything from.
    effective : float
        The effective number of units: (Σ weight)² / Σ weight².
    """

    share: Floats
    unit: Integers
    number: int
    deals: Integers
    effective: float

    @classmethod
    def of(cls, models: Sequence[Rows], codes: tuple[Integers, int] | None) -> Folds:
        """Deal rows, or the clusters that `cluster_codes` numbers: the same ones in any order of the rows."""
        pairs = models[0]
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        share = weight / weight.sum()
        unit, number = (np.arange(pairs.n), pairs.n) if codes is None else codes
        per_unit = np.bincount(unit, weights=share, minlength=number)
        effective = float(1.0 / (per_unit**2).sum())
        columns = sum(model.p for model in models), sum(model.p**2 for model in models), pairs.y
        sums = [np.bincount(unit, weights=share * each, minlength=number) for each in columns]
        place = np.argsort(np.lexsort([np.round(each, 15) for each in (*sums, per_unit)]))
        rng = generator(0, 7)
        deals = np.array(
            [
                rng.permutation(number)[place] % FOLDS
                for _ in range(DEALS if effective >= FEWEST_UNITS else 0)
            ],
            dtype=np.int64,
        )
        return cls(share, unit, number, deals, effective)

    def sums(self, values: Floats) -> Floats:
        """The rows' values, added up by unit."""
        return np.bincount(self.unit, weights=values, minlength=self.number).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Influence:
    """Two estimates of one model's SmoothECE, and what every unit adds to each.

    Attributes
    ----------
    value : float
        The plug-in, which errs upwards on average.
    on_value : float64[units]
        The influence of each unit on it; these add up to 0.
    learnt : float
        The mean of (f - y) g(f) with g = K_σ ∗ s, |s| ≤ 1, learnt from the other folds. On average it is
        at most SmoothECE, whatever the noise. 0 where it is not clear.
    on_learnt : float64[units]
        The influence on that.
    """

    value: float
    on_value: Floats
    learnt: float
    on_learnt: Floats

    @classmethod
    def of(cls, sketch: Sketch, pairs: Rows, assessment: Assessment, folds: Folds) -> Influence:
        """Of one model."""
        length = sketch.scale.length
        finest = max(FINEST_OF_FLOOR * assessment.noise_floor.value, FINEST * length)
        value = max(assessment.smooth_ece, finest)
        grid = ResidualGrid.of(sketch, 0.7 * value)
        position = grid.sketch.scale.locate(pairs.p)
        node, right = nodes_of(grid, position)

        def at_rows(on_nodes: Floats) -> Floats:
            return np.asarray(on_nodes[node] * (1.0 - right) + on_nodes[node + 1] * right)

        residual = folds.share * (pairs.p - pairs.y)
        gain = folds.sums(residual * at_rows(grid.witness(grid.observed, value)))
        weight = folds.sums(folds.share)
        on_value = (gain - weight * gain.sum()) / (1.0 + grid.steepness(value))
        mean, narrowest = np.zeros(folds.number), np.inf
        for deal in folds.deals:
            fold = deal[folds.unit]
            parts = rows_on_nodes(grid, position, residual, fold, FOLDS)
            held = np.bincount(fold, weights=folds.share, minlength=FOLDS)
            others = (parts.sum(axis=0) - parts) / np.maximum(1.0 - held, 1e-12)[:, None]
            sigmas = grid.fixed_points(others, start=value)
            narrowest = min(narrowest, float(sigmas.min()))
            for k, sigma in enumerate(sigmas):
                own = np.where(fold == k, residual, 0.0)
                witness = at_rows(grid.witness(others[k], float(sigma)))
                mean += folds.sums(own * witness) / len(folds.deals)
        learnt, on_learnt = float(mean.sum()), mean - weight * mean.sum()
        error = float(np.sqrt((on_learnt**2).sum()))
        if not len(folds.deals) or learnt <= CLEAR * error:
            return cls(assessment.smooth_ece, on_value, 0.0, np.zeros(folds.number))
        # smECE_σ falls with σ: beyond σ itself the mean at σ proves nothing of the fixed point.
        return cls(assessment.smooth_ece, on_value, min(learnt, narrowest), on_learnt)


def difference_bounds(
    one: Influence, other: Influence, folds: Folds, *, confidence: float
) -> tuple[float, float]:
    """An interval for the population's SmoothECE of one model less that of the other.

    At its upper end the first model's SmoothECE is the plug-in, which errs upwards, and the second's the
    cross-fitted mean, which errs downwards, or 0; at the lower end the other way round. So neither bias can
    make it too short, wherever in the predictions the errors lie. The standard error is that of the
    difference, unit by unit: what is common to the two models cancels.
    """
    z = normal_quantile(0.5 + 0.5 * confidence, max(folds.effective - 1.0, 1.0))

    def reach(first: Influence, second: Influence) -> float:
        error = float(np.sqrt(((first.on_value - second.on_learnt) ** 2).sum()))
        least = z / (2.0 * folds.effective)  # Wilson: where the folds agree, the error is not 0
        return first.value - second.learnt + z * (least + float(np.hypot(error, least)))

    return max(-reach(other, one), -1.0), min(reach(one, other), 1.0)
