"""Risk-coverage against its definition over every order of ties, and against values of other systems."""

import warnings
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from tests.refusals import refused

import calibrant as cal
from calibrant.inference.dependence import DependenceWarning


def by_definition(right, order):
    """AURC and AUGRC of one order, in both conventions, row by row."""
    wrong = 1.0 - np.asarray(right, dtype=float)[list(order)]
    n = wrong.size
    k = np.arange(1, n + 1)
    risk, generalised = np.cumsum(wrong) / k, np.cumsum(wrong) / n
    return np.array(
        [
            risk.mean(),
            trapezoid(risk, k / n) / (1 - 1 / n),
            trapezoid(np.append(0, generalised), np.append(0, k / n)),
            trapezoid(generalised, k / n) / (1 - 1 / n),
        ]
    )


def areas(found):
    return np.array([found.aurc, found.aurc_trapezoid, found.augrc, found.augrc_trapezoid])


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.2, 0.5, 0.9])), min_size=2, max_size=6)
)
def test_ties_are_the_mean_over_all_their_orders(rows):
    right, p = zip(*rows, strict=True)
    orders = {
        order
        for order in permutations(range(len(p)))
        if all(p[a] >= p[b] for a, b in pairwise(order))
    }
    expected = np.mean([by_definition(right, order) for order in orders], axis=0)
    assert areas(cal.selective(right, p)) == pytest.approx(expected, abs=1e-12)


def two_features():
    """Malignant tumours by two features: rows in even places train, the others are predicted."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    data = load_breast_cancer()
    x, y = data.data[:, :2], 1 - data.target
    x = (x - x[::2].mean(axis=0)) / x[::2].std(axis=0)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[::2], y[::2])
    return cal.confidence(y[1::2], model.predict_proba(x[1::2]))


def test_the_values_of_other_systems():
    found = cal.selective(two_features())
    assert found.aurc == pytest.approx(0.04002574, abs=5e-9)
    assert found.aurc_trapezoid == pytest.approx(0.03992455, abs=5e-9)
    assert found.augrc_trapezoid == pytest.approx(0.03056413, abs=5e-9)
    assert found.risk_at(0.8) == pytest.approx(0.07894737, abs=5e-9)
    assert found.coverage_at(0.05) == pytest.approx(0.68309859, abs=5e-9)


def sample(seed=0, n=400, digits=2):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), digits)
    return (rng.random(n) < p).astype(int), p


def test_generalised_area_is_that_of_the_roc_curve():
    # Traub et al., equation 5: (1 - AUROC) acc (1 - acc) + (1 - acc)² / 2.
    from sklearn.metrics import roc_auc_score

    y, p = sample()
    accuracy = y.mean()
    expected = (1 - roc_auc_score(y, p)) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert cal.selective(y, p).augrc == pytest.approx(expected, abs=1e-12)


def test_weight_two_is_duplication():
    y, p = sample()
    twice = cal.selective(np.repeat(y, 2), np.repeat(p, 2))
    assert areas(cal.selective(y, p, sample_weight=np.full(y.size, 2.0))) == pytest.approx(
        areas(twice)
    )


def test_a_sketch_is_right_up_to_the_order_in_its_cells():
    y, p = sample(digits=12, n=3000)
    rows, cells = cal.selective(y, p), cal.selective(cal.Sketch.from_arrays(y, p, nodes=64))
    assert rows.aurc == pytest.approx(cells.aurc, abs=1 / 64)
    fine = cal.selective(cal.Sketch.from_arrays(*sample()))
    assert areas(fine) == pytest.approx(areas(cal.selective(*sample())), abs=1e-12)
    assert fine.curve.risk == pytest.approx(cal.selective(*sample()).curve.risk)


@pytest.mark.parametrize("clustered", [False, True])
def test_standard_errors_are_those_of_the_jackknife(clustered):
    y, p = sample(n=300, digits=12)
    code = np.arange(y.size) // 3 if clustered else np.arange(y.size)
    if clustered:
        y = np.repeat(y[::3], 3)
    left_out = [
        areas(cal.selective(y[code != g], p[code != g]))[[0, 2]] for g in range(code.max() + 1)
    ]
    groups = len(left_out)
    jackknife = np.sqrt((groups - 1) * np.var(left_out, axis=0))
    found = cal.selective(y, p, cluster=code if clustered else None)
    degrees = groups - 1 if clustered else np.inf
    from scipy.stats import t

    z = t.ppf(0.975, degrees)
    error = [found.aurc_interval.width / 2 / z, found.augrc_interval.width / 2 / z]
    assert error == pytest.approx(jackknife, rel=0.05)


def test_intervals_hold_the_population_value():
    # Risk falls in a straight line with confidence: AURC is ∫ c/2 dc, AUGRC ∫ c²/2 dc.
    rng = np.random.default_rng(1)
    held = np.zeros(2)
    for _ in range(200):
        p = rng.random(300)
        found = cal.selective(rng.random(300) < p, p)
        held += [0.25 in found.aurc_interval, 1 / 6 in found.augrc_interval]
    assert np.all(held >= 180)  # 95% of 200, less three standard errors


def test_limits_of_the_curve_are_exact():
    from scipy.stats import beta

    y, p = sample()
    curve = cal.selective(y, p, confidence=0.9).curve
    at = int(np.flatnonzero(curve.threshold == 0.5)[0])
    rows, wrong = np.sum(p >= 0.5), np.sum(y[p >= 0.5] == 0)
    assert curve.coverage[at] == rows / y.size
    assert curve.risk[at] == wrong / rows
    assert curve.low[at] == pytest.approx(beta.ppf(0.05, wrong, rows - wrong + 1))
    assert curve.high[at] == pytest.approx(beta.ppf(0.95, wrong + 1, rows - wrong))


def test_rows_that_repeat_widen_the_limits_of_clusters_alone():
    y, p = sample(digits=12)
    once = cal.selective(y, p).curve
    copies = np.repeat(np.arange(y.size), 4)
    clustered = cal.selective(y[copies], p[copies], cluster=copies).curve
    assert clustered.high[100:] == pytest.approx(once.high[100:], rel=0.02)


def test_abstentions_lower_the_coverage():
    y, p = sample()
    found = cal.selective(y, p, abstained=100)
    assert found.coverage == 0.8 == found.curve.coverage[-1]
    assert found.risk_at(0.8) == pytest.approx(1 - y.mean())
    assert found.aurc == cal.selective(y, p).aurc
    with refused("coverage", 0.9):
        found.risk_at(0.9)


def test_a_long_curve_is_thinned_and_the_numbers_are_not():
    y, p = sample(n=20_000, digits=12)
    found = cal.selective(y, p)
    assert 500 < found.curve.risk.size <= 1024
    order = np.argsort(-p)
    assert areas(found) == pytest.approx(by_definition(y, order), abs=1e-12)
    right = y[order]
    assert found.risk_at(0.3) == pytest.approx(1 - right[:6000].mean())


@pytest.mark.parametrize("repeats", [1, 4])
def test_intervals_have_width_where_all_answers_are_alike(repeats):
    """One answer in 300 may be wrong where none of 300 is, and be the surest of all."""
    p = np.repeat(np.linspace(0.1, 0.9, 300), repeats)
    cluster = np.repeat(np.arange(300), repeats) if repeats > 1 else None
    right = cal.selective(np.ones(p.size), p, cluster=cluster)
    wrong = cal.selective(np.zeros(p.size), p, cluster=cluster)
    surest = np.where(np.arange(p.size) < p.size - repeats, 1, 0)
    truth = cal.selective(surest, p, cluster=cluster)
    assert 0.0 < truth.aurc < right.aurc_interval.high < 0.1
    assert 0.0 < truth.augrc < right.augrc_interval.high < 0.02
    opposite = cal.selective(1 - surest, p, cluster=cluster)
    assert 0.9 < wrong.aurc_interval.low < opposite.aurc < 1.0 == wrong.aurc_interval.high
    assert 0.48 < wrong.augrc_interval.low < opposite.augrc < 0.5 == wrong.augrc_interval.high


def test_sketches_by_cluster_equal_rows():
    y, p = sample()
    code = np.arange(400) // 4
    parts = {int(g): cal.Sketch.from_arrays(y[code == g], p[code == g]) for g in range(100)}
    by_sketch = cal.selective(cal.Sketches(parts, by="question"), cluster="question")
    by_rows = cal.selective(y, p, cluster=code)
    assert by_sketch.aurc_interval.width == pytest.approx(by_rows.aurc_interval.width)
    assert by_sketch.curve.high == pytest.approx(by_rows.curve.high)


def test_the_picture_shows_the_curve_and_the_certified_point():
    y, p = sample(n=2000)
    certified = cal.certify(y, p, risk=0.2)
    diagram = cal.plotting.risk_coverage_diagram(y, p, point=certified.above)
    artists = diagram.plot().artists
    assert set(artists) == {"diagonal", "confidence_band", "curve", "point"}
    assert artists["point"][0].get_xdata()[0] == certified.coverage
    assert "<svg" in diagram.to_svg()
    assert list(diagram.to_frame("pandas").columns)[:2] == ["threshold", "coverage"]
    assert cal.plotting.risk_coverage_diagram(diagram.selective).selective is diagram.selective


@pytest.mark.parametrize("call", [cal.selective, cal.certify, cal.assess])
@pytest.mark.parametrize("sketched", [False, True])
def test_rows_that_come_three_times_are_told_by_their_ties(call, sketched):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p

    def sample(times):
        rows = np.repeat(y, times), np.repeat(p, times)
        return (cal.Sketch.from_arrays(*rows),) if sketched else rows

    with pytest.warns(DependenceWarning) as told:
        call(*sample(3))
    assert " 3.0 times" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(*sample(1))
