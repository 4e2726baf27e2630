"""Reliability, resolution and uncertainty: sums that add up, references, and skill over a climatology."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError
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


@pytest.mark.skipif(
    "CALIBRANT_REFERENCE" not in os.environ, reason="CALIBRANT_REFERENCE is not set"
)
def test_pima_has_the_parts_of_rs_verification():
    path = Path(os.environ["CALIBRANT_REFERENCE"]) / "pima.csv"
    with path.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    y, p = (np.array([float(row[name]) for row in table]) for name in ("y", "extreme"))
    found = profile_of(y, p, weather(at="middle"))
    names = ("reliability (10 bins)", "resolution (10 bins)", "uncertainty")
    assert [found[name].value for name in names] == pytest.approx(
        [0.00830456, 0.08066557, 0.22052366], abs=5e-9
    )


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


def test_sharpness_is_the_variance_of_the_forecasts():
    y, p = rows()
    found = profile_of(y, p)["sharpness (variance of forecasts)"]
    assert found.value == pytest.approx(p.var(), rel=1e-6)


def test_a_sketch_is_within_its_bounds_and_clusters_widen():
    y, p = rows()
    exact = profile_of(y, p)
    sketched = cal.assess(cal.Sketch.from_arrays(y, p), profile="weather").profile
    for name in exact:
        assert abs(sketched[name].value - exact[name].value) <= sketched[name].bound + 1e-9, name
    copies = profile_of(np.repeat(y, 4), np.repeat(p, 4), cluster=np.repeat(np.arange(2000), 4))
    for name in ("reliability (10 bins)", "Brier skill score"):
        width, alone = (one[name].high - one[name].low for one in (copies, exact))
        assert width == pytest.approx(alone, rel=0.05)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"bins": 1}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"at": "end"}, "at"),
        ({"climatology": [0.1]}, "climatology"),
        ({"climatology": [0.1, 1.2, 0.3]}, "climatology"),
    ],
)
def test_mistakes_are_named(options, argument):
    with pytest.raises(InputError) as error:
        cal.assess([0, 1, 0], [0.1, 0.2, 0.4], profile=weather(**options))
    assert error.value.argument == argument
