"""Decompositions against scikit-learn's isotonic regression and scores."""

import numpy as np
import pytest
from scipy.stats import beta, norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

import calibrant as cal
from calibrant.measures.isotonic import (
    binned_decomposition,
    corp_decomposition,
    murphy,
    pooled,
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
    got = binned_decomposition(y, p, n_bins=10)
    reliability = resolution = 0.0
    for value in np.unique(p):
        inside = p == value
        reliability += inside.mean() * (value - y[inside].mean()) ** 2
        resolution += inside.mean() * (y.mean() - y[inside].mean()) ** 2
    # 0 and 0.1 share the first bin.
    assert got.miscalibration == pytest.approx(reliability, abs=2e-3)
    assert got.discrimination == pytest.approx(resolution, abs=2e-3)


@pytest.mark.parametrize("options", [{}, {"sample_weight": np.linspace(0.1, 3, 500)}])
@pytest.mark.parametrize("decimals", [1, 16])
def test_areas_of_the_murphy_curve_are_the_scores(options, decimals):
    y, p = sample(500)
    p = np.round(p, decimals)
    curve, split = murphy(y, p, **options), corp_decomposition(y, p, **options)
    assert curve.brier == pytest.approx(split.mean_score, abs=1e-12)
    assert curve.mcb == pytest.approx(split.miscalibration, abs=1e-12)
    assert curve.dsc == pytest.approx(split.discrimination, abs=1e-12)
    assert curve.miscalibration.min() > -1e-12


def test_the_murphy_curve_is_the_mean_elementary_score():
    y, p = sample(50)
    curve = murphy(y, p)
    for t in np.random.default_rng(0).random(20):
        loss = np.where(y == 1, (1 - t) * (p <= t), t * (p > t)).mean()
        assert np.interp(t, curve.threshold, curve.score) == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_murphy_curve_is_that_of_the_net_benefit(weighted):
    """S_t = (1 - t) (rate of events - net benefit at t), and so is what miscalibration costs at t."""
    y, p = sample(500)
    weight = np.linspace(0.1, 3, 500) if weighted else np.ones(500)
    curve = murphy(y, p, sample_weight=weight)
    inverse = np.unique(p, return_inverse=True)[1]
    mass = np.bincount(inverse, weight)
    fitted = pooled(np.bincount(inverse, weight * y) / mass, mass)[inverse]
    t = np.array([0.0503, 0.2007, 0.5011, 0.8017])
    for forecasts, score in ((p, curve.score), (fitted, curve.recalibrated)):
        benefit = cal.decision_curve(y, forecasts, thresholds=t, sample_weight=weight).benefit.value
        expected = (1 - t) * (np.average(y, weights=weight) - benefit)
        assert np.interp(t, curve.threshold, score) == pytest.approx(expected, abs=1e-12)


def uniforms_of_r(seed, size):
    """`set.seed(seed); runif(size)`: R scrambles the seed by a congruential generator."""
    words = []
    for _ in range(675):
        seed = (69069 * seed + 1) % 2**32
        words.append(seed)
    generator = np.random.MT19937()
    state = {"key": np.array(words[51:], dtype=np.uint32), "pos": 624}
    generator.state = {"bit_generator": "MT19937", "state": state}
    return generator.random_raw(size) * 2.3283064365386963e-10


def ex_binary(n=1000, m=10):
    """The sample `ex_binary` of R's triptych, drawn again as its data-raw/ex_binary.R does."""
    u = uniforms_of_r(20230921, 2 * n * m + n)
    high, low, last = u[: 2 * n * m : 2], u[1 : 2 * n * m : 2], u[2 * n * m :]
    z = norm.ppf((np.floor(2.0**27 * high) + low) / 2.0**27).reshape(n, m)
    x = norm.cdf(np.cumsum(z, axis=1)[:, ::-1] / np.sqrt(np.arange(1, m + 1)))
    first, ninth = x[:, 0], beta.cdf(x[:, 8], 5 / 3, 3 / 5)
    take = np.cumsum(first < 1.0) - 1  # `rbinom` draws nothing where the chance is 1
    smaller = np.minimum(first, 1.0 - first)
    return (last[take] >= 1.0 - smaller) ^ (first > 0.5), {"X01": first, "X09": ninth}


@pytest.mark.parametrize(
    ("forecast", "score", "mcb", "dsc"),
    [("X01", 0.0827, 0.00474, 0.172), ("X09", 0.303, 0.0818, 0.0282)],
)
def test_the_triptych_of_r(forecast, score, mcb, dsc):
    """`mcbdsc(ex_binary)` of R's triptych 0.1.3."""
    y, forecasts = ex_binary()
    curve = murphy(y, forecasts[forecast])
    assert f"{curve.brier:.3g} {curve.mcb:.3g} {curve.dsc:.3g}" == f"{score} {mcb} {dsc}"


def test_the_murphy_curve_of_the_reference_sample():
    y, p = np.loadtxt("tests/reference/over_confident.csv", delimiter=",", skiprows=1, unpack=True)
    curve = murphy(y, p)
    assert curve.brier == pytest.approx(0.1833478, abs=5e-8)
    assert curve.mcb == pytest.approx(0.0115541, abs=5e-8)
    most, at = curve.largest_miscalibration  # the published one was looked for on a grid
    assert most == pytest.approx(0.0147346, abs=1e-5)
    assert at == pytest.approx(0.2049, abs=2e-4)


def test_the_frame_of_the_murphy_curve_has_its_points():
    curve = murphy([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    frame = curve.to_frame("pandas")
    assert len(frame) == curve.threshold.size > 1
    for name in frame.columns:
        assert frame[name].tolist() == getattr(curve, name).tolist()
