"""The default map: as far as the rows give reason to."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from calibrant import Sketch
from calibrant.inference.logistic import log_odds, posterior
from calibrant.recalibration.adaptive import FAMILIES, AdaptiveRecalibrator


def drawn(n, slope=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return expit(z), (rng.random(n) < expit(slope * z)).astype(int)


def test_calibrated_predictions_are_left_alone_to_the_last_bit():
    p, y = drawn(3000)
    adaptive = AdaptiveRecalibrator().fit(p, y)
    assert adaptive.is_identity
    assert np.array_equal(adaptive.transform(p), p)


def test_few_rows_move_predictions_less_than_many_of_the_same_kind():
    moved = {}
    for n in (20, 400):
        fits = [AdaptiveRecalibrator().fit(*drawn(n, slope=0.4, seed=k)) for k in range(20)]
        moved[n] = np.mean([0.95 - fit.transform([0.95])[0] for fit in fits])
    assert 0.0 < moved[20] < 0.8 * moved[400]
    p, y = drawn(4000, slope=0.4)
    repaired = AdaptiveRecalibrator().fit(p, y).transform([0.9])[0]
    assert repaired == pytest.approx(expit(0.4 * np.log(9)), abs=0.02)


def test_shares_of_the_families_add_up_to_one():
    adaptive = AdaptiveRecalibrator().fit(*drawn(200, slope=0.5))
    assert set(adaptive.evidence) == set(FAMILIES)
    assert sum(adaptive.evidence.values()) == pytest.approx(1.0)
    assert adaptive.evidence["ends"] == 0.0


def test_a_sketch_is_its_rows():
    p, y = drawn(500, slope=0.5)
    at = np.linspace(0.01, 0.99, 50)
    plain = AdaptiveRecalibrator().fit(p, y).transform(at)
    sketch = Sketch.from_arrays(y, p)
    assert np.allclose(AdaptiveRecalibrator().fit(sketch).transform(at), plain, atol=1e-4)


def test_predictions_of_exactly_0_and_1_are_words_where_they_come_out_wrong():
    rng = np.random.default_rng(0)
    p = np.repeat([0.0, 0.3, 0.7, 1.0], 200)
    y = (rng.random(800) < np.repeat([0.1, 0.3, 0.7, 0.9], 200)).astype(int)
    adaptive = AdaptiveRecalibrator().fit(p, y)
    low, middle, high = adaptive.transform([0.0, 0.3, 1.0])
    assert low == pytest.approx(y[:200].mean(), abs=0.01)
    assert high == pytest.approx(y[600:].mean(), abs=0.01)
    assert middle == pytest.approx(0.3, abs=0.02)
    assert adaptive.evidence["ends"] > 0.5


def test_the_increasing_map_increases_and_the_plain_one_may_not():
    rng = np.random.default_rng(3)
    p = rng.random(4000)
    y = (rng.random(4000) < p + 0.1 * np.sin(8 * np.pi * p)).astype(int)
    p[:200], y[:200] = 1.0, np.arange(200) < 150  # and what is said to be sure is not
    at = np.linspace(0, 1, 500)
    free = AdaptiveRecalibrator(monotone=False).fit(p, y).transform(at)
    assert np.diff(free[:-1]).min() < -1e-3
    assert free[-1] < free[-2] - 0.1
    assert np.diff(AdaptiveRecalibrator().fit(p, y).transform(at)).min() >= 0.0


def test_the_evidence_is_the_probability_of_the_outcomes_averaged_over_the_prior():
    p, y = drawn(60, slope=0.7)
    x = log_odds(p)

    def likelihood(slope):
        s = x + slope * x
        return np.exp(-np.sum(np.logaddexp(0, s) - y * s) - 0.5 * (slope / 0.35) ** 2)

    integral = quad(likelihood, -3, 3, epsabs=0, limit=200)[0] / (0.35 * np.sqrt(2 * np.pi))
    found = posterior(x[:, None], x, np.ones(60), y.astype(float), np.array([0.35]))
    assert found.evidence == pytest.approx(np.log(integral), abs=0.02)


def test_the_interval_holds_the_map_and_the_truth_and_shrinks_with_rows() -> None:
    widths = []
    for n in (200, 2000, 20_000):
        draw = np.random.default_rng(n)
        p = draw.random(n)
        chance = expit(0.5 * log_odds(p))
        learned = AdaptiveRecalibrator().fit(p, draw.random(n) < chance)
        low, high = learned.interval(p)
        mapped = learned.transform(p)
        assert np.all((low <= mapped) & (mapped <= high))
        assert np.mean((low <= chance) & (chance <= high)) > 0.8
        widths.append(np.mean(high - low))
        narrow = learned.interval(p, confidence=0.5)
        assert np.all((low < narrow[0]) & (narrow[1] < high))
    assert widths[0] > 2.0 * widths[1] > 4.0 * widths[2]


def test_the_interval_of_exact_ends_is_that_of_their_rate() -> None:
    """Of 10,000 rows at 1 a tenth is wrong: the rate there is known to about 0.006."""
    draw = np.random.default_rng(0)
    inner = draw.uniform(0.2, 0.8, 2000)
    p = np.concatenate([np.ones(10_000), inner])
    y = np.concatenate([draw.random(10_000) < 0.9, draw.random(2000) < inner])
    low, high = AdaptiveRecalibrator().fit(p, y).interval([1.0])
    assert low[0] < y[:10_000].mean() < high[0]
    assert 0.009 < high[0] - low[0] < 0.015
