"""What lies between stretches of rows is left out, and no number changes."""

import numpy as np
import pytest

from calibrant import Sketch, smooth_ece_result
from calibrant.smoothing.residuals import SketchResiduals, shortened
from calibrant.smoothing.spectrum import evaluate, solve


def sparse(seed, ends=(), shift=0.0, weighted=False):
    """Most rows close to 0, and some all over [0, 1]."""
    rng = np.random.default_rng(seed)
    p = np.concatenate([1e-3 * rng.random(3000), rng.random(40), np.repeat(ends, 5)])
    y = rng.random(p.size) < np.clip(p + shift, 0.0, 1.0)
    weight = rng.random(p.size) if weighted else None
    return Sketch.from_arrays(y, p, sample_weight=weight, nodes=1 << 13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ends", [(), (0.0,), (1.0,), (0.0, 1.0)])
@pytest.mark.parametrize("bandwidth", [2e-4, 1e-3])
def test_a_short_line_has_the_error_of_the_whole(bandwidth, ends, weighted):
    sketch = sparse(1, ends, weighted=weighted)
    short, whole = (SketchResiduals(sketch, each) for each in (bandwidth, 1.0))
    assert short.length < 0.6
    assert whole.length == 1.0
    values = [evaluate(each, bandwidth, tolerance=1e-9).value for each in (short, whole)]
    assert values[0] == pytest.approx(values[1], abs=1e-11)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_a_fixed_point_that_needs_more_room_gets_it(seed, shift):
    """Where the error is far beyond what was guessed, kernels reach from stretch to stretch."""
    sketch = sparse(seed, shift=shift)
    whole = SketchResiduals(sketch)
    whole.narrow(1.0)
    known, found = solve(whole, tolerance=1e-7), smooth_ece_result(sketch)
    assert whole.length == 1.0
    assert found.value == pytest.approx(known.value, abs=5e-9)
    assert found.certificate.total == pytest.approx(known.certificate, rel=0.05, abs=1e-7)


def test_stretches_keep_their_shape_and_their_distance():
    sketch = sparse(2, (0.0, 1.0))
    cells, margin = sketch.cells, 20
    line = shortened(cells, sketch.counts, sketch.nodes, margin)
    near = np.diff(cells) <= 2 * margin + 1
    np.testing.assert_array_equal(np.diff(line.cells)[near], np.diff(cells)[near])
    assert line.cells.min() >= 0
    assert line.cells.max() <= line.length < sketch.nodes
    assert line.margin == margin / line.length
    stretch = np.concatenate([[0], np.cumsum(~near)])
    outcomes = np.stack([np.bincount(stretch, column) for column in sketch.counts.T]) > 0
    alone = ~outcomes.all(axis=0)
    apart = np.abs(np.subtract.outer(line.cells, line.cells)) - 1 >= 2 * margin
    same = stretch[:, None] == stretch
    of_one = alone & (outcomes[1] == outcomes[1][:, None])
    stacked = of_one[stretch][:, stretch] & alone[stretch][:, None] & alone[stretch]
    assert (apart | same | stacked).all()
    assert stacked[~same].any()


def test_rows_that_fill_the_grid_stay_where_they_are():
    cells = np.arange(0, 1024, 3)
    line = shortened(cells, np.ones((cells.size, 2), dtype=np.int64), 1024, 8)
    np.testing.assert_array_equal(line.cells, cells)
    assert line.length == 1024
    assert line.margin == np.inf
