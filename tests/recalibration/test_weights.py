"""Only ratios of weights matter to a map."""

import numpy as np
import pytest
from scipy.special import softmax

from calibrant.recalibration import OneVsRestRecalibrator, make_map, map_names

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = RNG.random(300) < P**2
W = RNG.exponential(size=300) + 0.1
LOGITS = RNG.normal(size=(300, 3))
LABELS = np.arange(300) % 3
AT = np.linspace(0.0, 1.0, 101)


@pytest.mark.parametrize("name", sorted({*map_names()} - {"randomized", "cross-venn-abers"}))
@pytest.mark.parametrize("unit", [1e-30, 7.0])
def test_the_scale_of_weights_does_not_matter(name, unit):
    made = make_map(name)
    expected = made.fit(P, Y, W).transform(AT)
    assert made.fit(P, Y, unit * W).transform(AT) == pytest.approx(expected, abs=1e-8)
    alone = made.fit(P, Y).transform(AT)
    if name != "spline":  # its folds are of rows, or of whole predictions where there are weights
        assert made.fit(P, Y, np.full(300, unit)).transform(AT) == pytest.approx(alone, abs=1e-8)


@pytest.mark.parametrize("name", map_names(n_classes=3))
def test_the_scale_of_weights_does_not_matter_to_maps_of_classes(name):
    made = OneVsRestRecalibrator(make_map("platt")) if name == "one-vs-rest" else make_map(name, 3)
    probs = softmax(LOGITS, axis=1)
    expected = made.fit(probs, LABELS, W).transform(probs)
    for unit in (1e-30, 7.0):
        again = made.fit(probs, LABELS, unit * W).transform(probs)
        assert again == pytest.approx(expected, abs=1e-6)
