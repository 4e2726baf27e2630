"""What a map does to rows that it was not learned from."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from tests.refusals import refused

from calibrant import InputError, smooth_ece
from calibrant.recalibration import IsotonicRecalibrator, PlattRecalibrator, TemperatureScaling
from calibrant.recalibration.effect import Sample, evaluate, log_losses, stratified_folds

RNG = np.random.default_rng(0)
P = RNG.random(3000)
Y = (RNG.random(3000) < P**2).astype(int)
LEARN, JUDGE = slice(0, 1500), slice(1500, None)


def test_scores_are_those_of_scikit_learn_and_the_interval_is_students():
    steps = IsotonicRecalibrator().fit(P[LEARN], Y[LEARN])
    effect = evaluate(steps, Y[JUDGE], P[JUDGE], confidence=0.9)
    mapped = np.clip(steps.transform(P[JUDGE]), 2.0**-24, 1 - 2.0**-24)
    for scores, p in ((effect.before, P[JUDGE]), (effect.after, mapped)):
        assert scores.log_loss == pytest.approx(log_loss(Y[JUDGE], p))
        assert scores.brier == pytest.approx(brier_score_loss(Y[JUDGE], p), abs=1e-6)
        assert scores.auc == pytest.approx(roc_auc_score(Y[JUDGE], p))
        assert scores.smooth_ece == pytest.approx(smooth_ece(Y[JUDGE], p), abs=1e-6)
    happened = np.where(Y[JUDGE], mapped, 1 - mapped) / np.where(Y[JUDGE], P[JUDGE], 1 - P[JUDGE])
    low, high = stats.ttest_1samp(np.log(happened), 0).confidence_interval(0.9)
    assert (effect.low, effect.high) == (pytest.approx(low), pytest.approx(high))
    assert effect.verdict == "better"


def test_rows_said_twice_are_no_more_rows_when_they_are_clusters():
    platt = PlattRecalibrator().fit(P[LEARN], Y[LEARN])
    once = evaluate(platt, Y[JUDGE], P[JUDGE])
    who = np.tile(np.arange(1500), 2)
    twice = evaluate(platt, np.tile(Y[JUDGE], 2), np.tile(P[JUDGE], 2), cluster=who)
    assert (twice.low, twice.high) == (pytest.approx(once.low), pytest.approx(once.high))
    naive = evaluate(platt, np.tile(Y[JUDGE], 2), np.tile(P[JUDGE], 2))
    assert naive.high - naive.low < 0.8 * (once.high - once.low)


def test_a_map_that_does_harm_is_called_worse():
    upside_down = PlattRecalibrator().fit(P[LEARN], 1 - Y[LEARN])
    assert evaluate(upside_down, Y[JUDGE], P[JUDGE]).verdict == "worse"


def test_what_is_no_map_or_no_confidence_is_refused():
    with pytest.raises(InputError):
        evaluate(TemperatureScaling(), Y, P)
    with refused("recalibrator", "platt"):
        evaluate("platt", Y, P)
    with refused("confidence", 95):
        evaluate(PlattRecalibrator().fit(P, Y), Y, P, confidence=95)


@pytest.mark.parametrize("cluster", [None, np.arange(1500) // 3], ids=["rows", "clusters"])
@pytest.mark.parametrize(
    "made", [PlattRecalibrator(), TemperatureScaling(from_logits=False)], ids=lambda one: one.kind
)
def test_cross_fitting_judges_every_row_by_a_map_that_has_not_seen_it(made, cluster) -> None:
    """An oracle: the folds one by one."""
    draw = np.random.default_rng(3)
    binary = isinstance(made, PlattRecalibrator)
    p = draw.random(1500) if binary else draw.dirichlet([0.5, 1.0, 1.5], 1500)
    y = (draw.random(1500) < p**2).astype(int) if binary else draw.integers(0, 3, 1500)
    fold = stratified_folds(Sample.read(y, p, made=made, cluster=cluster), 5, 0)
    mapped = np.empty_like(p)
    for k in range(5):
        mapped[fold == k] = made.fit(p[fold != k], y[fold != k]).transform(p[fold == k])
    effect = evaluate(made, y, p, cluster=cluster, cv=5)
    assert effect.after.log_loss == pytest.approx(log_losses(y, mapped).mean(), rel=1e-12)
    assert effect.n == 1500
    if cluster is not None:
        assert all(np.unique(fold[cluster == k]).size == 1 for k in range(500))
    if binary:  # a rising map keeps the order within each fold, and steps make ties
        assert effect.after.brier == pytest.approx(np.mean((mapped - y) ** 2), rel=1e-12)
        assert effect.auc_cost == pytest.approx(0.0, abs=1e-12)
        assert evaluate(IsotonicRecalibrator(), y, p, cv=5).auc_cost > 0.0
