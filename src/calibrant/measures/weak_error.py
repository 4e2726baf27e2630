"""The weak calibration error, exactly: the largest correlation of residuals with a slow function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.data.scales import LOGIT_LIMIT, PROBABILITY, Scale, as_scale
from calibrant.errors import CalibrantError
from calibrant.measures._chains import minimise, solve_chain, witness
from calibrant.measures.result_record import Record

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class WeakCalibration(Record):
    """A weak calibration error and the function that attains it.

    Attributes
    ----------
    value : float
        wCE.
    error : float
        From arrays, rounding alone. From a sketch, the width of its cells, which rows may lie away; NaN
        on another scale than that of the sketch.
    p, witness : float64[m]
        The optimal Lipschitz function w at the distinct predictions p: E[(f - y) w(f)] is `value`.
    n : int
        Rows; `dropped` counts by reason those that were left out.
    scale : str
        The scale on which w is Lipschitz.

    Examples
    --------
    >>> found = weak_calibration_error_result([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> round(found.value, 3), len(found.witness)
    (0.04, 4)
    """

    value: float
    error: float
    p: Floats = field(compare=False)
    witness: Floats = field(compare=False)
    n: int
    scale: str
    dropped: Mapping[str, int] = field(default_factory=dict)


def weak_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    scale: str | Scale = PROBABILITY,
    **options: Unpack[InputOptions],
) -> float:
    """The weak calibration error wCE = sup E[(f - y) w(f)] over 1-Lipschitz w with |w| ≤ 1.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    scale : str or Scale
        The metric in which w is Lipschitz: |w(u) - w(v)| ≤ min(|h(u) - h(v)|, 2).
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Returns
    -------
    float
        Exact up to rounding from arrays, in O(n log n): one sort and one sweep.

    Notes
    -----
    ½ dCE ≤ wCE ≤ 2 dCE. Also known as the smooth calibration error smCE. It is no larger than the
    ECE of any binning plus the width of its bins, and, unlike SmoothECE, it has no diagram.

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE*: (T2) of the theory page, with the metric of (T16).

    Examples
    --------
    >>> weak_calibration_error([0, 1], [0.5, 0.5])
    0.0
    >>> round(weak_calibration_error([1, 0], [0.4, 0.6]), 6)
    0.06
    """
    return weak_calibration_error_result(y_true, y_prob, scale=scale, **options).value


def weak_calibration_error_result(
    y_true: Any,
    y_prob: Any = None,
    *,
    scale: str | Scale = PROBABILITY,
    **options: Unpack[InputOptions],
) -> WeakCalibration:
    """Weak calibration error with its error and the optimal Lipschitz function.

    Examples
    --------
    >>> result = weak_calibration_error_result([1, 0], [0.4, 0.6])
    >>> result.witness
    array([-0.1,  0.1])
    """
    points = as_points(y_true, y_prob, **options)
    scale = as_scale(scale, base_rate=points.base_rate)
    # Cumulative residuals, and how much w may change from one prediction to the next.
    cumulative = np.cumsum(points.residuals)
    gaps = np.minimum(np.diff(scale.z(points.p)), 2.0)
    flow, w = np.empty_like(cumulative), np.empty_like(cumulative)
    value = minimise(cumulative, gaps, flow)
    witness(cumulative, gaps, flow, w)
    rounding = 4.0 * float(np.finfo(float).eps) * (1.0 + np.log2(points.n))
    # w is 1-Lipschitz: a row that moves by d changes the mean by d at most, and its residual likewise.
    moved = points.position_error * (1.0 + scale.slopes[0])
    error = rounding + (moved if points.scale == scale or not moved else math.nan)
    return WeakCalibration(value, error, points.p, w, points.n, scale.name, points.dropped)


Loss = Literal["squared", "log"]

DUALITY_GAP = 1e-9
"""At which the search ends: the error that is stated."""
MOST_STEPS = 200
"""Of the interior point method, several times what it takes."""
CENTRING = 0.15
"""Part of the duality gap aimed at in a step, between .1 and .2 as is usual."""


@dataclass(frozen=True, repr=False)
class LossGap(Record):
    """A loss gap, its proved error, and the post-processing that attains it.

    Attributes
    ----------
    value, error : float
        The gap, and the duality gap left: from arrays the exact value is larger by no more
        than this. NaN from a sketch: what the rows of a cell would gain is not known.
    p, improved : float64[m]
        Distinct predictions, and what the best post-processing makes of them.
    loss : str
        "squared" or "log".
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> found = loss_gap_result([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> found.value > 0 and found.loss == "squared"
    True
    """

    value: float
    error: float
    p: Floats = field(compare=False)
    improved: Floats = field(compare=False)
    loss: str
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)


def loss_gap(
    y_true: Any, y_prob: Any = None, *, loss: Loss = "squared", **options: Unpack[InputOptions]
) -> float:
    """Loss gap: the part of a proper loss that the best Lipschitz post-processing would save.

    max over η of E[ℓ(y, f)] - E[ℓ(y, κ(f))], where κ moves a prediction by η on the scale of the
    loss, h(κ(f)) = h(f) + η(h(f)), and η is 1-Lipschitz there with |η| ≤ 1.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    loss : {"squared", "log"}
        (p - y)², on the scale of p; or the log loss, on that of the logit.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Notes
    -----
    With wCE on the scale of the loss, wCE² ≤ gap ≤ 2 wCE for the squared loss, and
    min(2 wCE², wCE / 2) ≤ gap ≤ wCE for the log loss: predictions are nearly calibrated exactly when
    no downstream user can gain much by a gentle correction.

    References
    ----------
    Błasiok, Gopalan, Hu and Nakkiran, *When does optimizing a proper loss yield calibration?*, 2023;
    (T17) of the theory page.

    Examples
    --------
    >>> round(loss_gap([1, 1], [0.5, 0.5]), 6)
    0.25
    """
    return loss_gap_result(y_true, y_prob, loss=loss, **options).value


def loss_gap_result(
    y_true: Any, y_prob: Any = None, *, loss: Loss = "squared", **options: Unpack[InputOptions]
) -> LossGap:
    """Loss gap with its error and the post-processing.

    Examples
    --------
    >>> loss_gap_result([1, 1], [0.5, 0.5]).improved.round(3)
    array([1.])
    """
    require_choice("loss", loss, ("squared", "log"))
    points = as_points(y_true, y_prob, **options)
    problem = _Problem(points, loss)
    eta, error = problem.solve()
    value = float(problem.loss(np.zeros_like(eta)) - problem.loss(eta))
    improved = problem.prediction(eta)
    error = error if points.position_error == 0.0 else float("nan")
    return LossGap(max(0.0, value), error, points.p, improved, loss, points.n, points.dropped)


class _Problem:
    """Minimise Σ W ψ(s + η) - Y (s + η) over η within bounds, changing by at most d per step."""

    def __init__(self, points: Points, loss: Loss) -> None:
        self.squared = loss == "squared"
        self.events = points.mass[:, 1] / points.total
        self.weight = over_outcomes(points.mass) / points.total
        if self.squared:
            self.s = points.p
            # Cutting κ off at 0 and 1 leaves η Lipschitz, so these bounds lose nothing.
            low, high = np.maximum(-1.0, -self.s), np.minimum(1.0, 1.0 - self.s)
        else:
            with np.errstate(divide="ignore"):
                logit = np.log(points.p) - np.log1p(-points.p)
            self.s = np.clip(logit, -LOGIT_LIMIT, LOGIT_LIMIT)
            low, high = np.full_like(self.s, -1.0), np.ones_like(self.s)
        step = np.clip(np.diff(self.s), 1e-12, 2.0)
        self.bounds = np.concatenate([high, -low, step, step])

    def loss(self, eta: Floats) -> float:
        """Mean loss after moving by η."""
        x = self.s + eta
        if self.squared:
            return float(np.sum(self.weight * x * x - 2.0 * self.events * x + self.events))
        return float(self.weight @ np.logaddexp(0.0, x) - self.events @ x)

    def prediction(self, eta: Floats) -> Floats:
        """Moved predictions as probabilities."""
        if self.squared:
            return np.clip(self.s + eta, 0.0, 1.0)
        from scipy.special import expit

        return np.asarray(expit(self.s + eta), dtype=np.float64)

    def _derivatives(self, eta: Floats) -> tuple[Floats, Floats]:
        x = self.s + eta
        if self.squared:
            return 2.0 * (self.weight * x - self.events), 2.0 * self.weight
        q = self.prediction(eta)
        return self.weight * q - self.events, self.weight * q * (1.0 - q)

    def solve(self) -> tuple[Floats, float]:
        """Primal-dual interior point; every step is one tridiagonal system."""
        eta = 0.5 * (0.5 - self.s) if self.squared else np.zeros_like(self.s)
        slack = self.bounds - self._constraints(eta)
        dual = 0.01 / slack.size / slack
        for _ in range(MOST_STEPS):
            gradient, curvature = self._derivatives(eta)
            gap = float(slack @ dual)
            error = gap + 2.0 * float(np.abs(gradient + self._transposed(dual)).sum())
            if error <= DUALITY_GAP:
                return eta, error
            target = CENTRING * gap / slack.size
            toward = -gradient - self._transposed(target / slack)
            move = self._newton(curvature, dual / slack, toward)
            slack_move = -self._constraints(move)
            dual_move = (target - dual * slack - dual * slack_move) / slack
            length = min(_room(slack, slack_move), _room(dual, dual_move))
            eta, dual = eta + length * move, dual + length * dual_move
            slack = slack + length * slack_move
        message = f"The loss gap was not found to {DUALITY_GAP:g} in {MOST_STEPS} steps; {error:.2g} is left."
        hint = "Pass the rows as a sketch, which has fewer different predictions."
        raise CalibrantError(message, hint=hint)

    def _constraints(self, move: Floats) -> Floats:
        change = np.diff(move)
        return np.concatenate([move, -move, change, -change])

    def _transposed(self, dual: Floats) -> Floats:
        m = self.s.size
        whole = dual[:m] - dual[m : 2 * m]
        steps = dual[2 * m : 3 * m - 1] - dual[3 * m - 1 :]
        whole[1:] += steps
        whole[:-1] -= steps
        return whole

    def _newton(self, curvature: Floats, ratio: Floats, toward: Floats) -> Floats:
        m = self.s.size
        own = curvature + ratio[:m] + ratio[m : 2 * m]
        coupling = ratio[2 * m : 3 * m - 1] + ratio[3 * m - 1 :]
        move = np.empty_like(own)
        solve_chain(own, coupling, toward, move)
        return move


def _room(value: Floats, move: Floats) -> float:
    """Longest step that stays strictly positive."""
    falling = move < 0
    most = np.min(-value[falling] / move[falling]) if falling.any() else np.inf
    return float(min(1.0, 0.995 * most))
