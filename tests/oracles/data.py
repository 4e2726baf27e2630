"""Small data of every shape that has broken a calibration measure."""

from __future__ import annotations

import numpy as np

CELLS = 1 << 16
FINEST = 2.0**-36  # the unit in which a sketch knows positions


def draws(p, rng):
    return (rng.random(p.size) < p).astype(np.int64)


def continuous(rng):
    p = rng.random(300)
    return draws(p**1.3, rng), p, None


def lattice(rng):
    p = rng.integers(0, 11, 400) / 10
    return draws(np.clip(p + 0.1, 0, 1), rng), 1 - p, None


def rare_events(rng):
    p = 0.004 * rng.random(300) ** 3
    return draws(np.minimum(5 * p, 1), rng), p, None


def end_heavy(rng):
    p = np.where(rng.random(300) < 0.5, 1.0, rng.random(300))
    return draws(0.9 * p, rng), p, None


def float32(rng):
    p = rng.random(300).astype(np.float32)
    return draws(p, rng), p, None


def ends_of_cells(rng):
    """Rows of rows of one label at both ends of a cell: as far from their mean as can be."""
    cell = rng.integers(0, CELLS, 60)
    p = np.concatenate([cell / CELLS, (cell + 1) / CELLS - FINEST])
    return np.tile(rng.integers(0, 2, 60), 2), p, None


def ends_of_coarse_cells(rng):
    cell = rng.integers(0, 256, 60)
    return np.tile(rng.integers(0, 2, 60), 2), np.concatenate([cell, cell + 0.999]) / 256, None


def skewed_cells(rng):
    """Two thirds of the weight at one point of a cell, the rest where the third moment is largest."""
    cell = rng.integers(0, CELLS, 50)
    p = np.concatenate([cell + 1 / 3, cell + 1 / 3, cell + 1 - 1e-5]) / CELLS
    return np.ones(150, int), p, None


def unequal_weights(rng):
    cell = rng.integers(0, CELLS, 50)
    p = np.concatenate([cell, cell + 0.9, cell + 0.5]) / CELLS
    return rng.integers(0, 2, 150), p, np.exp(rng.normal(0, 8, 150))


def all_wrong(rng):
    """The largest residuals there are, spread over cells: what costs a sketch most."""
    near, far = rng.integers(0, 300, (2, 60)) / CELLS
    p = np.concatenate([near, near + 0.999 / CELLS, 1 - far - 1 / CELLS, 1 - far - 0.001 / CELLS])
    return np.repeat([1, 1, 0, 0], 60), p, None


def first_and_last_cell(rng):
    p = np.concatenate([rng.random(40) / CELLS, 1 - rng.random(40) / CELLS])
    return rng.integers(0, 2, 80), p, None


def one_row(rng):
    return np.array([1]), rng.random(1), None


def all_at_zero(rng):
    return np.array([0, 1, 1]), np.zeros(3), None


def all_at_one(rng):
    return np.array([0, 1, 1]), np.ones(3), None


def touching(rng):
    """The counter-example of the fixed point: no zeros at one bandwidth, some at another."""
    return np.repeat([1, 0, 1, 0], [40, 10, 20, 30]), np.repeat([0.45, 0.55], 50), None


SHAPES = [
    continuous,
    lattice,
    rare_events,
    end_heavy,
    float32,
    ends_of_cells,
    ends_of_coarse_cells,
    skewed_cells,
    unequal_weights,
    all_wrong,
    first_and_last_cell,
    one_row,
    all_at_zero,
    all_at_one,
    touching,
]
