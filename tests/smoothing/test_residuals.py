"""Rows summed up in cells, and the bandwidth that is guessed before they are laid on a grid."""

import numpy as np
import pytest

from calibrant import Sketch
from calibrant.data.fill import SQUARE_BITS, sums_of_squares
from calibrant.data.rows import as_rows
from calibrant.smoothing.residuals import RowResiduals, SketchResiduals
from calibrant.smoothing.spectrum import solve


def drawn(n, truth=lambda p: p, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p[:2] = 0.0, 1.0
    return (rng.random(n) < truth(p)).astype(np.int64), p


@pytest.mark.parametrize("log2_cells", [3, 12])
@pytest.mark.parametrize("of_p", [np.float32, np.float64])
@pytest.mark.parametrize("of_y", [np.bool_, np.int64, np.float64])
def test_sums_of_squares_are_those_of_positions_rounded_to_the_nearest(log2_cells, of_p, of_y):
    y, p = drawn(3000)
    y, p = y.astype(of_y), p.astype(of_p)
    sums = sums_of_squares(as_rows(y, p), log2_cells)
    position = np.rint(np.ldexp(p.astype(np.float64), log2_cells + SQUARE_BITS)).astype(np.int64)
    slot = 2 * (position >> SQUARE_BITS) + y.astype(np.int64)
    offset = position & ((1 << SQUARE_BITS) - 1)
    expected = np.zeros_like(sums, dtype=np.int64)
    np.add.at(expected, slot, np.stack([np.ones_like(offset), offset, offset**2], axis=1))
    np.testing.assert_array_equal(sums, expected)


def test_sums_do_not_depend_on_the_number_of_cores(monkeypatch):
    """Squares of many rows are no whole numbers of a float: the pieces must be the same everywhere."""
    y, p = drawn(1 << 16)
    p = p / 100.0  # many rows a cell
    monkeypatch.setattr("calibrant.data.fill.ROWS_WORTH_THREADS", 1 << 14)
    sums = []
    for cores in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        sums.append(sums_of_squares(as_rows(y, p), 8))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


@pytest.mark.parametrize("n", [100, 3_000, 200_000])
@pytest.mark.parametrize(
    "truth",
    [lambda p: p, lambda p: 0.5 + 0.7 * (p - 0.5), lambda p: p**2, lambda p: 0.3 + 0 * p],
    ids=["calibrated", "overconfident", "too high", "constant"],
)
def test_no_fixed_point_lies_far_below_the_guess(truth, n):
    """A guess that is too high costs a second pass over the rows."""
    y, p = drawn(n, truth, seed=1)
    for residuals in (RowResiduals(as_rows(y, p)), SketchResiduals(Sketch.from_arrays(y, p))):
        assert residuals.guess <= 1.1 * solve(residuals, tolerance=1e-7).value
