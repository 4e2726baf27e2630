"""Scores of rows and of sketches: the log loss is that of the rows, or lies between its bounds."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.fill import mean_log_loss
from calibrant.data.rows import as_rows
from calibrant.data.sketch import Sketch
from calibrant.inference.scores import ProperScores


def _rows(kind: str, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    p = rng.random(n)
    if kind == "saturated":  # far out in log-odds, as naive Bayes is
        p = np.clip(1.0 / (1.0 + np.exp(-8.0 * rng.standard_normal(n))), 1e-9, 1.0 - 1e-9)
    y = (rng.random(n) < np.clip(p, 0.05, 0.95)).astype(int)
    return y, p


def _slow(y: np.ndarray, p: np.ndarray, weight: np.ndarray) -> float:
    loss = -(y * np.log(p) + (1 - y) * np.log1p(-p))
    return float((weight * loss).sum() / weight.sum())


@pytest.mark.parametrize("kind", ["saturated", "uniform"])
@pytest.mark.parametrize("nodes", [1 << 8, 1 << 16])
def test_the_log_loss_of_the_rows_lies_between_the_bounds_of_their_sketch(kind, nodes) -> None:
    y, p = _rows(kind)
    exact = _slow(y, p, np.ones(y.size))
    score = ProperScores(Sketch.from_arrays(y, p, nodes=nodes)).log_loss
    assert score.value <= exact * (1 + 1e-9)
    assert score.value == pytest.approx(score.calibration + score.refinement)


def test_soft_outcomes_and_a_certain_miss() -> None:
    soft, p = np.array([0.2, 0.7]), np.array([0.3, 0.6])
    expected = -(soft * np.log(p) + (1 - soft) * np.log(1 - p)).mean()
    pairs = as_rows(soft, p, labels="soft")
    assert ProperScores(Sketch.from_rows(pairs), pairs).log_loss.value == pytest.approx(expected)
    unweighted = Sketch.from_arrays([0, 1, 1], [0.2, 0.0, 0.9], sample_weight=[1.0, 0.0, 2.0])
    assert ProperScores(unweighted).log_loss.value == pytest.approx(
        -(np.log(0.8) + 2 * np.log(0.9)) / 3, rel=1e-5
    )
    missed = [0, 1, 1], [0.2, 0.0, 0.9]
    assert cal.assess(*missed).log_loss.value == np.inf
    assert cal.assess(Sketch.from_arrays(*missed)).log_loss == cal.assess(*missed).log_loss


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", ["whole", "weighted", "soft"])
@pytest.mark.parametrize("kind", ["even", "rare", "minute", "nearly certain"])
def test_the_log_loss_of_rows_is_a_sum_of_logarithms(kind, share, dtype) -> None:
    """Products stand in for sums of logarithms, and must not be told from them at any size of prediction."""
    rng = np.random.default_rng(7)
    n = 3000
    p = {
        "even": rng.random(n),
        "rare": rng.random(n) * 1e-6,
        "minute": 10.0 ** -rng.uniform(0, 37, n),
        "nearly certain": 1.0 - 10.0 ** -rng.uniform(0, 6, n),
    }[kind].astype(dtype)
    p = np.clip(p, np.finfo(dtype).tiny, 1.0 - np.finfo(dtype).epsneg)
    y = rng.random(n) if share == "soft" else (rng.random(n) < np.where(p < 1e-3, 0.1, p)) * 1.0
    weight = rng.gamma(1.0, 1.0, n) if share == "weighted" else None
    rows = as_rows(y, p, sample_weight=weight, labels="soft" if share == "soft" else "binary")
    exact = _slow(y, p.astype(np.float64), np.ones(n) if weight is None else weight)
    assert mean_log_loss(rows) == pytest.approx(exact, rel=1e-12)
