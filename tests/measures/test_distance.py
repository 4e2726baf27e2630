"""The distance to calibration against the transport problem written out in full."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.refusals import refused

from calibrant import CalibrantError
from calibrant.data.points import as_points
from calibrant.data.scales import as_scale
from calibrant.measures.distance import (
    _nodes,
    distance_to_calibration,
    distance_to_calibration_result,
)


def by_full_transport(y, p, scale, flips, nodes):
    """Every (prediction, outcome) may go to every (node, outcome) that is calibrated there."""
    atoms = as_points(y, p)
    t = _nodes(atoms, scale, nodes)
    z, to = scale.z(atoms.p), scale.z(t)
    with np.errstate(invalid="ignore"):
        far = np.abs(z[:, None] - to[None])
    near = np.minimum(np.nan_to_num(far, nan=0.0, posinf=2.0), 2.0)
    kinds = [(0, 0), (1, 1)] + ([(0, 1), (1, 0)] if flips == "allowed" else [])
    cost = np.concatenate([(near + (a != b)).ravel() for a, b in kinds])
    m, k = near.shape
    rows, supply = [], []
    for label in range(2):
        for i in range(m):
            row = np.zeros((len(kinds), m, k))
            for index, (a, _) in enumerate(kinds):
                row[index, i] = a == label
            rows.append(row.ravel())
            supply.append(atoms.mass[i, label] / atoms.total)
    for j in range(k):
        row = np.zeros((len(kinds), m, k))
        for index, (_, b) in enumerate(kinds):
            row[index, :, j] = (1 - t[j]) if b else -t[j]
        rows.append(row.ravel())
        supply.append(0.0)
    return linprog(cost, A_eq=np.array(rows), b_eq=supply).fun


@pytest.mark.parametrize("flips", ["forbidden", "allowed"])
@pytest.mark.parametrize("name", ["probability", "logit", "logit/4"])
def test_equals_the_full_transport_problem(name, flips):
    scale = as_scale(name)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = rng.choice([0.0, 0.1, 0.35, 0.5, 0.8, 1.0, 0.999], 12)
        y = (rng.random(12) < 0.5).astype(int)
        got = distance_to_calibration(y, p, scale=scale, flips=flips, nodes=30)
        assert got == pytest.approx(by_full_transport(y, p, scale, flips, 30), abs=1e-8)


def sample(n=5000, power=1.4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


def test_both_definitions_are_equal_on_the_probability_scale():
    for power in (1.0, 1.5):
        y, p = sample(power=power)
        both = [distance_to_calibration(y, p, flips=f, nodes=300) for f in ("forbidden", "allowed")]
        assert both[0] == pytest.approx(both[1], abs=1e-9)


def test_they_differ_on_the_logit_scale():
    y, p = sample(power=1.5)
    strict, lax = (
        distance_to_calibration(y, p, flips=f, scale="logit", nodes=300)
        for f in ("forbidden", "allowed")
    )
    assert strict > 1.5 * lax


def test_bounds_hold_the_value_of_a_finer_grid():
    y, p = sample(n=400)
    fine = distance_to_calibration_result(y, p, nodes=2000)
    for nodes in (50, 200):
        rough = distance_to_calibration_result(y, p, nodes=nodes)
        assert rough.low <= fine.high
        assert rough.high >= fine.low
        assert rough.low <= fine.value <= rough.high + 1e-9


def test_nearest_distribution_is_calibrated_and_keeps_the_outcomes():
    y, p = sample()
    found = distance_to_calibration_result(y, p, nodes=200)
    assert found.mass[:, 1] / found.mass.sum(axis=1) == pytest.approx(found.p)
    assert found.mass.sum(axis=0) == pytest.approx([1 - y.mean(), y.mean()], abs=1e-9)


def test_calibrated_masses_are_at_distance_zero():
    assert distance_to_calibration([0, 0, 0, 1], [0.25] * 4) == pytest.approx(0.0, abs=1e-12)


def test_predictions_that_lie_very_close_are_solved():
    found = distance_to_calibration([0, 0, 0], [0.0001, 0.0002, 0.5])
    assert found == pytest.approx(0.5003 / 3, abs=1e-9)  # all of them go to 0
    for seed in (3, 20):  # the interior point method fails on both, the simplex on the second
        rng = np.random.default_rng(seed)
        n = rng.integers(2, 40)
        p = rng.beta(0.5, 200, n)
        y = (rng.random(n) < p).astype(int)
        assert 0.001 < distance_to_calibration(y, p) < 0.003


def test_a_program_over_its_limit_is_an_error():
    y, p = sample()
    with refused(None, 1e-6, option="time_limit", kind=CalibrantError):
        distance_to_calibration(y, p, nodes=8000, time_limit=1e-6)
