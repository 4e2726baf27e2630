"""Expected performance without labels: exact where predictions are calibrated, covered where they are not."""

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from tests.refusals import refused

from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantWarning
from calibrant.inference.projection import project


def without_own_pairs(auc, p):
    """AUC of all pairs of rows, each of which made a pair with itself, of others alone."""
    own, pairs = (p * (1 - p)).sum(), p.sum() * (1 - p).sum()
    return (auc * pairs - 0.5 * own) / (pairs - own)


def test_no_row_makes_a_pair_with_itself():
    assert project(None, [0.1, 0.9]).auc.value == pytest.approx(0.81 / 0.82, abs=1e-12)
    for p in ([0.0, 0.0], [1.0, 1.0], [0.3]):
        found = project(None, p)
        assert np.isnan([found.auc.value, found.auc.low, found.auc.high]).all()
        assert "auc          not defined" in str(found)
        assert found.to_dict()["auc"]["value"] is None


def test_without_a_reference_predictions_are_taken_to_be_calibrated():
    p = np.random.default_rng(0).beta(2, 3, 1500)
    found = project(None, p)
    assert found.accuracy.value == pytest.approx(np.maximum(p, 1 - p).mean(), abs=1e-12)
    assert found.rate.value == pytest.approx(p.mean(), abs=1e-12)
    assert found.brier.value == pytest.approx((p * (1 - p)).mean(), abs=1e-12)
    rows, weight = np.repeat(p, 2), np.column_stack([p, 1 - p]).ravel()
    auc = roc_auc_score(np.tile([1, 0], p.size), rows, sample_weight=weight)
    assert found.auc.value == pytest.approx(without_own_pairs(auc, p), abs=1e-12)
    assert "not measured" in str(found)
    exact = Sketch.from_counts([0.125, 0.5, 0.75], [80, 40, 80], [10, 20, 60])
    with pytest.warns(CalibrantWarning, match=r"% of `current` is beyond all but 5 rows"):
        found = project(exact, p)
    assert found.accuracy.value == pytest.approx(np.maximum(p, 1 - p).mean(), abs=1e-12)
    assert 0.0 <= found.auc.low <= found.auc.high <= 1.0


@pytest.mark.parametrize(
    ("curve", "reference", "current"),
    [
        (lambda p: 0.7 * p, (1.5, 2), (2, 3)),
        (lambda p: 0.25 + 0.5 * p, (2, 4), (4, 2)),
        (lambda p: p**1.5, (2, 8), (8, 2)),  # nearly all of it beyond the reference
        (lambda p: p, (1, 30), (1, 15)),
    ],
)
def test_the_truth_is_covered_if_the_curve_holds(curve, reference, current):
    current = np.sort(np.random.default_rng(0).beta(*current, 2000))
    mu = curve(current)
    pairs = mu[:, None] * (1 - mu)
    np.fill_diagonal(pairs, 0.0)
    truth = {
        "rate": mu.mean(),
        "brier": (current**2 + mu * (1 - 2 * current)).mean(),
        "accuracy": np.where(current >= 0.5, mu, 1 - mu).mean(),
        "auc": np.tril(pairs).sum() / pairs.sum(),
        "net_benefit": np.where(current >= 0.5, 2 * mu - 1, 0).mean(),
    }
    missed, beyond = dict.fromkeys(truth, 0), []
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        p = rng.beta(*reference, 1500)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = project((rng.random(1500) < curve(p), p), current)
        assert bool(caught) == (found.beyond > 0.1)
        beyond.append(found.beyond)
        for name, value in truth.items():
            one = found.metrics[name]
            missed[name] += not one.low <= value <= one.high
    assert (np.mean(beyond) > 0.1) == (reference[0] == 2)
    assert max(missed.values()) <= 9  # P(Binomial(60, .05) > 9) = .001


def test_the_curve_is_uncertain_in_a_gap_of_the_reference():
    """A wave between 0.2 and 0.8, where the reference has no rows."""
    current = np.linspace(0.4, 0.6, 500)
    rng = np.random.default_rng(0)
    p = np.r_[rng.beta(2, 30, 1000), rng.beta(30, 2, 1000)]
    y = rng.random(2000) < p
    gap = project((y, p), current).rate
    p = np.r_[p, rng.uniform(0.4, 0.6, 400)]
    filled = project((rng.random(2400) < p, p), current).rate
    assert gap.high - gap.low > 3 * (filled.high - filled.low)


@pytest.mark.parametrize("threshold", [0.3, 0.5])
def test_the_curve_may_jump_at_the_threshold(threshold):
    rng = np.random.default_rng(0)
    p, current = rng.random((2, 20_000))
    y = rng.random(20_000) < np.where(p < threshold, 0.2, 0.8)
    found = project((y, p), current, threshold=threshold).accuracy
    assert found.low < 0.8 < found.high
    assert found.value == pytest.approx(0.8, abs=0.006)


@pytest.mark.parametrize("p", [0.0, 1.0, 1e-300, 0.3])
@pytest.mark.parametrize("y", [[0], [1], [0, 1], [1] * 50])
def test_the_smallest_references(y, p):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        found = project((y, np.full(len(y), p)), [0.2, 0.5, 0.5])
    for one in found.metrics.values():
        assert one.low <= one.value <= one.high


def test_rows_of_the_reference_that_are_dropped_are_counted():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(float)
    y[:7] = np.nan
    found = project((y, p), p, on_invalid="drop")
    assert (found.n_reference, found.to_dict()["dropped"]) == (293, {"missing label": 7})
    assert "7: missing label" in str(found)


def test_expected_scores_without_labels_are_those_of_nannyml():
    """CBPE of nannyml 0.13.1: unpenalised logistic regression on two columns of breast_cancer, odd rows."""
    rows = load_breast_cancer()
    x = StandardScaler().fit(rows.data[::2, :2]).transform(rows.data[:, :2])
    model = LogisticRegression(C=np.inf).fit(x[::2], rows.target[::2] == 0)
    p = model.predict_proba(x[1::2])[:, 1]
    found = project(None, p)
    assert found.auc.value == pytest.approx(without_own_pairs(0.9718072, p), abs=1e-5)
    assert found.accuracy.value == pytest.approx(0.9174860, abs=1e-5)


def test_drift_of_predictions_is_told_apart():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 1000)
    y = rng.random(1000) < p
    assert project((y, p), rng.beta(2, 3, 1000)).drift_p_value > 0.01
    assert project((y, p), rng.beta(3, 2, 1000)).drift_p_value < 1e-6
    assert json.dumps(project((y, p), p).to_dict())


def test_bad_input():
    with refused("current", row=1):
        project(None, [0.2, 1.2])
    with refused("reference"):
        project([0, 1, 1], [0.2])
    weighted = Sketch.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1.0, 2.0])
    with refused("reference", holds="no weights"):
        project(weighted, [0.2])
    with refused("threshold"):
        project(None, [0.2], threshold=2)


def test_the_frame_has_the_metrics_with_their_intervals():
    p = np.random.default_rng(0).beta(2, 3, 1500)
    found = project((p > 0.5, p), p)
    rows = found.to_frame("pandas").set_index("metric")
    for name, one in found.metrics.items():
        assert rows.loc[name].to_dict() == vars(one)
