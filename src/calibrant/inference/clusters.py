"""Dependent rows: several forecasts of one event, one patient, one match, one day.

Rows of one cluster come and go together. Every cluster leaves its own residual function on the grid;
these are independent, and what resampling or flipping signs does to rows it does to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant._locks import cached_property
from calibrant.data.arrays import as_column, is_missing
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.rows import Rows
from calibrant.data.sketches import Sketches, Stacked
from calibrant.errors import InputError, TooFewRows, Where, show_value
from calibrant.inference.calibration_test import Rejection
from calibrant.inference.interval import Spread
from calibrant.inference.noise_floor import NoiseFloor
from calibrant.inference.null_draws import DRAWS, null_residuals
from calibrant.inference.outcomes import FEW_EVENTS, SharedOutcomes, surprises_of
from calibrant.inference.resampling import cell_positions
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.witnesses import Cells

__all__ = [
    "ClusterResiduals",
    "cluster_codes",
    "clusters_of_sketches",
    "clusters_with_weight",
    "random_blocks",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_BLOCKS = 1024
FLOOR_DRAWS = 200
DRAWS_AT_ONCE = 200
ROWS_AT_ONCE = 1 << 20
MOST_ROWS_DRAWN = 20_000
"""Of more, all clusters count alike, as outcomes would take seconds to draw."""


def cluster_codes(cluster: Any, rows: int, weight: Floats | None = None) -> tuple[Integers, int]:
    """The cluster of each row as 0, 1, ..., and how many there are with weight.

    Examples
    --------
    >>> cluster_codes(["b", "a", "b", 1, "1"], 5)
    (array([3, 2, 3, 0, 1]), 4)
    """
    column = as_column(cluster, "cluster", dates=True)
    if column.size != rows:
        raise InputError(
            "must have one entry per row",
            argument="cluster",
            seen=column.size,
            saying="it has {} for {rows} rows",
            rows=rows,
            cure="Pass the cluster of each row, in their order.",
        )
    missing = np.flatnonzero(is_missing(column))
    if missing.size:
        raise InputError(
            "must not hold missing values",
            argument="cluster",
            where=Where(row=int(missing[0])),
            cure="Give such rows a cluster of their own, or leave them out.",
        )
    numbers = _numbered(column) if column.dtype.kind == "O" else column
    names, first, codes = np.unique(numbers, return_index=True, return_inverse=True)
    codes, clusters = codes.ravel().astype(np.int64), int(names.size)
    if weight is not None:
        counted = np.unique(codes[weight > 0])
        # Rows without weight add nothing to whatever cluster they are in.
        codes = np.where(weight > 0, np.searchsorted(counted, codes), 0)
        clusters, first = int(counted.size), first[counted]
    if clusters < 2:
        which = (
            f"all {rows} rows" if weight is None or np.all(weight > 0) else "all rows with weight"
        )
        name = column[first[0]]
        shown = str(name) if column.dtype.kind in "Mm" else show_value(name)
        raise TooFewRows(
            "must name at least two clusters",
            argument="cluster",
            seen=shown,
            saying="{which} are in {}",
            cure="With one cluster the error cannot be known: leave it out if rows are independent.",
            which=which,
        )
    return codes, clusters


def _numbered(column: NDArray[Any]) -> Integers:
    """Values of several types as numbers, in an order that does not depend on that of the rows."""
    try:
        distinct = set(column.tolist())
    except TypeError as error:
        raise InputError(
            "must hold names, numbers or dates",
            argument="cluster",
            saying="it holds lists or other values that change",
            cure="Convert it to text or numbers first.",
        ) from error
    order = sorted(distinct, key=lambda value: (type(value).__name__, str(value)))
    number = {value: place for place, value in enumerate(order)}
    return np.fromiter((number[value] for value in column), dtype=np.int64, count=column.size)


@dataclass(frozen=True, eq=False)
class ClusterResiduals:
    """The residual function of each cluster, on one grid.

    Attributes
    ----------
    grid : ResidualGrid
        The grid; the rows of all clusters together.
    residuals : float64[blocks, cells + 1]
        Their sum is the mean of f - y on the nodes. Beyond 1,024 clusters, random sets of clusters
        are summed into blocks, which are independent as well.
    shares : float64[blocks]
        Weight of each block, of 1 in all.
    clusters : int
        Number of clusters.
    units : float
        Their effective number, (Σ weight)² / Σ weight².
    outcomes : SharedOutcomes or None
        The rows, where events, or heavy clusters, are too few for the signs of the clusters to be drawn at
        random.
    """

    grid: ResidualGrid
    residuals: Floats
    shares: Floats
    clusters: int
    units: float
    outcomes: SharedOutcomes | None

    @classmethod
    def of(cls, grid: ResidualGrid, pairs: Rows, codes: tuple[Integers, int]) -> ClusterResiduals:
        """Lay the rows of each cluster, which `cluster_codes` numbers, onto the grid."""
        weight = np.full(pairs.n, 1.0 / pairs.n)
        if pairs.weight is not None:
            weight = pairs.weight / pairs.weight.sum()
        per_cluster = np.bincount(codes[0], weights=weight, minlength=codes[1])
        position = grid.sketch.scale.locate(pairs.p)
        cluster = _in_order_of_weight(codes[0], weight, position)
        block, blocks = random_blocks(cluster, codes[1], seed=0)
        residuals = rows_on_nodes(grid, position, weight * (pairs.p - pairs.y), block, blocks)
        shares = np.bincount(block, weights=weight, minlength=blocks).astype(np.float64)
        rows = np.ones(pairs.n, dtype=np.int64)
        outcomes = _few_outcomes(grid, position, pairs.p, codes[0], weight * pairs.y, weight, rows)
        units = float(1.0 / (per_cluster**2).sum())
        return cls(grid, *_in_order(residuals, shares), codes[1], units, outcomes)

    @classmethod
    def of_sketches(cls, grid: ResidualGrid, sketches: Stacked) -> ClusterResiduals:
        """Lay one sketch for each cluster onto the grid."""
        clusters, total = len(sketches), grid.sketch.total_weight
        cluster, position, weights = sketches.code, cell_positions(sketches), sketches.weights
        mass, events = over_outcomes(weights) / total, weights[:, 1] / total
        rows = over_outcomes(sketches.columns.counts)
        p = np.asarray(grid.sketch.scale.prediction(position))
        cluster = _in_order_of_weight(cluster, mass, position)
        block, blocks = random_blocks(cluster, clusters, seed=0)
        residuals = rows_on_nodes(grid, position, mass * p - events, block, blocks)
        shares = np.bincount(block, weights=mass, minlength=blocks).astype(np.float64)
        outcomes = _few_outcomes(grid, position, p, cluster, events, mass, rows)
        weight = np.bincount(cluster, weights=mass, minlength=clusters)
        units = float(1.0 / (weight**2).sum())
        return cls(grid, *_in_order(residuals, shares), clusters, units, outcomes)

    def spread(self, value: float, independent: Spread) -> Spread:
        """The spread of smECE over clusters, by the influence of each on it and on the mean residual.

        There are as many units as independent rows would have the same error, or, where events are
        few, as clusters: the error that was seen may then be too small by chance. The degrees of freedom
        are one less than the effective number of clusters: where one of them holds half of the rows, the
        others cannot tell much of how it might have been.
        """
        grid = self.grid
        on_value = self.residuals @ grid.witness(grid.observed, value) - self.shares * value
        on_mean = self.residuals.sum(axis=1) - self.shares * grid.observed.sum()
        largest = max(float((influence**2).sum()) for influence in (on_value, on_mean))
        error = math.sqrt(largest * on_mean.size / (on_mean.size - 1))
        alone = independent.standard_error
        inflation = max(error / alone, 1.0) if alone > 0.0 else 1.0
        units = independent.units / inflation**2
        if self.events_are_rare or alone == 0.0:
            units = min(units, self.units)
        return Spread(grid, error, units, self.degrees)

    @cached_property
    def events_are_rare(self) -> bool:
        """Whether few surprises are to be expected, however much the clusters weigh that have them."""
        return self.outcomes is not None and self.outcomes.are_rare

    @property
    def degrees(self) -> float:
        """Degrees of freedom of what the clusters say of their own spread."""
        return max(self.units - 1.0, 0.05)

    def bias_inflation(self) -> float:
        """How many times larger the clusters make the error of the mean residual; at least 1."""
        grid = self.grid
        f, squared = grid.predictions, grid.sketch.squared_weights
        alone = float((squared * np.stack([f, f - 1.0], axis=1) ** 2).sum())
        alone /= grid.sketch.total_weight**2
        together = float((self.residuals.sum(axis=1) ** 2).sum())
        return float(np.sqrt(max(together / alone, 1.0))) if alone > 0.0 else 1.0

    def null_residuals(self, resamples: int, *, seed: int) -> Iterator[Floats]:
        """Residuals with the sign of each cluster's drawn at random, in blocks of draws.

        Were the predictions calibrated, the mean of a cluster's residual function would be 0, and a
        sum with random signs would have the variance of the sum. It has its distribution, too, where
        that is symmetric: not where events are few.
        """
        rng = generator(seed, 5)
        for start in range(0, resamples, DRAWS_AT_ONCE):
            size = (min(DRAWS_AT_ONCE, resamples - start), len(self.residuals))
            yield (2.0 * rng.integers(0, 2, size) - 1.0) @ self.residuals

    def rejection(self, floor: float) -> Rejection:
        """What the clusters say against each size of error, by random signs of the clusters.

        Where events are few, a size is rejected only if it also would be with outcomes that the rows of a
        cluster share.
        """
        cells = Cells.of(self.grid.sketch)
        edges = np.searchsorted(
            self.grid.positions * self.grid.sketch.scale.length, cells.edges[1:-1], side="right"
        )

        def in_cells(on_nodes: Floats) -> Floats:
            sums = np.zeros((len(on_nodes), on_nodes.shape[1] + 1))
            np.cumsum(on_nodes, axis=1, out=sums[:, 1:])
            ends = np.concatenate([[0], edges, [on_nodes.shape[1]]])
            return np.diff(sums[:, ends], axis=1)

        blocks = in_cells(self.residuals)
        cells = replace(
            cells,
            residual=blocks.sum(axis=0),
            blocks=blocks,
            block_shares=self.shares,
            units=min(self.units, cells.units),
        )
        nulls = [null_residuals(cells)]
        if self.outcomes is not None:
            drawn = [in_cells(block) for block in self.outcomes.residuals(DRAWS, seed=0)]
            nulls.append(np.concatenate(drawn).astype(np.float32))
        return Rejection(cells, floor, nulls, self.degrees)

    def null_values(self, value: float, resamples: int, *, seed: int) -> Floats:
        """SmoothECE of calibrated predictions on as many clusters."""
        null = self.null_residuals
        if self.outcomes is not None and self.events_are_rare:
            null = self.outcomes.residuals
        drawn = [self.grid.fixed_points(block, start=value) for block in null(resamples, seed=seed)]
        return np.concatenate(drawn)

    def noise_floor(self, value: float) -> NoiseFloor:
        """The mean SmoothECE of calibrated predictions on as many clusters."""
        drawn = self.null_values(value, FLOOR_DRAWS, seed=1)
        return NoiseFloor(float(drawn.mean()), "simulated by clusters")


def _in_order(residuals: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """The blocks by weight and residual: no draw depends on the order in which clusters came."""
    order = np.lexsort((np.round(residuals.sum(axis=1), 9), np.round(shares, 9)))
    return residuals[order], shares[order]


def _in_order_of_weight(unit: Integers, share: Floats, position: Floats) -> Integers:
    """Events or clusters numbered by weight and place: no draw depends on the order in which rows came."""
    weight, moment = np.bincount(unit, share), np.bincount(unit, share * position)
    order = np.lexsort((np.round(moment, 12), np.round(weight, 12)))
    return np.argsort(order)[unit]


def _few_outcomes(
    grid: ResidualGrid,
    position: Floats,
    p: Floats,
    cluster: Integers,
    events: Floats,
    weight: Floats,
    rows: Integers,
) -> SharedOutcomes | None:
    """The rows as outcomes to draw, if surprises among them are few."""
    share = weight if p.size <= MOST_ROWS_DRAWN else None
    surprises = surprises_of(cluster, np.minimum(p, 1.0 - p), share)
    if surprises >= FEW_EVENTS:  # one event at least in each cluster
        return None
    entry, event = SharedOutcomes.events_of(cluster, events, weight, rows)
    held = np.bincount(entry, minlength=p.size)
    node, right = nodes_of(grid, position[entry])
    each = (weight / np.maximum(held, 1))[entry]
    event = _in_order_of_weight(event, each, position[entry])
    drawn = SharedOutcomes(np.clip(p[entry], 0.0, 1.0), each, event, node, right, grid.cells)
    return drawn if drawn.are_few else None


def random_blocks(codes: Integers, clusters: int, *, seed: int) -> tuple[Integers, int]:
    """At most MOST_BLOCKS sets of whole clusters, of nearly equal numbers, drawn at random."""
    if clusters <= MOST_BLOCKS:
        return codes, clusters
    order = generator(seed, 6).permutation(clusters)
    return order[codes] % MOST_BLOCKS, MOST_BLOCKS


def nodes_of(grid: ResidualGrid, position: Floats) -> tuple[Integers, Floats]:
    """The node on the left of each row, and the part of the row that goes to the one on its right."""
    place = position * grid.sketch.nodes
    cell = place.astype(np.int64)
    place = place - cell + grid.places(cell)
    node = np.minimum(place.astype(np.int64), grid.cells - 1)
    return node, np.asarray(place - node)


def rows_on_nodes(
    grid: ResidualGrid, position: Floats, values: Floats, block: Integers, blocks: int
) -> Floats:
    """Sums of the rows' values on the nodes of the grid, apart by block: [blocks, cells + 1]."""
    size = blocks * (grid.cells + 1)
    sums = np.zeros(size)
    for start in range(0, position.size, ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        node, right = nodes_of(grid, position[piece])
        at = block[piece] * (grid.cells + 1) + node
        sums += np.bincount(at, weights=values[piece] * (1.0 - right), minlength=size)
        sums += np.bincount(at + 1, weights=values[piece] * right, minlength=size)
    return sums.reshape(blocks, grid.cells + 1)


def clusters_of_sketches(sketches: Sketches, cluster: Any) -> Stacked:
    """The sketches of the clusters that have weight, of which there must be two."""
    if not isinstance(cluster, str) or cluster not in sketches.by:
        raise InputError(
            "must name the column of the sketches that makes the clusters: one of {columns}",
            argument="cluster",
            seen=cluster,
            cure="Name one of them.",
            columns=", ".join(sketches.by),
        )
    return clusters_with_weight(sketches.roll_up(cluster).stacked())


def clusters_with_weight(sketches: Stacked) -> Stacked:
    """Those that have weight, of which there must be two."""
    parts = sketches.with_weight()
    if len(parts) < 2:
        raise TooFewRows(
            "must name at least two clusters",
            argument="cluster",
            seen=len(parts),
            saying="there is {}",
            cure="Leave it out if rows are independent, or pass more rows.",
        )
    return parts
