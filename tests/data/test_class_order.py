"""Columns in another order, and hard labels, are told; what is plausible is not."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.classes import ColumnOrderWarning
from calibrant.data.sketch import HardLabelWarning

RNG = np.random.default_rng(5)
PROBS = RNG.dirichlet([0.5, 0.5, 0.5], 1000)
LABELS = (PROBS.cumsum(axis=1) > RNG.random((1000, 1))).argmax(axis=1)


@pytest.mark.parametrize("view", ["confidence", "classwise", "top_label"])
def test_columns_in_another_order_are_told(view):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(cal, view)(LABELS, PROBS)
        getattr(cal, view)(RNG.permutation(LABELS), PROBS)  # bad, but in no other order better
    with pytest.warns(ColumnOrderWarning):
        getattr(cal, view)(LABELS, PROBS[:, [1, 2, 0]])


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_hard_labels_are_told(scale):
    p = PROBS[:, 0]
    y = (LABELS == 0).astype(int)
    with pytest.warns(HardLabelWarning):
        cal.assess(y, (p > 0.5).astype(float), scale=scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.assess(y, np.where(np.arange(1000) == 3, 0.7, p > 0.5), scale=scale)
