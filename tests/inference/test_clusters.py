"""Dependent rows: the test keeps its size, and no error is claimed that was not seen."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.inference.assess import assess
from calibrant.inference.assess_by import assess_by


def _copies(events: int, copies: int, rate: float, seed: int) -> tuple:
    """Each event forecast several times, by one calibrated prediction."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.5 / rate - 0.5, events)
    y = (rng.random(events) < p).astype(int)
    return np.repeat(y, copies), np.repeat(p, copies), np.repeat(np.arange(events), copies)


@pytest.mark.parametrize(("events", "copies"), [(100, 1), (100, 5)])
def test_rare_events_do_not_inflate_the_test(events: int, copies: int) -> None:
    rejected = claimed = 0
    for seed in range(60):
        y, p, cluster = _copies(events, copies, 0.02, seed)
        found = assess(y, p, cluster=cluster)
        rejected += found.p_value <= 0.05
        claimed += found.interval.low > 0
    assert rejected <= 6
    assert claimed <= 4


@pytest.mark.parametrize(("clusters", "least"), [(2, 0.5), (3, 0.25), (4, 0.125)])
def test_few_clusters_cannot_reject(clusters: int, least: float) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(60 * clusters)
    y = rng.random(p.size) < p**4
    found = [assess(y, p, cluster=np.repeat(np.arange(clusters), 60)).p_value for seed in range(20)]
    assert min(found) > 0.6 * least  # ties count in full


def test_the_rate_is_as_sure_as_the_events_are_many() -> None:
    y, p, cluster = _copies(200, 10, 0.5, 0)
    together = assess(y, p, cluster=cluster).observed_expected
    alone = assess(y[::10], p[::10]).observed_expected
    assert together.low == pytest.approx(alone.low, rel=0.02)
    assert together.high == pytest.approx(alone.high, rel=0.02)
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    y = rng.random(2000) < p
    by_cluster, by_row = (
        assess(y, p, cluster=cluster).observed_expected for cluster in (np.arange(2000) // 10, None)
    )
    assert by_cluster.high - by_cluster.low < 1.3 * (by_row.high - by_row.low)


@pytest.mark.filterwarnings("ignore::calibrant.inference.dependence.DependenceWarning")
def test_groups_say_what_clusters_leave_them() -> None:
    y, p, cluster = _copies(200, 20, 0.5, 3)
    frame = {"y": y, "p": p, "c": cluster, "g": np.arange(y.size) % 2}
    columns = {"y_true": "y", "y_prob": "p", "by": "g"}
    alone = assess_by(data=frame, **columns)
    found = assess_by(data=frame, **columns, cluster="c")
    detectable = {one.key: one.detectable for one in alone.groups}
    assert all(one.detectable > 2 * detectable[one.key] for one in found.groups)
    with pytest.raises(InputError):
        found.difference(0, 1)
    assert alone.difference(0, 1).p_value > 0.05


@pytest.mark.parametrize(
    ("clusters", "events"), [(40, "many"), (40, "few"), (300, "few"), (1100, "many")]
)
def test_clusters_say_the_same_in_any_order_by_any_name_and_from_a_table(clusters, events):
    rng = np.random.default_rng(clusters)
    n = 4 * clusters
    cluster = rng.integers(0, clusters, n)
    p = rng.beta(2, 3, n) if events == "many" else rng.beta(0.5, 30, n)
    y = (rng.random(n) < np.minimum(1.5 * p, 1)).astype(int)
    order, name = rng.permutation(n), rng.permutation(clusters)
    first = cal.assess(y, p, cluster=cluster)
    table = {"y": y, "p": p, "who": cluster}
    for other in (
        cal.assess(y[order], p[order], cluster=cluster[order]),
        cal.assess(y, p, cluster=name[cluster]),
        cal.assess(data=table, y_true="y", y_prob="p", cluster="who"),
    ):
        assert other.p_value == pytest.approx(first.p_value, rel=1e-5)
        assert other.noise_floor.value == pytest.approx(first.noise_floor.value, rel=1e-5)
        assert other.interval.low == pytest.approx(first.interval.low, rel=1e-5)
        assert other.interval.high == pytest.approx(first.interval.high, rel=1e-5)
