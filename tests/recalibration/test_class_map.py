"""Names of classes: every way into a map keeps them, and columns are taken by them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax
from sklearn.naive_bayes import GaussianNB
from tests.refusals import refused

import calibrant as cal
from calibrant.data.classes import SMALLEST_LOGARITHM
from calibrant.recalibration import (
    BetaRecalibrator,
    IdentityOfClasses,
    OneVsRestRecalibrator,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.recalibration.learned_map import load_recalibrator

RNG = np.random.default_rng(0)
NAMES = ["zebra", "ant", "Mole"]
LOGITS = RNG.normal(0, 1.5, (600, 3))
Y = (LOGITS + np.array([0.8, 0.0, -0.8]) + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
LABELS = np.array(NAMES)[Y]
PROBS = softmax(LOGITS, axis=1)
FRAME = pd.DataFrame(PROBS, columns=[f"p_{name}" for name in NAMES])
OTHER = FRAME[["p_ant", "p_Mole", "p_zebra"]]
MAPS = [
    TemperatureScaling(from_logits=False),
    VectorScaling(from_logits=False),
    StructuredScaling(from_logits=False),
    StructuredScaling(from_logits=False, matrix=True),
    OneVsRestRecalibrator(BetaRecalibrator()),
    IdentityOfClasses(),
]


def ways_in():
    for made in MAPS:
        yield f"{made.kind}, frame", made.fit(FRAME, LABELS)
        yield f"{made.kind}, classes", made.fit(PROBS, LABELS, classes=NAMES)
        yield f"{made.kind}, both", made.fit(FRAME, Y, classes=None)
    choose = cal.choose_recalibrator
    yield "choose, frame", choose(LABELS, FRAME).recalibrator
    yield "choose, classes", choose(LABELS, PROBS, classes=NAMES).recalibrator
    table = FRAME.assign(label=LABELS)
    columns = {"data": table, "multiclass": "confidence"}
    yield "choose, data", choose("label", list(FRAME), **columns).recalibrator
    X = RNG.normal(size=(600, 2)) + np.eye(3)[Y][:, :2]
    for name in ("adaptive", "choose", "isotonic"):
        model = cal.RecalibratedClassifier(GaussianNB(), name).fit(X, LABELS)
        yield f"classifier, {name}", model.recalibrator_


def test_every_way_into_a_map_keeps_names_and_takes_columns_by_them(tmp_path):
    for way, learned in ways_in():
        keeps_names(way, learned, tmp_path)


def keeps_names(way, learned, tmp_path):
    assert sorted(learned.classes_) == sorted(NAMES), way
    own = FRAME[[f"p_{name}" for name in learned.classes_]]
    in_order = learned.transform(own)
    for frame in (FRAME, OTHER):
        pd.testing.assert_frame_equal(learned.transform(frame)[own.columns], in_order)
    assert np.array_equal(learned.transform(own.to_numpy()), in_order)
    named = learned.transform(OTHER.to_numpy(), classes=["ant", "Mole", "zebra"])
    assert np.array_equal(named, learned.transform(OTHER))
    learned.save(tmp_path / "map.json")
    again = load_recalibrator(tmp_path / "map.json")
    assert again.classes_ == learned.classes_
    assert np.array_equal(again.transform(OTHER), learned.transform(OTHER))
    with refused("y_prob"):
        learned.transform(FRAME.rename(columns={"p_ant": "p_elk"}))
    with refused("y_prob", (600, 2), holds="3"):
        learned.transform(PROBS[:, :2])


@pytest.mark.parametrize(
    "made", [TemperatureScaling(), VectorScaling(), StructuredScaling()], ids=lambda made: made.kind
)
def test_probabilities_are_not_taken_for_logits(made):
    with refused("y_prob", option="from_logits"):
        made.fit(PROBS, Y)
    made.fit(LOGITS, Y)
    with refused("y_prob", option="from_logits"):
        made.transform(PROBS[:5])
    made.transform(LOGITS[:1])
    mixed = np.vstack([PROBS[:1], LOGITS[1:]])  # one such row is chance
    assert made.transform(mixed)[1:] == pytest.approx(made.transform(LOGITS[1:]))


@pytest.mark.parametrize(
    "verb", [cal.assess, cal.choose_recalibrator, cal.smooth_ece, cal.confidence]
)
def test_no_function_takes_probabilities_for_logits(verb):
    with refused("y_prob", option="from_logits"):
        verb(Y, PROBS, from_logits=True)


def test_a_masked_class_is_a_probability_of_zero():
    masked = np.where(RNG.random(LOGITS.shape) < 0.1, -np.inf, LOGITS)
    masked[np.arange(600), Y] = LOGITS[np.arange(600), Y]
    probs = softmax(masked, axis=1)
    for kind in (TemperatureScaling, StructuredScaling):
        of_logits = kind().fit(masked, Y)
        of_probs = kind(from_logits=False).fit(probs, Y)
        assert of_logits.transform(masked) == pytest.approx(of_probs.transform(probs), abs=1e-6)
    floor = log_softmax(masked[:1], axis=1).clip(SMALLEST_LOGARITHM)
    temperature = TemperatureScaling().fit(masked, Y)
    expected = softmax(floor / temperature.temperature, axis=1)
    assert temperature.transform(masked[:1]) == pytest.approx(expected, abs=1e-12)
    chosen = cal.choose_recalibrator(Y, masked, from_logits=True)
    assert np.isfinite(chosen.recalibrator.transform(probs)).all()
    for bad in (np.nan, np.inf):
        with refused("y_prob", row=3):
            TemperatureScaling().fit(np.where(np.arange(600)[:, None] == 3, bad, LOGITS), Y)
    with refused("y_prob", -np.inf, row=0):
        temperature.transform([[-np.inf] * 3])


@pytest.mark.parametrize("made", MAPS, ids=lambda made: made.kind)
def test_half_precision_rows_sum_to_one_as_well_as_they_can(made):
    half = PROBS.astype(np.float16)
    expected = made.fit(PROBS, Y).transform(PROBS)
    for rows in (half, pd.DataFrame(half)):
        mapped = np.asarray(made.fit(rows, Y).transform(rows))
        assert mapped == pytest.approx(expected, abs=0.02)


def test_rows_that_break_a_rule_are_left_out_of_a_fit_on_demand():
    broken = np.array(PROBS)
    broken[3] = np.nan
    with refused("y_prob", row=3):
        OneVsRestRecalibrator().fit(broken, Y)
    made = OneVsRestRecalibrator().fit(broken, Y, on_invalid="drop")
    kept = np.arange(len(Y)) != 3
    expected = OneVsRestRecalibrator().fit(PROBS[kept], Y[kept])
    np.testing.assert_array_equal(made.transform(PROBS), expected.transform(PROBS))
