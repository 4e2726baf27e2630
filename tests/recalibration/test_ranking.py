"""What a map says about the order of predictions is what it does to them."""

import numpy as np
import pytest
from scipy.special import expit

from calibrant._format import percent
from calibrant.plotting.map_diagram import map_diagram
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
from calibrant.recalibration.effect import effect_of
from calibrant.recalibration.ranking import order_of_map

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
    assert order_of_map(fitted) == ("kept" if made in SMOOTH else "merged")
    auc = effect_of(fitted, Y, P).auc_cost
    assert auc == pytest.approx(0.0, abs=1e-12) if strictly else auc != 0.0


def test_the_sentence_says_steps_ends_or_a_changed_order():
    platt = PlattRecalibrator().fit(P, Y)
    assert "keeps their order, but makes those within 6e-8 of 0 or 1 equal" in platt.explain()
    assert percent(platt.transform([0.5])[0]) in platt.explain()
    for made in STEPS:
        told = made().fit(P, Y).explain()
        assert "into steps" in told
        assert "keeps" not in told
    turned = PlattRecalibrator().fit(P, ~Y)
    assert not turned.keeps_order
    assert "changes the order" in turned.explain()
    calm = np.random.default_rng(0)
    p = calm.random(2000)
    alone = AdaptiveRecalibrator().fit(p, calm.random(2000) < p)
    assert "leaves predictions as they are" in alone.explain()


def test_a_diagram_judges_the_order_of_its_own_rows():
    """All predictions so close to 1 that they become equal: the ranking is gone, and it is told."""
    z = RNG.normal(18, 2.5, 2000)
    p, y = 1 - np.exp(-z), RNG.random(2000) < expit((z - 18) / 2)
    crowded = map_diagram(y, p, recalibrator=PlattRecalibrator(), resamples=20)
    assert not crowded.keeps_order
    assert crowded.effect.auc_cost > 0.05
    apart = map_diagram(Y, P, recalibrator=PlattRecalibrator(), resamples=20)
    assert apart.keeps_order
    assert map_diagram(PlattRecalibrator().fit(P, Y)).keeps_order
