"""KDE-ECE, T-Cal and interval calibration error against direct sums."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from tests.refusals import refused

from calibrant.data.points import as_points
from calibrant.measures.binned import t_cal
from calibrant.measures.distance import interval_calibration_error
from calibrant.measures.kernel import kde_ece


def sample(n=2000, power=1.4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 1.4])
def test_kde_equals_the_integral_over_all_reflections(bandwidth):
    y, p = sample(60)
    p[:2] = [0.0, 1.0]
    images = np.concatenate([s * p + 2 * k for k in (-2, -1, 0, 1, 2) for s in (1, -1)])
    labels = np.tile(y, 10)

    def gap(t):
        u = (t - images) / bandwidth
        weight = 35 / 32 * np.where(np.abs(u) < 1, (1 - u * u) ** 3, 0) / bandwidth / p.size
        return abs(weight @ (t - labels))

    expected = quad(gap, 0, 1, limit=2000, epsabs=1e-7)[0]
    assert kde_ece(y, p, bandwidth=bandwidth) == pytest.approx(expected, abs=2e-6)


def test_kde_chooses_the_reference_bandwidth():
    y, p = sample()
    chosen = 1.06 * p.std() * p.size**-0.2
    assert kde_ece(y, p) == pytest.approx(kde_ece(y, p, bandwidth=chosen), abs=1e-9)
    assert kde_ece([0, 1], [0.5, 0.5]) == pytest.approx(0.0, abs=1e-4)
    for bandwidth in (0.0, np.inf, 1e6):
        with refused("bandwidth"):
            kde_ece(y, p, bandwidth=bandwidth)


def test_t_cal_equals_its_formula():
    y, p = sample(500)
    for bins in (2, 8, 32):
        total = 0.0
        for b in range(bins):
            r = (y - p)[(p >= b / bins) & (p < (b + 1) / bins)]
            if r.size:
                total += (r.sum() ** 2 - (r**2).sum()) / r.size / 500
        assert t_cal(y, p, n_bins=bins, draws=9).statistic == pytest.approx(total, abs=1e-12)


def test_t_cal_keeps_its_size_and_has_power():
    rng = np.random.default_rng(0)
    small = 0
    for seed in range(60):
        p = rng.random(400)
        small += (
            t_cal((rng.random(400) < p).astype(int), p, draws=99, random_state=seed).p_value <= 0.05
        )
    assert small <= 9  # of 60 at .05: more have probability .0006

    assert t_cal(*sample(power=1.6)).p_value < 0.01
    with refused("sample_weight"):
        t_cal([0, 1], [0.1, 0.9], sample_weight=[1, 2])


def test_interval_error_is_the_best_of_all_partitions():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = np.sort(rng.choice(np.linspace(0, 1, 21), 9))
        y = rng.integers(0, 2, 9)
        at = np.unique(p)
        best = np.inf
        for cuts in itertools.product([0, 1], repeat=at.size - 1):
            group = np.concatenate([[0], np.cumsum(cuts)])[np.searchsorted(at, p)]
            cost = sum(
                abs(np.sum((p - y)[group == g])) / 9 + np.mean(group == g) * np.ptp(p[group == g])
                for g in np.unique(group)
            )
            best = min(best, cost)
        assert interval_calibration_error(y, p) == pytest.approx(best, abs=1e-12)


def best_partition(y, p):
    """Every cut between distinct predictions is tried, one by one."""
    atoms = as_points(y, p)
    r, w = atoms.residuals, atoms.mass.sum(axis=1) / atoms.total
    bias, mass = np.r_[0.0, np.cumsum(r)], np.r_[0.0, np.cumsum(w)]
    best = np.zeros(r.size + 1)
    for end in range(1, r.size + 1):
        width = atoms.p[end - 1] - atoms.p[:end]
        cost = np.abs(bias[end] - bias[:end]) + (mass[end] - mass[:end]) * width
        best[end] = np.min(best[:end] + cost)
    return best[-1]


def errors_that_cancel_inside_a_cell():
    p = np.repeat([0.28, 0.30, 0.3001, 0.32], 10_000)
    y = np.concatenate([np.arange(10_000) < k for k in (1800, 4000, 2000, 4200)])
    many = np.linspace(0.5, 0.9, 2100)
    noise = np.random.default_rng(0).random(2100) < many
    return np.concatenate([y, noise]).astype(int), np.concatenate([p, many])


@pytest.mark.parametrize(
    ("y", "p"), [errors_that_cancel_inside_a_cell(), sample(5000), sample(5000, power=3.0)]
)
def test_interval_error_of_many_predictions_is_an_upper_bound(y, p):
    assert best_partition(y, p) <= interval_calibration_error(y, p) <= best_partition(y, p) + 0.2
