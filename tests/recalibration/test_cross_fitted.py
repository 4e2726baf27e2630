"""The cross-fitted calibration error: unbiased where there is none, near the truth where there is."""

import numpy as np
import pytest
from scipy.special import expit, logit
from tests.refusals import refused

from calibrant.recalibration import IdentityRecalibrator
from calibrant.recalibration.cross_fitted import cross_fitted_error


def test_calibrated_predictions_have_none_on_average():
    """15 bins give .054, and stratified folds .008 (arXiv 2602.24230, n = 500)."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        found.append(cross_fitted_error(rng.random(500) < p, p, random_state=seed))
    assert abs(np.mean([one.value for one in found])) < 0.003
    assert min(one.standard_error for one in found) > 0.01
    # Folds that teach the maps of each other vary together: see Notes.
    assert 0.8 < np.mean([one.low < 0 < one.high for one in found]) < 0.95


def test_a_small_error_is_bounded_from_below():
    """Predictions expit(1.15 logit q), q uniform: the default map of before, which waits, saw none."""
    q = (np.arange(100_000) + 0.5) / 100_000
    truth = np.mean(np.abs(expit(1.15 * logit(q)) - q))
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        q = rng.random(2000)
        y = rng.random(2000) < q
        found.append(cross_fitted_error(y, expit(1.15 * logit(q)), random_state=seed))
    mean = np.mean([one.value for one in found])
    assert 0.8 * truth < mean < truth
    assert np.mean([one.low < truth < one.high for one in found]) > 0.8
    assert np.mean([one.low < truth for one in found]) > 0.9


def test_a_map_that_takes_no_side_has_no_interval():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    found = cross_fitted_error(rng.random(500) < p, p, recalibrator=IdentityRecalibrator)
    assert np.isnan([found.standard_error, found.low, found.high]).all()
    assert found.to_dict()["low"] is None
    assert "leaves every prediction as it is" in str(found)


def over_confident(n=1500):
    """Predictions expit(1.6 logit q), q uniform on [.01, .99]; E|q - p| = .0688."""
    rng = np.random.default_rng(0)
    q = rng.uniform(0.01, 0.99, n)
    odds = (q / (1 - q)) ** 1.6
    return (rng.random(n) < q).astype(int), odds / (1 + odds)


def test_it_finds_the_size_and_the_direction_of_an_error():
    y, p = over_confident()
    found = cross_fitted_error(y, p)
    assert found.low < 0.0688 < found.high
    assert found.overconfident > 10 * abs(found.underconfident)
    square = cross_fitted_error(y, p, norm="l2")
    assert square.low < 0.0752 < square.high  # the root of E(q - p)²
    weighted = cross_fitted_error(y, p, sample_weight=np.full(y.size, 3.0))
    assert weighted.value == pytest.approx(found.value, rel=1e-6)


def test_clusters_stay_together_and_widen_the_interval():
    y, p = over_confident(300)
    cluster = np.repeat(np.arange(300), 5)
    found = cross_fitted_error(np.repeat(y, 5), np.repeat(p, 5), cluster=cluster)
    alone = cross_fitted_error(y, p)
    assert found.standard_error == pytest.approx(alone.standard_error, rel=0.05)


def test_classes_are_summed_over_columns():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet([1, 1, 1], 400)
    y = np.array([rng.choice(3, p=row) for row in matrix])
    assert abs(cross_fitted_error(y, matrix).value) < 0.1
    names = np.array(["a", "b", "c"])
    for labels in (y + 1, names[y]):
        with refused("y_true"):
            cross_fitted_error(labels, matrix)
    one = cross_fitted_error(y, matrix)
    assert cross_fitted_error(names[y], matrix, classes=names.tolist()) == one
    columns = {"y": names[y], **dict(zip(names, matrix.T, strict=True))}
    assert cross_fitted_error("y", list(names), data=columns, multiclass="confidence") == one


def test_clusters_name_all_rows_also_those_that_are_dropped():
    y, p = over_confident(300)
    holed = np.where(np.arange(300) < 3, np.nan, p)
    one = cross_fitted_error(y, holed, on_invalid="drop", cluster=np.arange(300))
    columns = {"y": y, "p": holed, "who": np.arange(300)}
    assert one == cross_fitted_error("y", "p", data=columns, cluster="who", on_invalid="drop")
    assert one.value == cross_fitted_error(y[3:], p[3:], cluster=np.arange(297)).value


def test_the_published_sample():
    """.0766 ± .0077 of arXiv 2602.24230's estimator; the population has .0688."""
    y, p = np.loadtxt("tests/reference/over_confident.csv", delimiter=",", skiprows=1, unpack=True)
    found = cross_fitted_error(y, p)
    assert found.value == pytest.approx(0.0766, abs=0.0077)
    assert found.standard_error == pytest.approx(0.0077, abs=0.0003)
