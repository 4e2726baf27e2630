"""Too few rows for the parameters of a map, or of a class, are refused by every family."""

import numpy as np
import pytest
from scipy.special import softmax
from tests.refusals import refused

from calibrant.errors import TooFewRows
from calibrant.recalibration import (
    BetaRecalibrator,
    OneVsRestRecalibrator,
    PlattRecalibrator,
    SplineRecalibrator,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.recalibration.choice import choose_recalibrator

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(300, 4))
Y = np.arange(300) % 4
OF_EACH = [
    VectorScaling(),
    StructuredScaling(),
    StructuredScaling(matrix=True),
    OneVsRestRecalibrator(BetaRecalibrator()),
    OneVsRestRecalibrator(),
]


def given_to(made):
    return LOGITS if made.from_logits else softmax(LOGITS, axis=1)


@pytest.mark.parametrize(
    ("made", "parameters"),
    [
        (PlattRecalibrator(), 2),
        (BetaRecalibrator(), 3),
        (BetaRecalibrator(platt_targets=False), 3),
        (SplineRecalibrator(), 10),
        (SplineRecalibrator(n_knots=50), 50),
    ],
)
def test_a_map_needs_as_many_rows_as_it_has_parameters(made, parameters):
    assert made.n_parameters == parameters
    p = np.linspace(0.1, 0.9, 60)
    y = np.arange(60) % 2
    made.fit(p[:parameters], y[:parameters])
    if parameters > 2:  # of one row, another rule is broken first
        with refused("y_true", parameters - 1, holds=str(parameters), kind=TooFewRows):
            made.fit(p[: parameters - 1], y[: parameters - 1])


@pytest.mark.parametrize(
    ("made", "parameters"),
    [
        (VectorScaling(), 8),
        (StructuredScaling(), 8),
        (StructuredScaling(matrix=True), 20),
        (OneVsRestRecalibrator(BetaRecalibrator()), 12),
    ],
    ids=lambda made: getattr(made, "kind", ""),
)
def test_a_map_of_classes_counts_the_parameters_of_all(made, parameters):
    made.fit(given_to(made)[:parameters], Y[:parameters])
    with refused("y_true", parameters - 1, holds=str(parameters), kind=TooFewRows):
        made.fit(given_to(made)[: parameters - 1], Y[: parameters - 1])


@pytest.mark.parametrize("made", OF_EACH, ids=lambda made: made.kind)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_class_with_fewer_than_two_rows_is_refused_by_name(made, rows):
    names = np.array(["a", "b", "c", "d"])
    kept = (Y != 3) | (np.cumsum(Y == 3) <= rows)
    with refused("y_true", "d", holds=f"it has {rows}", kind=TooFewRows):
        made.fit(given_to(made)[kept], names[Y[kept]], classes=list(names))
    with refused("y_true", "d", kind=TooFewRows):  # as rows without weight do not count
        made.fit(given_to(made), names[Y], 1.0 * (kept & (Y != 3)), classes=list(names))


@pytest.mark.parametrize("made", [TemperatureScaling(), *OF_EACH], ids=lambda made: made.kind)
def test_rows_of_one_class_teach_nothing(made):
    with refused("y_true", 2, kind=TooFewRows):
        made.fit(given_to(made), np.full(300, 2))


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_choice_never_wipes_out_a_class_that_it_has_hardly_seen(rows):
    """The model is right that the rare class is there; the rows to learn from hold almost none of it."""
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 1.5, (3000, 3))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    probs = softmax(2.5 * logits, axis=1)
    kept = (y != 2) | (np.cumsum(y == 2) <= rows)
    choice = choose_recalibrator(y[kept], probs[kept])
    assert {line.name for line in choice.candidates} == {"none", "temperature"}
    sure = np.array([[0.05, 0.05, 0.9]])
    assert choice.recalibrator.transform(sure)[0].argmax() == 2
