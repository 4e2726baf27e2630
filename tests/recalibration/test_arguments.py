"""Mistakes in the arguments of maps are refused by name."""

import numpy as np
import pytest
from tests.refusals import refused

from calibrant import Sketch
from calibrant.integrations.classifier import RecalibratedClassifier
from calibrant.recalibration import (
    IsotonicRecalibrator,
    OffsetRecalibrator,
    OneVsRestRecalibrator,
    PlattRecalibrator,
    SmoothRecalibrator,
    TemperatureScaling,
    choose_recalibrator,
)

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)
THREE = np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])


@pytest.mark.parametrize("target", [2, 0, -1, np.nan, "0.1", True])
@pytest.mark.parametrize("rows", [(P,), (P, Y), (Sketch.from_arrays(Y, P),)])
def test_a_target_mean_is_a_rate(target, rows):
    with refused("target_mean"):
        OffsetRecalibrator(target_mean=target).fit(*rows)


@pytest.mark.parametrize("target", [1e-30, 0.1, 0.999])
def test_a_target_mean_needs_no_outcomes(target):
    for rows in ((P,), (Sketch.from_arrays(np.zeros(300), P),)):
        moved = OffsetRecalibrator(target_mean=target).fit(*rows).transform(P)
        assert moved.mean() == pytest.approx(target, rel=1e-3)


@pytest.mark.parametrize(
    "settings",
    [{"bandwidth": v} for v in ("x", [0.1], True)]
    + [{"pseudo_rows": v} for v in ("a", None, True)],
)
def test_settings_of_the_smooth_map_are_numbers(settings):
    with refused(next(iter(settings))):
        SmoothRecalibrator(**settings).fit(P, Y)


@pytest.mark.parametrize(
    ("given", "holds"),
    [({"cv": v}, repr(v)) for v in (2.5, "5", None, True)]
    + [
        ({"candidates": [PlattRecalibrator()]}, "mapping"),
        ({"candidates": {"none": IsotonicRecalibrator()}}, "'none'"),
    ]
    + [
        ({"candidates": {"a": v}}, "'a'")
        for v in ("platt", PlattRecalibrator, TemperatureScaling())
    ],
)
def test_a_choice_is_of_maps(given, holds):
    with refused(next(iter(given)), holds=holds):
        choose_recalibrator(Y, P, **given)


@pytest.mark.parametrize("wrong", ["plat", TemperatureScaling(), PlattRecalibrator])
def test_what_is_no_map_is_refused(wrong):
    with refused("recalibrator"):
        OneVsRestRecalibrator(wrong).fit(THREE, [0, 1, 1, 2])
    with refused("recalibrator"):
        RecalibratedClassifier(recalibrator=wrong).fit(P[:, None], Y)


@pytest.mark.parametrize("tolerance", ["x", None, True, 0.0, 1.0])
def test_a_tolerance_is_a_number(tolerance):
    with refused("tolerance", tolerance):
        PlattRecalibrator().fit(P, Y).to_sql("p", tolerance=tolerance)
