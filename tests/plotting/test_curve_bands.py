"""Bands around the curve: they hold the population's curve, and do not vanish where no event fell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.plotting.bands import curve_bands
from calibrant.plotting.kernel import KernelMatrix


def _curve(sketch: Sketch, points: np.ndarray, bandwidth: float) -> np.ndarray:
    without, events = KernelMatrix(sketch, points, bandwidth, labels=2)(sketch.weights[None])[0]
    return events / (without + events)


def _rows(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    p = rng.random(n)
    if kind == "ties at 0 and 1":
        p = np.where(p < 0.3, 0.0, np.where(p < 0.6, 1.0, rng.beta(2, 2, n)))
        return p, np.clip(p, 0.0167, 0.9833)
    if kind == "rare":
        p = rng.beta(0.5, 20.0, n)
        return p, 0.7 * p
    return p, 0.5 + 0.8 * (p - 0.5)


@pytest.mark.parametrize(
    "kind",
    ["overconfident", "rare", "ties at 0 and 1", "1 in 20 kept", "1 in 20 kept in the middle"],
)
def test_the_bands_hold_the_smoothed_curve_of_the_population(kind: str) -> None:
    rng = np.random.default_rng(0)
    p, chance = _rows(kind, 1 << 17, rng)
    population = Sketch.from_arrays(chance, p, labels="soft", nodes=1 << 11)
    points, bandwidth = np.linspace(0.0, 1.0, 65), 0.05
    held, whole = [], []
    for _ in range(60):
        p, chance = _rows(kind, 2000 if "middle" in kind else 1000 if "kept" in kind else 500, rng)
        y, weight = rng.random(p.size) < chance, None
        if "kept" in kind:  # of those without the event
            rare = ~y & ((np.abs(p - 0.6) < 0.1) if "middle" in kind else True)
            kept = ~rare | (rng.random(p.size) < 0.05)
            p, y, weight = p[kept], y[kept], np.where(rare[kept], 20.0, 1.0)
        sketch = Sketch.from_arrays(y, p, sample_weight=weight)
        near = np.array([(np.abs(p - t) < bandwidth).sum() for t in points]) >= 10
        regression = _curve(sketch, points[near], bandwidth)
        bands = curve_bands(sketch, regression, points[near], bandwidth, confidence=0.95)
        truth = _curve(population, points[near], bandwidth)
        inside = [
            (bounds.low <= truth) & (truth <= bounds.high)
            for bounds in (bands.pointwise, bands.simultaneous)
        ]
        held.append(inside[0].mean())
        whole.append(inside[1].all())
    assert np.mean(held) >= 0.93
    assert np.sum(whole) >= 53  # of 60; 57 are expected, and fewer than 53 have a chance of 3%


def test_a_band_does_not_vanish_where_no_event_fell() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(332, 0.01), rng.uniform(0.4, 0.6, 200)])
    y = np.concatenate([np.zeros(332), rng.integers(0, 2, 200)])
    diagram = cal.reliability_diagram(y, p)
    here = int(np.argmin(np.abs(diagram.grid - 0.01)))
    assert diagram.regression[here] < 1e-6
    exact = beta.ppf(0.975, 1, 332)  # Clopper and Pearson's for no event among 332
    assert diagram.band.high[here] == pytest.approx(exact, rel=0.01)
    assert diagram.simultaneous.high[here] > diagram.band.high[here]


def test_no_row_of_equal_predictions_moves_the_band() -> None:
    """One prediction only: every kernel weight is alike, and the band is the exact binomial one."""
    sketch = Sketch.from_counts([0.3], [50], [20])
    bands = curve_bands(sketch, np.array([0.4]), np.array([0.3]), 0.1, confidence=0.9)
    expected = beta.ppf([0.05, 0.95], [20, 21], [31, 30])
    for bounds in (bands.pointwise, bands.simultaneous):
        assert [bounds.low[0], bounds.high[0]] == pytest.approx(expected, rel=1e-6)


def test_weights_count_by_their_effective_number() -> None:
    """Rows that are twice there with half of the weight change nothing; uneven weights widen."""
    p, y = np.full(40, 0.5), np.arange(40) % 2
    even, uneven = (
        Sketch.from_arrays(y, p, sample_weight=w) for w in (np.ones(40), np.repeat([1.0, 7.0], 20))
    )
    widths = []
    for sketch in (even, uneven):
        at = np.array([0.5])
        band = curve_bands(sketch, at, at, 0.1, confidence=0.95).pointwise
        widths.append(band.high[0] - band.low[0])
    assert widths[1] > 1.2 * widths[0]
