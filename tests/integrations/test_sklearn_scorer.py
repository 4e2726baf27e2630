"""The scorer works where scikit-learn takes one, and gives the measure's own number."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from tests.refusals import refused

import calibrant as cal
from calibrant.sklearn import neg_smooth_ece_scorer


@pytest.fixture(scope="module")
def tumours():
    return load_breast_cancer(return_X_y=True)


def test_two_classes_give_the_measure_of_the_second_whatever_they_are_called(tumours):
    X, y = tumours
    weight = np.linspace(1, 3, len(y))
    for labels in (y, np.array(["benign", "malignant"])[y]):
        model = GaussianNB().fit(X, labels)
        for options in ({}, {"sample_weight": weight}):
            expected = -cal.smooth_ece(y, model.predict_proba(X)[:, 1], **options)
            assert neg_smooth_ece_scorer(model, X, labels, **options) == expected


def test_more_classes_give_the_confidence():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    expected = -cal.smooth_ece(cal.confidence(y, model.predict_proba(X)))
    assert neg_smooth_ece_scorer(model, X, y) == expected


def test_cross_validation_and_grid_search_take_it(tumours):
    X, y = tumours
    scores = cross_val_score(GaussianNB(), X, y, cv=3, scoring=neg_smooth_ece_scorer)
    assert scores.shape == (3,)
    assert np.all(scores < 0)
    search = GridSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9, 1e-1]}, cv=3, scoring=neg_smooth_ece_scorer
    ).fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_an_estimator_without_probabilities_is_refused_with_a_cure(tumours):
    X, y = tumours
    with refused("estimator", holds=("LinearSVC", "CalibratedClassifierCV")):
        neg_smooth_ece_scorer(LinearSVC().fit(X[:50], y[:50]), X, y)


def test_labels_that_the_estimator_does_not_know_are_refused(tumours):
    X, y = tumours
    model = GaussianNB().fit(X, y)
    missing = np.where(np.arange(y.size) == 3, np.nan, y)
    for wrong, row in ((y + 5, 0), (missing, 3), (np.array(["a", "b"])[y], 0)):
        with refused("y", row=row, holds="0, 1"):
            neg_smooth_ece_scorer(model, X, wrong)
    assert neg_smooth_ece_scorer(model, X, y.astype(bool)) == neg_smooth_ece_scorer(model, X, y)
