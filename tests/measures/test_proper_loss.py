"""The loss gap against a general solver, and the theorem that makes it a calibration measure."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.measures.weak_error import loss_gap, loss_gap_result, weak_calibration_error


def by_general_solver(y, p, loss):
    at, index = np.unique(p, return_inverse=True)
    s = at if loss == "squared" else np.log(at / (1 - at))

    def mean_loss(eta):
        x = (s + eta)[index]
        if loss == "squared":
            return np.mean((x - y) ** 2)
        return np.mean(np.logaddexp(0, x) - y * x)

    limits = [(max(-1, -v), min(1, 1 - v)) if loss == "squared" else (-1, 1) for v in s]
    gap = np.diff(s)
    rules = [
        {"type": "ineq", "fun": lambda eta: gap - np.diff(eta)},
        {"type": "ineq", "fun": lambda eta: gap + np.diff(eta)},
    ]
    found = minimize(
        mean_loss,
        np.zeros(at.size),
        bounds=limits,
        constraints=rules,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return mean_loss(np.zeros(at.size)) - found.fun


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_equals_a_general_solver(loss):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.02, 0.98, rng.integers(1, 9))
        p = np.repeat(p, rng.integers(1, 4, p.size))
        y = rng.integers(0, 2, p.size)
        got = loss_gap(y, p, loss=loss)
        assert got == pytest.approx(by_general_solver(y, p, loss), abs=2e-6)


@pytest.mark.parametrize("power", [1.0, 1.3, 3.0])
def test_lies_between_the_weak_calibration_error_and_its_square(power):
    rng = np.random.default_rng(0)
    for n in (5, 50, 500):
        p = rng.random(n)
        y = (rng.random(n) < p**power).astype(int)
        w, gap = weak_calibration_error(y, p), loss_gap(y, p)
        assert w**2 - 1e-8 <= gap <= 2 * w + 1e-8
        w, gap = weak_calibration_error(y, p, scale="logit"), loss_gap(y, p, loss="log")
        assert min(2 * w**2, w / 2) - 1e-8 <= gap <= w + 1e-8


def test_the_post_processing_is_gentle_and_attains_the_gap():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p**2).astype(int)
    found = loss_gap_result(y, p)
    moved = found.improved[np.searchsorted(found.p, p)]
    assert np.mean((p - y) ** 2) - np.mean((moved - y) ** 2) == pytest.approx(found.value, abs=1e-9)
    assert np.all(np.abs(np.diff(found.improved - found.p)) <= np.diff(found.p) + 1e-12)


def test_extremes():
    assert loss_gap([0, 1], [0.0, 1.0]) == pytest.approx(0.0, abs=1e-8)
    assert np.isfinite(loss_gap([0, 1, 1], [0.0, 1.0, 0.0], loss="log"))
