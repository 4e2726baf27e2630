"""A label stands for the column of its name, whatever its type, and in whatever order the columns stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused

import calibrant as cal

RNG = np.random.default_rng(1)
PROBS = RNG.dirichlet([1.0, 2.0, 0.7], 300)
LABELS = (PROBS.cumsum(axis=1) > RNG.random((300, 1))).argmax(axis=1)
EXPECTED = cal.smooth_ece(LABELS, PROBS)
ORDERS = [(0, 1, 2), (2, 0, 1), (1, 0, 2)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8, object, str])
@pytest.mark.parametrize("name", ["p_{}", "p{}", "{}", "prob.{}_new", "v2.{}"])
def test_the_order_of_columns_and_the_type_of_labels_change_nothing(order, kind, name):
    frame = pd.DataFrame({name.format(k): PROBS[:, k] for k in order})
    assert cal.smooth_ece(LABELS.astype(kind), frame) == EXPECTED


@pytest.mark.parametrize("order", ORDERS)
def test_numbers_may_name_the_columns_of_a_frame(order):
    frame = pd.DataFrame({k: PROBS[:, k] for k in order})
    assert cal.smooth_ece(LABELS, frame) == EXPECTED
    by_class = cal.assess_by(LABELS, frame, multiclass="classwise")
    for k in range(3):
        one = cal.smooth_ece(np.equal(LABELS, k), PROBS[:, k])
        assert by_class[k].smooth_ece == pytest.approx(one)


@pytest.mark.parametrize(
    "source", [dict, pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatchReader]
)
def test_every_source_matches_names(source):
    columns = {"y": LABELS} | {f"p_{k}": PROBS[:, k] for k in (2, 0, 1)}
    if source is pa.RecordBatchReader:
        table = pa.table(columns)
        data = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    else:
        data = source(columns)
    names = ["p_2", "p_0", "p_1"]
    sketch = cal.scan(data, y_true="y", y_prob=names, multiclass="confidence")
    assert np.isclose(cal.smooth_ece(sketch), EXPECTED, atol=1e-9)


@pytest.mark.parametrize("names", [("True", "False"), ("false", "true"), ("yes", "no"), ("1", "0")])
@pytest.mark.parametrize("kind", [np.bool_, np.int64, np.float64, object])
def test_truth_values_are_matched_to_their_words(names, kind):
    p = RNG.random(200)
    y = RNG.random(200) < p
    word = {"true": p, "yes": p, "1": p}
    frame = pd.DataFrame({f"p_{name}": word.get(name.lower(), 1 - p) for name in names})
    expected = cal.smooth_ece(y.astype(int), np.column_stack([1 - p, p]), multiclass="confidence")
    assert cal.smooth_ece(y.astype(kind), frame, multiclass="confidence") == expected


@pytest.mark.parametrize(
    "names", [("p_1", "p_2", "p_3"), (1, 2, 3), ("p_other", "p_0", "p_1"), ("p10", "p11", "p12")]
)
def test_labels_that_are_not_among_the_numbers_are_refused(names):
    frame = pd.DataFrame(PROBS, columns=list(names))
    with refused(argument="y_true", option="classes"):
        cal.smooth_ece(LABELS, frame)
    assert cal.smooth_ece(LABELS, frame, classes=[0, 1, 2]) == EXPECTED
    assert cal.smooth_ece(LABELS, frame.to_numpy()) == EXPECTED


def test_maps_take_columns_of_any_numbers():
    frame = pd.DataFrame(PROBS, columns=[f"p_{k}" for k in (4, 2, 9)])
    labels = np.array([4, 2, 9])[LABELS]
    for made in cal.choose_recalibrator(labels, frame).recalibrator, one_vs_rest():
        learned = made.fit(frame, labels)
        assert np.allclose(learned.transform(frame), learned.transform(PROBS), atol=0)


def one_vs_rest():
    return cal.recalibration.OneVsRestRecalibrator()
