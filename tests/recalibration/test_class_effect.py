"""What a map of classes does to rows that it was not learned from."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss
from tests.refusals import refused

import calibrant as cal
from calibrant.recalibration import (
    BetaRecalibrator,
    OneVsRestRecalibrator,
    PlattRecalibrator,
    StructuredScaling,
    TemperatureScaling,
)
from calibrant.recalibration.effect import evaluate

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(0, 1.5, (1600, 3))
Y = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
SURE = 2.5 * LOGITS
PROBS = softmax(SURE, axis=1)
NAMES = ["zebra", "ant", "Mole"]
LEARN, JUDGE = slice(0, 800), slice(800, None)


def test_scores_are_those_of_scikit_learn_and_the_interval_is_students():
    learned = StructuredScaling(from_logits=False, matrix=True).fit(PROBS[LEARN], Y[LEARN])
    effect = evaluate(learned, Y[JUDGE], PROBS[JUDGE], confidence=0.9)
    mapped = learned.transform(PROBS[JUDGE])
    for scores, probs in ((effect.before, PROBS[JUDGE]), (effect.after, mapped)):
        assert scores.log_loss == pytest.approx(log_loss(Y[JUDGE], probs))
        assert scores.accuracy == accuracy_score(Y[JUDGE], probs.argmax(axis=1))
        assert scores.brier == pytest.approx(
            np.mean(np.sum((probs - np.eye(3)[Y[JUDGE]]) ** 2, axis=1))
        )
        assert scores.smooth_ece == pytest.approx(cal.smooth_ece(Y[JUDGE], probs))
    rows = np.arange(800)
    saved = np.log(mapped[rows, Y[JUDGE]] / PROBS[JUDGE][rows, Y[JUDGE]])
    low, high = stats.ttest_1samp(saved, 0).confidence_interval(0.9)
    assert (effect.low, effect.high) == (pytest.approx(low), pytest.approx(high))
    assert effect.verdict == "better"
    assert effect.accuracy_cost == effect.before.accuracy - effect.after.accuracy
    assert effect.to_dict()["after"]["accuracy"] == effect.after.accuracy


def test_logits_names_and_orders_of_columns_give_one_effect():
    labels = np.array(NAMES)[Y]
    frame = pd.DataFrame(PROBS, columns=NAMES)
    by_name = TemperatureScaling(from_logits=False).fit(frame[LEARN], labels[LEARN])
    expected = evaluate(by_name, labels[JUDGE], frame[JUDGE])
    other = frame[["ant", "Mole", "zebra"]]
    for y, rows, options in (
        (labels, other, {}),
        (labels, PROBS, {}),
        (Y, PROBS, {}),
        (labels, other.to_numpy(), {"classes": list(other)}),
    ):
        same = evaluate(by_name, y[JUDGE], rows[JUDGE], **options)
        assert same.gain == pytest.approx(expected.gain)
        assert same.after.log_loss == pytest.approx(expected.after.log_loss)
    of_logits = TemperatureScaling().fit(SURE[LEARN], Y[LEARN])
    assert evaluate(of_logits, Y[JUDGE], SURE[JUDGE]).gain == pytest.approx(expected.gain, abs=1e-6)


def test_weights_count_and_clusters_are_units():
    learned = OneVsRestRecalibrator(BetaRecalibrator()).fit(PROBS[LEARN], Y[LEARN])
    once = evaluate(learned, Y[JUDGE], PROBS[JUDGE])
    twice = {"cluster": np.tile(np.arange(800), 2)}
    said = evaluate(learned, np.tile(Y[JUDGE], 2), np.tile(PROBS[JUDGE], (2, 1)), **twice)
    assert (said.low, said.high) == (pytest.approx(once.low), pytest.approx(once.high))
    weight = RNG.integers(1, 4, 800)
    heavy = evaluate(learned, Y[JUDGE], PROBS[JUDGE], sample_weight=weight)
    rows = np.repeat(np.arange(800, 1600), weight)
    assert heavy.gain == pytest.approx(evaluate(learned, Y[rows], PROBS[rows]).gain)


def test_a_map_of_one_event_and_a_map_of_classes_are_not_mixed_up():
    platt = PlattRecalibrator().fit(PROBS[:, 0], Y == 0)
    for options in ({}, {"cv": 5}):
        with refused("y_prob", (1600, 3)):
            evaluate(platt, Y, PROBS, **options)
        with refused("y_prob", (1600,)):
            scaling = TemperatureScaling(from_logits=False).fit(PROBS, Y)
            evaluate(scaling, Y, PROBS[:, 0], **options)
    with refused("y_prob", (1600, 3)):
        PlattRecalibrator().fit(PROBS, Y)
    with refused("percent"):
        evaluate(scaling, Y, PROBS, percent=True)
    with refused():
        scaling.to_sql("p")
