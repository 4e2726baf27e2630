"""Class probabilities go wherever predictions of one event go, in every form, and say the same."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from tests.refusals import refused

import calibrant as cal
from calibrant.errors import TooFewRows
from calibrant.inference import compare_by
from calibrant.recalibration import TemperatureScaling

NAMES = ["cat", "dog", "owl"]
RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet([1.0, 2.0, 0.7], 400)
LABELS = (PROBS.cumsum(axis=1) > RNG.random((400, 1))).argmax(axis=1)
OTHER = PROBS**1.7 / (PROBS**1.7).sum(axis=1, keepdims=True)
NAMED = np.array(NAMES)[LABELS]
TOP = cal.confidence(LABELS, PROBS)
COLUMNS = [f"p_{name}" for name in NAMES]
QUICK = {"temperature": TemperatureScaling(from_logits=False)}
SINGLE = [
    *("smooth_ece", "smooth_ece_result", "assess", "reliability_diagram"),
    *("certify", "selective", "decision_curve"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows with a column for each class, and with one of lists."""
    folder = tmp_path_factory.mktemp("classes")
    columns = {"y": NAMED, **{name: PROBS[:, k] for k, name in enumerate(COLUMNS)}}
    columns |= {f"q_{name}": OTHER[:, k] for k, name in enumerate(NAMES)}
    lists = {"y": NAMED, "probs": PROBS.tolist(), "logits": np.log(PROBS).tolist()}
    pyarrow.parquet.write_table(pa.table(columns), folder / "columns.parquet")
    pyarrow.csv.write_csv(pa.table(columns), folder / "columns.csv")
    pyarrow.parquet.write_table(pa.table(lists), folder / "lists.parquet")
    with open(folder / "lists.jsonl", "w") as file:
        for y, p in zip(NAMED.tolist(), PROBS.tolist(), strict=True):
            file.write(json.dumps({"y": y, "probs": p}) + "\n")
    return folder


def plainly(result):
    """A result as text, in which NaN equals NaN, without the scores of the whole distribution."""
    found = result.to_dict() if hasattr(result, "to_dict") else result
    return repr(
        {k: v for k, v in found.items() if k != "classes"} if type(found) is dict else found
    )


def test_scores_of_the_whole_distribution_are_those_of_scikit_learn(tmp_path):
    features, digits = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(features[::2] / 16, digits[::2])
    probs, labels = model.predict_proba(features[1::2] / 16), digits[1::2]
    weight = RNG.random(labels.size)
    for options in ({}, {"sample_weight": weight}):
        found = cal.assess(labels, probs, **options).classes
        assert found.log_loss == pytest.approx(log_loss(labels, probs, **options), rel=1e-12)
        assert found.accuracy == pytest.approx(
            accuracy_score(labels, probs.argmax(axis=1), **options)
        )
        squares = ((probs - np.eye(10)[labels]) ** 2).sum(axis=1)
        assert found.brier == pytest.approx(
            np.average(squares, weights=options.get("sample_weight")), rel=1e-12
        )
    text = str(cal.assess(labels, probs))
    assert f"all classes: log loss {log_loss(labels, probs):.4f}" in re.sub(" +", " ", text)
    assert "confidence: log loss" in text
    assert "\nall classes: Brier score" in text
    columns = {"y": labels, **{f"p_{k}": column for k, column in enumerate(probs.T)}}
    asked = {"y_true": "y", "y_prob": list(columns)[1:], "multiclass": "confidence"}
    assert cal.assess(data=columns, **asked).classes == cal.assess(labels, probs).classes
    frame = cal.assess(labels, probs).to_frame("polars")
    assert frame["class_log_loss"][0] == cal.assess(labels, probs).classes.log_loss
    path = tmp_path / "rows.parquet"
    pl.DataFrame(columns).write_parquet(path)
    of_file = cal.assess(data=path, **asked)
    assert of_file.classes.accuracy == pytest.approx(accuracy_score(labels, probs.argmax(axis=1)))
    assert of_file.to_dict()["classes"]["log_loss"] is None
    assert "confidence: log loss" in str(of_file)
    assert "all classes: log loss" not in str(of_file)
    dropped = cal.assess(np.append(labels, 11), np.vstack([probs, probs[:1]]), on_invalid="drop")
    assert dropped.classes.log_loss == pytest.approx(log_loss(labels, probs), rel=1e-12)
    assert cal.assess(LABELS == 0, PROBS[:, 0]).classes is None


@pytest.mark.parametrize("verb", SINGLE)
def test_a_matrix_is_its_confidence(verb):
    function = getattr(cal, verb)
    expected = plainly(function(TOP))
    assert plainly(function(LABELS, PROBS)) == expected
    assert plainly(function(NAMED, pd.DataFrame(PROBS, columns=NAMES))) == expected
    assert plainly(function(NAMED, PROBS, classes=NAMES, multiclass="confidence")) == expected
    for view in ("top_label", "classwise"):
        with refused("multiclass", view):
            function(LABELS, PROBS, multiclass=view)


@pytest.mark.parametrize("file", ["columns.parquet", "columns.csv", "lists.parquet", "lists.jsonl"])
@pytest.mark.parametrize("view", ["top_label", "classwise"])
def test_files_and_arrays_have_the_same_classes(files, file, view):
    listed = file.startswith("lists")
    options = {"classes": NAMES} if listed else {}
    found = cal.assess_by(
        data=files / file, y_true="y", y_prob="probs" if listed else COLUMNS, multiclass=view,
        **options,
    )  # fmt: skip
    expected = cal.assess_by(NAMED, PROBS, multiclass=view, classes=NAMES)
    assert set(found) == set(NAMES)
    assert list(found) == list(expected)
    for name in NAMES:
        assert found[name].smooth_ece == pytest.approx(expected[name].smooth_ece, abs=1e-6)


def test_groups_clusters_weights_and_scales_cross_classes():
    half = np.where(np.arange(400) % 2, "odd", "even")
    found = cal.assess_by(LABELS, PROBS, by=half, multiclass="classwise")
    own = cal.assess(LABELS[half == "odd"] == 1, PROBS[half == "odd", 1])
    assert found[1, "odd"].smooth_ece == pytest.approx(own.smooth_ece, abs=1e-9)
    assert set(cal.assess_by(LABELS, PROBS, by=half)) == {"odd", "even"}
    day = np.arange(400) // 4
    one = cal.assess_by(LABELS, PROBS, cluster=day, multiclass="classwise")[2]
    assert one.clusters == cal.assess(LABELS == 2, PROBS[:, 2], cluster=day).clusters == 100
    weight = RNG.uniform(0.5, 2, 400)
    heavy = cal.assess_by(
        LABELS, PROBS, multiclass="classwise", sample_weight=weight, scale="logit"
    )
    alone = cal.assess(LABELS == 0, PROBS[:, 0], sample_weight=weight, scale="logit")
    assert heavy[0].smooth_ece == pytest.approx(alone.smooth_ece, abs=1e-4)


def test_two_columns_are_not_taken_for_classes_without_a_word():
    two = PROBS[:, :2] / PROBS[:, :2].sum(axis=1, keepdims=True)
    with refused("y_prob", (400, 2), option="multiclass"):
        cal.assess(LABELS == 1, two)
    assert cal.assess(LABELS == 1, two, multiclass="confidence").n == 400


def test_diagrams_of_classes():
    found = cal.reliability_diagrams(NAMED, PROBS, classes=NAMES, multiclass="classwise")
    assert list(found) == NAMES
    alone = cal.reliability_diagram(LABELS == 1, PROBS[:, 1])
    assert found["dog"].label == alone.label
    with refused("y_true", option="calibrant.confidence"):
        cal.reliability_diagrams(LABELS, PROBS)


def test_models_of_many_classes_are_compared_on_their_confidence(files):
    found = cal.compare(LABELS, {"a": PROBS, "b": OTHER})
    pairs = cal.confidence(LABELS, OTHER)
    assert found.assessments["b"].smooth_ece == cal.assess(pairs).smooth_ece
    assert found.paired
    columns = {"a": COLUMNS, "b": [f"q_{name}" for name in NAMES]}
    read = cal.compare(
        data=files / "columns.parquet", y_true="y", y_prob=columns, multiclass="confidence"
    )
    assert read.to_dict() == found.to_dict()
    columns["b"] = columns["b"][::-1]
    with refused("y_prob", holds="('owl', 'dog', 'cat')"):
        cal.compare(
            data=files / "columns.parquet", y_true="y", y_prob=columns, multiclass="confidence"
        )


def test_models_are_compared_class_by_class():
    found = compare_by(NAMED, {"a": PROBS, "b": OTHER}, classes=NAMES)
    assert set(found) == set(NAMES)
    alone = {
        name: cal.compare(k == LABELS, {"a": PROBS[:, k], "b": OTHER[:, k]}, correction="none")
        for k, name in enumerate(NAMES)
    }
    p_values = [one.differences[0].p_value for one in alone.values()]
    for name, one in alone.items():
        assert found[name].differences[0].p_value == one.differences[0].p_value
        assert found[name].assessments["b"] == one.assessments["b"]
    assert min(f.differences[0].p_value_adjusted for f in found.values()) == pytest.approx(
        min(1.0, 3 * min(p_values))
    )
    said = compare_by(LABELS, {"a": PROBS, "b": OTHER}, multiclass="top_label")
    assert said.by == "predicted"
    assert not next(iter(said.values())).paired
    with refused("cluster", option="multiclass"):
        compare_by(LABELS, {"a": PROBS, "b": OTHER}, multiclass="top_label", cluster=LABELS)
    with refused("y_prob", 1):
        compare_by(LABELS, {"a": PROBS})


def test_a_report_shows_the_worst_classes_and_confident_errors(files):
    sure = PROBS**6 / (PROBS**6).sum(axis=1, keepdims=True)
    made = cal.report(NAMED, sure, classes=NAMES)
    found = made.to_dict()["classes"]
    top, said = sure.max(axis=1), np.array(NAMES)[sure.argmax(axis=1)]
    wrong = (top >= 0.9) & (said != NAMED)
    errors = found["confident_errors"]
    assert (errors["rows"], errors["wrong"]) == ((top >= 0.9).sum(), wrong.sum())
    assert errors["expected"] == pytest.approx((1 - top[top >= 0.9]).sum(), abs=1e-4)
    for line in errors["most"]:
        here = wrong & (said == line["said"]) & (line["true"] == NAMED)
        assert line["rows"] == here.sum() > 0
        assert line["confidence"] == pytest.approx(top[here].mean(), abs=1e-4)
    worst = cal.assess_by(NAMED, sure, classes=NAMES, multiclass="classwise")
    assert [line["name"] for line in found["worst"]] == list(worst)
    assert made.html.count("<figcaption>cat<") == 1
    assert "Wrong with confidence" in made.markdown
    rows = {"y": NAMED, **{name: sure[:, k] for k, name in enumerate(COLUMNS)}}
    read = cal.report(data=rows, y_true="y", y_prob=COLUMNS, multiclass="classwise")
    assert read.to_dict()["classes"] == found


def test_many_classes_are_corrected_for_all_of_them():
    from calibrant.io.scan import scan_classes
    from calibrant.reporting.classes import MOST_ASSESSED, class_finding, classes_of

    many = MOST_ASSESSED + 6
    probs = RNG.dirichlet(np.full(many, 0.3), 500)
    labels = RNG.integers(0, many, 500)
    rows = {"y": labels, **{str(k): probs[:, k] for k in range(many)}}
    sketches = scan_classes(rows, y_true="y", y_prob=[str(k) for k in range(many)])
    found = classes_of(sketches, class_finding(sketches.each, confidence=0.95))
    assert (found.number, len(found.finding.groups)) == (many, MOST_ASSESSED)
    for one in found.finding.values():
        assert one.p_value_adjusted == pytest.approx(min(1.0, many * one.p_value))


def test_a_map_is_chosen_from_files(files):
    by_array = cal.choose_recalibrator(NAMED, PROBS, classes=NAMES, candidates=QUICK)
    for file, column, more in (
        ("columns.csv", COLUMNS, {}),
        ("lists.parquet", "probs", {"classes": NAMES}),
    ):
        found = cal.choose_recalibrator(
            data=files / file, y_true="y", y_prob=column, multiclass="confidence",
            candidates=QUICK, **more,
        )  # fmt: skip
        assert found.best == by_array.best
        assert found.candidates[0].loss == pytest.approx(by_array.candidates[0].loss, abs=1e-9)


def test_a_map_is_chosen_from_logits_and_on_whole_clusters():
    chosen = cal.choose_recalibrator(
        LABELS, np.log(PROBS) + 3.0, from_logits=True, candidates=QUICK
    )
    plain = cal.choose_recalibrator(LABELS, PROBS, candidates=QUICK)
    assert chosen.best == plain.best
    assert chosen.candidates[0].loss == pytest.approx(plain.candidates[0].loss, abs=1e-6)
    with refused("y_prob", row=7):
        cal.choose_recalibrator(LABELS, one_changed(7, 1, np.inf), from_logits=True)
    # Rows that are repeated tell a map nothing that is new of their cluster.
    day = np.repeat(np.arange(400), 3)
    rows = cal.choose_recalibrator(LABELS[day], PROBS[day], cluster=day, candidates=QUICK)
    one = {line.name: line for line in rows.candidates}["temperature"]
    alone = {line.name: line for line in plain.candidates}["temperature"]
    assert (one.gain, one.gain_se) == pytest.approx((alone.gain, alone.gain_se), abs=1e-6)
    with refused("cv", 5):
        cal.choose_recalibrator(LABELS, PROBS, cluster=np.arange(400) % 3)


def one_changed(row, column, value):
    logits = np.log(PROBS)
    logits[row, column] = value
    return logits


READERS = {
    "assess": cal.assess,
    "assess_by": lambda y, p, **o: cal.assess_by(y, p, multiclass="classwise", **o),
    "compare": lambda y, p, **o: cal.compare(y, {"a": p, "b": p}, **o),
    "compare_by": lambda y, p, **o: compare_by(y, {"a": p, "b": p}, **o),
    "reliability_diagrams": lambda y, p, **o: cal.reliability_diagrams(
        y, p, multiclass="top_label", **o
    ),
    "report": cal.report,
    "certify": cal.certify,
    "selective": cal.selective,
    "monitor": lambda y, p, **o: cal.Monitor().update(y, p, **o),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_bad_rows_of_classes_are_named(read):
    bad = [
        ({"from_logits": True}, LABELS, one_changed(7, 1, np.inf), "y_prob", None),
        ({}, LABELS, np.where(np.arange(400)[:, None] == 7, 0.98 * PROBS, PROBS), "y_prob", 0.98),
        ({}, np.where(np.arange(400) == 7, 3, LABELS), PROBS, "y_true", 3),
        ({"classes": NAMES}, np.where(np.arange(400) == 7, "emu", NAMED), PROBS, "y_true", "emu"),
    ]
    for options, labels, probs, argument, seen in bad:
        with pytest.raises(cal.InputError) as error:
            read(labels, probs, **options)
        assert (error.value.argument, error.value.row) == (argument, 7)
        assert seen is None or str(seen) in str(error.value)
        assert error.value.hint


@pytest.mark.parametrize("rows_of_owl", [0, 1])
def test_a_class_with_no_row_or_one_is_assessed_but_has_no_parameters_of_its_own(rows_of_owl):
    from calibrant import recalibration as maps

    few = np.where(LABELS == 2, 0, LABELS)
    few[:rows_of_owl] = 2
    assert cal.assess_by(few, PROBS, multiclass="classwise")[2].n == 400
    mapped = maps.TemperatureScaling(from_logits=False).fit(PROBS, few).transform(PROBS)
    assert np.array_equal(mapped.argmax(axis=1), PROBS.argmax(axis=1))
    for made in (
        maps.VectorScaling(from_logits=False),
        maps.StructuredScaling(from_logits=False),
        maps.OneVsRestRecalibrator(maps.PlattRecalibrator()),
    ):
        with refused("y_true", 2, kind=TooFewRows):
            made.fit(PROBS, few)


def test_a_monitor_takes_the_confidence_or_each_class(files):
    watch, same = cal.Monitor(), cal.Monitor()
    assert watch.update(LABELS, PROBS) == same.update(TOP)
    read = {"data": files / "columns.parquet", "y_true": "y", "y_prob": COLUMNS}
    assert cal.Monitor().update(**read, multiclass="confidence").n == 400
    lists = {"data": files / "lists.jsonl", "y_true": "y", "y_prob": "probs", "classes": NAMES}
    for view, sketches in (("top_label", cal.top_label), ("classwise", cal.classwise)):
        given = sketches(NAMED, PROBS, classes=NAMES)
        look = cal.Monitor().update(NAMED, PROBS, classes=NAMES, multiclass=view)
        assert look == cal.Monitor().update(given)
        assert look == cal.Monitor().update(**lists, multiclass=view)
        assert look == cal.Monitor().update(**read, multiclass=view)
        alone = {name: cal.Monitor().update(part).e_value for name, part in given.items()}
        assert {one.name: one.e_value for one in look.groups} == pytest.approx(alone, rel=1e-12)
        assert look.e_value == pytest.approx(np.mean(list(alone.values())), rel=1e-12)
        assert look.n == 400
        with refused("multiclass"):
            watch.update(LABELS, PROBS, multiclass=view)
    assert watch.n == 400


def test_sections_of_a_report_are_the_worst_classes():
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.ones(6), 800)
    labels = (probs.cumsum(axis=1) > rng.random((800, 1))).argmax(axis=1)
    labels[labels == 3] = np.where(rng.random((labels == 3).sum()) < 0.7, 5, 3)
    finding = cal.assess_by(labels, probs, multiclass="classwise")
    worst = [str(group.key) for group in finding.groups[:3]]
    assert {"3", "5"} <= set(worst)
    sketches = cal.classwise(labels, probs)
    made = [
        cal.report(labels, probs, multiclass="classwise", limit=3),
        cal.report(sketches, limit=3),
        cal.report(finding, limit=3),
    ]
    for one in made:
        page = one.to_dict()
        assert [group["name"] for group in page["groups"]] == worst
        assert page["sentences"] == list(finding.sentences)
        assert "6" in one.markdown


@pytest.mark.parametrize("view", ["classwise", "top_label"])
def test_what_takes_one_sample_says_what_takes_classes(view):
    with refused("multiclass", view, holds="compare_by"):
        cal.compare(LABELS, {"a": PROBS, "b": OTHER}, multiclass=view)
    for call in (
        lambda: cal.certify(LABELS, PROBS, multiclass=view),
        lambda: cal.certify("y", ["p0", "p1", "p2"], multiclass=view, data=_table()),
    ):
        with refused("multiclass", view, holds=f"calibrant.{view}"):
            call()
    with refused("multiclass", view, holds=("assess_by", view)):
        cal.selective(LABELS, PROBS, multiclass=view)


def _table():
    return {"y": LABELS} | {f"p{k}": PROBS[:, k] for k in range(3)}
