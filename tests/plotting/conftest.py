"""Samples whose curves are known."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all") if hasattr(matplotlib, "pyplot") else None


@pytest.fixture
def dense():
    """3,000 over-confident predictions, everywhere."""
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    return (rng.random(3000) < 0.5 + 0.7 * (p - 0.5)).astype(int), p


@pytest.fixture
def rare():
    """20,000 rows of which nearly all are near 0, and few anywhere else."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.05, 4.0, 20_000)
    return (rng.random(20_000) < p).astype(int), p
