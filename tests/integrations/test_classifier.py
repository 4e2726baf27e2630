"""The meta-estimator: scikit-learn's own checks, and that it repairs."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from tests.refusals import refused

from calibrant import Sketch, smooth_ece
from calibrant.errors import TooFewRows
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.integrations.classifier import RecalibratedClassifier
from calibrant.measures.catalogue import multiclass_error
from calibrant.recalibration.effect import log_losses
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling


def data(classes=2, n=3000):
    X, y = make_classification(
        n, 20, n_informative=5, n_redundant=10, n_classes=classes, random_state=0
    )
    half = n // 2
    return X[:half], y[:half], X[half:], y[half:]


EXPECTED_FAILURES = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",  # of a classifier that takes sparse rows
    ),
    "a map depends on ratios of weights, so that a weight of 2 is not two rows; the number of rows is "
    "Kish's effective sample size",
)


@pytest.mark.parametrize(
    "model",
    [
        RecalibratedClassifier(GaussianNB(), recalibrator="platt", cv=2),
        pytest.param(RecalibratedClassifier(), marks=pytest.mark.heavy),  # half a minute
    ],
    ids=["platt", "default"],
)
def test_passes_scikit_learns_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            model, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED_FAILURES
        )
    failed = [result["check_name"] for result in results if result["status"] == "failed"]
    assert failed == []


@pytest.mark.parametrize("name", ["smooth", "platt", "isotonic", "beta", "choose"])
def test_repairs_a_naive_classifier(name):
    X, y, X_new, y_new = data(n=1500)
    plain = GaussianNB().fit(X, y).predict_proba(X_new)[:, 1]
    model = RecalibratedClassifier(GaussianNB(), recalibrator=name).fit(X, y)
    better = model.predict_proba(X_new)[:, 1]
    assert smooth_ece(y_new, better) < 0.5 * smooth_ece(y_new, plain)
    assert log_losses(y_new, better).mean() < log_losses(y_new, plain).mean()
    assert model.score(X_new, y_new) > 0.6


def test_more_classes_are_mapped_one_against_the_rest():
    X, y, X_new, y_new = data(classes=3)
    labels = np.array(["a", "b", "c"])
    model = RecalibratedClassifier(GaussianNB(), recalibrator=PlattRecalibrator())
    probs = model.fit(X, labels[y], sample_weight=np.ones(y.size)).predict_proba(X_new)
    plain = GaussianNB().fit(X, y).predict_proba(X_new)
    assert probs.sum(axis=1) == pytest.approx(1.0)
    before, after = (multiclass_error(y_new, q, view="classwise_mean") for q in (plain, probs))
    sketches = [Sketch.from_arrays(y_new == k, probs[:, k]) for k in range(3)]
    floor = np.mean([CalibrationTest.of(one).noise_floor for one in sketches])
    assert before > 4 * floor
    assert after < 1.5 * floor  # nothing is left that calibrated predictions would not show
    assert set(model.predict(X_new)) <= set(labels)


def test_a_pipeline_gets_the_frame_and_its_names():
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = data(n=400)
    city = np.array(["Bern", "Basel"])[(X[:, 0] > 0).astype(int)]
    frame = pandas.DataFrame({"age": X[:, 1], "city": city}, index=np.arange(200)[::-1])
    columns = [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["city"])]
    pipe = make_pipeline(ColumnTransformer(columns), LogisticRegression())
    model = RecalibratedClassifier(pipe, "platt").fit(frame, pandas.Series(y, index=frame.index))
    by_hand = np.column_stack([StandardScaler().fit_transform(X[:, 1:2]), city == "Basel"])
    expected = RecalibratedClassifier(LogisticRegression(), "platt").fit(by_hand, y)
    assert model.predict_proba(frame) == pytest.approx(expected.predict_proba(by_hand), abs=0.02)
    assert list(model.feature_names_in_) == ["age", "city"]
    assert model.n_features_in_ == 2


def test_refuses_what_cannot_be_recalibrated():
    X, y, _, _ = data(n=200)
    with refused("estimator", holds="LinearRegression"):
        RecalibratedClassifier(LinearRegression()).fit(X, y)
    for cv in ("prefix", ""):
        with refused("cv", cv):
            RecalibratedClassifier(GaussianNB(), cv=cv).fit(X, y)
    for weight in (np.where(np.arange(100) == 3, -1.0, 1.0), -np.ones(100)):
        with refused("sample_weight", -1.0):
            RecalibratedClassifier(GaussianNB()).fit(X, y, sample_weight=weight)
    with refused("recalibrator", "magic"):
        RecalibratedClassifier(recalibrator="magic").fit(X, y)
    with refused("y"):
        RecalibratedClassifier(GaussianNB()).fit(X, np.arange(100) == 3)


def test_rows_of_a_group_share_a_fold():
    X, y, _, _ = data(n=400)
    groups = np.arange(200) // 4
    seen = []

    class Watching(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append({tuple(row) for row in X})
            return super().fit(X, y, sample_weight)

    RecalibratedClassifier(Watching(), "platt").fit(X, y, groups=groups)
    for learned in seen[1:]:  # the first learns from all rows
        inside = np.array([tuple(row) in learned for row in X])
        for group in range(50):
            assert inside[groups == group].all() or not inside[groups == group].any()


def test_time_order_learns_from_the_past_alone():
    X, y, X_new, _ = data(n=600)
    model = RecalibratedClassifier(GaussianNB(), "platt", cv=TimeSeriesSplit(3)).fit(X, y)
    p = np.concatenate(
        [
            GaussianNB().fit(X[a], y[a]).predict_proba(X[b])[:, 1]
            for a, b in TimeSeriesSplit(3).split(X)
        ]
    )
    by_hand = PlattRecalibrator().fit(p, y[75:])
    plain = GaussianNB().fit(X, y).predict_proba(X_new)[:, 1]
    assert model.predict_proba(X_new)[:, 1] == pytest.approx(by_hand.transform(plain))


@pytest.mark.parametrize("frozen", [True, False])
def test_a_fitted_classifier_stays_as_it_is(frozen):
    X, y, X_new, y_new = data(classes=3)
    labels = np.array(["b", "c", "a"])
    inner = GaussianNB().fit(X, labels[y])
    model = (
        RecalibratedClassifier(FrozenEstimator(inner), "temperature")
        if frozen
        else RecalibratedClassifier(inner, "temperature", cv="prefit")
    ).fit(X_new, labels[y_new])
    scaling = TemperatureScaling(from_logits=False)
    probs = inner.predict_proba(X_new)
    expected = scaling.fit(probs, labels[y_new], classes=list(inner.classes_)).transform(probs)
    assert model.predict_proba(X_new) == pytest.approx(expected)
    with refused("y", "z", row=7):
        model.fit(X_new, np.where(np.arange(y_new.size) == 7, "z", labels[y_new]))


def test_many_classes_are_scaled_together_by_default():
    X, y, X_new, y_new = data(classes=4)
    model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    assert isinstance(model.recalibrator_, StructuredScaling)
    plain = GaussianNB().fit(X, y).predict_proba(X_new)
    assert log_loss(y_new, model.predict_proba(X_new)) < log_loss(y_new, plain)
    with refused("recalibrator"):
        RecalibratedClassifier(GaussianNB(), StructuredScaling()).fit(X, y)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e4])
def test_scores_without_probabilities_are_mapped_as_scikit_learn_does(unit):
    """Platt's map of the scores is `CalibratedClassifierCV`'s, whatever the unit of the scores."""
    X, y, X_new, y_new = data(n=1000)

    class Scaled(LinearSVC):
        def decision_function(self, X):
            return unit * super().decision_function(X)

    theirs = CalibratedClassifierCV(Scaled(), ensemble=False, cv=3).fit(X, y)
    ours = RecalibratedClassifier(Scaled(), "platt", cv=3).fit(X, y)
    assert ours.predict_proba(X_new) == pytest.approx(theirs.predict_proba(X_new), abs=1e-3)
    default = RecalibratedClassifier(Scaled()).fit(X, y).predict_proba(X_new)
    assert log_loss(y_new, default) < log_loss(y_new, theirs.predict_proba(X_new)) + 0.01
    isotonic = RecalibratedClassifier(Scaled(), "isotonic", cv=3).fit(X, y)
    scores = ours.estimator_.decision_function(X_new)
    assert np.diff(isotonic.predict_proba(X_new)[np.argsort(scores), 1]).min() >= 0.0


def test_scores_of_many_classes_are_logits():
    X, y, X_new, y_new = data(classes=3, n=2000)
    labels = np.array(["b", "c", "a"])
    model = RecalibratedClassifier(LinearSVC(), cv=3).fit(X, labels[y])
    scores = model.estimator_.decision_function(X_new)
    probs = model.predict_proba(X_new)
    assert list(model.recalibrator_.classes_) == list(model.classes_) == ["a", "b", "c"]
    place = np.searchsorted(model.classes_, labels[y_new])
    best = minimize_scalar(
        lambda t: -log_softmax(np.exp(t) * scores, axis=1)[np.arange(place.size), place].mean()
    )
    assert -np.log(probs[np.arange(place.size), place]).mean() < best.fun + 0.02
    ovo = SVC(decision_function_shape="ovo")
    X, y, _, _ = data(classes=4, n=400)
    with refused("estimator", 6):
        RecalibratedClassifier(ovo, "temperature", cv=2).fit(X, y)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("spline", "one-vs-rest"),
        ("structured", "structured scaling"),
        ("structured-matrix", "structured scaling"),
        ("vector", "vector scaling"),
        ("one-vs-rest", "one-vs-rest"),
        ("temperature", "temperature scaling"),
    ],
)
def test_maps_have_names(name, kind):
    X, y, X_new, _ = data(classes=3, n=600)
    model = RecalibratedClassifier(GaussianNB(), name, cv=2).fit(X, y)
    assert model.recalibrator_.kind == kind
    assert model.predict_proba(X_new).sum(axis=1) == pytest.approx(1.0)
    X, y, _, _ = data(n=200)
    if name in ("spline", "temperature"):
        assert RecalibratedClassifier(GaussianNB(), name).fit(X, y).recalibrator_.kind == name
    else:
        with refused("recalibrator", name):
            RecalibratedClassifier(GaussianNB(), name).fit(X, y)


def test_a_fold_that_lacks_a_class_teaches_the_map_nothing():
    """Rows in order of their classes: no classifier of the past knows the later ones."""
    X, y = load_iris(return_X_y=True)
    with refused("y_true", 2, kind=TooFewRows):
        RecalibratedClassifier(GaussianNB(), cv=TimeSeriesSplit()).fit(X, y)
    with refused("y", kind=TooFewRows):
        RecalibratedClassifier(GaussianNB(), cv=KFold(3)).fit(X, y)
    when = np.random.default_rng(0).random(150)
    order = np.argsort(np.where(y == 2, 0.3 + 0.7 * when, when))
    late, labels = X[order], y[order]
    assert (labels[:25] != 2).all()  # the first fold knows no class 2
    model = RecalibratedClassifier(GaussianNB(), cv=TimeSeriesSplit(5)).fit(late, labels)
    assert model.score(X, y) > 0.9


def test_a_fitted_classifier_keeps_a_class_that_the_map_has_not_seen():
    X, y, X_new, y_new = data(classes=3)
    inner = GaussianNB().fit(X, y)
    seen = y_new != 2
    model = RecalibratedClassifier(inner, cv="prefit").fit(X_new[seen], y_new[seen])
    assert isinstance(model.recalibrator_, TemperatureScaling)
    assert np.array_equal(model.predict(X_new), inner.predict(X_new))
    with refused("y_true", 2, kind=TooFewRows):
        RecalibratedClassifier(inner, "structured", cv="prefit").fit(X_new[seen], y_new[seen])
