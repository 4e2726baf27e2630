"""ReliabilityDisplay keeps scikit-learn's contract for displays."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from tests.refusals import refused

from calibrant.errors import InputError
from calibrant.plotting.binned import binned_diagram
from calibrant.sklearn import ReliabilityDisplay


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(400, random_state=0)
    labels = np.array(["no", "yes"])[y]
    return LogisticRegression().fit(X, labels), X, labels


def test_from_estimator_draws_the_second_class(fitted) -> None:
    model, X, y = fitted
    ax = Figure().subplots()
    display = ReliabilityDisplay.from_estimator(model, X, y, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert isinstance(display.line_, Line2D)
    assert display.estimator_name == "LogisticRegression"
    assert display.pos_label == "yes"
    same = ReliabilityDisplay.from_predictions(
        y == "yes", model.predict_proba(X)[:, 1], ax=Figure().subplots()
    )
    assert np.array_equal(display.line_.get_ydata(), same.line_.get_ydata(), equal_nan=True)


def test_the_other_class_is_the_mirror_image(fitted) -> None:
    model, X, y = fitted
    ax = Figure().subplots()
    display = ReliabilityDisplay.from_estimator(model, X, y, pos_label="no", ax=ax)
    plain = ReliabilityDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    assert display.diagram.smooth_ece.value == pytest.approx(
        plain.diagram.smooth_ece.value, abs=1e-6
    )


def test_plot_again_with_another_name_and_without_reference(fitted) -> None:
    model, X, y = fitted
    display = ReliabilityDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    again = display.plot(ax=Figure().subplots(), name="mine", ref_line=False, curve="line")
    assert again is display
    assert "mine" in display.artists_["note"][0].get_text()
    assert not {"diagonal", "consistency", "reference"} & set(display.artists_)
    assert all(
        artist.axes is display.ax_ for drawn in display.artists_.values() for artist in drawn
    )
    assert len(display.ax_.get_lines()) == 1  # the curve
    said = [text.get_text() for text in display.artists_["legend"][0].get_texts()]
    assert not any("calibrat" in text for text in said)


def test_weights_and_seed_reach_the_diagram(fitted) -> None:
    model, X, y = fitted
    weight = np.linspace(0.5, 2, len(y))
    ax = Figure().subplots()
    display = ReliabilityDisplay.from_estimator(model, X, y, sample_weight=weight, seed=5, ax=ax)
    assert display.diagram.sketch.weighted
    assert display.diagram.seed == 5
    settings = {"bandwidth": 0.1, "confidence": 0.8, "resamples": 7, "curves": 2}
    diagram = ReliabilityDisplay.from_estimator(model, X, y, ax=ax, **settings).diagram
    assert (diagram.bandwidth, diagram.confidence, diagram.resamples) == (0.1, 0.8, 7)
    assert len(diagram.resampled) == 2


def test_what_cannot_be_drawn_is_refused(fitted) -> None:
    model, X, y = fitted
    for unfitted in (LogisticRegression(), LinearSVC(), make_pipeline(LogisticRegression())):
        with pytest.raises(InputError) as error:
            ReliabilityDisplay.from_estimator(unfitted, X, y)
        assert error.value.argument == "estimator"
        assert error.value.hint
    with refused("estimator", holds="LinearSVC"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    flowers, kinds = load_iris(return_X_y=True)
    many = LogisticRegression(max_iter=500).fit(flowers, kinds)
    with refused("estimator", 3):
        ReliabilityDisplay.from_estimator(many, flowers, kinds)
    with refused("pos_label", "maybe"):
        ReliabilityDisplay.from_estimator(model, X, y, pos_label="maybe")
    for other in (3, binned_diagram([0, 1], [0.2, 0.7])):
        with pytest.raises(InputError) as error:
            ReliabilityDisplay(other)
        assert error.value.argument == "diagram"
