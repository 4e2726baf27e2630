"""The profile of language models, against published code and plain means."""

import itertools

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant import profiles
from calibrant.data.points import as_points
from calibrant.profiles.llm import rank_bin_rms


def by_loop(confidence, right, rows, last):
    """What the code of Humanity's Last Exam computes, with or without its last bin."""
    order = np.argsort(confidence)
    confidence, right = confidence[order], right[order]
    edges = [*range(0, confidence.size // rows * rows, rows), confidence.size]
    squares = 0.0
    for low, high in list(itertools.pairwise(edges))[: None if last else -1]:
        gap = confidence[low:high].mean() - right[low:high].mean()
        squares += (high - low) / confidence.size * gap**2
    return squares**0.5


def sample(n=950, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < 0.3 + 0.5 * p).astype(int), p


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("rows", [10, 33, 100])
def test_bins_of_equally_many_rows(last, rows):
    y, p = sample()
    found = rank_bin_rms(as_points(y, p), rows=rows, last_bin=last)
    assert found == pytest.approx(by_loop(p, y, rows, last), abs=1e-13)


def test_values_of_the_published_code():
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    data = load_breast_cancer()
    x, y = data.data[:, :2], 1 - data.target
    x = (x - x[::2].mean(axis=0)) / x[::2].std(axis=0)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[::2], y[::2])
    answers = cal.confidence(y[1::2], model.predict_proba(x[1::2]))
    found = cal.assess(answers, profile="llm").profile
    assert found["HLE calibration error, as published"].value == pytest.approx(0.0509485, abs=5e-8)
    assert found["HLE calibration error, all bins"].value == pytest.approx(0.0593978, abs=5e-8)
    assert found["AURC"].value == pytest.approx(0.04002574, abs=5e-9)


def test_means_are_those_of_rows_and_of_questions():
    y, p = sample()
    question = np.arange(y.size) // 3
    found = cal.assess(y, p, profile="llm").profile
    assert found["accuracy"].value == pytest.approx(y.mean())
    assert found["over-confidence"].value == pytest.approx((p - y).mean())
    error = (p - y).std(ddof=1) / np.sqrt(y.size)
    assert found["over-confidence"].standard_error == pytest.approx(error)
    copies = np.repeat(np.arange(y.size), 2)
    twice = cal.assess(y[copies], p[copies], cluster=copies, profile="llm").profile
    assert twice["accuracy"].standard_error == pytest.approx(found["accuracy"].standard_error)
    clustered = cal.assess(y, p, cluster=question, profile="llm").profile
    assert clustered["AURC"].low != found["AURC"].low


def test_a_sketch_tells_the_same():
    y, p = sample()
    rows = cal.assess(y, p, profile="llm").profile
    cells = cal.assess(cal.Sketch.from_arrays(y, p), profile="llm").profile
    assert list(rows) == list(cells)
    for name in rows:
        assert cells[name].value == pytest.approx(rows[name].value, abs=1e-4), name
        if np.isfinite(rows[name].low):
            assert cells[name].low == pytest.approx(rows[name].low, abs=1e-3), name


def test_sketches_by_question_tell_the_same():
    y, p = sample(n=400)
    question = np.arange(y.size) // 4
    parts = {int(q): cal.Sketch.from_arrays(y[question == q], p[question == q]) for q in range(100)}
    cells = cal.assess(cal.Sketches(parts, by="q"), cluster="q", profile="llm").profile
    rows = cal.assess(y, p, cluster=question, profile="llm").profile
    for name in ("accuracy", "over-confidence", "AURC", "AUGRC"):
        assert cells[name].low == pytest.approx(rows[name].low, abs=1e-4), name


def test_abstentions_are_coverage():
    y, p = sample()
    found = cal.assess(y, p, profile=profiles.llm(abstained=50)).profile
    assert found["coverage"].value == 0.95
    with refused("abstained"):
        profiles.llm(abstained=-1)


def test_what_cannot_be_had_says_why():
    y, p = sample(n=99)
    found = cal.assess(y, p, profile="llm").profile
    missing = found["HLE calibration error"]
    assert np.isnan(missing.value)
    assert "100" in missing.note


def test_accuracy_has_width_where_all_answers_are_right():
    accuracy = cal.assess([1] * 5, [0.2, 0.4, 0.5, 0.7, 0.9], profile="llm").profile["accuracy"]
    assert (accuracy.low, accuracy.high) == (pytest.approx(0.025 ** (1 / 5)), 1.0)
    wrong = cal.assess([0, 1], [0.2, 0.9], profile="llm").profile["accuracy"]
    assert 0.0 < wrong.low < 0.5 < wrong.high < 1.0
    question = np.arange(60) // 3  # twenty that all agree tell as much as twenty answers
    alike = cal.assess(np.ones(60), np.linspace(0.2, 0.9, 60), cluster=question, profile="llm")
    accuracy = alike.profile["accuracy"]
    assert (accuracy.value, accuracy.high) == (pytest.approx(1.0), 1.0)
    assert accuracy.low == pytest.approx(0.025 ** (1 / 20))
