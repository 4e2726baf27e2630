"""The compiled loops behind the test, against the same in plain NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant.inference._draws import (
    binomial_surprises,
    counts_below,
    inverse_sums,
    kernel_shares,
    lowered_sums,
    orthogonal,
    product,
    smoothed_errors,
)
from calibrant.inference.quantiles import evidence_of, harmonic_mean, log_tail, log_tails_of_draws
from calibrant.inference.witnesses import _NORMAL, _STEPS

RNG = np.random.default_rng(0)


def test_surprises_are_binomial_quantiles() -> None:
    rows, chance = np.array([1, 2, 40, 300, 7]), np.array([0.3, 0.5, 0.1, 0.002, 0.0])
    uniform = RNG.random((8, 50), dtype=np.float32)
    worth = np.array([1.0, -2.0, 0.5, 1.0, 1.0])
    found = np.empty((5, 30), dtype=np.float32)
    binomial_surprises(uniform, 20, rows, chance, worth, found)
    drawn = binom.ppf(uniform[:5, 20:].astype(float), rows[:, None], chance[:, None])
    assert found == pytest.approx((drawn - (rows * chance)[:, None]) * worth[:, None], abs=1e-5)


def test_tails_of_draws_are_those_of_families_and_chains() -> None:
    means = (3 * RNG.standard_normal((9, 40))).astype(np.float32)
    found = log_tails_of_draws(means, np.array([0, 1, 4]), 6, 6)
    families = np.stack([np.abs(rows).max(axis=0) for rows in np.split(means[:6], [1, 4])])
    lengths = np.sqrt(np.cumsum(means[6:] ** 2, axis=0))
    degrees = np.array([1, 1, 1, 1, 2, 3])
    assert found == pytest.approx(
        log_tail(np.concatenate([families, lengths]).astype(float), degrees), rel=1e-5
    )


@pytest.mark.parametrize("bandwidth", [0.01, 0.2, 0.7])
def test_shares_of_a_reflected_kernel(bandwidth: float) -> None:
    at, edges = np.array([0.0, 0.03, 0.5, 0.98]), np.array([0.0, 0.02, 0.4, 0.9, 1.0])
    found, first, stretches = np.zeros((4, 4)), np.array([0, 1, 3]), np.zeros((4, 3))
    kernel_shares(at, edges, bandwidth, True, _NORMAL, float(_STEPS), found, first, stretches)
    assert stretches == pytest.approx(np.add.reduceat(found, first, axis=1))
    images = np.concatenate([side * at[None] + 2 * k for k in range(-6, 7) for side in (1, -1)])
    below = norm.cdf((edges[:, None, None] - images) / bandwidth)
    assert found == pytest.approx(np.diff(below.sum(axis=1), axis=0).T, abs=1e-5)


def test_mixtures_are_uncorrelated_and_leave_out_what_others_give() -> None:
    functions = RNG.standard_normal((6, 30))
    functions[3] = functions[0] - 2 * functions[1]
    gram = functions @ functions.T
    mixed = np.empty((6, 6))
    count = orthogonal(gram, np.zeros(6), 1e-3, mixed)
    assert count == 5
    assert mixed[:count] @ gram @ mixed[:count].T == pytest.approx(np.eye(5), abs=1e-9)
    assert not mixed[:count, 3].any()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (6, 40, 16), (13, 30, 37), (2, 0, 9)])
def test_a_product_is_that_of_matrices(kind: type, shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    a = RNG.standard_normal((rows, inner)).astype(kind)
    b = RNG.standard_normal((inner, columns + 9)).astype(kind)[:, 4 : 4 + columns]
    assert product(a, b) == pytest.approx(a.astype(float) @ b.astype(float), abs=1e-4)
    assert product(a, b).dtype == kind
    a[:, : inner // 3] = a[4:, -(inner // 4) :] = 0.0
    assert product(a, b) == pytest.approx(a.astype(float) @ b.astype(float), abs=1e-4)


def test_sizes_are_lowered_near_0() -> None:
    x = (4 * RNG.standard_normal((5, 40))).astype(np.float32)
    x[0, :3] = 0.0, 1e-20, 1e4
    errors = RNG.random(5).astype(np.float32)
    lowered = np.abs(x) - 1.5 * np.exp(-0.7 * x.astype(float) ** 2)
    assert lowered_sums(x, errors, 0.7, 1.5) == pytest.approx(errors @ lowered, rel=1e-5, abs=1e-5)


def test_evidence_is_that_of_the_draws() -> None:
    strayed, degrees = np.array([0.0, 0.7, 3.0, 50.0]), np.array([1, 1, 2, 5])
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    for size in (0.01, 1.0):
        logs = log_tail((size * strayed)[:, None], degrees)
        *others, whole = logs.astype(np.float32)
        sums = inverse_sums(np.stack(others), shares[:-1].astype(np.float32))
        drawn = harmonic_mean(sums, whole.astype(float), shares[-1])
        assert evidence_of(size * strayed, degrees, shares) == pytest.approx(drawn[0], rel=1e-4)
        plain = -np.log(1.0 / (shares @ np.exp(-logs[:, 0].astype(np.longdouble))))
        assert evidence_of(size * strayed, degrees, shares) == pytest.approx(float(plain), rel=1e-9)


def test_a_product_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="rows"):
        product(np.ones((2, 3)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="piece"):
        product(np.ones((2, 3)), np.ones((2, 3)).T)


@pytest.mark.parametrize("bandwidth", [0.004, 0.05, 0.4])
def test_errors_of_draws_are_integrals_of_reflected_kernels(bandwidth: float) -> None:
    place = np.sort(RNG.random(12))
    residuals = RNG.standard_normal((12, 80)).astype(np.float32)
    found = np.zeros(80)
    smoothed_errors(place, residuals, bandwidth, 0.0, 1.0, found)
    t = (np.arange(20_000) + 0.5) / 20_000
    images = [side * place + 2 * k for k in range(-3, 4) for side in (1, -1)]
    kernel = sum(norm.pdf((t[:, None] - at) / bandwidth) / bandwidth for at in images)
    assert found == pytest.approx(np.abs(kernel @ residuals).mean(axis=0), rel=0.02, abs=0.01)


def test_counts_are_of_the_numbers_below_the_chance_of_each_cell() -> None:
    rows, chance = np.array([1, 4, 2, 9]), np.array([0.5, 0.1, 1.0, 0.3])
    uniform = RNG.random((50, rows.sum()))
    ends = np.cumsum(rows)
    expected = [
        (uniform[:, end - n : end] < c).sum(axis=1)
        for end, n, c in zip(ends, rows, chance, strict=True)
    ]
    assert counts_below(uniform, rows, chance) == pytest.approx(np.stack(expected, axis=1))
