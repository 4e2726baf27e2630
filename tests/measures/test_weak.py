"""The weak calibration error against its linear program."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from calibrant import Sketch
from calibrant.data.scales import as_scale
from calibrant.measures.weak_error import weak_calibration_error, weak_calibration_error_result


def by_linear_program(y, p, w, scale):
    """Maximise the mean of w (p - y) v over v with |v| ≤ 1 and |Δv| ≤ min(|Δh|, 2), directly."""
    at, index = np.unique(p, return_inverse=True)
    r = np.bincount(index, w * (p - y)) / w.sum()
    gap = np.minimum(np.diff(as_scale(scale).z(at)), 2.0)
    if at.size == 1:
        return abs(r[0])
    d = sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(at.size - 1, at.size))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    rows, limit = sp.vstack([d, -d]), np.concatenate([gap, gap])
    solved = linprog(-r, A_ub=rows, b_ub=limit, bounds=(-1, 1), options=tight)
    return -solved.fun


def random_input(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = [
        lambda: rng.random(n),
        lambda: rng.integers(0, 11, n) / 10,
        lambda: rng.choice([0.0, 1.0, 0.25, 1e-9, 1 - 1e-9], n),
        lambda: rng.beta(0.1, 0.1, n),
    ][seed % 4]()
    y = (rng.random(n) < rng.random()).astype(float)
    w = rng.exponential(size=n) if seed % 3 == 0 else np.ones(n)
    return y, p, w, ["probability", "logit", "logit/4", "boosting"][(seed // 4) % 4]


def test_equals_the_linear_program_on_random_inputs():
    for seed in range(200):
        y, p, w, scale = random_input(seed)
        got = weak_calibration_error(y, p, sample_weight=w, scale=scale)
        assert abs(got - by_linear_program(y, p, w, scale)) < 1e-7, seed


def test_witness_is_feasible_and_attains_the_value():
    for seed in range(60):
        y, p, w, scale = random_input(seed)
        result = weak_calibration_error_result(y, p, sample_weight=w, scale=scale)
        steps = np.minimum(np.diff(as_scale(scale).z(result.p)), 2.0)
        assert np.all(np.abs(result.witness) <= 1)
        assert np.all(np.abs(np.diff(result.witness)) <= steps + 1e-12)
        r = w * (p - y) / w.sum()
        attained = r @ result.witness[np.searchsorted(result.p, p)]
        assert attained == pytest.approx(result.value, abs=1e-13)


@pytest.mark.parametrize("shape", ["calibrated", "overconfident", "at the ends"])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_a_sketch_gives_it_within_its_bound(shape, scale):
    rng = np.random.default_rng(5)
    p = rng.random(20_000) if shape != "at the ends" else rng.beta(0.05, 0.05, 20_000)
    y = (rng.random(p.size) < (p**1.4 if shape == "overconfident" else p)).astype(int)
    exact = weak_calibration_error_result(y, p, scale=scale)
    for sketch in (
        Sketch.from_arrays(y, p, nodes=1 << 10),
        Sketch.from_arrays(y, p, nodes=1 << 14, scale="logit"),
    ):
        rough = weak_calibration_error_result(sketch, scale=scale)
        bounded = sketch.scale.name == scale  # elsewhere only the width of the cells is known
        assert np.isfinite(rough.error) == bounded
        assert abs(rough.value - exact.value) <= (rough.error if bounded else 1e-3) + exact.error


def test_on_a_large_sample_dual_equals_primal():
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    y = (rng.random(p.size) < p).astype(int)
    for scale in ("probability", "logit"):
        result = weak_calibration_error_result(y, p, scale=scale)
        r = (p - y) / p.size
        primal = r @ result.witness[np.searchsorted(result.p, p)]
        assert primal == pytest.approx(result.value, abs=1e-12)


def test_weights_count_as_duplicates():
    y, p, w = np.array([0, 1, 1]), np.array([0.2, 0.4, 0.4]), np.array([2, 1, 3])
    repeated = weak_calibration_error(np.repeat(y, w), np.repeat(p, w))
    assert weak_calibration_error(y, p, sample_weight=w) == pytest.approx(repeated)
