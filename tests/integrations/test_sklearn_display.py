"""ReliabilityDisplay keeps scikit-learn's contract for displays."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from tests.refusals import refused

from calibrant.integrations.sklearn import ReliabilityDisplay
from calibrant.plotting import binned_diagram

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(400, random_state=0)
    labels = np.array(["no", "yes"])[y]
    return LogisticRegression().fit(X, labels), X, labels


def axes():
    return Figure().subplots()


def test_from_estimator_draws_the_second_class(fitted) -> None:
    model, X, y = fitted
    ax = axes()
    display = ReliabilityDisplay.from_estimator(model, X, y, ax=ax)
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert isinstance(display.line_, LineCollection)
    assert (display.name, display.pos_label) == ("LogisticRegression", "yes")
    assert [text.get_text() for text in ax.legend().get_texts()] == ["LogisticRegression"]
    same = ReliabilityDisplay.from_predictions(y == "yes", model.predict_proba(X)[:, 1], ax=axes())
    np.testing.assert_array_equal(display.diagram.curve.observed, same.diagram.curve.observed)


def test_plot_again_with_another_look(fitted) -> None:
    model, X, y = fitted
    display = ReliabilityDisplay.from_estimator(model, X, y, ax=axes())
    again = display.plot(axes(), name="mine", color="C4", linewidth=2.0)
    assert again is display
    assert display.line_.get_label() == "mine"
    assert list(display.line_.get_linewidth()) == [2.0]
    assert all(
        artist.axes is display.ax_ for drawn in display.artists_.values() for artist in drawn
    )


def test_options_reach_the_diagram(fitted) -> None:
    model, X, y = fitted
    weight = np.linspace(0.5, 2, len(y))
    display = ReliabilityDisplay.from_estimator(
        model, X, y, sample_weight=weight, bandwidth=0.1, confidence=0.8, ax=axes()
    )
    diagram = display.diagram
    assert diagram.sketch.weighted
    assert (diagram.bandwidth, diagram.confidence) == (0.1, 0.8)


def test_many_classes() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, X, y)
    assert sorted(display.diagram) == ["0", "1", "2"]
    assert len(display.line_) == 3
    same = ReliabilityDisplay.from_predictions(y, model.predict_proba(X))
    assert sorted(same.diagram) == ["0", "1", "2"]
    one = ReliabilityDisplay.from_estimator(model, X, y, pos_label=2, ax=axes())
    assert one.diagram.smooth_ece.value == pytest.approx(
        display.diagram["2"].smooth_ece.value, abs=1e-4
    )


def test_invalid_rows_are_dropped_where_asked_for(fitted) -> None:
    model, X, labels = fitted
    probs = model.predict_proba(X)
    y = (labels == "yes").astype(float)
    y[3] = np.nan
    for given, event in ((probs[:, 1], None), (probs, None), (probs, 1)):
        with refused(row=3, holds="on_invalid"):
            ReliabilityDisplay.from_predictions(y, given, pos_label=event, ax=axes())
        display = ReliabilityDisplay.from_predictions(
            y, given, pos_label=event, on_invalid="drop", ax=axes()
        )
        assert display.diagram.n == len(y) - 1
    weight = np.where(np.arange(len(y)) == 3, np.nan, 1.0)
    results = cross_validate(model, X, labels, cv=4, return_estimator=True, return_indices=True)
    options = {"sample_weight": weight, "on_invalid": "drop", "ax": axes()}
    folded = ReliabilityDisplay.from_cv_results(results, X, labels, **options)
    assert folded.diagram.n == len(y) - 1


def test_unknown_keywords_are_refused_with_all_that_there_are(fitted) -> None:
    model, X, y = fitted
    with refused("band_width", holds=("`bandwidth`", "confidence", "theme", "color")):
        ReliabilityDisplay.from_estimator(model, X, y, band_width=0.1)


def test_cross_validation(fitted) -> None:
    model, X, y = fitted
    results = cross_validate(model, X, y, cv=4, return_estimator=True, return_indices=True)
    display = ReliabilityDisplay.from_cv_results(results, X, y, ax=axes())
    assert display.diagram.n == len(y)
    assert len(display.folds) == len(display.artists_["folds"]) == 4
    assert sum(fold.n for fold in display.folds.values()) == len(y)
    names = [text.get_text() for text in display.ax_.legend().get_texts()]
    assert names == ["LogisticRegression", "Single folds"]
    (legend,) = ReliabilityDisplay.from_cv_results(results, X, y).figure_.legends
    assert [text.get_text() for text in legend.get_texts()].count("Single folds") == 1
    with refused("y", holds="cross_validate"):
        ReliabilityDisplay.from_cv_results(results, X[:100], y[:100])
    with refused("cv_results", holds="return_indices"):
        ReliabilityDisplay.from_cv_results(cross_validate(model, X, y), X, y)


def test_labels_that_the_estimator_does_not_know_are_refused(fitted) -> None:
    model, X, labels = fitted
    numbers = (labels == "yes").astype(int)
    for y, wrong, known in ((labels, numbers, "'no', 'yes'"), (numbers, labels, "0, 1")):
        results = cross_validate(model, X, y, cv=2, return_estimator=True, return_indices=True)
        one = results["estimator"][0]
        with refused("y", row=0, holds=known):
            ReliabilityDisplay.from_estimator(one, X, wrong)
        with refused("y", row=0, holds=known):
            ReliabilityDisplay.from_cv_results(results, X, wrong)


def test_what_cannot_be_drawn_is_refused(fitted) -> None:
    model, X, y = fitted
    for unfitted in (LogisticRegression(), LinearSVC(), make_pipeline(LogisticRegression())):
        with refused("estimator", holds="not fitted"):
            ReliabilityDisplay.from_estimator(unfitted, X, y)
    with refused("estimator", holds="predict_proba"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    with refused("pos_label", "maybe"):
        ReliabilityDisplay.from_estimator(model, X, y, pos_label="maybe")
    for other in (3, binned_diagram([0, 1], [0.2, 0.7])):
        with refused("diagram"):
            ReliabilityDisplay(other)
