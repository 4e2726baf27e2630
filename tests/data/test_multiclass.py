"""Class probabilities: the confidence, top-label and class-wise readings equal their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import ANYTHING, refused

from calibrant import Sketch, classwise, confidence, smooth_ece, top_label

RNG = np.random.default_rng(4)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


LOGITS = RNG.normal(0, 2, (400, 5))
PROBS = softmax(LOGITS)
LABELS = RNG.integers(0, 5, 400)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), classes=st.integers(2, 7), kind=st.sampled_from(["f8", "f4"]))
def test_confidence_is_the_largest_probability_against_being_right(seed, classes, kind):
    rng = np.random.default_rng(seed)
    probs = softmax(rng.normal(0, 3, (50, classes))).astype(kind)
    labels = rng.integers(0, classes, 50)
    pairs = confidence(labels, probs)
    assert np.array_equal(pairs.p, probs.max(axis=1).astype(np.float64))
    assert np.array_equal(pairs.y, probs.argmax(axis=1) == labels)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8"])
def test_any_float_type_and_layout(dtype):
    probs = PROBS.astype(dtype)
    expected = smooth_ece(probs.argmax(axis=1) == LABELS, probs.max(axis=1).astype("f8"))
    for layout in (probs, np.asfortranarray(probs), np.repeat(probs, 2, axis=0)[::2]):
        value = smooth_ece(confidence(LABELS, layout))
        assert value == pytest.approx(expected, abs=1e-6)


def test_classwise_is_one_against_the_rest():
    sketches = classwise(LABELS, PROBS, nodes=2**16)
    assert list(sketches) == [0, 1, 2, 3, 4]
    for k, sketch in sketches.items():
        assert sketch == Sketch.from_arrays(k == LABELS, PROBS[:, k])


def test_top_label_splits_confidence_by_predicted_class():
    sketches = top_label(LABELS, PROBS)
    predicted = PROBS.argmax(axis=1)
    for k, sketch in sketches.items():
        mine = predicted == k
        assert sketch == Sketch.from_arrays(LABELS[mine] == k, PROBS[mine, k])
    assert sketches.total() == Sketch.from_rows(confidence(LABELS, PROBS))


def test_logits_equal_their_softmax():
    from_logits = confidence(LABELS, LOGITS, from_logits=True)
    assert np.allclose(from_logits.p, PROBS.max(axis=1), rtol=1e-12)
    extreme = confidence([0, 1], [[1e4, -1e4], [-800.0, 0.0]], from_logits=True)
    assert extreme.p.tolist() == [1.0, 1.0]


def changed(row, column, value):
    probs = PROBS.copy()
    probs[row, column] = value
    return probs


@pytest.mark.parametrize(
    ("labels", "probs"),
    [
        (LABELS, changed(7, 2, np.nan)),
        (LABELS, changed(7, 2, -0.5)),
        (LABELS, changed(7, 2, 1.7)),
        (np.where(np.arange(400) == 7, 5, LABELS), PROBS),
        (np.where(np.arange(400) == 7, np.nan, LABELS), PROBS),
    ],
)
def test_an_invalid_row_is_named_and_can_be_dropped(labels, probs):
    for read in (confidence, classwise, top_label):
        with refused(
            row=7, option="on_invalid" if (labels is not LABELS) or np.isnan(probs).any() else None
        ):
            read(labels, probs)
    pairs = confidence(labels, probs, on_invalid="drop")
    assert (pairs.n, sum(pairs.dropped.values())) == (399, 1)
    assert all(part.n == 399 for part in classwise(labels, probs, on_invalid="drop").values())


@pytest.mark.parametrize(
    ("labels", "probs", "argument", "seen", "option"),
    [
        (LABELS, 2 * PROBS / PROBS.max(), "y_prob", ANYTHING, "from_logits"),
        (LABELS, LOGITS, "y_prob", ANYTHING, "from_logits"),
        (LABELS[:-1], PROBS, "y_true", 399, None),
        (LABELS, PROBS[:, 0], "y_prob", (400,), "calibrant.smooth_ece"),
        (LABELS, PROBS[:, :1], "y_prob", (400, 1), "calibrant.smooth_ece"),
        ([], np.empty((0, 5)), "y_prob", ANYTHING, None),
    ],
)
def test_what_is_not_a_matrix_of_probabilities_is_refused(labels, probs, argument, seen, option):
    for read in (confidence, classwise, top_label):
        with refused(argument, seen, option=option):
            read(labels, probs)


@pytest.mark.parametrize("reading", [confidence, top_label, classwise])
@pytest.mark.parametrize(
    ("labels", "probs", "options", "argument", "holds"),
    [
        (np.eye(5)[LABELS], PROBS, {}, "y_true", "numpy.argmax(y_true, axis=1)"),
        (LABELS, 100 * PROBS, {}, "y_prob", ("99.9", "row 0")),
        (LABELS, LOGITS + np.inf, {"from_logits": True}, "y_prob", "row 0"),
        (LABELS, PROBS, {"classes": 5}, "classes", "5"),
        (LABELS, PROBS, {"classes": [[k] for k in range(5)]}, "classes", "[[0], "),
        (LABELS, PROBS, {"classes": [0, 1, 2, 3, 3]}, "classes", ("4", "5")),
        ([0, 1], [[0.5, 0.5], [1.0]], {}, "y_prob", ()),
    ],
)
def test_mistakes_are_refused_with_their_cure(reading, labels, probs, options, argument, holds):
    with refused(argument, holds=holds):
        reading(labels, probs, **options)


@pytest.mark.parametrize("reading", [top_label, classwise])
@pytest.mark.parametrize("weight", [None, [1.0, 1.0, 2.0, 1.0, 1.0, 1.0]])
def test_a_row_that_breaks_several_rules_counts_under_the_first(reading, weight):
    labels = [0.0, 1.0, np.nan, np.nan, 7.0, np.nan]
    probs = [[0.6, 0.4], [0.3, 0.7], [0.9, 0.9], [0.5, 0.5], [2.0, -1.0], [np.nan, 1]]
    found = reading(labels, probs, classes=[0, 1], on_invalid="drop", sample_weight=weight)
    wanted = {"missing prediction": 1, "prediction out of range": 2, "missing label": 1}
    assert found.total().dropped == wanted


@pytest.mark.parametrize("reading", [top_label, classwise])
def test_weights_of_rows_weigh_in_every_class(reading):
    rng = np.random.default_rng(4)
    times = rng.integers(1, 4, LABELS.size)
    weighted = reading(LABELS, PROBS, sample_weight=times, nodes=256)
    repeated = reading(np.repeat(LABELS, times), np.repeat(PROBS, times, axis=0), nodes=256)
    assert list(weighted) == list(repeated)
    for name in weighted:
        assert np.array_equal(weighted[name].cells, repeated[name].cells)
        np.testing.assert_allclose(weighted[name].weights, repeated[name].weights)
        np.testing.assert_allclose(
            weighted[name].weighted_offsets, repeated[name].weighted_offsets, rtol=1e-12
        )


@pytest.mark.parametrize("reading", [top_label, classwise])
def test_weights_are_checked_like_those_of_pairs(reading):
    weight = np.ones(LABELS.size)
    weight[[3, 8]] = -1.0, np.nan
    with refused("sample_weight", -1.0, row=3):
        reading(LABELS, PROBS, sample_weight=weight)
    found = reading(LABELS, PROBS, sample_weight=weight, on_invalid="drop").total()
    assert found.dropped == {"missing weight": 1, "invalid weight": 1}
    classes = PROBS.shape[1] if reading is classwise else 1
    assert found.n == classes * (LABELS.size - 2)
    with refused("sample_weight"):
        reading(LABELS, PROBS, sample_weight=np.zeros(LABELS.size))
    with refused("sample_weight", 1, holds="400"):
        reading(LABELS, PROBS, sample_weight=[1.0])
