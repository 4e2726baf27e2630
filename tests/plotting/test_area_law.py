"""The picture is the number: the area that the artists show, their widths included, is the SmoothECE."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from calibrant.plotting.matplotlib_marks import HAIRLINE, WIDEST
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram

Rows = tuple[np.ndarray, np.ndarray]


def _generated(shape: str) -> Rows:
    rng = np.random.default_rng(11)
    n = 3000
    p = {
        "uniform": rng.random(n),
        "ends": np.where(rng.random(n) < 0.5, np.round(rng.random(n)), rng.beta(0.4, 0.4, n)),
        "tenths": rng.integers(0, 11, n) / 10,
        "rare": rng.beta(1.0, 60.0, n),
        "saturated": 1 - rng.exponential(0.004, n).clip(0, 0.3),
        "middle": rng.beta(20, 20, n),
        "two groups": np.concatenate([rng.beta(2, 30, n // 2), rng.beta(30, 2, n // 2)]),
    }[shape]
    return p, rng.random(n)


SHAPES = ("uniform", "ends", "tenths", "rare", "saturated", "middle", "two groups")
ERRORS = {
    "calibrated": lambda p: p,
    "flat": lambda p: 0.1 + 0.7 * p,
    "wave": lambda p: np.clip(p + 0.15 * np.sin(6 * np.pi * p), 0, 1),
}
REAL = {
    "breast cancer": (load_breast_cancer, 1),
    "iris": (load_iris, 1),
    "wine": (load_wine, 0),
}
MODELS = (GaussianNB(), LogisticRegression(max_iter=3000), DecisionTreeClassifier(max_depth=3))


def _sets() -> dict[str, Rows]:
    sets = {}
    for shape in SHAPES:
        p, coin = _generated(shape)
        sets |= {f"{shape}, {k}": ((coin < f(p)).astype(int), p) for k, f in ERRORS.items()}
    for name, (load, event) in REAL.items():
        X, kinds = load(return_X_y=True)
        half = np.arange(len(kinds)) % 2 == 0
        for model in MODELS:
            y = (kinds == event).astype(int)
            p = model.fit(X[half], y[half]).predict_proba(X[~half])[:, 1]
            sets[f"{name}, {type(model).__name__}"] = y[~half], p
    return sets


SETS = _sets()
assert len(SETS) == 30


def _area(t: np.ndarray, gap: np.ndarray, width: np.ndarray) -> float:
    """∫ |gap| · width dt over ∫ width dt, by splines through the points, cut where the gap turns."""
    whole = CubicSpline(t, width).integrate(t[0], t[-1])
    product = CubicSpline(t, gap * width)
    roots = product.roots(extrapolate=False)  # NaN where it is 0 throughout
    cuts = np.concatenate([[t[0]], roots[np.isfinite(roots)], [t[-1]]])
    return float(np.abs(np.diff(product.antiderivative()(cuts))).sum() / whole)


@pytest.mark.parametrize("name", SETS)
def test_the_area_that_is_drawn_is_the_number(name: str) -> None:
    diagram = reliability_diagram(*SETS[name], resamples=0)
    dense = diagram.density > 1e-6 * diagram.density.max()
    assert (np.diff(diagram.smoothed_predictions[dense]) > -1e-9).all()
    for against in ("prediction", "position"):
        _check_area(diagram, against)


def _check_area(diagram: ReliabilityDiagram, against: str) -> None:
    drawn = diagram.plot(ax=Figure(figsize=(4.0, 4.0)).subplots(), against=against)
    core, trail = drawn.artists["curve"]
    points = np.array(trail.get_segments())[:, 1]
    known = np.isfinite(diagram.regression)
    scale = core.get_linewidth() / (0.6 * HAIRLINE)
    share, gap = np.zeros(diagram.grid.size), np.zeros(diagram.grid.size)
    share[known] = (np.asarray(trail.get_linewidths()) / scale - HAIRLINE) / WIDEST
    if against == "prediction":
        reference = points[:, 0]  # the diagonal
        assert (np.diff(points[:, 0]) >= 0).all()
        (line,) = drawn.artists["diagonal"]
        assert np.array_equal(line.get_xdata(), line.get_ydata())
    else:
        (line,) = drawn.artists["reference"]
        reference = line.get_ydata()[known]
    gap[known] = points[:, 1] - reference
    area = _area(diagram.grid, gap, share)
    allowed = 1e-6 + diagram.smooth_ece.certificate.total
    assert area == pytest.approx(diagram.smooth_ece.value, abs=allowed)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5])
def test_mean_predictions_increase_strictly(sigma: float) -> None:
    """The reflected kernel is totally positive, so the curve is a function of the mean prediction."""
    t = np.linspace(0, 1, 501)
    p = np.random.default_rng(0).beta(0.5, 3, 40)
    shifts = 2.0 * np.arange(-3, 4)
    images = np.concatenate([sign * p + shift for sign in (1.0, -1.0) for shift in shifts])
    kernel = np.exp(-0.5 * ((t[:, None] - images) / sigma) ** 2)
    assert (np.diff(kernel @ np.tile(p, 14) / kernel.sum(axis=1)) > 0).all()
