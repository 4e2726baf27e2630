"""An assertion on calibration for the tests of a model."""

import importlib.util
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.integrations.pytest import assert_calibrated
from calibrant.integrations.scores import NUMBERS, calibration_scores

pytest_plugins = ["pytester"]


def rows(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


def test_it_passes_where_the_error_is_shown_to_be_small():
    y, p = rows(4000)
    found = assert_calibrated(y, p, margin=0.06)
    assert found.decision == "within"
    assert found.interval == cal.assess(y, p, margin=0.06).interval


def test_it_fails_where_the_error_is_large_or_nothing_is_shown():
    y, p = rows(4000)
    with pytest.raises(AssertionError, match="beyond"):
        assert_calibrated(y, p / 2, margin=0.05, inconclusive="pass")
    few = rows(60)
    with pytest.raises(AssertionError, match="not shown"):
        assert_calibrated(*few, margin=0.05)
    assert assert_calibrated(*few, margin=0.05, inconclusive="pass").decision == "inconclusive"


def test_clusters_widen_what_must_be_within():
    y, p = rows(1500)
    copies = np.repeat(np.arange(y.size), 4)
    with pytest.raises(AssertionError):
        assert_calibrated(y[copies], p[copies], cluster=copies, margin=0.04)


def test_mistakes_are_refused():
    with refused("inconclusive"):
        assert_calibrated(*rows(60), margin=0.05, inconclusive="skip")


def test_numbers_are_those_of_the_assessment():
    y, p = rows(300)
    found, scores = cal.assess(y, p), calibration_scores(y, p)
    assert tuple(scores) == NUMBERS
    assert scores["smooth_ece"] == found.smooth_ece
    assert scores["noise_floor"] == found.noise_floor.value
    assert (scores["interval_low"], scores["interval_high"]) == (
        found.interval.low,
        found.interval.high,
    )


def test_pytest_discovers_the_fixture(pytester):
    """As the entry point in pyproject.toml names it."""
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]
    assert project["pytest11"]["calibrant"] == "calibrant.integrations.pytest"
    pytester.makepyfile(
        """
        def test_model(assert_calibrated):
            p = [0.02, 0.98] * 2000
            y = ([0, 1] * 49 + [1, 0]) * 40
            assert assert_calibrated(y, p, margin=0.05).decision == "within"
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    for group in ("inspect_ai", "mlflow.model_evaluator"):
        module = project[group]["calibrant"].partition(":")[0]
        assert importlib.util.find_spec(module) is not None
