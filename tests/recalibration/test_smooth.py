"""The smooth map against the formula, summed over rows and reflections."""

import numpy as np
import pytest
from tests.refusals import refused

from calibrant import Sketch, smooth_ece
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator


def paper_map(**settings):
    """The regression itself, on the probability scale."""
    return SmoothRecalibrator(scale="probability", pseudo_rows=0, **settings)


def sample(n=3000, power=1.8, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**power).astype(int)


def by_formula(at, p, y, sigma):
    """Nadaraya-Watson with the reflected Gaussian, in the logarithmic domain."""
    values = []
    for t in at:
        images = np.concatenate([p, -p, 2 - p])
        log_weight = -0.5 * ((t - images) / sigma) ** 2
        weight = np.exp(log_weight - log_weight.max())
        values.append(weight @ np.tile(y, 3) / weight.sum())
    return np.array(values)


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_equals_the_formula(sigma):
    p, y = sample(800)
    at = np.linspace(0, 1, 57)
    got = paper_map(bandwidth=sigma).fit(p, y).transform(at)
    assert got == pytest.approx(by_formula(at, p, y, sigma), abs=2e-4)


def test_repairs_held_out_rows_from_arrays_and_from_a_sketch():
    p, y = sample(8000)
    train, test = slice(0, 4000), slice(4000, None)
    before = smooth_ece(y[test], p[test])
    for fitted in (
        SmoothRecalibrator().fit(p[train], y[train]),
        SmoothRecalibrator(monotone=True).fit(p[train], y[train]),
        SmoothRecalibrator().fit(Sketch.from_arrays(y[train], p[train])),
        SmoothRecalibrator(scale="logit").fit(p[train], y[train]),
    ):
        assert smooth_ece(y[test], fitted.transform(p[test])) < 0.4 * before


def test_a_sketch_gives_the_map_of_its_rows():
    p, y = sample()
    at = np.linspace(0, 1, 201)
    sketch = Sketch.from_arrays(y, p, nodes=1 << 12)
    for pseudo_rows in (0, 10):
        rows = SmoothRecalibrator(0.05, scale="probability", pseudo_rows=pseudo_rows).fit(p, y)
        table = SmoothRecalibrator(0.05, pseudo_rows=pseudo_rows).fit(sketch)  # on its own scale
        assert table.transform(at) == pytest.approx(rows.transform(at), abs=1e-4)


def test_monotone_maps_increase_and_others_need_not():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < 0.5 + 0.3 * np.sin(12 * p)).astype(int)
    at = np.linspace(0, 1, 999)
    free = paper_map(bandwidth=0.03).fit(p, y).transform(at)
    tied = paper_map(bandwidth=0.03, monotone=True).fit(p, y).transform(at)
    assert np.any(np.diff(free) < 0)
    assert np.all(np.diff(tied) >= -1e-12)


def test_weights_count_as_duplicates():
    p, y = sample(300)
    w = np.random.default_rng(0).integers(1, 4, p.size)
    at = np.linspace(0, 1, 50)
    weighted = paper_map(bandwidth=0.1).fit(p, y, w).transform(at)
    repeated = paper_map(bandwidth=0.1).fit(np.repeat(p, w), np.repeat(y, w)).transform(at)
    assert weighted == pytest.approx(repeated, abs=1e-6)


def test_pseudo_rows_follow_platt_where_rows_are_few_and_vanish_where_they_are_many():
    """A weighted mean of the regression and the Platt map, the weights being numbers of rows."""
    p, y = sample(800)
    at, sigma = np.linspace(0.02, 0.98, 49), 0.05
    got = SmoothRecalibrator(sigma, scale="probability", pseudo_rows=4).fit(p, y).transform(at)
    images = np.concatenate([p, -p, 2 - p])
    rows = np.exp(-0.5 * ((at[:, None] - images) / sigma) ** 2).sum(axis=1)
    platt = PlattRecalibrator().fit(p, y).transform(at)
    expected = (rows * by_formula(at, p, y, sigma) + 4 * platt) / (rows + 4)
    assert got == pytest.approx(expected, abs=2e-4)
    equal = SmoothRecalibrator(sigma, scale="probability", pseudo_rows=4).fit(
        p, y, np.full(800, 7.0)
    )
    assert equal.transform(at) == pytest.approx(got, abs=5e-4)  # Platt's targets count weight
    far = SmoothRecalibrator(0.01).fit(p, y).transform([1e-9, 1 - 1e-9])
    assert far == pytest.approx(PlattRecalibrator().fit(p, y).transform([1e-9, 1 - 1e-9]), abs=1e-4)


def test_one_row_does_not_make_a_prediction_certain():
    """Three rows with the event are three of thirteen rows, the other ten being Platt's."""
    p = np.repeat([0.01, 0.1, 0.5, 0.9, 0.99], [50, 60, 40, 60, 3])
    y = np.concatenate(
        [np.arange(k) < e for k, e in ((50, 0), (60, 8), (40, 22), (60, 50), (3, 3))]
    )
    ends = [0.01, 0.99]
    platt = PlattRecalibrator().fit(p, y).transform(ends)
    repaired = SmoothRecalibrator(0.01).fit(p, y).transform(ends)
    assert repaired == pytest.approx([10 * platt[0] / 60, (3 + 10 * platt[1]) / 13], abs=2e-3)
    assert paper_map(bandwidth=0.001).fit(p, y).transform(ends) == pytest.approx([0, 1], abs=1e-6)


def test_refuses_one_outcome_and_another_scale():
    with refused("y_true", 1):
        SmoothRecalibrator().fit([0.2, 0.4], [1, 1])
    with refused("y_true"):
        SmoothRecalibrator().fit([0.2, 0.4])
    with refused("scale", "logit"):
        SmoothRecalibrator(scale="logit").fit(Sketch.from_arrays([0, 1], [0.2, 0.4]))
