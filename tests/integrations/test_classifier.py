"""The meta-estimator: scikit-learn's own checks, and that it repairs."""

import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.refusals import refused

from calibrant import InputError, Sketch, smooth_ece
from calibrant.inference.noise_floor import noise_floor
from calibrant.integrations.classifier import RecalibratedClassifier
from calibrant.measures.multiclass import multiclass_error
from calibrant.recalibration.parametric import PlattRecalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling
from calibrant.repair.effect import log_losses


def data(classes=2, n=3000):
    X, y = make_classification(
        n, 20, n_informative=5, n_redundant=10, n_classes=classes, random_state=0
    )
    half = n // 2
    return X[:half], y[:half], X[half:], y[half:]


@pytest.mark.words  # one of scikit-learn's checks reads the message for the word "class"
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
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = [result["check_name"] for result in results if result["status"] == "failed"]
    assert failed == []


@pytest.mark.parametrize("name", ["smooth", "platt", "isotonic", "beta", "choose"])
def test_repairs_a_naive_classifier(name):
    X, y, X_new, y_new = data()
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
    floor = np.mean(
        [noise_floor(Sketch.from_arrays(y_new == k, probs[:, k])).value for k in range(3)]
    )
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


def test_a_pipeline_gets_texts():
    texts, y = ["good film", "bad film", "good", "bad"] * 10, [1, 0, 1, 0] * 10
    model = RecalibratedClassifier(make_pipeline(CountVectorizer(), LogisticRegression())).fit(
        texts, y
    )
    assert list(model.predict(["a good one", "a bad one"])) == [1, 0]


@pytest.mark.parametrize("cv", [1, 0, -3, True, np.int64(1)])
def test_folds_are_two_or_more(cv):
    X, y, _, _ = data(n=100)
    with pytest.raises(InputError) as error:
        RecalibratedClassifier(GaussianNB(), cv=cv).fit(X, y)
    assert (error.value.argument, error.value.seen) == ("cv", cv)


def test_refuses_what_cannot_be_recalibrated():
    X, y, _, _ = data(n=200)
    with refused("estimator", "LinearRegression"):
        RecalibratedClassifier(LinearRegression()).fit(X, y)
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
    with pytest.raises(InputError) as error:
        model.fit(X_new, np.where(np.arange(y_new.size) == 7, "z", labels[y_new]))
    assert (error.value.where.row, error.value.seen) == (7, "z")


def test_many_classes_are_scaled_together_by_default():
    X, y, X_new, y_new = data(classes=4)
    model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    assert isinstance(model.recalibrator_, StructuredScaling)
    plain = GaussianNB().fit(X, y).predict_proba(X_new)
    assert log_loss(y_new, model.predict_proba(X_new)) < log_loss(y_new, plain)
    with pytest.raises(InputError) as error:
        RecalibratedClassifier(GaussianNB(), StructuredScaling()).fit(X, y)
    assert error.value.argument == "recalibrator"
