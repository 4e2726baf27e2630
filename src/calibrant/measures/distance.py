"""The distance from calibration: how far the nearest calibrated distribution lies."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice, require_count, require_number
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.errors import CalibrantError
from calibrant.measures.result_record import Record

Floats = NDArray[np.float64]
Flips = Literal["forbidden", "allowed"]

MOST_NODES = 1 << 20
"""Far more than any linear program of this kind is solved with in a minute."""
FARTHEST = 2.0
"""Distances on a scale are cut there: d(u, v) = min(|h(u) - h(v)|, 2)."""
ATTEMPTS = (("highs-ipm", 1e-10), ("highs-ds", 1e-10), ("highs-ds", 1e-7))
"""Solvers and tolerances: the first is the fastest, and gives up where nodes lie very close."""
TIME_TO_BEGIN = 1e-4
"""Seconds a node, several times what it takes."""


@dataclass(frozen=True, repr=False)
class Distance(Record):
    """A distance to calibration, the interval that provably holds it, and what lies there.

    Attributes
    ----------
    value : float
        The optimum on the nodes.
    low, high : float
        dCE lies between them: the nodes can only make the optimum larger, by what a calibrated mass
        between two nodes costs to split; and the data were moved to nodes where they are not any. NaN from
        a sketch on another scale than this.
    p : float64[m]
        Support of the nearest calibrated distribution that was found.
    mass : float64[m, 2]
        Its mass without and with the event at each p; mass[:, 1] / mass.sum(axis=1) equals p.
    flips, scale : str
        Which definition, in which metric.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> found = distance_to_calibration_result([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> found.low <= found.value <= found.high
    True
    """

    value: float
    low: float
    high: float
    p: Floats = field(compare=False)
    mass: Floats = field(compare=False)
    flips: str
    scale: str
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)


def distance_to_calibration(
    y_true: Any,
    y_prob: Any = None,
    *,
    flips: Flips = "forbidden",
    scale: str | Scale = PROBABILITY,
    nodes: int = 1000,
    time_limit: float = 60.0,
    **options: Unpack[InputOptions],
) -> float:
    """Distance to calibration: how far the nearest calibrated distribution is.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    flips : {"forbidden", "allowed"}
        Whether the nearest distribution must keep every outcome, or may change one at a cost of 1.
        On the probability scale the two are equal; on others they differ, and the theorems that
        compare with wCE and SmoothECE are about "allowed".
    scale : str or Scale
        The metric: min(|h(u) - h(v)|, 2).
    nodes : int
        Where the calibrated distribution may have mass: half of the nodes are evenly spaced on the
        scale, half are quantiles of the predictions, or all of these.
    time_limit : float
        Seconds for the linear program, after which it ends with an error. The clock is looked at
        between its steps, so that it may end some tenths of a second late, or solved.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Returns
    -------
    float
        `distance_to_calibration_result` has its error bounds.

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE*: (T1) of the theory page, with the metric of (T16), in which the
    paper prints max for min. Błasiok, Gopalan, Hu and Nakkiran, *A unifying theory of distance from
    calibration*.

    Examples
    --------
    >>> round(distance_to_calibration([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 6)
    0.25
    """
    return distance_to_calibration_result(
        y_true,
        y_prob,
        flips=flips,
        scale=scale,
        nodes=nodes,
        time_limit=time_limit,
        **options,
    ).value


def distance_to_calibration_result(
    y_true: Any,
    y_prob: Any = None,
    *,
    flips: Flips = "forbidden",
    scale: str | Scale = PROBABILITY,
    nodes: int = 1000,
    time_limit: float = 60.0,
    **options: Unpack[InputOptions],
) -> Distance:
    """Distance to calibration with its bounds and the nearest calibrated distribution.

    Examples
    --------
    >>> distance_to_calibration_result([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5], nodes=200)
    Distance(value=0.25, low=0.244949, high=0.25, flips='forbidden', scale='probability', n=4)
    """
    require_choice("flips", flips, ("forbidden", "allowed"))
    require_count("nodes", nodes, least=10, most=MOST_NODES)
    require_number("time_limit", time_limit, 0.0)
    points = as_points(y_true, y_prob, **options)
    scale = as_scale(scale, base_rate=points.base_rate)
    at = _nodes(points, scale, int(nodes))
    mass, moved = _on_nodes(points, scale, at)
    value, calibrated = _solve(at, scale.z(at), mass, flips == "allowed", time_limit)
    if points.position_error:
        moved += points.position_error if points.scale == scale else math.nan
    used = calibrated > 0.0
    support, weight = at[used], calibrated[used]
    return Distance(
        value=value,
        low=float(np.maximum(0.0, value - moved - _splitting_cost(at, scale))),
        high=value + moved,
        p=support,
        mass=np.column_stack([(1.0 - support) * weight, support * weight]),
        flips=flips,
        scale=scale.name,
        n=points.n,
        dropped=points.dropped,
    )


def _nodes(points: Points, scale: Scale, nodes: int) -> Floats:
    """Even steps of z, up to 2 beyond the data, beside predictions that occur, and 0 and 1.

    Nothing is lost farther out: all of that is 2 away from the data, and so are 0 and 1, where a
    mass without and one with the event are calibrated.
    """
    z = scale.z(points.p)
    known = z[np.isfinite(z)]
    low, high = (known[0], known[-1]) if known.size else (0.0, 0.0)
    limits = scale.z(np.array([0.0, 1.0]))
    steps = np.linspace(max(low - FARTHEST, limits[0]), min(high + FARTHEST, limits[1]), nodes // 2)
    if points.p.size <= nodes // 2:
        data = points.p
    else:
        share = np.cumsum(over_outcomes(points.mass)) / points.total
        data = points.p[np.searchsorted(share, (np.arange(nodes // 2) + 0.5) / (nodes // 2))]
    even = np.clip(np.asarray(scale.inverse(steps), dtype=np.float64), 0.0, 1.0)
    return np.unique(np.concatenate([[0.0], even, data, [1.0]]))


def _on_nodes(points: Points, scale: Scale, at: Floats) -> tuple[Floats, float]:
    """Shares of the mass at the nearest nodes, and the mean distance that they were moved."""
    right = np.clip(np.searchsorted(at, points.p), 1, at.size - 1)
    nearest = np.where(at[right] - points.p < points.p - at[right - 1], right, right - 1)
    shares = np.zeros((at.size, 2))
    np.add.at(shares, nearest, points.mass / points.total)
    away = at[nearest] != points.p
    step = np.abs(scale.z(at[nearest][away]) - scale.z(points.p[away]))
    moved = np.minimum(step, FARTHEST) @ over_outcomes(points.mass[away]) / points.total
    return shares, float(moved)


def _splitting_cost(at: Floats, scale: Scale) -> float:
    """The most that it costs to split a calibrated mass between two nodes so that both are.

    A mass at v between a and b goes to b with probability (v - a) / (b - a), apart by outcome so
    that each is calibrated: on the probability scale it moves 2 (v - a) (b - v) / (b - a) at most.
    """
    if scale.reflected or scale.name == "unreflected":
        return float(np.diff(at).max()) / 2.0
    gaps = np.diff(scale.z(at))
    return float(gaps[gaps <= FARTHEST].max(initial=0.0))


def _solve(
    at: Floats, z: Floats, mass: Floats, flips: bool, time_limit: float
) -> tuple[float, Floats]:
    """The least cost of moving mass to where (1 - t) : t are its shares, and how much lies where."""
    from scipy.optimize import linprog

    balance, price = _network(at, z, flips)
    supply = np.zeros(balance.shape[0])
    supply[: mass.size] = mass.T.ravel()
    # A limit that has passed before the first step counts as none at all: no presolving, and time
    # enough to begin.
    end = time.monotonic() + float(time_limit)
    for method, tolerance in ATTEMPTS:
        solution = linprog(
            price,
            A_eq=balance,
            b_eq=supply,
            method=method,
            options={
                "presolve": False,
                "time_limit": max(end - time.monotonic(), TIME_TO_BEGIN * at.size),
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if solution.status in (0, 1):  # solved, or out of time
            break
    if solution.x is None or solution.status != 0:
        reason = str(solution.message).strip().rstrip(".")
        message = f"The linear program, of {at.size} nodes, was not solved in {time_limit} s: "
        hint = "Raise `time_limit`, or ask for fewer `nodes`."
        raise CalibrantError(f"{message}{reason}.", hint=hint)
    return max(0.0, float(solution.fun)), np.maximum(solution.x[: at.size], 0.0)


def _network(at: Floats, z: Floats, flips: bool) -> tuple[Any, Floats]:
    """Balance of each (outcome, node), and the price of each variable.

    The variables are the calibrated mass at each node; flows between neighbours, apart by outcome;
    where the metric is cut, flows through a hub one unit from every node; and flips at a node.
    """
    import scipy.sparse as sp

    m = at.size
    edges = np.flatnonzero(np.diff(z) < FARTHEST)
    along = np.arange(edges.size)
    step = sp.csc_array((np.ones(edges.size), (edges, along)), (m, edges.size))
    step = step - sp.csc_array((np.ones(edges.size), (edges + 1, along)), (m, edges.size))
    eye = sp.eye_array(m, format="csc")
    ways, prices = [step, -step], [np.diff(z)[edges]] * 2
    hubs = sp.csc_array((0, 2 * edges.size))
    if z[-1] - z[0] > FARTHEST:
        ways, prices = [*ways, eye, -eye], [*prices, np.ones(m), np.ones(m)]
        through = np.concatenate([np.zeros(2 * edges.size), -np.ones(m), np.ones(m)])
        hubs = sp.csc_array(through[None])
    one = sp.hstack(ways)
    columns = [
        sp.vstack([sp.diags_array(1.0 - at), sp.diags_array(at)]),
        sp.block_diag([one, one]),
    ]
    price = [np.zeros(m), *prices, *prices]
    if flips:
        columns.append(sp.vstack([sp.hstack([eye, -eye]), sp.hstack([-eye, eye])]))
        price.append(np.ones(2 * m))
    balance = sp.hstack(columns)
    at_hubs = sp.block_diag([hubs, hubs])
    before = sp.csc_array((at_hubs.shape[0], m))
    after = sp.csc_array((at_hubs.shape[0], balance.shape[1] - m - at_hubs.shape[1]))
    return sp.vstack([balance, sp.hstack([before, at_hubs, after])]).tocsc(), np.concatenate(price)


MOST_INTERVALS = 2048
"""The dynamic programme takes their square."""


def interval_calibration_error(
    y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]
) -> float:
    """min over partitions into intervals of Σ |Σ residuals| + mean width of a row's interval.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Returns
    -------
    float
        The minimum, by dynamic programming: exact up to 2,048 distinct predictions; beyond, of
        predictions grouped into 2,048 intervals. That is too large where a cut inside one of them
        would part errors of opposite sign.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, *A unifying theory of distance from calibration*, section 6:
    an upper bound of the distance to calibration.

    Examples
    --------
    >>> interval_calibration_error([0, 1], [0.5, 0.5])
    0.0
    >>> round(interval_calibration_error([1, 0], [0.4, 0.6]), 6)
    0.2
    """
    points = as_points(y_true, y_prob, **options)
    group = np.arange(points.p.size)
    if points.p.size > MOST_INTERVALS:
        group = np.minimum((points.p * MOST_INTERVALS).astype(np.int64), MOST_INTERVALS - 1)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    low, high = points.p[first], points.p[np.append(first[1:], points.p.size) - 1]
    bias = np.cumsum(np.add.reduceat(points.residuals, first))
    mass = np.cumsum(np.add.reduceat(over_outcomes(points.mass), first)) / points.total
    before_bias, before_mass = np.append(0.0, bias[:-1]), np.append(0.0, mass[:-1])
    best = np.zeros(bias.size + 1)
    for end in range(bias.size):
        start = slice(0, end + 1)
        cost = np.abs(bias[end] - before_bias[start])
        cost += (mass[end] - before_mass[start]) * (high[end] - low[start])
        best[end + 1] = np.min(best[start] + cost)
    return float(best[-1])
