"""Parametric maps against scikit-learn and direct formulas."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from tests.refusals import refused

from calibrant import Sketch
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)


def sample(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return expit(z), (rng.random(n) < expit(0.6 * z - 0.4)).astype(int)


AT = np.linspace(0.001, 0.999, 41)


def test_platt_equals_scikit_learns_sigmoid_on_logits():
    from sklearn.calibration import _SigmoidCalibration

    p, y = sample()
    w = np.random.default_rng(1).exponential(size=p.size)
    for weight in (None, w):
        theirs = _SigmoidCalibration().fit(logit(p), y, weight).predict(logit(AT))
        ours = PlattRecalibrator().fit(p, y, weight).transform(AT)
        # Of weights, scikit-learn's targets count the sum, and ours the effective sample size.
        assert ours == pytest.approx(theirs, abs=2e-4 if weight is None else 2e-3)


def test_isotonic_equals_scikit_learns():
    from sklearn.isotonic import IsotonicRegression

    p, y = sample()
    p = np.round(p, 3)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(AT)
    assert IsotonicRecalibrator().fit(p, y).transform(AT) == pytest.approx(theirs, abs=1e-6)


def test_temperature_is_the_minimum_of_the_log_loss():
    p, y = sample(50_000)

    def loss(log_t):
        s = logit(p) / np.exp(log_t)
        return np.mean(np.logaddexp(0, s) - y * s)

    best = float(np.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x))
    got = TemperatureRecalibrator().fit(p, y).state["temperature"]
    assert got == pytest.approx(best, rel=1e-3)


def test_beta_equals_scikit_learns_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    y = (rng.random(p.size) < expit(0.5 * np.log(p) - 1.5 * np.log1p(-p) + 0.3)).astype(int)
    features = np.stack([np.log(p), -np.log1p(-p)], axis=1)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, y)
    beta = BetaRecalibrator().fit(p, y)
    found = [beta.state[name] for name in "abc"]
    assert found == pytest.approx([*theirs.coef_[0], theirs.intercept_[0]], abs=5e-3)


def test_offset_reaches_the_observed_or_the_given_rate():
    p, y = sample()
    assert OffsetRecalibrator().fit(p, y).transform(p).mean() == pytest.approx(y.mean())
    moved = OffsetRecalibrator(target_mean=0.02).fit(p).transform(p)
    assert moved.mean() == pytest.approx(0.02)
    assert np.array_equal(np.argsort(moved), np.argsort(p))
    with refused("target_mean", 1.5):
        OffsetRecalibrator(target_mean=1.5).fit(p)
    with refused("y_true"):
        OffsetRecalibrator().fit(p)


@pytest.mark.parametrize(
    "kind",
    [
        PlattRecalibrator,
        TemperatureRecalibrator,
        BetaRecalibrator,
        OffsetRecalibrator,
        IsotonicRecalibrator,
    ],
)
def test_sketches_weights_and_the_ends(kind):
    p, y = sample()
    p = np.concatenate([p, [0.0, 1.0, 1.0, 0.0]])
    y = np.concatenate([y, [0, 1, 0, 1]])
    rows = kind().fit(p, y).transform(AT)
    table = kind().fit(Sketch.from_arrays(y, p)).transform(AT)
    assert table == pytest.approx(rows, abs=2e-3)
    w = np.random.default_rng(1).integers(1, 4, p.size)
    weighted = kind().fit(p, y, w).transform(AT)
    repeated = kind().fit(np.repeat(p, w), np.repeat(y, w)).transform(AT)
    assert weighted == pytest.approx(repeated, abs=2e-3)  # targets count effective rows
    assert np.all(np.isfinite(kind().fit(p, y).transform([0.0, 1.0])))


def test_separated_outcomes_leave_finite_maps():
    p, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])
    for kind in (PlattRecalibrator, TemperatureRecalibrator, BetaRecalibrator):
        moved = kind().fit(p, y).transform(p)
        assert np.all((moved > 0) & (moved < 1))
