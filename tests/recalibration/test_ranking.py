"""What a map says about the order of predictions is what it does to them."""

import numpy as np
import pytest

from calibrant._format import percent
from calibrant.recalibration import (
    AdaptiveRecalibrator,
    BetaRecalibrator,
    CrossVennAbersRecalibrator,
    IsotonicRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    SmoothRecalibrator,
    SplineRecalibrator,
    TemperatureRecalibrator,
    VennAbersRecalibrator,
)
from calibrant.recalibration.effect import evaluate

RNG = np.random.default_rng(0)
P = RNG.random(1500)
Y = RNG.random(1500) < P**2
SMOOTH = [AdaptiveRecalibrator, PlattRecalibrator, BetaRecalibrator, TemperatureRecalibrator]
SMOOTH += [OffsetRecalibrator, SplineRecalibrator, SmoothRecalibrator]
STEPS = [IsotonicRecalibrator, VennAbersRecalibrator, CrossVennAbersRecalibrator]


@pytest.mark.parametrize("made", [*SMOOTH, *STEPS], ids=lambda made: made.kind)
def test_order_is_kept_where_no_two_predictions_become_equal(made):
    fitted = made().fit(P, Y)
    at = np.linspace(1e-4, 1 - 1e-4, 4001)
    strictly = bool(np.diff(fitted.transform(at)).min() > 0.0)
    assert fitted.keeps_order == strictly == (made in SMOOTH)
    auc = evaluate(fitted, Y, P).auc_cost
    assert auc == pytest.approx(0.0, abs=1e-12) if strictly else auc != 0.0


def test_the_sentence_says_steps_ends_or_a_changed_order():
    platt = PlattRecalibrator().fit(P, Y)
    assert "keeps their order" in platt.explain()
    assert percent(platt.transform([0.5])[0]) in platt.explain()
    for made in STEPS:
        told = made().fit(P, Y).explain()
        assert "makes some of them equal" in told
        assert "keeps" not in told
    turned = PlattRecalibrator().fit(P, ~Y)
    assert not turned.keeps_order
    assert "changes the order" in turned.explain()
    calm = np.random.default_rng(0)
    p = calm.random(2000)
    alone = AdaptiveRecalibrator().fit(p, calm.random(2000) < p)
    assert "leaves predictions as they are" in alone.explain()
