"""Prior shift: Bayes' rule with known rates, and the EM estimate of an unknown one."""

import numpy as np
import pytest
from tests.refusals import refused

from calibrant.recalibration import PriorShift


def test_known_rates_are_bayes_rule():
    """Saerens, Latinne & Decaestecker 2002, equation 2.4: odds 3/7 · (.1/.9) / (.5/.5) = 1/21."""
    shift = PriorShift(from_rate=0.5, to_rate=0.1).fit([0.3])
    assert shift.transform([0.3, 0.0, 1.0]) == pytest.approx([1 / 22, 0.0, 1.0], abs=1e-6)
    assert shift.transform([0.3])[0] == pytest.approx(1 / 22, abs=1e-15)


def shifted(rate, n=50_000):
    rng = np.random.default_rng(0)
    y = rng.random(n) < rate
    x = rng.normal(np.where(y, 1.0, -1.0))
    return y, 1 / (1 + np.exp(-2 * x))  # calibrated at one half


def test_the_rate_is_estimated_without_labels():
    y, p = shifted(0.1)
    shift = PriorShift(from_rate=0.5).fit(p)
    assert shift.rate_ == pytest.approx(0.1, abs=0.006)
    assert shift.transform(p).mean() == pytest.approx(shift.rate_, abs=1e-9)  # a fixed point of EM
    assert PriorShift(from_rate=0.5).fit(p, y).rate_ == pytest.approx(y.mean(), abs=1e-12)


def test_bad_rates():
    with refused("to_rate"):
        PriorShift(from_rate=0.5, to_rate=10).fit([0.3])
    with refused("from_rate"):
        PriorShift().fit([0.3])
