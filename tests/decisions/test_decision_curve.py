"""Decision curves: net benefit by counting, bands, what miscalibration costs, and every picture."""

import pickle

import numpy as np
import pytest
from tests.profiles.cancer import breast_cancer
from tests.refusals import refused

import calibrant as cal
from calibrant.recalibration.parametric import PlattRecalibrator

THRESHOLDS = (0.1, 0.2, 0.5)


def rows(seed=0, n=4000, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


def counted(y, p, t, at=None):
    acts = p >= (t if at is None else at)
    return (y * acts).mean() - ((1 - y) * acts).mean() * t / (1 - t)


def test_breast_cancer_has_the_values_of_dcurves():
    found = cal.decision_curve(*breast_cancer(), thresholds=THRESHOLDS).benefit
    assert found.value == pytest.approx([0.3360719875, 0.2966549296, 0.25], abs=1e-10)
    assert found.treat_all == pytest.approx([0.3192488263, 0.2341549296, -0.2253521127], abs=1e-10)


def test_net_benefit_is_counted_and_a_prediction_at_the_threshold_acts():
    y, p = rows(n=500)
    p = np.round(p, 1)
    thresholds = [0.1, 0.25, 0.3, 0.7]
    expected = [counted(y, p, t) for t in thresholds]
    assert cal.decision_curve(y, p, thresholds=thresholds).benefit.value == pytest.approx(expected)
    sketch = cal.Sketch.from_arrays(y, p)
    assert cal.decision_curve(sketch, thresholds=thresholds).benefit.value == pytest.approx(
        expected
    )


def test_a_sketch_is_near_its_rows():
    y, p = rows()
    thresholds = [0.1, 1 / 3, 0.77]
    exact = cal.decision_curve(y, p, thresholds=thresholds).benefit
    for scale in ("probability", "logit"):
        sketch = cal.Sketch.from_arrays(y, p, scale=scale)
        ours = cal.decision_curve(sketch, thresholds=thresholds).benefit
        assert ours.value == pytest.approx(
            exact.value, abs=4 / y.size
        )  # a row in a cell that is cut
        assert np.all(ours.low <= exact.value)
        assert np.all(exact.value <= ours.high)


def test_a_calibrated_model_loses_nothing_and_a_distorted_one_does():
    calibrated = cal.decision_curve(*rows()).benefit
    assert np.all(calibrated.lost_low <= 0.0)
    assert np.all(calibrated.lost_high >= 0.0)
    y, p = rows(power=3.0)
    found = cal.decision_curve(y, p)
    # Who knew the truth would act where p³ ≥ t.
    best = np.array([counted(y, p, t, at=t ** (1 / 3)) for t in found.benefit.thresholds])
    shown = found.benefit.lost_low > 0.0
    assert 0.3 in found.benefit.thresholds[shown].round(2)
    assert np.all(found.benefit.recalibrated[shown] <= best[shown] + 0.01)
    assert "lost" in found.label


def test_any_map_can_be_judged():
    y, p = rows(power=3.0)
    platt = cal.decision_curve(y, p, recalibrator=PlattRecalibrator(), thresholds=0.3).benefit
    assert platt.lost_low[0] > 0.0


def test_copies_in_clusters_are_no_news_and_soft_labels_are_heard():
    y, p = rows(n=300)
    alone = cal.decision_curve(y, p, thresholds=THRESHOLDS).benefit
    copied = cal.decision_curve(
        np.repeat(y, 3),
        np.repeat(p, 3),
        cluster=np.repeat(np.arange(300), 3),
        thresholds=THRESHOLDS,
    ).benefit
    assert copied.value == pytest.approx(alone.value)
    assert copied.high - copied.low == pytest.approx(alone.high - alone.low, rel=0.1)
    weighted = cal.decision_curve(
        y, p, sample_weight=np.full(300, 3.0), thresholds=THRESHOLDS
    ).benefit
    assert weighted.value == pytest.approx(alone.value, rel=1e-9)
    # The folds, and with them the maps that say how likely an outcome is, are dealt anew.
    assert weighted.high == pytest.approx(alone.high, rel=0.01)
    soft = cal.decision_curve(y.astype(float), p, labels="soft", thresholds=THRESHOLDS).benefit
    assert soft.value == pytest.approx(alone.value)
    assert soft.high - soft.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_without_rows_to_learn_from_there_is_no_loss_but_a_reason():
    found = cal.decision_curve([0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4], thresholds=[0.2])
    assert np.isnan(found.lost[0])
    assert "too few rows" in found.benefit.note
    assert np.isfinite(found.benefit.value[0])


def test_it_is_drawn_and_kept(tmp_path):
    curve = cal.decision_curve(*rows(n=500, power=3.0), thresholds=THRESHOLDS)
    drawn = curve.plot()
    assert {"curve", "confidence_band", "treat_all", "treat_none", "recalibrated"} <= set(
        drawn.artists
    )
    assert curve.to_svg().startswith("<svg")
    assert curve.save(tmp_path / "curve.svg").exists()
    assert list(curve.to_frame("polars").columns)[:2] == ["thresholds", "value"]
    assert pickle.loads(pickle.dumps(curve)).to_dict() == curve.to_dict()
    assert "threshold" in str(curve)
    with pytest.raises(ValueError, match="read-only"):
        curve.benefit.value[0] = 0.0


@pytest.mark.parametrize("seed", [3])
def test_rows_and_their_sketch_are_dealt_alike(seed):
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.random(1500), np.round(rng.random(1500), 2), [0.0, 1.0, 1.0]])
    y = (rng.random(p.size) < p**2).astype(int)
    own = cal.decision_curve(y, p, random_state=seed).benefit
    cells = cal.decision_curve(cal.Sketch.from_arrays(y, p), random_state=seed).benefit
    for name in ("value", "lost", "recalibrated"):
        gap = np.abs(getattr(own, name) - getattr(cells, name))
        odds = own.thresholds / (1 - own.thresholds)
        assert np.all(gap <= np.maximum(odds, 1) * 4 / y.size), name  # rows in cells that are cut


def test_sketches_of_clusters_give_what_their_rows_give():
    rng = np.random.default_rng(5)
    p = rng.random(400)
    rows = {"y": (rng.random(400) < p**2).astype(int), "p": p, "c": np.arange(400) // 4}
    sketches = cal.scan(rows, y_true="y", y_prob="p", cluster="c")
    own = cal.decision_curve(rows["y"], p, cluster=rows["c"]).benefit
    apart = cal.decision_curve(sketches, cluster="c").benefit
    assert (own.clusters, apart.clusters) == (100, 100)
    for name in ("value", "low", "high", "lost", "lost_low"):
        np.testing.assert_allclose(getattr(own, name), getattr(apart, name), atol=1e-9)
    with refused("cluster", "d"):
        cal.decision_curve(sketches, cluster="d")
