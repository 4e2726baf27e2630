"""The interval of observed/expected: Wilson's where predictions are equal, and what it covers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from calibrant.inference.assess import assess


@pytest.mark.parametrize("events", [0, 1, 3, 25, 49, 50])
def test_of_equal_predictions_it_is_wilsons(events: int) -> None:
    n, p = 50, 0.5
    found = assess((np.arange(n) < events).astype(int), np.full(n, p)).observed_expected
    rate, q2 = events / n, t.ppf(0.975, n - 1) ** 2
    if 0 < events < n:
        q2 *= n / (n - 1)  # the variance is estimated
        middle, spread = (
            rate + q2 / (2 * n),
            np.sqrt(q2 * (rate * (1 - rate) / n + q2 / (4 * n**2))),
        )
        ends = (middle - spread) / (1 + q2 / n), (middle + spread) / (1 + q2 / n)
        near = 0.02
    else:
        ends = (0.0, q2 / (n + q2)) if events == 0 else (n / (n + q2), 1.0)
        near = 1e-6
    assert (found.low * p, found.high * p) == pytest.approx(ends, abs=near)


@pytest.mark.parametrize(
    ("n", "shape", "chance", "truth", "per_cluster"),
    [
        (50, None, lambda p: 0 * p + 0.98, 1.96, 0),
        (50, (2, 2), lambda p: 0.9 + 0.1 * p, 1.9, 0),
        (1000, (1, 19), lambda p: p, 1.0, 25),
        (1000, (1, 19), lambda p: p, 1.0, 10),
    ],
    ids=["always .5", "hardly depends on p", "40 clusters", "100 clusters"],
)
def test_it_covers(n, shape, chance, truth, per_cluster) -> None:
    rng, held = np.random.default_rng(0), 0
    cluster = np.arange(n) // per_cluster if per_cluster else None
    for _ in range(150):
        p = np.full(n, 0.5) if shape is None else rng.beta(*shape, n)
        y = (rng.random(n) < chance(p)).astype(int)
        found = assess(y, p, cluster=cluster).observed_expected
        held += found.low <= truth <= found.high
    assert held >= 0.89 * 150  # .95 less three standard errors; bench.coverage.profiles has more


def test_clusters_widen_it_as_far_as_they_depend() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    once = assess(y, p).observed_expected
    copies = np.repeat(np.arange(400), 5)
    five = assess(y[copies], p[copies], cluster=copies).observed_expected
    assert (five.low, five.high) == pytest.approx((once.low, once.high), rel=0.01)
