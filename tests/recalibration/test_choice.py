"""Choosing a map on rows it has not seen."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import log_loss
from tests.refusals import refused

from calibrant import InputError, Sketch
from calibrant.errors import TooFewRows
from calibrant.recalibration.choice import choose_recalibrator
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.scaling import TemperatureScaling


def test_calibrated_predictions_are_left_alone():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    choice = choose_recalibrator((rng.random(3000) < p).astype(int), p)
    assert choice.best == "none"
    assert np.array_equal(choice.recalibrator.transform(p), p)


def test_the_map_that_made_the_data_wins():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, 4000)
    y = (rng.random(4000) < expit(0.4 * z + 0.7)).astype(int)
    choice = choose_recalibrator(y, expit(z))
    assert choice.best in ("platt", "beta")
    best, none = (next(c for c in choice.candidates if c.name == n) for n in (choice.best, "none"))
    assert best.loss < none.loss
    assert best.smooth_ece < 0.5 * none.smooth_ece
    assert "* " + choice.best in str(choice)
    assert choice.to_dict()["best"] == choice.best


def test_named_candidates_brier_loss_and_weights():
    rng = np.random.default_rng(1)
    p, weight = rng.random(500), rng.integers(1, 4, 500)
    y = (rng.random(500) < p**2).astype(int)
    maps = {"iso": IsotonicRecalibrator(), "platt": PlattRecalibrator()}
    choice = choose_recalibrator(y, p, sample_weight=weight, candidates=maps, loss="brier")
    assert {c.name for c in choice.candidates} == {"none", "iso", "platt"}
    none = next(c for c in choice.candidates if c.name == "none")
    assert none.loss == pytest.approx(np.mean(np.repeat((p - y) ** 2, weight)))
    assert none.gain == 0.0


def test_a_row_of_weight_three_is_three_rows_that_belong_together():
    rng = np.random.default_rng(2)
    p, weight = rng.random(400), rng.integers(1, 4, 400)
    y = (rng.random(400) < p**2).astype(int)
    maps = {"iso": IsotonicRecalibrator()}
    rows = np.repeat(np.arange(400), weight)
    weighted = choose_recalibrator(y, p, sample_weight=weight, candidates=maps)
    repeated = choose_recalibrator(y[rows], p[rows], candidates=maps, cluster=rows)
    for one, other in zip(weighted.candidates, repeated.candidates, strict=True):
        assert other.loss == pytest.approx(one.loss)
        assert other.gain_se == pytest.approx(one.gain_se)
        assert other.smooth_ece == pytest.approx(one.smooth_ece)


def test_a_map_that_remembers_events_is_seen_through_when_they_are_held_out_whole():
    rng = np.random.default_rng(3)
    p = np.repeat(rng.random(200), 20)
    y = np.repeat((rng.random(200) < p[::20]).astype(int), 20)
    event = np.repeat(rng.permutation(200), 20)
    assert choose_recalibrator(y, p).best != "none"
    assert choose_recalibrator(y, p, cluster=event).best == "none"


@pytest.mark.parametrize("seed", range(2))
def test_two_events_are_enough_and_one_is_not(seed):
    rng = np.random.default_rng(seed)
    p, y = rng.random(200), np.zeros(200, dtype=int)
    y[rng.permutation(200)[:2]] = 1
    assert len(choose_recalibrator(y, p, random_state=seed).candidates) == 10
    assert len(choose_recalibrator(1 - y, p, random_state=seed).candidates) == 10
    with refused("y_true", 1, holds=("rows", "200"), kind=TooFewRows):
        choose_recalibrator(np.arange(200) == 7, p)
    with refused("y_true", 1, holds=("clusters", "20"), kind=TooFewRows):
        choose_recalibrator(np.arange(200) < 5, p, cluster=np.arange(200) // 10)


def test_refuses_bad_settings():
    with refused("cv"):
        choose_recalibrator([0, 1], [0.1, 0.9], cv=1)
    with refused("cv", holds=("2", "clusters")):
        choose_recalibrator([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.4], cluster=[1, 1, 2, 2])
    with refused("cluster"):
        choose_recalibrator([0, 1], [0.1, 0.9], cluster=[1, 2, 3])


def classes_of(n, sharpness, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, 4))
    chance = softmax(logits, axis=1)
    y = (chance.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(sharpness * logits, axis=1), y


def test_maps_of_many_classes_are_compared_too():
    probs, y = classes_of(400, 2.5)
    choice = choose_recalibrator(y, probs)
    assert choice.best != "none"
    lines = {line.name: line for line in choice.candidates}
    assert lines["none"].loss == pytest.approx(log_loss(y, probs))
    assert lines[choice.best].smooth_ece < 0.5 * lines["none"].smooth_ece
    assert choice.recalibrator.transform(probs).sum(axis=1) == pytest.approx(1.0)
    alone = choose_recalibrator(*reversed(classes_of(400, 1.0)))
    assert alone.best == "none"
    assert np.array_equal(alone.recalibrator.transform(probs), probs)


def test_rows_of_many_classes_that_break_a_rule_can_be_dropped():
    probs, y = classes_of(300, 2.5)
    maps = {"temperature": TemperatureScaling(from_logits=False)}
    cluster, weight = np.arange(300) // 3, np.ones(300)
    bad, labels = probs.copy(), y.astype(float)
    bad[0] = np.nan
    bad[5] *= 0.9
    labels[9], labels[30], weight[50] = np.nan, 17, -1.0
    others = ~np.isin(np.arange(300), [0, 5, 9, 30, 50])
    for rows in ((labels, probs, np.ones(300)), (y, bad, np.ones(300)), (y, probs, weight)):
        with refused():
            choose_recalibrator(rows[0], rows[1], sample_weight=rows[2], candidates=maps)
    found = choose_recalibrator(labels, bad, sample_weight=weight, candidates=maps,
                                cluster=cluster, on_invalid="drop")  # fmt: skip
    expected = choose_recalibrator(y[others], probs[others], sample_weight=weight[others],
                                   candidates=maps, cluster=cluster[others])  # fmt: skip
    assert found.to_dict() == expected.to_dict()


def test_class_names_and_candidates_of_many_classes():
    probs, y = classes_of(400, 2.5)
    names = np.array(["a", "b", "c", "d"])
    maps = {"t": TemperatureScaling(from_logits=False)}
    by_name = choose_recalibrator(names[y], probs, classes=list(names), candidates=maps)
    assert by_name.to_dict() == choose_recalibrator(y, probs, candidates=maps).to_dict()
    for wrong in (TemperatureScaling(), PlattRecalibrator(), "t"):
        with refused("candidates"):
            choose_recalibrator(y, probs, candidates={"t": wrong})
    with pytest.raises(InputError) as error:
        choose_recalibrator(names[y], probs)
    assert error.value is not None


def test_a_sketch_that_counts_rows_is_as_good_as_the_rows():
    rng = np.random.default_rng(0)
    p = rng.random(800)
    y = rng.random(800) < p**2
    choice = choose_recalibrator(
        Sketch.from_arrays(y, p), candidates={"platt": PlattRecalibrator()}
    )
    assert choice.best == "platt"
    with refused("y_prob"):
        choose_recalibrator(Sketch.from_arrays(y, p), p)


def test_both_columns_of_predict_proba_are_refused_unless_maps_of_classes_are_named():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y, both = rng.random(300) < p, np.column_stack([1 - p, p])
    with refused("y_prob", holds="`y_prob[:, 1]`"):
        choose_recalibrator(y, both)
    named = {"temperature": TemperatureScaling(from_logits=False)}
    assert {one.name for one in choose_recalibrator(y, both, candidates=named).candidates} == {
        "none",
        "temperature",
    }
