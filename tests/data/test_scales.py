"""Scales: maps that undo one another, fixed grids, names that come back."""

import pickle

import numpy as np
import pytest
from tests.refusals import refused

from calibrant.data.scales import Scale, as_scale, loss_scale, relative_scale

NAMES = ["unreflected", "logit", "logit/4", "relative:0.002"]
P = np.concatenate([[1e-12, 1e-6], np.linspace(0.001, 0.999, 999), [1 - 1e-6]])


@pytest.mark.parametrize("name", NAMES)
def test_positions_lie_inside_the_margins_and_come_back(name):
    scale = as_scale(name)
    position = scale.locate(np.concatenate([[0.0], P, [1.0]]))
    assert np.all(np.diff(position) >= 0)
    assert position[0] == pytest.approx(scale.margin / scale.length)
    assert position[-1] == pytest.approx(1 - scale.margin / scale.length)
    assert scale.prediction(scale.locate(P)) == pytest.approx(P, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("name", [*NAMES, "boosting", "probability"])
def test_a_name_gives_back_the_scale_and_survives_pickling(name):
    scale = as_scale(name)
    assert as_scale(scale.name) == scale
    assert pickle.loads(pickle.dumps(scale)) == scale


@pytest.mark.parametrize("name", NAMES)
def test_steepness_and_curvature_bound_the_prediction(name):
    scale = as_scale(name)
    z = np.linspace(*scale.limits, 20_001)
    p = scale.inverse(z)
    step = z[1] - z[0]
    assert np.abs(np.diff(p)).max() / step <= scale.slopes[0] * (1 + 1e-9)
    assert np.abs(np.diff(p, 2)).max() / step**2 <= scale.slopes[1] * (1 + 1e-4) + 1e-6
    z, step = np.linspace(*scale.limits, 2001, retstep=True)
    p = scale.inverse(z)
    for order, bound in zip((3, 4), scale.slopes[2:], strict=True):
        noise = 2.0**order * 1e-15 / step**order
        assert np.abs(np.diff(p, order)).max() / step**order <= bound * (1 + 1e-4) + noise


def test_logits_do_not_pass_through_probabilities():
    logit = as_scale("logit")
    position = logit.locate_logits(np.array([20.0, 25.0]))
    assert np.diff(position)[0] == pytest.approx(5.0 / logit.length)
    assert logit.locate(np.array([1 - 1e-17]))[0] == logit.locate(np.array([1.0]))[0]


def test_the_slope_of_a_potential_is_its_scale():
    assert loss_scale("squared").z(P) == pytest.approx(P)
    assert loss_scale("log") == as_scale("logit")
    p = np.linspace(0.01, 0.99, 99)
    z = loss_scale("exponential").z(p)
    assert loss_scale("exponential").inverse(z) == pytest.approx(p)
    own = loss_scale(lambda p: p**3, np.cbrt)
    assert own.z(np.array([0.5]))[0] == 0.125
    with refused("inverse"):
        loss_scale(np.log)
    with refused("loss", "hinge"):
        loss_scale("hinge")


def test_logit_over_four_is_nowhere_flatter_than_probability():
    z = as_scale("logit/4").z(P)
    assert np.all(np.diff(z) >= np.diff(P) * (1 - 1e-12))


def test_relative_scale_is_the_probability_near_the_base_rate():
    z = relative_scale(0.01).z(np.array([0.00999, 0.01001]))
    assert np.diff(z)[0] == pytest.approx(2e-5, rel=1e-3)


@pytest.mark.parametrize("name", [*NAMES, "boosting", "probability", "relative"])
def test_a_scale_of_ones_own_takes_no_name_that_is_known(name):
    with refused("name", name):
        Scale(lambda p: p**3, np.cbrt, name=name)


def test_refuses_what_does_not_increase_or_come_back():
    with refused("forward"):
        Scale(lambda p: -p, lambda z: -z)
    with refused("forward", holds="'steps'"):
        Scale(np.floor, np.ceil, name="steps")
    with refused("inverse", option="forward"):
        Scale(lambda p: p**2, lambda z: z)
    with refused("scale", "relative"):
        as_scale("relative")
    with refused("scale", "relative:high"):
        as_scale("relative:high")
    with refused("base_rate", 1.0):
        relative_scale(1.0)
    with refused("scale", "boosting", option="calibrant.smooth_ece"):
        as_scale("boosting").locate(P)
    with refused("scale", 3):
        as_scale(3)


def test_refuses_a_wave_between_even_points():
    with refused("forward"):
        Scale(lambda p: p + 0.002 * np.sin(512 * np.pi * p) * (p > 0.01) * (p < 0.99), lambda z: z)
