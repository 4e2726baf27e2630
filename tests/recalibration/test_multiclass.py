"""Scaling of logits against scikit-learn, and one-vs-rest maps."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from tests.refusals import refused

from calibrant import InputError
from calibrant.errors import show_value
from calibrant.recalibration import OneVsRestRecalibrator
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.learned_map import load_recalibrator
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.scaling import TemperatureScaling, VectorScaling


def sample(n=4000, classes=4, sharpness=2.5, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, classes))
    probs = softmax(logits, axis=1)
    y = (probs.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return sharpness * logits, y


def mean_log_loss(probs, y):
    return -np.mean(np.log(probs[np.arange(y.size), y]))


def test_temperature_undoes_the_sharpening():
    logits, y = sample()
    fitted = TemperatureScaling().fit(logits, y)
    assert 1 / fitted.state["slope"] == pytest.approx(2.5, rel=0.05)
    slopes = fitted.state["slope"] * np.exp(np.linspace(-0.2, 0.2, 41))
    losses = [-np.mean(log_softmax(s * logits, axis=1)[np.arange(y.size), y]) for s in slopes]
    assert np.argmin(losses) == 20
    assert np.array_equal(fitted.transform(logits).argmax(axis=1), logits.argmax(axis=1))


def test_temperature_equals_scikit_learns():
    pytest.importorskip("sklearn", minversion="1.8", reason="scikit-learn has it from 1.8 on")
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Scores(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(4)

        def fit(self, X, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def decision_function(self, X):
            return X

        def predict(self, X):
            return X.argmax(axis=1)

    logits, y = sample(1500)
    theirs = CalibratedClassifierCV(FrozenEstimator(Scores()), method="temperature").fit(logits, y)
    ours = TemperatureScaling().fit(logits, y).transform(logits)
    assert ours == pytest.approx(theirs.predict_proba(logits), abs=1e-3)


def test_vector_scaling_finds_slopes_and_intercepts():
    logits, y = sample(20_000, classes=3)
    moved = logits * np.array([1.0, 2.0, 0.5]) + np.array([0.0, 1.0, -1.0])
    fitted = VectorScaling().fit(moved, y)
    probs = fitted.transform(moved)
    assert mean_log_loss(probs, y) < mean_log_loss(softmax(logits / 2.5, axis=1), y) + 1e-3
    assert mean_log_loss(probs, y) < mean_log_loss(
        TemperatureScaling().fit(moved, y).transform(moved), y
    )


@pytest.mark.parametrize("made", [TemperatureScaling(), VectorScaling()], ids=lambda m: m.kind)
@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1000.0, 1e6, 1e150])
def test_the_unit_of_the_logits_does_not_matter(made, unit):
    logits, y = sample(1000)
    expected = made.fit(logits, y).transform(logits)
    assert made.fit(unit * logits, y).transform(unit * logits) == pytest.approx(expected, abs=1e-6)
    far = logits + 1e5
    assert made.fit(far, y).transform(far) == pytest.approx(expected, abs=1e-5)


def test_outcomes_that_follow_the_logits_wholly_or_not_at_all():
    logits, _ = sample(100)
    for y, expected in ((logits.argmax(axis=1), 1.0), (logits.argmin(axis=1), 0.25)):
        best = TemperatureScaling().fit(logits, y).transform(logits).max(axis=1)
        assert best == pytest.approx(np.full(100, expected), abs=1e-6)
    assert TemperatureScaling().fit(np.zeros((2, 3)), [0, 1]).temperature == 1.0
    followed = VectorScaling().fit(logits, logits.argmax(axis=1)).transform(logits)
    assert np.array_equal(followed.argmax(axis=1), logits.argmax(axis=1))


@pytest.mark.parametrize("made", [TemperatureScaling(), VectorScaling()], ids=lambda m: m.kind)
def test_weights_files_and_refusals(made, tmp_path):
    logits, y = sample(300)
    w = np.random.default_rng(0).integers(1, 4, y.size)
    weighted = made.fit(logits, y, w).transform(logits)
    repeated = type(made)().fit(np.repeat(logits, w, axis=0), np.repeat(y, w)).transform(logits)
    assert weighted == pytest.approx(repeated, abs=1e-3)
    made.save(tmp_path / "map.json")
    assert np.array_equal(load_recalibrator(tmp_path / "map.json").transform(logits), weighted)
    with refused("y_prob", row=0):
        made.fit([[0.0, np.inf], [1.0, 0.0]], [0, 1])
    with refused("y_true", 9):
        made.fit(logits, np.full(y.size, 9))
    for weight in (w[:-1], -w, 0 * w, np.where(w > 1, np.nan, w)):
        with refused("sample_weight"):
            made.fit(logits, y, weight)
    for given in (logits[0], logits[0, 0], None, logits.astype(str), np.full((2, 4), np.nan)):
        with refused("y_prob"):
            made.transform(given)


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        ([5.0, -3.0, -1.0], 5.0),
        ([2.0, 1.0, 3.0], 3.0),
        ([50.0, 30.0, 20.0], 100.0),
        ([np.nan, 0.5, 0.5], "NaN"),
        ([np.inf, -np.inf, 1.0], np.inf),
        ([0.5, 0.3, 0.1], 0.9),
    ],
)
def test_one_vs_rest_takes_distributions_alone(row, seen):
    probs = np.tile([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.6, 0.3, 0.1]], (2, 1))
    y = [0, 1, 2] * 2
    made = OneVsRestRecalibrator(PlattRecalibrator()).fit(probs, y)
    expected = made.transform(probs)
    for rounding in (1.0 + 1e-6, 1.0 - 1e-6):
        assert made.transform(probs * rounding) == pytest.approx(expected, abs=1e-4)
    assert made.transform([[1.00001, 0.0, 0.0]]) == pytest.approx(made.transform([[1, 0, 0]]))
    assert made.transform(probs.astype(np.float16)) == pytest.approx(expected, abs=1e-2)
    wrong = np.where(np.arange(6)[:, None] == 1, row, probs)
    for use in (made.transform, lambda given: made.fit(given, y)):
        with pytest.raises(InputError) as error:
            use(wrong)
        assert error.value.argument == "y_prob"
        assert error.value.row == 1
        assert (seen if isinstance(seen, str) else show_value(seen)) in str(error.value)


def test_one_vs_rest_repairs_and_normalises(tmp_path):
    logits, y = sample(8000)
    probs = softmax(logits, axis=1)
    best, none = (
        mean_log_loss(softmax(z[4000:], axis=1), y[4000:]) for z in (logits / 2.5, logits)
    )
    # A map with two parameters loses about 1/n per class, an isotonic one n^(-2/3).
    for inner, lost in ((PlattRecalibrator(), 0.03), (IsotonicRecalibrator(), 0.1)):
        fitted = OneVsRestRecalibrator(inner).fit(probs[:4000], y[:4000])
        repaired = fitted.transform(probs[4000:])
        assert repaired.sum(axis=1) == pytest.approx(1.0)
        clipped = np.clip(repaired, 1e-6, 1)
        assert mean_log_loss(clipped, y[4000:]) < best + lost * (none - best)
    fitted.save(tmp_path / "map.json")
    again = load_recalibrator(tmp_path / "map.json")
    assert np.array_equal(again.transform(probs), fitted.transform(probs))
    with refused("y_prob", probs[:, :3].shape, holds="4"):
        fitted.transform(probs[:, :3])
