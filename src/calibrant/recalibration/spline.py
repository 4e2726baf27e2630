"""Natural cubic spline of the log-odds with a penalty on its curvature, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from calibrant._arguments import generator, is_integer, require_count, require_seed
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.inference.logistic import expit, log_odds, posterior, rows_per_weight
from calibrant.recalibration.learned_map import (
    Floats,
    Parts,
    Recalibrator,
    State,
    Training,
    register,
)

Curve = Callable[[Floats], Floats]

FREE_SD = 1e3
"""Prior standard deviation of intercept and slope: as good as none."""
BEND_SDS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Prior standard deviations of the curvature to choose from; 0 is a straight line."""


@register("spline")
class SplineRecalibrator(Recalibrator):
    """Natural cubic spline of the log-odds: linear beyond its knots, with a cross-validated penalty.

    Parameters
    ----------
    n_knots : int
        At quantiles of the log-odds; fewer where there are fewer distinct predictions.
    cv : int
        Folds of the cross-validation by log loss that chooses the penalty.
    random_state : int
        Seed of the folds.

    Notes
    -----
    The curve maximises the likelihood less λ ∫ f''(x)² dx, with x the log-odds on the range of the knots;
    where λ is largest it is Platt's map by plain maximum likelihood. It need not increase.

    References
    ----------
    Green and Silverman, *Nonparametric regression and generalized linear models*, 1994, chapter 2. Lucena,
    *Spline-based probability calibration*, 2018.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> spline = SplineRecalibrator().fit(p, rng.random(2000) < p**2)
    >>> spline.transform([0.5]).round(1)
    array([0.2])
    """

    parts: ClassVar[Parts] = {"x": np.ndarray, "values": np.ndarray, "bend": float}

    def __init__(self, n_knots: int = 10, cv: int = 5, random_state: int = 0) -> None:
        self.n_knots = n_knots
        self.cv = cv
        self.random_state = random_state

    @property
    def n_parameters(self) -> int:  # type: ignore[override]
        """Number of knots."""
        return self.n_knots if is_integer(self.n_knots) else 0

    def _learn(self, training: Training) -> State:
        for name, least in (("n_knots", 3), ("cv", 2)):
            require_count(name, getattr(self, name), least=least)
        points = training.points
        x, mass = log_odds(points.p), points.mass * rows_per_weight(points)
        places = _knots(x, over_outcomes(mass), self.n_knots)
        features = _features(places)
        seen = features(x)
        parts = _folds(points, mass, self.cv, self.random_state)
        losses = [
            sum(_loss(_fitted(seen, mass - part, bend), seen, part) for part in parts)
            for bend in BEND_SDS
        ]
        bend = BEND_SDS[int(np.argmin(losses))]
        coefficients = _fitted(seen, mass, bend)
        return {"x": places, "values": features(places) @ coefficients, "bend": bend}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(_natural(state["x"], state["values"])(log_odds(p)))


def _knots(x: Floats, rows: Floats, most: int) -> Floats:
    """Quantiles of the log-odds, two at least."""
    if x.size == 1:
        return np.array([x[0] - 1.0, x[0] + 1.0])
    rank = (np.cumsum(rows) - 0.5 * rows) / rows.sum()
    spread = np.interp(np.linspace(0.0, 1.0, most), rank, x)
    return np.unique(x if x.size <= most else spread)


def _natural(places: Floats, values: Floats) -> Curve:
    """Natural cubic spline through these values, and straight lines beyond."""
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(places, values, bc_type="natural")

    def curve(x: Floats) -> Floats:
        inside = np.clip(x, places[0], places[-1])
        beyond = (x - inside).reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(spline(inside) + beyond * spline(inside, 1))

    return curve


def _features(places: Floats) -> Curve:
    """Intercept, slope, and curves of which each has ∫ f''² = 1 on a range of length 1."""
    from scipy.interpolate import CubicSpline

    t = (places - places[0]) / (places[-1] - places[0])
    inner = t.size - 2
    bent = np.zeros((t.size, 0))
    if inner:
        # ∫ f''² of all splines with one value 1 and the others 0: f'' is straight between knots.
        bends = CubicSpline(t, np.eye(t.size), bc_type="natural")(t, 2)
        width = np.diff(t)[:, None] / 6.0
        first, last = bends[:-1], bends[1:]
        middle = first + last
        penalty = (first * width).T @ first + (middle * width).T @ middle + (last * width).T @ last
        size, direction = np.linalg.eigh(penalty)
        bent = direction[:, 2:] / np.sqrt(size[2:])
    curve = _natural(places, bent) if inner else None

    def features(x: Floats) -> Floats:
        line = np.stack([np.ones_like(x), x], axis=1)
        return line if curve is None else np.hstack([line, curve(x)])

    return features


def _fitted(features: Floats, mass: Floats, bend: float) -> Floats:
    """Coefficients of maximum penalised likelihood."""
    used = features if bend > 0.0 else features[:, :2]
    rows = over_outcomes(mass)
    share = np.divide(mass[:, 1], rows, out=np.zeros_like(rows), where=rows > 0.0)
    spread = np.concatenate([[FREE_SD, FREE_SD], np.full(used.shape[1] - 2, bend)])
    found = posterior(used, np.zeros(rows.size), rows, share, spread).coefficients
    return np.concatenate([found, np.zeros(features.shape[1] - found.size)])


def _loss(coefficients: Floats, features: Floats, mass: Floats) -> float:
    """Log loss of the rows in these counts."""
    s = features @ coefficients
    return float(over_outcomes(mass) @ np.logaddexp(0.0, s) - mass[:, 1] @ s)


def _folds(points: Points, mass: Floats, folds: int, seed: int) -> list[Floats]:
    """Random folds: of counts row by row, of weights by whole predictions."""
    rng = generator(require_seed(seed, "random_state"))
    if points.squared is None and not points.soft:
        counts = np.rint(mass).astype(np.int64)
        parts = rng.multinomial(counts, np.full(folds, 1.0 / folds))
        return [parts[..., k].astype(np.float64) for k in range(folds)]
    fold = rng.permutation(mass.shape[0]) % folds
    return [np.where((fold == k)[:, None], mass, 0.0) for k in range(folds)]
