"""Venn–Abers: isotonic regression with the new row in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from calibrant import Sketch
from calibrant.recalibration import CrossVennAbersRecalibrator, VennAbersRecalibrator


def with_the_row_in_it(p, y, new, outcome):
    """The slow way: one isotonic regression per prediction and outcome, ties as one."""
    p, y = np.append(p, new), np.append(y, outcome)
    _, which = np.unique(p, return_inverse=True)
    rows = np.bincount(which)
    fitted = isotonic_regression(np.bincount(which, y) / rows, sample_weight=rows)
    return fitted[which[-1]]


rows = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=2, max_size=40).filter(
    lambda pairs: len({y for _, y in pairs}) == 2
)


@given(rows, st.lists(st.integers(0, 24), min_size=1, max_size=8))
def test_both_probabilities_are_isotonic_fits_with_the_new_row(pairs, new):
    p, y = np.array([k / 12 for k, _ in pairs]), np.array([y for _, y in pairs], dtype=float)
    at = np.array(new) / 24
    low, high = VennAbersRecalibrator().fit(p, y).interval(at)
    for k, value in enumerate(at):
        assert low[k] == pytest.approx(with_the_row_in_it(p, y, value, 0.0), abs=1e-12)
        assert high[k] == pytest.approx(with_the_row_in_it(p, y, value, 1.0), abs=1e-12)
    between = VennAbersRecalibrator().fit(p, y).transform(at)
    assert np.allclose(between, high / (1 - low + high))
    assert np.all((low <= between) & (between <= high))


def test_a_sketch_is_its_rows():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 33, 200) / 32
    y = rng.random(200) < p
    at = np.linspace(0, 1, 41)
    sketch = Sketch.from_arrays(y, p)
    plain = VennAbersRecalibrator().fit(p, y)
    assert np.allclose(VennAbersRecalibrator().fit(sketch).transform(at), plain.transform(at))


def test_folds_are_joined_by_geometric_means():
    rng = np.random.default_rng(1)
    p = rng.random(90)
    y = rng.random(90) < p
    cross = CrossVennAbersRecalibrator(cv=3, random_state=5).fit(p, y)
    fold = np.random.default_rng(5).permutation(90) % 3
    parts = [VennAbersRecalibrator().fit(p[fold == k], y[fold == k]) for k in range(3)]
    at = np.linspace(0, 1, 17)
    low, high = (np.array(v) for v in zip(*(part.interval(at) for part in parts), strict=True))
    with_event = np.prod(high, axis=0) ** (1 / 3)
    without = np.prod(1 - low, axis=0) ** (1 / 3)
    assert np.allclose(cross.transform(at), with_event / (without + with_event))
