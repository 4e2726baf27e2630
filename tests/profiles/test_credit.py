"""The grade table: published values, oracles by counting, and dependence that is never passed over."""

import numpy as np
import pytest
from scipy import stats
from tests.refusals import refused

import calibrant as cal
from calibrant.profiles import credit
from calibrant.profiles.credit import binomial_p_value, jeffreys_p_value, pluto_tasche

N = (100, 400, 300)


@pytest.mark.parametrize(
    ("confidence", "bounds"),
    [
        (0.5, (0.00086606, 0.00098972, 0.00230782)),
        (0.9, (0.00287409, 0.003284, 0.0076459)),
        (0.99, (0.00573993, 0.00655722, 0.01523335)),
    ],
)
def test_pluto_and_tasches_bounds_without_defaults(confidence, bounds):
    assert pluto_tasche(N, (0, 0, 0), confidence) == pytest.approx(bounds, abs=5e-9)


def test_pluto_and_tasches_bounds_are_clopper_pearsons_of_the_worse_grades_together():
    found = pluto_tasche(N, (0, 2, 1), 0.9)
    pooled = [(800, 3), (700, 3), (300, 1)]
    exact = [stats.binomtest(d, n).proportion_ci(0.8, "exact").high for n, d in pooled]
    assert found == pytest.approx(exact, rel=1e-9)
    assert pluto_tasche([3], [3]) == 1.0


@pytest.mark.parametrize(
    ("n", "d", "pd", "jeffreys", "binomial"),
    [
        (1000, 12, 0.008, 0.0843342034, 0.1110537079),
        (500, 9, 0.02, 0.6072485575, 0.6694581840),
        (100, 6, 0.05, 0.3039022388, 0.3840008720),
        (250, 0, 0.002, 0.6831736755, 1.0),
    ],
)
def test_jeffreys_and_binomial_p_values(n, d, pd, jeffreys, binomial):
    assert jeffreys_p_value(n, d, pd) == pytest.approx(jeffreys, abs=1e-10)
    assert binomial_p_value(n, d, pd) == pytest.approx(binomial, abs=1e-10)
    assert binomial == pytest.approx(stats.binom.sf(d - 1, n, pd), abs=1e-9)


def rows(seed=0, n=3000):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 12, n)
    return (rng.random(n) < 1.3 * p).astype(int), p


def table_of(y, p, profile="credit", **options):
    return cal.assess(y, p, profile=profile, **options).profile["grades"].columns


def test_grades_are_counted_by_cut_points():
    y, p = rows()
    table = table_of(y, p, credit(cuts=[0.01, 0.1]))
    inside = (p >= 0.01) & (p < 0.1)
    assert table["grade"] == ("0 to 0.01", "0.01 to 0.1", "0.1 to 1")
    assert table["n"][1] == inside.sum()
    assert table["defaults"][1] == y[inside].sum()
    assert table["expected"][1] == pytest.approx(p[inside].mean())
    own = jeffreys_p_value(inside.sum(), y[inside].sum(), p[inside].mean())
    assert table["Jeffreys p"][1] == pytest.approx(own)
    assert all(c >= p for c, p in zip(table["corrected"], table["Jeffreys p"], strict=True))


def test_a_column_of_grades_goes_from_best_to_worst():
    y, p = rows()
    names = np.array(["C", "A", "B"])[np.searchsorted([0.02, 0.1], p)]  # C is best
    table = table_of(y, p, credit(grades=names))
    assert table["grade"] == ("C", "A", "B")
    ordered = table_of(y, p, credit(grades=names, order=["A", "B", "C", "D"]))
    assert ordered["grade"] == ("A", "B", "C", "D")
    assert ordered["n"][3] == 0
    assert np.isnan(ordered["Jeffreys p"][3])
    found = cal.assess(y, p, profile=credit(grades=names, order=["A", "B", "C", "D"])).profile
    assert "No rows in D" in found["grades"].note


def test_independence_is_said_and_clusters_are_heard():
    y, p = rows(n=600)
    alone = cal.assess(y, p, profile=credit(cuts=[0.05])).profile["grades"]
    assert "independent" in alone.note
    five = {"cluster": np.repeat(np.arange(600), 5)}
    copied = cal.assess(np.repeat(y, 5), np.repeat(p, 5), profile=credit(cuts=[0.05]), **five)
    together = copied.profile["grades"]
    assert "clusters" in together.note
    # Copies of a row are no news: the tests are those of the rows, up to the variance's degrees of freedom.
    for name in ("Jeffreys p", "upper 95%"):
        assert together.columns[name] == pytest.approx(alone.columns[name], rel=0.02)


def test_a_grade_without_defaults_counts_its_clusters():
    y, p = np.zeros(90, dtype=int), np.r_[np.full(60, 0.01), np.full(30, 0.2)]
    y[-1] = 1
    table = table_of(y, p, credit(cuts=[0.1]), cluster=np.arange(90) // 3)
    assert table["Jeffreys p"][0] == pytest.approx(float(jeffreys_p_value(20, 0, 0.01)))


def test_a_sketch_gives_the_same_table():
    y, p = rows()
    sketch = cal.Sketch.from_arrays(y, p)
    exact, found = table_of(y, p), cal.assess(sketch, profile="credit").profile["grades"]
    moved = np.abs(np.subtract(found.columns["n"], exact["n"])).sum()
    assert moved < 0.01 * y.size
    assert found.columns["Jeffreys p"] == pytest.approx(exact["Jeffreys p"], abs=0.02)
    cut = cal.assess(cal.Sketch.from_arrays(y, p), profile=credit(cuts=[0.125])).profile["grades"]
    assert cut.columns["n"][0] == (p < 0.125).sum()


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"cuts": [0.1, 1.0]}, "cuts"),
        ({"cuts": ["a"]}, "cuts"),
        ({"grades": ["a", "b"], "cuts": [0.1]}, "grades"),
        ({"order": ["a"]}, "order"),
        ({"grades": ["a", "b", "c"]}, "grades"),
        ({"grades": ["a", None]}, "grades"),
        ({"grades": ["a", "b"], "order": ["a"]}, "order"),
    ],
)
def test_mistakes_are_named(options, argument):
    with refused(argument):
        cal.assess([0, 1], [0.1, 0.2], profile=credit(**options))
