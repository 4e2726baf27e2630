"""Choosing a map on rows it has not seen."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from calibrant import InputError
from calibrant.recalibration.choice import choose_recalibrator, log_losses
from calibrant.recalibration.parametric import IsotonicRecalibrator, PlattRecalibrator


def test_calibrated_predictions_are_left_alone():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    choice = choose_recalibrator(p, (rng.random(3000) < p).astype(int))
    assert choice.best == "none"
    assert np.array_equal(choice.recalibrator.transform(p), p)


def test_the_map_that_made_the_data_wins():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, 4000)
    y = (rng.random(4000) < expit(0.4 * z + 0.7)).astype(int)
    choice = choose_recalibrator(expit(z), y)
    assert choice.best in ("platt", "beta")
    best, none = (next(c for c in choice.candidates if c.name == n) for n in (choice.best, "none"))
    assert best.loss < none.loss
    assert best.smooth_ece < 0.5 * none.smooth_ece
    assert "* " + choice.best in str(choice)
    assert choice.to_dict()["best"] == choice.best


def test_named_candidates_brier_loss_and_weights():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    y = (rng.random(500) < p**2).astype(int)
    choice = choose_recalibrator(
        p,
        y,
        np.full(500, 2.0),
        candidates={"iso": IsotonicRecalibrator(), "platt": PlattRecalibrator()},
        loss="brier",
    )
    assert {c.name for c in choice.candidates} == {"none", "iso", "platt"}
    none = next(c for c in choice.candidates if c.name == "none")
    assert none.loss == pytest.approx(np.mean((p - y) ** 2))
    assert none.gain == 0.0


def test_log_losses_are_scikit_learns():
    rng = np.random.default_rng(0)
    p, y = rng.random(100), rng.integers(0, 2, 100)
    assert log_losses(y, p).mean() == pytest.approx(log_loss(y, p))
    assert np.isfinite(log_losses(np.array([1.0]), np.array([0.0])))[0]


def test_refuses_bad_settings():
    with pytest.raises(InputError, match="loss"):
        choose_recalibrator([0.1, 0.9], [0, 1], loss="hinge")
    with pytest.raises(InputError, match="folds"):
        choose_recalibrator([0.1, 0.9], [0, 1], folds=1)
