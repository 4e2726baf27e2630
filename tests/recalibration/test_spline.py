"""The natural cubic spline of the log-odds."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from calibrant import Sketch
from calibrant.inference.logistic import log_odds
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.spline import SplineRecalibrator


def drawn(n, curve, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    return expit(z), (rng.random(n) < expit(curve(z))).astype(int)


def test_a_straight_line_is_platts_map_by_maximum_likelihood():
    p, y = drawn(3000, lambda z: 0.5 * z + 0.3)
    spline = SplineRecalibrator().fit(p, y)
    assert spline.state["bend"] == 0.0
    platt = PlattRecalibrator(platt_targets=False).fit(p, y)
    assert spline.transform(p) == pytest.approx(platt.transform(p), abs=1e-5)


def test_a_bent_curve_is_found():
    p, y = drawn(8000, lambda z: z + np.sin(2 * z))
    spline = SplineRecalibrator().fit(p, y)
    assert spline.state["bend"] > 0.0
    at = expit(np.linspace(-2, 2, 21))
    truth = expit(log_odds(at) + np.sin(2 * log_odds(at)))
    assert np.abs(spline.transform(at) - truth).max() < 0.08
    platt = PlattRecalibrator().fit(p, y)
    assert np.abs(platt.transform(at) - truth).max() > 0.1


def test_beyond_the_knots_it_is_straight():
    p, y = drawn(2000, lambda z: z + np.sin(2 * z))
    last = SplineRecalibrator().fit(p, y)
    x = last.state["x"]
    beyond = np.linspace(x[-1], x[-1] + 3, 5)
    steps = np.diff(log_odds(last.transform(expit(beyond))))
    assert steps == pytest.approx(np.full(4, steps[0]), abs=1e-5)


def test_sketches_weights_and_few_predictions():
    p, y = drawn(1500, lambda z: z + np.sin(2 * z))
    at = np.linspace(0.05, 0.95, 19)
    ours = SplineRecalibrator().fit(p, y).transform(at)
    assert SplineRecalibrator().fit(Sketch.from_arrays(y, p)).transform(at) == pytest.approx(
        ours, abs=0.02
    )
    weighted = SplineRecalibrator().fit(p, y, np.ones(p.size)).transform(at)
    assert weighted == pytest.approx(ours, abs=0.05)
    for few in ([0.3], [0.3, 0.7], [0.2, 0.5, 0.7]):
        rows = np.tile(few, 40)
        made = SplineRecalibrator().fit(rows, np.arange(rows.size) % 7 < 3)
        assert np.all(np.isfinite(made.transform(at)))


def natural_basis(x, knots):
    """Natural cubic splines as Hastie, Tibshirani and Friedman write them (5.4 and 5.5): no code of ours."""

    def truncated(k):
        above = np.clip(x - knots[k], 0, None) ** 3 - np.clip(x - knots[-1], 0, None) ** 3
        return above / (knots[-1] - knots[k])

    last = truncated(knots.size - 2)
    return np.stack([x, *(truncated(k) - last for k in range(knots.size - 2))], axis=1)


def roughness(knots):
    """∫ f'' g'' of that basis: second derivatives are straight between knots, so Simpson's rule is exact."""
    ends = np.stack([knots[:-1], (knots[:-1] + knots[1:]) / 2, knots[1:]], axis=1)

    def second(x, k):
        above = np.clip(x - knots[k], 0, None) - np.clip(x - knots[-1], 0, None)
        return 6 * above / (knots[-1] - knots[k])

    last = second(ends, knots.size - 2)
    curves = np.stack([second(ends, k) - last for k in range(knots.size - 2)])
    weight = np.diff(knots)[:, None] / 6 * np.array([1, 4, 1])
    return np.einsum("aij,bij,ij->ab", curves, curves, weight)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_scikit_learns_penalised_regression_on_a_basis_of_its_own(seed):
    """A reference that shares nothing with ours but the knots and the stiffness that ours chose.

    The textbook's basis, its penalty made round by Cholesky's root, and scikit-learn's ridge regression. A
    straight line is free: its column is so large that the ridge does not hold it.
    """
    p, y = drawn(1500, lambda z: z + np.sin(2 * z), seed)
    learned = SplineRecalibrator(n_knots=8).fit(p, y)
    knots, bend = learned.state["x"], learned.state["bend"]
    assert bend > 0.0
    z = log_odds(p)
    length = knots[-1] - knots[0]
    root = np.linalg.cholesky(roughness(knots) * length**3)

    def features(x):
        basis = natural_basis(x, knots)
        return np.hstack([1e4 * basis[:, :1], np.linalg.solve(root, basis[:, 1:].T).T * bend])

    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(features(z), y)
    at = expit(np.linspace(knots[0] - 1, knots[-1] + 1, 41))
    expected = theirs.predict_proba(features(log_odds(at)))[:, 1]
    assert learned.transform(at) == pytest.approx(expected, abs=1e-6)
