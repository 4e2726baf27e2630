"""Noise floors by simulation: many draws smoothed together, against one at a time."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from calibrant import Sketch
from calibrant.inference.residuals import ResidualGrid

floors = importlib.import_module("calibrant.inference.noise_floor")

SAMPLES = {
    "lattice": lambda rng: rng.integers(0, 11, 200) / 10,
    "few rows": lambda rng: rng.random(7),
    "rare": lambda rng: rng.beta(0.3, 300, 3000),
    "far apart": lambda rng: np.where(
        rng.random(400) < 0.9, 1e-3 * rng.random(400), rng.random(400)
    ),
    "certain": lambda rng: np.append(np.zeros(50), 0.02),
}


def drawn(name: str, scale: str) -> tuple[ResidualGrid, np.ndarray, float]:
    rng = np.random.default_rng(0)
    p = np.clip(SAMPLES[name](rng), 1e-6, 1.0) if scale == "logit" else SAMPLES[name](rng)
    sketch = Sketch.from_arrays((rng.random(p.size) < p).astype(int), p, scale=scale)
    variance = (
        floors.outcome_variances(sketch, floors.cell_predictions(sketch)) / sketch.total_weight**2
    )
    closed, _ = floors._closed_form(sketch, variance)
    grid = ResidualGrid.of(sketch, 0.5 * closed)
    (block,) = grid.consistency(20, seed=0)
    return grid, block, closed


def smoothed_error(grid: ResidualGrid, residual: np.ndarray, bandwidth: float) -> float:
    """∫|Σ r K| by a fine sum, with every image of every site."""
    sketch, length = grid.sketch, grid.sketch.scale.length
    place = (sketch.cells + grid.right_share) / sketch.nodes * length
    low, high = 0.0, length
    if not sketch.scale.reflected:
        low, high = place[0] - 9 * bandwidth, place[-1] + 9 * bandwidth
    t = np.linspace(low, high, int(np.clip(40 * (high - low) / bandwidth, 2000, 40_000)))
    if not sketch.scale.reflected:
        images = [place]
    else:
        turns = range(-3, 4) if bandwidth > 0.05 * length else range(-1, 2)
        images = [side * place + 2 * k * length for k in turns for side in (1, -1)]
    smooth = sum(np.exp(-0.5 * ((t[:, None] - at) / bandwidth) ** 2) @ residual for at in images)
    size = np.abs(smooth)
    total = float(size.sum() - 0.5 * (size[0] + size[-1])) * (t[1] - t[0])
    return total / bandwidth / np.sqrt(2 * np.pi)


@pytest.mark.parametrize(
    ("name", "scale"), [*((name, "probability") for name in SAMPLES), ("lattice", "logit")]
)
def test_each_draw_is_its_own_error(name: str, scale: str) -> None:
    grid, block, start = drawn(name, scale)
    found = floors._fixed_points(grid, block, start)
    narrowest = 0.25 * grid.sketch.scale.length / grid.sketch.nodes
    for sigma, residual in zip(found[:3], block[:3], strict=True):
        error = smoothed_error(grid, residual, sigma)
        assert max(error, narrowest) == pytest.approx(sigma, rel=1e-2)


@pytest.mark.parametrize("name", ["lattice", "rare", "far apart"])
def test_the_mean_is_that_of_draws_one_at_a_time(name: str) -> None:
    grid, block, start = drawn(name, "probability")
    alone = [grid.fixed_points(grid.on_nodes(one[None]), start=start)[0] for one in block]
    together = floors._fixed_points(grid, block, start)
    assert together.mean() == pytest.approx(np.mean(alone), rel=2e-3)


def test_where_to_start_makes_no_difference() -> None:
    grid, block, start = drawn("lattice", "probability")
    near = floors._fixed_points(grid, block, start)
    for factor in (0.03, 0.4, 3.0, 50.0):
        assert floors._fixed_points(grid, block, factor * start) == pytest.approx(near, rel=5e-3)
