"""Structured scaling, temperatures in few passes, and class rows that cannot be learned from."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from tests.refusals import refused

from calibrant.recalibration.learned_map import load_recalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling


def sample(n=1200, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, classes))
    mixed = logits @ (np.eye(classes) + 0.2 * rng.normal(size=(classes, classes)))
    chance = softmax(mixed + np.linspace(-0.5, 0.5, classes), axis=1)
    y = (chance.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return 2.0 * logits, y


def loss_of(probs, y):
    return -np.mean(np.log(probs[np.arange(y.size), y]))


def the_slow_way(logits, y, matrix):
    """Temperature by a scalar search, then the penalised likelihood by BFGS without derivatives of ours."""
    n, k = logits.shape
    rows = np.arange(n)
    best = minimize_scalar(
        lambda t: -log_softmax(np.exp(t) * logits, axis=1)[rows, y].mean(),
        bounds=(-5, 5), method="bounded", options={"xatol": 1e-12},
    )  # fmt: skip
    x = np.log((1 - 1 / (n + 1)) * softmax(np.exp(best.x) * logits, axis=1) + 1 / (n + 1) / k)

    def parts(theta):
        w = theta[: k * k].reshape(k, k) if matrix else np.diag(theta[:k])
        return w, theta[-k:]

    def objective(theta):
        w, b = parts(theta)
        loss = -log_softmax(x + x @ w.T + b, axis=1)[rows, y].mean()
        diagonal = np.sum(np.diag(w) ** 2)
        off = np.sum(w**2) - diagonal
        return loss + k / n * (diagonal + np.sum(b**2)) + k * (k - 1) / n * off

    start = np.zeros(k * k + k if matrix else 2 * k)
    found = minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
    w, b = parts(found.x)
    return softmax(x + x @ w.T + b, axis=1)


@pytest.mark.parametrize("matrix", [False, True])
def test_structured_scaling_is_the_penalised_maximum(matrix):
    logits, y = sample(300, classes=3)
    ours = StructuredScaling(matrix=matrix).fit(logits, y).transform(logits)
    assert ours == pytest.approx(the_slow_way(logits, y, matrix), abs=1e-5)


def test_what_is_learned_of_all_classes_helps_on_other_rows():
    logits, y = sample(4000)
    learn, judge = slice(0, 2000), slice(2000, None)
    losses = [
        loss_of(made.fit(logits[learn], y[learn]).transform(logits[judge]), y[judge])
        for made in (TemperatureScaling(), StructuredScaling(), StructuredScaling(matrix=True))
    ]
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize(
    "made", [TemperatureScaling(from_logits=False), StructuredScaling(from_logits=False),
             StructuredScaling(from_logits=False, matrix=True)],
)  # fmt: skip
def test_probabilities_are_as_good_as_logits_and_files_remember_which(made, tmp_path):
    logits, y = sample(600)
    probs = softmax(logits, axis=1)
    from_probs = made.fit(probs, y).transform(probs)
    settings = {**made.get_params(deep=False), "from_logits": True}
    assert from_probs == pytest.approx(type(made)(**settings).fit(logits, y).transform(logits))
    made.save(tmp_path / "map.json")
    assert np.array_equal(load_recalibrator(tmp_path / "map.json").transform(probs), from_probs)
    with refused("y_prob", holds="0.98"):
        made.fit(0.98 * probs, y)
