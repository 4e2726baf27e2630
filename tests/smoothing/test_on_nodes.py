"""Numbers on nodes, smoothed kernel by kernel and by transforms."""

import numpy as np
import pytest
from scipy.stats import norm

from calibrant.smoothing import curves as on_nodes
from calibrant.smoothing._nodes import add_points
from calibrant.smoothing._solver import (
    Transform,
    kernel_root,
    kernel_size,
    kernel_values,
    nodes_of_moments,
)
from calibrant.smoothing.curves import OnNodes
from calibrant.smoothing.spectrum import cosine_coefficients

RNG = np.random.default_rng(5)
CELLS = 256


def some_nodes():
    numbers = np.zeros(CELLS + 1)
    numbers[[0, 3, 40, 41, 200, CELLS]] = RNG.standard_normal(6)
    return numbers


def curve(numbers, bandwidth, points):
    """The sum of kernels, and of their images in mirrors at 0 and 1."""
    t, at = np.arange(points + 1) / points, np.arange(CELLS + 1) / CELLS
    images = [side * at + 2 * k for k in range(-4, 5) for side in (1, -1)]
    return sum(norm.pdf(t[:, None], image, bandwidth) for image in images) @ numbers


@pytest.mark.parametrize("points", [CELLS, CELLS // 8])
@pytest.mark.parametrize("bandwidth", [0.015, 0.1, 0.7])
def test_kernels_are_reflected_at_both_ends(bandwidth, points):
    numbers = some_nodes()
    expected = curve(numbers, bandwidth, points)
    assert kernel_values(numbers, bandwidth, points) == pytest.approx(expected, abs=1e-12)
    size = (np.abs(expected).sum() - 0.5 * np.abs(expected[[0, -1]]).sum()) / points
    assert kernel_size(numbers, bandwidth, points) == pytest.approx(size)
    root = np.sqrt(np.maximum(expected, 0.0)).mean()
    assert kernel_root(numbers, bandwidth, points) == pytest.approx(root)


@pytest.mark.parametrize("bandwidth", [0.002, 0.015, 0.1, 0.7])
def test_kernels_and_transforms_give_the_same(monkeypatch, bandwidth):
    numbers = some_nodes()
    found = []
    for as_quick in (0.0, 1e9):
        monkeypatch.setattr(on_nodes, "_KERNELS_AS_QUICK", as_quick)
        own = OnNodes(numbers)
        sizes = own.mean_size(bandwidth, CELLS), own.mean_root(bandwidth, CELLS)
        found.append(np.append(own.values(bandwidth, CELLS), sizes))
        few = as_quick > 0.0 and bandwidth > 0.01  # narrower than a few cells takes a transform
        assert ("coefficients" in vars(own)) == (not few)
    assert found[0][:-1] == pytest.approx(found[1][:-1], abs=1e-11)
    assert found[0][-1] == pytest.approx(found[1][-1], abs=1e-6)  # roots of what rounding leaves


def test_moments_are_laid_on_the_nodes_that_a_transform_has():
    moments = np.zeros((64, 8))
    add_points(RNG.random(50), RNG.standard_normal(50), moments)
    nodes = nodes_of_moments(moments)
    assert cosine_coefficients(nodes) == pytest.approx(Transform(moments, 1.0).coefficients)
    assert np.abs(nodes).sum() == pytest.approx(Transform(moments, 1.0).nodal)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="part of the nodes"):
        kernel_values(np.zeros(65), 0.1, 48)
    with pytest.raises(ValueError, match="moments"):
        nodes_of_moments(np.zeros((64, 7)))
