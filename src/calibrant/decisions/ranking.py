"""Rows in the order in which one would act on them: the most confident first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number, require_count
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.points import Points
from calibrant.data.rows import ABSTAINED, Dropped, InputOptions, Rows
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches, Stacked
from calibrant.errors import Function, InputError, Option
from calibrant.inference.assess import read_clustered
from calibrant.inference.clusters import clusters_of_sketches

__all__ = [
    "ClusterRows",
    "Ranking",
    "Side",
    "rank",
    "rank_cells",
    "rank_pairs",
    "require_abstained",
    "require_risk",
    "shortest",
]

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
    def largest(self) -> float:
        """Rows of the largest cluster."""
        return float(self._sizes.max())

    @cached_property
    def design_effect(self) -> float:
        """How many times larger rows that agree within clusters make the variance of a mean."""
        return float((self._sizes**2).sum() / self._sizes.sum())

    @cached_property
    def _sizes(self) -> Floats:
        return np.bincount(self.code, self.rows, self.clusters).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Ranking:
    """How many rows lie at or beyond each threshold, and how many of them are wrong.

    Attributes
    ----------
    threshold : float64[m]
        Distinct predictions, the most confident first; from a sketch, the edges of its cells.
    rows, squared : float64[m]
        Rows (or their weight) at or beyond each, and their squared weights.
    errors : float64[m]
        Those that are wrong: without the event above a threshold, with it below one.
    n : int
        Number of rows.
    whole : bool
        Whether every row counts for one whole outcome: no weights, no shares of credit.
    exact : bool
        Whether the order of all rows is known; a sketch knows it up to its cells.
    clusters : ClusterRows or None
        The rows apart by cluster, where they depend on each other.
    side : {"above", "below"}
        On which side of a threshold one acts.
    dropped : mapping
        Rows that were left out, by reason.
    next_prediction : float64[m]
        The nearest prediction that a row which is not beyond the threshold can have; infinite where
        there is no such row.
    declined : int
        Cases that were declined from the start, as far as a sketch of a log counts them.
    """

    threshold: Floats
    rows: Floats
    squared: Floats
    errors: Floats
    n: int
    whole: bool
    exact: bool
    clusters: ClusterRows | None
    side: Side
    dropped: Mapping[str, int]
    next_prediction: Floats
    declined: int = 0

    def cases(self, abstained: int) -> float:
        """All that a coverage is a share of: rows, and cases that were declined or dropped."""
        return float(self.rows[-1]) + abstained + self.declined + sum(self.dropped.values())


def rank(
    y_true: Any,
    y_prob: Any = None,
    *,
    side: Side = "above",
    cluster: Any = None,
    **options: Unpack[InputOptions],
) -> Ranking:
    """The ranking of rows, of a Sketch, or of sketches by cluster.

    Examples
    --------
    >>> ranking = rank([1, 1, 0, 1], [0.9, 0.8, 0.8, 0.3])
    >>> ranking.threshold, ranking.rows, ranking.errors
    (array([0.9, 0.8, 0.3]), array([1., 3., 4.]), array([0., 1., 1.]))
    """
    if isinstance(y_true, Sketches):
        return _of_sketches(y_true, cluster, side)
    if isinstance(y_true, Sketch):
        if cluster is not None:
            raise InputError(
                "needs rows, or one sketch for each cluster; a Sketch alone has neither.",
                argument="cluster",
                cure="Pass what {scan} gives with {option}.",
                scan=Function("scan"),
                option=Option("cluster", ...),
            )
        return rank_cells(as_sketch(y_true, y_prob, **options), side, None)
    pairs, codes = read_clustered(y_true, y_prob, cluster, **options)
    return rank_pairs(pairs, codes, side=side)


def rank_pairs(pairs: Rows, codes: tuple[Integers, int] | None, *, side: Side) -> Ranking:
    """The ranking of checked rows; `codes` numbers their clusters."""
    atoms = Points.of(pairs)
    ordered = slice(None, None, -1) if side == "above" else slice(None)
    threshold, mass = atoms.p[ordered], atoms.mass[ordered]
    squared = over_outcomes(mass) if atoms.squared is None else atoms.squared[ordered]
    clusters = None if codes is None else _cluster_rows(pairs, codes, atoms.p, side)
    return _ranking(
        threshold,
        mass,
        squared,
        side,
        n=pairs.n,
        whole=not pairs.fractional,
        exact=True,
        clusters=clusters,
        dropped=pairs.dropped,
        next_prediction=np.append(threshold[1:], -np.inf if side == "above" else np.inf),
    )


def _ranking(
    threshold: Floats, mass: Floats, squared: Floats, side: Side, **fields: Any
) -> Ranking:
    wrong = 0 if side == "above" else 1
    rows = over_outcomes(mass)
    return Ranking(
        np.ascontiguousarray(threshold),
        np.cumsum(rows),
        np.cumsum(squared),
        np.cumsum(mass[:, wrong]),
        side=side,
        **fields,
    )


def _cluster_rows(
    pairs: Rows, codes: tuple[Integers, int], distinct: Floats, side: Side
) -> ClusterRows:
    """Each row an entry; `distinct` are the predictions with weight, in increasing order."""
    weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
    used = np.flatnonzero(weight > 0)
    place = np.searchsorted(distinct, pairs.p[used])
    if side == "above":
        place = distinct.size - 1 - place
    order = np.argsort(place, kind="stable")
    used, place = used[order], place[order]
    right = pairs.y[used] if side == "above" else 1.0 - pairs.y[used]
    rows = weight[used]
    return ClusterRows(place.astype(np.int64), codes[0][used], rows, rows * (1.0 - right), codes[1])


def _of_sketches(sketches: Sketches, cluster: Any, side: Side) -> Ranking:
    parts = clusters_of_sketches(sketches, cluster)
    return rank_cells(as_sketch(sketches.total()), side, parts)


def rank_cells(sketch: Sketch, side: Side, parts: Stacked | None) -> Ranking:
    """The ranking of a sketch; `parts` are those of its clusters."""
    mass = sketch.weights
    used = over_outcomes(mass) > 0
    cells, mass = sketch.cells[used], mass[used]
    ordered = slice(None, None, -1) if side == "above" else slice(None)
    low = np.asarray(sketch.scale.prediction(cells / sketch.nodes))
    high = np.asarray(sketch.scale.prediction(np.minimum((cells + 1) / sketch.nodes, 1.0)))
    # A row on the edge between two cells lies in the upper one.
    last = np.where(high < 1.0, np.nextafter(high, 0.0), 1.0)
    edge = low if side == "above" else last
    other = np.asarray(sketch.scale.prediction(_farthest(sketch, used, side)))
    clusters = None
    if parts is not None:
        wrong = 0 if side == "above" else 1
        place, code, weights = np.searchsorted(cells, parts.cells), parts.code, parts.weights
        place = cells.size - 1 - place if side == "above" else place
        order = np.argsort(place, kind="stable")
        clusters = ClusterRows(
            place[order].astype(np.int64),
            code[order],
            over_outcomes(weights[order]),
            weights[order, wrong],
            len(parts),
        )
    return _ranking(
        edge[ordered],
        mass[ordered],
        over_outcomes(sketch.squared_weights[used])[ordered],
        side,
        n=sketch.n,
        whole=not sketch.weighted,
        exact=not np.any(over_outcomes(mass) > 1.0),
        clusters=clusters,
        dropped=Dropped({why: k for why, k in sketch.dropped.items() if why != ABSTAINED}),
        declined=sketch.dropped.get(ABSTAINED, 0),
        next_prediction=np.append(other[ordered][1:], -np.inf if side == "above" else np.inf),
    )


def _farthest(sketch: Sketch, used: NDArray[np.bool_], side: Side) -> Floats:
    """How high, or how low, the rows of a cell can lie, by the sum of their distances from its edge.

    Of a crowded cell the last thousandth is taken to be empty, so that an edge has few decimals.
    """
    cells, counts = sketch.cells[used], over_outcomes(sketch.counts[used])
    width = 1.0 / sketch.nodes
    offsets, unit = over_outcomes(sketch.offsets[used]), 2.0**-FRACTION_BITS  # each rounded down
    if side == "above":
        far = cells * width + np.minimum((offsets + counts) * unit, 0.999 * width)
    else:
        far = (cells + 1) * width - np.minimum(counts * width - offsets * unit, 0.999 * width)
    return np.asarray(np.minimum(far, 1.0))


def require_abstained(abstained: int) -> int:
    """The number of cases that were declined, if it is a whole number that is not negative."""
    return require_count("abstained", abstained, least=0)


def require_risk(risk: float) -> float:
    """The largest share of wrong decisions that is acceptable, if it lies between 0 and 1."""
    if not is_number(risk) or not 0.0 < risk < 1.0:
        percent = is_number(risk) and 1.0 <= risk < 100.0
        raise InputError(
            "must lie between 0 and 1",
            argument="risk",
            seen=risk,
            cure="{share} per cent is {option}." if percent else (),
            share=risk,
            option=Option("risk", risk / 100.0 if percent else risk),
        )
    return float(risk)


def shortest(threshold: float, other: float, side: Side) -> str:
    """The threshold in decimals on its side of the other prediction.

    Examples
    --------
    >>> shortest(0.8123456, 0.81, "above"), shortest(0.8123456, 0.81234, "above")
    ('0.8123', '0.812345')
    >>> shortest(0.9, 0.8, "above"), shortest(0.05, 0.0501, "below")
    ('0.9', '0.05')
    """
    away = min(threshold, 1.0 - threshold)  # and as many as tell it from 0 and 1
    fewest = max(4, 3 - math.floor(math.log10(away))) if away > 0.0 else 4
    exact = Decimal(repr(threshold))
    rounding = ROUND_FLOOR if side == "above" else ROUND_CEILING
    for places in range(fewest, 30):
        short = exact.quantize(Decimal(1).scaleb(-places), rounding)
        if other < float(short) if side == "above" else float(short) < other:
            return np.format_float_positional(float(short), trim="-")
    return repr(threshold)
