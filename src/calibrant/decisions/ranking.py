"""Rows ranked by confidence: how many lie at or beyond each threshold, and how many of them are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.points import Points
from calibrant.data.rows import ABSTAINED, InputOptions, Rows
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Stacked, is_summed
from calibrant.inference.assess import read_clustered
from calibrant.inference.clusters import clusters_of_sketches
from calibrant.inference.dependence import warn_of_repeated_cells, warn_of_repeated_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Side = Literal["above", "below"]


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """Rows apart by cluster: each entry is one row, or the rows of one cluster in a cell.

    Attributes
    ----------
    place : int64[k]
        Index of the entry's threshold in the ranking; increasing.
    code : int64[k]
        The cluster, 0, 1, ...
    rows, errors : float64[k]
        Rows of the entry, and how many of them are wrong.
    clusters : int
        Number of clusters.
    """

    place: Integers
    code: Integers
    rows: Floats
    errors: Floats
    clusters: int

    @cached_property
    def sizes(self) -> Floats:
        """Rows of each cluster."""
        return np.bincount(self.code, self.rows, self.clusters).astype(np.float64)

    @property
    def design_effect(self) -> float:
        """Design effect of rows that agree within clusters, at least 1."""
        return max(float((self.sizes**2).sum() / self.sizes.sum()), 1.0)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows and errors at or beyond each threshold, the most confident first.

    Attributes
    ----------
    threshold : float64[m]
        Distinct predictions, the most confident first; from a sketch, the edges of its cells.
    rows, squared : float64[m]
        Rows (or their weight) at or beyond each, and their squared weights.
    errors : float64[m]
        Those that are wrong: without the event above a threshold, with it below one.
    next_prediction : float64[m]
        Nearest prediction that a row which is not beyond the threshold can have; infinite where
        there is no such row.
    n : int
        Number of rows.
    whole : bool
        Whether every row counts for one whole outcome: no weights, no shares of credit.
    clusters : ClusterRows or None
        The rows apart by cluster, where they depend on each other.
    side : {"above", "below"}
        On which side of a threshold one acts.
    dropped : mapping
        Rows that were left out, by reason.
    declined : int
        Cases that were declined from the start, as far as a sketch of a log counts them.
    """

    threshold: Floats
    rows: Floats
    squared: Floats
    errors: Floats
    next_prediction: Floats
    n: int
    whole: bool
    clusters: ClusterRows | None
    side: Side
    dropped: Mapping[str, int]
    declined: int = 0

    def cases(self, abstained: int) -> float:
        """Number of cases that a coverage is a share of: rows, and those declined or dropped."""
        return float(self.rows[-1]) + abstained + self.declined + sum(self.dropped.values())


def rank(
    y_true: Any,
    y_prob: Any = None,
    *,
    side: Side = "above",
    cluster: Any = None,
    partial_credit: bool = False,
    stacklevel: int = 3,
    **options: Unpack[InputOptions],
) -> Ranking:
    """Ranking of rows, of a Sketch, or of sketches by cluster; warns where rows look dependent.

    With `partial_credit`, soft outcomes are clusters of one row: no count has their distribution.

    Examples
    --------
    >>> ranking = rank([1, 1, 0, 1], [0.9, 0.8, 0.8, 0.3])
    >>> ranking.threshold, ranking.rows, ranking.errors
    (array([0.9, 0.8, 0.3]), array([1., 3., 4.]), array([0., 1., 1.]))
    """
    if is_summed(y_true):
        stacked = clusters_of_sketches(y_true, cluster)
        sketch = as_sketch(y_true.total(), y_prob, **options)
        if stacked is None and not sketch.weighted:
            warn_of_repeated_cells(sketch, stacklevel=stacklevel + 1)
        return rank_sketch(sketch, stacked, side)
    rows, codes = read_clustered(y_true, y_prob, cluster, **options)
    if codes is None and rows.raw_weight is None:
        warn_of_repeated_rows(rows, stacklevel=stacklevel + 1)
    if codes is None and rows.soft and partial_credit:
        codes = np.arange(rows.n), rows.n
    return rank_rows(rows, codes, side)


def rank_rows(rows: Rows, codes: tuple[Integers, int] | None, side: Side = "above") -> Ranking:
    """Ranking of checked rows; `codes` numbers their clusters."""
    points = Points.of(rows)
    squared = points.mass.sum(axis=1) if points.squared is None else points.squared
    clusters = None
    if codes is not None:
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        used = np.flatnonzero(weight > 0)
        place = np.searchsorted(points.p, rows.p[used])
        mass = weight[used, None] * np.stack([1.0 - rows.y[used], rows.y[used]], axis=1)
        clusters = _apart(place, codes[0][used], mass, codes[1], points.p.size, side)
    return _ranking(
        points.p,
        points.p,
        points.mass,
        squared,
        side,
        n=rows.n,
        whole=not rows.fractional,
        clusters=clusters,
        dropped=rows.dropped,
    )


def rank_sketch(sketch: Sketch, parts: Stacked | None = None, side: Side = "above") -> Ranking:
    """Ranking of the cells of a sketch; `parts` are the sketches of its clusters."""
    used = sketch.weights.sum(axis=1) > 0
    cells, mass = sketch.cells[used], sketch.weights[used]
    edges = [sketch.scale.prediction(np.minimum(c / sketch.nodes, 1.0)) for c in (cells, cells + 1)]
    low, high = map(np.asarray, edges)
    # A row on the edge between two cells lies in the upper one.
    last = np.where(high < 1.0, np.nextafter(high, 0.0), 1.0)
    clusters = None
    if parts is not None:
        place = np.searchsorted(cells, parts.entries.cells)
        clusters = _apart(place, parts.code, parts.entries.weights, len(parts), cells.size, side)
    return _ranking(
        low if side == "above" else last,
        np.asarray(sketch.scale.prediction(_farthest(sketch, used, side))),
        mass,
        sketch.squared_weights[used].sum(axis=1),
        side,
        n=sketch.n,
        whole=not sketch.weighted,
        clusters=clusters,
        dropped={why: k for why, k in sketch.dropped.items() if why != ABSTAINED},
        declined=sketch.dropped.get(ABSTAINED, 0),
    )


def _ranking(
    threshold: Floats, nearest: Floats, mass: Floats, squared: Floats, side: Side, **fields: Any
) -> Ranking:
    """Ranking of points that are in increasing order."""
    above = side == "above"
    order = slice(None, None, -1 if above else 1)
    return Ranking(
        np.ascontiguousarray(threshold[order]),
        np.cumsum(mass[order].sum(axis=1)),
        np.cumsum(squared[order]),
        np.cumsum(mass[order, 0 if above else 1]),
        np.append(nearest[order][1:], -np.inf if above else np.inf),
        side=side,
        **fields,
    )


def _apart(
    place: Integers, code: Integers, mass: Floats, clusters: int, size: int, side: Side
) -> ClusterRows:
    """Entries by cluster in the order of the ranking; `place` is among increasing predictions."""
    place = size - 1 - place if side == "above" else place
    order = np.argsort(place, kind="stable")
    mass = mass[order]
    errors = mass[:, 0 if side == "above" else 1]
    return ClusterRows(
        place[order].astype(np.int64), code[order], mass.sum(axis=1), errors, clusters
    )


def _farthest(sketch: Sketch, used: NDArray[np.bool_], side: Side) -> Floats:
    """Bound on the predictions of a cell's rows, by the sum of their distances from its edge.

    Of a crowded cell the last thousandth is taken to be empty, so that an edge has few decimals.
    """
    cells, counts = sketch.cells[used], sketch.counts[used].sum(axis=1)
    width, unit = 1.0 / sketch.nodes, 2.0**-FRACTION_BITS
    offsets = sketch.offsets[used].sum(axis=1)  # each rounded down
    if side == "above":
        far = cells * width + np.minimum((offsets + counts) * unit, 0.999 * width)
    else:
        far = (cells + 1) * width - np.minimum(counts * width - offsets * unit, 0.999 * width)
    return np.asarray(np.minimum(far, 1.0))
