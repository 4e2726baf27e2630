"""SmoothECE on the paper's general metrics, against quadrature of the sum of Gaussians."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import expit
from tests.refusals import refused

from calibrant import Sketch, smooth_ece, smooth_ece_result
from calibrant.data.scales import Scale, as_scale

SCALES = ["logit", "logit/4", "unreflected", "boosting", "relative:0.1"]


def by_quadrature(y, p, scale, sigma):
    z = as_scale(scale).z(p)
    far = sum(abs(np.sum((p - y)[z == end])) for end in (-np.inf, np.inf)) / p.size
    z, r = z[np.isfinite(z)], ((p - y) / p.size)[np.isfinite(z)]
    t = np.linspace(z.min() - 9 * sigma, z.max() + 9 * sigma, 100_001)
    smooth = np.zeros_like(t)
    for at, residual in zip(z, r, strict=True):
        smooth += residual * np.exp(-0.5 * ((t - at) / sigma) ** 2)
    return trapezoid(np.abs(smooth), t) / (sigma * np.sqrt(2 * np.pi)) + far


def sample(n=120, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    p = expit(z)
    p[:6] = [0, 0, 0, 1, 1, 1]
    return (rng.random(n) < expit(0.5 * z)).astype(int), p


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_equals_quadrature_with_atoms_at_infinity(scale, sigma):
    y, p = sample()
    result = smooth_ece_result(y, p, scale=scale, bandwidth=sigma)
    assert result.value == pytest.approx(by_quadrature(y, p, scale, sigma), abs=2e-7)
    assert result.certificate.total < 1e-6


@pytest.mark.parametrize("scale", SCALES)
def test_fixed_point_equals_its_bandwidth(scale):
    y, p = sample()
    result = smooth_ece_result(y, p, scale=scale)
    again = smooth_ece(y, p, scale=scale, bandwidth=result.bandwidth)
    assert again == pytest.approx(result.value, abs=2 * result.certificate.total + 1e-8)
    assert result.scale == scale


@pytest.mark.parametrize("scale", ["logit", "logit/4", "unreflected", "relative:0.1"])
def test_a_sketch_agrees_within_its_certificate(scale):
    y, p = sample(3000)
    exact = smooth_ece_result(y, p, scale=scale)
    halves = [Sketch.from_arrays(y[k::2], p[k::2], scale=scale) for k in range(2)]
    rough = smooth_ece_result(halves[0] + halves[1])
    slack = exact.certificate.total + rough.certificate.total
    assert abs(exact.value - rough.value) <= slack
    assert rough.certificate.total < 1e-3


def test_predictions_near_the_ends_tend_to_those_at_the_ends():
    y = np.array([0, 0, 1, 0, 1])
    at_the_end = smooth_ece(y, [0.0, 0.0, 0.0, 0.3, 0.6], scale="logit")
    near = [smooth_ece(y, [e, e, e, 0.3, 0.6], scale="logit") for e in (1e-3, 1e-6, 1e-12)]
    gaps = np.abs(np.array(near) - at_the_end)
    assert np.all(np.diff(gaps) <= 0)
    assert gaps[-1] < 1e-9


def test_logits_are_read_as_they_are():
    y, _ = sample()
    z = np.random.default_rng(3).normal(0, 4, y.size)
    direct = smooth_ece(y, z, from_logits=True, scale="logit")
    assert direct == pytest.approx(smooth_ece(y, expit(z), scale="logit"), abs=1e-9)
    rough = smooth_ece(Sketch.from_arrays(y, z, from_logits=True, scale="logit"))
    assert rough == pytest.approx(direct, abs=1e-4)


def test_rare_events_read_right_on_the_relative_scale():
    rng = np.random.default_rng(1)
    p = expit(rng.normal(-6.8, 1, 100_000))
    y = (rng.random(p.size) < p).astype(int)
    shares = {
        name: smooth_ece(y, p, scale=name) / y.mean()
        for name in ("logit", "probability", "relative")
    }
    assert shares["relative"] < shares["probability"] < 0.4 < 1 < shares["logit"]


def test_a_relative_sketch_takes_the_base_rate_of_its_rows():
    y, p = sample(200)
    sketch = Sketch.from_arrays(y, p, scale="relative")
    assert sketch.scale.name == f"relative:{float(y.mean())!r}"
    assert smooth_ece(sketch) == pytest.approx(smooth_ece(y, p, scale="relative"), abs=1e-4)


def test_weights_and_a_scale_of_ones_own():
    y, p = sample()
    w = np.random.default_rng(0).integers(1, 4, y.size)
    own = Scale(lambda p: p**3, np.cbrt, name="cube")
    weighted = smooth_ece(y, p, sample_weight=w, scale=own)
    assert weighted == pytest.approx(smooth_ece(np.repeat(y, w), np.repeat(p, w), scale=own))


def test_too_steep_for_a_sketch_is_said():
    with refused("scale", "boosting", option="calibrant.smooth_ece"):
        Sketch.from_arrays([0, 1], [0.2, 0.8], scale="boosting")
    with refused("scale", "relative"):
        Sketch.empty(scale="relative")
    with refused("base_rate"):
        smooth_ece([1, 1], [0.2, 0.8], scale="relative")


@pytest.mark.parametrize("scale", ["probability", *SCALES])
def test_errors_near_zero_are_certified_on_every_scale(scale):
    """Residuals that cancel wherever rows meet are found out by hand, not by ever finer grids."""
    p = np.repeat(np.arange(1, 20) / 20, 100)
    y = np.concatenate([np.arange(100) < 5 * k for k in range(1, 20)]).astype(int)
    result = smooth_ece_result(y, p, scale=scale)
    assert result.value + result.certificate.total < 1e-9
    assert result.evaluations == 1


@pytest.mark.parametrize("largest", [1e-4, 1e-3, 1e-2])
def test_rows_close_together_have_a_grid_of_their_own(largest):
    """At either end, where the kernel is reflected, and in the middle; the same fixed point."""
    rng = np.random.default_rng(2)
    p = largest * rng.random(2000)
    y = (rng.random(2000) < 3 * p).astype(int)
    rare = smooth_ece_result(y, p)
    assert rare.certificate.total < 1e-7
    again = smooth_ece_result(y, p, bandwidth=rare.bandwidth)
    assert again.value == pytest.approx(rare.bandwidth, abs=2e-7 + again.certificate.total)
    certain = smooth_ece_result(1 - y, 1 - p)
    assert certain.value == pytest.approx(rare.value, abs=1e-9)
    middle = smooth_ece_result(y, 0.5 + p)
    assert middle.value == pytest.approx(smooth_ece(y, 0.5 + p, scale="unreflected"), abs=2e-7)


@pytest.mark.parametrize("scale", ["probability", "logit", "unreflected"])
def test_no_certificate_exceeds_one(scale):
    y, p = sample()
    sketch = Sketch.from_arrays(y, p, scale=scale, nodes=16)
    with refused("bandwidth", 9e-6):
        smooth_ece(sketch, bandwidth=9e-6)
    for bandwidth in (None, 0.02, 0.1):
        result = smooth_ece_result(sketch, bandwidth=bandwidth)
        assert max(vars(result.certificate).values()) <= 1.0
        assert 0.0 <= result.value <= 1.0
