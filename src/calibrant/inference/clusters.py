"""Dependent rows: several forecasts of one event, one patient, one match, one day.

Clusters are independent of one another, so what the test draws for rows it draws for whole clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_column, is_missing, require_each, require_entries
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.rows import Rows
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches, Stacked
from calibrant.errors import InputError, TooFewRows, show_value
from calibrant.inference.residuals import cell_positions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def cluster_codes(cluster: Any, rows: int, weight: Floats | None = None) -> tuple[Integers, int]:
    """The cluster of each row as 0, 1, ..., and how many there are with weight.

    Examples
    --------
    >>> cluster_codes(["b", "a", "b", 1, "1"], 5)
    (array([3, 2, 3, 0, 1]), 4)
    """
    column = as_column(cluster, "cluster", dates=True)
    require_entries("cluster", column, rows)
    hint = "Give such rows a cluster of their own, or leave them out."
    require_each("cluster", column, ~is_missing(column), "not hold missing values", hint)
    numbers = _numbered(column) if column.dtype.kind == "O" else column
    names, first, codes = np.unique(numbers, return_index=True, return_inverse=True)
    codes, clusters = codes.ravel().astype(np.int64), int(names.size)
    if weight is not None:
        counted = np.unique(codes[weight > 0])
        # Rows without weight add nothing to whatever cluster they are in.
        codes = np.where(weight > 0, np.searchsorted(counted, codes), 0)
        clusters, first = int(counted.size), first[counted]
    if clusters < 2:
        name = column[first[0]]
        shown = str(name) if column.dtype.kind in "Mm" else show_value(name)
        raise TooFewRows(
            f"`cluster` must name at least two clusters with weight; there is {shown} alone.",
            hint="With one cluster the error cannot be known: leave it out if rows are independent.",
        )
    return codes, clusters


def _numbered(column: NDArray[Any]) -> Integers:
    """Values of several types as numbers, in an order that does not depend on that of the rows."""
    try:
        distinct = set(column.tolist())
    except TypeError as error:
        raise InputError("`cluster` must hold names, numbers or dates.") from error
    order = sorted(distinct, key=lambda value: (type(value).__name__, str(value)))
    number = {value: place for place, value in enumerate(order)}
    return np.fromiter((number[value] for value in column), dtype=np.int64, count=column.size)


@dataclass(frozen=True, eq=False)
class ClusterResiduals:
    """Residuals of dependent rows by cluster: independent sets of rows, of whatever kind within.

    Attributes
    ----------
    code : int64[m]
        Cluster of each entry: a row, or a cell of a cluster's sketch.
    position : float64[m]
        Where it lies on the scale's grid, from 0 to 1.
    residual : float64[m]
        Σ w (f - y) of its rows, divided by the weight of all rows.
    number : int
        Number of clusters.
    units : float
        Kish's effective number of clusters, (Σ weight)² / Σ weight².
    sums : float64[3, number]
        Weight, observed and expected events of each cluster, divided by the weight of all rows.
    """

    code: Integers
    position: Floats
    residual: Floats
    number: int
    units: float
    sums: Floats

    @classmethod
    def of(cls, scale: Scale, pairs: Rows, codes: tuple[Integers, int]) -> ClusterResiduals:
        """The rows of each cluster, which `cluster_codes` numbers."""
        weight = np.full(pairs.n, 1.0 / pairs.n)
        if pairs.weight is not None:
            weight = pairs.weight / pairs.weight.sum()
        parts = (weight, weight * pairs.y, weight * pairs.p)
        sums = np.array([np.bincount(codes[0], part, codes[1]) for part in parts], dtype=np.float64)
        position = scale.locate(pairs.p)
        return cls(
            codes[0], position, parts[2] - parts[1], codes[1], 1.0 / float(sums[0] @ sums[0]), sums
        )

    @classmethod
    def of_sketches(cls, scale: Scale, sketches: Stacked) -> ClusterResiduals:
        """One sketch for each cluster."""
        weights = sketches.entries.weights
        total = weights.sum()
        mass = over_outcomes(weights) / total
        position = cell_positions(sketches.entries)
        f = np.asarray(scale.prediction(position)).clip(0.0, 1.0)
        parts = (mass, weights[:, 1] / total, mass * f)
        sums = np.array(
            [np.bincount(sketches.code, part, len(sketches)) for part in parts], dtype=np.float64
        )
        residual = parts[2] - parts[1]
        return cls(
            sketches.code, position, residual, len(sketches), 1.0 / float(sums[0] @ sums[0]), sums
        )

    def design_effect(self, variance: float) -> float:
        """Factor on the variance of the mean residual, beside this one of independent rows; at least 1."""
        together = float((np.bincount(self.code, self.residual, self.number) ** 2).sum())
        return max(together / variance, 1.0) if variance > 0.0 else 1.0


def clusters_of_sketches(sketches: Sketch | Sketches, cluster: Any) -> Stacked | None:
    """The sketches of the clusters that have weight, at least two; None of a Sketch without clusters."""
    if isinstance(sketches, Sketch):
        if cluster is None:
            return None
        raise InputError(
            "`cluster` needs rows, or one sketch for each cluster; a Sketch alone has neither.",
            hint="Pass `y_true` and `y_prob`, or what `calibrant.scan` gives with `cluster=`.",
        )
    if not isinstance(cluster, str) or cluster not in sketches.by:
        raise InputError(
            f"`cluster` must name a column of the sketches; it is {show_value(cluster)}.",
            hint=f"Columns: {', '.join(sketches.by)}. For one assessment a group, use `assess_by`.",
        )
    return clusters_with_weight(sketches.roll_up(cluster).stacked())


def clusters_with_weight(sketches: Stacked) -> Stacked:
    """Those that have weight, of which there must be two."""
    parts = sketches.with_weight()
    if len(parts) < 2:
        raise TooFewRows(f"`cluster` must name at least two clusters; there is {len(parts)}.")
    return parts
