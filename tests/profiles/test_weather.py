"""Reliability, resolution and uncertainty: sums that add up, references, and skill over a climatology."""

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.profiles import weather


def rows(seed=0, n=2000):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 2, n)
    return (rng.random(n) < 0.1 + 0.7 * p).astype(int), p


def profile_of(y, p, profile="weather", **options):
    return cal.assess(y, p, profile=profile, **options).profile


def test_the_parts_of_corp_add_up_to_the_score():
    found = profile_of(*rows())
    parts = (found["reliability (CORP)"], found["resolution (CORP)"], found["uncertainty"])
    total = parts[0].value - parts[1].value + parts[2].value
    assert total == pytest.approx(found["Brier score"].value, rel=1e-12)
    skill = (parts[1].value - parts[0].value) / parts[2].value
    assert found["Brier skill score"].value == pytest.approx(skill, rel=1e-9)


def test_binned_parts_are_those_of_the_bins():
    y, p = rows()
    place = np.clip(np.ceil(10 * p), 1, 10)
    share, mean, rate = (
        np.array([f(place == k) for k in range(1, 11)])
        for f in (np.mean, lambda at: p[at].mean(), lambda at: y[at].mean())
    )
    found = profile_of(y, p)
    assert found["reliability (10 bins)"].value == pytest.approx(share @ (mean - rate) ** 2)
    assert found["resolution (10 bins)"].value == pytest.approx(share @ (rate - y.mean()) ** 2)
    middle = profile_of(y, p, weather(at="middle"))["reliability (10 bins)"].value
    assert middle == pytest.approx(share @ ((np.arange(10) + 0.5) / 10 - rate) ** 2)


def test_skill_over_a_climatology():
    y, p = rows()
    climate = np.full(y.size, y.mean())
    own, given = profile_of(y, p), profile_of(y, p, weather(climatology=climate))
    assert given["Brier skill score"].value == pytest.approx(own["Brier skill score"].value)
    same = profile_of(y, p, weather(climatology=p))["Brier skill score"]
    assert (same.value, same.standard_error) == pytest.approx((0.0, 0.0), abs=1e-12)
    dropped = profile_of(
        np.r_[y, 0], np.r_[p, np.nan], weather(climatology=np.r_[climate, 0.5]), on_invalid="drop"
    )
    assert dropped["Brier skill score"].value == pytest.approx(given["Brier skill score"].value)


def test_a_sketch_is_within_its_bounds_and_clusters_widen():
    y, p = rows()
    exact = profile_of(y, p)
    sketched = cal.assess(cal.Sketch.from_arrays(y, p), profile="weather").profile
    for name in exact:
        assert abs(sketched[name].value - exact[name].value) <= sketched[name].bound + 1e-6, name
    copies = profile_of(np.repeat(y, 4), np.repeat(p, 4), cluster=np.repeat(np.arange(2000), 4))
    for name in ("reliability (10 bins)", "Brier skill score"):
        width, alone = (one[name].high - one[name].low for one in (copies, exact))
        assert width == pytest.approx(alone, rel=0.05)


@pytest.mark.parametrize(
    "wrong", [[0.1], [0.1, 1.2, 0.3], [0.1, np.nan, 0.3], ["0.1", "wet", "0.3"], 30]
)
def test_a_wrong_climatology_is_refused(wrong):
    with refused("climatology"):
        cal.assess([0, 1, 0], [0.1, 0.2, 0.4], profile=weather(climatology=wrong))


@pytest.mark.parametrize("kind", ["rows", "clusters", "weights"])
def test_corp_has_an_interval_below_which_the_sample_does_not_vouch(kind):
    y, p = rows(seed=4)
    options = {
        "clusters": {"cluster": np.arange(y.size) // 4},
        "weights": {"sample_weight": 0.5 + p},
    }
    found = profile_of(y, p, **options.get(kind, {}))
    event = 0.1 + 0.7 * p  # the chance: increasing, so that CORP's map of the population is this
    share = (0.5 + p) / (0.5 + p).sum() if kind == "weights" else np.full(p.size, 1 / p.size)
    truths = share @ (p - event) ** 2, share @ (event - share @ event) ** 2
    for name, truth in zip(("reliability (CORP)", "resolution (CORP)"), truths, strict=True):
        part = found[name]
        assert 0.0 <= part.low < part.value < part.high
        assert part.low <= truth <= part.high, name


def test_corp_does_not_vouch_for_miscalibration_where_there_is_none():
    rng = np.random.default_rng(5)
    p = rng.random(500)
    part = profile_of((rng.random(500) < p).astype(int), p)["reliability (CORP)"]
    assert part.low == 0.0 < part.value


def test_corp_says_why_it_has_no_interval():
    y, p = rows()
    for found in (
        cal.assess(cal.Sketch.from_arrays(y, p), profile="weather").profile,
        profile_of([0, 1, 0], [0.1, 0.7, 0.4]),
    ):
        for name in ("reliability (CORP)", "resolution (CORP)"):
            assert np.isnan(found[name].low)
            assert found[name].note


def test_binned_parts_of_sketched_clusters_have_the_intervals_of_the_rows():
    y, p = rows()
    group = np.arange(y.size) // 20
    exact = profile_of(y, p, cluster=group)
    sketch = cal.scan({"y": y, "p": p, "g": group}, y_true="y", y_prob="p", by="g")
    sketched = cal.assess(sketch, cluster="g", profile="weather").profile
    for name in ("reliability (10 bins)", "resolution (10 bins)"):
        width = exact[name].high - exact[name].low
        ours = sketched[name].high - sketched[name].low
        assert width - 1e-9 <= ours <= width + 2.0 * sketched[name].bound + 1e-2 * width


def test_the_row_of_a_wrong_climatology_is_that_of_the_file():
    with refused("climatology", 1.4, row=2):
        cal.assess(
            [0, 1, 0, 1],
            [np.nan, 0.2, 0.4, 0.6],
            profile=weather(climatology=[0.1, 0.2, 1.4, 0.5]),
            on_invalid="drop",
        )


def test_one_outcome_alone_leaves_the_uncertainty_open():
    y, p = rows()
    found = profile_of(0 * y, p)
    assert found["uncertainty"].value == 0.0
    rate = 1 - 0.025 ** (1 / y.size)
    assert found["uncertainty"].high == pytest.approx(rate * (1 - rate))
    assert found["Brier score"].note
    assert found["resolution (CORP)"].note
