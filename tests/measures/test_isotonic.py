"""Decompositions against scikit-learn's isotonic regression and scores."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss
from tests.refusals import refused

from calibrant import Sketch
from calibrant.data.points import as_points
from calibrant.measures.isotonic import (
    binned_decomposition,
    corp_decomposition,
    miscalibration_of_atoms,
)

SCORES = {"brier": brier_score_loss, "log": log_loss}


def sample(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = np.clip(np.round(rng.random(n), 3), 0.001, 0.999)
    return (rng.random(n) < p**1.4).astype(int), p


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_corp_equals_scikit_learn(score, weighted):
    y, p = sample()
    w = np.random.default_rng(1).exponential(size=y.size) if weighted else None
    mean = SCORES[score]
    fitted = IsotonicRegression().fit(p, y, sample_weight=w).predict(p)
    base = np.full(y.size, np.average(y, weights=w))
    now, best, least = (mean(y, q, sample_weight=w) for q in (p, fitted, base))
    got = corp_decomposition(y, p, score=score, sample_weight=w)
    assert got.mean_score == pytest.approx(now)
    assert got.miscalibration == pytest.approx(now - best, abs=1e-7)
    assert got.discrimination == pytest.approx(least - best, abs=1e-7)
    assert got.uncertainty == pytest.approx(least)


@pytest.mark.parametrize("score", SCORES)
def test_bins_split_the_score_into_terms_that_add_up(score):
    y, p = sample()
    got = binned_decomposition(y, p, score=score)
    whole = got.miscalibration - got.discrimination + got.uncertainty + got.within_bins
    assert whole == pytest.approx(SCORES[score](y, p))
    assert got.mean_score == pytest.approx(SCORES[score](y, p))


def test_murphys_terms():
    y, p = sample()
    p = np.round(p, 1)
    got = binned_decomposition(y, p, bins=10)
    reliability = resolution = 0.0
    for value in np.unique(p):
        inside = p == value
        reliability += inside.mean() * (value - y[inside].mean()) ** 2
        resolution += inside.mean() * (y.mean() - y[inside].mean()) ** 2
    # 0 and 0.1 share the first bin.
    assert got.miscalibration == pytest.approx(reliability, abs=2e-3)
    assert got.discrimination == pytest.approx(resolution, abs=2e-3)


def test_a_sketch_gives_it_within_its_bound():
    y, p = sample(20_000)
    exact = miscalibration_of_atoms(as_points(y, p))
    rough = miscalibration_of_atoms(as_points(Sketch.from_arrays(y, p, nodes=1 << 9)))
    assert exact.error == 0.0
    assert abs(rough.value - exact.value) <= rough.error < 0.1


def test_refuses_other_scores():
    with refused("score"):
        corp_decomposition([0, 1], [0.2, 0.8], score="spherical")
