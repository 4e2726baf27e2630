"""Isotonic regression against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from calibrant.measures._chains import pooled


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000])
def test_pooling_equals_scipy(n: int) -> None:
    draw = np.random.default_rng(n)
    for values in (
        draw.random(n),
        np.sort(draw.random(n)),
        draw.integers(0, 3, n) / 2,
        np.zeros(n),
    ):
        weights = draw.uniform(0.1, 3, n)
        expected = isotonic_regression(values, weights=weights).x
        np.testing.assert_allclose(pooled(values, weights), expected, rtol=1e-12, atol=1e-14)
