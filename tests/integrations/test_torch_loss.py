"""The differentiable SmoothECE: its value, its gradient, and that training against it helps."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal

pytestmark = pytest.mark.heavy
torch = pytest.importorskip("torch", reason="torch could not be started: it is not installed")

from tests.refusals import refused  # noqa: E402

from calibrant.integrations.torch import smooth_ece_loss  # noqa: E402


def rows(n=400, seed=3):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p[:20], p[20:40] = 0.0, 1.0
    y = (rng.random(n) < p**1.5).astype(float)
    return torch.tensor(p), torch.tensor(y)


@pytest.mark.parametrize("bandwidth", [0.3, 0.05, 0.01, 0.003])
def test_the_value_is_that_of_smooth_ece_at_the_bandwidth(bandwidth):
    p, y = rows()
    expected = cal.smooth_ece(y.numpy(), p.numpy(), bandwidth=bandwidth)
    assert smooth_ece_loss(p, y, bandwidth).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("bandwidth", [0.2, 0.05])
def test_the_gradient_is_that_of_finite_differences(bandwidth):
    p, y = rows(25)
    p = (0.02 + 0.96 * p).requires_grad_()
    assert torch.autograd.gradcheck(lambda q: smooth_ece_loss(q, y, bandwidth), (p,), eps=1e-7)


def test_logits_and_half_precision():
    p, y = rows(50)
    logits = torch.logit(p.clamp(0.01, 0.99)).float().requires_grad_()
    loss = smooth_ece_loss(logits, y, from_logits=True)
    loss.backward()
    assert torch.isfinite(logits.grad).all()
    assert smooth_ece_loss(p.half(), y).dtype == torch.float32


def test_a_temperature_is_found_by_descent():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4000, generator=generator, dtype=torch.float64)
    y = (torch.rand(4000, generator=generator, dtype=torch.float64) < logits.sigmoid()).double()
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([scale], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        smooth_ece_loss(scale * logits, y, from_logits=True).backward()
        optimizer.step()
    assert scale.item() == pytest.approx(1.0, abs=0.15)


def test_bad_arguments_are_refused():
    p, y = rows(10)
    with refused("preds", (10,), option=None, holds="(5,)"):
        smooth_ece_loss(p, y[:5])
    with refused("bandwidth"):
        smooth_ece_loss(p, y, 0.0)
    with refused("preds", 0):
        smooth_ece_loss(p[:0], y[:0])


@pytest.mark.parametrize("wrong", [2.0, -0.1, float("nan")])
def test_values_out_of_range_are_refused(wrong):
    good, bad = torch.tensor([0.5, 0.5]), torch.tensor([0.5, wrong])
    with refused("preds"):
        smooth_ece_loss(bad, good)
    with refused("target"):
        smooth_ece_loss(good, bad)
